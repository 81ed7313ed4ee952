//! Tests of the guarantees of the tool pipeline, for any tool and any hook.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests create files directly and fail by panicking"
)]

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, HookPoint, PermissionAnswer, PermissionMode,
    SessionId, ToolAccess, ToolOutput,
};
use windlass_sandbox::{FileWrite, OpenedPath, PendingFileChange, Workspace};
use windlass_toolkit::{
    CallContext, CallFailure, CallIntent, Hook, HookContext, HookError, HookPayload, HookReply,
    HookRun, PermissionReply, Registry, StepContext, SubCall, Tool, ToolCall, ToolCaller,
    ToolDefinition, ToolRuntime,
};

/// A tool that declares the accesses in `declared`, reads `reads`, writes `writes`, and returns
/// `text`.
#[derive(Default)]
struct FakeTool {
    declared: Vec<ToolAccess>,
    reads: Option<String>,
    writes: Option<String>,
    text: String,
    delay: Duration,
    /// True if the preview fails.
    preview_fails: bool,
    /// True if no model is offered the tool.
    hidden: bool,
    run_count: Arc<AtomicUsize>,
}

#[derive(Deserialize, JsonSchema)]
struct FakeToolInput {
    #[serde(default)]
    path: Option<String>,
}

#[async_trait]
impl Tool for FakeTool {
    type Input = FakeToolInput;

    fn name(&self) -> &str {
        "fake"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<FakeToolInput>("A fake tool.")
    }

    fn access(&self, input: &FakeToolInput) -> Vec<ToolAccess> {
        let named = input.path.iter().map(|path| ToolAccess::Read { path: path.clone() });
        self.declared.iter().cloned().chain(named).collect()
    }

    fn is_offered(&self, _step: &StepContext) -> bool {
        !self.hidden
    }

    async fn preview(
        &self,
        _input: &FakeToolInput,
        _cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        if self.preview_fails { Err(CallFailure::new("it does not fit")) } else { Ok(None) }
    }

    async fn run(
        &self,
        _input: FakeToolInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        self.run_count.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.delay).await;
        if let Some(path) = &self.reads
            && let OpenedPath::Folder(names) = cx.world.read(path)?
        {
            return Err(CallFailure::new(names.join(" ")));
        }
        if let Some(path) = &self.writes {
            let (path, after) = (path.clone(), Some(b"written"[..].into()));
            cx.run_blocking(move |workspace| {
                let before = workspace.load_file(&path)?.map(|content| content.bytes);
                Ok(workspace.write_files(&[FileWrite { path, before, after, mode: None }])?)
            })
            .await?;
        }
        Ok(ToolOutput { text: self.text.clone(), ..ToolOutput::default() })
    }
}

#[derive(Default)]
struct PipelineTestCaller {
    intents: Mutex<Vec<CallIntent>>,
    blobs: Mutex<Vec<Vec<u8>>>,
    recorded_changes: Mutex<Vec<PendingFileChange>>,
    previews: Mutex<Vec<Option<String>>>,
    hook_runs: Mutex<Vec<HookRun>>,
    fails_to_record: bool,
}

#[async_trait]
impl ToolCaller for PipelineTestCaller {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        let asks = intent.ask_reason.is_some();
        self.intents.lock().unwrap().push(intent);
        if asks {
            PermissionReply::ShowPreview
        } else {
            PermissionReply::Answer(PermissionAnswer::Once)
        }
    }

    async fn ask_permission(&self, preview: Option<String>) -> PermissionAnswer {
        self.previews.lock().unwrap().push(preview);
        PermissionAnswer::Once
    }

    async fn record_hook(&self, hook_run: HookRun) {
        self.hook_runs.lock().unwrap().push(hook_run);
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        self.blobs.lock().unwrap().push(bytes);
        Ok(BlobRef::from_digest([7; 32]))
    }

    async fn record_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        if self.fails_to_record {
            return Err(CallFailure::new("no room"));
        }
        self.recorded_changes.lock().unwrap().extend(batch);
        Ok(())
    }
}

struct TestEnv {
    folder: tempfile::TempDir,
    runtime: ToolRuntime,
    caller: PipelineTestCaller,
}

impl TestEnv {
    fn new(rules: Value) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "a").unwrap();
        let runtime = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(PermissionRules::parse(&rules).unwrap()),
            workspace: Workspace::open(folder.path()).unwrap(),
            limits: Default::default(),
        };
        TestEnv { folder, runtime, caller: PipelineTestCaller::default() }
    }

    async fn call(&self, arguments: &str) -> CallOutcome {
        self.call_with_cancel(arguments, CancellationToken::new()).await
    }

    async fn call_with_cancel(&self, arguments: &str, cancel: CancellationToken) -> CallOutcome {
        let snapshot = self.runtime.snapshot(&StepContext::default()).await;
        self.runtime.execute(&snapshot, call(arguments), &self.caller, cancel).await
    }
}

fn call(arguments: &str) -> ToolCall {
    ToolCall {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        author: CallAuthor::Model,
        tool: "fake".into(),
        arguments: arguments.into(),
        allowed_calls: Vec::new(),
    }
}

fn read(path: &str) -> ToolAccess {
    ToolAccess::Read { path: path.into() }
}

#[tokio::test]
async fn an_undeclared_access_is_refused() {
    let env = TestEnv::new(json!("allow"));
    for tool in [
        FakeTool { reads: Some("a.txt".into()), ..FakeTool::default() },
        FakeTool {
            declared: vec![read("b.txt")],
            reads: Some("a.txt".into()),
            ..FakeTool::default()
        },
        FakeTool {
            declared: vec![read("a.txt")],
            writes: Some("a.txt".into()),
            ..FakeTool::default()
        },
    ] {
        env.runtime.registry.register(tool);
        let outcome = env.call("{}").await;
        let CallOutcome::Failed { text } = &outcome else { panic!("{outcome:?}") };
        assert!(text.contains("this call was not granted access to"), "{text}");
    }
    assert_eq!(std::fs::read_to_string(env.folder.path().join("a.txt")).unwrap(), "a");
}

/// A hook that behaves as its field says: it rewrites, denies, asks, fails or misbehaves.
struct TestHook(&'static str);

#[async_trait]
impl Hook for TestHook {
    fn name(&self) -> &str {
        "test_hook"
    }

    fn applies_to(&self, _point: HookPoint, tool: Option<&str>) -> bool {
        tool == Some("fake")
    }

    async fn run(
        &self,
        _context: &HookContext<'_>,
        payload: HookPayload,
    ) -> Result<HookReply, HookError> {
        let payload = match (self.0, payload) {
            ("rewrite", HookPayload::BeforeCall { tool, .. }) => {
                HookPayload::BeforeCall { tool, arguments: json!({"path": "secret.txt"}) }
            }
            ("break", HookPayload::BeforeCall { tool, .. }) => {
                HookPayload::BeforeCall { tool, arguments: json!({"path": 7}) }
            }
            ("rename", HookPayload::BeforeCall { arguments, .. }) => {
                HookPayload::BeforeCall { tool: "other".into(), arguments }
            }
            ("swap", HookPayload::BeforeCall { .. }) => {
                HookPayload::UserPrompt { text: "hello".into() }
            }
            ("refuse", HookPayload::BeforeCall { .. }) => {
                return Err(HookError::denied("not today"));
            }
            ("crash", HookPayload::BeforeCall { .. }) => {
                return Err(HookError::failed("exited with 1"));
            }
            ("hang", HookPayload::BeforeCall { .. }) => std::future::pending().await,
            ("ask", payload @ HookPayload::BeforeCall { .. }) => {
                return Ok(HookReply::AskUser(payload, "sure?".into()));
            }
            ("redact", HookPayload::AfterCall { tool, arguments, mut output }) => {
                output.text = output.text.replace("secret", "[redacted]");
                HookPayload::AfterCall { tool, arguments, output }
            }
            ("flood", HookPayload::AfterCall { tool, arguments, mut output }) => {
                output.text = "x".repeat(1_000_000);
                HookPayload::AfterCall { tool, arguments, output }
            }
            ("withhold", HookPayload::AfterCall { .. }) => {
                return Err(HookError::denied("it holds a key"));
            }
            ("unasked", HookPayload::PermissionAsked { .. }) => {
                return Err(HookError::denied("not allowed to ask that"));
            }
            ("lie", HookPayload::PermissionAsked { tool, accesses, .. }) => {
                HookPayload::PermissionAsked { tool, accesses, reason: "harmless".into() }
            }
            (_, payload) => payload,
        };
        Ok(HookReply::Continue(payload))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_deny_or_rewrite_but_never_grant() {
    let rules = json!({"read": {"secret.txt": "deny", "*": "allow"}});
    for (behavior, status, expected, runs) in [
        ("none", "completed", "", 1),
        ("rewrite", "denied", "secret.txt", 0),
        ("break", "failed", "`path`: expected null or string, got 7", 0),
        ("refuse", "denied", "not today", 0),
        ("hang", "denied", "did not answer in time", 0),
        ("crash", "denied", "exited with 1", 0),
        ("rename", "denied", "changed a read-only field", 0),
        ("swap", "denied", "changed a read-only field", 0),
        ("withhold", "failed", "it holds a key", 1),
    ] {
        let mut env = TestEnv::new(rules.clone());
        env.runtime.hooks.push(Arc::new(TestHook(behavior)));
        let run_count = Arc::new(AtomicUsize::new(0));
        env.runtime
            .registry
            .register(FakeTool { run_count: Arc::clone(&run_count), ..FakeTool::default() });
        let outcome = env.call(r#"{"path": "a.txt"}"#).await;
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(json["status"], status, "{behavior}: {outcome:?}");
        assert!(outcome.text().contains(expected), "{behavior}: {outcome:?}");
        assert_eq!(run_count.load(Ordering::SeqCst), runs, "{behavior}");
        assert_eq!(env.caller.intents.lock().unwrap().len(), runs, "{behavior}");
    }
}

#[tokio::test]
async fn output_is_truncated_after_hooks() {
    for (behavior, expected) in [("redact", "[redacted]"), ("flood", "bytes omitted")] {
        let mut env = TestEnv::new(json!("allow"));
        env.runtime.hooks.push(Arc::new(TestHook(behavior)));
        env.runtime.registry.register(FakeTool { text: "a secret".into(), ..FakeTool::default() });
        let outcome = env.call("{}").await;
        assert!(outcome.text().contains(expected), "{behavior}");
        assert!(outcome.text().len() < 52_000);
    }
}

#[tokio::test]
async fn a_long_output_is_stored_whole_and_truncated() {
    let env = TestEnv::new(json!("allow"));
    let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    env.runtime.registry.register(FakeTool { text: text.clone(), ..FakeTool::default() });
    let CallOutcome::Completed { output } = env.call("{}").await else { panic!() };
    assert_eq!(output.full_text, Some(BlobRef::from_digest([7; 32])));
    assert_eq!(env.caller.blobs.lock().unwrap()[0], text.as_bytes());
    assert!(output.text.starts_with("line 0\n") && output.text.ends_with("line 9999\n"));
    assert!(output.text.contains("lines, ") && output.text.contains("read or grep blob:0707"));
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_offered_is_not_run() {
    let env = TestEnv::new(json!("allow"));
    let run_count = Arc::new(AtomicUsize::new(0));
    env.runtime
        .registry
        .register(FakeTool { run_count: Arc::clone(&run_count), ..FakeTool::default() });
    let snapshot = env.runtime.snapshot(&StepContext::default()).await;
    env.runtime
        .registry
        .register(FakeTool { run_count: Arc::clone(&run_count), ..FakeTool::default() });
    let cancel = CancellationToken::new();
    let outcome = env.runtime.execute(&snapshot, call("{}"), &env.caller, cancel).await;
    assert!(matches!(&outcome, CallOutcome::Failed { text } if text.contains("has changed")));
    assert_eq!(run_count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_tool_that_is_denied_outright_is_neither_offered_nor_run() {
    let env = TestEnv::new(json!({"fake": "deny"}));
    let declared = vec![ToolAccess::UseTool { tool: "fake".into() }];
    env.runtime.registry.register(FakeTool { declared, ..FakeTool::default() });
    assert!(env.runtime.snapshot(&StepContext::default()).await.listed_summaries().is_empty());
    assert!(matches!(env.call("{}").await, CallOutcome::Denied { .. }));
}

/// A hook that denies every path but `a.txt`.
struct TestPathCheckHook;

#[async_trait]
impl Hook for TestPathCheckHook {
    fn name(&self) -> &str {
        "path_check"
    }

    fn applies_to(&self, point: HookPoint, _tool: Option<&str>) -> bool {
        point == HookPoint::BeforeTool
    }

    async fn run(
        &self,
        _context: &HookContext<'_>,
        payload: HookPayload,
    ) -> Result<HookReply, HookError> {
        match &payload {
            HookPayload::BeforeCall { arguments, .. } if *arguments == json!({"path": "a.txt"}) => {
                Ok(HookReply::Continue(payload))
            }
            other => Err(HookError::denied(format!("{other:?}"))),
        }
    }
}

#[tokio::test]
async fn a_call_is_repaired_before_hooks_run_and_the_repair_is_recorded() {
    let mut env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeTool::default());
    env.runtime.hooks.push(Arc::new(TestPathCheckHook));
    let snapshot = env.runtime.snapshot(&StepContext::default()).await;
    let misspelled = ToolCall { tool: "Fake".into(), ..call("{'Path': 'a.txt',}") };
    let cancel = CancellationToken::new();
    let outcome = env.runtime.execute(&snapshot, misspelled, &env.caller, cancel).await;
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
    let intents = env.caller.intents.lock().unwrap();
    expect_test::expect![[r#"
        the name was `Fake`
        single quotes around strings were read as double quotes
        trailing commas were removed
        `Path` was read as `path`"#]]
    .assert_eq(&intents[0].repair.as_ref().unwrap().changes.join("\n"));
}

#[tokio::test]
async fn arguments_rewritten_by_a_hook_are_recorded() {
    let mut env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeTool::default());
    env.runtime.hooks.push(Arc::new(TestHook("rewrite")));
    env.call(r#"{"path": "a.txt"}"#).await;
    let intents = env.caller.intents.lock().unwrap();
    let repair = intents[0].repair.as_ref().unwrap();
    assert_eq!(repair.arguments, r#"{"path":"secret.txt"}"#);
    assert_eq!(repair.changes, ["test_hook changed the arguments"]);
}

#[tokio::test]
async fn the_model_is_told_which_hook_changed_arguments_or_output() {
    for (behavior, expected) in [
        ("none", "a secret"),
        ("rewrite", "a secret\n[arguments changed by test_hook]"),
        ("redact", "a [redacted]\n[output changed by test_hook]"),
    ] {
        let mut env = TestEnv::new(json!("allow"));
        env.runtime.hooks.push(Arc::new(TestHook(behavior)));
        env.runtime.registry.register(FakeTool { text: "a secret".into(), ..FakeTool::default() });
        assert_eq!(env.call(r#"{"path": "a.txt"}"#).await.text(), expected, "{behavior}");
    }
    let mut env = TestEnv::new(json!("allow"));
    env.runtime.hooks.push(Arc::new(TestHook("rewrite")));
    env.runtime.registry.register(FakeTool { reads: Some(".".into()), ..FakeTool::default() });
    let outcome = env.call(r#"{"path": "a.txt"}"#).await;
    assert!(matches!(outcome, CallOutcome::Failed { .. }), "{outcome:?}");
    assert!(outcome.text().ends_with("\n[arguments changed by test_hook]"), "{outcome:?}");
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_gets_similar_names_or_all() {
    let env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeAliasTool);
    env.runtime.registry.register(FakeTool::default());
    env.runtime.registry.register(FakeInvalidTool);
    let snapshot = env.runtime.snapshot(&StepContext::default()).await;
    for (spelling, expected) in
        [("fakke", "Try one of: fake"), ("nosuch", "Try one of: alias, fake")]
    {
        let call = ToolCall { tool: spelling.into(), ..call("{}") };
        let outcome =
            env.runtime.execute(&snapshot, call, &env.caller, CancellationToken::new()).await;
        assert!(outcome.text().contains(expected), "{spelling}: {outcome:?}");
    }
}

/// A tool that answers calls of unknown tools with their error.
struct FakeInvalidTool;

#[async_trait]
impl Tool for FakeInvalidTool {
    type Input = serde_json::Map<String, Value>;

    fn name(&self) -> &str {
        windlass_toolkit::pipeline::INVALID_TOOL
    }

    fn is_offered(&self, _step: &StepContext) -> bool {
        false
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition { description: "An error.".into(), schema: json!({"type": "object"}) }
    }

    fn access(&self, _input: &Self::Input) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        Err(CallFailure::new(input["error"].as_str().unwrap()))
    }
}

#[tokio::test]
async fn a_plain_call_records_no_repairs() {
    let env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeTool::default());
    env.call(r#"{"path": "a.txt"}"#).await;
    assert!(env.caller.intents.lock().unwrap()[0].repair.is_none());
}

#[tokio::test]
async fn a_read_only_call_is_canceled_at_once() {
    let env = TestEnv::new(json!("allow"));
    env.runtime
        .registry
        .register(FakeTool { delay: Duration::from_secs(60), ..FakeTool::default() });
    let cancel = CancellationToken::new();
    let canceler = cancel.clone();
    let started = std::time::Instant::now();
    let (outcome, ()) = tokio::join!(env.call_with_cancel("{}", cancel), async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        canceler.cancel();
    });
    assert!(matches!(outcome, CallOutcome::Interrupted { .. }), "{outcome:?}");
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(120)),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_changing_call_that_does_not_stop_ends_as_unknown() {
    let env = TestEnv::new(json!("allow"));
    let declared = vec![ToolAccess::Edit { path: "a.txt".into() }];
    env.runtime.registry.register(FakeTool {
        declared,
        delay: Duration::from_secs(60),
        ..FakeTool::default()
    });
    let cancel = CancellationToken::new();
    let canceler = cancel.clone();
    let (outcome, ()) = tokio::join!(env.call_with_cancel("{}", cancel), async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        canceler.cancel();
    });
    assert_eq!(outcome, CallOutcome::ResultUnknown);
}

#[tokio::test]
async fn a_change_is_recorded_by_the_caller_before_it_is_made() {
    let env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeTool {
        declared: vec![ToolAccess::Edit { path: "a.txt".into() }],
        writes: Some("a.txt".into()),
        ..FakeTool::default()
    });
    let outcome = env.call("{}").await;
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
    let recorded_changes = env.caller.recorded_changes.lock().unwrap();
    let [change] = recorded_changes.as_slice() else { panic!("{recorded_changes:?}") };
    assert_eq!(change.path, "a.txt");
    assert_eq!(*change.before.as_ref().unwrap().bytes, *b"a");
    assert_eq!(*change.after.as_ref().unwrap().bytes, *b"written");
}

#[tokio::test]
async fn a_change_that_is_not_recorded_is_not_made() {
    let mut env = TestEnv::new(json!("allow"));
    env.caller.fails_to_record = true;
    env.runtime.registry.register(FakeTool {
        declared: vec![ToolAccess::Edit { path: "a.txt".into() }],
        writes: Some("a.txt".into()),
        ..FakeTool::default()
    });
    let outcome = env.call("{}").await;
    assert!(
        matches!(&outcome, CallOutcome::Failed { text } if text.contains("no room")),
        "{outcome:?}"
    );
    assert_eq!(std::fs::read(env.folder.path().join("a.txt")).unwrap(), b"a");
}

#[tokio::test]
async fn the_user_is_not_asked_about_a_call_that_would_fail() {
    let env = TestEnv::new(json!({}));
    env.runtime.registry.register(FakeTool {
        declared: vec![ToolAccess::Edit { path: "a.txt".into() }],
        preview_fails: true,
        ..FakeTool::default()
    });
    let outcome = env.call("{}").await;
    assert!(
        matches!(&outcome, CallOutcome::Failed { text } if text == "it does not fit"),
        "{outcome:?}"
    );
    assert!(env.caller.previews.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_failure_that_could_reveal_a_secret_is_hidden_until_approval() {
    let env = TestEnv::new(json!({}));
    env.runtime.registry.register(FakeTool {
        declared: vec![ToolAccess::Edit { path: ".env".into() }],
        preview_fails: true,
        ..FakeTool::default()
    });
    let outcome = env.call("{}").await;
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "the user was asked: {outcome:?}");
    let previews = env.caller.previews.lock().unwrap();
    let [Some(preview)] = previews.as_slice() else { panic!("{previews:?}") };
    assert!(!preview.contains("it does not fit"), "{preview}");
}

#[tokio::test]
async fn a_model_cannot_call_a_tool_that_only_the_user_is_offered() {
    let env = TestEnv::new(json!("allow"));
    let run_count = Arc::new(AtomicUsize::new(0));
    env.runtime.registry.register(FakeTool {
        hidden: true,
        run_count: Arc::clone(&run_count),
        ..FakeTool::default()
    });
    let outcome = env.call("{}").await;
    assert!(matches!(outcome, CallOutcome::Failed { .. }), "{outcome:?}");
    assert_eq!(run_count.load(Ordering::SeqCst), 0);
    let snapshot = env.runtime.snapshot(&StepContext::default()).await;
    let user_call = ToolCall { author: CallAuthor::User, ..call("{}") };
    let cancel = CancellationToken::new();
    let outcome = env.runtime.execute(&snapshot, user_call, &env.caller, cancel).await;
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn every_hook_run_is_recorded_with_verdict_and_duration() {
    for (behavior, expected) in [
        ("none", vec!["before_tool passed", "after_tool passed"]),
        ("refuse", vec!["before_tool refused"]),
        ("hang", vec!["before_tool failed"]),
        ("rewrite", vec!["before_tool rewrote", "after_tool passed"]),
        ("withhold", vec!["before_tool passed", "after_tool refused"]),
        ("ask", vec!["before_tool asks", "permission passed", "after_tool passed"]),
    ] {
        let mut env = TestEnv::new(json!("allow"));
        env.runtime.hooks.push(Arc::new(TestHook(behavior)));
        env.runtime.registry.register(FakeTool::default());
        env.call(r#"{"path": "a.txt"}"#).await;
        let hook_runs = env.caller.hook_runs.lock().unwrap();
        let verdicts: Vec<String> =
            hook_runs.iter().map(|run| format!("{} {}", run.point, run.verdict.name())).collect();
        assert_eq!(verdicts, expected, "{behavior}");
        let longest = hook_runs.iter().map(|run| run.duration).max().unwrap();
        assert_eq!(longest.as_secs(), if behavior == "hang" { 10 } else { 0 });
    }
}

#[tokio::test]
async fn a_hook_can_require_approval_for_an_allowed_call() {
    for (mode, rules, is_asked) in [
        (PermissionMode::Ask, json!("allow"), true),
        (PermissionMode::Auto, json!("allow"), true),
        (PermissionMode::Full, json!("allow"), false),
        (PermissionMode::Ask, json!({"read": "deny"}), false),
    ] {
        let mut env = TestEnv::new(rules);
        env.runtime = env.runtime.in_mode(mode);
        env.runtime.hooks.push(Arc::new(TestHook("ask")));
        env.runtime.registry.register(FakeTool::default());
        let outcome = env.call(r#"{"path": "a.txt"}"#).await;
        let intents = env.caller.intents.lock().unwrap();
        match is_asked {
            true => {
                let reason = intents[0].ask_reason.as_ref().unwrap();
                assert_eq!(reason, "the hook `test_hook` requires approval: sure?");
                assert!(
                    !intents[0].accepts_earlier_approval
                        && matches!(outcome, CallOutcome::Completed { .. })
                );
            }
            false => assert!(matches!(outcome, CallOutcome::Denied { .. }), "{outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_hook_may_deny_a_permission_request_but_not_change_it() {
    for (behavior, expected) in [("unasked", "not allowed to ask that"), ("lie", "read-only field")]
    {
        let mut env = TestEnv::new(json!({"read": "ask"}));
        env.runtime.hooks.push(Arc::new(TestHook(behavior)));
        env.runtime.registry.register(FakeTool::default());
        let outcome = env.call(r#"{"path": "a.txt"}"#).await;
        assert!(
            matches!(&outcome, CallOutcome::Denied { text } if text.contains(expected)),
            "{outcome:?}"
        );
        assert!(env.caller.intents.lock().unwrap().is_empty(), "the user was not asked");
    }
}

/// A tool whose calls are aliases of other calls.
struct FakeAliasTool;

#[derive(Deserialize, JsonSchema)]
struct FakeAliasInput {
    name: String,
    arguments: serde_json::Map<String, Value>,
}

#[async_trait]
impl Tool for FakeAliasTool {
    type Input = FakeAliasInput;

    fn name(&self) -> &str {
        "alias"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<FakeAliasInput>("An alias.")
    }

    fn access(&self, _input: &FakeAliasInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    fn alias_of(&self, input: &FakeAliasInput) -> Option<SubCall> {
        let arguments = Value::Object(input.arguments.clone()).to_string();
        Some(SubCall { tool: input.name.clone(), arguments })
    }

    async fn run(
        &self,
        _input: FakeAliasInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        panic!("an alias tool never runs");
    }
}

async fn call_through_alias(env: &TestEnv, arguments: &str) -> CallOutcome {
    let snapshot = env.runtime.snapshot(&StepContext::default()).await;
    let call = ToolCall { tool: "alias".into(), ..call(arguments) };
    env.runtime.execute(&snapshot, call, &env.caller, CancellationToken::new()).await
}

#[tokio::test]
async fn an_aliased_call_gets_the_same_decision_hooks_and_intent() {
    let rules = [json!("allow"), json!({"read": "ask"}), json!({"read": "deny"}), json!("deny")];
    for rules in rules {
        for behavior in ["none", "refuse", "ask", "rewrite", "redact", "withhold"] {
            let new_env = || {
                let mut env = TestEnv::new(rules.clone());
                env.runtime.hooks.push(Arc::new(TestHook(behavior)));
                env.runtime.registry.register(FakeAliasTool);
                let text = "a secret".into();
                env.runtime.registry.register(FakeTool { text, ..FakeTool::default() });
                env
            };
            let (plain, wrapped) = (new_env(), new_env());
            let plain_outcome = plain.call(r#"{"path": "a.txt"}"#).await;
            let arguments = r#"{"name": "fake", "arguments": {"path": "a.txt"}}"#;
            let wrapped_outcome = call_through_alias(&wrapped, arguments).await;
            if rules != json!("deny") {
                assert_eq!(plain_outcome, wrapped_outcome, "{rules} {behavior}");
            }
            let intents_without_repair = |env: &TestEnv| {
                let mut intents = env.caller.intents.lock().unwrap().clone();
                intents.iter_mut().for_each(|intent| intent.repair = None);
                intents
            };
            assert_eq!(
                intents_without_repair(&plain),
                intents_without_repair(&wrapped),
                "{rules} {behavior}"
            );
        }
    }
}

#[tokio::test]
async fn a_repaired_alias_call_keeps_the_form_of_an_alias() {
    let env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeAliasTool);
    env.runtime.registry.register(FakeTool::default());
    let arguments = r#"{"name": "Fake", "arguments": "{\"Path\": \"a.txt\"}"}"#;
    let outcome = call_through_alias(&env, arguments).await;
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
    let intents = env.caller.intents.lock().unwrap();
    let repair = intents[0].repair.as_ref().unwrap();
    assert_eq!(repair.arguments, r#"{"name":"fake","arguments":{"path":"a.txt"}}"#);
    assert!(repair.changes.len() >= 3, "{:?}", repair.changes);
}

#[tokio::test]
async fn an_invalid_alias_call_gets_an_example_in_the_form_of_an_alias() {
    let mut env = TestEnv::new(json!("allow"));
    env.runtime.hooks.push(Arc::new(TestHook("break")));
    env.runtime.registry.register(FakeAliasTool);
    env.runtime.registry.register(FakeTool::default());
    let outcome = call_through_alias(&env, r#"{"name": "fake", "arguments": {}}"#).await;
    let expected = r#"Call it again like this: alias {"name":"fake","arguments":{}}"#;
    assert!(outcome.text().ends_with(expected), "{outcome:?}");
}

#[tokio::test]
async fn an_alias_of_an_alias_is_rejected() {
    let env = TestEnv::new(json!("allow"));
    env.runtime.registry.register(FakeAliasTool);
    env.runtime.registry.register(FakeTool::default());
    let inner = r#"{"name": "fake", "arguments": {}}"#;
    for (name, arguments) in [("alias", inner), ("alias", "{}"), ("invalid", "{}"), ("gone", "{}")]
    {
        let wrapped = format!(r#"{{"name": "{name}", "arguments": {arguments}}}"#);
        let outcome = call_through_alias(&env, &wrapped).await;
        assert!(matches!(&outcome, CallOutcome::Failed { .. }), "{name}: {outcome:?}");
    }
    assert!(env.caller.intents.lock().unwrap().is_empty());
}
