//! Programs that are kept running: their pipes, their ends, and their cages.

use crate::yard::{alive, detached, keepers, nap, run, until};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use windlass_permission::{Decision, Grant, Policy, Rules};
use windlass_protocol::{Access, Mode};
use windlass_sandbox::{
    Backend, Engaged, Error, Exit, Held, Hold, Hooks, Hosts, Keep, Outlet, Reach, Servant, Shell,
    Walls, Workspace, probe,
};

fn bubblewrap() -> Walls {
    let backend = probe().backend.clone();
    assert!(matches!(backend, Backend::Bubblewrap { .. }), "{:?}", probe().words);
    Walls::Exactly(backend)
}

fn landlock() -> Walls {
    Walls::Exactly(Backend::Landlock)
}

/// A repository with a person's secrets, our own folders and a cache around it.
struct Site {
    folder: TempDir,
    workspace: Workspace,
}

impl Site {
    fn new(walls: Walls) -> Site {
        Site::reaching(walls, Reach::Listed(Hosts::none()))
    }

    fn reaching(walls: Walls, reach: Reach) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = folder.path().canonicalize().unwrap();
        for name in ["w/.git", "w/bin", "home/.ssh", "config", "data", "more", "outside"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        for name in ["w/.git/config", "home/.ssh/id_rsa", "config/keys", "data/log", "outside/it"] {
            std::fs::write(place.join(name), "a secret").unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", place.join("w/bin").display());
        let shell = Shell {
            walls,
            inherited: vec![("PATH".into(), path.into()), ("KEY".into(), "sk-1".into())],
            reach,
            write: vec![place.join("more")],
            home: Some(place.join("home")),
            private: vec![place.join("config"), place.join("data")],
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&place.join("w")).unwrap();
        let workspace = workspace.with_shell(shell).with_cache(&place.join("cache"));
        Site { folder, workspace }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn servant(&self, script: &str) -> Servant {
        self.program("/bin/bash", &["-c", script])
    }

    fn program(&self, program: &str, arguments: &[&str]) -> Servant {
        Servant {
            name: "mcp/test".to_owned(),
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            folder: self.path("w"),
            env: Vec::new(),
            keep: Keep {
                workspace: Hold::Write,
                write: Vec::new(),
                network: Hosts::none(),
                walls: None,
            },
        }
    }

    async fn try_engage(&self, mode: Mode, servant: Servant) -> Result<Engaged, Error> {
        self.workspace.engage(&grant(mode, servant.access()), servant).await
    }

    async fn engage(&self, servant: Servant) -> Engaged {
        self.try_engage(Mode::Auto, servant).await.unwrap()
    }

    /// What a script says until it ends, and what it is then known by.
    async fn said(&self, mode: Mode, servant: Servant) -> (String, Arc<Held>) {
        let (_, output, held) = self.try_engage(mode, servant).await.unwrap().split();
        (rest(output).await, held)
    }
}

fn grant(mode: Mode, access: Access) -> Grant {
    match Policy::new(Rules::default()).in_mode(mode).decide(vec![access.clone()], &[access]) {
        Decision::Allowed(grant) => grant,
        Decision::Ask(question) => panic!("{}", question.reason()),
        Decision::Denied { reason } => panic!("{reason}"),
    }
}

async fn rest(mut output: Outlet) -> String {
    let mut said = Vec::new();
    output.read_to_end(&mut said).await.unwrap();
    String::from_utf8(said).unwrap()
}

async fn line(output: &mut tokio::io::BufReader<Outlet>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).await.unwrap();
    line
}

pub fn its_three_pipes_are_apart() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let script = "while read -r word; do echo \"out $word\"; echo \"err $word\" >&2; done; \
                          echo last; exit 3";
            let (mut input, output, held) = site.engage(site.servant(script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            for word in ["one", "two", "three"] {
                input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
                assert_eq!(line(&mut output).await, format!("out {word}\n"), "{walls:?}");
            }
            until("its complaints", || held.complaint() == "err one\nerr two\nerr three").await;
            assert!(held.ending().is_none() && held.last_words().is_none());
            // More than a pipe holds, both ways at once.
            let long = "x".repeat(1 << 20);
            let sent = format!("{long}\n");
            let (sent, heard) = tokio::join!(input.write_all(sent.as_bytes()), line(&mut output));
            sent.unwrap();
            assert!(heard == format!("out {long}\n"), "{walls:?}");
            drop(input);
            assert_eq!(line(&mut output).await, "last\n");
            assert_eq!(line(&mut output).await, "", "it is at its end");
            assert_eq!(held.ended().await.exit, Exit::Code(3));
            assert_eq!(held.heard().bytes, 26 + 5 + (1 << 20));
            let place = held.heard_on(0).next;
            assert!(held.heard_on(0).text.starts_with("err one\n"), "{walls:?}");
            assert!(place > 0 && held.complaint().len() <= 2048);
            until("its leaving", || held.gone()).await;
        }
    });
}

pub fn it_ends_with_the_last_who_holds_it() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let nap = nap();
            let all = detached(&nap).join("; ");
            let script = format!("trap '' TERM INT HUP; ({all}) >&2; echo on; sleep {nap}; true");
            let (input, output, held) = site.engage(site.servant(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(line(&mut output).await, "on\n");
            let other = Arc::clone(&held);
            drop((input, held));
            tokio::time::sleep(Duration::from_millis(200)).await;
            until("its naps", || alive(&nap).len() >= 6).await;
            assert!(other.ending().is_none(), "{walls:?}");
            let began = Instant::now();
            drop((output, other));
            until("its end", || alive(&nap).is_empty()).await;
            assert!(began.elapsed() < Duration::from_secs(3), "{walls:?}: {:?}", began.elapsed());

            // And at once, if it is asked to.
            let script = format!("trap '' TERM; echo on; sleep {nap}; true");
            let (_input, output, held) = site.engage(site.servant(&script)).await.split();
            assert_eq!(line(&mut tokio::io::BufReader::new(output)).await, "on\n");
            let began = Instant::now();
            held.end(Duration::ZERO).await;
            assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
            assert!(alive(&nap).is_empty() && held.gone());
            assert!(held.last_words().unwrap().contains("mcp/test was ended by signal 9"));
        }
    });
}

pub fn its_memory_is_that_of_all_it_started() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let grows = "import sys; held = b'x' * (200 << 20); print('on', flush=True); \
                         sys.stdin.read()";
            // The grandchild is the large one.
            let script = format!("bash -c \"python3 -c \\\"{grows}\\\"; true\"; true");
            let (input, output, held) = site.engage(site.servant(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(line(&mut output).await, "on\n", "{walls:?}: {}", held.complaint());
            let megabytes = held.memory() >> 20;
            assert!((200..400).contains(&megabytes), "{walls:?}: {megabytes}");
            drop(input);
            held.ended().await;
            until("its leaving", || held.gone()).await;
            assert_eq!(held.memory(), 0);
        }
    });
}

pub fn it_ends_with_its_workspace() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let nap = nap();
            let script = format!("trap '' TERM; setsid -f sleep {nap}; echo $TMPDIR; sleep {nap}");
            let (_input, output, held) = site.engage(site.servant(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            line(&mut output).await;
            // One that becomes another program has no name for a moment.
            until("its naps", || alive(&nap).len() >= 2).await;
            assert_eq!(keepers().len(), 1, "{walls:?}");
            let clone = site.workspace.clone();
            drop(site);
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(held.ending().is_none(), "somebody has the workspace: {walls:?}");
            drop(clone);
            until("its end", || alive(&nap).is_empty() && keepers().is_empty()).await;
            let ending = held.ended().await;
            assert!(matches!(ending.exit, Exit::Lost | Exit::Signal(_)), "{ending:?}");
            assert_eq!(line(&mut output).await, "");
        }
    });
}

/// Where a master is told what to do: the nap, and which backend.
const NAP: &str = "MASTERS_NAP";

/// Engages servants, says where their temporary files are, and waits to be killed.
pub fn own() -> ExitCode {
    run(async {
        let nap = std::env::var(NAP).unwrap();
        let mut kept = Vec::new();
        for walls in [bubblewrap(), landlock()] {
            let site = Site::new(walls);
            let script = format!("trap '' TERM; setsid -f sleep {nap}; echo on; sleep {nap}; true");
            let (input, output, held) = site.engage(site.servant(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(line(&mut output).await, "on\n");
            println!("{}", site.folder.path().display());
            kept.push((site, input, output, held));
        }
        println!("ready");
        std::io::stdout().flush().unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    ExitCode::FAILURE
}

pub fn it_ends_with_an_owner_that_was_killed() {
    for _ in 0..5 {
        let nap = nap();
        let temp = tempfile::tempdir().unwrap();
        let mut owner = Command::new("/proc/self/exe")
            .arg("master")
            .env(NAP, &nap)
            .env("TMPDIR", temp.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said: Vec<String> = BufReader::new(owner.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .take_while(|line| line != "ready")
            .collect();
        run(until("their naps", || alive(&nap).len() >= 4));
        let left = || temp.path().read_dir().unwrap().count();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(left() >= 2, "each has a household");
        owner.kill().unwrap();
        owner.wait().unwrap();
        let took = run(until("its end", || alive(&nap).is_empty()));
        assert!(took < Duration::from_secs(2), "{took:?}");
        run(until("the end of their folders", || left() == 0));
        said.iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    }
}

pub fn all_are_dismissed_and_new_ones_can_come() {
    run(async {
        let site = Site::new(bubblewrap());
        let nap = nap();
        let mut kept = Vec::new();
        for walls in [bubblewrap(), landlock(), bubblewrap()] {
            let mut servant = site.servant(&format!("setsid -f sleep {nap}; echo on; sleep {nap}"));
            servant.keep.walls = Some(walls);
            let engaged = site.engage(servant).await;
            let (input, output, held) = engaged.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(line(&mut output).await, "on\n");
            kept.push((input, output, held));
        }
        assert_eq!(keepers().len(), 1, "they share one");
        let began = Instant::now();
        site.workspace.dismiss_servants().await;
        assert_eq!(alive(&nap), [0; 0]);
        assert!(kept.iter().all(|(_, _, held)| held.gone()));
        println!("three were dismissed in {:?}", began.elapsed());
        let (said, _) = site.said(Mode::Auto, site.servant("echo again")).await;
        assert_eq!(said, "again\n");
        site.workspace.dismiss_servants().await;
        site.workspace.dismiss_servants().await;
    });
}

pub fn one_that_nobody_waits_for_is_ended() {
    run(async {
        let site = Site::new(bubblewrap());
        let nap = nap();
        for pause in [0, 1, 2, 5, 10, 20] {
            let servant = site.servant(&format!("sleep {nap}; true"));
            let moment = Duration::from_millis(pause);
            drop(tokio::time::timeout(moment, site.try_engage(Mode::Auto, servant)).await);
            until("its end", || alive(&nap).is_empty()).await;
        }
    });
}

fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

pub fn a_flood_of_complaints_costs_little() {
    run(async {
        for walls in [bubblewrap(), landlock()] {
            let site = Site::new(walls.clone());
            let script = "head -c 1000000000 /dev/zero | tr '\\0' x >&2; echo; echo lost >&2; \
                          echo done; cat";
            let before = resident();
            let began = Instant::now();
            let (_input, output, held) = site.engage(site.servant(script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            let mut most = 0;
            let mut beat = tokio::time::interval(Duration::from_millis(20));
            loop {
                tokio::select! {
                    _ = line(&mut output) => break,
                    _ = beat.tick() => most = most.max(resident()),
                }
            }
            until("its last word", || held.heard().bytes == 1_000_000_005).await;
            let grown = most.max(resident()).saturating_sub(before) >> 20;
            println!("1 GB of complaints: {:?}, {grown} MiB more", began.elapsed());
            assert!(grown < 16, "{walls:?}: {grown} MiB");
            let told = held.complaint();
            assert!(told.ends_with("lost") && told.len() <= 2048, "{walls:?}");
        }
    });
}

/// Ways out of a cage, and what would have happened. The last ones fail without a cage, too.
fn attacks(site: &Site, port: u16) -> Vec<(String, &'static str)> {
    let at = |name: &str| site.path(name).display().to_string();
    vec![
        ("echo x > .git/config".to_owned(), "the config of git is written"),
        ("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit".to_owned(), "a hook is written"),
        ("mv .git moved && mv moved .git".to_owned(), "the repository is moved"),
        ("mkdir .windlass && echo x > .windlass/x".to_owned(), "our own folder is made"),
        (format!("cat {} >&2", at("home/.ssh/id_rsa")), "a key is read"),
        (format!("cat {} >&2", at("config/keys")), "our config is read"),
        (format!("cat {} >&2", at("data/log")), "our sessions are read"),
        (format!("echo x > {}", at("outside/it")), "the outside is written"),
        (format!("echo x > {}", at("more/it")), "what only commands may change is written"),
        (format!("echo x > {}", at("cache/servants/other/it")), "the cache of another is written"),
        (format!("exec 3<>/dev/tcp/127.0.0.1/{port}"), "a service is reached"),
        ("exec 3<>/dev/tcp/1.1.1.1/443".to_owned(), "the network is reached"),
        ("[ -n \"$KEY\" ]".to_owned(), "a key is inherited"),
        ("unshare -Ur true".to_owned(), "a namespace is made"),
    ]
}

const FREE: usize = 11;

pub fn it_cannot_get_out_of_its_cage() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let attacks = attacks(&site, listener.local_addr().unwrap().port());
            let script: String = attacks
                .iter()
                .map(|(attack, what)| {
                    format!("if ({attack}) 2>/dev/null; then echo '{what}'; fi\n")
                })
                .collect();
            std::fs::create_dir_all(site.path("cache/servants/other")).unwrap();
            let script = format!("{script} echo fine > new && cat new");
            let servant = site.servant(&script);
            if walls == Walls::Off {
                // So that it is the cage that stands in their way, and nothing else.
                let (said, _) = site.said(Mode::Auto, servant).await;
                for (attack, what) in attacks.iter().take(FREE) {
                    assert!(said.contains(what), "{attack}: {said}");
                }
                continue;
            }
            let (said, held) = site.said(Mode::Auto, servant).await;
            assert_eq!(said, "fine\n", "{walls:?}: {}", held.complaint());
            assert_eq!(std::fs::read_to_string(site.path("w/.git/config")).unwrap(), "a secret");
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "{walls:?}");
            assert!(!site.path("more/it").exists() && !site.path("w/.windlass").exists());
            // What its own part of the config opens is open.
            let more = site.path("more/it").display().to_string();
            let mut servant = site.servant(&format!("echo x > {more} && cat {more}"));
            servant.keep.write = vec![site.path("more")];
            assert_eq!(site.said(Mode::Auto, servant).await.0, "x\n", "{walls:?}");
            let mut servant = site.servant("echo x > another; ls");
            servant.keep.workspace = Hold::Read;
            let (said, _) = site.said(Mode::Auto, servant).await;
            assert!(said.contains("new") && !said.contains("another"), "{walls:?}: {said}");
        }
    });
}

pub fn it_changes_nothing_in_plan() {
    run(async {
        for walls in [bubblewrap(), landlock()] {
            let site = Site::new(walls.clone());
            let more = site.path("more/it");
            let script = format!(
                "cat .git/config; echo x > new; echo x > {}; echo x > \"$XDG_CACHE_HOME/it\"; \
                 echo x > \"$TMPDIR/it\"; cat \"$XDG_CACHE_HOME/it\" \"$TMPDIR/it\"; exit 1",
                more.display()
            );
            let mut servant = site.servant(&script);
            servant.keep.write = vec![site.path("more")];
            let (said, held) = site.said(Mode::Plan, servant.clone()).await;
            held.ended().await;
            assert_eq!(said, "a secretx\nx\n", "{walls:?}: {}", held.complaint());
            assert!(!site.path("w/new").exists() && !more.exists(), "{walls:?}");
            let words = held.last_words().unwrap();
            assert!(words.contains("lets commands read only"), "{walls:?}: {words}");
            assert!(words.contains("\"write\""), "what opens it is said: {words}");
            let (_, _) = site.said(Mode::Auto, servant).await;
            assert!(site.path("w/new").exists() && more.exists(), "{walls:?}");
        }
    });
}

pub fn its_own_folder_is_its_own() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let script = "echo $XDG_CACHE_HOME; echo $npm_config_cache; stat -c %a . ; \
                          echo mine > file; echo left > \"$TMPDIR/file\"; echo \"$WORD $HOME\"";
            let folder = site.workspace.servant_folder("mcp/test").unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            let mut servant = site.servant(script);
            servant.folder = folder.clone();
            servant.env = vec![("WORD".into(), "said".into()), ("HOME".into(), "/h".into())];
            let (said, _) = site.said(Mode::Auto, servant).await;
            let lines: Vec<&str> = said.lines().collect();
            assert_eq!(Path::new(lines[0]), folder, "{walls:?}");
            assert_eq!(Path::new(lines[1]), folder.join("npm"));
            assert_eq!(lines[3], "said /h", "{walls:?}");
            // What is in it stays; what was temporary was this one's alone.
            let (said, _) = site
                .said(Mode::Plan, {
                    let mut servant =
                        site.servant("cat \"$XDG_CACHE_HOME/file\"; ls -A \"$TMPDIR\"");
                    servant.keep.walls = Some(bubblewrap());
                    servant
                })
                .await;
            assert_eq!(said, "mine\n", "{walls:?}");
        }
    });
}

pub fn it_reaches_its_own_hosts_and_no_others() {
    let hosts = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Hosts::parse(&names).unwrap()
    };
    run(async {
        let script = "echo $HTTPS_PROXY >&2; for name in own commands held; do \
                      curl -s -m 5 http://$name.invalid/ >/dev/null; done; exit 1";
        for (reach, refused) in [
            (Reach::Listed(hosts(&["commands.invalid"])), ["commands", "held"].as_slice()),
            (Reach::Held(hosts(&["commands.invalid", "held.invalid"])), &["own", "commands"]),
        ] {
            let site = Site::reaching(bubblewrap(), reach.clone());
            let mut servant = site.servant(script);
            servant.keep.network = match reach {
                Reach::Listed(_) => hosts(&["own.invalid"]),
                Reach::Held(_) => hosts(&["own.invalid", "held.invalid"]),
            };
            let (_, held) = site.said(Mode::Auto, servant).await;
            held.ended().await;
            let reached = held.reached(0);
            assert_eq!(reached.len(), 3, "{reached:?}");
            let no: Vec<&str> = reached
                .iter()
                .filter(|one| one.refused.as_ref().is_some_and(|why| why.contains("not on the")))
                .filter_map(|one| one.host.split('.').next())
                .collect();
            assert_eq!(no, refused, "{reached:?}");
            // What leads there is not repeated, and what to do is said.
            let words = held.last_words().unwrap();
            assert!(words.contains("windlass:…@127.0.0.1"), "{words}");
            assert!(words.contains(refused[0]) && words.contains("\"network\""), "{words}");
            assert!(!held.heard_on(0).text.contains(raw_token(&held).as_str()));
        }
        let site = Site::new(landlock());
        let mut servant = site.servant("env | grep -ci proxy; exit 1");
        servant.keep.network = hosts(&["own.invalid"]);
        let (said, held) = site.said(Mode::Auto, servant).await;
        held.ended().await;
        assert_eq!(said, "0\n");
        assert!(held.last_words().unwrap().contains("needs bubblewrap"));
    });
}

fn raw_token(held: &Held) -> String {
    let heard = String::from_utf8(held.heard().head).unwrap();
    let token = heard.split("windlass:").nth(1).unwrap().split('@').next().unwrap().to_owned();
    assert!(token.len() > 20, "{heard}");
    token
}

pub fn what_cannot_be_started_says_why() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            for (name, mode) in [("plain", 0o644), ("odd", 0o755), ("bin/fake", 0o755)] {
                let path = site.path("w").join(name);
                std::fs::write(&path, "#!/no/such/program\n").unwrap();
                let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
                std::fs::set_permissions(path, mode).unwrap();
            }
            for (program, folder, words) in [
                ("/no/such/program", "w", "/no/such/program is not there"),
                ("./nothing", "w", "./nothing is not there"),
                ("no-such-program", "w", "not installed, or not in PATH"),
                ("fake", "w", "not installed, or not in PATH"),
                ("./plain", "w", "chmod +x"),
                ("./bin", "w", "./bin is not there"),
                ("", "w", "is not there"),
                ("bash", "nowhere", "the folder"),
            ] {
                let mut servant = site.program(program, &[]);
                servant.folder = site.path(folder);
                let began = Instant::now();
                let error = site.try_engage(Mode::Auto, servant).await.unwrap_err().to_string();
                assert!(error.starts_with("mcp/test was not started: "), "{error}");
                assert!(error.contains(words), "{walls:?} {program:?}: {error}");
                assert!(began.elapsed() < Duration::from_secs(1), "{program:?}");
            }
            // In a cage of mounts only what starts there finds out.
            match site.try_engage(Mode::Auto, site.program("./odd", &[])).await {
                Err(error) => assert!(error.to_string().contains("first line"), "{error}"),
                Ok(engaged) => {
                    assert_ne!(engaged.held().ended().await.exit, Exit::Code(0));
                    let words = engaged.held().last_words().unwrap();
                    assert!(words.contains("No such file"), "{walls:?}: {words}");
                }
            }
        }
    });
}

pub fn what_ends_at_once_says_why() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let began = Instant::now();
            let script = "echo 'no repository here' >&2; exit 7";
            let (input, output, held) = site.engage(site.servant(script)).await.split();
            let mut input = input;
            assert_eq!(held.ended().await.exit, Exit::Code(7));
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
            let words = held.last_words().unwrap();
            assert_eq!(words, "mcp/test exited with code 7: no repository here");
            assert_eq!(rest(output).await, "");
            // Nobody reads any more: writing fails and does not end us.
            let mut failed = false;
            for _ in 0..100 {
                failed |= input.write_all(&[b'x'; 4096]).await.is_err();
            }
            assert!(failed, "{walls:?}");
            let (_, held) = site.said(Mode::Auto, site.servant("kill -SEGV $$")).await;
            let exit = held.ended().await.exit;
            assert!(matches!(exit, Exit::Signal(11) | Exit::Code(139)), "{exit:?}");
        }
    });
}

pub fn it_is_caged_or_not_started() {
    run(async {
        let site = Site::new(Walls::Exactly(Backend::Off));
        let error = site.try_engage(Mode::Auto, site.servant("true")).await.unwrap_err();
        assert!(error.to_string().contains("no sandbox"), "{error}");
        let mut servant = site.servant("echo out");
        servant.keep.walls = Some(Walls::Off);
        assert_eq!(site.said(Mode::Auto, servant.clone()).await.0, "out\n");
        let error = site.try_engage(Mode::Plan, servant.clone()).await.unwrap_err();
        assert!(error.to_string().contains("in mode plan"), "{error}");
        // A yes is for the very words.
        let mut other = servant.clone();
        other.arguments.push("more".into());
        let given = grant(Mode::Auto, servant.access());
        let error = site.workspace.engage(&given, other).await.unwrap_err();
        assert!(matches!(error, Error::NotGranted { .. }), "{error}");
        let bare = Workspace::at(&site.path("w")).unwrap();
        assert!(bare.engage(&given, servant).await.is_err());
    });
}

/// What is open and running: ours, the keeper's, its children, and our threads.
fn tally(keeper: i32) -> [usize; 4] {
    let count = |folder: String| std::fs::read_dir(folder).unwrap().count();
    let children = format!("/proc/{keeper}/task/{keeper}/children");
    let children = std::fs::read_to_string(children).unwrap().split_whitespace().count();
    let (ours, threads) = (count("/proc/self/fd".to_owned()), count("/proc/self/task".to_owned()));
    [ours, count(format!("/proc/{keeper}/fd")), children, threads]
}

pub fn a_hundred_rounds_leave_nothing_behind() {
    run(async {
        let site = Site::new(Walls::Off);
        // Only without a cage a servant sees where its temporary files really are.
        let (said, _) = site.said(Mode::Auto, site.servant("echo $TMPDIR")).await;
        let household = Path::new(said.trim()).parent().unwrap().to_owned();
        let keeper = keepers()[0];
        let mut before = None;
        for round in 0..100 {
            let mut servant = site.servant("read -r word; echo $word; touch \"$TMPDIR/x\"; cat");
            servant.keep.walls = Some(if round % 2 == 0 { bubblewrap() } else { landlock() });
            servant.keep.network = Hosts::parse(&["own.invalid".to_owned()]).unwrap();
            let (mut input, output, held) = site.engage(servant).await.split();
            input.write_all(b"on\n").await.unwrap();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(line(&mut output).await, "on\n");
            assert_eq!(std::fs::read_dir(&household).unwrap().count(), 1);
            match round % 3 {
                0 => held.end(Duration::ZERO).await,
                1 => drop(input),
                _ => {}
            }
            drop((output, held));
            let empty = || std::fs::read_dir(&household).unwrap().count() == 0;
            until("the end of its folder", empty).await;
            match before {
                // The first rounds open what all of them share.
                None if round < 6 => {}
                None => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    before = Some(tally(keeper));
                }
                Some(before) => {
                    until("a state as before", || {
                        tally(keeper).iter().zip(before).all(|(now, before)| *now <= before)
                    })
                    .await;
                }
            }
        }
        println!("before {before:?}, after {:?}", tally(keeper));
        assert_eq!(before.map(|before| before[2]), Some(0), "no process is left");
        site.workspace.dismiss_servants().await;
        drop(site);
        until("the end of the household", || !household.exists() && keepers().is_empty()).await;
    });
}

pub fn a_servant_costs_little() {
    run(async {
        for walls in [bubblewrap(), landlock(), Walls::Off] {
            let site = Site::new(walls.clone());
            let mut starts = Vec::new();
            let mut turns = Vec::new();
            for _ in 0..10 {
                let began = Instant::now();
                let servant = site.program("/bin/cat", &[]);
                let (mut input, output, held) = site.engage(servant).await.split();
                let mut output = tokio::io::BufReader::new(output);
                for turn in 0..50 {
                    let sent = Instant::now();
                    input.write_all(b"{}\n").await.unwrap();
                    assert_eq!(line(&mut output).await, "{}\n");
                    if turn == 0 {
                        starts.push(began.elapsed());
                    } else {
                        turns.push(sent.elapsed());
                    }
                }
                drop(input);
                held.ended().await;
            }
            starts.sort();
            turns.sort();
            let (start, turn) = (starts[starts.len() / 2], turns[turns.len() / 2]);
            println!("{walls:?}: first byte after {start:?}, an echo takes {turn:?}");
            assert!(start < Duration::from_millis(500), "{start:?}");
            assert!(turn < Duration::from_millis(10), "{turn:?}");
        }
    });
}
