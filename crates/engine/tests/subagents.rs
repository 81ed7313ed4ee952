//! Subagent sessions with real drivers: permissions, permission requests, ends and budgets.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test prepares files and processes, and fails by panicking"
)]

mod support;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windlass_engine::session::TurnLimits;
use windlass_engine::{
    AgentDefinition, Engine, EngineSettings, ModelHandle, SessionHandle, SessionWatcher,
};
use windlass_llm::wire_format::WireFormat;
use windlass_permission::PermissionRules;
use windlass_protocol::{
    AgentRole, CallId, CallOutcome, Event, EventCursor, Fact, FactRecord, LiveEvent, LogPosition,
    PermissionAnswer, PermissionMode, SessionId, SessionOp, ToolAccess, ToolOutput, TurnEndReason,
};
use windlass_storage::{Log, read_all};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{
    AgentRestrictions, CallContext, CallFailure, StepContext, SubagentRequest, Tool, ToolDefinition,
};

/// A tool whose input selects its behavior: `ok`, `edit`, `slow` (runs until it is canceled) or
/// `stuck` (ignores cancellation).
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

    fn access(&self, input: &TestToolInput) -> Vec<ToolAccess> {
        match input.action.as_str() {
            "edit" => vec![ToolAccess::Edit { path: "a.txt".into() }],
            _ => vec![ToolAccess::UseTool { tool: "test_tool".into() }],
        }
    }

    async fn run(
        &self,
        input: TestToolInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match input.action.as_str() {
            "slow" => {
                cx.cancel.cancelled().await;
                Err(CallFailure::new("canceled by the tool"))
            }
            "stuck" => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(ToolOutput::default())
            }
            _ => Ok(ToolOutput { text: "done".into(), ..ToolOutput::default() }),
        }
    }
}

/// Runs a subagent, like the real `task` tool.
struct FakeTaskTool;

#[derive(Deserialize, JsonSchema)]
struct FakeTaskInput {
    agent: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl Tool for FakeTaskTool {
    type Input = FakeTaskInput;

    fn name(&self) -> &str {
        "task"
    }

    fn is_for_subagents(&self) -> bool {
        false
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<FakeTaskInput>("Runs a subagent.")
    }

    fn access(&self, input: &FakeTaskInput) -> Vec<ToolAccess> {
        vec![ToolAccess::Subagent { agent: input.agent.clone() }]
    }

    async fn run(
        &self,
        input: FakeTaskInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let FakeTaskInput { agent, session, background } = input;
        let session = session.map(|id| id.parse().unwrap());
        let (description, prompt) = ("a task".to_owned(), "do it".to_owned());
        let request = SubagentRequest { agent, description, prompt, session, background };
        let report = cx.caller.run_subagent(request).await?;
        let text = format!("{:?} {} in {}", report.end, report.text, report.session);
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

struct TestEnv {
    _folder: tempfile::TempDir,
    models: BTreeMap<&'static str, ScriptedModel>,
    log: Arc<dyn Log>,
    engine: Engine,
    runs: Arc<AtomicUsize>,
}

const ROOT: &str = "root";

impl TestEnv {
    /// Creates an engine in which each agent has its own model, and so has the user's session.
    async fn new(scripts: &[(&'static str, &[&str])], rules: &str, limits: TurnLimits) -> TestEnv {
        TestEnv::with(scripts, rules, limits, |_| {}).await
    }

    async fn with(
        scripts: &[(&'static str, &[&str])],
        rules: &str,
        limits: TurnLimits,
        configure: impl Fn(&mut AgentDefinition),
    ) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let runtime = support::runtime(folder.path(), support::policy(rules));
        let runs = Arc::new(AtomicUsize::new(0));
        runtime.registry.register(TestTool(Arc::clone(&runs)));
        runtime.registry.register(FakeTaskTool);
        let mut models = BTreeMap::new();
        let mut handles = BTreeMap::new();
        for (name, replies) in scripts {
            let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
            handles.insert(*name, support::model_handle(&model.url(), WireFormat::OpenaiChat));
            models.insert(*name, model);
        }
        let mut settings = EngineSettings::new("/w", handles.remove(ROOT), "p/root");
        settings.limits = limits;
        let agent = |(name, handle): (&str, ModelHandle)| {
            let mut agent = AgentDefinition {
                name: name.to_owned(),
                description: format!("For {name}."),
                role: AgentRole::Subagent,
                prompt: format!("You are {name}.").into(),
                replaces_prompt: false,
                max_steps: None,
                options: Default::default(),
                restrictions: AgentRestrictions::default(),
                fallback_models: Vec::new(),
                model: Some((handle, format!("p/{name}").into())),
            };
            configure(&mut agent);
            Arc::new(agent)
        };
        settings.agents = handles.into_iter().map(agent).collect();
        let log: Arc<dyn Log> = support::log(folder.path()).await;
        let engine = Engine::new(Arc::clone(&log), Arc::new(runtime), settings);
        TestEnv { _folder: folder, models, log, engine, runs }
    }

    /// Starts a session and sends a prompt.
    async fn start_session(&self) -> (SessionHandle, SessionWatcher) {
        let (handle, watcher) = self.engine.start_default_session().await.unwrap();
        assert!(handle.send(SessionOp::prompt("go")).await);
        (handle, watcher)
    }

    async fn facts(&self, session: SessionId) -> Vec<Fact> {
        let log = read_all(&*self.log, session, 0).await.unwrap();
        log.into_iter().map(|record| record.fact).collect()
    }

    /// Returns the subagent sessions with their facts, and checks the grammar of all logs.
    async fn subagents(&self) -> BTreeMap<SessionId, Vec<Fact>> {
        let mut subagents = BTreeMap::new();
        for row in self.log.list(&Default::default()).await.unwrap() {
            let facts = self.facts(row.session).await;
            log_grammar::check(&facts).unwrap();
            if row.parent.is_some() {
                subagents.insert(row.session, facts);
            }
        }
        subagents
    }

    fn requests(&self) -> usize {
        self.models.values().map(|model| model.requests().len()).sum()
    }

    /// Waits until `TestTool` has run this many times.
    async fn wait_for_runs(&self, count: usize) {
        let started = Instant::now();
        while self.runs.load(Ordering::SeqCst) < count {
            assert!(
                started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20))
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Returns all events up to the end of the session's own turn.
async fn events_until_end(handle: &SessionHandle, watcher: &mut SessionWatcher) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    let timeout = Duration::from_secs(20);
    while let Some(event) = tokio::time::timeout(timeout, watcher.next()).await.unwrap().unwrap() {
        events.push(Arc::clone(&event));
        if let Event::Fact(record) = &*event
            && record.session == handle.session
            && matches!(record.fact, Fact::TurnEnded { .. })
        {
            break;
        }
    }
    events
}

fn end_of(facts: &[Fact]) -> Option<&TurnEndReason> {
    facts.iter().rev().find_map(|fact| match fact {
        Fact::TurnEnded { end, .. } => Some(end),
        _ => None,
    })
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

const TASK_CALL: &str = "call task {\"agent\": \"helper\"}";
const TOOL_CALL: &str = "call test_tool {\"action\": \"ok\"}";

#[tokio::test]
async fn a_subagent_has_its_own_session_and_returns_its_last_text() {
    let helper: &[&str] = &[TOOL_CALL, "say The answer is 7."];
    let env = TestEnv::new(
        &[(ROOT, &[TASK_CALL, "say Seven."]), ("helper", helper)],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    let events = events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(handle.session).await;
    log_grammar::check_settled(&facts).unwrap();
    assert!(outcomes(&facts)[0].text().contains("The answer is 7."), "{facts:?}");
    let subagents = env.subagents().await;
    let (subagent, log) = subagents.iter().next().unwrap();
    log_grammar::check_settled(log).unwrap();
    let Fact::SessionOpened { parent: Some(parent), agent, .. } = &log[0] else {
        panic!("{log:?}")
    };
    assert_eq!((parent.session, agent.as_str()), (handle.session, "helper"));
    let is_start = |event: &Arc<Event>| match &**event {
        Event::Fact(record) => {
            matches!(&record.fact, Fact::SubagentStarted { session, .. } if session == subagent)
        }
        Event::Live(_) => false,
    };
    let is_subagent =
        |event: &Arc<Event>| matches!(&**event, Event::Fact(record) if record.session == *subagent);
    let recorded = events.iter().position(is_start).unwrap();
    let first_fact = events.iter().position(is_subagent).unwrap();
    assert!(recorded < first_fact, "started before it was recorded");
    let progress = events.iter().filter_map(|event| match &**event {
        Event::Live(live_record) if live_record.session == handle.session => match &live_record
            .event
        {
            LiveEvent::CallProgress { call, text } if *call == parent.call => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    let progress: Vec<&str> = progress.collect();
    assert!(progress.contains(&"helper: calling test_tool action: ok"), "{progress:?}");
    let request = env.models["helper"].requests()[0].to_string();
    assert!(request.contains("You are helper.") && request.contains("do it"), "{request}");
    assert!(request.contains("\"test_tool\"") && !request.contains("\"task\""), "{request}");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_subagent_is_not_allowed_more_than_its_parent() {
    let scripts: &[(&str, &[&str])] =
        &[(ROOT, &[TASK_CALL, "say Done."]), ("helper", &[TOOL_CALL, "say Done."])];
    let allow_all = |agent: &mut AgentDefinition| {
        agent.restrictions.rules =
            vec![PermissionRules::parse(&serde_json::json!("allow")).unwrap()];
        agent.restrictions.tools = vec![("test_tool".into(), true)];
    };
    for rules in [r#"{"test_tool": "deny"}"#, r#"{"*": "allow", "test_tool": {"*": "deny"}}"#] {
        let env = TestEnv::with(scripts, rules, TurnLimits::default(), allow_all).await;
        let (handle, mut watcher) = env.start_session().await;
        events_until_end(&handle, &mut watcher).await;
        assert_eq!(env.runs.load(Ordering::SeqCst), 0);
        let subagents = env.subagents().await;
        let log = subagents.values().next().unwrap();
        assert!(matches!(outcomes(log)[..], [CallOutcome::Denied { .. }]), "{log:?}");
    }
    // The restrictions of an agent apply to the subagent alone.
    let deny_tools =
        |agent: &mut AgentDefinition| agent.restrictions.tools = vec![("*".into(), false)];
    let env = TestEnv::with(
        &[(ROOT, &[TASK_CALL, TOOL_CALL, "say Done."]), ("helper", &[TOOL_CALL, "say Done."])],
        "\"allow\"",
        TurnLimits::default(),
        deny_tools,
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    events_until_end(&handle, &mut watcher).await;
    assert_eq!(env.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_denied_agent_is_not_started() {
    let rules = r#"{"*": "allow", "task": {"helper": "deny"}}"#;
    let env = TestEnv::new(
        &[(ROOT, &[TASK_CALL, "say Done."]), ("helper", &[])],
        rules,
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(handle.session).await;
    assert!(matches!(outcomes(&facts)[..], [CallOutcome::Denied { .. }]), "{facts:?}");
    assert!(env.subagents().await.is_empty());
}

#[tokio::test]
async fn a_permission_request_of_a_subagent_is_answered_through_the_parent() {
    for answer in [PermissionAnswer::Once, PermissionAnswer::No { reason: None }] {
        let env = TestEnv::new(
            &[(ROOT, &[TASK_CALL, "say Done."]), ("helper", &[TOOL_CALL, "say Played."])],
            r#"{"test_tool": "ask"}"#,
            TurnLimits::default(),
        )
        .await;
        let (handle, mut watcher) = env.start_session().await;
        let timeout = Duration::from_secs(20);
        let call = loop {
            let next = tokio::time::timeout(timeout, watcher.next()).await.unwrap();
            if let Event::Fact(record) = &*next.unwrap().unwrap()
                && let Fact::PermissionAsked { call, .. } = &record.fact
            {
                assert_ne!(record.session, handle.session);
                break *call;
            }
        };
        assert!(
            handle
                .send(SessionOp::AnswerPermission { call, answer: answer.clone(), asked: None })
                .await
        );
        events_until_end(&handle, &mut watcher).await;
        assert_eq!(env.runs.load(Ordering::SeqCst), usize::from(answer.is_yes()));
        let subagents = env.subagents().await;
        let end = end_of(subagents.values().next().unwrap()).unwrap();
        assert_eq!(
            *end,
            if answer.is_yes() { TurnEndReason::Completed } else { TurnEndReason::Denied }
        );
        let facts = env.facts(handle.session).await;
        log_grammar::check_settled(&facts).unwrap();
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_slow_watcher_misses_no_permission_request_of_a_subagent() {
    let long = format!("say {}", "word ".repeat(5_000));
    let env = TestEnv::new(
        &[
            (ROOT, &["call task {\"agent\": \"helper\", \"background\": true}", &long]),
            ("helper", &[TOOL_CALL, "say Played."]),
        ],
        r#"{"test_tool": "ask"}"#,
        TurnLimits::default(),
    )
    .await;
    let (handle, mut slow) = env.start_session().await;
    let mut quick = handle.watch(LogPosition::unchecked(handle.initial_head()).into()).await;
    events_until_end(&handle, &mut quick).await;
    let has_request =
        |log: &Vec<Fact>| log.iter().any(|fact| matches!(fact, Fact::PermissionAsked { .. }));
    while !env.subagents().await.values().any(has_request) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let timeout = Duration::from_secs(20);
    let mut facts = Vec::new();
    let call = loop {
        let next = tokio::time::timeout(timeout, slow.next()).await.unwrap();
        if let Event::Fact(record) = &*next.unwrap().unwrap() {
            assert!(!facts.contains(record), "a fact is repeated");
            facts.push(record.clone());
            if let Fact::PermissionAsked { call, .. } = &record.fact {
                break *call;
            }
        }
    };
    handle
        .send(SessionOp::AnswerPermission { call, answer: PermissionAnswer::Once, asked: None })
        .await;
    env.wait_for_runs(1).await;
    handle.close().await.unwrap();
}

#[tokio::test]
async fn interrupting_the_parent_ends_every_subagent_within_a_second() {
    let root = "call task {\"agent\": \"slow\"}\ncall task {\"agent\": \"stuck\"}\n\
                call task {\"agent\": \"silent\"}\n\
                call task {\"agent\": \"background\", \"background\": true}";
    let env = TestEnv::new(
        &[
            (ROOT, &[root, "say Never."]),
            ("slow", &["call test_tool {\"action\": \"slow\"}", "say Never."]),
            ("stuck", &["call test_tool {\"action\": \"stuck\"}", "say Never."]),
            ("silent", &["gate never\nsay Never."]),
            ("background", &["call test_tool {\"action\": \"stuck\"}", "say Never."]),
        ],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    env.wait_for_runs(3).await;
    while env.models["silent"].requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let started = Instant::now();
    handle.send(SessionOp::Interrupt { turn: None }).await;
    events_until_end(&handle, &mut watcher).await;
    let subagents = loop {
        let subagents = env.subagents().await;
        if subagents.values().all(|log| end_of(log).is_some()) {
            break subagents;
        }
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
            "{subagents:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(subagents.len(), 4);
    for log in subagents.values() {
        assert_eq!(end_of(log), Some(&TurnEndReason::Interrupted));
        log_grammar::check_settled(log).unwrap();
    }
    env.models["silent"].wait_until_disconnected();
    let facts = env.facts(handle.session).await;
    assert_eq!(end_of(&facts), Some(&TurnEndReason::Interrupted));
    // Their logs are no longer claimed.
    tokio::time::sleep(Duration::from_millis(300)).await;
    for session in subagents.keys() {
        drop(env.log.claim(*session).await.unwrap());
    }
    handle.close().await.unwrap();
}

#[tokio::test]
async fn closing_the_parent_ends_its_subagents() {
    let env = TestEnv::new(
        &[(ROOT, &[TASK_CALL]), ("helper", &["call test_tool {\"action\": \"stuck\"}"])],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, _watcher) = env.start_session().await;
    env.wait_for_runs(1).await;
    let started = Instant::now();
    handle.close().await.unwrap();
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
        "{:?}",
        started.elapsed()
    );
    for session in env.subagents().await.keys() {
        drop(env.log.claim(*session).await.unwrap());
    }
}

/// Tokens of every request to the scripted model.
const REQUEST_TOKENS: u64 = 105;

#[tokio::test]
async fn a_shared_budget_is_exceeded_by_at_most_one_request() {
    let root = [TASK_CALL; 3].join("\n");
    // Every call differs: a repeated call would be asked about, and the turn would wait.
    let calls: Vec<String> =
        (0..40).map(|n| format!("call test_tool {{\"action\": \"{n}\"}}")).collect();
    let helper: Vec<&str> = calls.iter().map(String::as_str).collect();
    let scripts: &[(&str, &[&str])] =
        &[(ROOT, &[&root, "say Done.", "say Never."]), ("helper", &helper)];
    for tokens in [1, 100, 105, 106, 210, 300, 500, 1_000] {
        let limits = TurnLimits { tokens: Some(tokens), ..TurnLimits::default() };
        let env = TestEnv::new(scripts, "\"allow\"", limits).await;
        let (handle, mut watcher) = env.start_session().await;
        events_until_end(&handle, &mut watcher).await;
        let facts = env.facts(handle.session).await;
        log_grammar::check_settled(&facts).unwrap();
        let end = end_of(&facts).unwrap();
        assert!(matches!(end, TurnEndReason::LimitReached { .. }), "{tokens}: {end:?}");
        let spent = env.requests() as u64 * REQUEST_TOKENS;
        assert!(spent < tokens + REQUEST_TOKENS, "{tokens}: {spent} tokens were used");
        assert!(spent >= tokens, "{tokens}: the turn ended at {spent}");
        handle.close().await.unwrap();
    }
    for steps in [1, 2, 3, 7] {
        let limits = TurnLimits { steps, ..TurnLimits::default() };
        let env = TestEnv::new(scripts, "\"allow\"", limits).await;
        let (handle, mut watcher) = env.start_session().await;
        events_until_end(&handle, &mut watcher).await;
        assert_eq!(env.requests(), steps as usize);
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_subagent_session_is_resumed_only_by_its_parent_and_agent() {
    let helper: &[&str] = &["say One.", "say Two."];
    let env = TestEnv::new(
        &[
            (ROOT, &[TASK_CALL, "say Done.", "gate go\nsay Done."]),
            ("helper", helper),
            ("other", &[]),
        ],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    events_until_end(&handle, &mut watcher).await;
    let subagent = *env.subagents().await.keys().next().unwrap();
    let call = |agent: &str, session: SessionId| SessionOp::CallTool {
        tool: "task".into(),
        arguments: format!("{{\"agent\": \"{agent}\", \"session\": \"{session}\"}}"),
    };
    handle.send(call("helper", subagent)).await;
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(handle.session).await;
    let last = outcomes(&facts).pop().unwrap().text().to_owned();
    assert!(last.contains("Two.") && last.contains(&subagent.to_string()), "{last}");
    assert_eq!(env.subagents().await.len(), 1);
    // Another agent, a session that is not a subagent, and an unknown session.
    let unknown = SessionId(uuid::Uuid::from_u128(7));
    for (agent, session) in [("other", subagent), ("helper", handle.session), ("helper", unknown)] {
        handle.send(call(agent, session)).await;
        events_until_end(&handle, &mut watcher).await;
        let facts = env.facts(handle.session).await;
        assert!(matches!(outcomes(&facts).pop(), Some(CallOutcome::Failed { .. })), "{facts:?}");
    }
    // Another parent.
    let (other, mut watcher) = env.engine.start_default_session().await.unwrap();
    other.send(call("helper", subagent)).await;
    events_until_end(&other, &mut watcher).await;
    let facts = env.facts(other.session).await;
    assert!(matches!(outcomes(&facts).pop(), Some(CallOutcome::Failed { .. })), "{facts:?}");
    assert_eq!(env.models["helper"].requests().len(), 2);
}

#[tokio::test]
async fn subagents_nest_up_to_a_depth_and_only_if_their_agent_allows_it() {
    let deep: &[&str] = &["call task {\"agent\": \"deep\"}", "say Up."];
    let scripts: &[(&str, &[&str])] =
        &[(ROOT, &["call task {\"agent\": \"deep\"}", "say Done."]), ("deep", deep)];
    for (allowed, expected) in [(true, 3), (false, 1)] {
        let set_tools =
            |agent: &mut AgentDefinition| agent.restrictions.tools = vec![("task".into(), allowed)];
        let env = TestEnv::with(scripts, "\"allow\"", TurnLimits::default(), set_tools).await;
        let (handle, mut watcher) = env.start_session().await;
        events_until_end(&handle, &mut watcher).await;
        let subagents = env.subagents().await;
        assert_eq!(subagents.len(), expected);
        assert!(subagents.values().all(|log| end_of(log) == Some(&TurnEndReason::Completed)));
    }
}

#[tokio::test]
async fn the_number_of_concurrent_subagents_is_limited() {
    let root = [TASK_CALL; 10].join("\n");
    let env = TestEnv::new(
        &[(ROOT, &[&root, "say Done."]), ("helper", &["gate go\nsay Done."])],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    while env.models["helper"].requests().len() < 8 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    env.models["helper"].open_gate("go");
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(handle.session).await;
    let failed = outcomes(&facts)
        .into_iter()
        .filter(|outcome| matches!(outcome, CallOutcome::Failed { .. }));
    assert_eq!((failed.count(), env.subagents().await.len()), (2, 8));
}

#[tokio::test]
async fn a_background_subagent_does_not_block_and_its_end_is_announced() {
    let env = TestEnv::new(
        &[
            (ROOT, &["call task {\"agent\": \"helper\", \"background\": true}", "say Meanwhile."]),
            ("helper", &["gate go\nsay Found it."]),
        ],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(handle.session).await;
    assert_eq!(end_of(&facts), Some(&TurnEndReason::Completed));
    env.models["helper"].open_gate("go");
    let timeout = Duration::from_secs(20);
    let notice = loop {
        let next = tokio::time::timeout(timeout, watcher.next()).await.unwrap();
        if let Event::Fact(record) = &*next.unwrap().unwrap()
            && let Fact::ContextChanged { text, .. } = &record.fact
        {
            break text.clone();
        }
    };
    assert!(notice.contains("helper") && notice.contains("Found it."), "{notice}");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn after_a_crash_a_call_resumes_its_subagent_session() {
    let env = TestEnv::new(
        &[(ROOT, &[TASK_CALL, "say Done."]), ("helper", &[TOOL_CALL, "gate go\nsay Found it."])],
        "\"allow\"",
        TurnLimits { tokens: Some(10 * REQUEST_TOKENS), ..TurnLimits::default() },
    )
    .await;
    let (handle, _watcher) = env.start_session().await;
    while env.models["helper"].requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let session = handle.session;
    handle.close().await.unwrap();
    env.models["helper"].open_gate("go");
    let (handle, mut watcher) = env.engine.open(session).await.unwrap();
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(session).await;
    log_grammar::check_settled(&facts).unwrap();
    assert!(outcomes(&facts)[0].text().contains("Found it."), "{facts:?}");
    let starts = facts.iter().filter(|fact| matches!(fact, Fact::SubagentStarted { .. }));
    let subagents = env.subagents().await;
    assert_eq!((starts.count(), subagents.len()), (1, 1));
    let log = subagents.values().next().unwrap();
    let prompts = log.iter().filter(|fact| matches!(fact, Fact::PromptSubmitted { .. }));
    assert_eq!((prompts.count(), env.runs.load(Ordering::SeqCst)), (1, 1), "{log:?}");
}

/// Waits for a fact of a subagent session.
async fn subagent_fact<T>(
    handle: &SessionHandle,
    watcher: &mut SessionWatcher,
    find: impl Fn(&Fact) -> Option<T>,
) -> T {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap();
        if let Event::Fact(record) = &*next.unwrap().unwrap()
            && record.session != handle.session
            && let Some(found) = find(&record.fact)
        {
            return found;
        }
    }
}

fn mode_of(fact: &Fact) -> Option<PermissionMode> {
    match fact {
        Fact::ModeChanged { mode } => Some(*mode),
        _ => None,
    }
}

#[tokio::test]
async fn a_mode_change_reaches_running_subagents_up_to_their_initial_mode() {
    let deep: &[&str] = &["call task {\"agent\": \"inner\"}", "say Done."];
    let env = TestEnv::with(
        &[
            (ROOT, &["call task {\"agent\": \"outer\"}", "say Done."]),
            ("outer", deep),
            ("inner", &["gate go\ncall test_tool {\"action\": \"edit\"}", "gate on\nsay Done."]),
        ],
        "\"allow\"",
        TurnLimits::default(),
        |agent| agent.restrictions.tools.push(("task".to_owned(), agent.name == "outer")),
    )
    .await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::SetMode { mode: PermissionMode::Auto }).await);
    assert!(handle.send(SessionOp::prompt("go")).await);
    let is_inner_step = |fact: &Fact| match fact {
        Fact::StepStarted { model, .. } if model == "p/inner" => Some(()),
        _ => None,
    };
    subagent_fact(&handle, &mut watcher, is_inner_step).await;
    assert!(handle.send(SessionOp::SetMode { mode: PermissionMode::Plan }).await);
    // The modes of `outer` and `inner`.
    for _ in 0..2 {
        assert_eq!(subagent_fact(&handle, &mut watcher, mode_of).await, PermissionMode::Plan);
    }
    env.models["inner"].open_gate("go");
    let outcome_of = |fact: &Fact| match fact {
        Fact::CallSettled { outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    let outcome = subagent_fact(&handle, &mut watcher, outcome_of).await;
    assert!(matches!(outcome, CallOutcome::Denied { .. }), "{outcome:?}");
    assert_eq!(env.runs.load(Ordering::SeqCst), 0);
    assert!(handle.send(SessionOp::SetMode { mode: PermissionMode::Full }).await);
    for _ in 0..2 {
        let mode = subagent_fact(&handle, &mut watcher, mode_of).await;
        assert_eq!(mode, PermissionMode::Auto, "a subagent gets at most its initial mode");
    }
    env.models["inner"].open_gate("on");
    events_until_end(&handle, &mut watcher).await;
    let subagents = env.subagents().await;
    assert_eq!(subagents.len(), 2);
    for facts in subagents.values() {
        let modes: Vec<PermissionMode> = facts.iter().filter_map(mode_of).collect();
        assert_eq!(modes, [PermissionMode::Plan, PermissionMode::Auto]);
    }
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_resumed_subagent_has_at_most_the_mode_of_its_parent() {
    let edit = "call test_tool {\"action\": \"edit\"}";
    let env = TestEnv::new(
        &[(ROOT, &[TASK_CALL, "say Done."]), ("helper", &["say Hi.", edit, "say Played."])],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    events_until_end(&handle, &mut watcher).await;
    let subagent = *env.subagents().await.keys().next().unwrap();
    // The user has opened the subagent session and set a permissive mode.
    let (subagent_handle, mut subagent_watcher) = env.engine.open(subagent).await.unwrap();
    assert!(subagent_handle.send(SessionOp::SetMode { mode: PermissionMode::Full }).await);
    let is_mode_change = |event: &Event| match event {
        Event::Fact(record) => mode_of(&record.fact).is_some(),
        Event::Live(_) => false,
    };
    while !is_mode_change(&subagent_watcher.next().await.unwrap().unwrap()) {}
    subagent_handle.close().await.unwrap();
    assert!(handle.send(SessionOp::SetMode { mode: PermissionMode::Plan }).await);
    let arguments = format!("{{\"agent\": \"helper\", \"session\": \"{subagent}\"}}");
    assert!(handle.send(SessionOp::CallTool { tool: "task".into(), arguments }).await);
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(subagent).await;
    assert!(matches!(outcomes(&facts)[..], [CallOutcome::Denied { .. }]), "{facts:?}");
    assert_eq!(env.runs.load(Ordering::SeqCst), 0);
    handle.close().await.unwrap();
}

/// Returns the call that a fact asks about, or `None` if the fact settles a call without a request.
fn asked_or_settled(fact: &Fact) -> Option<Option<CallId>> {
    match fact {
        Fact::PermissionAsked { call, .. } => Some(Some(*call)),
        Fact::CallSettled { .. } => Some(None),
        _ => None,
    }
}

/// Waits for a permission request of a subagent, and approves the call for the session.
async fn approve_for_session(handle: &SessionHandle, watcher: &mut SessionWatcher) {
    let asked = subagent_fact(handle, watcher, asked_or_settled).await;
    let call = asked.expect("the user is asked");
    let answer = PermissionAnswer::Session;
    assert!(handle.send(SessionOp::AnswerPermission { call, answer, asked: None }).await);
    assert_eq!(subagent_fact(handle, watcher, asked_or_settled).await, None, "it is settled");
}

#[tokio::test]
async fn revoked_approvals_end_in_a_running_background_subagent() {
    let env = TestEnv::new(
        &[
            (ROOT, &["call task {\"agent\": \"helper\", \"background\": true}", "say Meanwhile."]),
            (
                "helper",
                &[
                    TOOL_CALL,
                    "call test_tool {\"action\": \"second\"}",
                    "gate go\ncall test_tool {\"action\": \"third\"}",
                    "say Done.",
                ],
            ),
        ],
        r#"{"test_tool": "ask"}"#,
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    approve_for_session(&handle, &mut watcher).await;
    let second = subagent_fact(&handle, &mut watcher, asked_or_settled).await;
    assert_eq!(second, None, "the approval is remembered");
    assert!(handle.send(SessionOp::RevokeApprovals).await);
    let is_revoked = |fact: &Fact| matches!(fact, Fact::ApprovalsRevoked).then_some(());
    subagent_fact(&handle, &mut watcher, is_revoked).await;
    env.models["helper"].open_gate("go");
    approve_for_session(&handle, &mut watcher).await;
    assert_eq!(env.runs.load(Ordering::SeqCst), 3);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_resumed_subagent_has_no_approvals_from_before() {
    let env = TestEnv::new(
        &[
            (ROOT, &[TASK_CALL, "say Done."]),
            (
                "helper",
                &[
                    TOOL_CALL,
                    "say One.",
                    "call test_tool {\"action\": \"second\"}",
                    "call test_tool {\"action\": \"third\"}",
                    "say Two.",
                ],
            ),
        ],
        r#"{"test_tool": "ask"}"#,
        TurnLimits::default(),
    )
    .await;
    let (handle, mut watcher) = env.start_session().await;
    approve_for_session(&handle, &mut watcher).await;
    events_until_end(&handle, &mut watcher).await;
    // The revocation cannot reach the subagent, which does not run.
    assert!(handle.send(SessionOp::RevokeApprovals).await);
    let subagent = *env.subagents().await.keys().next().unwrap();
    let arguments = format!("{{\"agent\": \"helper\", \"session\": \"{subagent}\"}}");
    assert!(handle.send(SessionOp::CallTool { tool: "task".into(), arguments }).await);
    approve_for_session(&handle, &mut watcher).await;
    let third = subagent_fact(&handle, &mut watcher, asked_or_settled).await;
    assert_eq!(third, None, "the new approval is remembered");
    events_until_end(&handle, &mut watcher).await;
    let facts = env.facts(subagent).await;
    let revocations = facts.iter().filter(|fact| matches!(fact, Fact::ApprovalsRevoked));
    assert_eq!(revocations.count(), 1, "{facts:?}");
    handle.close().await.unwrap();
}

/// Returns the facts of each session up to the end of the session, and checks that none is missing
/// or repeated after those that were seen before.
async fn facts_of_all(
    mut watcher: SessionWatcher,
    mut seen: BTreeMap<SessionId, Vec<FactRecord>>,
) -> BTreeMap<SessionId, Vec<FactRecord>> {
    while let Some(event) =
        tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap().unwrap()
    {
        if let Event::Fact(record) = &*event {
            let facts = seen.entry(record.session).or_default();
            let last = facts.last().map_or(0, |last| last.seq);
            assert_eq!(record.seq, last + 1, "missing or repeated: {record:?}");
            facts.push(record.clone());
        }
    }
    seen
}

#[tokio::test]
async fn every_watcher_gets_each_fact_of_each_session_once() {
    let calls: Vec<String> =
        (0..30).map(|n| format!("call test_tool {{\"action\": \"{n}\"}}")).collect();
    let mut helper: Vec<&str> = calls.iter().map(String::as_str).collect();
    helper.extend(["say Played.", calls[0].as_str(), "say Again."]);
    let env = TestEnv::new(
        &[(ROOT, &[TASK_CALL, "say Done."]), ("helper", helper.as_slice())],
        "\"allow\"",
        TurnLimits::default(),
    )
    .await;
    let (handle, mut first) = env.start_session().await;
    // A client comes with every event, from the beginning or from where the first one is.
    let mut clients = Vec::new();
    let mut seen: BTreeMap<SessionId, Vec<FactRecord>> = BTreeMap::new();
    let mut turns = 0;
    while turns < 2 {
        let timeout = Duration::from_secs(20);
        let event = tokio::time::timeout(timeout, first.next()).await.unwrap().unwrap().unwrap();
        let Event::Fact(record) = &*event else { continue };
        let facts = seen.entry(record.session).or_default();
        assert_eq!(record.seq, facts.len() as u64 + 1, "missing or repeated: {record:?}");
        facts.push(record.clone());
        let fresh = handle.watch(EventCursor::default()).await;
        clients.push(tokio::spawn(facts_of_all(fresh, BTreeMap::new())));
        let cursor: EventCursor = first.cursor().to_string().parse().unwrap();
        let resumed = handle.watch(cursor).await;
        clients.push(tokio::spawn(facts_of_all(resumed, seen.clone())));
        let is_end = matches!(record.fact, Fact::TurnEnded { .. });
        if record.session == handle.session && is_end {
            turns += 1;
            if turns == 1 {
                // The user's call lets the same subagent work on.
                let subagent = *env.subagents().await.keys().next().unwrap();
                let arguments = format!("{{\"agent\": \"helper\", \"session\": \"{subagent}\"}}");
                assert!(handle.send(SessionOp::CallTool { tool: "task".into(), arguments }).await);
            }
        }
    }
    handle.close().await.unwrap();
    let mut logs = BTreeMap::new();
    for session in env.subagents().await.into_keys().chain([handle.session]) {
        logs.insert(session, read_all(&*env.log, session, 0).await.unwrap());
    }
    assert!(logs.len() == 2 && logs.values().any(|log| log.len() > 150));
    assert!(clients.len() > 100, "{}", clients.len());
    for client in clients {
        let seen = client.await.unwrap();
        for (session, log) in &logs {
            assert!(
                seen.get(session) == Some(log),
                "{session}: {:?}",
                seen.get(session).map(Vec::len)
            );
        }
    }
}

#[tokio::test]
async fn a_cursor_opens_no_other_session() {
    let env =
        TestEnv::new(&[(ROOT, &["say One.", "say Two."])], "\"allow\"", TurnLimits::default())
            .await;
    let (other, mut watcher) = env.start_session().await;
    events_until_end(&other, &mut watcher).await;
    let (handle, mut watcher) = env.start_session().await;
    events_until_end(&handle, &mut watcher).await;
    let cursor: EventCursor = format!("0~{}:0", other.session).parse().unwrap();
    let foreign = handle.watch(cursor).await;
    handle.close().await.unwrap();
    let seen = facts_of_all(foreign, BTreeMap::new()).await;
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [handle.session]);
    other.close().await.unwrap();
}
