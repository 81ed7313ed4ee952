//! Answers to operations through the driver: after their facts are written, once, also when they
//! come again, and to the first of several clients.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test prepares files, and fails by panicking"
)]

mod support;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;
use windlass_engine::{
    Engine, EngineSettings, OpSender, SessionHandle, SessionWatcher, UnattendedPolicy,
};
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    AccessRight, ApprovalScope, CallId, ClientInfo, ClientKind, Event, Fact, FactRecord, OpError,
    OpId, OpRequest, PermissionAnswer, PermissionMode, SessionId, SessionOp, ToolAccess,
    ToolOutput,
};
use windlass_storage::{HookedLog, Log, LogWriteHook, ReleaseState, read_all};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// Argument of a call that leaves the sandbox.
const LEAVES_SANDBOX: u32 = 9;

/// A tool that requires permission by the rules of the test.
struct TestTool;

#[derive(Deserialize, JsonSchema)]
struct TestToolInput {
    number: u32,
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

    fn access(&self, input: &TestToolInput) -> Vec<ToolAccess> {
        let mut accesses = vec![ToolAccess::UseTool { tool: "test_tool".into() }];
        if input.number == LEAVES_SANDBOX {
            accesses.push(ToolAccess::LeaveSandbox { command: "make".into() });
        }
        accesses
    }

    async fn run(
        &self,
        input: TestToolInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        Ok(ToolOutput { text: input.number.to_string(), ..ToolOutput::default() })
    }
}

/// Notes the state in which a session was released last.
#[derive(Clone, Default)]
struct ReleaseHook(Arc<Mutex<Option<ReleaseState>>>);

impl LogWriteHook for ReleaseHook {
    fn before_release(&self, _session: SessionId, state: ReleaseState) {
        *self.0.lock().unwrap() = Some(state);
    }
}

struct TestEnv {
    _folder: tempfile::TempDir,
    _model: ScriptedModel,
    log: Arc<dyn Log>,
    release: ReleaseHook,
    engine: Engine,
}

impl TestEnv {
    async fn new(script: ModelScript) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(script);
        let runtime = support::runtime(folder.path(), support::policy(r#"{"test_tool": "ask"}"#));
        runtime.registry.register(TestTool);
        let handle = support::model_handle(&model.url(), WireFormat::OpenaiChat);
        let settings = EngineSettings::new("/w", Some(handle), "p/m");
        let (sqlite, release) = (support::log(folder.path()).await, ReleaseHook::default());
        let log: Arc<dyn Log> = Arc::new(HookedLog::new(sqlite, release.clone()));
        let engine = Engine::new(Arc::clone(&log), Arc::new(runtime), settings);
        TestEnv { _folder: folder, _model: model, log, release, engine }
    }

    async fn with_replies(replies: &[&str]) -> TestEnv {
        TestEnv::new(ModelScript::new(replies.iter().copied())).await
    }

    async fn records(&self, handle: &SessionHandle) -> Vec<FactRecord> {
        read_all(&*self.log, handle.session, 0).await.unwrap()
    }
}

fn client(name: &str) -> Option<OpSender> {
    Some(OpSender::local(ClientInfo { name: name.to_owned(), kind: ClientKind::Program }))
}

fn request(id: u128, op: SessionOp) -> OpRequest {
    OpRequest { id: OpId(Uuid::from_u128(id)), op }
}

/// Waits for the first fact for which `find` returns a value.
async fn wait_for<T>(watcher: &mut SessionWatcher, find: impl Fn(&FactRecord) -> Option<T>) -> T {
    let wait = async {
        loop {
            let event = watcher.next().await.unwrap().unwrap();
            if let Event::Fact(record) = &*event
                && let Some(found) = find(record)
            {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

async fn wait_for_question(watcher: &mut SessionWatcher) -> (CallId, u64) {
    wait_for(watcher, |record| match &record.fact {
        Fact::PermissionAsked { call, .. } => Some((*call, record.seq)),
        _ => None,
    })
    .await
}

async fn wait_for_turn_end(watcher: &mut SessionWatcher) -> u64 {
    wait_for(watcher, |record| matches!(record.fact, Fact::TurnEnded { .. }).then_some(record.seq))
        .await
}

#[tokio::test]
async fn a_session_that_waits_for_a_user_is_released_as_waiting() {
    let env = TestEnv::with_replies(&["call test_tool {\"number\": 1}"]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    handle.submit(request(7, SessionOp::prompt("go")), client("anna")).await.unwrap();
    wait_for_question(&mut watcher).await;
    handle.close().await.unwrap();
    assert_eq!(*env.release.0.lock().unwrap(), Some(ReleaseState::Waiting));
}

#[tokio::test]
async fn an_operation_is_answered_with_its_position_after_its_facts_are_written() {
    let env = TestEnv::with_replies(&["say Done."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let seq = handle.submit(request(7, SessionOp::prompt("go")), client("anna")).await.unwrap();
    let records = env.records(&handle).await;
    assert!(records.len() as u64 >= seq, "acknowledged before it was written");
    let prompt = records.iter().find(|record| record.fact.kind() == "prompt_submitted").unwrap();
    let origin = prompt.origin.as_ref().unwrap();
    assert_eq!((origin.op, origin.client.name.as_str()), (OpId(Uuid::from_u128(7)), "anna"));
    assert!(
        matches!(&prompt.fact, Fact::PromptSubmitted { prompt, .. } if prompt.0.as_u128() == 7)
    );
    let end = wait_for_turn_end(&mut watcher).await;
    let records = env.records(&handle).await;
    let has_origin = |record: &&FactRecord| record.origin.is_some();
    let last = records.iter().filter(has_origin).map(|record| record.seq).max().unwrap();
    assert!(last <= seq && seq < end, "facts of the model have no origin: {last} {seq} {end}");
}

#[tokio::test]
async fn an_operation_that_comes_again_is_not_carried_out_again() {
    let env = TestEnv::with_replies(&["say One.", "say Two."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let prompt = request(7, SessionOp::prompt("go"));
    let refused = request(8, SessionOp::EndJob { job: 3 });
    let (first, again) = tokio::join!(
        handle.submit(prompt.clone(), client("anna")),
        handle.submit(prompt.clone(), client("anna")),
    );
    assert_eq!(first, again);
    let reason = handle.submit(refused.clone(), client("anna")).await;
    assert!(matches!(reason, Err(OpError::Gone { .. })), "{reason:?}");
    assert_eq!(handle.submit(refused, client("anna")).await, reason);
    wait_for_turn_end(&mut watcher).await;
    let session = handle.session;
    handle.close().await.unwrap();

    // Also by a client that missed the answer of an earlier process.
    let (handle, _watcher) = env.engine.open(session).await.unwrap();
    assert_eq!(handle.submit(prompt, client("anna")).await, first);
    let records = env.records(&handle).await;
    let prompts = records.iter().filter(|record| record.fact.kind() == "prompt_submitted").count();
    assert_eq!(prompts, 1);
    handle.close().await.unwrap();
    assert_eq!(handle.submit(request(9, SessionOp::Compact), None).await, Err(OpError::Stopped));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_clients_the_first_answer_counts() {
    answer_with_two_clients(50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: `cargo xtask soak`"]
async fn of_two_clients_the_first_answer_counts_in_a_thousand_rounds() {
    answer_with_two_clients(1_000).await;
}

/// Lets two clients answer at once; each round is a turn with one question.
async fn answer_with_two_clients(rounds: u32) {
    let requests = AtomicU32::new(0);
    let script = ModelScript::endless(move |_| match requests.fetch_add(1, Ordering::SeqCst) {
        number if number % 2 == 0 => format!("call test_tool {{\"number\": {number}}}"),
        _ => "say Done.".to_owned(),
    });
    let env = TestEnv::new(script).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    for round in 0..rounds {
        assert!(handle.send(SessionOp::prompt("go")).await);
        let (call, asked) = wait_for_question(&mut watcher).await;
        let answers = ["anna", "ben"].map(|name| {
            let op = SessionOp::AnswerPermission {
                call,
                answer: PermissionAnswer::Once,
                asked: Some(asked),
            };
            let (handle, id) = (handle.clone(), u128::from(round) * 2 + u128::from(name == "ben"));
            tokio::spawn(async move { handle.submit(request(id + 100, op), client(name)).await })
        });
        let [anna, ben] = answers;
        let (anna, ben) = (anna.await.unwrap(), ben.await.unwrap());
        let (winner, refused) = match (&anna, &ben) {
            (Ok(_), Err(error)) => ("anna", error),
            (Err(error), Ok(_)) => ("ben", error),
            both => panic!("not exactly one answer counts: {both:?}"),
        };
        let OpError::AlreadyAnswered { by: Some(by), seq } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(by.name, winner);
        let answer = wait_for(&mut watcher, |record| {
            matches!(record.fact, Fact::PermissionAnswered { .. }).then(|| record.clone())
        })
        .await;
        assert_eq!((answer.seq, &answer.origin.unwrap().client), (*seq, by));
        wait_for_turn_end(&mut watcher).await;
    }
    let log = env.records(&handle).await;
    log_grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
    let answers = log.iter().filter(|record| record.fact.kind() == "permission_answered").count();
    assert_eq!(answers as u32, rounds);
    handle.close().await.unwrap();
}

async fn settled_text(watcher: &mut SessionWatcher) -> String {
    wait_for(watcher, |record| match &record.fact {
        Fact::CallSettled { outcome, .. } => Some(outcome.text().to_owned()),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn without_a_user_a_question_is_declined_or_waits() {
    let call = "call test_tool {\"number\": 1}";
    let env = TestEnv::with_replies(&[call, "say Done.", call, "say Done."]).await;
    let advice = "Add a rule.".to_owned();
    let denying = env.engine.with_unattended(UnattendedPolicy::Deny { advice });
    let (handle, mut watcher) = denying.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    let answer = wait_for(&mut watcher, |record| match &record.fact {
        Fact::PermissionAnswered { answer, .. } => Some((answer.clone(), record.origin.clone())),
        _ => None,
    })
    .await;
    let (PermissionAnswer::Unavailable { hint }, None) = answer else { panic!("{answer:?}") };
    assert!(hint.starts_with("It needs approval because ") && hint.ends_with(". Add a rule."));
    assert!(settled_text(&mut watcher).await.contains("Add a rule."));
    wait_for_turn_end(&mut watcher).await;

    // A user who comes is asked, and the question of one who leaves is declined.
    let anna = handle.attend();
    let ben = handle.attend();
    assert!(handle.send(SessionOp::prompt("go")).await);
    wait_for_question(&mut watcher).await;
    drop(anna);
    let nothing = tokio::time::timeout(Duration::from_millis(300), settled_text(&mut watcher));
    assert!(nothing.await.is_err(), "one user is still present");
    drop(ben);
    assert!(settled_text(&mut watcher).await.contains("Add a rule."));
    handle.close().await.unwrap();
}

#[tokio::test]
async fn by_default_a_question_waits_for_a_user() {
    let env = TestEnv::with_replies(&["call test_tool {\"number\": 1}", "say Done."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    let (call, asked) = wait_for_question(&mut watcher).await;
    let nothing = tokio::time::timeout(Duration::from_millis(300), settled_text(&mut watcher));
    assert!(nothing.await.is_err());
    let op =
        SessionOp::AnswerPermission { call, answer: PermissionAnswer::Once, asked: Some(asked) };
    handle.submit(request(7, op), client("anna")).await.unwrap();
    assert_eq!(settled_text(&mut watcher).await, "1");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn only_a_client_with_all_rights_lets_a_call_leave_the_sandbox() {
    let call = format!("call test_tool {{\"number\": {LEAVES_SANDBOX}}}");
    let replies = [call.as_str(), call.as_str(), "call test_tool {\"number\": 1}", "say Done."];
    let env = TestEnv::with_replies(&replies).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    let with_right = |right| client("anna").map(|sender| OpSender { right, ..sender });
    let answers = [
        PermissionAnswer::Once,
        PermissionAnswer::Session,
        PermissionAnswer::Kind { scope: ApprovalScope::Project },
    ];
    let (first, asked) = wait_for_question(&mut watcher).await;
    let needs = AccessRight::Admin;
    for (id, answer) in (100..).step_by(2).zip(answers) {
        for (id, asked) in [(id, Some(asked)), (id + 1, None)] {
            let op = SessionOp::AnswerPermission { call: first, answer: answer.clone(), asked };
            let reply = handle.submit(request(id, op), with_right(AccessRight::Write)).await;
            assert_eq!(reply, Err(OpError::Forbidden { needs }));
        }
    }
    // Everybody may deny it, and approve what stays inside.
    let answer = |call, answer| SessionOp::AnswerPermission { call, answer, asked: None };
    let no = PermissionAnswer::No { reason: Some("Stay inside.".to_owned()) };
    handle.submit(request(200, answer(first, no)), with_right(AccessRight::Write)).await.unwrap();
    let (second, _) = wait_for_question(&mut watcher).await;
    let yes = || PermissionAnswer::Once;
    handle.submit(request(201, answer(second, yes())), client("anna")).await.unwrap();
    assert_eq!(settled_text(&mut watcher).await, LEAVES_SANDBOX.to_string());
    let (third, _) = wait_for_question(&mut watcher).await;
    handle
        .submit(request(202, answer(third, yes())), with_right(AccessRight::Write))
        .await
        .unwrap();
    wait_for_turn_end(&mut watcher).await;
    handle.close().await.unwrap();
}

#[tokio::test]
async fn only_a_client_with_all_rights_raises_the_mode_above_that_of_the_config() {
    let env = TestEnv::with_replies(&["say Hello."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    wait_for_turn_end(&mut watcher).await;
    let with_right = |right| client("anna").map(|sender| OpSender { right, ..sender });
    let mut id = 300;
    let mut set = async |mode, right| {
        id += 1;
        handle.submit(request(id, SessionOp::SetMode { mode }), with_right(right)).await
    };
    let forbidden = Err(OpError::Forbidden { needs: AccessRight::Admin });
    for mode in [PermissionMode::Auto, PermissionMode::Full] {
        assert_eq!(set(mode, AccessRight::Write).await, forbidden, "{mode}");
    }
    set(PermissionMode::Plan, AccessRight::Write).await.unwrap();
    set(PermissionMode::Ask, AccessRight::Write).await.unwrap();
    set(PermissionMode::Full, AccessRight::Admin).await.unwrap();
    handle.close().await.unwrap();
}
