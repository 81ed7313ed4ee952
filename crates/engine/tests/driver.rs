//! The driver with real parts: SQLite, HTTP, a workspace; and what it does when one of them fails.
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
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windlass_engine::session::Limits;
use windlass_engine::{Engine, Handle, Settings, Watcher};
use windlass_llm::catalog::Model as Row;
use windlass_llm::wire::Format;
use windlass_protocol::{
    Access, Attachment, Delivery, Event, Fact, Fault, Op, Outcome, Output, Record, TurnEnd,
};
use windlass_storage::{Error, Log, Tap, Tapped, Writing, read_all};
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// A tool that does what it is told: `ok`, `panic`, `slow`.
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

    fn access(&self, _input: &Order) -> Vec<Access> {
        vec![Access::Use { tool: "puppet".into() }]
    }

    async fn run(&self, input: Order, cx: &Cx<'_>) -> Result<Output, Failure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match input.order.as_str() {
            "panic" => panic!("the puppet falls"),
            "slow" => {
                cx.caller.progress("dawdling".into());
                cx.cancel.cancelled().await;
                Err(Failure::new("stopped by itself"))
            }
            _ => Ok(Output { text: "done".into(), ..Output::default() }),
        }
    }
}

/// From the n-th append on, all fail.
struct Failing {
    appends: AtomicUsize,
    fail_from: usize,
}

impl Tap for Failing {
    fn before(&self, write: Writing) -> Result<(), Error> {
        let Writing::Facts(session) = write else { return Ok(()) };
        match self.appends.fetch_add(1, Ordering::SeqCst) >= self.fail_from {
            true => Err(Error::Fenced { session }),
            false => Ok(()),
        }
    }
}

struct Yard {
    _folder: tempfile::TempDir,
    model: Model,
    log: Arc<dyn Log>,
    engine: Engine,
    runs: Arc<AtomicUsize>,
}

impl Yard {
    async fn new(replies: &[&str]) -> Yard {
        Yard::failing_from(replies, usize::MAX).await
    }

    async fn failing_from(replies: &[&str], fail_from: usize) -> Yard {
        Yard::with(Format::OpenaiChat, replies, fail_from).await
    }

    async fn speaking(format: Format, replies: &[&str]) -> Yard {
        Yard::with(format, replies, usize::MAX).await
    }

    async fn with(format: Format, replies: &[&str], fail_from: usize) -> Yard {
        Yard::set(format, replies, fail_from, |_| {}).await
    }

    /// One whose sessions are named by their model, which has a price.
    async fn named(replies: &[&str], limits: Limits) -> Yard {
        Yard::set(Format::OpenaiChat, replies, usize::MAX, |settings| {
            (settings.titles, settings.limits) = (true, limits);
            let asked = settings.model.as_mut().unwrap();
            let mut row = (*asked.model).clone();
            (row.price.input, row.price.output) = (Some(1.0), Some(2.0));
            asked.model = Arc::new(row);
        })
        .await
    }

    async fn set(
        format: Format,
        replies: &[&str],
        fail_from: usize,
        change: impl Fn(&mut Settings),
    ) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(Script::new(replies.iter().copied()));
        let runtime = yard::runtime(folder.path(), yard::policy("\"allow\""));
        let runs = Arc::new(AtomicUsize::new(0));
        runtime.registry.register(Puppet(Arc::clone(&runs)));
        let mut asked = yard::asked(&model.url(), format);
        asked.model = Arc::new(Row { images: true, ..Row::assumed("m") });
        let mut settings = Settings::new("/w", Some(asked), "p/m");
        change(&mut settings);
        let sqlite = yard::log(folder.path()).await;
        let appends = AtomicUsize::new(0);
        let log: Arc<dyn Log> = Arc::new(Tapped::new(sqlite, Failing { appends, fail_from }));
        let engine = Engine::new(Arc::clone(&log), Arc::new(runtime), settings);
        Yard { _folder: folder, model, log, engine, runs }
    }

    async fn prompted(&self) -> (Handle, Watcher) {
        let (handle, watcher) = self.engine.create().await.unwrap();
        assert!(handle.send(Op::prompt("go")).await);
        (handle, watcher)
    }

    async fn stored(&self, handle: &Handle) -> Vec<Fact> {
        let log = read_all(&*self.log, handle.session, 0).await.unwrap();
        log.into_iter().map(|record| record.fact).collect()
    }
}

/// All facts up to the end of the turn, or of the session.
async fn facts(watcher: &mut Watcher) -> Vec<Fact> {
    let mut facts = Vec::new();
    let patience = Duration::from_secs(20);
    while let Some(event) = tokio::time::timeout(patience, watcher.next()).await.unwrap().unwrap() {
        if let Event::Fact(record) = &*event {
            assert_eq!(record.seq, facts.len() as u64 + 1, "a gap, or twice the same");
            facts.push(record.fact.clone());
            if matches!(record.fact, Fact::TurnEnded { .. }) {
                break;
            }
        }
    }
    facts
}

/// Waits for a fact, and takes from it what is wanted.
async fn until<T>(watcher: &mut Watcher, wanted: impl Fn(&Fact) -> Option<T>) -> T {
    loop {
        if let Some(event) = watcher.next().await.unwrap()
            && let Event::Fact(record) = &*event
            && let Some(found) = wanted(&record.fact)
        {
            return found;
        }
    }
}

fn settled(facts: &[Fact]) -> Vec<&Outcome> {
    let mut outcomes = Vec::new();
    for fact in facts {
        if let Fact::Settled { outcome, .. } = fact {
            outcomes.push(outcome);
        }
    }
    outcomes
}

const CALLS: &str = "call puppet {\"order\": \"ok\"}";

#[tokio::test]
async fn a_watcher_that_falls_far_behind_misses_no_fact() {
    let long = format!("say {}\n{CALLS}", "word ".repeat(5_000));
    let yard = Yard::new(&[&long, "say Done."]).await;
    let (handle, mut slow) = yard.prompted().await;
    let mut quick = handle.watch().unwrap();
    let seen = facts(&mut quick).await;
    grammar::check_settled(&seen).unwrap();
    // Thousands of live events have gone by in the meantime.
    assert_eq!(facts(&mut slow).await, seen);
    let mut late = handle.watch().unwrap();
    assert_eq!(facts(&mut late).await, seen, "who comes late reads the log");
    handle.close().await.unwrap();
    assert!(late.next().await.unwrap().is_none(), "and sees the end");
}

#[tokio::test]
async fn a_watcher_may_be_dropped_and_polled_again_at_any_moment() {
    let yard = Yard::new(&[&format!("say {}\n{CALLS}", "word ".repeat(3_000)), "say Done."]).await;
    let (handle, mut watcher) = yard.prompted().await;
    let mut seen = Vec::new();
    let started = Instant::now();
    while !matches!(seen.last(), Some(Fact::TurnEnded { .. })) {
        assert!(started.elapsed() < Duration::from_secs(20), "{seen:?}");
        let next = tokio::time::timeout(Duration::from_micros(50), watcher.next()).await;
        if let Ok(Ok(Some(event))) = next
            && let Event::Fact(record) = &*event
        {
            seen.push(record.fact.clone());
        }
    }
    assert_eq!(seen, yard.stored(&handle).await);
}

#[tokio::test]
async fn a_tool_that_panics_is_settled_and_the_session_goes_on() {
    let yard = Yard::new(&["call puppet {\"order\": \"panic\"}", "say I see."]).await;
    let (_handle, mut watcher) = yard.prompted().await;
    let facts = facts(&mut watcher).await;
    grammar::check_settled(&facts).unwrap();
    assert_eq!(settled(&facts), [&Outcome::Unknown]);
    assert_eq!(facts.last(), Some(&Fact::TurnEnded { turn: 1, end: TurnEnd::Done }));
}

#[tokio::test]
async fn a_running_call_is_stopped_promptly_and_its_words_are_kept() {
    let yard = Yard::new(&["call puppet {\"order\": \"slow\"}", "say Never."]).await;
    let (handle, mut watcher) = yard.prompted().await;
    while yard.runs.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let started = Instant::now();
    handle.send(Op::Interrupt).await;
    let facts = facts(&mut watcher).await;
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    grammar::check_settled(&facts).unwrap();
    assert_eq!(settled(&facts), [&Outcome::Interrupted { text: "stopped by itself".into() }]);
    assert_eq!(facts.last(), Some(&Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted }));
}

#[tokio::test]
async fn when_the_log_fails_nothing_more_is_started_and_the_session_says_so() {
    // Appends: the prompt, the step, the start of the call, its end.
    for fail_from in 0..4 {
        let yard = Yard::failing_from(&[CALLS, "say Done."], fail_from).await;
        let (handle, mut watcher) = yard.prompted().await;
        let seen = facts(&mut watcher).await;
        assert_eq!(seen, yard.stored(&handle).await, "what was seen is what was stored");
        let runs = yard.runs.load(Ordering::SeqCst);
        assert_eq!(runs, usize::from(fail_from > 2), "append {fail_from}: no start, no run");
        let closed = handle.close().await;
        assert!(matches!(closed, Err(Fault::Storage { .. })), "{closed:?}");
    }
}

#[tokio::test]
async fn a_session_that_was_closed_in_the_middle_goes_on() {
    let yard = Yard::new(&["call puppet {\"order\": \"slow\"}", "say Done."]).await;
    let (handle, _watcher) = yard.prompted().await;
    while yard.runs.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let session = handle.session;
    handle.close().await.unwrap();
    let (handle, mut watcher) = yard.engine.open(session).await.unwrap();
    let patience = Duration::from_secs(20);
    loop {
        let event = tokio::time::timeout(patience, watcher.next()).await.unwrap().unwrap().unwrap();
        if matches!(&*event, Event::Fact(Record { fact: Fact::TurnEnded { .. }, .. })) {
            break;
        }
    }
    let stored = yard.stored(&handle).await;
    grammar::check_settled(&stored).unwrap();
    assert_eq!(settled(&stored), [&Outcome::Unknown]);
    assert_eq!(yard.runs.load(Ordering::SeqCst), 1, "what may have run is not run again");
}

/// What a fault is, in a word.
fn kind(fault: &Fault) -> String {
    match fault {
        Fault::Auth { .. } => "auth".into(),
        Fault::RateLimited { .. } => "limited".into(),
        Fault::Overflow { .. } => "overflow".into(),
        Fault::Network { .. } => "network".into(),
        Fault::Refused { .. } => "refused".into(),
        Fault::Provider { status, .. } => format!("provider {status:?}"),
        Fault::Storage { .. } | Fault::Config { .. } | Fault::Internal { .. } => "ours".into(),
    }
}

/// Every status, as an ordinary error, with a body nobody can read, and as an error in the middle
/// of a stream: what fault it is, and how often it is tried. The call before it ran once.
#[tokio::test]
async fn every_status_has_its_fault_and_its_number_of_tries() {
    let mut told = String::new();
    for status in [400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529] {
        let error = format!("{{\"error\": {{\"message\": \"no\", \"code\": {status}}}}}");
        let ways = [
            format!("status {status} {error}"),
            format!("status {status} <html>\u{fffd} no"),
            format!("say Half\nraw data: {error}\\n\\n"),
        ];
        let mut row = Vec::new();
        for way in ways {
            let yard = Yard::new(&[CALLS, &format!("header retry-after-ms 1\n{way}")]).await;
            let (handle, mut watcher) = yard.prompted().await;
            let facts = facts(&mut watcher).await;
            grammar::check_settled(&facts).unwrap();
            let tries = yard.model.requests().len() - 1;
            let retrying = facts.iter().filter(|fact| matches!(fact, Fact::Retrying { .. }));
            assert_eq!(retrying.count() + 1, tries, "every further try is announced");
            assert_eq!(yard.runs.load(Ordering::SeqCst), 1, "what was done is not done again");
            let Some(Fact::TurnEnded { end: TurnEnd::Failed { fault }, .. }) = facts.last() else {
                panic!("{facts:?}");
            };
            row.push(format!("{} ×{tries}", kind(fault)));
            handle.close().await.unwrap();
        }
        told += &format!("{status}: {}\n", row.join(", "));
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
    .assert_eq(&told);
}

#[tokio::test]
async fn a_broken_connection_is_tried_again_and_what_it_said_is_forgotten() {
    let yard = Yard::new(&["once say Half a sen\nonce cut\nsay Whole.", "say never asked"]).await;
    let (handle, mut watcher) = yard.prompted().await;
    let facts = facts(&mut watcher).await;
    grammar::check_settled(&facts).unwrap();
    let said: Vec<&str> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Said { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((said, yard.model.requests().len()), (vec!["Whole."], 2));
    handle.close().await.unwrap();
}

#[tokio::test]
async fn waiting_for_another_try_is_stopped_at_once() {
    let yard = Yard::new(&["header retry-after 30\nstatus 429 {}"]).await;
    let (handle, mut watcher) = yard.prompted().await;
    let wait = until(&mut watcher, |fact| match fact {
        Fact::Retrying { wait_ms, .. } => Some(*wait_ms),
        _ => None,
    });
    let wait = wait.await;
    assert!((30_000..=37_500).contains(&wait), "{wait}");
    let asked = Instant::now();
    handle.send(Op::Interrupt).await;
    let end = until(&mut watcher, |fact| match fact {
        Fact::TurnEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end.await, TurnEnd::Interrupted);
    assert!(asked.elapsed() < Duration::from_millis(100), "{:?}", asked.elapsed());
    assert_eq!(yard.model.requests().len(), 1);
    handle.close().await.unwrap();
}

/// What a model sealed, and the files of a prompt and of a result, reach it again as they were.
#[tokio::test]
async fn seals_and_files_come_back_in_every_format() {
    for format in [Format::OpenaiResponses, Format::Anthropic, Format::Gemini] {
        let yard = Yard::speaking(format, &[&format!("think Hm.\n{CALLS}"), "say Done."]).await;
        let blob = yard.engine.keep(b"\x89PNG".to_vec()).await.unwrap();
        let image = Attachment { name: "a.png".into(), mime: "image/png".into(), blob };
        let (handle, mut watcher) = yard.engine.create().await.unwrap();
        let prompt =
            Op::Prompt { text: "look".into(), attachments: vec![image], when: Delivery::default() };
        handle.send(prompt).await;
        let facts = facts(&mut watcher).await;
        grammar::check_settled(&facts).unwrap();
        let requests = yard.model.requests();
        let (first, second) = (requests[0].to_string(), requests[1].to_string());
        assert!(first.contains("iVBORw==") && second.contains("iVBORw=="), "{format:?}: {first}");
        let seal = if format == Format::OpenaiResponses { "c2VhbA==" } else { "c2ln" };
        assert!(!first.contains(seal) && second.contains(seal), "{format:?}: {second}");
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_wait_for_another_try_outlives_the_process() {
    let yard = Yard::new(&["header retry-after 30\nstatus 429 {}"]).await;
    let (handle, mut watcher) = yard.prompted().await;
    until(&mut watcher, |fact| matches!(fact, Fact::Retrying { .. }).then_some(())).await;
    let session = handle.session;
    handle.close().await.unwrap();
    let (handle, _watcher) = yard.engine.open(session).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(yard.model.requests().len(), 1, "it was told to wait");
    handle.close().await.unwrap();
}

/// The titles that are on record, each with its cost.
fn titles(facts: &[Fact]) -> Vec<(String, Option<u64>)> {
    let title = |fact: &Fact| match fact {
        Fact::Renamed { title, cost, .. } => Some((title.clone(), cost.map(|cost| cost.0))),
        _ => None,
    };
    facts.iter().filter_map(title).collect()
}

impl Yard {
    /// Waits until the model has been asked so often, and a little longer for what it says.
    async fn asked(&self, times: usize) {
        let started = Instant::now();
        while self.model.requests().len() < times {
            assert!(started.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

// A request for a title shows the model no answer of its own, so the script gives its first reply again.
const NAMED: &str = "once say It was\nonce say  the loop. \nsay Mend the roof\nusage 100 7";

#[tokio::test]
async fn a_session_is_named_by_its_model_once_and_outside_of_the_conversation() {
    let yard = Yard::named(&[NAMED, "say Later."], Limits::default()).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    let long = "é".repeat(5_000);
    assert!(handle.send(Op::prompt(format!("Mend it: {long}"))).await);
    let (title, usage) = until(&mut watcher, |fact| match fact {
        Fact::Renamed { title, usage, .. } => Some((title.clone(), *usage)),
        _ => None,
    })
    .await;
    assert_eq!((title.as_str(), usage.unwrap().input), ("Mend the roof", 100));
    assert!(handle.send(Op::prompt("more")).await);
    until(&mut watcher, |fact| matches!(fact, Fact::TurnEnded { turn: 2, .. }).then_some(())).await;
    let requests = yard.model.requests();
    assert_eq!(requests.len(), 3, "it is asked for once");
    let request = &requests[1];
    assert!(request.get("tools").is_none() && request.get("prompt_cache_key").is_none());
    assert!(request.to_string().len() < 6_000, "{}", request.to_string().len());
    assert!(request.to_string().contains("It was the loop."), "{request}");
    let most = request.get("max_tokens").or(request.get("max_completion_tokens"));
    assert_eq!(most.unwrap(), 100);
    // The conversation goes on as if nothing had been.
    let [first, third] = [&requests[0], &requests[2]].map(|it| it["messages"].as_array().unwrap());
    assert_eq!(third[..first.len()], first[..]);
    assert!(!requests[2].to_string().contains("You name conversations"));
    let facts = yard.stored(&handle).await;
    grammar::check(&facts).unwrap();
    assert_eq!(titles(&facts), [("Mend the roof".to_owned(), Some(114))]);
    let row = yard.log.list().await.unwrap().remove(0);
    assert_eq!(row.title, "Mend the roof");
    assert!(row.cost.0 >= 2 * 114, "what finding it cost is on record: {:?}", row.cost);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn what_is_no_title_is_forgotten_and_not_asked_for_again() {
    for reply in [
        format!("once say Done.\nsay {}", "word ".repeat(20)),
        "once say Done.\nusage 3 4".to_owned(),
    ] {
        let yard = Yard::named(&[&reply, "say Later."], Limits::default()).await;
        let (handle, mut watcher) = yard.prompted().await;
        facts(&mut watcher).await;
        yard.asked(2).await;
        assert!(handle.send(Op::prompt("more")).await);
        until(&mut watcher, |fact| matches!(fact, Fact::TurnEnded { .. }).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(yard.model.requests().len(), 3);
        assert!(titles(&yard.stored(&handle).await).is_empty());
        handle.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_title_that_the_person_gave_meanwhile_stays() {
    let reply = "once say Done.\nstall 300\nsay Mend the roof";
    let yard = Yard::named(&[reply], Limits::default()).await;
    let (handle, mut watcher) = yard.prompted().await;
    facts(&mut watcher).await;
    yard.asked(2).await;
    assert!(handle.send(Op::Rename { title: "Mine".to_owned() }).await);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(titles(&yard.stored(&handle).await), [("Mine".to_owned(), None)]);
    handle.close().await.unwrap();
    // Who has named it before is not even asked about.
    let yard = Yard::named(&[reply], Limits::default()).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    assert!(handle.send(Op::Rename { title: "Mine".to_owned() }).await);
    assert!(handle.send(Op::prompt("go")).await);
    facts(&mut watcher).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(yard.model.requests().len(), 1);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn nobody_waits_for_a_title_and_none_is_asked_for_where_the_purse_is_empty() {
    let yard = Yard::named(&["once say Done.\nstall 5000\nsay Mend the roof"], Limits::default());
    let yard = yard.await;
    let (handle, mut watcher) = yard.prompted().await;
    facts(&mut watcher).await;
    yard.asked(2).await;
    let started = Instant::now();
    handle.close().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());

    let limits = Limits { tokens: Some(50), ..Limits::default() };
    let yard = Yard::named(&["say Done.\nusage 100 7"], limits).await;
    let (handle, mut watcher) = yard.prompted().await;
    facts(&mut watcher).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(yard.model.requests().len(), 1);
    handle.close().await.unwrap();
}
