//! Sessions that calls begin, with real drivers: what they may do, who is asked, how they end, and
//! what they spend.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windlass_engine::session::Limits;
use windlass_engine::{Asked, Engine, Handle, Role, Settings, Watcher, Worker};
use windlass_llm::wire::Format;
use windlass_permission::Rules;
use windlass_protocol::{
    Access, Answer, Event, Fact, Live, Mode, Op, Outcome, Output, SessionId, TurnEnd,
};
use windlass_storage::{Log, read_all};
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Bounds, Cx, Definition, Failure, Scene, Spawn, Tool};

/// A tool that does what it is told: `ok`, `slow`, `deaf`.
struct Puppet(Arc<AtomicUsize>);

#[derive(Deserialize, JsonSchema)]
struct Order {
    order: String,
}

#[async_trait]
impl Tool for Puppet {
    type Input = Order;

    fn name(&self) -> &str {
        "puppet"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Order>("A puppet.")
    }

    fn access(&self, input: &Order) -> Vec<Access> {
        match input.order.as_str() {
            "edit" => vec![Access::Edit { path: "a.txt".into() }],
            _ => vec![Access::Use { tool: "puppet".into() }],
        }
    }

    async fn run(&self, input: Order, cx: &Cx<'_>) -> Result<Output, Failure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match input.order.as_str() {
            "slow" => {
                cx.cancel.cancelled().await;
                Err(Failure::new("stopped by itself"))
            }
            "deaf" => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(Output::default())
            }
            _ => Ok(Output { text: "done".into(), ..Output::default() }),
        }
    }
}

/// Puts an agent to work, as `task` does.
struct Task;

#[derive(Deserialize, JsonSchema)]
struct Work {
    agent: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl Tool for Task {
    type Input = Work;

    fn name(&self) -> &str {
        "task"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Work>("Has somebody work.")
    }

    fn access(&self, input: &Work) -> Vec<Access> {
        vec![Access::Task { agent: input.agent.clone() }]
    }

    async fn run(&self, input: Work, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Work { agent, session, background } = input;
        let session = session.map(|id| id.parse().unwrap());
        let (description, prompt) = ("a task".to_owned(), "do it".to_owned());
        let spawn = Spawn { agent, description, prompt, session, background };
        let report = cx.caller.spawn(spawn).await?;
        let text = format!("{:?} {} in {}", report.end, report.text, report.session);
        Ok(Output { text, ..Output::default() })
    }
}

struct Yard {
    _folder: tempfile::TempDir,
    models: BTreeMap<&'static str, Model>,
    log: Arc<dyn Log>,
    engine: Engine,
    runs: Arc<AtomicUsize>,
}

const ROOT: &str = "root";

impl Yard {
    /// Each agent has a model of its own, and so does the session that a person begins.
    async fn new(scripts: &[(&'static str, &[&str])], rules: &str, limits: Limits) -> Yard {
        Yard::with(scripts, rules, limits, |_| {}).await
    }

    async fn with(
        scripts: &[(&'static str, &[&str])],
        rules: &str,
        limits: Limits,
        change: impl Fn(&mut Worker),
    ) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let runtime = yard::runtime(folder.path(), yard::policy(rules));
        let runs = Arc::new(AtomicUsize::new(0));
        runtime.registry.register(Puppet(Arc::clone(&runs)));
        runtime.registry.register(Task);
        let mut models = BTreeMap::new();
        let mut asked = BTreeMap::new();
        for (name, replies) in scripts {
            let model = Model::start(Script::new(replies.iter().copied()));
            asked.insert(*name, yard::asked(&model.url(), Format::OpenaiChat));
            models.insert(*name, model);
        }
        let mut settings = Settings::new("/w", asked.remove(ROOT), "p/root");
        settings.limits = limits;
        let worker = |(name, asked): (&str, Asked)| {
            let mut worker = Worker {
                name: name.to_owned(),
                description: format!("For {name}."),
                role: Role::Subagent,
                prompt: format!("You are {name}.").into(),
                bounds: Bounds::default(),
                model: Some((asked, format!("p/{name}").into())),
            };
            change(&mut worker);
            Arc::new(worker)
        };
        settings.agents = asked.into_iter().map(worker).collect();
        let log: Arc<dyn Log> = yard::log(folder.path()).await;
        let engine = Engine::new(Arc::clone(&log), Arc::new(runtime), settings);
        Yard { _folder: folder, models, log, engine, runs }
    }

    async fn prompted(&self) -> (Handle, Watcher) {
        let (handle, watcher) = self.engine.create().await.unwrap();
        assert!(handle.send(Op::prompt("go")).await);
        (handle, watcher)
    }

    async fn facts(&self, session: SessionId) -> Vec<Fact> {
        let log = read_all(&*self.log, session, 0).await.unwrap();
        log.into_iter().map(|record| record.fact).collect()
    }

    /// The sessions that calls began, each with its log; all logs are as logs can be.
    async fn children(&self) -> BTreeMap<SessionId, Vec<Fact>> {
        let mut children = BTreeMap::new();
        for row in self.log.list().await.unwrap() {
            let facts = self.facts(row.session).await;
            grammar::check(&facts).unwrap();
            if row.parent.is_some() {
                children.insert(row.session, facts);
            }
        }
        children
    }

    fn requests(&self) -> usize {
        self.models.values().map(|model| model.requests().len()).sum()
    }

    async fn while_runs_are(&self, fewer: usize) {
        let started = Instant::now();
        while self.runs.load(Ordering::SeqCst) < fewer {
            assert!(started.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Everything that is seen until the session's own turn ends.
async fn seen(handle: &Handle, watcher: &mut Watcher) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    let patience = Duration::from_secs(20);
    while let Some(event) = tokio::time::timeout(patience, watcher.next()).await.unwrap().unwrap() {
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

fn end_of(facts: &[Fact]) -> Option<&TurnEnd> {
    facts.iter().rev().find_map(|fact| match fact {
        Fact::TurnEnded { end, .. } => Some(end),
        _ => None,
    })
}

fn outcomes(facts: &[Fact]) -> Vec<&Outcome> {
    let mut outcomes = Vec::new();
    for fact in facts {
        if let Fact::Settled { outcome, .. } = fact {
            outcomes.push(outcome);
        }
    }
    outcomes
}

const WORK: &str = "call task {\"agent\": \"helper\"}";
const PLAY: &str = "call puppet {\"order\": \"ok\"}";

#[tokio::test]
async fn an_agent_works_in_a_session_of_its_own_and_its_last_word_comes_back() {
    let helper: &[&str] = &[PLAY, "say The answer is 7."];
    let yard = Yard::new(
        &[(ROOT, &[WORK, "say Seven."]), ("helper", helper)],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    let events = seen(&handle, &mut watcher).await;
    let facts = yard.facts(handle.session).await;
    grammar::check_settled(&facts).unwrap();
    assert!(outcomes(&facts)[0].text().contains("The answer is 7."), "{facts:?}");
    let children = yard.children().await;
    let (child, log) = children.iter().next().unwrap();
    grammar::check_settled(log).unwrap();
    let Fact::Opened { parent: Some(parent), agent, .. } = &log[0] else { panic!("{log:?}") };
    assert_eq!((parent.session, agent.as_str()), (handle.session, "helper"));
    let spawned = |event: &Arc<Event>| matches!(&**event, Event::Fact(record) if matches!(&record.fact, Fact::Spawned { session, .. } if session == child));
    let opened =
        |event: &Arc<Event>| matches!(&**event, Event::Fact(record) if record.session == *child);
    let (spawned, opened) = (events.iter().position(spawned), events.iter().position(opened));
    assert!(spawned.unwrap() < opened.unwrap(), "on record before it starts");
    let progress = events.iter().filter_map(|event| match &**event {
        Event::Live(glimpse) if glimpse.session == handle.session => match &glimpse.live {
            Live::Progress { call, text } if *call == parent.call => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    let progress: Vec<&str> = progress.collect();
    assert!(progress.contains(&"helper: puppet {\"order\": \"ok\"}"), "{progress:?}");
    let asked = yard.models["helper"].requests()[0].to_string();
    assert!(asked.contains("You are helper.") && asked.contains("do it"), "{asked}");
    assert!(asked.contains("\"puppet\"") && !asked.contains("\"task\""), "{asked}");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn what_is_denied_to_the_parent_is_denied_to_the_child_whatever_its_agent_says() {
    let scripts: &[(&str, &[&str])] =
        &[(ROOT, &[WORK, "say Done."]), ("helper", &[PLAY, "say Done."])];
    let lax = |worker: &mut Worker| {
        worker.bounds.rules = vec![Rules::parse(&serde_json::json!("allow")).unwrap()];
        worker.bounds.tools = vec![("puppet".into(), true)];
    };
    for rules in [r#"{"puppet": "deny"}"#, r#"{"*": "allow", "puppet": {"*": "deny"}}"#] {
        let yard = Yard::with(scripts, rules, Limits::default(), lax).await;
        let (handle, mut watcher) = yard.prompted().await;
        seen(&handle, &mut watcher).await;
        assert_eq!(yard.runs.load(Ordering::SeqCst), 0);
        let children = yard.children().await;
        let log = children.values().next().unwrap();
        assert!(matches!(outcomes(log)[..], [Outcome::Denied { .. }]), "{log:?}");
    }
    // And what its agent denies itself is denied to it alone.
    let strict = |worker: &mut Worker| worker.bounds.tools = vec![("*".into(), false)];
    let yard = Yard::with(
        &[(ROOT, &[WORK, PLAY, "say Done."]), ("helper", &[PLAY, "say Done."])],
        "\"allow\"",
        Limits::default(),
        strict,
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    seen(&handle, &mut watcher).await;
    assert_eq!(yard.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_agent_that_is_denied_is_not_put_to_work() {
    let rules = r#"{"*": "allow", "task": {"helper": "deny"}}"#;
    let yard =
        Yard::new(&[(ROOT, &[WORK, "say Done."]), ("helper", &[])], rules, Limits::default()).await;
    let (handle, mut watcher) = yard.prompted().await;
    seen(&handle, &mut watcher).await;
    let facts = yard.facts(handle.session).await;
    assert!(matches!(outcomes(&facts)[..], [Outcome::Denied { .. }]), "{facts:?}");
    assert!(yard.children().await.is_empty());
}

#[tokio::test]
async fn a_childs_question_reaches_whoever_watches_the_parent_and_their_answer_reaches_it() {
    for answer in [Answer::Once, Answer::No { reason: None }] {
        let yard = Yard::new(
            &[(ROOT, &[WORK, "say Done."]), ("helper", &[PLAY, "say Played."])],
            r#"{"puppet": "ask"}"#,
            Limits::default(),
        )
        .await;
        let (handle, mut watcher) = yard.prompted().await;
        let patience = Duration::from_secs(20);
        let call = loop {
            let next = tokio::time::timeout(patience, watcher.next()).await.unwrap();
            if let Event::Fact(record) = &*next.unwrap().unwrap()
                && let Fact::Asked { call, .. } = &record.fact
            {
                assert_ne!(record.session, handle.session);
                break *call;
            }
        };
        assert!(handle.send(Op::Answer { call, answer: answer.clone() }).await);
        seen(&handle, &mut watcher).await;
        assert_eq!(yard.runs.load(Ordering::SeqCst), usize::from(answer.is_yes()));
        let children = yard.children().await;
        let end = end_of(children.values().next().unwrap()).unwrap();
        assert_eq!(*end, if answer.is_yes() { TurnEnd::Done } else { TurnEnd::Denied });
        let facts = yard.facts(handle.session).await;
        grammar::check_settled(&facts).unwrap();
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_watcher_that_falls_far_behind_misses_no_question_of_a_child() {
    let long = format!("say {}", "word ".repeat(5_000));
    let yard = Yard::new(
        &[
            (ROOT, &["call task {\"agent\": \"helper\", \"background\": true}", &long]),
            ("helper", &[PLAY, "say Played."]),
        ],
        r#"{"puppet": "ask"}"#,
        Limits::default(),
    )
    .await;
    let (handle, mut slow) = yard.prompted().await;
    let mut quick = handle.watch().unwrap();
    seen(&handle, &mut quick).await;
    let asks = |log: &Vec<Fact>| log.iter().any(|fact| matches!(fact, Fact::Asked { .. }));
    while !yard.children().await.values().any(asks) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let patience = Duration::from_secs(20);
    let mut facts = Vec::new();
    let call = loop {
        let next = tokio::time::timeout(patience, slow.next()).await.unwrap();
        if let Event::Fact(record) = &*next.unwrap().unwrap() {
            assert!(!facts.contains(record), "twice the same");
            facts.push(record.clone());
            if let Fact::Asked { call, .. } = &record.fact {
                break *call;
            }
        }
    };
    handle.send(Op::Answer { call, answer: Answer::Once }).await;
    yard.while_runs_are(1).await;
    handle.close().await.unwrap();
}

#[tokio::test]
async fn stopping_the_parent_ends_every_child_within_a_second() {
    let root = "call task {\"agent\": \"slow\"}\ncall task {\"agent\": \"deaf\"}\n\
                call task {\"agent\": \"mute\"}\n\
                call task {\"agent\": \"back\", \"background\": true}";
    let yard = Yard::new(
        &[
            (ROOT, &[root, "say Never."]),
            ("slow", &["call puppet {\"order\": \"slow\"}", "say Never."]),
            ("deaf", &["call puppet {\"order\": \"deaf\"}", "say Never."]),
            ("mute", &["gate never\nsay Never."]),
            ("back", &["call puppet {\"order\": \"deaf\"}", "say Never."]),
        ],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    yard.while_runs_are(3).await;
    while yard.models["mute"].requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let asked = Instant::now();
    handle.send(Op::Interrupt).await;
    seen(&handle, &mut watcher).await;
    let children = loop {
        let children = yard.children().await;
        if children.values().all(|log| end_of(log).is_some()) {
            break children;
        }
        assert!(asked.elapsed() < Duration::from_secs(1), "{children:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert_eq!(children.len(), 4);
    for log in children.values() {
        assert_eq!(end_of(log), Some(&TurnEnd::Interrupted));
        grammar::check_settled(log).unwrap();
    }
    yard.models["mute"].wait_until_nobody_listens();
    let facts = yard.facts(handle.session).await;
    assert_eq!(end_of(&facts), Some(&TurnEnd::Interrupted));
    // Nobody writes to them any more.
    tokio::time::sleep(Duration::from_millis(300)).await;
    for session in children.keys() {
        drop(yard.log.claim(*session).await.unwrap());
    }
    handle.close().await.unwrap();
}

#[tokio::test]
async fn closing_the_parent_ends_the_children_too() {
    let yard = Yard::new(
        &[(ROOT, &[WORK]), ("helper", &["call puppet {\"order\": \"deaf\"}"])],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, _watcher) = yard.prompted().await;
    yard.while_runs_are(1).await;
    let asked = Instant::now();
    handle.close().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    for session in yard.children().await.keys() {
        drop(yard.log.claim(*session).await.unwrap());
    }
}

/// Every request takes 105 tokens here.
const STEP: u64 = 105;

#[tokio::test]
async fn a_budget_is_passed_by_one_request_at_most_however_many_share_it() {
    let root = [WORK; 3].join("\n");
    let helper: Vec<&str> = vec![PLAY; 40];
    let scripts: &[(&str, &[&str])] =
        &[(ROOT, &[&root, "say Done.", "say Never."]), ("helper", &helper)];
    for tokens in [1, 100, 105, 106, 210, 300, 500, 1_000] {
        let limits = Limits { tokens: Some(tokens), ..Limits::default() };
        let yard = Yard::new(scripts, "\"allow\"", limits).await;
        let (handle, mut watcher) = yard.prompted().await;
        seen(&handle, &mut watcher).await;
        let facts = yard.facts(handle.session).await;
        grammar::check_settled(&facts).unwrap();
        let end = end_of(&facts).unwrap();
        assert!(matches!(end, TurnEnd::Limit { .. }), "{tokens}: {end:?}");
        let spent = yard.requests() as u64 * STEP;
        assert!(spent < tokens + STEP, "{tokens}: {spent} were spent");
        assert!(spent >= tokens, "{tokens}: it stopped at {spent}");
        handle.close().await.unwrap();
    }
    for steps in [1, 2, 3, 7] {
        let limits = Limits { steps, ..Limits::default() };
        let yard = Yard::new(scripts, "\"allow\"", limits).await;
        let (handle, mut watcher) = yard.prompted().await;
        seen(&handle, &mut watcher).await;
        assert_eq!(yard.requests(), steps as usize);
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_session_is_gone_on_with_only_by_those_who_began_it() {
    let helper: &[&str] = &["say One.", "say Two."];
    let yard = Yard::new(
        &[(ROOT, &[WORK, "say Done.", "gate go\nsay Done."]), ("helper", helper), ("other", &[])],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    seen(&handle, &mut watcher).await;
    let child = *yard.children().await.keys().next().unwrap();
    let call = |agent: &str, session: SessionId| Op::Call {
        tool: "task".into(),
        arguments: format!("{{\"agent\": \"{agent}\", \"session\": \"{session}\"}}"),
    };
    handle.send(call("helper", child)).await;
    seen(&handle, &mut watcher).await;
    let facts = yard.facts(handle.session).await;
    let last = outcomes(&facts).pop().unwrap().text().to_owned();
    assert!(last.contains("Two.") && last.contains(&child.to_string()), "{last}");
    assert_eq!(yard.children().await.len(), 1);
    // Another agent, a session that is nobody's child, and one that is not there.
    let nobody = SessionId(uuid());
    for (agent, session) in [("other", child), ("helper", handle.session), ("helper", nobody)] {
        handle.send(call(agent, session)).await;
        seen(&handle, &mut watcher).await;
        let facts = yard.facts(handle.session).await;
        assert!(matches!(outcomes(&facts).pop(), Some(Outcome::Failed { .. })), "{facts:?}");
    }
    // A stranger.
    let (stranger, mut watcher) = yard.engine.create().await.unwrap();
    stranger.send(call("helper", child)).await;
    seen(&stranger, &mut watcher).await;
    let facts = yard.facts(stranger.session).await;
    assert!(matches!(outcomes(&facts).pop(), Some(Outcome::Failed { .. })), "{facts:?}");
    assert_eq!(yard.models["helper"].requests().len(), 2);
}

fn uuid() -> uuid::Uuid {
    uuid::Uuid::from_u128(7)
}

#[tokio::test]
async fn children_have_children_only_so_deep_and_only_where_their_agent_says_so() {
    let deep: &[&str] = &["call task {\"agent\": \"deep\"}", "say Up."];
    let scripts: &[(&str, &[&str])] =
        &[(ROOT, &["call task {\"agent\": \"deep\"}", "say Done."]), ("deep", deep)];
    for (given, expected) in [(true, 3), (false, 1)] {
        let give = |worker: &mut Worker| worker.bounds.tools = vec![("task".into(), given)];
        let yard = Yard::with(scripts, "\"allow\"", Limits::default(), give).await;
        let (handle, mut watcher) = yard.prompted().await;
        seen(&handle, &mut watcher).await;
        let children = yard.children().await;
        assert_eq!(children.len(), expected);
        assert!(children.values().all(|log| end_of(log) == Some(&TurnEnd::Done)));
    }
}

#[tokio::test]
async fn only_so_many_are_at_work_at_once() {
    let root = [WORK; 10].join("\n");
    let yard = Yard::new(
        &[(ROOT, &[&root, "say Done."]), ("helper", &["gate go\nsay Done."])],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    while yard.models["helper"].requests().len() < 8 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    yard.models["helper"].open_gate("go");
    seen(&handle, &mut watcher).await;
    let facts = yard.facts(handle.session).await;
    let failed = outcomes(&facts).into_iter().filter(|it| matches!(it, Outcome::Failed { .. }));
    assert_eq!((failed.count(), yard.children().await.len()), (2, 8));
}

#[tokio::test]
async fn nobody_waits_for_work_in_the_background_and_its_end_is_told() {
    let yard = Yard::new(
        &[
            (ROOT, &["call task {\"agent\": \"helper\", \"background\": true}", "say Meanwhile."]),
            ("helper", &["gate go\nsay Found it."]),
        ],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    seen(&handle, &mut watcher).await;
    let facts = yard.facts(handle.session).await;
    assert_eq!(end_of(&facts), Some(&TurnEnd::Done));
    yard.models["helper"].open_gate("go");
    let patience = Duration::from_secs(20);
    let told = loop {
        let next = tokio::time::timeout(patience, watcher.next()).await.unwrap();
        if let Event::Fact(record) = &*next.unwrap().unwrap()
            && let Fact::ContextChanged { text } = &record.fact
        {
            break text.clone();
        }
    };
    assert!(told.contains("helper") && told.contains("Found it."), "{told}");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn after_a_crash_the_same_call_goes_on_with_the_same_session() {
    let yard = Yard::new(
        &[(ROOT, &[WORK, "say Done."]), ("helper", &[PLAY, "gate go\nsay Found it."])],
        "\"allow\"",
        Limits { tokens: Some(10 * STEP), ..Limits::default() },
    )
    .await;
    let (handle, _watcher) = yard.prompted().await;
    while yard.models["helper"].requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let session = handle.session;
    handle.close().await.unwrap();
    yard.models["helper"].open_gate("go");
    let (handle, mut watcher) = yard.engine.open(session).await.unwrap();
    seen(&handle, &mut watcher).await;
    let facts = yard.facts(session).await;
    grammar::check_settled(&facts).unwrap();
    assert!(outcomes(&facts)[0].text().contains("Found it."), "{facts:?}");
    let spawned = facts.iter().filter(|fact| matches!(fact, Fact::Spawned { .. }));
    let children = yard.children().await;
    assert_eq!((spawned.count(), children.len()), (1, 1));
    let log = children.values().next().unwrap();
    let prompts = log.iter().filter(|fact| matches!(fact, Fact::Prompted { .. }));
    assert_eq!((prompts.count(), yard.runs.load(Ordering::SeqCst)), (1, 1), "{log:?}");
}

/// Waits for a fact of another session than the watched one.
async fn child_fact<T>(
    handle: &Handle,
    watcher: &mut Watcher,
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

fn mode_of(fact: &Fact) -> Option<Mode> {
    match fact {
        Fact::ModeChanged { mode } => Some(*mode),
        _ => None,
    }
}

#[tokio::test]
async fn a_stricter_mode_reaches_children_at_work_and_a_laxer_one_no_more_than_they_began_with() {
    let deep: &[&str] = &["call task {\"agent\": \"inner\"}", "say Done."];
    let yard = Yard::with(
        &[
            (ROOT, &["call task {\"agent\": \"outer\"}", "say Done."]),
            ("outer", deep),
            ("inner", &["gate go\ncall puppet {\"order\": \"edit\"}", "gate on\nsay Done."]),
        ],
        "\"allow\"",
        Limits::default(),
        |worker| worker.bounds.tools.push(("task".to_owned(), worker.name == "outer")),
    )
    .await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    assert!(handle.send(Op::Mode { mode: Mode::Auto }).await);
    assert!(handle.send(Op::prompt("go")).await);
    let started = |fact: &Fact| match fact {
        Fact::StepStarted { model, .. } if model == "p/inner" => Some(()),
        _ => None,
    };
    child_fact(&handle, &mut watcher, started).await;
    assert!(handle.send(Op::Mode { mode: Mode::Plan }).await);
    // The child's and the grandchild's.
    for _ in 0..2 {
        assert_eq!(child_fact(&handle, &mut watcher, mode_of).await, Mode::Plan);
    }
    yard.models["inner"].open_gate("go");
    let settled = |fact: &Fact| match fact {
        Fact::Settled { outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    let outcome = child_fact(&handle, &mut watcher, settled).await;
    assert!(matches!(outcome, Outcome::Denied { .. }), "{outcome:?}");
    assert_eq!(yard.runs.load(Ordering::SeqCst), 0);
    assert!(handle.send(Op::Mode { mode: Mode::Full }).await);
    for _ in 0..2 {
        let mode = child_fact(&handle, &mut watcher, mode_of).await;
        assert_eq!(mode, Mode::Auto, "they began with it, and get no more");
    }
    yard.models["inner"].open_gate("on");
    seen(&handle, &mut watcher).await;
    let children = yard.children().await;
    assert_eq!(children.len(), 2);
    for facts in children.values() {
        let modes: Vec<Mode> = facts.iter().filter_map(mode_of).collect();
        assert_eq!(modes, [Mode::Plan, Mode::Auto]);
    }
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_child_that_is_gone_on_with_is_no_laxer_than_its_parent_is_now() {
    let edit = "call puppet {\"order\": \"edit\"}";
    let yard = Yard::new(
        &[(ROOT, &[WORK, "say Done."]), ("helper", &["say Hi.", edit, "say Played."])],
        "\"allow\"",
        Limits::default(),
    )
    .await;
    let (handle, mut watcher) = yard.prompted().await;
    seen(&handle, &mut watcher).await;
    let child = *yard.children().await.keys().next().unwrap();
    // Somebody was in the child's session and left it lax.
    let (own, mut watching) = yard.engine.open(child).await.unwrap();
    assert!(own.send(Op::Mode { mode: Mode::Full }).await);
    let changed = |event: &Event| match event {
        Event::Fact(record) => mode_of(&record.fact).is_some(),
        Event::Live(_) => false,
    };
    while !changed(&watching.next().await.unwrap().unwrap()) {}
    own.close().await.unwrap();
    assert!(handle.send(Op::Mode { mode: Mode::Plan }).await);
    let arguments = format!("{{\"agent\": \"helper\", \"session\": \"{child}\"}}");
    assert!(handle.send(Op::Call { tool: "task".into(), arguments }).await);
    seen(&handle, &mut watcher).await;
    let facts = yard.facts(child).await;
    assert!(matches!(outcomes(&facts)[..], [Outcome::Denied { .. }]), "{facts:?}");
    assert_eq!(yard.runs.load(Ordering::SeqCst), 0);
    handle.close().await.unwrap();
}
