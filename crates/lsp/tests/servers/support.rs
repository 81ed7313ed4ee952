//! A temporary workspace with mock language servers (`rogue.py`) and requests to them.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_lsp::{LanguageServers, LspConfig, LspServerConfig, LspTimeouts, ServerLog};
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_protocol::ToolAccess;
use windlass_sandbox::{
    CallWorkspace, CommandSandboxConfig, GitHookMode, HostAllowlist, NetworkPolicy, SandboxMode,
    Workspace,
};
use windlass_toolkit::ProcessLauncher;
use windlass_toolkit::process_health::{HealthChanges, ProcessHealthState};

/// Time limit for the start of a server, long enough for a busy machine.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for a response.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Tolerance by which a call may exceed its time limit.
pub const TIMEOUT_SLACK: Duration = Duration::from_millis(200);

/// Runs a test and fails if it takes too long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2);
    windlass_testkit::time_limits::block_on(runtime, Duration::from_secs(100), work)
}

/// Collects the log lines of servers.
#[derive(Default)]
pub struct TestServerLog(pub Mutex<Vec<String>>);

impl ServerLog for TestServerLog {
    fn log_line(&self, server: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{server}: {line}"));
    }
}

/// A temporary workspace with a mock server program.
pub struct TestWorkspace {
    folder: TempDir,
    pub workspace: Workspace,
    pub world: Arc<CallWorkspace>,
    pub log: Arc<TestServerLog>,
    pub timeouts: LspTimeouts,
    pub changes: HealthChanges,
}

/// Returns the path of the Python interpreter. A wrapper such as pyenv starts slower.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let mut command = std::process::Command::new("python3");
        let response = command.args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(response.stdout).unwrap().trim().to_owned()
    })
}

impl TestWorkspace {
    pub fn new() -> TestWorkspace {
        TestWorkspace::with_sandbox(SandboxMode::Best)
    }

    pub fn with_sandbox(sandbox_mode: SandboxMode) -> TestWorkspace {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["w", "home"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rogue.py");
        std::fs::copy(rogue, base.join("w/rogue.py")).unwrap();
        let shell = CommandSandboxConfig {
            sandbox_mode,
            inherited_env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: Some(base.join("home")),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&base.join("w")).unwrap().with_shell(shell);
        let workspace = workspace.with_cache(&base.join("cache"));
        let access = ToolAccess::Read { path: "a.x".into() };
        let decision =
            Policy::new(PermissionRules::default()).decide(vec![access.clone()], &[access]);
        let Decision::Allowed(grant) = decision else { panic!("reading must be allowed") };
        let world = Arc::new(workspace.open_read_only(grant));
        let timeouts = LspTimeouts {
            start: START_TIMEOUT,
            answer: RESPONSE_TIMEOUT,
            ..LspTimeouts::default()
        };
        TestWorkspace {
            folder,
            workspace,
            world,
            log: Arc::default(),
            timeouts,
            changes: HealthChanges::default(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w").join(name)
    }

    /// Returns the argument that identifies the processes of this workspace.
    pub fn process_tag(&self) -> String {
        self.folder.path().file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// Returns the config of a mock server in this mode, for files with this extension.
    pub fn server_config(&self, name: &str, mode: &str, extension: &str) -> LspServerConfig {
        let rogue = self.path("rogue.py");
        serde_json::from_value(json!({
            "name": name, "language": name, "command": [python(), rogue, mode, self.process_tag()],
            "extensions": {extension: "x"}, "roots": [["root.toml"]], "single_file": true,
            "env": {"ROGUE_CACHE": "{cache}/inner"}, "install": "`get it`",
        }))
        .unwrap()
    }

    pub fn open(&self, configs: Vec<LspServerConfig>) -> LanguageServers {
        let launcher =
            ProcessLauncher::new(&self.workspace, &Policy::new(PermissionRules::default()));
        let log: Arc<dyn ServerLog> = Arc::clone(&self.log) as Arc<dyn ServerLog>;
        LanguageServers::open(LspConfig {
            servers: configs,
            launcher,
            log,
            timeouts: self.timeouts,
            changes: self.changes.clone(),
        })
    }

    pub async fn request(
        &self,
        servers: &LanguageServers,
        path: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        servers
            .send_raw_request(&self.world, path, method, params, (START_TIMEOUT, RESPONSE_TIMEOUT))
            .await
    }

    /// Returns true if the server of a file answers an `echo` request.
    pub async fn can_echo(&self, servers: &LanguageServers, path: &str) -> bool {
        let response = self.request(servers, path, "echo", json!({"a": 1})).await;
        if response != Ok(json!({"a": 1})) {
            println!("{path}: {response:?}");
        }
        response == Ok(json!({"a": 1}))
    }

    /// Counts the running server processes of this workspace.
    pub fn process_count(&self) -> usize {
        let tag = self.process_tag();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        // The sandbox process has the same arguments.
        let matching = lines.filter(|line| {
            let line = String::from_utf8_lossy(line);
            line.contains("python") && line.split('\0').any(|word| word == tag)
        });
        matching.count()
    }

    /// Waits until this many processes run; returns false after the time limit.
    pub async fn wait_for_process_count(&self, count: usize, limit: Duration) -> bool {
        let started_at = Instant::now();
        while self.process_count() != count {
            if started_at.elapsed() > limit {
                println!("{} processes run, not {count}", self.process_count());
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    /// Waits until no server process is left; returns false after 3 s.
    pub async fn wait_until_all_exited(&self) -> bool {
        self.wait_for_process_count(0, Duration::from_secs(3)).await
    }
}

/// Returns the health of the server with this name.
pub fn health_state(servers: &LanguageServers, name: &str) -> ProcessHealthState {
    let states = servers.states();
    states
        .into_iter()
        .find(|(known, ..)| known == name)
        .map_or(ProcessHealthState::Idle, |(.., state)| state)
}
