//! Compaction, steering and the time limit in the driver, with HTTP and a real clock.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test prepares files and processes, and fails by panicking"
)]

mod support;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::{Engine, EngineSettings, SessionWatcher};
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    CallOutcome, Event, Fact, PermissionMode, SessionOp, StepPurpose, ToolAccess, ToolOutput,
    TurnEndReason,
};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// A tool that sleeps.
struct TestSleepTool;

#[derive(Deserialize, JsonSchema)]
struct TestSleepInput {
    ms: u64,
}

#[async_trait]
impl Tool for TestSleepTool {
    type Input = TestSleepInput;

    fn name(&self) -> &str {
        "sleep"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<TestSleepInput>("Sleeps.")
    }

    fn access(&self, _input: &TestSleepInput) -> Vec<ToolAccess> {
        vec![ToolAccess::Read { path: "a".into() }]
    }

    async fn run(
        &self,
        input: TestSleepInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        tokio::time::sleep(Duration::from_millis(input.ms)).await;
        Ok(ToolOutput { text: "slept".into(), ..ToolOutput::default() })
    }
}

struct TestEnv {
    _folder: tempfile::TempDir,
    model: ScriptedModel,
    engine: Engine,
}

impl TestEnv {
    async fn new(replies: &[&str], configure: impl FnOnce(&mut EngineSettings)) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        let runtime = support::runtime(folder.path(), support::policy("\"allow\""));
        runtime.registry.register(TestSleepTool);
        let handle = support::model_handle(&model.url(), WireFormat::OpenaiChat);
        let mut settings = EngineSettings::new("/w", Some(handle), "p/m");
        configure(&mut settings);
        let engine = Engine::new(support::log(folder.path()).await, Arc::new(runtime), settings);
        TestEnv { _folder: folder, model, engine }
    }
}

/// Adds all facts up to the end of the turn.
async fn read_turn(watcher: &mut SessionWatcher, facts: &mut Vec<Fact>) -> TurnEndReason {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap();
        let Some(event) = next.unwrap() else { panic!("the session ended") };
        let Event::Fact(record) = &*event else { continue };
        facts.push(record.fact.clone());
        if let Fact::TurnEnded { end, .. } = &record.fact {
            return end.clone();
        }
    }
}

fn last_text(request: &Value) -> String {
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[tokio::test]
async fn a_conversation_is_summarized_without_tools_and_continues_from_the_summary() {
    let env = TestEnv::new(&["say One.", "say It went well."], |_| {}).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let mut facts = Vec::new();
    assert!(handle.send(SessionOp::prompt("a very particular wish")).await);
    assert_eq!(read_turn(&mut watcher, &mut facts).await, TurnEndReason::Completed);
    assert!(handle.send(SessionOp::Compact).await);
    assert_eq!(read_turn(&mut watcher, &mut facts).await, TurnEndReason::Completed);
    assert!(handle.send(SessionOp::prompt("next")).await);
    assert_eq!(read_turn(&mut watcher, &mut facts).await, TurnEndReason::Completed);
    handle.close().await.unwrap();
    log_grammar::check_settled(&facts).unwrap();

    let requests = env.model.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].get("tools").is_some());
    assert_eq!(requests[1].get("tools"), None, "a summary request has no tools");
    assert!(last_text(&requests[1]).contains("Summarize it"), "{}", last_text(&requests[1]));
    let sent = requests[2]["messages"].to_string();
    assert!(sent.contains("It went well.") && sent.contains("a very particular wish"), "{sent}");
    assert!(!sent.contains("One."), "summarized messages are not sent: {sent}");
    let is_summary =
        |fact: &Fact| matches!(fact, Fact::ModelText { text, .. } if text == "It went well.");
    assert!(!facts.iter().any(is_summary), "a summary is not an answer");
}

#[tokio::test]
async fn a_turn_ends_at_its_time_limit() {
    let replies = [r#"call sleep {"ms": 60000}"#, "say Never."];
    let env = TestEnv::new(&replies, |settings| settings.limits.time_ms = Some(700)).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let (mut facts, started) = (Vec::new(), Instant::now());
    assert!(handle.send(SessionOp::prompt("sleep")).await);
    let end = read_turn(&mut watcher, &mut facts).await;
    assert_eq!(end, TurnEndReason::LimitReached { limit: "the limit of 0.7 s per turn".into() });
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(6)),
        "{:?}",
        started.elapsed()
    );
    let is_interrupted = |fact: &Fact| {
        matches!(fact, Fact::CallSettled { outcome: CallOutcome::Interrupted { .. }, .. })
    };
    assert!(facts.iter().any(is_interrupted), "{facts:?}");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn prompts_and_modes_sent_while_a_call_runs_are_in_the_next_request() {
    let replies = [r#"call sleep {"ms": 1500}"#, "say Both."];
    let env = TestEnv::new(&replies, |_| {}).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let mut facts = Vec::new();
    assert!(handle.send(SessionOp::prompt("sleep")).await);
    loop {
        let Some(event) = watcher.next().await.unwrap() else { panic!("the session ended") };
        let Event::Fact(record) = &*event else { continue };
        facts.push(record.fact.clone());
        if matches!(record.fact, Fact::CallStarted { .. }) {
            break;
        }
    }
    assert!(handle.send(SessionOp::prompt("and dream")).await);
    assert!(handle.send(SessionOp::SetMode { mode: PermissionMode::Plan }).await);
    assert_eq!(read_turn(&mut watcher, &mut facts).await, TurnEndReason::Completed);
    handle.close().await.unwrap();
    log_grammar::check_settled(&facts).unwrap();
    let requests = env.model.requests();
    assert_eq!(requests.len(), 2);
    let sent = requests[1]["messages"].to_string();
    assert!(sent.contains("and dream") && sent.contains("The mode is now plan"), "{sent}");
    // Earlier messages are unchanged, so that the provider's cache still applies.
    let (first, second) = (&requests[0]["messages"], &requests[1]["messages"]);
    let mut pairs = first.as_array().unwrap().iter().zip(second.as_array().unwrap());
    assert!(pairs.all(|(before, after)| before == after));
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    let is_summary_step =
        |fact: &Fact| matches!(fact, Fact::StepStarted { purpose: StepPurpose::Summary, .. });
    assert!(!facts.iter().any(is_summary_step));
}
