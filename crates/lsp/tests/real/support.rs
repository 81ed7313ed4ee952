//! A temporary copy of a project with a real language server, and queries and edits in it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_lsp::{
    CodeQuery, CodeQueryAnswer, DiagnosticsReport, LanguageServers, LspConfig, LspServerConfig,
    LspTimeouts, PositionQuery, ServerLog, built_in_servers,
};
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_protocol::{
    CallAuthor, CallId, PermissionAnswer, PermissionMode, SessionId, ToolAccess, ToolOutput,
};
use windlass_sandbox::{
    CallWorkspace, CommandSandboxConfig, GitHookMode, HostAllowlist, JobEvent, JobEvents,
    NetworkPolicy, SandboxMode, Workspace,
};
use windlass_toolkit::process_health::HealthChanges;
use windlass_toolkit::{
    CallContext, CallFailure, CallIntent, PermissionReply, ProcessLauncher, Registry, StepContext,
    Tool, ToolCall, ToolCaller, ToolDefinition, ToolRuntime,
};

/// Returns the folder of real servers, or prints that this test is skipped.
pub fn servers_folder(skipped: &str) -> Option<PathBuf> {
    let servers_folder = std::env::var_os("WINDLASS_LANGUAGE_SERVERS").map(PathBuf::from);
    if servers_folder.is_none() {
        println!(
            "skipped: {skipped}. WINDLASS_LANGUAGE_SERVERS names no folder with language servers"
        );
    }
    servers_folder
}

/// Runs a test and fails if it takes too long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    windlass_testkit::time_limits::block_on(runtime, Duration::from_secs(150), work)
}

/// Collects the log lines of servers, which failed tests print.
#[derive(Default)]
pub struct TestServerLog(Mutex<Vec<String>>);

impl ServerLog for TestServerLog {
    fn log_line(&self, server: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{server}: {line}"));
    }
}

/// Approves every permission request.
struct ApprovingCaller;

#[async_trait]
impl ToolCaller for ApprovingCaller {
    async fn request_permission(&self, _intent: CallIntent) -> PermissionReply {
        PermissionReply::Answer(PermissionAnswer::Once)
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        PermissionAnswer::Once
    }
}

/// A tool that passes queries to the language servers.
struct TestQueryTool(LanguageServers);

#[derive(Deserialize, JsonSchema)]
struct Input {
    operation: String,
    path: Option<String>,
    line: Option<u32>,
    character: Option<u32>,
    query: Option<String>,
}

#[async_trait]
impl Tool for TestQueryTool {
    type Input = Input;

    fn name(&self) -> &str {
        "probe"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<Input>("Queries language servers.")
    }

    fn access(&self, input: &Input) -> Vec<ToolAccess> {
        let file = input.path.clone().map(|path| ToolAccess::Read { path });
        std::iter::once(ToolAccess::Search { path: ".".into() }).chain(file).collect()
    }

    async fn run(&self, input: Input, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let position_query = match input.operation.as_str() {
            "goToDefinition" => Some(PositionQuery::Definition),
            "findReferences" => Some(PositionQuery::References),
            "hover" => Some(PositionQuery::Hover),
            "goToImplementation" => Some(PositionQuery::Implementation),
            "prepareCallHierarchy" => Some(PositionQuery::CallHierarchy),
            "incomingCalls" => Some(PositionQuery::IncomingCalls),
            "outgoingCalls" => Some(PositionQuery::OutgoingCalls),
            _ => None,
        };
        let code_query = match (position_query, input.operation.as_str()) {
            (Some(position_query), _) => {
                let (line, character) = (input.line.unwrap(), input.character.unwrap());
                CodeQuery::Position {
                    query: position_query,
                    path: input.path.unwrap(),
                    line,
                    character,
                }
            }
            (None, "documentSymbol") => CodeQuery::DocumentSymbols { path: input.path.unwrap() },
            _ => CodeQuery::WorkspaceSymbols { path: input.path, query: input.query.unwrap() },
        };
        let answer = self.0.query(cx, code_query).await?;
        Ok(ToolOutput { text: format_answer(&answer), ..ToolOutput::default() })
    }
}

/// Formats an answer as lines: `path:line:character | label | source`.
fn format_answer(answer: &CodeQueryAnswer) -> String {
    let mut lines: Vec<String> = answer
        .locations
        .iter()
        .map(|location| {
            let position = format!("{}:{}:{}", location.path, location.line, location.character);
            let parts = [position.as_str(), &location.label, &location.source_line];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}{}", " ".repeat(location.depth), parts.join(" | "))
        })
        .collect();
    lines.extend(answer.prose.lines().map(str::to_owned));
    lines.extend(answer.notes.iter().map(|note| format!("[{note}]")));
    lines.join("\n")
}

/// A temporary copy of a project with its servers.
pub struct TestProject {
    _folder: TempDir,
    pub root: PathBuf,
    pub servers: LanguageServers,
    pub session: SessionId,
    pub workspace: Workspace,
    server_log: Arc<TestServerLog>,
    runtime: ToolRuntime,
    policy: Policy,
    job_events: JobEvents,
}

/// Returns a built-in config that starts the program of the servers folder.
pub fn built_in_config(servers_folder: &Path, name: &str) -> LspServerConfig {
    let known = built_in_servers().into_iter().find(|config| config.name == name);
    let mut config = known.unwrap_or_else(|| panic!("no built-in server is named {name}"));
    if name == "typescript" {
        // Projects usually bring their own TypeScript; these do not.
        let program = servers_folder.join("npm/node_modules/.bin/tsc");
        config.command = vec![program.display().to_string(), "--lsp".into(), "--stdio".into()];
        config.local.clear();
    }
    config.requires.clear();
    config
}

impl TestProject {
    /// Copies a project of `tests/projects` and opens it with these servers.
    pub fn new(servers_folder: &Path, project: &str, configs: Vec<LspServerConfig>) -> TestProject {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("w");
        std::fs::create_dir(base.join("home")).unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(project);
        copy_folder(&from, &root);
        let mut path = OsString::new();
        for part in
            ["npm/node_modules/.bin", "language-servers/bin", "ra/bin", "npm/node_modules/node/bin"]
        {
            path.push(servers_folder.join(part));
            path.push(":");
        }
        path.push(std::env::var_os("PATH").unwrap());
        let mut inherited_env = vec![("PATH".into(), path)];
        for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
            inherited_env.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
            inherited_env,
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: Some(base.join("home")),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root).unwrap().with_shell(shell);
        let workspace = workspace.with_cache(&base.join("cache"));
        let policy = Policy::new(PermissionRules::default()).with_mode(PermissionMode::Auto);
        let server_log = Arc::new(TestServerLog::default());
        let servers = LanguageServers::open(LspConfig {
            servers: configs,
            launcher: ProcessLauncher::new(&workspace, &policy),
            log: Arc::<TestServerLog>::clone(&server_log),
            timeouts: LspTimeouts::default(),
            changes: HealthChanges::default(),
        });
        let registry = Registry::default();
        registry.register(TestQueryTool(servers.clone()));
        let runtime = ToolRuntime {
            registry,
            hooks: Vec::new(),
            policy: policy.clone(),
            workspace: workspace.clone(),
            limits: Default::default(),
        };
        let session = SessionId(Default::default());
        let job_events = workspace.job_events(session);
        TestProject {
            _folder: folder,
            root,
            servers,
            session,
            workspace,
            server_log,
            runtime,
            policy,
            job_events,
        }
    }

    /// Sends a query: `operation path:line:character`, `operation path` or `operation ? query`.
    pub async fn query(&self, query: &str) -> String {
        let (operation, target) = query.split_once(' ').unwrap();
        let arguments = match target.split_once("? ") {
            Some((path, query)) => {
                let path = Some(path.trim()).filter(|path| !path.is_empty());
                serde_json::json!({"operation": operation, "path": path, "query": query})
            }
            None => {
                let mut parts = target.split(':');
                let path = parts.next();
                let mut number = || parts.next().map(|part| part.parse::<u32>().unwrap());
                let (line, character) = (number(), number());
                serde_json::json!({"operation": operation, "path": path, "line": line, "character": character})
            }
        };
        self.call_tool(arguments).await
    }

    async fn call_tool(&self, arguments: Value) -> String {
        let snapshot =
            self.runtime.registry.snapshot(&StepContext::default(), &self.runtime.policy).await;
        let call = ToolCall {
            session: self.session,
            id: CallId(Default::default()),
            author: CallAuthor::Model,
            tool: "probe".into(),
            arguments: arguments.to_string(),
            allowed_calls: Vec::new(),
        };
        let outcome =
            self.runtime.execute(&snapshot, call, &ApprovingCaller, CancellationToken::new()).await;
        outcome.text().to_owned()
    }

    /// Returns the workspace with a grant to edit this file.
    pub fn world(&self, path: &str) -> Arc<CallWorkspace> {
        let access = ToolAccess::Edit { path: path.to_owned() };
        let decision = self.policy.decide(vec![access.clone()], &[access]);
        let Decision::Allowed(grant) = decision else { panic!("the edit must be allowed") };
        Arc::new(self.workspace.open_read_only(grant))
    }

    /// Writes a file like a tool, and returns the review of the servers.
    pub async fn edit(&self, path: &str, text: &str) -> Option<DiagnosticsReport> {
        self.timed_edit(path, text).await.0
    }

    /// Writes a file like a tool, and returns the review and the time that it took.
    pub async fn timed_edit(
        &self,
        path: &str,
        text: &str,
    ) -> (Option<DiagnosticsReport>, Duration) {
        let world = self.world(path);
        let before = self.servers.snapshot_before(&world, &[path.to_owned()]);
        std::fs::write(self.root.join(path), text).unwrap();
        let started_at = Instant::now();
        let now = vec![(path.to_owned(), Some(text.into()))];
        let cancel = CancellationToken::new();
        let review = self.servers.review_after(&world, self.session, before, now, &cancel).await;
        (review, started_at.elapsed())
    }

    pub fn read_file(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Returns the next notice to the session within a time limit.
    pub async fn next_notice(&mut self, limit: Duration) -> Option<String> {
        match tokio::time::timeout(limit, self.job_events.recv()).await.ok().flatten()? {
            JobEvent::Notice(text) => Some(text),
            JobEvent::Ended { job, .. } => panic!("no job was started: {job}"),
            JobEvent::Update(job) => panic!("no job was started: {:?}", job.id()),
        }
    }

    /// Returns the log lines of all servers.
    pub fn server_log(&self) -> String {
        self.server_log.0.lock().unwrap().join("\n")
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}
