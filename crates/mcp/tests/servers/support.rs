//! A temporary workspace with mock MCP servers (`rogue.py`), and calls of their tools.

use async_trait::async_trait;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{
    McpEndpoint, McpHostCallbacks, McpServerSpec, McpServers, PinnedServerDefinitions,
};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, PermissionAnswer, PermissionMode, SessionId,
    UserQuestion,
};
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, NetworkPolicy, ProcessSandboxAccess,
    ProcessSpec, SandboxMode, Workspace, WorkspaceAccess,
};
use windlass_toolkit::{
    CallFailure, CallIntent, PermissionReply, ProcessLauncher, QuestionEffect, Registry,
    StepContext, ToolCall, ToolCaller, ToolDefinitionBudget, ToolRuntime,
};

/// Runs a test and fails if it takes too long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    windlass_testkit::time_limits::block_on(runtime, Duration::from_secs(120), work)
}

/// Records pins, log lines and notices.
#[derive(Default)]
pub struct RecordingHostCallbacks {
    pub pins: Mutex<Vec<(String, PinnedServerDefinitions)>>,
    pub log_lines: Mutex<Vec<String>>,
    pub notices: Mutex<Vec<String>>,
}

impl McpHostCallbacks for RecordingHostCallbacks {
    fn save_pins(&self, server: &str, pinned: &PinnedServerDefinitions) {
        self.pins.lock().unwrap().push((server.to_owned(), pinned.clone()));
    }

    fn log_line(&self, server: &str, line: &str) {
        self.log_lines.lock().unwrap().push(format!("{server}: {line}"));
    }

    fn notify_user(&self, text: String) {
        self.notices.lock().unwrap().push(text);
    }
}

/// A user who approves everything, and answers questions with `replies`.
#[derive(Default)]
pub struct ApprovingTestUser {
    pub replies: Option<Vec<Vec<String>>>,
    pub questions: Mutex<Vec<UserQuestion>>,
    pub previews: Mutex<Vec<Option<String>>>,
    pub progress: Mutex<Vec<String>>,
    pub intents: Mutex<Vec<CallIntent>>,
}

#[async_trait]
impl ToolCaller for ApprovingTestUser {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        let needs_approval = intent.ask_reason.is_some();
        self.intents.lock().unwrap().push(intent);
        if needs_approval {
            PermissionReply::ShowPreview
        } else {
            PermissionReply::Answer(PermissionAnswer::Once)
        }
    }

    async fn ask_permission(&self, preview: Option<String>) -> PermissionAnswer {
        self.previews.lock().unwrap().push(preview);
        PermissionAnswer::Once
    }

    fn report_progress(&self, text: String) {
        self.progress.lock().unwrap().push(text);
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        Ok(BlobRef::for_bytes(&bytes))
    }

    async fn ask_user(
        &self,
        all: Vec<UserQuestion>,
        _: QuestionEffect,
    ) -> Result<Vec<Vec<String>>, CallFailure> {
        self.questions.lock().unwrap().extend(all);
        self.replies.clone().ok_or_else(|| CallFailure::new("no replies are set"))
    }
}

/// A temporary workspace with its tools.
pub struct TestWorkspace {
    folder: TempDir,
    pub runtime: ToolRuntime,
    pub store: Arc<RecordingHostCallbacks>,
}

impl TestWorkspace {
    pub fn new() -> TestWorkspace {
        TestWorkspace::in_mode(PermissionMode::Auto)
    }

    pub fn in_mode(mode: PermissionMode) -> TestWorkspace {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["w", "home"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rogue.py");
        std::fs::copy(rogue, base.join("w/rogue.py")).unwrap();
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
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
        let runtime = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(PermissionRules::default()).with_mode(mode),
            workspace: workspace.with_cache(&base.join("cache")),
            limits: Default::default(),
        };
        TestWorkspace { folder, runtime, store: Arc::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w").join(name)
    }

    /// Returns the spec of a mock server in this mode.
    pub fn server_spec(&self, name: &str, mode: &str) -> McpServerSpec {
        let process = ProcessSpec {
            name: format!("mcp/{name}"),
            program: "python3".into(),
            arguments: ["rogue.py", mode, "log"].map(Into::into).to_vec(),
            folder: self.path(""),
            env: Vec::new(),
            sandbox_access: ProcessSandboxAccess {
                workspace: WorkspaceAccess::Write,
                writable_folders: Vec::new(),
                hosts: HostAllowlist::none(),
                sandbox_mode: None,
            },
        };
        McpServerSpec {
            name: name.to_owned(),
            endpoint: McpEndpoint::Stdio(Box::new(process)),
            start_timeout: Duration::from_secs(20),
            revision: None,
            digest: "d".into(),
            pins: None,
        }
    }

    pub fn open(&self, specs: Vec<McpServerSpec>) -> McpServers {
        let launcher = ProcessLauncher::new(&self.runtime.workspace, &self.runtime.policy);
        let store: Arc<dyn McpHostCallbacks> = Arc::clone(&self.store) as Arc<dyn McpHostCallbacks>;
        McpServers::open(
            specs,
            launcher,
            &self.runtime.registry,
            &store,
            &mut ToolDefinitionBudget::default(),
        )
    }

    /// Opens one server in this mode, with its tools registered.
    pub async fn open_server(&self, mode: &str) -> McpServers {
        let servers = self.open(vec![self.server_spec("r", mode)]);
        servers.inspect("r").await.unwrap();
        servers
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> CallOutcome {
        self.call_as(tool, arguments, &ApprovingTestUser::default(), CancellationToken::new()).await
    }

    pub async fn call_as(
        &self,
        tool: &str,
        arguments: Value,
        user: &ApprovingTestUser,
        cancel: CancellationToken,
    ) -> CallOutcome {
        let snapshot =
            self.runtime.registry.snapshot(&StepContext::default(), &self.runtime.policy).await;
        let call = ToolCall {
            session: SessionId(Default::default()),
            id: CallId(Default::default()),
            author: CallAuthor::Model,
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
            allowed_calls: Vec::new(),
        };
        self.runtime.execute(&snapshot, call, user, cancel).await
    }

    /// Counts the occurrences of a line in the log of the server.
    pub fn log_count(&self, line: &str) -> usize {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().filter(|each| *each == line).count()
    }

    /// Kills the server process that runs in this workspace.
    pub fn kill_server(&self) {
        let workspace = self.path("");
        let mut killed = 0;
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let cwd = std::fs::read_link(entry.path().join("cwd"));
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            if cwd.is_ok_and(|cwd| workspace.starts_with(&cwd) && cwd.ends_with("w"))
                && line.split('\0').next().is_some_and(|program| program.contains("python"))
            {
                let pid = entry.file_name().into_string().unwrap();
                let status = std::process::Command::new("kill").args(["-9", &pid]).status();
                killed += usize::from(status.unwrap().success());
            }
        }
        assert_eq!(killed, 1);
    }
}
