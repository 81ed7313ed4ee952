//! A project with formatters, and a caller that approves and records its changes.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, FileChange, FileVersion, OutputDisplay,
    PermissionAnswer, PermissionMode, SessionId,
};
use windlass_sandbox::{
    CommandSandboxConfig, FileContent, GitHookMode, HostAllowlist, NetworkPolicy,
    PendingFileChange, SandboxMode, Workspace,
};
use windlass_toolkit::{
    CallFailure, CallIntent, PermissionReply, ProcessLauncher, Registry, SeenFile, StepContext,
    ToolCall, ToolCaller, ToolRuntime,
};
use windlass_tools::ToolIntegrations;
use windlass_tools::formatters::{FormatterConfig, Formatters};

/// Runs a future with a time limit.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), future).await };
    runtime.block_on(limited).expect("timed out")
}

/// A caller that approves everything, and records previews and changes.
#[derive(Default)]
pub struct RecordingCaller {
    pub seen: Mutex<BTreeMap<String, SeenFile>>,
    pub previews: Mutex<Vec<String>>,
    /// The recorded batches of changes.
    pub recorded: Mutex<Vec<Vec<PendingFileChange>>>,
    blobs: Mutex<BTreeMap<BlobRef, Vec<u8>>>,
}

#[async_trait]
impl ToolCaller for RecordingCaller {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        if intent.ask_reason.is_some() {
            PermissionReply::ShowPreview
        } else {
            PermissionReply::Answer(PermissionAnswer::Once)
        }
    }

    async fn ask_permission(&self, preview: Option<String>) -> PermissionAnswer {
        self.previews.lock().unwrap().push(preview.unwrap_or_default());
        PermissionAnswer::Once
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        let blob = BlobRef::for_bytes(&bytes);
        self.blobs.lock().unwrap().insert(blob.clone(), bytes);
        Ok(blob)
    }

    async fn file_version(&self, blob: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        let bytes = self.blobs.lock().unwrap().get(blob).cloned();
        bytes.ok_or_else(|| CallFailure::new("blob not found"))
    }

    async fn record_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        for PendingFileChange { before, after, .. } in &batch {
            for content in [before, after].into_iter().flatten() {
                self.put_blob(content.bytes.to_vec()).await.unwrap();
            }
        }
        self.recorded.lock().unwrap().push(batch);
        Ok(())
    }

    fn last_seen(&self, path: &str) -> Option<SeenFile> {
        self.seen.lock().unwrap().get(path).cloned()
    }

    fn mark_seen(&self, path: &str, bytes: &Arc<[u8]>) {
        let seen = SeenFile {
            digest: BlobRef::for_bytes(bytes),
            bytes: Some(Arc::clone(bytes)),
            is_changed_by_command: false,
        };
        self.seen.lock().unwrap().insert(path.to_owned(), seen);
    }
}

/// The fake formatter: it puts one space around `=`. Its argument selects a misbehavior.
const FAKE_FORMATTER: &str = r#"
good() { sed -e 's/ *= */ = /'; }
case $1 in
  good) good ;;
  picky) input=$(cat; echo .); case $input in *BROKEN*) echo "error: BROKEN is no word" >&2; echo " --> line 1" >&2; exit 1 ;; esac; printf %s "${input%.}" | good ;;
  refuses) cat >/dev/null; echo "error: expected one of ; or }" >&2; exit 1 ;;
  half) head -c 3; exit 2 ;;
  hangs) sleep 3600 ;;
  deaf) exec 0<&-; sleep 3600 ;;
  stubborn) trap '' TERM INT HUP; while :; do sleep 1; done ;;
  lost) cat >/dev/null; echo 'fake.sh: no-such-program: not found' >&2; exit 127 ;;
  endless) yes ;;
  flood) cat >/dev/null; head -c 400000 /dev/zero | tr '\0' x ;;
  binary) cat >/dev/null; printf 'a\377\376\n' ;;
  nul) cat >/dev/null; printf 'a\000b\n' ;;
  nothing) cat >/dev/null ;;
  killed) kill -9 $$ ;;
  forks) good; sleep 3600 & ;;
  writes) echo harm >harm; echo harm >>a.fake; rm -f kept; good ;;
esac
"#;

/// A project with its tools and formatters.
pub struct TestProject {
    _folder: TempDir,
    root: PathBuf,
    pub runtime: ToolRuntime,
    pub caller: RecordingCaller,
}

impl TestProject {
    /// Creates a project with a fake formatter of this behavior for `.fake` files.
    pub fn with_fake_formatter(behavior: &str) -> TestProject {
        TestProject::new(vec![fake_formatter(behavior)], json!({}), PermissionMode::Auto)
    }

    pub fn new(
        formatters: Vec<FormatterConfig>,
        rules: Value,
        mode: PermissionMode,
    ) -> TestProject {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let parent = folder.path().canonicalize().unwrap();
        let root = parent.join("w");
        for name in ["w", "home"] {
            std::fs::create_dir_all(parent.join(name)).unwrap();
        }
        std::fs::write(root.join("fake.sh"), FAKE_FORMATTER).unwrap();
        std::fs::write(root.join("fake.toml"), "").unwrap();
        let inherited = ["PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"];
        let inherited =
            inherited.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
            inherited_env: inherited.map(|(name, value)| (name.into(), value)).collect(),
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: Some(parent.join("home")),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root).unwrap().with_shell(shell);
        let runtime = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(PermissionRules::parse(&rules).unwrap()).with_mode(mode),
            workspace: workspace.with_cache(&parent.join("cache")),
            limits: Default::default(),
        };
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        let formatters = Some(Arc::new(Formatters::new(formatters, launcher)));
        windlass_tools::register(
            &runtime.registry,
            &ToolIntegrations { formatters, ..ToolIntegrations::default() },
        );
        TestProject { _folder: folder, root, runtime, caller: RecordingCaller::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Creates a file that the model has read.
    pub fn create_file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.as_ref()).unwrap();
        self.caller.mark_seen(name, &content.as_ref().into());
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub async fn write(&self, name: &str, content: &str) -> CallOutcome {
        self.call("write", json!({"filePath": name, "content": content})).await
    }

    pub async fn edit(&self, name: &str, old: &str, new: &str) -> CallOutcome {
        let input = json!({"filePath": name, "oldString": old, "newString": new});
        self.call("edit", input).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> CallOutcome {
        let context = StepContext::default();
        self.execute_call(tool, arguments, (CallAuthor::Model, &context), CancellationToken::new())
            .await
    }

    pub async fn execute_call(
        &self,
        tool: &str,
        arguments: Value,
        (author, context): (CallAuthor, &StepContext),
        cancel: CancellationToken,
    ) -> CallOutcome {
        let snapshot = self.runtime.registry.snapshot(context, &self.runtime.policy).await;
        let call = ToolCall {
            session: SessionId(Default::default()),
            id: CallId(Default::default()),
            author,
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
            allowed_calls: Vec::new(),
        };
        self.runtime.execute(&snapshot, call, &self.caller, cancel).await
    }

    /// Returns the recorded changes, starting with batch `from`.
    pub fn changes(&self, from: usize) -> Vec<FileChange> {
        let version = |content: &Option<FileContent>| {
            content.as_ref().map(|content| FileVersion {
                blob: BlobRef::for_bytes(&content.bytes),
                unix_mode: content.mode,
            })
        };
        let change = |pending: &PendingFileChange| FileChange {
            path: pending.path.clone(),
            before: version(&pending.before),
            after: version(&pending.after),
        };
        let recorded = self.caller.recorded.lock().unwrap();
        recorded.iter().skip(from).flatten().map(change).collect()
    }

    /// Reverts changes as the user.
    pub async fn undo(&self, changes: Vec<FileChange>) -> CallOutcome {
        let (input, context) = (json!({"facts": [], "changes": changes}), StepContext::default());
        let author = (CallAuthor::User, &context);
        self.execute_call(
            windlass_protocol::file_history::UNDO_TOOL,
            input,
            author,
            CancellationToken::new(),
        )
        .await
    }

    /// Asserts that a file on disk equals the last recorded change, the diff and the content that
    /// the model has seen.
    pub fn assert_consistent(&self, name: &str, outcome: &CallOutcome) {
        let bytes = std::fs::read(self.path(name)).unwrap();
        let recorded = self.caller.recorded.lock().unwrap();
        let last = recorded.last().unwrap().iter().find(|pending| pending.path == name).unwrap();
        assert_eq!(&*last.after.as_ref().unwrap().bytes, bytes, "recorded");
        assert_eq!(self.caller.last_seen(name).unwrap().digest, BlobRef::for_bytes(&bytes), "seen");
        let CallOutcome::Completed { output } = outcome else { panic!("{outcome:?}") };
        let OutputDisplay::Diff { unified_diff } = &output.display else { panic!("{outcome:?}") };
        let before = last.before.as_ref().map(|content| content.bytes.to_vec()).unwrap_or_default();
        let [before, after] = [before, bytes].map(|bytes| String::from_utf8(bytes).unwrap());
        let file_diff = unified_diff
            .split(&format!("+++ b/{name}\n"))
            .nth(1)
            .expect("the diff does not contain the file");
        for line in file_diff.lines().take_while(|line| !line.starts_with("--- a/")) {
            let is_in_file = match line.split_at(1) {
                ("+", line) => after.lines().any(|each| each == line),
                ("-", line) => before.lines().any(|each| each == line),
                (_, _) => true,
            };
            assert!(is_in_file, "{line}\n{unified_diff}");
        }
    }
}

/// Returns the config of the fake formatter. The timeout is short for behaviors that never end,
/// and long enough for a busy machine otherwise.
pub fn fake_formatter(behavior: &str) -> FormatterConfig {
    let never_ends = ["hangs", "deaf", "stubborn", "forks"].contains(&behavior);
    let timeout = if never_ends { 300 } else { 5_000 };
    let config = json!({
        "name": "fake", "command": ["sh", "fake.sh", behavior], "extensions": [".fake"],
        "requires": ["fake.toml"], "timeout": timeout, "install": "`make fake`",
    });
    serde_json::from_value(config).unwrap()
}
