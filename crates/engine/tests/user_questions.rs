//! User questions and to-do lists with the driver, a log on disk and a scripted model.
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
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Engine, EngineSettings, SessionWatcher};
use windlass_llm::wire_format::WireFormat;
use windlass_permission::Policy;
use windlass_protocol::todo_list::{TodoItem, TodoPriority, TodoStatus};
use windlass_protocol::{
    CallId, CallOutcome, Event, Fact, PermissionMode, QuestionOption, SessionOp, ToolAccess,
    ToolOutput, TurnEndReason, UserQuestion,
};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{
    CallContext, CallFailure, QuestionEffect, StepContext, Tool, ToolDefinition,
};

/// A tool whose input selects its behavior: `ask`, `plan_exit`, `mode`, `write` or `read`.
struct TestTool;

#[derive(Deserialize, JsonSchema)]
struct TestToolInput {
    action: String,
}

#[async_trait]
impl Tool for TestTool {
    type Input = TestToolInput;

    fn name(&self) -> &str {
        "test_tool"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<TestToolInput>("A test tool.")
    }

    fn access(&self, _input: &TestToolInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: TestToolInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let option =
            |label: &str| QuestionOption { label: label.into(), description: String::new() };
        let question = UserQuestion {
            header: "Plan".into(),
            question: "Go on?".into(),
            options: ["full", "auto", "no"].map(option).into(),
            allow_multiple: false,
            allow_custom: false,
            asker: None,
            is_permission: false,
        };
        let mut output = ToolOutput::default();
        output.text = match input.action.as_str() {
            "ask" => {
                format!("{:?}", cx.caller.ask_user(vec![question], QuestionEffect::None).await?)
            }
            "plan_exit" => {
                format!("{:?}", cx.caller.ask_user(vec![question], QuestionEffect::SetMode).await?)
            }
            "write" => {
                let todo = TodoItem {
                    content: "dig".into(),
                    status: TodoStatus::Pending,
                    priority: TodoPriority::Low,
                };
                output.todos = Some(vec![todo]);
                "saved".into()
            }
            "read" => format!("{:?}", cx.caller.todos()),
            _ => cx.world.mode().to_string(),
        };
        Ok(output)
    }
}

struct TestEnv {
    _folder: tempfile::TempDir,
    _model: ScriptedModel,
    engine: Engine,
}

impl TestEnv {
    async fn new(policy: Policy, replies: &[&str]) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        let runtime = support::runtime(folder.path(), policy);
        runtime.registry.register(TestTool);
        let handle = support::model_handle(&model.url(), WireFormat::OpenaiChat);
        let settings = EngineSettings::new("/w", Some(handle), "p/m");
        let engine = Engine::new(support::log(folder.path()).await, Arc::new(runtime), settings);
        TestEnv { _folder: folder, _model: model, engine }
    }
}

/// Returns the facts up to the first one that matches.
async fn facts_until(watcher: &mut SessionWatcher, matches: impl Fn(&Fact) -> bool) -> Vec<Fact> {
    let mut facts = Vec::new();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await;
        let Some(event) = event.unwrap().unwrap() else { panic!("the session ended: {facts:?}") };
        if let Event::Fact(record) = &*event {
            facts.push(record.fact.clone());
            if matches(&record.fact) {
                return facts;
            }
        }
    }
}

fn asking_call(facts: &[Fact]) -> CallId {
    match facts.last() {
        Some(Fact::QuestionAsked { call, .. }) => *call,
        other => panic!("{other:?}"),
    }
}

fn outcomes(facts: &[Fact]) -> Vec<String> {
    let settled = facts.iter().filter_map(|fact| match fact {
        Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } => {
            Some(output.text.clone())
        }
        _ => None,
    });
    settled.collect()
}

fn is_question(fact: &Fact) -> bool {
    matches!(fact, Fact::QuestionAsked { .. })
}

fn is_turn_end(fact: &Fact) -> bool {
    matches!(fact, Fact::TurnEnded { .. })
}

#[tokio::test]
async fn a_question_left_open_by_a_crash_is_asked_again_and_its_answer_kept() {
    let env =
        TestEnv::new(Policy::default(), &["call test_tool {\"action\": \"ask\"}", "say Done."])
            .await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    handle.send(SessionOp::prompt("go")).await;
    let mut log = facts_until(&mut watcher, is_question).await;
    let session = handle.session;
    handle.close().await.unwrap();

    let (handle, mut watcher) = env.engine.open(session).await.unwrap();
    log.extend(facts_until(&mut watcher, is_question).await);
    let call = asking_call(&log);
    handle
        .send(SessionOp::AnswerQuestion {
            call,
            answers: vec![vec!["nonsense".into()]],
            asked: None,
        })
        .await;
    handle
        .send(SessionOp::AnswerQuestion { call, answers: vec![vec!["auto".into()]], asked: None })
        .await;
    log.extend(facts_until(&mut watcher, is_turn_end).await);
    handle.close().await.unwrap();
    assert_eq!(outcomes(&log), ["[[\"auto\"]]"]);
    log_grammar::check_settled(&log).unwrap();
}

#[tokio::test]
async fn an_interrupt_ends_a_question_at_once() {
    let env = TestEnv::new(Policy::default(), &["call test_tool {\"action\": \"ask\"}"]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    handle.send(SessionOp::prompt("go")).await;
    let mut log = facts_until(&mut watcher, is_question).await;
    handle.send(SessionOp::Interrupt { turn: None }).await;
    log.extend(facts_until(&mut watcher, is_turn_end).await);
    assert!(matches!(log.last(), Some(Fact::TurnEnded { end: TurnEndReason::Interrupted, .. })));
    handle.close().await.unwrap();
}

#[tokio::test]
async fn calls_after_an_approved_plan_run_in_the_new_mode_up_to_the_max_mode() {
    let policy =
        Policy::default().with_mode(PermissionMode::Plan).with_max_mode(PermissionMode::Auto);
    let env = TestEnv::new(
        policy,
        &[
            "call test_tool {\"action\": \"mode\"}",
            "call test_tool {\"action\": \"plan_exit\"}",
            "call test_tool {\"action\": \"mode\"}",
            "say Done.",
            "call test_tool {\"action\": \"mode\"}",
            "say Done.",
        ],
    )
    .await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    handle.send(SessionOp::prompt("go")).await;
    let mut log = facts_until(&mut watcher, is_question).await;
    handle
        .send(SessionOp::AnswerQuestion {
            call: asking_call(&log),
            answers: vec![vec!["full".into()]],
            asked: None,
        })
        .await;
    log.extend(facts_until(&mut watcher, is_turn_end).await);
    assert_eq!(outcomes(&log), ["plan", "[[\"full\"]]", "auto"]);
    let session = handle.session;
    handle.close().await.unwrap();

    // The mode also applies when the session is opened again.
    let (handle, mut watcher) = env.engine.open(session).await.unwrap();
    handle.send(SessionOp::prompt("again")).await;
    let log = facts_until(&mut watcher, is_turn_end).await;
    assert_eq!(outcomes(&log), ["auto"]);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_todo_list_is_kept_for_later_calls_and_after_the_session_is_opened_again() {
    let env = TestEnv::new(
        Policy::default(),
        &[
            "call test_tool {\"action\": \"read\"}",
            "call test_tool {\"action\": \"write\"}",
            "call test_tool {\"action\": \"read\"}",
            "say Done.",
            "call test_tool {\"action\": \"read\"}",
            "say Done.",
        ],
    )
    .await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    handle.send(SessionOp::prompt("go")).await;
    let first = outcomes(&facts_until(&mut watcher, is_turn_end).await);
    assert_eq!(first[0], "[]");
    assert!(first[2].contains("dig"), "{first:?}");
    let session = handle.session;
    handle.close().await.unwrap();
    let (handle, mut watcher) = env.engine.open(session).await.unwrap();
    handle.send(SessionOp::prompt("again")).await;
    let second = outcomes(&facts_until(&mut watcher, is_turn_end).await);
    assert_eq!(second, [first[2].clone()]);
    handle.close().await.unwrap();
}
