//! Helpers that all tests share.

use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windlass_sandbox::{
    ExitReport, JobLimits, LoopbackScope, NetworkAccess, SandboxBackend, SandboxProfile, SpawnSpec,
    StdinMode, SupervisedProcess, SupervisorClient,
};

/// Time after which a test counts as hanging.
const TEST_TIMEOUT: Duration = Duration::from_secs(100);

/// Runs a test on a single-threaded runtime, with a timeout.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(TEST_TIMEOUT, test).await.expect("the test hangs") })
}

pub fn is_soak() -> bool {
    std::env::var_os("WINDLASS_SOAK").is_some()
}

/// Returns a profile without confinement.
pub fn unconfined_profile() -> SandboxProfile {
    SandboxProfile {
        backend: SandboxBackend::Off,
        root: "/".into(),
        workspace_writable: true,
        extra_writable: Vec::new(),
        cache_folders: Vec::new(),
        temp_dir: "/tmp".into(),
        hidden_paths: Vec::new(),
        readable_paths: Vec::new(),
        private_paths: Vec::new(),
        protected_paths: Vec::new(),
        network: NetworkAccess::Unrestricted,
        loopback: LoopbackScope::Command,
    }
}

/// Returns a profile for each sandbox backend of this machine, with `root` as the workspace.
pub fn sandbox_profiles(root: &Path, temp: &Path) -> Vec<SandboxProfile> {
    let bubblewrap = windlass_sandbox::probe().backend.clone();
    assert!(matches!(bubblewrap, SandboxBackend::Bubblewrap { .. }), "{bubblewrap:?}");
    let profile_of = |backend| SandboxProfile {
        backend,
        root: root.canonicalize().unwrap(),
        temp_dir: temp.canonicalize().unwrap(),
        network: NetworkAccess::None,
        ..unconfined_profile()
    };
    vec![profile_of(bubblewrap), profile_of(SandboxBackend::Landlock)]
}

pub fn environment() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), std::env::var_os("PATH").unwrap())]
}

pub fn spawn_spec(command: &str) -> SpawnSpec {
    SpawnSpec {
        command: command.to_owned(),
        shell: "/bin/bash".into(),
        folder: "/".into(),
        env: environment(),
        sandbox: unconfined_profile(),
        package_caches: None,
        spill_folder: None,
        capture_file: None,
        stdin: StdinMode::Closed,
        limits: JobLimits::default(),
    }
}

pub fn spawn_spec_with_stdin(stdin: StdinMode, command: &str) -> SpawnSpec {
    SpawnSpec { stdin, ..spawn_spec(command) }
}

pub async fn start_command(jobs: &SupervisorClient, command: &str) -> SupervisedProcess {
    jobs.start(spawn_spec(command)).await.unwrap()
}

/// Runs a command to its end and returns its output and exit report.
pub async fn run_command(jobs: &SupervisorClient, command: &str) -> (String, ExitReport) {
    let job = start_command(jobs, command).await;
    let report = job.wait_for_exit().await;
    (output_text(&job), report)
}

pub fn output_text(job: &SupervisedProcess) -> String {
    let output = job.output();
    assert_eq!(output.dropped_bytes(), 0);
    String::from_utf8([output.head, output.tail].concat()).unwrap()
}

/// Returns a duration for `sleep` that is in no other command line on this machine, so that it also
/// marks the processes of a test.
pub fn sleep_marker() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("600.{:07}{count:04}", std::process::id())
}

/// Returns the processes that have a marker in their command line.
pub fn marked_pids(marker: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Includes a shell whose script contains the marker, but not a test process that runs as
        // `owner`.
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(marker) && !line.contains(" owner ") {
            found.push(pid);
        }
    }
    found
}

/// Waits until a condition holds, and returns the time it took. `event` describes the condition in
/// the failure message.
pub async fn wait_until(event: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
            "{event} did not happen"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    start.elapsed()
}

/// Returns the supervisors among the children of this process.
pub fn supervisor_pids() -> Vec<i32> {
    child_pids_named(std::process::id().cast_signed(), "windlass-super")
}

/// Returns the children of all threads of a process that have this name.
pub fn child_pids_named(pid: i32, name: &str) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let children: Vec<String> = children.collect();
    let pids = children.iter().flat_map(|pids| pids.split_whitespace());
    let pids = pids.map(|pid| pid.parse().unwrap());
    pids.filter(|pid| process_name(*pid) == name).collect()
}

pub fn process_name(pid: i32) -> String {
    let name = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.unwrap_or_default().trim().to_owned()
}

pub fn send_signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Environment variable with the temp folder of an owner process.
pub const OWNER_TEMP_VARIABLE: &str = "OWNER_TEMP";

/// The index of the sandbox in `sandbox_profiles` that an owner process uses. The workspace is the
/// folder `work` next to its temp folder.
pub const OWNER_SANDBOX_VARIABLE: &str = "OWNER_SANDBOX";

/// Main of an owner process: runs commands, prints `ready`, and waits to be killed.
pub fn run_owner(commands: &[String]) -> ExitCode {
    block_on(async {
        let jobs = match std::env::var_os(OWNER_TEMP_VARIABLE) {
            Some(temp) => SupervisorClient::with_temp(Path::new(&temp)),
            None => SupervisorClient::new(),
        };
        let sandbox = match std::env::var(OWNER_SANDBOX_VARIABLE) {
            Ok(index) => {
                let temp = std::env::var_os(OWNER_TEMP_VARIABLE).unwrap();
                let temp = Path::new(&temp);
                let profiles = sandbox_profiles(&temp.with_file_name("work"), temp);
                profiles[index.parse::<usize>().unwrap()].clone()
            }
            Err(_) => unconfined_profile(),
        };
        for command in commands {
            let spec = SpawnSpec { sandbox: sandbox.clone(), ..spawn_spec(command) };
            let job = jobs.start(spec).await.unwrap();
            if !command.ends_with("wait") {
                job.wait_for_exit().await;
            }
        }
        println!("ready");
        std::io::stdout().flush().unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    ExitCode::FAILURE
}

/// Returns commands that leave a process running, each in a different way.
pub fn detaching_commands(marker: &str) -> Vec<String> {
    vec![
        format!("sleep {marker} & echo done"),
        format!("nohup sleep {marker} >/dev/null 2>&1 & echo done"),
        format!("setsid -f sleep {marker}; echo done"),
        format!("(setsid bash -c 'sleep {marker} & disown; exec sleep {marker}' &) ; echo done"),
        format!("env -i /usr/bin/setsid -f /bin/sleep {marker}; echo done"),
        format!(
            "perl -e 'use POSIX; fork and exit; setsid; fork and exit; close STDOUT; \
             close STDERR; exec \"sleep\", \"{marker}\"'; echo done"
        ),
        format!("trap '' TERM HUP INT; sleep {marker} & trap '' TERM; echo done"),
    ]
}
