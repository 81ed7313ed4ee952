//! Tests of jobs that start with a grant: access that it permits, and access that stays closed.

use crate::support::{block_on, marked_pids, sleep_marker, wait_until};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use windlass_permission::{Decision, Grant, PathLookup, PermissionRules, Policy};
use windlass_protocol::{PermissionAnswer, PermissionMode, SessionId, ToolAccess};
use windlass_sandbox::{
    CallWorkspace, CommandSandboxConfig, Error, GitHookMode, HostAllowlist, Job, JobEvent, JobSpec,
    NetworkPolicy, ProcessExit, SandboxBackend, SandboxMode, StdinMode, Workspace, probe,
};

pub fn bubblewrap() -> SandboxMode {
    let backend = probe().backend.clone();
    assert!(matches!(backend, SandboxBackend::Bubblewrap { .. }), "{:?}", probe().messages);
    SandboxMode::Exactly(backend)
}

const SESSION_ID: &str = "\"00000000-0000-0000-0000-000000000000\"";

/// A workspace that can start jobs.
pub struct JobTestEnv {
    pub folder: TempDir,
    pub workspace: Workspace,
    pub session: SessionId,
}

impl JobTestEnv {
    pub fn new(sandbox: SandboxMode, network_policy: NetworkPolicy) -> JobTestEnv {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().join("w");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        // A program of the project must not be used as the shell, even if it is first in `PATH`.
        let fake = root.join("bin/bash");
        std::fs::write(&fake, "#!/bin/sh\necho fake\n").unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let path = format!("{}:/usr/bin:/bin", root.join("bin").display());
        let shell = CommandSandboxConfig {
            sandbox_mode: sandbox,
            inherited_env: vec![("PATH".into(), path.into())],
            network_policy,
            writable_folders: Vec::new(),
            readable_folders: vec![folder.path().canonicalize().unwrap().join("shared")],
            home: Some(folder.path().canonicalize().unwrap()),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root).unwrap().with_shell(shell);
        JobTestEnv { folder, workspace, session: serde_json::from_str(SESSION_ID).unwrap() }
    }

    pub fn granted_workspace(
        &self,
        accesses: Vec<ToolAccess>,
        mode: PermissionMode,
    ) -> CallWorkspace {
        let rules = PermissionRules::parse(&serde_json::json!("allow")).unwrap();
        let policy = Policy::new(rules).with_mode(mode);
        let grant: Grant = match policy.decide(accesses, &[]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(question) => question.resolve(&PermissionAnswer::Once).unwrap(),
            Decision::Denied { reason } => panic!("{reason}"),
        };
        self.workspace.open_read_only(grant)
    }

    pub async fn start_job(&self, command: &str, more: Vec<ToolAccess>) -> Arc<Job> {
        self.start_job_in(PermissionMode::Auto, command, more).await
    }

    async fn start_job_in(
        &self,
        mode: PermissionMode,
        command: &str,
        mut more: Vec<ToolAccess>,
    ) -> Arc<Job> {
        more.push(ToolAccess::RunCommand { command: command.to_owned(), folder: ".".to_owned() });
        let (session, stdin) = (self.session, StdinMode::Pipe);
        let spec = JobSpec { session, command, folder: ".", stdin };
        self.granted_workspace(more, mode).start_job(spec).await.unwrap()
    }
}

fn output_text(job: &Job) -> String {
    let output = job.output();
    String::from_utf8_lossy(&[output.head, output.tail].concat()).into_owned()
}

fn any_host() -> ToolAccess {
    ToolAccess::Connect { host: "*".to_owned() }
}

pub fn a_command_outside_the_sandbox_or_with_network_gets_no_stdin() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let command = "cat; echo over";
        let sandboxed = env.start_job(command, Vec::new()).await;
        sandboxed.write_stdin(b"on\n").await.unwrap();
        wait_until("the echo", || output_text(&sandboxed) == "on\n").await;
        for access in [ToolAccess::LeaveSandbox { command: command.to_owned() }, any_host()] {
            let job = env.start_job(command, vec![access.clone()]).await;
            job.wait_for_exit().await;
            assert_eq!(output_text(&job), "over\n", "{access:?}");
            assert!(matches!(job.write_stdin(b"x").await, Err(Error::NoStdin)), "{access:?}");
        }
        env.workspace.end_jobs(env.session).await;
    });
}

const LISTEN: &str = "python3 -c '
import socket
tcp = socket.create_server((\"127.0.0.1\", 3000))
print(\"listening\", flush=True)
while True:
    accepted, _ = tcp.accept()
    accepted.sendall(b\"hello\\n\")
    accepted.close()
'";

fn connect_to(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3")
}

pub fn commands_of_a_session_share_their_loopback_and_nothing_else() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let server = env.start_job(LISTEN, Vec::new()).await;
        wait_until("the server", || output_text(&server) == "listening\n").await;
        // With and without a proxy, several at a time.
        let mut jobs = Vec::new();
        for more in [Vec::new(), vec![any_host()], vec![any_host()], Vec::new()] {
            jobs.push(env.start_job(&connect_to(3000), more).await);
        }
        for job in jobs {
            job.wait_for_exit().await;
            assert_eq!(output_text(&job), "hello\n");
        }
        // The host's loopback is another one, and so are its abstract sockets.
        let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        host.set_nonblocking(true).unwrap();
        let port = host.local_addr().unwrap().port();
        let name = format!("windlass-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let connect = format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'"
        );
        for command in [connect_to(port), connect] {
            for more in [Vec::new(), vec![any_host()]] {
                let job = env.start_job(&command, more).await;
                let report = job.wait_for_exit().await;
                assert_ne!(report.exit, ProcessExit::Code(0), "{}", output_text(&job));
            }
        }
        assert!(host.accept().is_err(), "a command has reached the host");
        // Another session has another loopback.
        let other = "\"00000000-0000-0000-0000-000000000001\"";
        let (session, command) = (serde_json::from_str(other).unwrap(), connect_to(3000));
        let access = ToolAccess::RunCommand { command: command.clone(), folder: ".".to_owned() };
        let spec = JobSpec { session, command: &command, folder: ".", stdin: StdinMode::Closed };
        let workspace = env.granted_workspace(vec![access], PermissionMode::Auto);
        let job = workspace.start_job(spec).await.unwrap();
        let report = job.wait_for_exit().await;
        assert_ne!(report.exit, ProcessExit::Code(0), "{}", output_text(&job));
        env.workspace.end_jobs(session).await;
        env.workspace.end_jobs(env.session).await;
    });
}

pub fn the_system_shell_runs_with_a_private_temp_folder() {
    block_on(async {
        for sandbox in
            [bubblewrap(), SandboxMode::Exactly(SandboxBackend::Landlock), SandboxMode::Off]
        {
            let env =
                JobTestEnv::new(sandbox.clone(), NetworkPolicy::Listed(HostAllowlist::none()));
            let command = "echo real; stat -c %a \"$TMPDIR\"; cat";
            let job = env.start_job(command, Vec::new()).await;
            wait_until("the output", || output_text(&job) == "real\n700\n").await;
            env.workspace.end_jobs(env.session).await;
            assert!(job.is_gone(), "{sandbox:?}");
        }
    });
}

/// A session that is dropped cannot end its jobs explicitly.
pub fn dropping_a_session_ends_its_jobs() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let (events, marker) = (env.workspace.job_events(env.session), sleep_marker());
        let job = env.start_job(&format!("sleep {marker} & sleep {marker}"), Vec::new()).await;
        wait_until("the start of the sleep processes", || marked_pids(&marker).len() >= 2).await;
        let second_receiver = env.workspace.job_events(env.session);
        drop(events);
        assert!(
            !job.is_gone() && marked_pids(&marker).len() >= 2,
            "the session is still open elsewhere"
        );
        drop(second_receiver);
        wait_until("the end of all processes", || job.is_gone() && marked_pids(&marker).is_empty())
            .await;
    });
}

/// File tracking compares files only if this counter changed.
pub fn the_change_counter_grows_during_a_command_and_once_after_it() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let mut events = env.workspace.job_events(env.session);
        let before = env.workspace.change_counter();
        assert_eq!(env.workspace.change_counter(), before);
        let job = env.start_job("read line; echo x > made.txt", Vec::new()).await;
        let (one, two) = (env.workspace.change_counter(), env.workspace.change_counter());
        assert!(before < one && one < two);
        job.write_stdin(b"on\n").await.unwrap();
        wait_until("the end of all processes", || job.is_gone()).await;
        let after = env.workspace.change_counter();
        assert!(two < after, "the counter grows once more after the command");
        assert_eq!(env.workspace.change_counter(), after);
        let found = env.workspace.list_files(&|path| path.ends_with(".txt"), 10);
        assert!(matches!(found.as_slice(), [(path, stat)] if path == "made.txt" && stat.size == 2));
        assert!(env.workspace.list_files(&|_| true, 0).is_empty());

        env.workspace.notify_session(env.session, "something".to_owned());
        assert!(matches!(events.recv().await, Some(JobEvent::Notice(text)) if text == "something"));
        drop(events);
        // Without a receiver, the notice is dropped.
        env.workspace.notify_session(env.session, "nothing".to_owned());
    });
}

pub fn only_processes_of_the_job_are_reported_as_leftover() {
    block_on(async {
        for sandbox in [bubblewrap(), SandboxMode::Exactly(SandboxBackend::Landlock)] {
            let env =
                JobTestEnv::new(sandbox.clone(), NetworkPolicy::Listed(HostAllowlist::none()));
            let marker = sleep_marker();
            // A program that only has the name of the process that keeps a sandbox open.
            let command = format!("cp /usr/bin/sleep bwrap; ./bwrap {marker} & sleep 0.2");
            let job = env.start_job(&command, Vec::new()).await;
            let report = job.wait_for_exit().await;
            let names: Vec<&str> =
                report.leftover.iter().map(|process| process.name.as_str()).collect();
            assert_eq!(
                (names.as_slice(), report.more_leftover),
                (&["bwrap"][..], 0),
                "{sandbox:?}"
            );
            assert!(report.leftover[0].command_line.contains(&marker), "{report:?}");
            env.workspace.end_jobs(env.session).await;
            assert!(marked_pids(&marker).is_empty());
        }
    });
}

pub fn the_proxy_token_is_masked_and_host_attempts_are_reported() {
    block_on(async {
        let hosts = HostAllowlist::parse(&["listed.invalid".to_owned()]).unwrap();
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(hosts));
        let script = "echo $HTTPS_PROXY; printf 'windlass:%s' \"${HTTPS_PROXY#*windlass:}\" | \
                      sed 's/@.*//' | tr -d '\\n' | base64 -w0; echo; \
                      for i in 1 2 3; do curl -sS -m 5 http://other.invalid/; done; \
                      python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 & \
                      for i in {1..50}; do curl -s -m 5 http://localhost:8123/ && break; \
                      sleep 0.1; done; kill %1";
        let job = env.start_job(script, Vec::new()).await;
        job.wait_for_exit().await;
        let output = output_text(&job);
        let token = output.split("windlass:").nth(1).unwrap().split('@').next().unwrap().to_owned();
        assert!(token.len() > 20, "{output}");
        let encoded = output.lines().nth(1).unwrap().to_owned();
        assert!(
            output.contains("Directory listing"),
            "the command reaches its own loopback: {output}"
        );
        let unread: String = job.unread_output().into_iter().map(|chunk| chunk.text).collect();
        for masked in [unread, job.mask_secrets(&output)] {
            assert!(!masked.contains(&token) && !masked.contains(&encoded), "{masked}");
            assert!(masked.contains("windlass:…@127.0.0.1"), "{masked}");
        }
        let attempts = job.host_attempts(0);
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        assert_eq!((attempts[0].host.as_str(), attempts[0].count), ("other.invalid:80", 3));
        let notes = job.final_notes().join("\n");
        assert!(notes.contains("other.invalid:80"), "{notes}");
        assert!(job.final_notes().is_empty(), "notes are returned once");
        env.workspace.end_jobs(env.session).await;
    });
}

pub fn landlock_has_no_network_and_a_note_says_so() {
    block_on(async {
        let hosts = HostAllowlist::parse(&["listed.invalid".to_owned()]).unwrap();
        let env = JobTestEnv::new(
            SandboxMode::Exactly(SandboxBackend::Landlock),
            NetworkPolicy::Listed(hosts),
        );
        let job =
            env.start_job("env | grep -ci proxy; exec 3<>/dev/tcp/127.0.0.1/1", vec![any_host()]);
        let job = job.await;
        assert_ne!(job.wait_for_exit().await.exit, ProcessExit::Code(0));
        assert!(output_text(&job).starts_with("0\n"), "{}", output_text(&job));
        let notes = job.final_notes().join("\n");
        assert!(notes.contains("requires bubblewrap"), "{notes}");
        env.workspace.end_jobs(env.session).await;
    });
}

pub fn plan_mode_writes_nothing() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let job = env.start_job_in(PermissionMode::Plan, "echo x > new", Vec::new()).await;
        job.wait_for_exit().await;
        assert!(!Path::new(&env.folder.path().join("w/new")).exists());
        assert!(job.final_notes().join("\n").contains("Files are read-only here"));
        env.workspace.end_jobs(env.session).await;
    });
}

pub fn background_jobs_are_reported_and_can_be_ended() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let mut events = env.workspace.job_events(env.session);
        let foreground = env.start_job("echo one", Vec::new()).await;
        foreground.wait_for_exit().await;
        let marker = sleep_marker();
        let background = env.start_job(&format!("echo begun; sleep {marker}"), Vec::new()).await;
        let granted = env.granted_workspace(Vec::new(), PermissionMode::Auto);
        granted.follow_job(env.session, &background);
        wait_until("the first output", || {
            background.watch_output().borrow().last_lines.contains("begun")
        })
        .await;
        let now = windlass_protocol::UnixMillis(1_000_000);
        let rows: Vec<_> =
            env.workspace.background_jobs(env.session).iter().map(|job| job.row(now)).collect();
        assert_eq!(rows.len(), 1, "a command in the foreground is no background job: {rows:?}");
        assert_eq!((rows[0].id, rows[0].running, rows[0].exit_code), (background.id(), true, None));
        assert!(rows[0].output_tail == "begun" && rows[0].started_at <= now, "{rows:?}");
        assert!(env.workspace.background_job(env.session, foreground.id()).is_none());
        // `output_since` does not consume unread output.
        assert_eq!(background.output_since(&mut 0)[0].text, background.unread_output()[0].text);
        // The start and the output arrive as updates.
        let mut event = events.recv().await;
        while !matches!(&event, Some(JobEvent::Update(job)) if job.row(now).output_tail == "begun")
        {
            event = events.recv().await;
        }
        env.workspace.background_job(env.session, background.id()).unwrap().kill().await;
        let (mut notice, mut gone) = (String::new(), false);
        while notice.is_empty() || !gone {
            match events.recv().await {
                Some(JobEvent::Notice(text) | JobEvent::Ended { notice: text, .. }) => {
                    notice = text;
                }
                Some(JobEvent::Update(job)) => gone = !job.row(now).running,
                None => panic!("the end of the job was not reported"),
            }
        }
        assert!(notice.starts_with(&format!("Job {} has ended", background.id())), "{notice}");
        assert!(!env.workspace.background_jobs(env.session)[0].row(now).running);
        assert_eq!(marked_pids(&marker), Vec::<i32>::new());
    });
}

/// Updates come at intervals, however much a job prints.
pub fn updates_of_a_job_with_endless_output_are_rate_limited() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let mut events = env.workspace.job_events(env.session);
        let job = env.start_job("seq 1 30000; yes", Vec::new()).await;
        env.granted_workspace(Vec::new(), PermissionMode::Auto).follow_job(env.session, &job);
        let (start, mut updates) = (std::time::Instant::now(), 0);
        while start.elapsed() < std::time::Duration::from_secs(2) {
            let event =
                tokio::time::timeout(std::time::Duration::from_secs(2), events.recv()).await;
            assert!(matches!(event, Ok(Some(JobEvent::Update(_)))));
            updates += 1;
        }
        assert!((2..=8).contains(&updates), "{updates}");
        let tail = job.output_tail();
        assert!(tail.len() <= 32 << 10 && tail.lines().all(|line| line == "y"), "{}", tail.len());
        job.kill().await;
    });
}

/// Reads files in ways that the evaluation of a command line does not see, and changes one.
const PATH_ATTACK: &str = r#"#!/bin/bash
cat private/* pub/* {.env,x} sub/a/b/c/d/prod.env
grep -R . lnk pub; find -L . -type f -exec cat {} +
for name in private/secret.txt drafts/plan.txt .env; do base64 $name; done; ls -a
python3 -c "print(open('private/secret.txt').read())"
cp private/secret.txt x1; ln private/secret.txt x2; ln -s private/secret.txt x3; cat x1 x2 x3
ln .env x4; mv .env x5; mv sub moved; mv private p; cat x4 x5 moved/a/b/c/d/prod.env p/secret.txt
cat /proc/self/root/"$PWD"/.env /proc/self/cwd/private/secret.txt; tar c . | tr -d '\0'
exec 3<.env && cat <&3
echo lost > locked.txt; echo lost >> locked.txt; rm -f locked.txt; truncate -s 0 locked.txt
echo lost > other; mv -f other locked.txt; cp -f other locked.txt; chmod 777 locked.txt
sed -i s/keep/lost/ locked.txt; ln -f other locked.txt
echo finished
"#;

/// Creates files that rules and names restrict, and `attack.sh`.
fn create_restricted_files(env: &JobTestEnv) {
    let root = env.folder.path().join("w");
    for (name, text) in [
        ("private/secret.txt", "CANARY-DENIED"),
        ("drafts/plan.txt", "CANARY-ASKED"),
        (".env", "CANARY-SECRET"),
        ("sub/a/b/c/d/prod.env", "CANARY-DEEP"),
        ("locked.txt", "keep"),
        ("attack.sh", PATH_ATTACK),
    ] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    std::fs::create_dir(root.join("pub")).unwrap();
    std::os::unix::fs::symlink("../private/secret.txt", root.join("pub/x")).unwrap();
    std::os::unix::fs::symlink("private", root.join("lnk")).unwrap();
}

fn restricting_policy(env: &JobTestEnv, mode: PermissionMode) -> Policy {
    let rules = serde_json::json!({
        "read": {"private/*": "deny", "drafts/*": "ask"},
        "edit": {"locked.txt": "deny"},
    });
    let path_lookup = env.workspace.machine_paths().unwrap();
    Policy::new(PermissionRules::parse(&rules).unwrap())
        .with_mode(mode)
        .with_path_lookup(path_lookup as Arc<dyn PathLookup>)
}

async fn run_attack(env: &JobTestEnv, grant: Grant) -> Result<String, Error> {
    let (session, stdin) = (env.session, StdinMode::Closed);
    let spec = JobSpec { session, command: "./attack.sh", folder: ".", stdin };
    let job = env.workspace.open_read_only(grant).start_job(spec).await?;
    job.wait_for_exit().await;
    Ok(output_text(&job))
}

/// Asserts which of the texts are in the output, as they are or in base64.
fn assert_canaries(output: &str, visible: &[&str]) {
    assert!(output.ends_with("finished\n"), "{output}");
    for (text, encoded) in [
        ("CANARY-DENIED", "Q0FOQVJZLURFTklFRA"),
        ("CANARY-ASKED", "Q0FOQVJZLUFTS0VE"),
        ("CANARY-SECRET", "Q0FOQVJZLVNFQ1JFV"),
        ("CANARY-DEEP", "Q0FOQVJZLURFRV"),
    ] {
        let is_visible = output.contains(text) || output.contains(encoded);
        assert_eq!(is_visible, visible.contains(&text), "{text}\n{output}");
    }
}

fn attack_access() -> Vec<ToolAccess> {
    vec![ToolAccess::RunCommand { command: "./attack.sh".to_owned(), folder: ".".to_owned() }]
}

pub fn restricted_paths_stay_closed_however_a_command_gets_there() {
    block_on(async {
        let new_env = || {
            let policy = NetworkPolicy::Listed(HostAllowlist::none());
            let env = JobTestEnv::new(bubblewrap(), policy);
            create_restricted_files(&env);
            env
        };
        let env = new_env();
        let policy = restricting_policy(&env, PermissionMode::Auto);
        let Decision::Allowed(grant) = policy.decide(attack_access(), &[]) else {
            panic!("mode auto runs it");
        };
        assert_canaries(&run_attack(&env, grant).await.unwrap(), &[]);
        let locked = std::fs::read_to_string(env.folder.path().join("w/locked.txt")).unwrap();
        assert_eq!(locked, "keep");
        // An approval opens what the rules ask about, and nothing that they deny.
        let env = new_env();
        let policy = restricting_policy(&env, PermissionMode::Ask);
        let Decision::Ask(question) = policy.decide(attack_access(), &[]) else {
            panic!("mode ask asks");
        };
        let grant = question.resolve(&PermissionAnswer::Once).unwrap();
        let output = run_attack(&env, grant).await.unwrap();
        assert_canaries(&output, &["CANARY-ASKED", "CANARY-SECRET", "CANARY-DEEP"]);
        let locked = std::fs::read_to_string(env.folder.path().join("w/locked.txt")).unwrap();
        assert_eq!(locked, "keep");
    });
}

pub fn landlock_asks_about_restricted_paths_that_it_cannot_hide() {
    block_on(async {
        let landlock = SandboxMode::Exactly(SandboxBackend::Landlock);
        let env = JobTestEnv::new(landlock, NetworkPolicy::Listed(HostAllowlist::none()));
        create_restricted_files(&env);
        let policy = restricting_policy(&env, PermissionMode::Auto);
        let Decision::Ask(question) = policy.decide(attack_access(), &[]) else {
            panic!("it could read the secrets");
        };
        assert!(question.reason().contains("cannot hide"), "{}", question.reason());
        // The user cannot approve what a rule denies.
        let grant = question.resolve(&PermissionAnswer::Once).unwrap();
        let error = run_attack(&env, grant).await.unwrap_err().to_string();
        assert!(error.contains("private must stay hidden"), "{error}");
        // Where nothing can be written, Landlock hides single paths.
        let policy = restricting_policy(&env, PermissionMode::Plan);
        let Decision::Ask(question) = policy.decide(attack_access(), &[]) else {
            panic!("mode plan asks");
        };
        let grant = question.resolve(&PermissionAnswer::Once).unwrap();
        let output = run_attack(&env, grant).await.unwrap();
        assert_canaries(&output, &["CANARY-ASKED", "CANARY-SECRET", "CANARY-DEEP"]);
        assert!(output.contains("\nattack.sh\n"), "the folder can be listed: {output}");
    });
}

/// Reads files of the home folder, which contains the workspace.
const HOME_COMMAND: &str = "cat ../docs/diary ../shared/lib ../.cargo/config.toml ../.cargo/credentials ../.ssh/id \
    ../.config/pulumi/key; true";

pub fn the_home_is_hidden_from_commands_without_approval() {
    block_on(async {
        for sandbox in [bubblewrap(), SandboxMode::Exactly(SandboxBackend::Landlock)] {
            let env = JobTestEnv::new(sandbox, NetworkPolicy::Listed(HostAllowlist::none()));
            for (name, text) in [
                ("docs/diary", "PERSONAL"),
                (".config/pulumi/key", "UNLISTED"),
                ("shared/lib", "SHARED"),
                (".cargo/config.toml", "TOOLCHAIN"),
                (".cargo/credentials", "TOKEN"),
                (".ssh/id", "KEY"),
                ("w/home.sh", &format!("#!/bin/bash\n{HOME_COMMAND}\n")),
            ] {
                let path = env.folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, text).unwrap();
                std::fs::set_permissions(
                    &path,
                    std::os::unix::fs::PermissionsExt::from_mode(0o755),
                )
                .unwrap();
            }
            let run = async |mode: PermissionMode| {
                let access = ToolAccess::RunCommand {
                    command: "./home.sh".to_owned(),
                    folder: ".".to_owned(),
                };
                let grant = match restricting_policy(&env, mode).decide(vec![access], &[]) {
                    Decision::Allowed(grant) => grant,
                    Decision::Ask(question) => question.resolve(&PermissionAnswer::Once).unwrap(),
                    Decision::Denied { reason } => panic!("{reason}"),
                };
                let (session, stdin) = (env.session, StdinMode::Closed);
                let spec = JobSpec { session, command: "./home.sh", folder: ".", stdin };
                let job = env.workspace.open_read_only(grant).start_job(spec).await.unwrap();
                job.wait_for_exit().await;
                output_text(&job)
            };
            let visible = |output: &str| -> Vec<&str> {
                let words = ["PERSONAL", "UNLISTED", "SHARED", "TOOLCHAIN", "TOKEN", "KEY"];
                words.into_iter().filter(|word| output.contains(word)).collect()
            };
            let unasked = run(PermissionMode::Auto).await;
            assert_eq!(visible(&unasked), ["SHARED", "TOOLCHAIN"], "{unasked}");
            let approved = run(PermissionMode::Ask).await;
            let expected = ["PERSONAL", "UNLISTED", "SHARED", "TOOLCHAIN"];
            assert_eq!(visible(&approved), expected, "{approved}");
        }
    });
}

pub fn a_change_between_two_commands_is_reported_while_a_job_runs() {
    block_on(async {
        let env = JobTestEnv::new(bubblewrap(), NetworkPolicy::Listed(HostAllowlist::none()));
        let root = env.folder.path().join("w");
        let run = async |command: &str| {
            let job = env.start_job(command, Vec::new()).await;
            job.wait_for_exit().await;
            job.final_notes()
        };
        run("true").await;
        std::fs::write(root.join(".envrc"), "by the user").unwrap();
        assert_eq!(run("true").await, [""; 0], "no process of the session could have done it");
        let marker = sleep_marker();
        let job = env.start_job(&format!("sleep {marker}"), Vec::new()).await;
        run("true").await;
        std::fs::write(root.join(".envrc"), "by the job").unwrap();
        let notes = run("true").await;
        assert!(notes.iter().any(|note| note.contains(".envrc")), "{notes:?}");
        assert_eq!(run("true").await, [""; 0], "it is reported once");
        env.workspace.end_jobs(env.session).await;
        assert!(job.is_gone());
    });
}
