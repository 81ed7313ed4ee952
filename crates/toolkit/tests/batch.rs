//! Tests of batches: hooks, rules and limits apply to each call as if it were made alone.
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
use serde_json::json;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, HookPoint, PermissionAnswer, SessionId, ToolAccess, ToolOutput,
};
use windlass_sandbox::Workspace;
use windlass_toolkit::{
    CallContext, CallFailure, CallIntent, Hook, HookContext, HookError, HookPayload, HookReply,
    PermissionReply, Registry, StepContext, SubCall, Tool, ToolCall, ToolCaller, ToolDefinition,
    ToolRuntime,
};

/// A batch tool that calls `FakeTool` once for each path.
struct FakeBatchTool;

#[derive(Deserialize, JsonSchema)]
struct FakeBatchInput {
    paths: Vec<String>,
}

#[async_trait]
impl Tool for FakeBatchTool {
    type Input = FakeBatchInput;

    fn name(&self) -> &str {
        "bundle"
    }

    fn allows_batching(&self) -> bool {
        false
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<FakeBatchInput>("A bundle.")
    }

    fn access(&self, _input: &FakeBatchInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    fn sub_calls(&self, input: &FakeBatchInput) -> Option<Vec<SubCall>> {
        let sub_call = |path: &String| SubCall {
            tool: "fake".into(),
            arguments: json!({"path": path}).to_string(),
        };
        Some(input.paths.iter().map(sub_call).collect())
    }

    async fn run(
        &self,
        _input: FakeBatchInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        panic!("a batch tool does not run by itself");
    }
}

/// A tool that declares a read of its path, or an edit if the path begins with `+`.
struct FakeTool;

#[derive(Deserialize, JsonSchema)]
struct FakePathInput {
    path: String,
}

#[async_trait]
impl Tool for FakeTool {
    type Input = FakePathInput;

    fn name(&self) -> &str {
        "fake"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<FakePathInput>("A fake tool.")
    }

    fn access(&self, input: &FakePathInput) -> Vec<ToolAccess> {
        vec![match input.path.strip_prefix('+') {
            Some(path) => ToolAccess::Edit { path: path.into() },
            None => ToolAccess::Read { path: input.path.clone() },
        }]
    }

    async fn run(
        &self,
        input: FakePathInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        match input.path.as_str() {
            "slow" => cx.cancel.cancelled().await,
            "fails" => return Err(CallFailure::new("it failed")),
            _ => {}
        }
        let text =
            format!("{}\n", input.path).repeat(if input.path == "long" { 50_000 } else { 1 });
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// A hook that denies one path and replaces another one.
struct TestHook;

#[async_trait]
impl Hook for TestHook {
    fn name(&self) -> &str {
        "test_hook"
    }

    fn applies_to(&self, point: HookPoint, _tool: Option<&str>) -> bool {
        matches!(point, HookPoint::BeforeTool | HookPoint::AfterTool)
    }

    async fn run(
        &self,
        _context: &HookContext<'_>,
        payload: HookPayload,
    ) -> Result<HookReply, HookError> {
        let payload = match payload {
            HookPayload::BeforeCall { tool, arguments } => match arguments["path"].as_str() {
                Some("refused") => return Err(HookError::denied("not this one")),
                Some("turned") => {
                    HookPayload::BeforeCall { tool, arguments: json!({"path": "closed"}) }
                }
                Some(_) | None => {
                    assert!(tool == "fake" || tool == "bundle");
                    HookPayload::BeforeCall { tool, arguments }
                }
            },
            HookPayload::AfterCall { tool, arguments, mut output } => {
                if output.text == "withheld\n" {
                    return Err(HookError::denied("not for you"));
                }
                if tool == "fake" {
                    assert!(arguments["path"].is_string());
                    output.text = format!("seen {}", output.text);
                }
                HookPayload::AfterCall { tool, arguments, output }
            }
            other => other,
        };
        Ok(HookReply::Continue(payload))
    }
}

#[derive(Default)]
struct BatchTestCaller(Mutex<Vec<CallIntent>>);

#[async_trait]
impl ToolCaller for BatchTestCaller {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        let asks = intent.ask_reason.is_some();
        self.0.lock().unwrap().push(intent);
        if asks {
            PermissionReply::ShowPreview
        } else {
            PermissionReply::Answer(PermissionAnswer::Once)
        }
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        PermissionAnswer::Once
    }
}

async fn run_batch(paths: &[&str], cancel: CancellationToken) -> (CallOutcome, Option<CallIntent>) {
    let folder = tempfile::tempdir().unwrap();
    let rules = json!({"read": {"*": "allow", "closed": "deny"}});
    let runtime = ToolRuntime {
        registry: Registry::default(),
        hooks: vec![Arc::new(TestHook)],
        policy: Policy::new(PermissionRules::parse(&rules).unwrap()),
        workspace: Workspace::open(folder.path()).unwrap(),
        limits: Default::default(),
    };
    runtime.registry.register(FakeBatchTool);
    runtime.registry.register(FakeTool);
    let call = ToolCall {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        author: CallAuthor::Model,
        tool: "bundle".into(),
        arguments: json!({"paths": paths}).to_string(),
        allowed_calls: Vec::new(),
    };
    let caller = BatchTestCaller::default();
    let snapshot = runtime.snapshot(&StepContext::default()).await;
    let outcome = runtime.execute(&snapshot, call, &caller, cancel).await;
    let intent = caller.0.lock().unwrap().pop();
    (outcome, intent)
}

#[tokio::test]
async fn hooks_and_rules_apply_to_every_call() {
    let paths = ["a", "refused", "turned", "closed", "withheld", "fails", "b"];
    let (outcome, intent) = run_batch(&paths, CancellationToken::new()).await;
    let CallOutcome::Completed { output } = &outcome else { panic!("{outcome:?}") };
    let sections: Vec<&str> = output.text.split("\n\n[").collect();
    let sections: Vec<&str> =
        sections.into_iter().filter(|section| !section.starts_with("output changed")).collect();
    assert_eq!(sections.len(), paths.len(), "{}", output.text);
    for (section, expected) in sections.iter().zip([
        "done]\nseen a",
        "not this one",
        "denies it",
        "denies it",
        "withheld its result: not for you",
        "failed]\nit failed",
        "done]\nseen b",
    ]) {
        assert!(section.contains(expected), "{section}\n{expected}");
    }
    let intent = intent.unwrap();
    let subjects: Vec<&str> = intent.accesses.iter().map(ToolAccess::subject).collect();
    assert_eq!(subjects, ["a", "withheld", "fails", "b"], "denied files are not granted");
    assert!(intent.read_only);
    assert!(!output.text.contains("seen closed"));
}

#[tokio::test]
async fn a_batch_with_an_edit_is_not_read_only() {
    let (_, intent) = run_batch(&["a", "+b", "a"], CancellationToken::new()).await;
    let intent = intent.unwrap();
    assert!(!intent.read_only);
    assert_eq!(intent.accesses.len(), 2, "each access is listed once: {:?}", intent.accesses);
    assert!(intent.ask_reason.is_some());
}

#[tokio::test]
async fn an_interrupt_stops_the_remaining_calls() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let (outcome, ()) = tokio::join!(run_batch(&["+a", "slow", "b"], cancel), async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.cancel();
    });
    let CallOutcome::Completed { output } = &outcome.0 else { panic!("{outcome:?}") };
    assert!(output.text.contains("3 of 3: fake, failed]\nInterrupted"), "{}", output.text);
}

#[tokio::test]
async fn a_long_result_is_truncated_and_the_others_are_kept() {
    let (outcome, _) = run_batch(&["long", "a", "long"], CancellationToken::new()).await;
    let CallOutcome::Completed { output } = &outcome else { panic!("{outcome:?}") };
    assert!(output.text.len() < 60_000, "{}", output.text.len());
    assert!(output.text.contains("seen a"));
}
