//! The driver where a session is summed up, steered, or out of time: real HTTP, a real clock.
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
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::{Engine, Settings, Watcher};
use windlass_llm::wire::Format;
use windlass_protocol::{Access, Event, Fact, Mode, Op, Outcome, Output, Purpose, TurnEnd};
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// A tool that takes its time.
struct Nap;

#[derive(Deserialize, JsonSchema)]
struct Length {
    ms: u64,
}

#[async_trait]
impl Tool for Nap {
    type Input = Length;

    fn name(&self) -> &str {
        "nap"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Length>("Sleeps.")
    }

    fn access(&self, _input: &Length) -> Vec<Access> {
        vec![Access::Read { path: "a".into() }]
    }

    async fn run(&self, input: Length, _cx: &Cx<'_>) -> Result<Output, Failure> {
        tokio::time::sleep(Duration::from_millis(input.ms)).await;
        Ok(Output { text: "slept".into(), ..Output::default() })
    }
}

struct Yard {
    _folder: tempfile::TempDir,
    model: Model,
    engine: Engine,
}

impl Yard {
    async fn new(replies: &[&str], set: impl FnOnce(&mut Settings)) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(Script::new(replies.iter().copied()));
        let runtime = yard::runtime(folder.path(), yard::policy("\"allow\""));
        runtime.registry.register(Nap);
        let asked = yard::asked(&model.url(), Format::OpenaiChat);
        let mut settings = Settings::new("/w", Some(asked), "p/m");
        set(&mut settings);
        let engine = Engine::new(yard::log(folder.path()).await, Arc::new(runtime), settings);
        Yard { _folder: folder, model, engine }
    }
}

/// Adds all facts up to the end of the turn.
async fn follow(watcher: &mut Watcher, facts: &mut Vec<Fact>) -> TurnEnd {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap();
        let Some(event) = next.unwrap() else { panic!("it stopped") };
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
async fn a_conversation_is_summed_up_without_tools_and_goes_on_from_there() {
    let yard = Yard::new(&["say One.", "say It went well."], |_| {}).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    let mut facts = Vec::new();
    assert!(handle.send(Op::prompt("a very particular wish")).await);
    assert_eq!(follow(&mut watcher, &mut facts).await, TurnEnd::Done);
    assert!(handle.send(Op::Compact).await);
    assert_eq!(follow(&mut watcher, &mut facts).await, TurnEnd::Done);
    assert!(handle.send(Op::prompt("next")).await);
    assert_eq!(follow(&mut watcher, &mut facts).await, TurnEnd::Done);
    handle.close().await.unwrap();
    grammar::check_settled(&facts).unwrap();

    let requests = yard.model.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].get("tools").is_some());
    assert_eq!(requests[1].get("tools"), None, "to sum up takes no tools");
    assert!(last_text(&requests[1]).contains("Sum it up"), "{}", last_text(&requests[1]));
    let told = requests[2]["messages"].to_string();
    assert!(told.contains("It went well.") && told.contains("a very particular wish"), "{told}");
    assert!(!told.contains("One."), "what was summed up is not sent: {told}");
    let shown = |fact: &Fact| matches!(fact, Fact::Said { text, .. } if text == "It went well.");
    assert!(!facts.iter().any(shown), "a summary is no answer");
}

#[tokio::test]
async fn a_turn_whose_time_is_up_ends_in_time() {
    let replies = [r#"call nap {"ms": 60000}"#, "say Never."];
    let yard = Yard::new(&replies, |settings| settings.limits.time_ms = Some(700)).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    let (mut facts, begun) = (Vec::new(), Instant::now());
    assert!(handle.send(Op::prompt("sleep")).await);
    let end = follow(&mut watcher, &mut facts).await;
    assert_eq!(end, TurnEnd::Limit { what: "the limit of 0.7 s in one turn".into() });
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let stopped =
        |fact: &Fact| matches!(fact, Fact::Settled { outcome: Outcome::Interrupted { .. }, .. });
    assert!(facts.iter().any(stopped), "{facts:?}");
    handle.close().await.unwrap();
}

#[tokio::test]
async fn what_is_said_while_a_call_runs_is_in_the_next_request() {
    let replies = [r#"call nap {"ms": 1500}"#, "say Both."];
    let yard = Yard::new(&replies, |_| {}).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    let mut facts = Vec::new();
    assert!(handle.send(Op::prompt("sleep")).await);
    loop {
        let Some(event) = watcher.next().await.unwrap() else { panic!("it stopped") };
        let Event::Fact(record) = &*event else { continue };
        facts.push(record.fact.clone());
        if matches!(record.fact, Fact::Started { .. }) {
            break;
        }
    }
    assert!(handle.send(Op::prompt("and dream")).await);
    assert!(handle.send(Op::Mode { mode: Mode::Plan }).await);
    assert_eq!(follow(&mut watcher, &mut facts).await, TurnEnd::Done);
    handle.close().await.unwrap();
    grammar::check_settled(&facts).unwrap();
    let requests = yard.model.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("and dream") && told.contains("The mode is now plan"), "{told}");
    // What was sent before stands unchanged before it, or a provider's cache would be of no use.
    let (first, second) = (&requests[0]["messages"], &requests[1]["messages"]);
    let same = first.as_array().unwrap().iter().zip(second.as_array().unwrap());
    assert!(same.clone().all(|(before, after)| before == after));
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    let summed = |fact: &Fact| matches!(fact, Fact::StepStarted { purpose: Purpose::Summary, .. });
    assert!(!facts.iter().any(summed));
}
