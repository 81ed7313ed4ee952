//! The driver with SQLite, HTTP and a workspace, and failures of each of them.
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
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windlass_engine::session::TurnLimits;
use windlass_engine::{Engine, EngineSettings, SessionHandle, SessionWatcher, TitleGeneration};
use windlass_llm::catalog::Model as CatalogModel;
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    Attachment, CallOutcome, Event, Fact, FactRecord, Fault, LogPosition, PromptDelivery,
    SessionId, SessionOp, ToolAccess, ToolOutput, TurnEndReason,
};
use windlass_storage::{
    HookedLog, Log, LogWriteHook, LogWriteKind, ReleaseState, StorageError, read_all,
};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// A tool whose input selects its behavior: `ok`, `panic` or `slow`.
struct TestTool(Arc<AtomicUsize>);

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
        vec![ToolAccess::UseTool { tool: "test_tool".into() }]
    }

    async fn run(
        &self,
        input: TestToolInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match input.action.as_str() {
            "panic" => panic!("the tool panics"),
            "slow" => {
                cx.caller.report_progress("waiting".into());
                cx.cancel.cancelled().await;
                Err(CallFailure::new("canceled by the tool"))
            }
            _ => Ok(ToolOutput { text: "done".into(), ..ToolOutput::default() }),
        }
    }
}

/// A write hook with which every append from `fail_from` on fails.
struct FailingWriteHook {
    appends: AtomicUsize,
    fail_from: usize,
    /// True if appends fail because another process has the session.
    is_fenced: Arc<AtomicBool>,
    /// The states in which sessions were released.
    releases: Arc<Mutex<Vec<ReleaseState>>>,
}

impl LogWriteHook for FailingWriteHook {
    fn before_write(&self, write: LogWriteKind) -> Result<(), StorageError> {
        let LogWriteKind::Facts(session) = write else { return Ok(()) };
        if self.appends.fetch_add(1, Ordering::SeqCst) < self.fail_from {
            return Ok(());
        }
        Err(match self.is_fenced.load(Ordering::SeqCst) {
            true => StorageError::Fenced { session },
            false => {
                StorageError::File { what: "write".into(), source: ErrorKind::StorageFull.into() }
            }
        })
    }

    fn before_release(&self, _session: SessionId, state: ReleaseState) {
        self.releases.lock().unwrap().push(state);
    }
}

struct TestEnv {
    _folder: tempfile::TempDir,
    model: ScriptedModel,
    log: Arc<dyn Log>,
    engine: Engine,
    is_fenced: Arc<AtomicBool>,
    runs: Arc<AtomicUsize>,
    releases: Arc<Mutex<Vec<ReleaseState>>>,
}

impl TestEnv {
    async fn new(replies: &[&str]) -> TestEnv {
        TestEnv::failing_from(replies, usize::MAX).await
    }

    async fn failing_from(replies: &[&str], fail_from: usize) -> TestEnv {
        TestEnv::with(WireFormat::OpenaiChat, replies, fail_from).await
    }

    async fn with_format(format: WireFormat, replies: &[&str]) -> TestEnv {
        TestEnv::with(format, replies, usize::MAX).await
    }

    async fn with(format: WireFormat, replies: &[&str], fail_from: usize) -> TestEnv {
        TestEnv::with_settings(format, replies, fail_from, |_| {}).await
    }

    /// Creates an engine that generates titles with a model that has a price.
    async fn with_titles(replies: &[&str], limits: TurnLimits) -> TestEnv {
        TestEnv::with_settings(WireFormat::OpenaiChat, replies, usize::MAX, |settings| {
            (settings.titles, settings.limits) = (TitleGeneration::On, limits);
            let handle = settings.model.as_mut().unwrap();
            let mut model = (*handle.model).clone();
            (model.price.input, model.price.output) = (Some(1.0), Some(2.0));
            handle.model = Arc::new(model);
        })
        .await
    }

    async fn with_settings(
        format: WireFormat,
        replies: &[&str],
        fail_from: usize,
        change: impl Fn(&mut EngineSettings),
    ) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        let runtime = support::runtime(folder.path(), support::policy("\"allow\""));
        let runs = Arc::new(AtomicUsize::new(0));
        runtime.registry.register(TestTool(Arc::clone(&runs)));
        let mut handle = support::model_handle(&model.url(), format);
        handle.model = Arc::new(CatalogModel { images: true, ..CatalogModel::unlisted("m") });
        let mut settings = EngineSettings::new("/w", Some(handle), "p/m");
        change(&mut settings);
        let sqlite = support::log(folder.path()).await;
        let (appends, is_fenced) = (AtomicUsize::new(0), Arc::<AtomicBool>::default());
        let releases = Arc::default();
        let hook = FailingWriteHook {
            appends,
            fail_from,
            is_fenced: Arc::clone(&is_fenced),
            releases: Arc::clone(&releases),
        };
        let log: Arc<dyn Log> = Arc::new(HookedLog::new(sqlite, hook));
        let engine = Engine::new(Arc::clone(&log), Arc::new(runtime), settings);
        TestEnv { _folder: folder, model, log, engine, runs, is_fenced, releases }
    }

    /// Starts a session and sends a prompt.
    async fn start_session(&self) -> (SessionHandle, SessionWatcher) {
        let (handle, watcher) = self.engine.start_default_session().await.unwrap();
        assert!(handle.send(SessionOp::prompt("go")).await);
        (handle, watcher)
    }

    async fn stored_facts(&self, handle: &SessionHandle) -> Vec<Fact> {
        let log = read_all(&*self.log, handle.session, 0).await.unwrap();
        log.into_iter().map(|record| record.fact).collect()
    }
}

/// Returns all facts up to the end of the turn or of the session.
async fn facts(watcher: &mut SessionWatcher) -> Vec<Fact> {
    let mut facts = Vec::new();
    let timeout = Duration::from_secs(20);
    while let Some(event) = tokio::time::timeout(timeout, watcher.next()).await.unwrap().unwrap() {
        if let Event::Fact(record) = &*event {
            assert_eq!(record.seq, facts.len() as u64 + 1, "a fact is missing or repeated");
            facts.push(record.fact.clone());
            if matches!(record.fact, Fact::TurnEnded { .. }) {
                break;
            }
        }
    }
    facts
}

/// Waits for the first fact for which `find` returns a value.
async fn wait_for<T>(watcher: &mut SessionWatcher, find: impl Fn(&Fact) -> Option<T>) -> T {
    loop {
        if let Some(event) = watcher.next().await.unwrap()
            && let Event::Fact(record) = &*event
            && let Some(found) = find(&record.fact)
        {
            return found;
        }
    }
}

fn outcomes(facts: &[Fact]) -> Vec<&CallOutcome> {
    let mut outcomes = Vec::new();
    for fact in facts {
        if let Fact::CallSettled { outcome, .. } = fact {
            outcomes.push(outcome);
        }
    }
    outcomes
}

const OK_CALL: &str = "call test_tool {\"action\": \"ok\"}";

#[tokio::test]
async fn a_slow_watcher_misses_no_fact() {
    let long = format!("say {}\n{OK_CALL}", "word ".repeat(5_000));
    let env = TestEnv::new(&[&long, "say Done."]).await;
    let (handle, mut slow) = env.start_session().await;
    let mut quick = handle.watch(LogPosition::unchecked(handle.initial_head()).into()).await;
    let seen = facts(&mut quick).await;
    log_grammar::check_settled(&seen).unwrap();
    // The slow watcher has missed thousands of live events.
    assert_eq!(facts(&mut slow).await, seen);
    let mut late = handle.watch(LogPosition::unchecked(handle.initial_head()).into()).await;
    assert_eq!(facts(&mut late).await, seen, "a late watcher reads the log");
    handle.close().await.unwrap();
    assert!(late.next().await.unwrap().is_none(), "the watcher ends with the session");
}

#[tokio::test]
async fn a_watcher_may_be_dropped_and_polled_again_at_any_moment() {
    let env =
        TestEnv::new(&[&format!("say {}\n{OK_CALL}", "word ".repeat(3_000)), "say Done."]).await;
    let (handle, mut watcher) = env.start_session().await;
    let mut seen = Vec::new();
    let started = Instant::now();
    while !matches!(seen.last(), Some(Fact::TurnEnded { .. })) {
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
            "{seen:?}"
        );
        let next = tokio::time::timeout(Duration::from_micros(50), watcher.next()).await;
        if let Ok(Ok(Some(event))) = next
            && let Event::Fact(record) = &*event
        {
            seen.push(record.fact.clone());
        }
    }
    assert_eq!(seen, env.stored_facts(&handle).await);
}

#[tokio::test]
async fn a_call_that_panics_is_settled_and_the_session_continues() {
    let env = TestEnv::new(&["call test_tool {\"action\": \"panic\"}", "say I see."]).await;
    let (_handle, mut watcher) = env.start_session().await;
    let facts = facts(&mut watcher).await;
    log_grammar::check_settled(&facts).unwrap();
    assert_eq!(outcomes(&facts), [&CallOutcome::ResultUnknown]);
    assert_eq!(facts.last(), Some(&Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed }));
}

#[tokio::test]
async fn a_running_call_is_canceled_promptly_and_its_text_is_kept() {
    let env = TestEnv::new(&["call test_tool {\"action\": \"slow\"}", "say Never."]).await;
    let (handle, mut watcher) = env.start_session().await;
    while env.runs.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let started = Instant::now();
    handle.send(SessionOp::Interrupt { turn: None }).await;
    let facts = facts(&mut watcher).await;
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(500)),
        "{:?}",
        started.elapsed()
    );
    log_grammar::check_settled(&facts).unwrap();
    assert_eq!(
        outcomes(&facts),
        [&CallOutcome::Interrupted { text: "canceled by the tool".into() }]
    );
    assert_eq!(facts.last(), Some(&Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted }));
}

#[tokio::test]
async fn when_the_log_fails_no_call_starts_and_the_session_ends_with_a_fault() {
    // Appends: the prompt, the step together with the start of the call, its end.
    for (fail_from, is_fenced) in (0..3).flat_map(|number| [(number, false), (number, true)]) {
        let env = TestEnv::failing_from(&[OK_CALL, "say Done."], fail_from).await;
        env.is_fenced.store(is_fenced, Ordering::SeqCst);
        let (handle, mut watcher) = env.start_session().await;
        let seen = facts(&mut watcher).await;
        assert_eq!(seen, env.stored_facts(&handle).await, "watchers see exactly the stored facts");
        let runs = env.runs.load(Ordering::SeqCst);
        assert_eq!(
            runs,
            usize::from(fail_from > 1),
            "append {fail_from}: a call runs only if its start was stored"
        );
        let closed = handle.close().await;
        let releases = env.releases.lock().unwrap().clone();
        if is_fenced {
            assert!(matches!(closed, Err(Fault::SessionMoved { .. })), "{closed:?}");
            assert_eq!(releases, [], "it belongs to another process");
        } else {
            assert!(matches!(closed, Err(Fault::Storage { .. })), "{closed:?}");
            assert_eq!(releases, [ReleaseState::Failed], "it is tried again later");
        }
    }
}

#[tokio::test]
async fn a_session_that_was_closed_during_a_call_resumes() {
    let env = TestEnv::new(&["call test_tool {\"action\": \"slow\"}", "say Done."]).await;
    let (handle, _watcher) = env.start_session().await;
    while env.runs.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let session = handle.session;
    handle.close().await.unwrap();
    assert_eq!(*env.releases.lock().unwrap(), [ReleaseState::Due]);
    let (handle, mut watcher) = env.engine.open(session).await.unwrap();
    let timeout = Duration::from_secs(20);
    loop {
        let event = tokio::time::timeout(timeout, watcher.next()).await.unwrap().unwrap().unwrap();
        if matches!(&*event, Event::Fact(FactRecord { fact: Fact::TurnEnded { .. }, .. })) {
            break;
        }
    }
    let stored = env.stored_facts(&handle).await;
    log_grammar::check_settled(&stored).unwrap();
    assert_eq!(outcomes(&stored), [&CallOutcome::ResultUnknown]);
    assert_eq!(env.runs.load(Ordering::SeqCst), 1, "a call that may have run is not repeated");
    handle.close().await.unwrap();
    assert_eq!(*env.releases.lock().unwrap(), [ReleaseState::Due, ReleaseState::Idle]);
}

/// Returns a short name of a fault.
fn kind(fault: &Fault) -> String {
    match fault {
        Fault::Auth { .. } => "auth".into(),
        Fault::RateLimited { .. } => "limited".into(),
        Fault::ContextOverflow { .. } => "overflow".into(),
        Fault::Network { .. } => "network".into(),
        Fault::HostNotFound { .. } => "host not found".into(),
        Fault::ModelRefused { .. } => "refused".into(),
        Fault::Provider { status, .. } => format!("provider {status:?}"),
        Fault::Storage { .. }
        | Fault::SessionBusy { .. }
        | Fault::SessionMoved { .. }
        | Fault::Refused { .. }
        | Fault::Config { .. }
        | Fault::Internal { .. } => "ours".into(),
    }
}

/// The fault and the number of requests for every status: as a normal error, with an unreadable
/// body, and as an error in the stream. The call before it runs once.
#[tokio::test]
async fn every_status_has_its_fault_and_its_number_of_requests() {
    let mut table = String::new();
    for status in [400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529] {
        let error = format!("{{\"error\": {{\"message\": \"no\", \"code\": {status}}}}}");
        let replies = [
            format!("status {status} {error}"),
            format!("status {status} <html>\u{fffd} no"),
            format!("say Half\nraw data: {error}\\n\\n"),
        ];
        let mut row = Vec::new();
        for reply in replies {
            let env = TestEnv::new(&[OK_CALL, &format!("header retry-after-ms 1\n{reply}")]).await;
            let (handle, mut watcher) = env.start_session().await;
            let facts = facts(&mut watcher).await;
            log_grammar::check_settled(&facts).unwrap();
            let requests = env.model.requests().len() - 1;
            let retrying = facts.iter().filter(|fact| matches!(fact, Fact::StepRetrying { .. }));
            assert_eq!(retrying.count() + 1, requests, "every retry is recorded");
            assert_eq!(env.runs.load(Ordering::SeqCst), 1, "the call is not repeated");
            let Some(Fact::TurnEnded { end: TurnEndReason::Failed { fault }, .. }) = facts.last()
            else {
                panic!("{facts:?}");
            };
            row.push(format!("{} ×{requests}", kind(fault)));
            handle.close().await.unwrap();
        }
        table += &format!("{status}: {}\n", row.join(", "));
    }
    expect_test::expect![[r#"
        400: provider Some(400) ×1, provider Some(400) ×1, provider Some(400) ×1
        401: auth ×1, auth ×1, auth ×1
        403: provider Some(403) ×1, provider Some(403) ×1, provider Some(403) ×1
        404: provider Some(404) ×1, provider Some(404) ×1, provider Some(404) ×1
        408: provider Some(408) ×5, provider Some(408) ×5, provider Some(408) ×5
        409: provider Some(409) ×5, provider Some(409) ×5, provider Some(409) ×5
        413: overflow ×1, overflow ×1, overflow ×1
        429: limited ×5, limited ×5, limited ×5
        500: provider Some(500) ×5, provider Some(500) ×5, provider Some(500) ×5
        502: provider Some(502) ×5, provider Some(502) ×5, provider Some(502) ×5
        503: provider Some(503) ×5, provider Some(503) ×5, provider Some(503) ×5
        504: provider Some(504) ×5, provider Some(504) ×5, provider Some(504) ×5
        529: provider Some(529) ×5, provider Some(529) ×5, provider Some(529) ×5
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_broken_connection_is_retried_and_its_partial_text_is_discarded() {
    let env = TestEnv::new(&["once say Half a sen\nonce cut\nsay Whole.", "say never asked"]).await;
    let (handle, mut watcher) = env.start_session().await;
    let facts = facts(&mut watcher).await;
    log_grammar::check_settled(&facts).unwrap();
    let texts: Vec<&str> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::ModelText { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((texts, env.model.requests().len()), (vec!["Whole."], 2));
    handle.close().await.unwrap();
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_for_a_retry_at_once() {
    let env = TestEnv::new(&["header retry-after 30\nstatus 429 {}"]).await;
    let (handle, mut watcher) = env.start_session().await;
    let wait = wait_for(&mut watcher, |fact| match fact {
        Fact::StepRetrying { wait_ms, .. } => Some(*wait_ms),
        _ => None,
    });
    let wait = wait.await;
    assert!((30_000..=37_500).contains(&wait), "{wait}");
    let started = Instant::now();
    handle.send(SessionOp::Interrupt { turn: None }).await;
    let end = wait_for(&mut watcher, |fact| match fact {
        Fact::TurnEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end.await, TurnEndReason::Interrupted);
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(100)),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(env.model.requests().len(), 1);
    handle.close().await.unwrap();
}

/// Provider signatures and the files of a prompt are sent back unchanged.
#[tokio::test]
async fn signatures_and_files_are_sent_back_in_every_format() {
    for format in [WireFormat::OpenaiResponses, WireFormat::Anthropic, WireFormat::Gemini] {
        let env =
            TestEnv::with_format(format, &[&format!("think Hm.\n{OK_CALL}"), "say Done."]).await;
        let blob = env.engine.put_blob(b"\x89PNG".to_vec()).await.unwrap();
        let image = Attachment { name: "a.png".into(), mime_type: "image/png".into(), blob };
        let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
        let prompt = SessionOp::Prompt {
            text: "look".into(),
            attachments: vec![image],
            delivery: PromptDelivery::default(),
            settings: Default::default(),
        };
        handle.send(prompt).await;
        let facts = facts(&mut watcher).await;
        log_grammar::check_settled(&facts).unwrap();
        let requests = env.model.requests();
        let (first, second) = (requests[0].to_string(), requests[1].to_string());
        assert!(first.contains("iVBORw==") && second.contains("iVBORw=="), "{format:?}: {first}");
        let signature = if format == WireFormat::OpenaiResponses { "c2VhbA==" } else { "c2ln" };
        assert!(!first.contains(signature) && second.contains(signature), "{format:?}: {second}");
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn the_wait_for_a_retry_survives_the_process() {
    let env = TestEnv::new(&["header retry-after 30\nstatus 429 {}"]).await;
    let (handle, mut watcher) = env.start_session().await;
    wait_for(&mut watcher, |fact| matches!(fact, Fact::StepRetrying { .. }).then_some(())).await;
    let session = handle.session;
    handle.close().await.unwrap();
    let (handle, _watcher) = env.engine.open(session).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(env.model.requests().len(), 1, "the retry delay still applies");
    handle.close().await.unwrap();
}

/// Returns the recorded titles.
fn titles(facts: &[Fact]) -> Vec<String> {
    let title = |fact: &Fact| match fact {
        Fact::SessionRenamed { title } => Some(title.clone()),
        _ => None,
    };
    facts.iter().filter_map(title).collect()
}

impl TestEnv {
    /// Waits until the model has received this many requests.
    async fn wait_for_requests(&self, count: usize) {
        let started = Instant::now();
        while self.model.requests().len() < count {
            assert!(
                started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20))
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

// A title request contains no answer of the model, so the script gives its first reply again.
const REPLY_AND_TITLE: &str =
    "once say It was\nonce say  the loop. \nsay Mend the roof\nusage 100 7";

#[tokio::test]
async fn a_title_is_generated_once_and_outside_of_the_conversation() {
    let env = TestEnv::with_titles(&[REPLY_AND_TITLE, "say Later."], TurnLimits::default()).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let long = "é".repeat(5_000);
    assert!(handle.send(SessionOp::prompt(format!("Mend it: {long}"))).await);
    let (usage, cost) = wait_for(&mut watcher, |fact| match fact {
        Fact::SideRequestEnded { usage, cost, .. } => Some((*usage, *cost)),
        _ => None,
    })
    .await;
    assert_eq!((usage.input, cost.unwrap().0), (100, 114));
    wait_for(&mut watcher, |fact| matches!(fact, Fact::SessionRenamed { .. }).then_some(())).await;
    assert!(handle.send(SessionOp::prompt("more")).await);
    wait_for(&mut watcher, |fact| matches!(fact, Fact::TurnEnded { turn: 2, .. }).then_some(()))
        .await;
    let requests = env.model.requests();
    assert_eq!(requests.len(), 3, "the title is requested once");
    let request = &requests[1];
    assert!(request.get("tools").is_none() && request.get("prompt_cache_key").is_none());
    assert!(request.to_string().len() < 6_000, "{}", request.to_string().len());
    assert!(request.to_string().contains("It was the loop."), "{request}");
    let max_tokens = request.get("max_tokens").or(request.get("max_completion_tokens"));
    assert_eq!(max_tokens.unwrap(), 100);
    // The title request does not change the conversation.
    let [first, third] = [&requests[0], &requests[2]].map(|it| it["messages"].as_array().unwrap());
    assert_eq!(third[..first.len()], first[..]);
    assert!(!requests[2].to_string().contains("Write a title for"));
    let facts = env.stored_facts(&handle).await;
    log_grammar::check(&facts).unwrap();
    assert_eq!(titles(&facts), ["Mend the roof"]);
    let row = env.log.list(&Default::default()).await.unwrap().remove(0);
    assert_eq!(row.title, "Mend the roof");
    assert!(row.cost.0 >= 2 * 114, "the cost of the title is recorded: {:?}", row.cost);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn an_invalid_title_is_discarded_and_not_requested_again() {
    for reply in [
        format!("once say Done.\nsay {}", "word ".repeat(20)),
        "once say Done.\nusage 3 4".to_owned(),
    ] {
        let env = TestEnv::with_titles(&[&reply, "say Later."], TurnLimits::default()).await;
        let (handle, mut watcher) = env.start_session().await;
        facts(&mut watcher).await;
        env.wait_for_requests(2).await;
        assert!(handle.send(SessionOp::prompt("more")).await);
        wait_for(&mut watcher, |fact| matches!(fact, Fact::TurnEnded { .. }).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(env.model.requests().len(), 3);
        assert!(titles(&env.stored_facts(&handle).await).is_empty());
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_title_that_the_user_set_is_kept() {
    let reply = "once say Done.\nstall 300\nsay Mend the roof";
    let env = TestEnv::with_titles(&[reply], TurnLimits::default()).await;
    let (handle, mut watcher) = env.start_session().await;
    facts(&mut watcher).await;
    env.wait_for_requests(2).await;
    assert!(handle.send(SessionOp::RenameSession { title: "Mine".to_owned() }).await);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(titles(&env.stored_facts(&handle).await), ["Mine"]);
    handle.close().await.unwrap();
    // A session that the user has already named requests no title.
    let env = TestEnv::with_titles(&[reply], TurnLimits::default()).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::RenameSession { title: "Mine".to_owned() }).await);
    assert!(handle.send(SessionOp::prompt("go")).await);
    facts(&mut watcher).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(env.model.requests().len(), 1);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn closing_does_not_wait_for_a_title_and_an_exhausted_budget_requests_none() {
    let env = TestEnv::with_titles(
        &["once say Done.\nstall 5000\nsay Mend the roof"],
        TurnLimits::default(),
    );
    let env = env.await;
    let (handle, mut watcher) = env.start_session().await;
    facts(&mut watcher).await;
    env.wait_for_requests(2).await;
    let started = Instant::now();
    handle.close().await.unwrap();
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
        "{:?}",
        started.elapsed()
    );

    let limits = TurnLimits { tokens: Some(50), ..TurnLimits::default() };
    let env = TestEnv::with_titles(&["say Done.\nusage 100 7"], limits).await;
    let (handle, mut watcher) = env.start_session().await;
    facts(&mut watcher).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(env.model.requests().len(), 1);
    handle.close().await.unwrap();
}
