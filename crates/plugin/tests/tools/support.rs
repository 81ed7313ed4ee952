//! Shared fixtures: a workspace with a real sandbox, a file that implements a tool, and a user.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_plugin::{DeclaredHostPolicy, LaunchSpec, ProgramLimits, ProgramSource, ToolProcess};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, PermissionAnswer, PermissionMode, SessionId,
    ToolAccess, ToolOutput, UserQuestion,
};
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, NetworkPolicy, SandboxMode, Workspace,
    WorkspaceAccess,
};
use windlass_toolkit::{
    CallFailure, CallIntent, PermissionReply, ProcessLauncher, QuestionEffect, Registry,
    StepContext, ToolCall, ToolCaller, ToolDefinitionBudget, ToolRuntime,
};

/// The time after which a test counts as hanging.
const TEST_TIMEOUT: Duration = Duration::from_secs(100);

pub fn run<T>(check: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(TEST_TIMEOUT, check).await.expect("the test hangs")
    })
}

/// A `ProgramSource` with one file, which can be refused.
pub struct TestProgramSource {
    path: PathBuf,
    refusal: Mutex<Option<String>>,
    interpreter: Mutex<Option<(PathBuf, Vec<PathBuf>)>>,
}

impl ProgramSource for TestProgramSource {
    fn change_stamp(&self) -> String {
        let refused = self.refusal.lock().unwrap().is_some();
        let data = self.path.metadata().unwrap();
        format!("{refused} {:?} {}", data.modified().unwrap(), data.len())
    }

    fn resolve_launch(&self) -> Result<LaunchSpec, String> {
        if let Some(reason) = &*self.refusal.lock().unwrap() {
            return Err(reason.clone());
        }
        let digest = BlobRef::for_bytes(&std::fs::read(&self.path).unwrap()).as_str().to_owned();
        let script = self.path.clone();
        let (program, arguments) = match &*self.interpreter.lock().unwrap() {
            None => (script, Vec::new()),
            Some((program, leading_arguments)) => {
                let arguments = leading_arguments
                    .iter()
                    .chain([&script])
                    .map(|path| path.clone().into_os_string());
                (program.clone(), arguments.collect())
            }
        };
        Ok(LaunchSpec { program, arguments, digest })
    }
}

/// A workspace with one tool in it.
pub struct TestEnv {
    pub folder: TempDir,
    pub runtime: ToolRuntime,
    pub program: Arc<ToolProcess>,
    pub notes: Vec<String>,
    file: Arc<TestProgramSource>,
}

impl TestEnv {
    /// Creates a tool with this program and registers it after `describe`.
    pub async fn new(name: &str, text: &str) -> TestEnv {
        let mut env = TestEnv::without_describe(name, text, None);
        let description = env.program.describe().await.unwrap();
        env.register_tools(&description);
        env
    }

    /// Creates a program without calling `describe`.
    pub fn without_describe(
        name: &str,
        text: &str,
        interpreter: Option<(PathBuf, Vec<PathBuf>)>,
    ) -> TestEnv {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["w/.windlass/tools", "home", "cache"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("w/a.txt"), "hello\n").unwrap();
        let path = root.join("w/.windlass/tools").join(name);
        write(&path, text);
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
            inherited_env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: Some(root.join("home")),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root.join("w")).unwrap();
        let workspace = workspace.with_shell(shell).with_cache(&root.join("cache"));
        let policy = Policy::new(PermissionRules::default()).with_mode(PermissionMode::Full);
        let runtime = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy,
            workspace,
            limits: Default::default(),
        };
        let limits = ProgramLimits {
            folder: root.join("w"),
            hosts: HostAllowlist::none(),
            host_allowance: DeclaredHostPolicy::Default,
            timeout: None,
            max_access: WorkspaceAccess::Write,
            writable_dirs: Vec::new(),
            env: Vec::new(),
            sessions: None,
        };
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        let file = Arc::new(TestProgramSource {
            path,
            refusal: Mutex::default(),
            interpreter: Mutex::new(interpreter),
        });
        let stem = name.split('.').next().unwrap();
        let program =
            ToolProcess::new(stem, &launcher, Arc::clone(&file) as Arc<dyn ProgramSource>, limits);
        TestEnv { folder, runtime, program, notes: Vec::new(), file }
    }

    pub fn register_tools(&mut self, description: &Value) {
        let (tools, notes) =
            self.program.parse_tools(description, Some(&mut ToolDefinitionBudget::default()));
        self.notes = notes;
        for tool in tools {
            self.runtime.registry.register_external("test", tool).unwrap();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w").join(name)
    }

    /// Replaces the program file.
    pub fn replace(&self, text: &str) {
        std::fs::remove_file(&self.file.path).unwrap();
        write(&self.file.path, text);
    }

    /// Sets the arguments before the file.
    pub fn set_leading_arguments(&mut self, arguments: Vec<PathBuf>) {
        self.file.interpreter.lock().unwrap().as_mut().unwrap().1 = arguments;
    }

    /// Refuses further starts of the program.
    pub fn refuse(&self, reason: &str) {
        *self.file.refusal.lock().unwrap() = Some(reason.to_owned());
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> CallOutcome {
        self.call_as(
            PermissionMode::Full,
            tool,
            arguments,
            &TestUser::default(),
            CancellationToken::new(),
        )
        .await
    }

    pub async fn call_as(
        &self,
        mode: PermissionMode,
        tool: &str,
        arguments: Value,
        user: &TestUser,
        cancel: CancellationToken,
    ) -> CallOutcome {
        let runtime = self.runtime.in_mode(mode);
        let snapshot = runtime.snapshot(&StepContext::default()).await;
        let call = ToolCall {
            session: SessionId(Default::default()),
            id: CallId(Default::default()),
            author: CallAuthor::Model,
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
            allowed_calls: Vec::new(),
        };
        runtime.execute(&snapshot, call, user, cancel).await
    }

    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        text(self.call(tool, arguments).await)
    }
}

pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn output(outcome: CallOutcome) -> ToolOutput {
    match outcome {
        CallOutcome::Completed { output } => output,
        other => panic!("{other:?}"),
    }
}

/// Returns the text that the model reads, with the status of an unsuccessful call.
pub fn text(outcome: CallOutcome) -> String {
    match outcome {
        CallOutcome::Completed { output } => output.text,
        CallOutcome::Failed { text } => format!("failed: {text}"),
        CallOutcome::Denied { text } => format!("denied: {text}"),
        CallOutcome::Interrupted { text } => format!("interrupted: {text}"),
        other => format!("{other:?}"),
    }
}

/// A user who approves everything and answers questions with `replies`.
#[derive(Default)]
pub struct TestUser {
    pub replies: Vec<String>,
    pub accesses: Mutex<Vec<ToolAccess>>,
    pub permission_requests: Mutex<usize>,
    pub progress: Mutex<Vec<String>>,
    pub questions: Mutex<Vec<UserQuestion>>,
    pub blobs: Mutex<Vec<Vec<u8>>>,
}

#[async_trait]
impl ToolCaller for TestUser {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        *self.accesses.lock().unwrap() = intent.accesses;
        if intent.ask_reason.is_some() {
            PermissionReply::ShowPreview
        } else {
            PermissionReply::Answer(PermissionAnswer::Once)
        }
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        *self.permission_requests.lock().unwrap() += 1;
        PermissionAnswer::Once
    }

    fn report_progress(&self, text: String) {
        self.progress.lock().unwrap().push(text);
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        let blob = BlobRef::for_bytes(&bytes);
        self.blobs.lock().unwrap().push(bytes);
        Ok(blob)
    }

    async fn ask_user(
        &self,
        questions: Vec<UserQuestion>,
        _effect: QuestionEffect,
    ) -> Result<Vec<Vec<String>>, CallFailure> {
        self.questions.lock().unwrap().extend(questions);
        Ok(vec![self.replies.clone()])
    }
}

/// Returns the text of a Python tool: `body` answers a call with `say(…)` and may use `ask`.
pub fn python(definition: &Value, body: &str) -> String {
    let body = body.lines().map(|line| format!("        {line}\n")).collect::<String>();
    let definition = json!(definition.to_string());
    format!(
        "#!/usr/bin/env python3\nimport json, os, sys, time\ndef say(**fields):\n    \
         print(json.dumps({{\"id\": ask[\"id\"], **fields}}), flush=True)\nfor line in sys.stdin:\n    \
         ask = json.loads(line)\n    if ask[\"method\"] == \"describe\":\n        \
         say(**json.loads({definition}))\n    elif ask[\"method\"] == \"call\":\n{body}"
    )
}
