//! Tests of long-running processes: their pipes, their end and their sandbox.

use crate::support::{
    block_on, detaching_commands, marked_pids, sleep_marker, supervisor_pids, wait_until,
};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use windlass_permission::{Decision, Grant, PermissionRules, Policy};
use windlass_protocol::{PermissionMode, ToolAccess};
use windlass_sandbox::{
    CommandSandboxConfig, Error, GitHookMode, HostAllowlist, NetworkPolicy, ProcessExit,
    ProcessHandle, ProcessIo, ProcessSandboxAccess, ProcessSpec, ProcessStdout, SandboxBackend,
    SandboxMode, Workspace, WorkspaceAccess, probe,
};

fn bubblewrap() -> SandboxMode {
    let backend = probe().backend.clone();
    assert!(matches!(backend, SandboxBackend::Bubblewrap { .. }), "{:?}", probe().messages);
    SandboxMode::Exactly(backend)
}

fn landlock() -> SandboxMode {
    SandboxMode::Exactly(SandboxBackend::Landlock)
}

/// A repository next to secrets of the user, the folders of Windlass and a cache.
struct ProcessTestEnv {
    folder: TempDir,
    workspace: Workspace,
}

impl ProcessTestEnv {
    fn new(sandbox: SandboxMode) -> ProcessTestEnv {
        ProcessTestEnv::with_network_policy(sandbox, NetworkPolicy::Listed(HostAllowlist::none()))
    }

    fn with_network_policy(sandbox: SandboxMode, network_policy: NetworkPolicy) -> ProcessTestEnv {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["w/.git", "w/bin", "home/.ssh", "config", "data", "more", "outside"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["w/.git/config", "home/.ssh/id_rsa", "config/keys", "data/log", "outside/it"] {
            std::fs::write(root.join(name), "a secret").unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", root.join("w/bin").display());
        let shell = CommandSandboxConfig {
            sandbox_mode: sandbox,
            inherited_env: vec![("PATH".into(), path.into()), ("KEY".into(), "sk-1".into())],
            network_policy,
            readable_folders: Vec::new(),
            writable_folders: vec![root.join("more")],
            home: Some(root.join("home")),
            additional_folders: Vec::new(),
            private_paths: vec![root.join("config"), root.join("data")],
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root.join("w")).unwrap();
        let workspace = workspace.with_shell(shell).with_cache(&root.join("cache"));
        ProcessTestEnv { folder, workspace }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn process_spec(&self, script: &str) -> ProcessSpec {
        self.program_spec("/bin/bash", &["-c", script])
    }

    fn program_spec(&self, program: &str, arguments: &[&str]) -> ProcessSpec {
        ProcessSpec {
            name: "mcp/test".to_owned(),
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            folder: self.path("w"),
            env: Vec::new(),
            sandbox_access: ProcessSandboxAccess {
                workspace: WorkspaceAccess::Write,
                writable_folders: Vec::new(),
                hosts: HostAllowlist::none(),
                sandbox_mode: None,
            },
        }
    }

    async fn try_start(
        &self,
        mode: PermissionMode,
        process_spec: ProcessSpec,
    ) -> Result<ProcessIo, Error> {
        self.workspace
            .start_process(&grant(mode, process_spec.required_access()), process_spec)
            .await
    }

    async fn start_process(&self, process_spec: ProcessSpec) -> ProcessIo {
        self.try_start(PermissionMode::Auto, process_spec).await.unwrap()
    }

    /// Runs a process to the end of its stdout, and returns that with the handle.
    async fn run_to_end(
        &self,
        mode: PermissionMode,
        process_spec: ProcessSpec,
    ) -> (String, Arc<ProcessHandle>) {
        let (_, output, handle) = self.try_start(mode, process_spec).await.unwrap().split();
        (read_rest(output).await, handle)
    }
}

fn grant(mode: PermissionMode, access: ToolAccess) -> Grant {
    match Policy::new(PermissionRules::default())
        .with_mode(mode)
        .decide(vec![access.clone()], &[access])
    {
        Decision::Allowed(grant) => grant,
        Decision::Ask(question) => panic!("{}", question.reason()),
        Decision::Denied { reason } => panic!("{reason}"),
    }
}

/// Reads stdout to its end.
async fn read_rest(mut output: ProcessStdout) -> String {
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn read_line(output: &mut tokio::io::BufReader<ProcessStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).await.unwrap();
    line
}

pub fn stdin_stdout_and_stderr_are_separate() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let script = "while read -r word; do echo \"out $word\"; echo \"err $word\" >&2; done; \
                          echo last; exit 3";
            let (mut input, output, handle) =
                env.start_process(env.process_spec(script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            for word in ["one", "two", "three"] {
                input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
                assert_eq!(read_line(&mut output).await, format!("out {word}\n"), "{sandbox:?}");
            }
            wait_until("the stderr output", || {
                handle.stderr_tail() == "err one\nerr two\nerr three"
            })
            .await;
            assert!(handle.exit_report().is_none() && handle.exit_summary().is_none());
            // Sends more than a pipe holds, in both directions at once.
            let long = "x".repeat(1 << 20);
            let sent = format!("{long}\n");
            let (sent, received) =
                tokio::join!(input.write_all(sent.as_bytes()), read_line(&mut output));
            sent.unwrap();
            assert!(received == format!("out {long}\n"), "{sandbox:?}");
            drop(input);
            assert_eq!(read_line(&mut output).await, "last\n");
            assert_eq!(read_line(&mut output).await, "", "stdout is at its end");
            assert_eq!(handle.wait_for_exit().await.exit, ProcessExit::Code(3));
            assert_eq!(handle.stderr_output().total_bytes, 26 + 5 + (1 << 20));
            let offset = handle.stderr_since(0).next_offset;
            assert!(handle.stderr_since(0).text.starts_with("err one\n"), "{sandbox:?}");
            assert!(offset > 0 && handle.stderr_tail().len() <= 2048);
            wait_until("the end of all processes", || handle.is_gone()).await;
        }
    });
}

pub fn a_process_ends_when_its_last_handle_is_dropped() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let marker = sleep_marker();
            let all = detaching_commands(&marker).join("; ");
            let script =
                format!("trap '' TERM INT HUP; ({all}) >&2; echo on; sleep {marker}; true");
            let (input, output, handle) =
                env.start_process(env.process_spec(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(read_line(&mut output).await, "on\n");
            let other = Arc::clone(&handle);
            drop((input, handle));
            tokio::time::sleep(Duration::from_millis(200)).await;
            wait_until("the start of the sleep processes", || marked_pids(&marker).len() >= 6)
                .await;
            assert!(other.exit_report().is_none(), "{sandbox:?}");
            let began = Instant::now();
            drop((output, other));
            wait_until("the end of all processes", || marked_pids(&marker).is_empty()).await;
            assert!(
                began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
                "{sandbox:?}: {:?}",
                began.elapsed()
            );

            // `terminate` without a grace period ends the process at once.
            let script = format!("trap '' TERM; echo on; sleep {marker}; true");
            let (_input, output, handle) =
                env.start_process(env.process_spec(&script)).await.split();
            assert_eq!(read_line(&mut tokio::io::BufReader::new(output)).await, "on\n");
            let began = Instant::now();
            handle.terminate(Duration::ZERO).await;
            assert!(
                began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(500)),
                "{:?}",
                began.elapsed()
            );
            assert!(marked_pids(&marker).is_empty() && handle.is_gone());
            assert!(handle.exit_summary().unwrap().contains("mcp/test was killed by signal 9"));
        }
    });
}

pub fn memory_includes_all_descendants() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let allocation = "import sys; held = b'x' * (200 << 20); print('on', flush=True); \
                         sys.stdin.read()";
            // The grandchild uses the memory.
            let script = format!("bash -c \"python3 -c \\\"{allocation}\\\"; true\"; true");
            let (input, output, handle) =
                env.start_process(env.process_spec(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(
                read_line(&mut output).await,
                "on\n",
                "{sandbox:?}: {}",
                handle.stderr_tail()
            );
            let megabytes = handle.memory_bytes() >> 20;
            assert!((200..400).contains(&megabytes), "{sandbox:?}: {megabytes}");
            drop(input);
            handle.wait_for_exit().await;
            wait_until("the end of all processes", || handle.is_gone()).await;
            assert_eq!(handle.memory_bytes(), 0);
        }
    });
}

pub fn a_process_ends_with_its_workspace() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let marker = sleep_marker();
            let script =
                format!("trap '' TERM; setsid -f sleep {marker}; echo $TMPDIR; sleep {marker}");
            let (_input, output, handle) =
                env.start_process(env.process_spec(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            read_line(&mut output).await;
            // During `exec` a process has no command line for a moment.
            wait_until("the start of the sleep processes", || marked_pids(&marker).len() >= 2)
                .await;
            assert_eq!(supervisor_pids().len(), 1, "{sandbox:?}");
            let clone = env.workspace.clone();
            drop(env);
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(handle.exit_report().is_none(), "the workspace is still in use: {sandbox:?}");
            drop(clone);
            wait_until("the end of all processes", || {
                marked_pids(&marker).is_empty() && supervisor_pids().is_empty()
            })
            .await;
            let report = handle.wait_for_exit().await;
            assert!(
                matches!(report.exit, ProcessExit::SupervisorLost | ProcessExit::Signal(_)),
                "{report:?}"
            );
            assert_eq!(read_line(&mut output).await, "");
        }
    });
}

/// Environment variable with the sleep marker of an owner process.
const OWNER_MARKER_VARIABLE: &str = "OWNER_MARKER";

/// Main of an owner process: starts processes, prints their folders, and waits to be killed.
pub fn run_owner() -> ExitCode {
    block_on(async {
        let marker = std::env::var(OWNER_MARKER_VARIABLE).unwrap();
        let mut processes = Vec::new();
        for sandbox in [bubblewrap(), landlock()] {
            let env = ProcessTestEnv::new(sandbox);
            let script =
                format!("trap '' TERM; setsid -f sleep {marker}; echo on; sleep {marker}; true");
            let (input, output, handle) =
                env.start_process(env.process_spec(&script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(read_line(&mut output).await, "on\n");
            println!("{}", env.folder.path().display());
            processes.push((env, input, output, handle));
        }
        println!("ready");
        std::io::stdout().flush().unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    ExitCode::FAILURE
}

pub fn a_process_ends_when_its_owner_is_killed() {
    for _ in 0..5 {
        let marker = sleep_marker();
        let temp = tempfile::tempdir().unwrap();
        let mut owner = Command::new("/proc/self/exe")
            .arg("process-owner")
            .env(OWNER_MARKER_VARIABLE, &marker)
            .env("TMPDIR", temp.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let folders: Vec<String> = BufReader::new(owner.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .take_while(|line| line != "ready")
            .collect();
        block_on(wait_until("the start of the sleep processes", || {
            marked_pids(&marker).len() >= 4
        }));
        let count_temp_folders = || temp.path().read_dir().unwrap().count();
        assert_eq!(folders.len(), 2, "{folders:?}");
        assert!(count_temp_folders() >= 2, "each process has a temp folder");
        owner.kill().unwrap();
        owner.wait().unwrap();
        let took =
            block_on(wait_until("the end of all processes", || marked_pids(&marker).is_empty()));
        assert!(took < windlass_testkit::time_limits::limit(Duration::from_secs(2)), "{took:?}");
        block_on(wait_until("the removal of the temp folders", || count_temp_folders() == 0));
        folders.iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    }
}

pub fn all_processes_can_be_stopped_and_new_ones_started() {
    block_on(async {
        let env = ProcessTestEnv::new(bubblewrap());
        let marker = sleep_marker();
        let mut processes = Vec::new();
        for sandbox in [bubblewrap(), landlock(), bubblewrap()] {
            let mut process_spec =
                env.process_spec(&format!("setsid -f sleep {marker}; echo on; sleep {marker}"));
            process_spec.sandbox_access.sandbox_mode = Some(sandbox);
            let process = env.start_process(process_spec).await;
            let (input, output, handle) = process.split();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(read_line(&mut output).await, "on\n");
            processes.push((input, output, handle));
        }
        assert_eq!(supervisor_pids().len(), 1, "the processes share one supervisor");
        let began = Instant::now();
        env.workspace.stop_processes().await;
        assert_eq!(marked_pids(&marker), [0; 0]);
        assert!(processes.iter().all(|(_, _, handle)| handle.is_gone()));
        println!("three processes stopped in {:?}", began.elapsed());
        let (stdout, _) =
            env.run_to_end(PermissionMode::Auto, env.process_spec("echo again")).await;
        assert_eq!(stdout, "again\n");
        env.workspace.stop_processes().await;
        env.workspace.stop_processes().await;
    });
}

pub fn a_process_whose_start_was_canceled_is_ended() {
    block_on(async {
        let env = ProcessTestEnv::new(bubblewrap());
        let marker = sleep_marker();
        for pause in [0, 1, 2, 5, 10, 20] {
            let process_spec = env.process_spec(&format!("sleep {marker}; true"));
            let delay = Duration::from_millis(pause);
            drop(
                tokio::time::timeout(delay, env.try_start(PermissionMode::Auto, process_spec))
                    .await,
            );
            wait_until("the end of all processes", || marked_pids(&marker).is_empty()).await;
        }
    });
}

/// Returns the resident memory of this process in bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

pub fn a_flood_of_stderr_costs_little() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock()] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let script = "head -c 1000000000 /dev/zero | tr '\\0' x >&2; echo; echo lost >&2; \
                          echo done; cat";
            let before = resident_bytes();
            let began = Instant::now();
            let (_input, output, handle) =
                env.start_process(env.process_spec(script)).await.split();
            let mut output = tokio::io::BufReader::new(output);
            let mut peak = 0;
            let mut interval = tokio::time::interval(Duration::from_millis(20));
            loop {
                tokio::select! {
                    _ = read_line(&mut output) => break,
                    _ = interval.tick() => peak = peak.max(resident_bytes()),
                }
            }
            wait_until("the end of stderr", || handle.stderr_output().total_bytes == 1_000_000_005)
                .await;
            let grown = peak.max(resident_bytes()).saturating_sub(before) >> 20;
            println!("1 GB of stderr: {:?}, {grown} MiB more", began.elapsed());
            assert!(grown < 16, "{sandbox:?}: {grown} MiB");
            let tail = handle.stderr_tail();
            assert!(tail.ends_with("lost") && tail.len() <= 2048, "{sandbox:?}");
        }
    });
}

/// Returns attempts to escape the sandbox, each with the line that a script prints if it
/// succeeds. Those from index `ATTACKS_WITHOUT_SANDBOX` on may also fail without a sandbox.
fn attacks(env: &ProcessTestEnv, port: u16) -> Vec<(String, &'static str)> {
    let at = |name: &str| env.path(name).display().to_string();
    vec![
        ("echo x > .git/config".to_owned(), "the git config is written"),
        ("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit".to_owned(), "a hook is written"),
        ("mv .git moved && mv moved .git".to_owned(), "the repository is moved"),
        ("mkdir .windlass && echo x > .windlass/x".to_owned(), "the folder of Windlass is created"),
        (format!("cat {} >&2", at("home/.ssh/id_rsa")), "a key is read"),
        (format!("cat {} >&2", at("config/keys")), "the config of Windlass is read"),
        (format!("cat {} >&2", at("data/log")), "the sessions of Windlass are read"),
        (format!("echo x > {}", at("outside/it")), "a file outside the workspace is written"),
        (
            format!("echo x > {}", at("more/it")),
            "a folder that only commands may change is written",
        ),
        (format!("echo x > {}", at("cache/processes/other/it")), "another cache is written"),
        (format!("exec 3<>/dev/tcp/127.0.0.1/{port}"), "a service is reached"),
        ("exec 3<>/dev/tcp/1.1.1.1/443".to_owned(), "the network is reached"),
        ("[ -n \"$KEY\" ]".to_owned(), "a key is inherited"),
        ("unshare -Ur true".to_owned(), "a namespace is created"),
    ]
}

/// Number of attacks that must succeed without a sandbox.
const ATTACKS_WITHOUT_SANDBOX: usize = 11;

pub fn a_process_cannot_escape_its_sandbox() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let attacks = attacks(&env, listener.local_addr().unwrap().port());
            let script: String = attacks
                .iter()
                .map(|(attack, success)| {
                    format!("if ({attack}) 2>/dev/null; then echo '{success}'; fi\n")
                })
                .collect();
            std::fs::create_dir_all(env.path("cache/processes/other")).unwrap();
            let script = format!("{script} echo fine > new && cat new");
            let process_spec = env.process_spec(&script);
            if sandbox == SandboxMode::Off {
                // Proves that the sandbox prevents the attacks, and nothing else does.
                let (stdout, _) = env.run_to_end(PermissionMode::Auto, process_spec).await;
                for (attack, success) in attacks.iter().take(ATTACKS_WITHOUT_SANDBOX) {
                    assert!(stdout.contains(success), "{attack}: {stdout}");
                }
                continue;
            }
            let (stdout, handle) = env.run_to_end(PermissionMode::Auto, process_spec).await;
            assert_eq!(stdout, "fine\n", "{sandbox:?}: {}", handle.stderr_tail());
            assert_eq!(std::fs::read_to_string(env.path("w/.git/config")).unwrap(), "a secret");
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "{sandbox:?}");
            assert!(!env.path("more/it").exists() && !env.path("w/.windlass").exists());
            // Folders that the config of this process makes writable are writable.
            let more = env.path("more/it").display().to_string();
            let mut process_spec = env.process_spec(&format!("echo x > {more} && cat {more}"));
            process_spec.sandbox_access.writable_folders = vec![env.path("more")];
            assert_eq!(
                env.run_to_end(PermissionMode::Auto, process_spec).await.0,
                "x\n",
                "{sandbox:?}"
            );
            let mut process_spec = env.process_spec("echo x > another; ls");
            process_spec.sandbox_access.workspace = WorkspaceAccess::Read;
            let (stdout, _) = env.run_to_end(PermissionMode::Auto, process_spec).await;
            assert!(stdout.contains("new") && !stdout.contains("another"), "{sandbox:?}: {stdout}");
        }
    });
}

pub fn a_process_changes_nothing_in_plan_mode() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock()] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let more = env.path("more/it");
            let script = format!(
                "cat .git/config; echo x > new; echo x > {}; echo x > \"$XDG_CACHE_HOME/it\"; \
                 echo x > \"$TMPDIR/it\"; cat \"$XDG_CACHE_HOME/it\" \"$TMPDIR/it\"; exit 1",
                more.display()
            );
            let mut process_spec = env.process_spec(&script);
            process_spec.sandbox_access.writable_folders = vec![env.path("more")];
            let (stdout, handle) = env.run_to_end(PermissionMode::Plan, process_spec.clone()).await;
            handle.wait_for_exit().await;
            assert_eq!(stdout, "a secretx\nx\n", "{sandbox:?}: {}", handle.stderr_tail());
            assert!(!env.path("w/new").exists() && !more.exists(), "{sandbox:?}");
            let summary = handle.exit_summary().unwrap();
            assert!(summary.contains("allows only reading"), "{sandbox:?}: {summary}");
            assert!(
                summary.contains("\"write\""),
                "the setting that allows writing is named: {summary}"
            );
            let (_, _) = env.run_to_end(PermissionMode::Auto, process_spec).await;
            assert!(env.path("w/new").exists() && more.exists(), "{sandbox:?}");
        }
    });
}

pub fn a_process_has_its_own_cache_and_temp_folder() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let script = "echo $XDG_CACHE_HOME; echo $npm_config_cache; stat -c %a . ; \
                          echo mine > file; echo left > \"$TMPDIR/file\"; echo \"$WORD $HOME\"";
            let folder = env.workspace.process_folder("mcp/test").unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            let mut process_spec = env.process_spec(script);
            process_spec.folder = folder.clone();
            process_spec.env = vec![("WORD".into(), "said".into()), ("HOME".into(), "/h".into())];
            let (stdout, _) = env.run_to_end(PermissionMode::Auto, process_spec).await;
            let lines: Vec<&str> = stdout.lines().collect();
            assert_eq!(Path::new(lines[0]), folder, "{sandbox:?}");
            assert_eq!(Path::new(lines[1]), folder.join("npm"));
            assert_eq!(lines[3], "said /h", "{sandbox:?}");
            // Files in the cache folder stay; temporary files belong to one process.
            let (stdout, _) = env
                .run_to_end(PermissionMode::Plan, {
                    let mut process_spec =
                        env.process_spec("cat \"$XDG_CACHE_HOME/file\"; ls -A \"$TMPDIR\"");
                    process_spec.sandbox_access.sandbox_mode = Some(bubblewrap());
                    process_spec
                })
                .await;
            assert_eq!(stdout, "mine\n", "{sandbox:?}");
        }
    });
}

pub fn a_process_reaches_only_its_allowed_hosts() {
    let hosts = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        HostAllowlist::parse(&names).unwrap()
    };
    block_on(async {
        let script = "echo $HTTPS_PROXY >&2; for name in own commands enforced; do \
                      curl -s -m 5 http://$name.invalid/ >/dev/null; done; exit 1";
        for (network_policy, refused) in [
            (
                NetworkPolicy::Listed(hosts(&["commands.invalid"])),
                ["commands", "enforced"].as_slice(),
            ),
            (
                NetworkPolicy::Enforced(hosts(&["commands.invalid", "enforced.invalid"])),
                &["own", "commands"],
            ),
        ] {
            let env = ProcessTestEnv::with_network_policy(bubblewrap(), network_policy.clone());
            let mut process_spec = env.process_spec(script);
            process_spec.sandbox_access.hosts = match network_policy {
                NetworkPolicy::Listed(_) => hosts(&["own.invalid"]),
                NetworkPolicy::Enforced(_) => hosts(&["own.invalid", "enforced.invalid"]),
            };
            let (_, handle) = env.run_to_end(PermissionMode::Auto, process_spec).await;
            handle.wait_for_exit().await;
            let attempts = handle.host_attempts(0);
            assert_eq!(attempts.len(), 3, "{attempts:?}");
            let refused_hosts: Vec<&str> = attempts
                .iter()
                .filter(|attempt| {
                    attempt.refusal.as_ref().is_some_and(|reason| reason.contains("not on the"))
                })
                .filter_map(|attempt| attempt.host.split('.').next())
                .collect();
            assert_eq!(refused_hosts, refused, "{attempts:?}");
            // The proxy token is masked, and the summary says what to do.
            let summary = handle.exit_summary().unwrap();
            assert!(summary.contains("windlass:…@127.0.0.1"), "{summary}");
            assert!(summary.contains(refused[0]) && summary.contains("\"network\""), "{summary}");
            assert!(!handle.stderr_since(0).text.contains(raw_token(&handle).as_str()));
        }
        let env = ProcessTestEnv::new(landlock());
        let mut process_spec = env.process_spec("env | grep -ci proxy; exit 1");
        process_spec.sandbox_access.hosts = hosts(&["own.invalid"]);
        let (stdout, handle) = env.run_to_end(PermissionMode::Auto, process_spec).await;
        handle.wait_for_exit().await;
        assert_eq!(stdout, "0\n");
        assert!(handle.exit_summary().unwrap().contains("requires bubblewrap"));
    });
}

fn raw_token(handle: &ProcessHandle) -> String {
    let stderr = String::from_utf8(handle.stderr_output().head).unwrap();
    let token = stderr.split("windlass:").nth(1).unwrap().split('@').next().unwrap().to_owned();
    assert!(token.len() > 20, "{stderr}");
    token
}

pub fn a_failed_start_says_why() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            for (name, mode) in [("plain", 0o644), ("odd", 0o755), ("bin/fake", 0o755)] {
                let path = env.path("w").join(name);
                std::fs::write(&path, "#!/no/such/program\n").unwrap();
                let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
                std::fs::set_permissions(path, mode).unwrap();
            }
            for (program, folder, expected) in [
                ("/no/such/program", "w", "/no/such/program does not exist"),
                ("./nothing", "w", "./nothing does not exist"),
                ("no-such-program", "w", "not installed, or not in PATH"),
                ("fake", "w", "not installed, or not in PATH"),
                ("./plain", "w", "chmod +x"),
                ("./bin", "w", "./bin does not exist"),
                ("", "w", "does not exist"),
                ("bash", "nowhere", "the folder"),
            ] {
                let mut process_spec = env.program_spec(program, &[]);
                process_spec.folder = env.path(folder);
                let began = Instant::now();
                let error = env
                    .try_start(PermissionMode::Auto, process_spec)
                    .await
                    .unwrap_err()
                    .to_string();
                assert!(error.starts_with("mcp/test was not started: "), "{error}");
                assert!(error.contains(expected), "{sandbox:?} {program:?}: {error}");
                assert!(
                    began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
                    "{program:?}"
                );
            }
            // With bubblewrap, only the start inside the sandbox fails.
            match env.try_start(PermissionMode::Auto, env.program_spec("./odd", &[])).await {
                Err(error) => assert!(error.to_string().contains("first line"), "{error}"),
                Ok(process) => {
                    assert_ne!(process.handle().wait_for_exit().await.exit, ProcessExit::Code(0));
                    let summary = process.handle().exit_summary().unwrap();
                    assert!(summary.contains("No such file"), "{sandbox:?}: {summary}");
                }
            }
        }
    });
}

pub fn an_immediate_exit_says_why() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let began = Instant::now();
            let script = "echo 'no repository here' >&2; exit 7";
            let (input, output, handle) = env.start_process(env.process_spec(script)).await.split();
            let mut input = input;
            assert_eq!(handle.wait_for_exit().await.exit, ProcessExit::Code(7));
            assert!(
                began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
                "{:?}",
                began.elapsed()
            );
            let summary = handle.exit_summary().unwrap();
            assert_eq!(summary, "mcp/test exited with code 7: no repository here");
            assert_eq!(read_rest(output).await, "");
            // Without a reader, writing fails and does not end this process by SIGPIPE.
            let mut failed = false;
            for _ in 0..100 {
                failed |= input.write_all(&[b'x'; 4096]).await.is_err();
            }
            assert!(failed, "{sandbox:?}");
            let (_, handle) =
                env.run_to_end(PermissionMode::Auto, env.process_spec("kill -SEGV $$")).await;
            let exit = handle.wait_for_exit().await.exit;
            assert!(matches!(exit, ProcessExit::Signal(11) | ProcessExit::Code(139)), "{exit:?}");
        }
    });
}

pub fn a_process_is_sandboxed_or_not_started() {
    block_on(async {
        let env = ProcessTestEnv::new(SandboxMode::Exactly(SandboxBackend::Off));
        let error =
            env.try_start(PermissionMode::Auto, env.process_spec("true")).await.unwrap_err();
        assert!(error.to_string().contains("no sandbox"), "{error}");
        let mut process_spec = env.process_spec("echo out");
        process_spec.sandbox_access.sandbox_mode = Some(SandboxMode::Off);
        assert_eq!(env.run_to_end(PermissionMode::Auto, process_spec.clone()).await.0, "out\n");
        let error = env.try_start(PermissionMode::Plan, process_spec.clone()).await.unwrap_err();
        assert!(error.to_string().contains("plan mode"), "{error}");
        // A grant covers only the exact command line.
        let mut other = process_spec.clone();
        other.arguments.push("more".into());
        let granted = grant(PermissionMode::Auto, process_spec.required_access());
        let error = env.workspace.start_process(&granted, other).await.unwrap_err();
        assert!(matches!(error, Error::NotGranted { .. }), "{error}");
        let without_shell = Workspace::open(&env.path("w")).unwrap();
        assert!(without_shell.start_process(&granted, process_spec).await.is_err());
    });
}

/// Counts the descriptors of this process, those of the supervisor, the children of the supervisor,
/// and the threads of this process. The supervisor may keep one Landlock ruleset as a cache, which
/// depends on how recently other programs changed folders, so rulesets do not count.
fn count_resources(supervisor: i32) -> [usize; 4] {
    let count = |folder: String| {
        let entries = std::fs::read_dir(folder).unwrap();
        let is_ruleset = |entry: &std::fs::DirEntry| {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            target.to_string_lossy().contains("landlock-ruleset")
        };
        entries.filter(|entry| !entry.as_ref().is_ok_and(is_ruleset)).count()
    };
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let children = std::fs::read_to_string(children).unwrap().split_whitespace().count();
    let (descriptors, threads) =
        (count("/proc/self/fd".to_owned()), count("/proc/self/task".to_owned()));
    [descriptors, count(format!("/proc/{supervisor}/fd")), children, threads]
}

pub fn a_hundred_processes_leave_nothing_behind() {
    block_on(async {
        let env = ProcessTestEnv::new(SandboxMode::Off);
        // Only without a sandbox does a process see the real path of its temp folder.
        let (stdout, _) =
            env.run_to_end(PermissionMode::Auto, env.process_spec("echo $TMPDIR")).await;
        let process_folder = Path::new(stdout.trim()).parent().unwrap().to_owned();
        let supervisor = supervisor_pids()[0];
        let mut before = None;
        for round in 0..100 {
            let mut process_spec =
                env.process_spec("read -r word; echo $word; touch \"$TMPDIR/x\"; cat");
            process_spec.sandbox_access.sandbox_mode =
                Some(if round % 2 == 0 { bubblewrap() } else { landlock() });
            process_spec.sandbox_access.hosts =
                HostAllowlist::parse(&["own.invalid".to_owned()]).unwrap();
            let (mut input, output, handle) = env.start_process(process_spec).await.split();
            input.write_all(b"on\n").await.unwrap();
            let mut output = tokio::io::BufReader::new(output);
            assert_eq!(read_line(&mut output).await, "on\n");
            assert_eq!(std::fs::read_dir(&process_folder).unwrap().count(), 1);
            match round % 3 {
                0 => handle.terminate(Duration::ZERO).await,
                1 => drop(input),
                _ => {}
            }
            drop((output, handle));
            let empty = || std::fs::read_dir(&process_folder).unwrap().count() == 0;
            wait_until("the removal of the temp folder", empty).await;
            match before {
                // The first rounds open what all processes share.
                None if round < 6 => {}
                None => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    before = Some(count_resources(supervisor));
                }
                Some(before) => {
                    wait_until("the same resource counts as before", || {
                        count_resources(supervisor)
                            .iter()
                            .zip(before)
                            .all(|(now, before)| *now <= before)
                    })
                    .await;
                }
            }
        }
        println!("before {before:?}, after {:?}", count_resources(supervisor));
        assert_eq!(before.map(|before| before[2]), Some(0), "no process remains");
        env.workspace.stop_processes().await;
        drop(env);
        wait_until("the removal of the folder and the end of the supervisor", || {
            !process_folder.exists() && supervisor_pids().is_empty()
        })
        .await;
    });
}

pub fn a_process_costs_little() {
    block_on(async {
        for sandbox in [bubblewrap(), landlock(), SandboxMode::Off] {
            let env = ProcessTestEnv::new(sandbox.clone());
            let mut starts = Vec::new();
            let mut echoes = Vec::new();
            for _ in 0..10 {
                let began = Instant::now();
                let process_spec = env.program_spec("/bin/cat", &[]);
                let (mut input, output, handle) = env.start_process(process_spec).await.split();
                let mut output = tokio::io::BufReader::new(output);
                for round in 0..50 {
                    let sent = Instant::now();
                    input.write_all(b"{}\n").await.unwrap();
                    assert_eq!(read_line(&mut output).await, "{}\n");
                    if round == 0 {
                        starts.push(began.elapsed());
                    } else {
                        echoes.push(sent.elapsed());
                    }
                }
                drop(input);
                handle.wait_for_exit().await;
            }
            starts.sort();
            echoes.sort();
            let (start, echo) = (starts[starts.len() / 2], echoes[echoes.len() / 2]);
            println!("{sandbox:?}: first byte after {start:?}, an echo takes {echo:?}");
            assert!(start < Duration::from_millis(500), "{start:?}");
            assert!(echo < Duration::from_millis(10), "{echo:?}");
        }
    });
}
