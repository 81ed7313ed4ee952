//! Questions and lists with real parts: the driver, a log on the disk, and a model that is played.
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
use std::time::Duration;
use windlass_engine::{Engine, Settings, Watcher};
use windlass_llm::wire::Format;
use windlass_permission::Policy;
use windlass_protocol::todo::TODOS;
use windlass_protocol::{
    Access, CallId, Event, Fact, Inquiry, Mode, Op, Outcome, Output, Suggestion, TurnEnd,
};
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Stake, Tool};

/// A tool that does what it is told: `ask`, `leave`, `mode`, `write`, `read`.
struct Puppet;

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
        Vec::new()
    }

    async fn run(&self, input: Order, cx: &Cx<'_>) -> Result<Output, Failure> {
        let option = |label: &str| Suggestion { label: label.into(), description: String::new() };
        let inquiry = Inquiry {
            header: "Plan".into(),
            question: "Go on?".into(),
            options: ["full", "auto", "no"].map(option).into(),
            multiple: false,
            custom: false,
        };
        let mut output = Output::default();
        output.text = match input.order.as_str() {
            "ask" => format!("{:?}", cx.caller.inquire(vec![inquiry], Stake::Words).await?),
            "leave" => format!("{:?}", cx.caller.inquire(vec![inquiry], Stake::Mode).await?),
            "write" => {
                let todos = serde_json::json!([
                    {"content": "dig", "status": "pending", "priority": "low"}
                ]);
                output.metadata.insert(TODOS.into(), todos);
                "kept".into()
            }
            "read" => format!("{:?}", cx.caller.todos()),
            _ => cx.world.mode().to_string(),
        };
        Ok(output)
    }
}

struct Yard {
    _folder: tempfile::TempDir,
    _model: Model,
    engine: Engine,
}

impl Yard {
    async fn new(policy: Policy, replies: &[&str]) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(Script::new(replies.iter().copied()));
        let runtime = yard::runtime(folder.path(), policy);
        runtime.registry.register(Puppet);
        let asked = yard::asked(&model.url(), Format::OpenaiChat);
        let settings = Settings::new("/w", Some(asked), "p/m");
        let engine = Engine::new(yard::log(folder.path()).await, Arc::new(runtime), settings);
        Yard { _folder: folder, _model: model, engine }
    }
}

/// Facts up to one that is wanted.
async fn until(watcher: &mut Watcher, wanted: impl Fn(&Fact) -> bool) -> Vec<Fact> {
    let mut facts = Vec::new();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await;
        let Some(event) = event.unwrap().unwrap() else { panic!("it ended: {facts:?}") };
        if let Event::Fact(record) = &*event {
            facts.push(record.fact.clone());
            if wanted(&record.fact) {
                return facts;
            }
        }
    }
}

fn inquired(facts: &[Fact]) -> CallId {
    match facts.last() {
        Some(Fact::Inquired { call, .. }) => *call,
        other => panic!("{other:?}"),
    }
}

fn outcomes(facts: &[Fact]) -> Vec<String> {
    let settled = facts.iter().filter_map(|fact| match fact {
        Fact::Settled { outcome: Outcome::Completed { output }, .. } => Some(output.text.clone()),
        _ => None,
    });
    settled.collect()
}

fn asks(fact: &Fact) -> bool {
    matches!(fact, Fact::Inquired { .. })
}

fn ends(fact: &Fact) -> bool {
    matches!(fact, Fact::TurnEnded { .. })
}

#[tokio::test]
async fn a_question_left_open_by_a_crash_is_asked_again_and_its_answer_kept() {
    let yard =
        Yard::new(Policy::default(), &["call puppet {\"order\": \"ask\"}", "say Done."]).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    handle.send(Op::prompt("go")).await;
    let mut log = until(&mut watcher, asks).await;
    let session = handle.session;
    handle.close().await.unwrap();

    let (handle, mut watcher) = yard.engine.open(session).await.unwrap();
    log.extend(until(&mut watcher, asks).await);
    let call = inquired(&log);
    handle.send(Op::Reply { call, replies: vec![vec!["nonsense".into()]] }).await;
    handle.send(Op::Reply { call, replies: vec![vec!["auto".into()]] }).await;
    log.extend(until(&mut watcher, ends).await);
    handle.close().await.unwrap();
    assert_eq!(outcomes(&log), ["[[\"auto\"]]"]);
    grammar::check_settled(&log).unwrap();
}

#[tokio::test]
async fn an_interrupt_ends_a_question_at_once() {
    let yard = Yard::new(Policy::default(), &["call puppet {\"order\": \"ask\"}"]).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    handle.send(Op::prompt("go")).await;
    let mut log = until(&mut watcher, asks).await;
    handle.send(Op::Interrupt).await;
    log.extend(until(&mut watcher, ends).await);
    assert!(matches!(log.last(), Some(Fact::TurnEnded { end: TurnEnd::Interrupted, .. })));
    handle.close().await.unwrap();
}

#[tokio::test]
async fn calls_after_a_yes_run_in_the_new_mode_and_never_above_the_laxest() {
    let policy = Policy::default().in_mode(Mode::Plan).at_most(Mode::Auto);
    let yard = Yard::new(
        policy,
        &[
            "call puppet {\"order\": \"mode\"}",
            "call puppet {\"order\": \"leave\"}",
            "call puppet {\"order\": \"mode\"}",
            "say Done.",
            "call puppet {\"order\": \"mode\"}",
            "say Done.",
        ],
    )
    .await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    handle.send(Op::prompt("go")).await;
    let mut log = until(&mut watcher, asks).await;
    handle.send(Op::Reply { call: inquired(&log), replies: vec![vec!["full".into()]] }).await;
    log.extend(until(&mut watcher, ends).await);
    assert_eq!(outcomes(&log), ["plan", "[[\"full\"]]", "auto"]);
    let session = handle.session;
    handle.close().await.unwrap();

    // It holds when the session is opened again.
    let (handle, mut watcher) = yard.engine.open(session).await.unwrap();
    handle.send(Op::prompt("again")).await;
    let log = until(&mut watcher, ends).await;
    assert_eq!(outcomes(&log), ["auto"]);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_list_is_there_in_later_calls_and_after_the_session_was_opened_again() {
    let yard = Yard::new(
        Policy::default(),
        &[
            "call puppet {\"order\": \"read\"}",
            "call puppet {\"order\": \"write\"}",
            "call puppet {\"order\": \"read\"}",
            "say Done.",
            "call puppet {\"order\": \"read\"}",
            "say Done.",
        ],
    )
    .await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    handle.send(Op::prompt("go")).await;
    let first = outcomes(&until(&mut watcher, ends).await);
    assert_eq!(first[0], "[]");
    assert!(first[2].contains("dig"), "{first:?}");
    let session = handle.session;
    handle.close().await.unwrap();
    let (handle, mut watcher) = yard.engine.open(session).await.unwrap();
    handle.send(Op::prompt("again")).await;
    let second = outcomes(&until(&mut watcher, ends).await);
    assert_eq!(second, [first[2].clone()]);
    handle.close().await.unwrap();
}
