//! Queries about sessions, rewinds and withdrawn prompts, with SQLite, HTTP and a workspace.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test prepares files and processes, and fails by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_engine::{
    Engine, EngineSettings, ForkPoint, ModelHandle, ModelResolver, SessionHandle, SessionWatcher,
};
use windlass_llm::catalog::Model as CatalogModel;
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    Event, Fact, FactRecord, Fault, ParentCall, PromptDelivery, PromptHistoryRow, PromptId,
    QueryReply, SessionId, SessionOp, SessionQuery, TurnEndReason, UnixMillis,
};
use windlass_storage::{Log, SqliteLog, read_all};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};

struct TestEnv {
    folder: tempfile::TempDir,
    model: ScriptedModel,
    log: Arc<SqliteLog>,
    engine: Engine,
}

impl TestEnv {
    async fn new(replies: &[&str]) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        let runtime = support::runtime(folder.path(), support::policy("\"allow\""));
        let settings = EngineSettings::new("/w", Some(model_handle(&model, "m", 100_000)), "p/m");
        let log = support::log(folder.path()).await;
        let engine = Engine::new(Arc::clone(&log) as Arc<dyn Log>, Arc::new(runtime), settings);
        TestEnv { folder, model, log, engine }
    }

    fn workspace(&self) -> String {
        self.folder.path().canonicalize().unwrap().display().to_string()
    }

    async fn prompts(
        &self,
        session: Option<SessionId>,
        limit: Option<u32>,
    ) -> Vec<PromptHistoryRow> {
        match self.engine.query(SessionQuery::Prompts { session, limit }).await.unwrap() {
            QueryReply::Prompts { prompts } => prompts,
            other => panic!("{other:?}"),
        }
    }

    /// Writes the log of a session that starts at `start_ms`.
    async fn write_session(
        &self,
        number: u128,
        parent: Option<ParentCall>,
        turns: u32,
        start_ms: u64,
    ) {
        let session = SessionId(Uuid::from_u128(number));
        let claim = self.log.claim(session).await.unwrap();
        let opened = Fact::SessionOpened {
            workspace: self.workspace(),
            version: "0".into(),
            agent: "build".into(),
            parent,
        };
        let mut head = self.log.append(&claim, 0, UnixMillis(start_ms), &[opened]).await.unwrap();
        for turn in 1..=turns {
            let prompt = PromptId(Uuid::from_u128(number * 1_000_000 + u128::from(turn)));
            let mut facts = vec![
                Fact::PromptSubmitted {
                    prompt,
                    text: format!("prompt {turn} of {number}"),
                    attachments: Vec::new(),
                    delivery: PromptDelivery::Steer,
                    settings: Default::default(),
                },
                Fact::TurnStarted { turn, prompt: Some(prompt) },
            ];
            facts.extend(
                (0..20).map(|_| Fact::ModelText {
                    text: "word ".repeat(50),
                    provider_signature: None,
                }),
            );
            facts.push(Fact::TurnEnded { turn, end: TurnEndReason::Completed });
            let at = UnixMillis(start_ms + u64::from(turn));
            head = self.log.append(&claim, head, at, &facts).await.unwrap();
        }
    }
}

fn model_handle(model: &ScriptedModel, name: &str, context: u64) -> ModelHandle {
    let mut handle = support::model_handle(&model.url(), WireFormat::OpenaiChat);
    let mut catalog_model = CatalogModel {
        context: Some(context),
        output: Some(1_000),
        ..CatalogModel::unlisted(name)
    };
    (catalog_model.price.input, catalog_model.price.output) = (Some(1.0), Some(2.0));
    handle.model = Arc::new(catalog_model);
    handle
}

async fn next(watcher: &mut SessionWatcher) -> Arc<Event> {
    tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap().unwrap().unwrap()
}

async fn run_turn(
    handle: &SessionHandle,
    watcher: &mut SessionWatcher,
    text: &str,
) -> TurnEndReason {
    assert!(handle.send(SessionOp::prompt(text)).await);
    loop {
        if let Event::Fact(record) = &*next(watcher).await
            && let Fact::TurnEnded { end, .. } = &record.fact
        {
            return end.clone();
        }
    }
}

/// Sends an operation, and returns why it was refused.
async fn refusal(handle: &SessionHandle, op: SessionOp) -> String {
    handle.queue_op(op, None).await.await.unwrap().unwrap_err().to_string()
}

#[tokio::test]
async fn the_user_rewinds_to_a_prompt_and_sends_another() {
    let env = TestEnv::new(&["say One.", "say Two."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    run_turn(&handle, &mut watcher, "first").await;
    run_turn(&handle, &mut watcher, "second").await;
    let rows = env.prompts(Some(handle.session), None).await;
    let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts, ["second", "first"]);
    assert_eq!(rows[1].rewind_to, Some(1), "only the opening precedes the first prompt");
    let to = rows[0].rewind_to.unwrap();

    // A rewind into a turn or past the end of the log is rejected.
    for invalid in [0, to + 2, 10_000] {
        let refused = refusal(&handle, SessionOp::Rewind { to: invalid }).await;
        assert!(refused.contains("no turn starts at that position"));
    }
    handle.send(SessionOp::Rewind { to }).await;
    run_turn(&handle, &mut watcher, "another second").await;
    let request = env.model.requests().last().unwrap().to_string();
    assert!(request.contains("another second") && request.contains("One."), "{request}");
    assert!(!request.contains("\"second\""), "{request}");

    let rows = env.prompts(Some(handle.session), None).await;
    assert_eq!(rows[1].text, "second");
    assert_eq!(rows[1].rewind_to, None, "the prompt was rewound");
    assert!(rows[0].rewind_to.is_some() && rows[2].rewind_to == Some(1));
    handle.close().await.unwrap();
    let log = read_all(&*env.log, rows[0].session, 0).await.unwrap();
    log_grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
}

#[tokio::test]
async fn a_queued_prompt_can_be_withdrawn_and_a_read_one_cannot() {
    let env = TestEnv::new(&["late 800\nsay One.", "say Two."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    handle.send(SessionOp::prompt("first")).await;
    let (text, attachments, delivery) = ("later".to_owned(), Vec::new(), PromptDelivery::Queue);
    let settings = Default::default();
    handle.send(SessionOp::Prompt { text, attachments, delivery, settings }).await;
    let mut prompts = Vec::new();
    while prompts.len() < 2 {
        if let Event::Fact(record) = &*next(&mut watcher).await
            && let Fact::PromptSubmitted { prompt, .. } = &record.fact
        {
            prompts.push(*prompt);
        }
    }
    let withdrawn = refusal(&handle, SessionOp::WithdrawPrompt { prompt: prompts[0] }).await;
    assert!(withdrawn.contains("has already read"));
    assert!(refusal(&handle, SessionOp::Rewind { to: 1 }).await.contains("turn is running"));
    handle.send(SessionOp::WithdrawPrompt { prompt: prompts[1] }).await;
    loop {
        if let Event::Fact(record) = &*next(&mut watcher).await
            && matches!(record.fact, Fact::TurnEnded { .. })
        {
            break;
        }
    }
    let session = handle.session;
    handle.close().await.unwrap();
    let log = read_all(&*env.log, session, 0).await.unwrap();
    log_grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
    assert_eq!(env.model.requests().len(), 1, "the withdrawn prompt was not sent");
    let rows = env.prompts(Some(session), None).await;
    assert_eq!(rows.len(), 2, "withdrawn prompts are listed");
    assert_eq!(rows[0].rewind_to, None, "no turn started with it");
}

#[tokio::test]
async fn a_model_change_applies_from_the_next_step_with_its_window_and_price() {
    let env = TestEnv::new(&["say One.", "say Two.", "say Three."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    run_turn(&handle, &mut watcher, "first").await;
    let other = model_handle(&env.model, "other", 50_000);
    let op = SessionOp::SetModel { model: "q/other".into(), effort: Some("high".into()) };
    assert!(refusal(&handle, op.clone()).await.contains("not available"));
    let known = other.clone();
    let resolver: ModelResolver =
        Arc::new(move |name: &str, effort: Option<&str>| match (name, effort) {
            ("q/other", Some("high")) => Ok(known.clone()),
            _ => Err(Fault::Config { message: format!("no model {name}") }),
        });
    assert!(handle.replace_models(Arc::clone(&resolver)).await);
    assert!(handle.send(op).await);
    run_turn(&handle, &mut watcher, "second").await;
    let session = handle.session;
    handle.close().await.unwrap();
    let log = read_all(&*env.log, session, 0).await.unwrap();
    let models: Vec<&str> = log
        .iter()
        .filter_map(|record| match &record.fact {
            Fact::StepStarted { model, .. } => Some(model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(models, ["p/m", "q/other"]);
    let requests = env.model.requests();
    assert_eq!(requests[1]["model"], "other");
    assert!(requests[1].to_string().contains("One."), "the conversation continues");

    // An engine with another model reports its context window.
    let window = async |engine: &Engine| match engine.query(SessionQuery::Context { session }).await
    {
        Ok(QueryReply::Context { context_window, output_reserve, parts }) => {
            (context_window, output_reserve, parts)
        }
        other => panic!("{other:?}"),
    };
    // A process that does not have the model gives the conversation to no other one.
    let (first, _, parts) = window(&env.engine).await;
    assert_eq!(first, None);
    let (handle, mut watcher) = env.engine.open(session).await.unwrap();
    let end = run_turn(&handle, &mut watcher, "elsewhere").await;
    let TurnEndReason::Failed { fault } = end else { panic!("{end:?}") };
    assert!(fault.to_string().contains("q/other is not available"), "{fault}");
    assert_eq!(env.model.requests().len(), 2);
    handle.close().await.unwrap();
    // The session keeps its model when it is opened by another process that has it.
    let engine = env.engine.with_models(model_handle(&env.model, "m", 100_000), "p/m", resolver);
    assert_eq!(window(&engine).await.0, Some(50_000));
    let (handle, mut watcher) = engine.open(session).await.unwrap();
    assert_eq!(handle.activity().borrow().model.as_ref().unwrap().model, "q/other");
    // So does a fork of a turn from before the model was chosen.
    let fork = engine.fork(session, ForkPoint::Turn(1)).await.unwrap();
    let facts = read_all(&*env.log, fork, 0).await.unwrap();
    let is_choice = |record: &&FactRecord| matches!(record.fact, Fact::ModelChanged { .. });
    assert_eq!(facts.iter().filter(is_choice).count(), 1);
    run_turn(&handle, &mut watcher, "third").await;
    assert_eq!(env.model.requests()[2]["model"], "other");
    handle.close().await.unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    assert!(names.starts_with(&["system prompt"]) && names.contains(&"prompts"), "{names:?}");
    assert!(names.contains(&"answers") && parts.iter().all(|part| part.tokens > 0), "{parts:?}");
}

#[tokio::test]
async fn the_prompts_of_a_workspace_are_from_the_user_newest_first_and_each_once() {
    let env = TestEnv::new(&[]).await;
    env.write_session(1, None, 3, 1_000).await;
    env.write_session(2, None, 3, 2_000).await;
    let parent = ParentCall {
        session: SessionId(Uuid::from_u128(1)),
        call: windlass_protocol::CallId(Uuid::from_u128(9)),
    };
    env.write_session(3, Some(parent), 3, 3_000).await;
    let fork = env
        .engine
        .fork(SessionId(Uuid::from_u128(1)), windlass_engine::ForkPoint::LastTurn)
        .await
        .unwrap();
    let texts =
        |rows: Vec<PromptHistoryRow>| rows.into_iter().map(|row| row.text).collect::<Vec<_>>();
    let all = env.prompts(None, None).await;
    assert!(all.iter().all(|row| row.rewind_to.is_none()));
    let newest = ["prompt 3 of 2", "prompt 2 of 2", "prompt 1 of 2", "prompt 3 of 1"];
    assert_eq!(texts(all)[..4], newest);
    assert_eq!(env.prompts(None, None).await.len(), 6);
    assert_eq!(texts(env.prompts(None, Some(2)).await), newest[..2]);
    assert!(env.prompts(None, Some(0)).await.is_empty());
    assert_eq!(env.prompts(Some(fork), None).await.len(), 3, "a fork contains them, too");
    let unknown = Some(SessionId(Uuid::from_u128(77)));
    assert!(
        env.engine.query(SessionQuery::Prompts { session: unknown, limit: None }).await.is_err()
    );
}

#[tokio::test]
async fn prompts_of_long_sessions_are_found_without_reading_the_whole_log() {
    let env = TestEnv::new(&[]).await;
    env.write_session(1, None, 2_000, 1_000).await;
    for number in 2..40 {
        env.write_session(number, None, 3, 10_000 * number as u64).await;
    }
    let start = Instant::now();
    let rows = env.prompts(Some(SessionId(Uuid::from_u128(1))), None).await;
    let one = start.elapsed();
    assert_eq!((rows.len(), rows[0].text.as_str()), (200, "prompt 2000 of 1"));
    assert!(rows.iter().all(|row| row.rewind_to == Some(row.seq - 1)));
    let start = Instant::now();
    assert_eq!(env.prompts(None, None).await.len(), 200);
    let all = start.elapsed();
    // Reading the log takes many times as long on any machine.
    let start = Instant::now();
    let log = read_all(&*env.log, SessionId(Uuid::from_u128(1)), 0).await.unwrap();
    let whole = start.elapsed();
    assert_eq!(log.len(), 1 + 2_000 * 23);
    assert!(one * 4 < whole && all * 3 < whole, "{one:?} and {all:?} of {whole:?}");
}

#[tokio::test]
async fn events_are_returned_in_pages() {
    let env = TestEnv::new(&[]).await;
    env.write_session(1, None, 3, 1_000).await;
    let session = SessionId(Uuid::from_u128(1));
    let read = async |after, limit| match env
        .engine
        .query(SessionQuery::Events { session, after, limit })
        .await
    {
        Ok(QueryReply::Events { events }) => {
            events.iter().map(|event| event.seq).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(read(5, Some(3)).await, [6, 7, 8]);
    assert_eq!(read(68, Some(3)).await, [69, 70]);
    assert_eq!(read(0, None).await.len(), 70);
    assert!(read(0, Some(0)).await.is_empty());
}

#[tokio::test]
async fn a_text_is_found_anywhere_in_a_long_session() {
    let env = TestEnv::new(&[]).await;
    env.write_session(1, None, 500, 1_000).await;
    let session = SessionId(Uuid::from_u128(1));
    let find = async |text: &str| match env
        .engine
        .query(SessionQuery::FindText { session, text: text.to_owned() })
        .await
    {
        Ok(QueryReply::TextMatches { matches, through }) => (matches, through),
        other => panic!("{other:?}"),
    };
    let (matches, through) = find("PROMPT").await;
    assert_eq!((matches.len(), through), (0, 1 + 500 * 23), "capitals are significant");
    assert_eq!(find("prompt").await.0.len(), 500);
    let (one, _) = find("prompt 333 of").await;
    let log = read_all(&*env.log, session, 0).await.unwrap();
    let is_turn = |fact: &Fact| matches!(fact, Fact::TurnStarted { turn: 333, .. });
    let seq = log.iter().find(|record| is_turn(&record.fact)).unwrap().seq;
    assert_eq!(one.iter().map(|found| (found.seq, found.count)).collect::<Vec<_>>(), [(seq, 1)]);
    let unknown = SessionId(Uuid::from_u128(2));
    for (session, text) in [(unknown, "prompt"), (session, " ")] {
        let text = text.to_owned();
        assert!(env.engine.query(SessionQuery::FindText { session, text }).await.is_err());
    }
}

#[tokio::test]
async fn ending_a_job_that_is_not_running_is_refused() {
    let env = TestEnv::new(&[]).await;
    let (handle, _watcher) = env.engine.start_default_session().await.unwrap();
    assert_eq!(refusal(&handle, SessionOp::EndJob { job: 7 }).await, "Job 7 is not running.");
    let session = handle.session;
    let jobs = env.engine.query(SessionQuery::Jobs { session }).await.unwrap();
    assert_eq!(jobs, QueryReply::Jobs { jobs: Vec::new() });
}
