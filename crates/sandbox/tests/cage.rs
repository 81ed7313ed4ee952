//! The matrix: every way out of the cage that is known, tried by a real process on both backends.
//!
//! A machine without bubblewrap or Landlock fails here; it does not skip.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test of what commands can do has to do it"
)]

mod acts;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_sandbox::{
    Backend, Cage, Door, Inside, Network, changed, guarded, probe, secrets, snapshot,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn bubblewrap() -> Backend {
    let backend = probe().backend.clone();
    assert!(matches!(backend, Backend::Bubblewrap { .. }), "no bubblewrap: {:?}", probe().words);
    backend
}

fn landlock() -> Backend {
    assert!(probe().landlock.is_some_and(|version| version >= 6), "{:?}", probe().words);
    Backend::Landlock
}

/// A workspace, a home with secrets, and a place outside.
struct Site {
    folder: TempDir,
    backend: Backend,
}

impl Site {
    fn new(backend: Backend) -> Site {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tempfile::tempdir_in(parent)
            .or_else(|_| tempfile::tempdir())
            .expect("a folder for the test");
        let site = Site { folder, backend };
        for name in ["work/sub", "work/.husky", "outside", "temp", "home"] {
            fs::create_dir_all(site.path(name)).unwrap();
        }
        for secret in [
            ".ssh/id_rsa",
            ".aws/credentials",
            ".mozilla/firefox/a/logins.json",
            ".codex/auth.json",
            ".netrc",
        ] {
            let path = site.path("home").join(secret);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a secret").unwrap();
        }
        fs::write(site.path("home/plain.txt"), "nothing special").unwrap();
        fs::write(site.path("outside/file"), "theirs").unwrap();
        fs::write(site.path("work/.husky/pre-commit"), "old").unwrap();
        fs::write(site.path("work/file.txt"), "one\n").unwrap();
        let git = "git init -q -b main . && git config user.email a@b && git config user.name a \
                   && git add file.txt && git commit -qm one && echo old > .git/hooks/pre-push";
        let made = Command::new("bash").args(["-c", git]).current_dir(site.path("work")).status();
        assert!(made.unwrap().success());
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    fn cage(&self) -> Cage {
        Cage {
            backend: self.backend.clone(),
            root: self.path("work"),
            writable: true,
            write: Vec::new(),
            temp: self.path("temp"),
            hidden: secrets(&self.path("home")),
            private: Vec::new(),
            guarded: guarded(&self.path("work")),
            network: Network::None,
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn is_there(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/bash");
        let act = "act() { ACT=\"$*\" \"$SELF\" --exact acts::inside --nocapture 2>/dev/null \
                   | grep -q '^did it'; }; ";
        command.args(["-c", &format!("{act}{script}")]).current_dir(self.path("work"));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", self.path("home")).env("OUT", self.path("outside"));
        command.env("SELF", std::env::current_exe().unwrap());
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    /// Runs a script in a cage, and looks what changed of what is protected.
    fn run(&self, cage: &Cage, script: &str) -> Ended {
        let before = snapshot(&cage.root);
        let log = self.path("log");
        let file = fs::File::create(&log).unwrap();
        let mut command = self.command(script);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let entered = cage.enter(&mut command).unwrap();
        let mut running = Running(command.spawn().unwrap());
        let inside = entered.inside().unwrap();
        let code = attend(&inside, || running.wait());
        drop(running);
        let changed = changed(&before);
        Ended { code, text: fs::read_to_string(log).unwrap_or_default(), changed }
    }
}

#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    #[allow(dead_code, reason = "shown when a test fails")]
    text: String,
    changed: Vec<PathBuf>,
}

/// A child that does not outlive its test, nor does anything it started.
struct Running(Child);

impl Running {
    fn wait(&mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("it takes too long");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers at the door for as long as something takes.
fn attend<T>(inside: &Inside, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stopped = Stop(&stop);
        if let Some(door) = &inside.door {
            scope.spawn(|| serve(door, &stop));
        }
        let result = work();
        drop(stopped);
        result
    })
}

fn serve(door: &Door, stop: &AtomicBool) {
    let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !stop.load(Ordering::Relaxed) {
        let _ = poll(&mut [PollFd::new(door, PollFlags::IN)], Some(&moment));
        match door.answer() {
            Ok(answered) if answered.over => return,
            Ok(_) => {}
            Err(error) => panic!("the door broke: {error}"),
        }
    }
}

enum Expect {
    Works,
    Fails,
}
use Expect::{Fails, Works};

/// What is tried, how it should end, and what must be so afterwards.
struct Row(&'static str, String, Expect, Box<dyn Fn(&Site) -> bool>);

fn row(name: &'static str, script: impl Into<String>, expect: Expect) -> Row {
    Row(name, script.into(), expect, Box::new(|_| true))
}

fn and(row: Row, so: impl Fn(&Site) -> bool + 'static) -> Row {
    Row(row.0, row.1, row.2, Box::new(so))
}

/// Rows that need nothing from outside.
#[allow(clippy::too_many_lines, reason = "a table")]
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let absent = |name: &'static str, script: &str, path: &'static str| {
        and(row(name, script, Fails), move |site| !site.is_there(&format!("work/{path}")))
    };
    let kept = |name, script: &str, path: &'static str, content: &'static str| {
        and(row(name, script, Fails), move |site| site.read(path).contains(content))
    };
    let closed = |name, script: &str| {
        and(row(name, script, Fails), |site| !site.read("work/.git/config").contains("bad"))
    };
    vec![
        row(
            "write inside",
            "echo a > new.txt && cat new.txt && mkdir d && mv new.txt d && rm -r d",
            Works,
        ),
        row("write to the temporary folder", "echo a > $TMPDIR/a && f=$(mktemp) && rm $f", Works),
        row(
            "write to /dev/null, /dev/stderr",
            "set -o pipefail; (echo a > /dev/null && echo a > /dev/stderr) 2>&1 | cat",
            Works,
        ),
        and(row("write outside", "echo a > $OUT/new", Fails), |site| !site.is_there("outside/new")),
        kept("change outside", "echo bad > $OUT/file", "outside/file", "theirs"),
        kept("remove outside", "rm -f $OUT/file", "outside/file", "theirs"),
        and(row("open to others outside", "chmod 666 $OUT/file", Fails), |site| {
            fs::metadata(site.path("outside/file")).unwrap().permissions().mode() & 0o022 == 0
        }),
        row("open to others by a descriptor", "exec 7<$OUT/file; chmod 666 /proc/self/fd/7", Fails),
        row("change times outside", "touch -d 1990-01-01 $OUT/file", Fails),
        kept(
            "open a hook to others",
            "chmod 777 .git/hooks/pre-push; rm .git/hooks/pre-push",
            "work/.git/hooks/pre-push",
            "old",
        ),
        row(
            "change rights inside",
            "chmod 755 file.txt && touch -d 1990-01-01 file.txt && chmod 700 . && cp -p file.txt b",
            Works,
        ),
        row(
            "the kernel's settings",
            "f=/proc/sys/kernel/core_pattern; c=$(cat $f); echo \"$c\" > $f",
            Fails,
        ),
        row("the kernel's keys", "test -w /proc/sysrq-trigger && exec 7>/proc/sysrq-trigger", Fails),
        row("another's limits", "act limits", Fails),
        kept("through a link", "ln -s $OUT/file l; echo bad > l", "outside/file", "theirs"),
        row("write the system", "echo a > /etc/windlass-test", Fails),
        absent(
            "make .vscode/settings.json",
            "mkdir -p .vscode; echo a > .vscode/settings.json",
            ".vscode",
        ),
        absent("make .git/hooks/x", "echo a > .git/hooks/x", ".git/hooks/x"),
        absent("make .git/commondir", "echo /x > .git/commondir", ".git/commondir"),
        absent(
            "make .git/config.worktree",
            "echo a > .git/config.worktree",
            ".git/config.worktree",
        ),
        absent("make sub/.mcp.json", "echo a > sub/.mcp.json", "sub/.mcp.json"),
        absent("make sub/.git", "git init -q sub", "sub/.git"),
        absent("make .Cursor/MCP.json", "mkdir .Cursor; echo a > .Cursor/MCP.json", ".Cursor"),
        absent("make by a full path", "cd /; echo a > $OLDPWD/.envrc", ".envrc"),
        absent("make by ..", "cd sub; echo a > ../.envrc", ".envrc"),
        absent("make by /proc/self/cwd", "echo a > /proc/self/cwd/.envrc", ".envrc"),
        absent("make by /proc/self/root", "echo a > /proc/self/root$PWD/.envrc", ".envrc"),
        absent("make by /dev/fd", "exec 7<.; echo a > /dev/fd/7/.envrc", ".envrc"),
        absent("make by rename", "echo a > a; mv a .envrc", ".envrc"),
        absent("make by a folder's rename", "mkdir -p x/y; mv x .vscode", ".vscode"),
        absent(
            "bring a name in a folder",
            "mkdir c; echo x > c/config.toml; mv c .cargo",
            ".cargo/config.toml",
        ),
        absent(
            "bring a name by exchange",
            "mkdir -p c/d .cargo; echo x > c/config.toml; act exchange c .cargo",
            ".cargo/config.toml",
        ),
        absent(
            "bring a name by a link",
            "mkdir c; echo x > c/config.toml; ln -s c .cargo || (ln -s c l; mv -T l .cargo)",
            ".cargo/config.toml",
        ),
        absent(
            "move node_modules itself",
            "mkdir -p node_modules/.vscode; touch node_modules/.vscode/x; mv node_modules lib; test -e lib/.vscode",
            "lib/.vscode",
        ),
        row(
            "move folders",
            "mkdir -p a/b/c m && echo x > a/b/c/d && mv a e && cat e/b/c/d && touch m/{1..2500} && mv m n && test -e n/2500 && ! test -e m",
            Works,
        ),
        absent("bind a pair", "act pair_binds .mcp.json", ".mcp.json"),
        row("a call that is newer", "act later", Fails),
        row("flags of a file outside", "act flags $OUT/file", Fails),
        row("run slower oneself", "nice -n 5 taskset -c 0 true", Works),
        absent("more objects", "echo $OUT > .git/objects/info/alternates", ".git/objects/info/alternates"),
        absent("make by a hard link", "echo a > a; ln a .envrc", ".envrc"),
        absent("make by a link", "ln -s sub .vscode", ".vscode"),
        absent("make behind a link", "ln -s .envrc l1; ln -s l1 l2; echo a > l2", ".envrc"),
        absent(
            "make behind a link from /tmp",
            "ln -s $PWD $TMPDIR/w; echo a > $TMPDIR/w/.envrc",
            ".envrc",
        ),
        absent("make a special file", "mkfifo .envrc", ".envrc"),
        absent(
            "unpack",
            "mkdir e; (cd e; mkdir -p a; echo a > a/x; tar cf ../t.tar --transform s/x/.envrc/ a/x); tar xf t.tar",
            "a/.envrc",
        ),
        absent(
            "move out of node_modules",
            "mkdir -p node_modules/a/.vscode; touch node_modules/a/.vscode/x; mv node_modules/a moved; test -e moved/.vscode",
            "moved/.vscode",
        ),
        row(
            "packages bring such names",
            "mkdir -p node_modules/b/.vscode && echo a > node_modules/b/.vscode/settings.json && mv node_modules/b node_modules/c",
            Works,
        ),
        closed("change .git/config", "echo bad >> .git/config"),
        closed("git config", "git config core.hooksPath bad"),
        closed("sed -i .git/config", "sed -i '1i bad' .git/config"),
        closed("replace .git/config", "rm -f .git/config; echo bad > .git/config"),
        closed("reopen .git/config", "exec 7<.git/config; echo bad >> /proc/self/fd/7"),
        closed(
            "cut .git/config short",
            "truncate -s 0 .git/config || ! grep repositoryformatversion .git/config || false",
        ),
        closed("a hard link to .git/config", "ln .git/config h && echo bad >> h"),
        closed("rename .git", "mv .git x; mkdir .git && echo bad > .git/config"),
        kept("change a hook", "echo bad > .git/hooks/pre-push", "work/.git/hooks/pre-push", "old"),
        kept("remove a hook", "rm -f .git/hooks/pre-push", "work/.git/hooks/pre-push", "old"),
        kept("change .husky", "echo bad > .husky/pre-commit", "work/.husky/pre-commit", "old"),
        kept(
            "rename .husky",
            "mv .husky x; mkdir .husky && echo bad > .husky/pre-commit",
            "work/.husky/pre-commit",
            "old",
        ),
        kept("a hard link to outside", "ln $OUT/file h && echo bad > h", "outside/file", "theirs"),
        row("git works", GIT, Works),
        row("mount", "act mount", Fails),
        row("bind mount by the program", "mount --bind sub $OUT", Fails),
        row("new namespaces", "unshare -Ur true || unshare -n true", Fails),
        row("new namespaces by clone3", "act clone3", Fails),
        row("chroot", "act chroot", Fails),
        row("io_uring", "act io_uring", Fails),
        row("openat2", "act openat2", Fails),
        row("the other numbers of calls", "act x32", Fails),
        row("bpf", "act bpf", Fails),
        row("keys", "act keyctl", Fails),
        row("type into a terminal", "act tiocsti", Fails),
        row("trace even a child", "act ptrace_child", Fails),
        row("read /proc/1/root", "cat /proc/1/root$HOME/.ssh/id_rsa", Fails),
        row("a packet socket", "act packet", Fails),
        row("resolve a name", "getent ahostsv4 example.com", Fails),
        row("a connected pair", "act pair", Works),
        row("core dumps", "test $(ulimit -c) != 0 || ulimit -c unlimited", Fails),
        row("a limit stays", "ulimit -f 1000; ulimit -f unlimited", Fails),
        and(
            row(
                "a file of 10 GB",
                "ulimit -f 1000; truncate -s 10G big || fallocate -l 10G big || dd if=/dev/zero of=big bs=1M count=10240",
                Fails,
            ),
            |site| fs::metadata(site.path("work/big")).is_ok_and(|it| it.len() < 2_000_000),
        ),
        row(
            "no capabilities",
            "grep -q 'CapEff:.0000000000000000' /proc/self/status && grep -q 'CapPrm:.0000000000000000' /proc/self/status",
            Works,
        ),
        row(
            "no new privileges",
            "grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'Seccomp:.2' /proc/self/status",
            Works,
        ),
        row("a set-uid program", "sudo -n true || su -c true || chown 1:1 file.txt", Fails),
        row("read ~/.ssh", "cat ~/.ssh/id_rsa", Fails),
        row("read ~/.aws", "cat ~/.aws/credentials", Fails),
        row("read a browser's profile", "cat ~/.mozilla/firefox/*/logins.json", Fails),
        row("read another agent's login", "cat ~/.codex/auth.json", Fails),
        row("read ~/.netrc", "grep secret ~/.netrc", Fails),
        row("read past a link", "ln -s ~/.ssh keys; cat keys/id_rsa", Fails),
        row("read the rest of home", "cat ~/plain.txt", Works),
        row("an inherited variable", "test -z \"$LEAK\"", Works),
        row(
            "tools",
            "ls / >/dev/null || true; git status && grep one file.txt && find . -name '*.txt'",
            Works,
        ),
    ]
}

const GIT: &str = "set -e; git() { command git -c user.name=a -c user.email=b \"$@\"; }
echo two >> file.txt; git add -A; git commit -qm two; git checkout -q -b other; echo 3 > three.txt
git add three.txt; git commit -qm three; echo x >> file.txt; git stash -q; git stash pop -q
git checkout -q file.txt; git checkout -q main; echo 4 > four.txt; git add four.txt
git commit -qm four; git merge -q -m merged other; git tag v1; git checkout -q -b third v1~1
echo 5 > five.txt; git add five.txt; git commit -qm five; git rebase -q main; git reset -q --hard
git gc -q; git branch -q fourth; git log --oneline | grep -q five; git commit -q --amend -m six
git cherry-pick -x main~1 >/dev/null 2>&1 || git cherry-pick --abort; git reflog >/dev/null";

fn check(site: &Site, cage: &Cage, row: Row, failed: &mut Vec<String>) {
    let Row(name, script, expect, so) = row;
    let start = Instant::now();
    let ended = site.run(cage, &script);
    let right = match expect {
        Works => ended.code == Some(0),
        Fails => ended.code != Some(0),
    };
    let good = right && so(site);
    let verdict = if good { "holds" } else { "BREAKS" };
    println!("| {name:34} | {verdict:6} | {:>5} ms |", start.elapsed().as_millis());
    if !good {
        failed.push(format!("{name}: {script}\n    {ended:?}"));
    }
}

fn title(backend: &Backend) -> &'static str {
    match backend {
        Backend::Bubblewrap { .. } => "bubblewrap",
        Backend::Landlock => "Landlock",
        Backend::Seatbelt => "Seatbelt",
        Backend::Off => "nothing",
    }
}

/// Everything in one table. Rows share a site for as long as none spoils it.
fn matrix(backend: Backend) {
    println!("\n| {:34} | {:6} | {:>8} |", title(&backend), "", "");
    let mut failed = Vec::new();
    for row in rows() {
        let site = Site::new(backend.clone());
        let cage = site.cage();
        check(&site, &cage, row, &mut failed);
    }
    let site = Site::new(backend.clone());
    let cage = site.cage();
    for row in neighbours(&site) {
        check(&site, &cage, row, &mut failed);
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

/// Rows about what else runs on the machine. The servers live as long as the process.
fn neighbours(site: &Site) -> Vec<Row> {
    let work = site.path("work/s.sock");
    let docker = site.path("outside/docker.sock");
    let own = site.folder.path().file_name().unwrap().to_string_lossy();
    let name = format!("windlass-test-{own}");
    let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
    let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
    let v6 = TcpListener::bind("[::1]:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let datagrams = UnixDatagram::bind(site.path("outside/log.sock")).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let (v4_at, v6_at) = (v4.local_addr().unwrap(), v6.local_addr().unwrap());
    let udp_at = udp.local_addr().unwrap();
    let secret = fs::File::open(site.path("home/.ssh/id_rsa")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let number = secret.as_raw_fd();
    let neighbour = Running(Command::new("sleep").arg("120").process_group(0).spawn().unwrap());
    let pid = neighbour.0.id();
    std::mem::forget((UnixListener::bind(&work).unwrap(), UnixListener::bind(&docker).unwrap()));
    std::mem::forget((UnixListener::bind_addr(&abstract_name).unwrap(), v4, v6, secret));
    let alive = Box::new(move |_: &Site| {
        let _keep = &neighbour;
        Path::new(&format!("/proc/{}", neighbour.0.id())).exists()
    });
    vec![
        row("a socket in the workspace", format!("act unix {}", work.display()), Fails),
        row("docker's socket", format!("act unix {}", docker.display()), Fails),
        and(
            row(
                "a datagram by a pair",
                format!("act pair_sends {}/log.sock", site.path("outside").display()),
                Fails,
            ),
            move |_| datagrams.recv(&mut [0; 8]).is_err(),
        ),
        row("an abstract socket", format!("act abstract {name}"), Fails),
        row(
            "IPv4",
            format!("act tcp {v4_at} || (echo a > /dev/tcp/127.0.0.1/{})", v4_at.port()),
            Fails,
        ),
        row("IPv6", format!("act tcp {v6_at}"), Fails),
        and(row("UDP", format!("act udp {udp_at}; false"), Fails), move |_| {
            udp.recv(&mut [0; 8]).is_err()
        }),
        row(
            "an inherited descriptor",
            format!("cat /proc/self/fd/{number} || cat <&{number}"),
            Fails,
        ),
        row("slow down a neighbour", format!("renice -n 5 -p {pid} | grep priority"), Fails),
        row("bind a neighbour to a processor", format!("taskset -p 1 {pid}"), Fails),
        row("trace a neighbour", format!("act ptrace {pid}"), Fails),
        row(
            "read a neighbour",
            format!(
                "cat /proc/{pid}/environ || cat /proc/{pid}/root/etc/passwd || act reads {pid}"
            ),
            Fails,
        ),
        Row("signal a neighbour", format!("kill -9 {pid}"), Fails, alive),
    ]
}

#[test]
fn nothing_gets_out_of_bubblewrap() {
    matrix(bubblewrap());
}

#[test]
fn nothing_gets_out_of_landlock() {
    matrix(landlock());
}

/// Attacks that are not tried on the machine itself, and rows that fail in themselves.
const NOT_OUTSIDE: [&str; 14] = [
    "a call that is newer",
    "the kernel's keys",
    "write the system",
    "mount",
    "bind mount by the program",
    "new namespaces by clone3",
    "a set-uid program",
    "core dumps",
    "a limit stays",
    "a file of 10 GB",
    "resolve a name",
    "the other numbers of calls",
    "io_uring",
    "read /proc/1/root",
];

#[test]
fn without_a_cage_every_attack_succeeds() {
    let mut failed = Vec::new();
    let site = Site::new(Backend::Off);
    let near = neighbours(&site).into_iter().map(|row| (Some(&site), row));
    for (site, Row(name, script, expect, so)) in
        rows().into_iter().map(|row| (None, row)).chain(near)
    {
        let own = Site::new(Backend::Off);
        let site = site.unwrap_or(&own);
        if matches!(expect, Works) || NOT_OUTSIDE.contains(&name) {
            continue;
        }
        // Whoever is not root cannot do these at all.
        if ["chroot", "a packet socket", "the kernel's settings", "the kernel's keys"]
            .contains(&name)
            && !rustix::process::geteuid().is_root()
        {
            continue;
        }
        let ended =
            site.run(&site.cage(), &format!("TMPDIR={}; {script}", site.path("temp").display()));
        if ended.code != Some(0) && so(site) {
            failed.push(format!("{name}: {script}\n    {ended:?}"));
        }
    }
    assert!(failed.is_empty(), "these rows prove nothing:\n{}", failed.join("\n"));
}

#[test]
fn nothing_is_written_where_the_workspace_is_read_only() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let cage = Cage { writable: false, ..site.cage() };
        let mut failed = Vec::new();
        let scripts = [
            ("make a file", "echo a > new.txt"),
            ("change a file", "echo a > file.txt"),
            ("remove a file", "rm -f file.txt"),
            ("commit", "git add -A && git commit -qm x"),
            ("make a hook", "echo a > .git/hooks/x"),
            ("rename", "mv file.txt b"),
            ("rights", "chmod 777 $OUT/file"),
        ];
        for (name, script) in scripts {
            check(&site, &cage, row(name, script, Fails), &mut failed);
        }
        check(&site, &cage, row("read", "cat file.txt && git log", Works), &mut failed);
        check(&site, &cage, row("temporary", "echo a > $TMPDIR/a", Works), &mut failed);
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        assert_eq!(site.read("work/file.txt"), "one\n");
    }
}

#[test]
fn a_link_that_is_swapped_all_the_time_leads_nowhere() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let script = "mkdir ok; end=$((SECONDS+3))
            (while ((SECONDS < end)); do ln -sfn ok l; ln -sfn .git/hooks l; ln -sfn $OUT l; done) &
            (while ((SECONDS < end)); do echo bad > l/evil; echo bad > l/file; done) 2>/dev/null &
            (while ((SECONDS < end)); do echo bad > l/pre-push; mv -T l .git/info/l; done) 2>/dev/null &
            wait";
        let ended = site.run(&site.cage(), script);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!site.is_there("outside/evil") && site.read("outside/file") == "theirs");
        // Mounts hold the folder of hooks; Landlock has none, and the door can be outrun.
        let hooks =
            [".git/hooks/evil", ".git/hooks/file", ".git/hooks/pre-push"].map(PathBuf::from);
        let old = "old\n" == site.read("work/.git/hooks/pre-push");
        let held = old && !site.is_there("work/.git/hooks/evil");
        match site.backend {
            Backend::Bubblewrap { .. } => assert!(held, "{ended:?}"),
            _ => {
                assert!(held || hooks.iter().any(|hook| ended.changed.contains(hook)), "{ended:?}")
            }
        }
    }
}

#[test]
fn a_path_that_changes_after_the_answer_is_told() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let ended = site.run(&site.cage(), "act outruns .envrc; true");
        let told = ended.changed.contains(&PathBuf::from(".envrc"));
        assert_eq!(site.is_there("work/.envrc"), told, "{ended:?}");
    }
}

#[test]
fn everything_in_the_namespace_ends_with_its_first_process() {
    let site = Site::new(bubblewrap());
    let mut command = site.command("sleep 4711 & sleep 4711 & : & wait");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let entered = site.cage().enter(&mut command).unwrap();
    let running = Running(command.spawn().unwrap());
    let inside = entered.inside().unwrap();
    attend(&inside, || {
        let start = Instant::now();
        while sleepers().len() < 2 {
            assert!(start.elapsed() < PATIENCE, "they never started");
            std::thread::sleep(Duration::from_millis(5));
        }
        let monitor = running.0.id();
        let first = fs::read_to_string(format!("/proc/{monitor}/task/{monitor}/children")).unwrap();
        let first = rustix::process::Pid::from_raw(first.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
        while !sleepers().is_empty() {
            assert!(start.elapsed() < PATIENCE, "{:?} live on", sleepers());
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// Processes of this test that sleep.
fn sleepers() -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|path| fs::read(path.join("cmdline")).is_ok_and(|line| line == b"sleep\x004711\x00"))
        .collect()
}

#[test]
#[allow(unsafe_code, reason = "a terminal is taken by the process that wants it")]
fn a_command_in_a_terminal_keeps_it() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap().into_string().unwrap();
        let end = fs::File::options().read(true).write(true).open(name).unwrap();
        let script = "test -t 0 && test -t 1 && stty size >/dev/null && echo by name > /dev/tty; echo $?; set -m; sleep 0 & wait";
        let mut command = Command::new("/bin/bash");
        command.args(["-c", script]).env("PATH", "/usr/bin:/bin");
        command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
        // SAFETY: both are system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let entered = site.cage().enter(&mut command).unwrap();
        let mut running = Running(command.spawn().unwrap());
        drop(command);
        let inside = entered.inside().unwrap();
        let code = attend(&inside, || running.wait());
        let mut said = vec![0; 4096];
        let length = rustix::io::read(&main, &mut said).unwrap_or(0);
        let said = String::from_utf8_lossy(&said[..length]).into_owned();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("by name") && said.contains("0\r\n"), "{said:?}");
    }
}

#[test]
fn only_the_proxy_is_reached() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (proxy_at, other_at) = (proxy.local_addr().unwrap(), other.local_addr().unwrap());
    let mut failed = Vec::new();
    // Landlock limits ports, not addresses: who reaches the proxy's port here reaches it anywhere.
    let site = Site::new(landlock());
    let cage = Cage { network: Network::Proxy { port: proxy_at.port() }, ..site.cage() };
    let words = cage.enter(&mut site.command("true")).unwrap_err().to_string();
    assert!(words.contains("not addresses"), "{words}");
    let none = site.cage();
    for (name, act) in [("TCP", "tcp"), ("fast open", "fast_open"), ("MPTCP", "mptcp")] {
        check(&site, &none, row(name, format!("act {act} {proxy_at}"), Fails), &mut failed);
    }
    check(&site, &none, row("UDP", "act udp 127.0.0.1:53", Fails), &mut failed);

    let site = Site::new(bubblewrap());
    let cage = Cage { network: Network::Proxy { port: 3128 }, ..site.cage() };
    let mut command =
        site.command("exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r a <&3; echo $a");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let entered = cage.enter(&mut command).unwrap();
    let mut running = Running(command.spawn().unwrap());
    let inside = entered.inside().unwrap();
    let listener = TcpListener::from(inside.listener.as_ref().unwrap().try_clone().unwrap());
    attend(&inside, || {
        listener.set_nonblocking(true).unwrap();
        let start = Instant::now();
        let mut connection = loop {
            match listener.accept() {
                Ok((connection, _)) => break connection,
                Err(_) => assert!(start.elapsed() < PATIENCE, "it never connects"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        connection.set_nonblocking(false).unwrap();
        let mut said = [0; 6];
        connection.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"hello\n");
        std::io::Write::write_all(&mut connection, b"and back\n").unwrap();
        assert_eq!(running.wait(), Some(0));
    });
    let mut said = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "and back\n");
    for address in [proxy_at, other_at] {
        let script = format!("act tcp {address}");
        check(&site, &cage, row("the machine's own ports", script, Fails), &mut failed);
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[test]
fn a_linked_worktree_works_where_its_git_folder_may_be_written() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let made = Command::new("git")
            .args(["worktree", "add", "-q", "../tree"])
            .current_dir(site.path("work"))
            .status();
        assert!(made.unwrap().success());
        let (tree, git) = (site.path("tree"), site.path("work/.git"));
        let closed = Cage { root: tree.clone(), guarded: guarded(&tree), ..site.cage() };
        assert_eq!(closed.guarded, [tree.join(".git")]);
        let commit = format!(
            "cd {} && echo x > x && git add x && git -c user.name=a -c user.email=b commit -qm x",
            tree.display()
        );
        assert_ne!(site.run(&closed, &commit).code, Some(0));
        let mut guards = guarded(&tree);
        guards.extend(guarded(&git).into_iter().filter(|path| !path.ends_with("worktrees")));
        let open = Cage { write: vec![git], guarded: guards, ..closed };
        let ended = site.run(&open, &commit);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for script in [
            "echo bad >> ../work/.git/config",
            "echo bad > ../work/.git/hooks/x",
            "echo bad > ../work/.git/worktrees/tree/gitdir",
            "echo bad > ../work/.git/worktrees/tree/config.worktree",
            "echo bad > ../work/file.txt",
            "echo bad > .git",
        ] {
            let ended = site.run(&open, &format!("cd {}; {script}", tree.display()));
            assert_ne!(ended.code, Some(0), "{script}: {ended:?}");
        }
    }
}

#[test]
fn a_home_that_is_the_workspace_keeps_its_secrets() {
    let site = Site::new(bubblewrap());
    let home = site.path("home");
    let cage = Cage { root: home.clone(), guarded: guarded(&home), ..site.cage() };
    let script = format!(
        "cd {}; echo a > new && ! cat .ssh/id_rsa && ! cat .netrc | grep .",
        home.display()
    );
    let ended = site.run(&cage, &script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::metadata(home.join(".ssh")).unwrap().permissions().mode() & 0o111 != 0);
}

#[test]
fn what_changes_between_two_commands_is_seen_by_the_second() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let run = |script: &str| site.run(&site.cage(), script);
        for _ in 0..2 {
            // The second finds folders that have not changed for a while.
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(run("cat ~/plain.txt && ! cat ~/.ssh/id_rsa && echo 1 > new").code, Some(0));
        }
        fs::create_dir(site.path("home/.kube")).unwrap();
        fs::write(site.path("home/.kube/config"), "a secret").unwrap();
        fs::write(site.path("home/later.txt"), "nothing special").unwrap();
        let ended = run("cat ~/later.txt && ! cat ~/.kube/config");
        assert_eq!(ended.code, Some(0), "{} {}", title(&site.backend), ended.text);
        fs::rename(site.path("work"), site.path("old")).unwrap();
        fs::create_dir(site.path("work")).unwrap();
        let ended = run("echo 1 > new && ! echo 1 > ../old/other");
        assert_eq!(ended.code, Some(0), "{} {}", title(&site.backend), ended.text);
    }
}

#[test]
fn the_way_to_what_is_hidden_stays() {
    let site = Site::new(bubblewrap());
    let home = site.path("home");
    for name in [".config/gh/hosts.yml", "data/windlass/store.db", ".config/plain"] {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        fs::write(home.join(name), "a secret").unwrap();
    }
    let cage = || {
        let mut hidden = secrets(&home);
        hidden.extend([home.join("data/windlass"), home.join("later/windlass")]);
        Cage { root: home.clone(), guarded: guarded(&home), hidden, ..site.cage() }
    };
    let enter = format!("cd {}; ", home.display());
    for script in [
        "mv .config .cfg3",
        "mv data d2",
        "rm -rf data/windlass; mkdir -p data/windlass && echo forged > data/windlass/store.db",
        "act exchange .config new",
        "mkdir -p later/windlass; echo forged > later/windlass/store.db",
        "mv .ssh keys",
    ] {
        let ended = site.run(&cage(), &format!("{enter} mkdir -p new; {script}"));
        assert_ne!(ended.code, Some(0), "{script}: {ended:?}");
        let read = "cat .cfg3/gh/* d2/windlass/* new/gh/* keys/*; true";
        let ended = site.run(&cage(), &format!("{enter}{read}"));
        assert!(!ended.text.contains("a secret"), "{script}: {ended:?}");
    }
    assert_eq!(site.read("home/data/windlass/store.db"), "a secret");
    assert!(!site.is_there("home/later/windlass"));
    let ended = site.run(&cage(), &format!("{enter} cat .config/plain && echo a > .config/b"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Landlock has no means to cover a part of what may be written.
    let open = Cage { backend: landlock(), ..cage() };
    assert!(open.enter(&mut site.command("true")).is_err());
    let beneath = Cage { root: site.path("work"), ..open.clone() };
    assert!(beneath.enter(&mut site.command("true")).is_ok());
    let plan = Cage { writable: false, ..open };
    let ended = site.run(&plan, &format!("{enter} cat .config/plain && cat .ssh/id_rsa"));
    assert!(ended.code != Some(0) && ended.text.matches("a secret").count() == 1, "{ended:?}");
}

#[test]
fn many_names_hide_none() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        for number in 0..6_000 {
            fs::write(site.path(&format!("work/!{number}")), "").unwrap();
        }
        for number in 0..900 {
            let folder = site.path(&format!("work/pkg/p{number}/.vscode"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("settings.json"), "old").unwrap();
        }
        let deep = "work/a/b/c/d/e/.vscode/settings.json";
        fs::create_dir_all(site.path(deep).parent().unwrap()).unwrap();
        fs::write(site.path(deep), "old").unwrap();
        let cage = site.cage();
        let start = Instant::now();
        let mut failed = Vec::new();
        check(&site, &cage, row("enter", "true", Works), &mut failed);
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        for script in [
            "rm -f .git/config; test ! -e .git/config",
            "rm -f .husky/pre-commit; test ! -e .husky/pre-commit",
            "rm -f pkg/p899/.vscode/settings.json",
            "mv pkg/p899 x",
            "chmod 777 pkg/p899/.vscode/settings.json",
            "rm -rf a/b/c/d/e/.vscode",
            "mv a b; test -e b/b/c/d/e/.vscode",
        ] {
            check(&site, &cage, row("remove", script, Fails), &mut failed);
        }
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        assert_eq!(site.read(deep), "old");
        assert_eq!(site.read("work/pkg/p899/.vscode/settings.json"), "old");
    }
}

#[test]
fn protected_names_that_are_links_protect_what_they_lead_to() {
    use std::os::unix::fs::symlink;
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        for name in ["conf/settings.json", "mine/pre-push", "cargo/config.toml"] {
            fs::create_dir_all(site.path(&format!("work/{name}")).parent().unwrap()).unwrap();
            fs::write(site.path(&format!("work/{name}")), "old").unwrap();
        }
        fs::remove_dir_all(site.path("work/.git/hooks")).unwrap();
        symlink("../mine", site.path("work/.git/hooks")).unwrap();
        symlink("conf", site.path("work/.vscode")).unwrap();
        symlink("cargo", site.path("work/.cargo")).unwrap();
        symlink("sub/later", site.path("work/.envrc")).unwrap();
        let cage = site.cage();
        let mut failed = Vec::new();
        for script in [
            "echo evil > .vscode/settings.json",
            "echo evil > conf/settings.json",
            "echo evil > conf/new",
            "rm conf/settings.json",
            "mv conf c2",
            "mv .vscode v",
            "echo evil > .git/hooks/pre-push",
            "echo evil > mine/pre-push",
            "echo evil > .cargo/config.toml",
            "echo evil > cargo/config.toml",
            "echo evil > .envrc",
            "echo evil > sub/later",
        ] {
            check(&site, &cage, row("a link", script, Fails), &mut failed);
        }
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        assert!(!site.is_there("work/sub/later"));
    }
}

#[test]
fn a_crowd_at_the_door_does_not_hold_up_who_answers() {
    let site = Site::new(landlock());
    let script = "for i in {1..80}; do (while :; do : > f$i; done) & done; wait";
    let mut command = site.command(script);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let entered = site.cage().enter(&mut command).unwrap();
    let running = Running(command.spawn().unwrap());
    let inside = entered.inside().unwrap();
    let door = inside.door.as_ref().unwrap();
    let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(3) {
        let start = Instant::now();
        door.answer().unwrap();
        slowest = slowest.max(start.elapsed());
        assert!(begun.elapsed() < PATIENCE);
    }
    drop(running);
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
}

#[test]
fn what_is_private_stays_hidden_in_the_workspace() {
    let site = Site::new(bubblewrap());
    fs::create_dir_all(site.path("work/own/sub")).unwrap();
    fs::write(site.path("work/own/sub/key"), "a secret").unwrap();
    let cage = Cage {
        private: vec![site.path("work/own")],
        write: vec![site.path("work/own/sub")],
        ..site.cage()
    };
    let script = "! cat own/sub/key; ! ls own/sub; ! echo x > own/new; echo y > sub/new";
    let ended = site.run(&cage, script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.text.contains("a secret"), "{ended:?}");
    assert!(!site.is_there("work/own/new") && site.is_there("work/sub/new"));
    let words = Cage { backend: landlock(), ..cage }.enter(&mut site.command("true"));
    assert!(words.unwrap_err().to_string().contains("Landlock cannot hide"));
}

/// What a cage costs: prints, and fails only where it is far off.
#[test]
fn a_cage_is_entered_quickly() {
    for backend in [bubblewrap(), landlock()] {
        let site = Site::new(backend);
        let cage = site.cage();
        let plain = Cage { writable: false, ..cage.clone() };
        let time = |cage: &Cage, script: &str| {
            let mut times: Vec<Duration> = (0..25)
                .map(|_| {
                    let mut command = site.command(script);
                    command.args(["x"]).stdout(Stdio::null()).stderr(Stdio::null());
                    let start = Instant::now();
                    let entered = cage.enter(&mut command).unwrap();
                    let mut child = command.spawn().unwrap();
                    let inside = entered.inside().unwrap();
                    attend(&inside, || child.wait().unwrap());
                    start.elapsed()
                })
                .collect();
            times.sort();
            (times[0], times[times.len() / 2])
        };
        let start = Instant::now();
        let rounds = 20;
        (0..rounds).for_each(|_| drop(guarded(&cage.root)));
        println!("{:?}: guarded() {:?}", site.backend, start.elapsed() / rounds);
        let start = Instant::now();
        (0..rounds).for_each(|_| drop(snapshot(&cage.root)));
        println!("{:?}: snapshot() {:?}", site.backend, start.elapsed() / rounds);
        let many = "for i in {1..2000}; do : > f; done";
        let gone = "mkdir -p g; for i in {1..2000}; do : > g/$i; done; rm -r g";
        let (bare, whole) = (time(&plain, ":"), time(&cage, ":"));
        println!("{:?}: without a door {bare:?}, with {whole:?}", site.backend);
        assert!(whole.1 < Duration::from_millis(500));
        // What each name costs at the door is a figure for the book, and takes its time.
        if std::env::var_os("WINDLASS_SOAK").is_none() {
            continue;
        }
        println!(
            "{:?}: 2000 opens {:?}, to /tmp without a door {:?}",
            site.backend,
            time(&cage, many),
            time(&plain, &format!("cd $TMPDIR; {many}"))
        );
        println!(
            "{:?}: 2000 opens and removals {:?}, to /tmp without a door {:?}",
            site.backend,
            time(&cage, gone),
            time(&plain, &format!("cd $TMPDIR; {gone}"))
        );
    }
}
