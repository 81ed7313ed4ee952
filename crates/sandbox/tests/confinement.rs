//! Known ways to escape the sandbox, tried by real processes on both backends.
//!
//! On a machine without bubblewrap or Landlock these tests fail; they are not skipped.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests run attacks for real and fail by panicking"
)]

mod escape_attempts;

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
    LoopbackScope, NetworkAccess, PathGuard, ReceivedChildDescriptors, SandboxBackend,
    SandboxProfile, changed_since, probe, protected_paths, secret_paths, snapshot_protected,
};

/// Time after which a command counts as hanging.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A variable of the process that starts a sandbox, which must not reach the sandbox.
const LEAK_VARIABLE: &str = "WINDLASS_TEST_LEAK";

fn bubblewrap() -> SandboxBackend {
    let backend = probe().backend.clone();
    assert!(
        matches!(backend, SandboxBackend::Bubblewrap { .. }),
        "no bubblewrap: {:?}",
        probe().messages
    );
    backend
}

fn landlock() -> SandboxBackend {
    assert!(probe().landlock.is_some_and(|version| version >= 6), "{:?}", probe().messages);
    SandboxBackend::Landlock
}

/// A git workspace `work`, a home folder with secrets, a folder `outside`, and a temp folder.
struct SandboxTestEnv {
    folder: TempDir,
    backend: SandboxBackend,
}

impl SandboxTestEnv {
    fn new(backend: SandboxBackend) -> SandboxTestEnv {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tempfile::tempdir_in(parent)
            .or_else(|_| tempfile::tempdir())
            .expect("the folder for the test cannot be created");
        let env = SandboxTestEnv { folder, backend };
        for name in ["work/sub", "work/.husky", "outside", "temp", "home"] {
            fs::create_dir_all(env.path(name)).unwrap();
        }
        for secret in [
            ".ssh/id_rsa",
            ".aws/credentials",
            ".mozilla/firefox/a/logins.json",
            ".codex/auth.json",
            ".netrc",
        ] {
            let path = env.path("home").join(secret);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a secret").unwrap();
        }
        fs::write(env.path("home/plain.txt"), "nothing special").unwrap();
        fs::write(env.path("outside/file"), "theirs").unwrap();
        fs::write(env.path("work/.husky/pre-commit"), "old").unwrap();
        fs::write(env.path("work/file.txt"), "one\n").unwrap();
        let git = "git init -q -b main . && git config user.email a@b && git config user.name a \
                   && git add file.txt && git commit -qm one && echo old > .git/hooks/pre-push";
        let created = Command::new("bash").args(["-c", git]).current_dir(env.path("work")).status();
        assert!(created.unwrap().success());
        env
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    fn profile(&self) -> SandboxProfile {
        SandboxProfile {
            backend: self.backend.clone(),
            root: self.path("work"),
            workspace_writable: true,
            extra_writable: Vec::new(),
            cache_folders: Vec::new(),
            temp_dir: self.path("temp"),
            hidden_paths: secret_paths(&self.path("home")),
            readable_paths: Vec::new(),
            private_paths: Vec::new(),
            protected_paths: protected_paths(&self.path("work")),
            network: NetworkAccess::None,
            loopback: LoopbackScope::Command,
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/bash");
        let act = "act() { ACT=\"$*\" \"$SELF\" --exact escape_attempts::attempt_in_sandbox \
                   --nocapture 2>/dev/null | grep -q '^did it'; }; ";
        command.args(["-c", &format!("{act}{script}")]).current_dir(self.path("work"));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", self.path("home")).env("OUT", self.path("outside"));
        command.env("SELF", std::env::current_exe().unwrap());
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    /// Runs a script in the sandbox, and finds changes of protected files.
    fn run(&self, profile: &SandboxProfile, script: &str) -> TestScriptResult {
        let before = snapshot_protected(&profile.root);
        let log = self.path("log");
        let file = fs::File::create(&log).unwrap();
        let mut command = self.command(script);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let entered = profile.apply_to(&mut command).unwrap();
        let mut running = TestChildGuard(command.spawn().unwrap());
        let mut inside = entered.finish_entry().unwrap();
        let code = with_path_guard(&mut inside, || running.wait());
        drop(running);
        let changed = changed_since(&before).0;
        TestScriptResult { code, text: fs::read_to_string(log).unwrap_or_default(), changed }
    }
}

/// The exit code and output of a script, and the protected files that it changed.
#[derive(Debug)]
struct TestScriptResult {
    code: Option<i32>,
    #[allow(dead_code, reason = "shown when a test fails")]
    text: String,
    changed: Vec<PathBuf>,
}

/// A child process that is killed with its process group when the guard is dropped.
struct TestChildGuard(Child);

impl TestChildGuard {
    fn wait(&mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < COMMAND_TIMEOUT {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("the command takes too long");
    }
}

impl Drop for TestChildGuard {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers requests to the path guard while `work` runs.
fn with_path_guard<T>(inside: &mut ReceivedChildDescriptors, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stopped = Stop(&stop);
        if let Some(path_guard) = &mut inside.path_guard {
            scope.spawn(|| answer_path_requests(path_guard, &stop));
        }
        let result = work();
        drop(stopped);
        result
    })
}

fn answer_path_requests(path_guard: &mut PathGuard, stop: &AtomicBool) {
    let delay = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !stop.load(Ordering::Relaxed) {
        let _ = poll(&mut [PollFd::new(&*path_guard, PollFlags::IN)], Some(&delay));
        match path_guard.answer_pending() {
            Ok(answered) if answered.closed => return,
            Ok(_) => {}
            Err(error) => panic!("the path guard failed: {error}"),
        }
    }
}

enum EscapeTestExpectation {
    Works,
    Fails,
}
use EscapeTestExpectation::{Fails, Works};

/// An attempt: its name, its script, the expected result, and a condition that must hold after it.
struct EscapeTestCase(
    &'static str,
    String,
    EscapeTestExpectation,
    Box<dyn Fn(&SandboxTestEnv) -> bool>,
);

fn attempt(
    name: &'static str,
    script: impl Into<String>,
    expect: EscapeTestExpectation,
) -> EscapeTestCase {
    EscapeTestCase(name, script.into(), expect, Box::new(|_| true))
}

fn with_condition(
    attempt: EscapeTestCase,
    condition: impl Fn(&SandboxTestEnv) -> bool + 'static,
) -> EscapeTestCase {
    EscapeTestCase(attempt.0, attempt.1, attempt.2, Box::new(condition))
}

/// Returns attempts that need no other processes.
#[allow(clippy::too_many_lines, reason = "a table")]
#[rustfmt::skip]
fn local_attempts() -> Vec<EscapeTestCase> {
    let stays_absent = |name: &'static str, script: &str, path: &'static str| {
        with_condition(
            attempt(name, script, Fails),
            move |env| !env.exists(&format!("work/{path}")),
        )
    };
    let keeps_content = |name, script: &str, path: &'static str, content: &'static str| {
        with_condition(attempt(name, script, Fails), move |env| env.read(path).contains(content))
    };
    let keeps_git_config = |name, script: &str| {
        with_condition(
            attempt(name, script, Fails),
            |env| !env.read("work/.git/config").contains("bad"),
        )
    };
    vec![
        attempt(
            "write inside",
            "echo a > new.txt && cat new.txt && mkdir d && mv new.txt d && rm -r d",
            Works,
        ),
        attempt(
            "write to the temporary folder",
            "echo a > $TMPDIR/a && f=$(mktemp) && rm $f",
            Works,
        ),
        attempt(
            "write to /dev/null, /dev/stderr",
            "set -o pipefail; (echo a > /dev/null && echo a > /dev/stderr) 2>&1 | cat",
            Works,
        ),
        with_condition(
            attempt("write outside", "echo a > $OUT/new", Fails),
            |env| !env.exists("outside/new"),
        ),
        keeps_content("change outside", "echo bad > $OUT/file", "outside/file", "theirs"),
        keeps_content("remove outside", "rm -f $OUT/file", "outside/file", "theirs"),
        with_condition(attempt("chmod outside", "chmod 666 $OUT/file", Fails), |env| {
            fs::metadata(env.path("outside/file")).unwrap().permissions().mode() & 0o022 == 0
        }),
        attempt("chmod by a descriptor", "exec 7<$OUT/file; chmod 666 /proc/self/fd/7", Fails),
        attempt("change times outside", "touch -d 1990-01-01 $OUT/file", Fails),
        keeps_content(
            "chmod a hook",
            "chmod 777 .git/hooks/pre-push; rm .git/hooks/pre-push",
            "work/.git/hooks/pre-push",
            "old",
        ),
        attempt(
            "chmod inside",
            "chmod 755 file.txt && touch -d 1990-01-01 file.txt && chmod 700 . && cp -p file.txt b",
            Works,
        ),
        attempt(
            "write a kernel setting",
            "f=/proc/sys/kernel/core_pattern; c=$(cat $f); echo \"$c\" > $f",
            Fails,
        ),
        attempt(
            "write sysrq-trigger",
            "test -w /proc/sysrq-trigger && exec 7>/proc/sysrq-trigger",
            Fails,
        ),
        attempt("change limits of the parent", "act limits", Fails),
        keeps_content(
            "write through a symlink",
            "ln -s $OUT/file l; echo bad > l",
            "outside/file",
            "theirs",
        ),
        attempt("write to /etc", "echo a > /etc/windlass-test", Fails),
        stays_absent(
            "make .vscode/settings.json",
            "mkdir -p .vscode; echo a > .vscode/settings.json",
            ".vscode",
        ),
        stays_absent("make .git/hooks/x", "echo a > .git/hooks/x", ".git/hooks/x"),
        stays_absent("make .git/commondir", "echo /x > .git/commondir", ".git/commondir"),
        stays_absent(
            "make .git/config.worktree",
            "echo a > .git/config.worktree",
            ".git/config.worktree",
        ),
        stays_absent("make sub/.mcp.json", "echo a > sub/.mcp.json", "sub/.mcp.json"),
        stays_absent("make sub/.git", "git init -q sub", "sub/.git"),
        stays_absent(
            "make .Cursor/MCP.json",
            "mkdir .Cursor; echo a > .Cursor/MCP.json",
            ".Cursor",
        ),
        stays_absent("make by a full path", "cd /; echo a > $OLDPWD/.envrc", ".envrc"),
        stays_absent("make by ..", "cd sub; echo a > ../.envrc", ".envrc"),
        stays_absent("make by /proc/self/cwd", "echo a > /proc/self/cwd/.envrc", ".envrc"),
        stays_absent("make by /proc/self/root", "echo a > /proc/self/root$PWD/.envrc", ".envrc"),
        stays_absent("make by /dev/fd", "exec 7<.; echo a > /dev/fd/7/.envrc", ".envrc"),
        stays_absent("make by rename", "echo a > a; mv a .envrc", ".envrc"),
        stays_absent("make by a folder's rename", "mkdir -p x/y; mv x .vscode", ".vscode"),
        stays_absent(
            "protected name by folder rename",
            "mkdir c; echo x > c/config.toml; mv c .cargo",
            ".cargo/config.toml",
        ),
        stays_absent(
            "protected name by exchange",
            "mkdir -p c/d .cargo; echo x > c/config.toml; act exchange c .cargo",
            ".cargo/config.toml",
        ),
        stays_absent(
            "protected name by exchange in the other order",
            "mkdir -p c/d .cargo; echo x > c/config.toml; act exchange .cargo c",
            ".cargo/config.toml",
        ),
        stays_absent(
            "protected name by a symlink",
            "mkdir c; echo x > c/config.toml; ln -s c .cargo || (ln -s c l; mv -T l .cargo)",
            ".cargo/config.toml",
        ),
        stays_absent(
            "move node_modules itself",
            "mkdir -p node_modules/.vscode; touch node_modules/.vscode/x; mv node_modules lib; \
             test -e lib/.vscode",
            "lib/.vscode",
        ),
        attempt(
            "move folders",
            "mkdir -p a/b/c m && echo x > a/b/c/d && mv a e && cat e/b/c/d && touch m/{1..2500} \
             && mv m n && test -e n/2500 && ! test -e m",
            Works,
        ),
        stays_absent("bind a socket pair", "act pair_binds .mcp.json", ".mcp.json"),
        attempt("a newer system call", "act later", Fails),
        attempt("flags of a file outside", "act flags $OUT/file", Fails),
        attempt("lower its own priority", "nice -n 5 taskset -c 0 true", Works),
        stays_absent(
            "make .git/objects/info/alternates",
            "echo $OUT > .git/objects/info/alternates",
            ".git/objects/info/alternates",
        ),
        stays_absent("make by a hard link", "echo a > a; ln a .envrc", ".envrc"),
        stays_absent("make by a symlink", "ln -s sub .vscode", ".vscode"),
        stays_absent(
            "make behind a symlink",
            "ln -s .envrc l1; ln -s l1 l2; echo a > l2",
            ".envrc",
        ),
        stays_absent(
            "make behind a symlink from /tmp",
            "ln -s $PWD $TMPDIR/w; echo a > $TMPDIR/w/.envrc",
            ".envrc",
        ),
        stays_absent("make a special file", "mkfifo .envrc", ".envrc"),
        stays_absent(
            "unpack",
            "mkdir e; (cd e; mkdir -p a; echo a > a/x; tar cf ../t.tar --transform s/x/.envrc/ \
             a/x); tar xf t.tar",
            "a/.envrc",
        ),
        stays_absent(
            "move out of node_modules",
            "mkdir -p node_modules/a/.vscode; touch node_modules/a/.vscode/x; mv node_modules/a \
             moved; test -e moved/.vscode",
            "moved/.vscode",
        ),
        attempt(
            "protected names in packages",
            "mkdir -p node_modules/b/.vscode && echo a > node_modules/b/.vscode/settings.json && \
             mv node_modules/b node_modules/c",
            Works,
        ),
        keeps_git_config("change .git/config", "echo bad >> .git/config"),
        keeps_git_config("git config", "git config core.hooksPath bad"),
        keeps_git_config("sed -i .git/config", "sed -i '1i bad' .git/config"),
        keeps_git_config("replace .git/config", "rm -f .git/config; echo bad > .git/config"),
        keeps_git_config("reopen .git/config", "exec 7<.git/config; echo bad >> /proc/self/fd/7"),
        keeps_git_config(
            "cut .git/config short",
            "truncate -s 0 .git/config || ! grep repositoryformatversion .git/config || false",
        ),
        keeps_git_config("a hard link to .git/config", "ln .git/config h && echo bad >> h"),
        keeps_git_config("rename .git", "mv .git x; mkdir .git && echo bad > .git/config"),
        keeps_content(
            "change a hook",
            "echo bad > .git/hooks/pre-push",
            "work/.git/hooks/pre-push",
            "old",
        ),
        keeps_content(
            "remove a hook",
            "rm -f .git/hooks/pre-push",
            "work/.git/hooks/pre-push",
            "old",
        ),
        keeps_content(
            "change .husky",
            "echo bad > .husky/pre-commit",
            "work/.husky/pre-commit",
            "old",
        ),
        keeps_content(
            "rename .husky",
            "mv .husky x; mkdir .husky && echo bad > .husky/pre-commit",
            "work/.husky/pre-commit",
            "old",
        ),
        keeps_content(
            "a hard link to outside",
            "ln $OUT/file h && echo bad > h",
            "outside/file",
            "theirs",
        ),
        attempt("git works", GIT, Works),
        attempt("mount", "act mount", Fails),
        attempt("bind mount by the program", "mount --bind sub $OUT", Fails),
        attempt("new namespaces", "unshare -Ur true || unshare -n true", Fails),
        attempt("new namespaces by clone3", "act clone3", Fails),
        attempt("chroot", "act chroot", Fails),
        attempt("io_uring", "act io_uring", Fails),
        attempt("openat2", "act openat2", Fails),
        attempt("x32 system calls", "act x32", Fails),
        attempt("bpf", "act bpf", Fails),
        attempt("keyctl", "act keyctl", Fails),
        attempt("TIOCSTI", "act tiocsti", Fails),
        attempt("trace a child", "act ptrace_child", Fails),
        attempt("read /proc/1/root", "cat /proc/1/root$HOME/.ssh/id_rsa", Fails),
        attempt("a packet socket", "act packet", Fails),
        attempt("resolve a name", "getent ahostsv4 example.com", Fails),
        attempt("a connected pair", "act pair", Works),
        attempt("core dumps", "test $(ulimit -c) != 0 || ulimit -c unlimited", Fails),
        attempt("raise a limit", "ulimit -f 1000; ulimit -f unlimited", Fails),
        with_condition(
            attempt(
                "a file of 10 GB",
                "ulimit -f 1000; truncate -s 10G big || fallocate -l 10G big || dd if=/dev/zero \
                 of=big bs=1M count=10240",
                Fails,
            ),
            |env| fs::metadata(env.path("work/big")).is_ok_and(|it| it.len() < 2_000_000),
        ),
        attempt(
            "no capabilities",
            "grep -q 'CapEff:.0000000000000000' /proc/self/status && grep -q \
             'CapPrm:.0000000000000000' /proc/self/status",
            Works,
        ),
        attempt(
            "no new privileges",
            "grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'Seccomp:.2' /proc/self/status",
            Works,
        ),
        attempt("a set-uid program", "sudo -n true || su -c true || chown 1:1 file.txt", Fails),
        attempt("read ~/.ssh", "cat ~/.ssh/id_rsa", Fails),
        attempt("read ~/.aws", "cat ~/.aws/credentials", Fails),
        attempt("read a browser's profile", "cat ~/.mozilla/firefox/*/logins.json", Fails),
        attempt("read another agent's login", "cat ~/.codex/auth.json", Fails),
        attempt("read ~/.netrc", "grep secret ~/.netrc", Fails),
        attempt("read through a symlink", "ln -s ~/.ssh keys; cat keys/id_rsa", Fails),
        attempt("read the rest of home", "cat ~/plain.txt", Works),
        attempt(
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

fn make_attempt(
    env: &SandboxTestEnv,
    profile: &SandboxProfile,
    attempt: EscapeTestCase,
    failed: &mut Vec<String>,
) {
    let EscapeTestCase(name, script, expect, condition) = attempt;
    let start = Instant::now();
    let result = env.run(profile, &script);
    let expected = match expect {
        Works => result.code == Some(0),
        Fails => result.code != Some(0),
    };
    let holds = expected && condition(env);
    let verdict = if holds { "holds" } else { "BREAKS" };
    println!("| {name:34} | {verdict:6} | {:>5} ms |", start.elapsed().as_millis());
    if !holds {
        failed.push(format!("{name}: {script}\n    {result:?}"));
    }
}

fn backend_name(backend: &SandboxBackend) -> &'static str {
    match backend {
        SandboxBackend::Bubblewrap { .. } => "bubblewrap",
        SandboxBackend::Landlock => "Landlock",
        SandboxBackend::Seatbelt => "Seatbelt",
        SandboxBackend::Off => "nothing",
    }
}

/// Makes all attempts and prints a table of the results.
fn make_all_attempts(backend: SandboxBackend) {
    println!("\n| {:34} | {:6} | {:>8} |", backend_name(&backend), "", "");
    let mut failed = Vec::new();
    for attempt in local_attempts() {
        let env = SandboxTestEnv::new(backend.clone());
        let profile = env.profile();
        make_attempt(&env, &profile, attempt, &mut failed);
    }
    let env = SandboxTestEnv::new(backend.clone());
    let profile = env.profile();
    for attempt in neighbor_attempts(&env) {
        make_attempt(&env, &profile, attempt, &mut failed);
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

/// Returns attempts to reach other processes and servers. The servers live as long as this process.
fn neighbor_attempts(env: &SandboxTestEnv) -> Vec<EscapeTestCase> {
    let work = env.path("work/s.sock");
    let docker = env.path("outside/docker.sock");
    let own = env.folder.path().file_name().unwrap().to_string_lossy();
    let name = format!("windlass-test-{own}");
    let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
    let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
    let v6 = TcpListener::bind("[::1]:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let datagrams = UnixDatagram::bind(env.path("outside/log.sock")).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let (v4_at, v6_at) = (v4.local_addr().unwrap(), v6.local_addr().unwrap());
    let udp_at = udp.local_addr().unwrap();
    let secret = fs::File::open(env.path("home/.ssh/id_rsa")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let number = secret.as_raw_fd();
    let neighbor =
        TestChildGuard(Command::new("sleep").arg("120").process_group(0).spawn().unwrap());
    let pid = neighbor.0.id();
    std::mem::forget((UnixListener::bind(&work).unwrap(), UnixListener::bind(&docker).unwrap()));
    std::mem::forget((UnixListener::bind_addr(&abstract_name).unwrap(), v4, v6, secret));
    let alive = Box::new(move |_: &SandboxTestEnv| {
        let _keep = &neighbor;
        Path::new(&format!("/proc/{}", neighbor.0.id())).exists()
    });
    vec![
        attempt("a socket in the workspace", format!("act unix {}", work.display()), Fails),
        attempt("docker's socket", format!("act unix {}", docker.display()), Fails),
        with_condition(
            attempt(
                "a datagram from a socket pair",
                format!("act pair_sends {}/log.sock", env.path("outside").display()),
                Fails,
            ),
            move |_| datagrams.recv(&mut [0; 8]).is_err(),
        ),
        attempt("an abstract socket", format!("act abstract {name}"), Fails),
        attempt(
            "IPv4",
            format!("act tcp {v4_at} || (echo a > /dev/tcp/127.0.0.1/{})", v4_at.port()),
            Fails,
        ),
        attempt("IPv6", format!("act tcp {v6_at}"), Fails),
        with_condition(attempt("UDP", format!("act udp {udp_at}; false"), Fails), move |_| {
            udp.recv(&mut [0; 8]).is_err()
        }),
        attempt(
            "an inherited descriptor",
            format!("cat /proc/self/fd/{number} || cat <&{number}"),
            Fails,
        ),
        attempt("renice a neighbor", format!("renice -n 5 -p {pid} | grep priority"), Fails),
        attempt("taskset a neighbor", format!("taskset -p 1 {pid}"), Fails),
        attempt("trace a neighbor", format!("act ptrace {pid}"), Fails),
        attempt(
            "read a neighbor",
            format!(
                "cat /proc/{pid}/environ || cat /proc/{pid}/root/etc/passwd || act reads {pid}"
            ),
            Fails,
        ),
        EscapeTestCase("signal a neighbor", format!("kill -9 {pid}"), Fails, alive),
    ]
}

#[test]
fn no_attempt_escapes_bubblewrap() {
    make_all_attempts(bubblewrap());
}

#[test]
fn no_attempt_escapes_landlock() {
    make_all_attempts(landlock());
}

/// Attempts that are too dangerous without a sandbox, or that fail without one too.
const SKIPPED_WITHOUT_SANDBOX: [&str; 14] = [
    "a newer system call",
    "write sysrq-trigger",
    "write to /etc",
    "mount",
    "bind mount by the program",
    "new namespaces by clone3",
    "a set-uid program",
    "core dumps",
    "raise a limit",
    "a file of 10 GB",
    "resolve a name",
    "x32 system calls",
    "io_uring",
    "read /proc/1/root",
];

#[test]
fn without_a_sandbox_every_attack_succeeds() {
    let mut failed = Vec::new();
    let env = SandboxTestEnv::new(SandboxBackend::Off);
    let neighbor = neighbor_attempts(&env).into_iter().map(|attempt| (Some(&env), attempt));
    for (env, EscapeTestCase(name, script, expect, condition)) in
        local_attempts().into_iter().map(|attempt| (None, attempt)).chain(neighbor)
    {
        let own = SandboxTestEnv::new(SandboxBackend::Off);
        let env = env.unwrap_or(&own);
        if matches!(expect, Works) || SKIPPED_WITHOUT_SANDBOX.contains(&name) {
            continue;
        }
        // These need root.
        if ["chroot", "a packet socket", "write a kernel setting", "write sysrq-trigger"]
            .contains(&name)
            && !rustix::process::geteuid().is_root()
        {
            continue;
        }
        let result =
            env.run(&env.profile(), &format!("TMPDIR={}; {script}", env.path("temp").display()));
        if result.code != Some(0) && condition(env) {
            failed.push(format!("{name}: {script}\n    {result:?}"));
        }
    }
    assert!(
        failed.is_empty(),
        "these attempts prove nothing, because they fail without a sandbox:\n{}",
        failed.join("\n")
    );
}

#[test]
fn a_read_only_workspace_is_not_written() {
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let profile = SandboxProfile { workspace_writable: false, ..env.profile() };
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
            make_attempt(&env, &profile, attempt(name, script, Fails), &mut failed);
        }
        make_attempt(
            &env,
            &profile,
            attempt("read", "cat file.txt && git log", Works),
            &mut failed,
        );
        make_attempt(
            &env,
            &profile,
            attempt("temporary", "echo a > $TMPDIR/a", Works),
            &mut failed,
        );
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        assert_eq!(env.read("work/file.txt"), "one\n");
    }
}

#[test]
fn a_symlink_that_is_swapped_constantly_leads_nowhere() {
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let script = "mkdir ok; end=$((SECONDS+3))
            (while ((SECONDS < end)); do ln -sfn ok l; ln -sfn .git/hooks l; ln -sfn $OUT l; done) &
            (while ((SECONDS < end)); do echo bad > l/evil; echo bad > l/file; done) 2>/dev/null &
            (while ((SECONDS < end)); do echo bad > l/pre-push; mv -T l .git/info/l; done) 2>/dev/null &
            wait";
        let result = env.run(&env.profile(), script);
        assert_eq!(result.code, Some(0), "{result:?}");
        assert!(!env.exists("outside/evil") && env.read("outside/file") == "theirs");
        // Mounts protect the hooks. Landlock has no mounts, and its path guard can lose the race.
        let hooks =
            [".git/hooks/evil", ".git/hooks/file", ".git/hooks/pre-push"].map(PathBuf::from);
        let old = "old\n" == env.read("work/.git/hooks/pre-push");
        let protected = old && !env.exists("work/.git/hooks/evil");
        match env.backend {
            SandboxBackend::Bubblewrap { .. } => assert!(protected, "{result:?}"),
            _ => {
                assert!(
                    protected || hooks.iter().any(|hook| result.changed.contains(hook)),
                    "{result:?}"
                )
            }
        }
    }
}

/// Tries of one race. Several thousand are enough for a success without the path guard.
const RACES_PER_RUN: usize = 5_000;

/// Tries of all races on a backend. The soak makes ten million.
fn race_tries() -> usize {
    std::env::var("WINDLASS_RACES").map_or(25_000, |tries| tries.parse().unwrap())
}

#[test]
fn a_path_changed_during_the_check_reaches_no_protected_name() {
    const DEEP_CONFIG: &str = "a1/b/c/d/sub/.git/config";
    let names = [".envrc", ".git/hooks/pre-commit", ".git/config", DEEP_CONFIG, ".vscode/x"];
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        fs::create_dir_all(env.path("work/a1/b/c/d/sub/.git")).unwrap();
        fs::write(env.path("work").join(DEEP_CONFIG), "deep").unwrap();
        let config = env.read("work/.git/config");
        for round in 0..race_tries() / RACES_PER_RUN {
            let name = names[round % names.len()];
            let script = format!("act path_race {name} {RACES_PER_RUN}; true");
            let result = env.run(&env.profile(), &script);
            assert!(result.changed.is_empty(), "{name}: {result:?}");
            assert!(result.text.is_empty(), "{result:?}");
        }
        assert!(!env.exists("work/.envrc") && !env.exists("work/.git/hooks/pre-commit"));
        assert_eq!(env.read("work/.git/config"), config);
        assert_eq!(env.read(&format!("work/{DEEP_CONFIG}")), "deep");
    }
}

/// Calls that the path guard makes for a command have the same effect as without it.
#[test]
fn file_work_has_its_usual_effect() {
    let scripts = [
        "umask 077; touch a; mkdir b; test \"$(stat -c %a a b | tr '\\n' ' ')\" = '600 700 '",
        "umask 002; touch a; mkdir -m 0711 b; test \"$(stat -c %a a b | tr '\\n' ' ')\" = '664 711 '",
        "echo one > a; echo two >> a; test \"$(cat a)\" = $'one\\ntwo'",
        "echo one > a; : > a; test ! -s a; set -C; ! echo x > a",
        "mkdir d; echo x > d/a; mv d e; test -f e/a; ! rmdir e; rm -r e; test ! -e e",
        "ln -s sub link; echo x > link/a; test -f sub/a; rm link; test -f sub/a",
        "ln -s nowhere link; echo x > link; test -f nowhere",
        "echo x > a; ln a b; echo y >> b; grep -q y a && test \"$(stat -c %h a)\" = 2",
        "mkfifo p; (sleep 0.2; cat p > got) & echo hi > p; wait; grep -q hi got",
        "mkfifo p; cat p > got & sleep 0.2; echo hi > p; wait; grep -q hi got",
        "echo x > /dev/stdout; echo x > /dev/fd/1; exec 3> a; echo y > /dev/fd/3; grep -q y a",
        "echo x > /dev/null && echo x 2> /dev/null && ! echo x > /dev/full",
        "echo x > a; touch -d 2001-02-03T04:05:06Z a; test \"$(stat -c %Y a)\" = 981173106",
        "echo x > a; chmod 751 a; cp -p a b; test \"$(stat -c %a b)\" = 751; chmod u+x .",
        "cd sub; echo x > ../a; cd ..; test -f a; mkdir -p n/m; cd n; rmdir m; touch ../b; test -f ../b",
        "mkdir x; cd x; rmdir ../x; ! touch a",
        "cp /bin/true a; chmod 6755 a; test \"$(stat -c %a a)\" = 755; mkdir d; chmod g+s d; test -g d",
        "python3 -c \"import os; os.open('a', os.O_CREAT, 0o6755); os.mknod('b', 0o106755)\"; ! test -u a -o -u b",
        "truncate -s 5 a; test \"$(stat -c %s a)\" = 5",
        "ulimit -f 1; ! truncate -s 9999 a 2>/dev/null",
        "ulimit -n 12; for i in 3 4 5 6 7 8; do eval \"exec $i> a\"; done; touch b",
        "script -qec 'echo to-terminal > /dev/tty' /dev/null | grep -q to-terminal",
        "python3 -c \"import pty; assert pty.spawn(['true']) == 0\"",
        "! { echo x > /dev/tty; } 2>/dev/null",
        "python3 - <<'END'\nimport os\nfd = os.open('.', os.O_TMPFILE | os.O_WRONLY)\nos.write(fd, b'x')\n\
         os.link(f'/proc/self/fd/{fd}', 'named', src_dir_fd=os.open('.', 0))\nassert open('named').read() == 'x'\n\
         os.utime('named', ns=(1, 2)); assert os.stat('named').st_mtime_ns == 2\n\
         os.symlink('named', 'l'); os.utime('l', ns=(3, 4), follow_symlinks=False)\n\
         assert os.lstat('l').st_mtime_ns == 4 and os.stat('l').st_mtime_ns == 2\n\
         os.chmod(fd, 0o640); assert os.fstat(fd).st_mode & 0o777 == 0o640\n\
         f = os.open('named', os.O_RDWR | os.O_APPEND); import fcntl\n\
         flags = fcntl.fcntl(f, fcntl.F_GETFL)\n\
         assert flags & os.O_APPEND and not flags & os.O_NONBLOCK\n\
         assert fcntl.fcntl(f, fcntl.F_GETFD) & fcntl.FD_CLOEXEC\nEND",
    ];
    for backend in [bubblewrap(), landlock()] {
        for script in scripts {
            let env = SandboxTestEnv::new(backend.clone());
            let result = env.run(&env.profile(), script);
            assert_eq!(result.code, Some(0), "{backend:?}: {script}\n{result:?}");
        }
    }
}

/// A file with a name outside the workspace gets a copy before a command changes it.
#[test]
fn a_hard_link_does_not_lead_outside() {
    for backend in [bubblewrap(), landlock()] {
        for script in [
            "echo mine >> linked; grep -q theirs linked",
            "echo mine > linked",
            "sed -i s/theirs/mine/ linked",
            "truncate -s 0 linked",
            "chmod 777 linked; touch -d 2001-01-01 linked; echo mine >> linked",
            "exec 3<> linked; echo mine >&3",
            "ln linked second; echo mine >> second",
            "mv linked moved; echo mine >> moved; mv moved linked",
        ] {
            let env = SandboxTestEnv::new(backend.clone());
            fs::hard_link(env.path("outside/file"), env.path("work/linked")).unwrap();
            let before = fs::metadata(env.path("outside/file")).unwrap();
            let result = env.run(&env.profile(), script);
            assert_eq!(result.code, Some(0), "{script}\n{result:?}");
            let after = fs::metadata(env.path("outside/file")).unwrap();
            assert_eq!(env.read("outside/file"), "theirs", "{script}");
            assert_eq!(before.permissions(), after.permissions(), "{script}");
            assert_eq!(before.modified().unwrap(), after.modified().unwrap(), "{script}");
            assert_eq!(
                fs::read_dir(env.path("work"))
                    .unwrap()
                    .flatten()
                    .filter(|entry| entry.file_name().to_string_lossy().contains("windlass-copy"))
                    .count(),
                0
            );
        }
    }
}

/// Reading leaves a hard link as it is.
#[test]
fn a_hard_link_that_is_only_read_stays_one() {
    use std::os::unix::fs::MetadataExt;
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        fs::hard_link(env.path("outside/file"), env.path("work/linked")).unwrap();
        let result = env.run(&env.profile(), "cat linked; exec 3<linked; touch other");
        assert_eq!(result.code, Some(0), "{result:?}");
        assert_eq!(fs::metadata(env.path("outside/file")).unwrap().nlink(), 2);
    }
}

/// The terminal of the user cannot be read or written, whatever the backend.
#[test]
fn other_terminals_cannot_be_opened() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let _slave = fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        for mode in ["<", ">", "<>", ">>"] {
            let script = format!("! {{ exec 3{mode} {name}; }} 2>/dev/null");
            let result = env.run(&env.profile(), &script);
            assert_eq!(result.code, Some(0), "{mode}: {result:?}");
        }
    }
}

#[test]
fn everything_in_the_namespace_ends_with_its_first_process() {
    let env = SandboxTestEnv::new(bubblewrap());
    let mut command = env.command("sleep 4711 & sleep 4711 & : & wait");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let entered = env.profile().apply_to(&mut command).unwrap();
    let running = TestChildGuard(command.spawn().unwrap());
    let mut inside = entered.finish_entry().unwrap();
    with_path_guard(&mut inside, || {
        let start = Instant::now();
        while sleep_processes().len() < 2 {
            assert!(
                start.elapsed() < windlass_testkit::time_limits::limit(COMMAND_TIMEOUT),
                "the sleep processes never started"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let monitor = running.0.id();
        let first = fs::read_to_string(format!("/proc/{monitor}/task/{monitor}/children")).unwrap();
        let first = rustix::process::Pid::from_raw(first.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
        while !sleep_processes().is_empty() {
            assert!(
                start.elapsed() < windlass_testkit::time_limits::limit(COMMAND_TIMEOUT),
                "{:?} are still running",
                sleep_processes()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// Returns the sleep processes of this test.
fn sleep_processes() -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|path| fs::read(path.join("cmdline")).is_ok_and(|line| line == b"sleep\x004711\x00"))
        .collect()
}

#[test]
#[allow(
    unsafe_code,
    reason = "the child has to set its controlling terminal between fork and exec"
)]
fn a_sandboxed_command_keeps_its_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap().into_string().unwrap();
        let end = fs::File::options().read(true).write(true).open(name).unwrap();
        let script = "test -t 0 && test -t 1 && stty size >/dev/null && echo by name > /dev/tty; \
                      echo $?; set -m; sleep 0 & wait";
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
        let entered = env.profile().apply_to(&mut command).unwrap();
        let mut running = TestChildGuard(command.spawn().unwrap());
        drop(command);
        let mut inside = entered.finish_entry().unwrap();
        let code = with_path_guard(&mut inside, || running.wait());
        let mut output = vec![0; 4096];
        let length = rustix::io::read(&main, &mut output).unwrap_or(0);
        let output = String::from_utf8_lossy(&output[..length]).into_owned();
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("by name") && output.contains("0\r\n"), "{output:?}");
    }
}

#[test]
fn a_variable_of_the_owner_is_not_inherited() {
    const TEST_NAME: &str = "a_variable_of_the_owner_is_not_inherited";
    if std::env::var_os(LEAK_VARIABLE).is_none() {
        // A variable that this process sets would race with other tests, so the test runs again in
        // a process that has the variable from its start.
        let owner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST_NAME])
            .env(LEAK_VARIABLE, "secret")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&owner.stdout);
        assert!(owner.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let result = env.run(&env.profile(), &format!("test -z \"${LEAK_VARIABLE}\""));
        assert_eq!(result.code, Some(0), "{result:?}");
    }
}

#[test]
fn only_the_proxy_is_reachable() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (proxy_at, other_at) = (proxy.local_addr().unwrap(), other.local_addr().unwrap());
    let mut failed = Vec::new();
    // Landlock limits ports, not addresses: a command could reach the port of the proxy on any
    // host.
    let env = SandboxTestEnv::new(landlock());
    let profile =
        SandboxProfile { network: NetworkAccess::Proxy { port: proxy_at.port() }, ..env.profile() };
    let error = profile.apply_to(&mut env.command("true")).unwrap_err().to_string();
    assert!(error.contains("not addresses"), "{error}");
    let none = env.profile();
    for (name, act) in [("TCP", "tcp"), ("fast open", "fast_open"), ("MPTCP", "mptcp")] {
        make_attempt(
            &env,
            &none,
            attempt(name, format!("act {act} {proxy_at}"), Fails),
            &mut failed,
        );
    }
    make_attempt(&env, &none, attempt("UDP", "act udp 127.0.0.1:53", Fails), &mut failed);

    let env = SandboxTestEnv::new(bubblewrap());
    let profile = SandboxProfile { network: NetworkAccess::Proxy { port: 3128 }, ..env.profile() };
    let mut command =
        env.command("exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r a <&3; echo $a");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let entered = profile.apply_to(&mut command).unwrap();
    let mut running = TestChildGuard(command.spawn().unwrap());
    let mut inside = entered.finish_entry().unwrap();
    let listener = TcpListener::from(inside.proxy_listener.as_ref().unwrap().try_clone().unwrap());
    with_path_guard(&mut inside, || {
        listener.set_nonblocking(true).unwrap();
        let start = Instant::now();
        let mut connection = loop {
            match listener.accept() {
                Ok((connection, _)) => break connection,
                Err(_) => assert!(
                    start.elapsed() < windlass_testkit::time_limits::limit(COMMAND_TIMEOUT),
                    "the command never connects"
                ),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        connection.set_nonblocking(false).unwrap();
        let mut received = [0; 6];
        connection.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"hello\n");
        std::io::Write::write_all(&mut connection, b"and back\n").unwrap();
        assert_eq!(running.wait(), Some(0));
    });
    let mut received = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut received).unwrap();
    assert_eq!(received, "and back\n");
    for address in [proxy_at, other_at] {
        let script = format!("act tcp {address}");
        make_attempt(
            &env,
            &profile,
            attempt("the machine's own ports", script, Fails),
            &mut failed,
        );
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[test]
fn a_linked_worktree_works_if_its_git_folder_is_writable() {
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let created = Command::new("git")
            .args(["worktree", "add", "-q", "../tree"])
            .current_dir(env.path("work"))
            .status();
        assert!(created.unwrap().success());
        let (tree, git) = (env.path("tree"), env.path("work/.git"));
        let closed = SandboxProfile {
            root: tree.clone(),
            protected_paths: protected_paths(&tree),
            ..env.profile()
        };
        assert_eq!(closed.protected_paths, [tree.join(".git")]);
        let commit = format!(
            "cd {} && echo x > x && git add x && git -c user.name=a -c user.email=b commit -qm x",
            tree.display()
        );
        assert_ne!(env.run(&closed, &commit).code, Some(0));
        let mut protected = protected_paths(&tree);
        protected
            .extend(protected_paths(&git).into_iter().filter(|path| !path.ends_with("worktrees")));
        let open =
            SandboxProfile { extra_writable: vec![git], protected_paths: protected, ..closed };
        let result = env.run(&open, &commit);
        assert_eq!(result.code, Some(0), "{result:?}");
        for script in [
            "echo bad >> ../work/.git/config",
            "echo bad > ../work/.git/hooks/x",
            "echo bad > ../work/.git/worktrees/tree/gitdir",
            "echo bad > ../work/.git/worktrees/tree/config.worktree",
            "echo bad > ../work/file.txt",
            "echo bad > .git",
        ] {
            let result = env.run(&open, &format!("cd {}; {script}", tree.display()));
            assert_ne!(result.code, Some(0), "{script}: {result:?}");
        }
    }
}

#[test]
fn secrets_stay_hidden_when_home_is_the_workspace() {
    let env = SandboxTestEnv::new(bubblewrap());
    let home = env.path("home");
    let profile = SandboxProfile {
        root: home.clone(),
        protected_paths: protected_paths(&home),
        ..env.profile()
    };
    let script = format!(
        "cd {}; echo a > new && ! cat .ssh/id_rsa && ! cat .netrc | grep .",
        home.display()
    );
    let result = env.run(&profile, &script);
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(fs::metadata(home.join(".ssh")).unwrap().permissions().mode() & 0o111 != 0);
}

#[test]
fn changes_between_two_commands_are_seen_by_the_second() {
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let run = |script: &str| env.run(&env.profile(), script);
        for _ in 0..2 {
            // The second round finds folders that have not changed recently, so caches apply.
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(run("cat ~/plain.txt && ! cat ~/.ssh/id_rsa && echo 1 > new").code, Some(0));
        }
        fs::create_dir(env.path("home/.kube")).unwrap();
        fs::write(env.path("home/.kube/config"), "a secret").unwrap();
        fs::write(env.path("home/later.txt"), "nothing special").unwrap();
        let result = run("cat ~/later.txt && ! cat ~/.kube/config");
        assert_eq!(result.code, Some(0), "{} {}", backend_name(&env.backend), result.text);
        fs::rename(env.path("work"), env.path("old")).unwrap();
        fs::create_dir(env.path("work")).unwrap();
        let result = run("echo 1 > new && ! echo 1 > ../old/other");
        assert_eq!(result.code, Some(0), "{} {}", backend_name(&env.backend), result.text);
    }
}

#[test]
fn parents_of_hidden_paths_cannot_be_moved() {
    let env = SandboxTestEnv::new(bubblewrap());
    let home = env.path("home");
    for name in [".config/gh/hosts.yml", "data/windlass/store.db", ".config/plain"] {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        fs::write(home.join(name), "a secret").unwrap();
    }
    let profile = || {
        let mut hidden = secret_paths(&home);
        hidden.extend([home.join("data/windlass"), home.join("later/windlass")]);
        SandboxProfile {
            root: home.clone(),
            protected_paths: protected_paths(&home),
            hidden_paths: hidden,
            ..env.profile()
        }
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
        let result = env.run(&profile(), &format!("{enter} mkdir -p new; {script}"));
        assert_ne!(result.code, Some(0), "{script}: {result:?}");
        let read = "cat .cfg3/gh/* d2/windlass/* new/gh/* keys/*; true";
        let result = env.run(&profile(), &format!("{enter}{read}"));
        assert!(!result.text.contains("a secret"), "{script}: {result:?}");
    }
    assert_eq!(env.read("home/data/windlass/store.db"), "a secret");
    assert!(!env.exists("home/later/windlass"));
    let result = env.run(&profile(), &format!("{enter} cat .config/plain && echo a > .config/b"));
    assert_eq!(result.code, Some(0), "{result:?}");
    // Landlock cannot hide a part of a writable folder.
    let open = SandboxProfile { backend: landlock(), ..profile() };
    assert!(open.apply_to(&mut env.command("true")).is_err());
    let other_root = SandboxProfile { root: env.path("work"), ..open.clone() };
    assert!(other_root.apply_to(&mut env.command("true")).is_ok());
    let plan = SandboxProfile { workspace_writable: false, ..open };
    let result = env.run(&plan, &format!("{enter} cat .config/plain && cat .ssh/id_rsa"));
    assert!(result.code != Some(0) && result.text.matches("a secret").count() == 1, "{result:?}");
}

#[test]
fn many_files_do_not_hide_protected_names() {
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        for number in 0..6_000 {
            fs::write(env.path(&format!("work/!{number}")), "").unwrap();
        }
        for number in 0..900 {
            let folder = env.path(&format!("work/pkg/p{number}/.vscode"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("settings.json"), "old").unwrap();
        }
        let deep = "work/a/b/c/d/e/.vscode/settings.json";
        fs::create_dir_all(env.path(deep).parent().unwrap()).unwrap();
        fs::write(env.path(deep), "old").unwrap();
        let profile = env.profile();
        let start = Instant::now();
        let mut failed = Vec::new();
        make_attempt(&env, &profile, attempt("enter", "true", Works), &mut failed);
        assert!(
            start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
            "{:?}",
            start.elapsed()
        );
        for script in [
            "rm -f .git/config; test ! -e .git/config",
            "rm -f .husky/pre-commit; test ! -e .husky/pre-commit",
            "rm -f pkg/p899/.vscode/settings.json",
            "mv pkg/p899 x",
            "chmod 777 pkg/p899/.vscode/settings.json",
            "rm -rf a/b/c/d/e/.vscode",
            "mv a b; test -e b/b/c/d/e/.vscode",
        ] {
            make_attempt(&env, &profile, attempt("remove", script, Fails), &mut failed);
        }
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        assert_eq!(env.read(deep), "old");
        assert_eq!(env.read("work/pkg/p899/.vscode/settings.json"), "old");
    }
}

#[test]
fn protected_names_that_are_symlinks_protect_their_targets() {
    use std::os::unix::fs::symlink;
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        for name in ["conf/settings.json", "mine/pre-push", "cargo/config.toml"] {
            fs::create_dir_all(env.path(&format!("work/{name}")).parent().unwrap()).unwrap();
            fs::write(env.path(&format!("work/{name}")), "old").unwrap();
        }
        fs::remove_dir_all(env.path("work/.git/hooks")).unwrap();
        symlink("../mine", env.path("work/.git/hooks")).unwrap();
        symlink("conf", env.path("work/.vscode")).unwrap();
        symlink("cargo", env.path("work/.cargo")).unwrap();
        symlink("sub/later", env.path("work/.envrc")).unwrap();
        let profile = env.profile();
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
            make_attempt(&env, &profile, attempt("a link", script, Fails), &mut failed);
        }
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        assert!(!env.exists("work/sub/later"));
    }
}

#[test]
fn many_path_requests_do_not_delay_the_path_guard() {
    let env = SandboxTestEnv::new(landlock());
    let script = "for i in {1..80}; do (while :; do : > f$i; done) & done; wait";
    let mut command = env.command(script);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let entered = env.profile().apply_to(&mut command).unwrap();
    let running = TestChildGuard(command.spawn().unwrap());
    let mut inside = entered.finish_entry().unwrap();
    let path_guard = inside.path_guard.as_mut().unwrap();
    let (test_start, mut slowest) = (Instant::now(), Duration::ZERO);
    while test_start.elapsed() < Duration::from_secs(3) {
        let start = Instant::now();
        path_guard.answer_pending().unwrap();
        slowest = slowest.max(start.elapsed());
        assert!(test_start.elapsed() < windlass_testkit::time_limits::limit(COMMAND_TIMEOUT));
    }
    drop(running);
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
}

#[test]
fn private_paths_stay_hidden_in_the_workspace() {
    let env = SandboxTestEnv::new(bubblewrap());
    fs::create_dir_all(env.path("work/own/sub")).unwrap();
    fs::write(env.path("work/own/sub/key"), "a secret").unwrap();
    let profile = SandboxProfile {
        private_paths: vec![env.path("work/own")],
        extra_writable: vec![env.path("work/own/sub")],
        ..env.profile()
    };
    let script = "! cat own/sub/key; ! ls own/sub; ! echo x > own/new; echo y > sub/new";
    let result = env.run(&profile, script);
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(!result.text.contains("a secret"), "{result:?}");
    assert!(!env.exists("work/own/new") && env.exists("work/sub/new"));
    let refused =
        SandboxProfile { backend: landlock(), ..profile }.apply_to(&mut env.command("true"));
    assert!(refused.unwrap_err().to_string().contains("Landlock cannot hide"));
}

/// Prints the time to enter a sandbox, and fails only if it is far too long.
#[test]
fn a_sandbox_is_entered_quickly() {
    for backend in [bubblewrap(), landlock()] {
        let env = SandboxTestEnv::new(backend);
        let profile = env.profile();
        let read_only = SandboxProfile { workspace_writable: false, ..profile.clone() };
        let time = |profile: &SandboxProfile, script: &str| {
            let mut times: Vec<Duration> = (0..25)
                .map(|_| {
                    let mut command = env.command(script);
                    command.args(["x"]).stdout(Stdio::null()).stderr(Stdio::null());
                    let start = Instant::now();
                    let entered = profile.apply_to(&mut command).unwrap();
                    let mut child = command.spawn().unwrap();
                    let mut inside = entered.finish_entry().unwrap();
                    with_path_guard(&mut inside, || child.wait().unwrap());
                    start.elapsed()
                })
                .collect();
            times.sort();
            (times[0], times[times.len() / 2])
        };
        let start = Instant::now();
        let rounds = 20;
        (0..rounds).for_each(|_| drop(protected_paths(&profile.root)));
        println!("{:?}: protected_paths() {:?}", env.backend, start.elapsed() / rounds);
        let start = Instant::now();
        (0..rounds).for_each(|_| drop(snapshot_protected(&profile.root)));
        println!("{:?}: snapshot_protected() {:?}", env.backend, start.elapsed() / rounds);
        let open_many = "for i in {1..2000}; do : > f; done";
        let open_and_remove = "mkdir -p g; for i in {1..2000}; do : > g/$i; done; rm -r g";
        let (without_guard, with_guard) = (time(&read_only, ":"), time(&profile, ":"));
        println!(
            "{:?}: without the path guard {without_guard:?}, with {with_guard:?}",
            env.backend
        );
        assert!(with_guard.1 < Duration::from_millis(500));
        // The cost per path is measured for the benchmarks only, because it takes long.
        if std::env::var_os("WINDLASS_SOAK").is_none() {
            continue;
        }
        println!(
            "{:?}: 2000 opens {:?}, to /tmp without the path guard {:?}",
            env.backend,
            time(&profile, open_many),
            time(&read_only, &format!("cd $TMPDIR; {open_many}"))
        );
        println!(
            "{:?}: 2000 opens and removals {:?}, to /tmp without the path guard {:?}",
            env.backend,
            time(&profile, open_and_remove),
            time(&read_only, &format!("cd $TMPDIR; {open_and_remove}"))
        );
    }
}
