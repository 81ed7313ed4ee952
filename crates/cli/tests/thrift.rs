//! Two hundred tools of others: what they cost a request, that a model finds the one it needs, and
//! that nothing it was told before changes on the way. All four wire formats, with real requests.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Asked, Engine, Settings};
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Access, Event, Fact, Op, Outcome, Output};
use windlass_sandbox::Workspace;
use windlass_storage::Sqlite;
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Budget, Cx, Definition, Failure, Registry, Runtime, Scene, Source, Tool};

/// Somebody's tool, as servers have them: wordy, with a schema of some size.
#[derive(Clone)]
struct Puppet {
    name: String,
    definition: Definition,
    listed: bool,
}

#[async_trait]
impl Tool for Puppet {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn listed(&self) -> bool {
        self.listed
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        self.definition.clone()
    }

    fn access(&self, _input: &Self::Input) -> Vec<Access> {
        vec![Access::Use { tool: self.name.clone() }]
    }

    async fn run(&self, input: Self::Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        let text = format!("{} did it: {}", self.name, Value::Object(input));
        Ok(Output { text, ..Output::default() })
    }
}

const SERVERS: usize = 20;
const VERBS: [&str; 10] =
    ["create", "close", "list", "rename", "archive", "assign", "export", "merge", "watch", "rate"];
const THINGS: [&str; SERVERS] = [
    "ticket",
    "invoice",
    "meeting",
    "branch",
    "deployment",
    "customer",
    "photo",
    "recipe",
    "song",
    "parcel",
    "contract",
    "sensor",
    "rocket",
    "lecture",
    "garden",
    "bridge",
    "novel",
    "vaccine",
    "auction",
    "glacier",
];

/// The tools of one server.
fn tools(thing: &str) -> Vec<Puppet> {
    let tool = |verb: &&str| Puppet {
        name: format!("{thing}s_{verb}"),
        definition: Definition {
            description: format!(
                "Use this to {verb} a {thing}. It works on one {thing} at a time, and says what \
                 became of it."
            ),
            schema: json!({"type": "object", "properties": {
                "id": {"type": "string", "description": format!("Which {thing} is meant.")},
                "note": {"type": "string", "description": "What others should know of it."},
            }, "required": ["id"]}),
        },
        listed: false,
    };
    VERBS.iter().map(tool).collect()
}

/// A server that comes late, with one more tool.
struct Late(Registry);

#[async_trait]
impl Source for Late {
    fn name(&self) -> &str {
        "late"
    }

    async fn arrive(&self) -> Result<(), String> {
        let [mut tool, ..] = <[Puppet; 10]>::try_from(tools(THINGS[0])).ok().unwrap();
        tool.name = "late_comet".into();
        self.0.admit("late", tool).map_err(|clash| clash.to_string())
    }

    fn brief(&self) -> String {
        "late: starting".into()
    }
}

/// What a model was sent, and what came of its calls.
struct Talk {
    requests: Vec<Value>,
    facts: Vec<Fact>,
}

/// Two turns of a session with these tools besides our own.
async fn talk(format: Format, replies: &[&str], bring: impl FnOnce(&Registry)) -> Talk {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(Script::new(replies.iter().copied()));
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(Rules::parse(&json!("allow")).unwrap()),
        workspace: Workspace::at(folder.path()).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::Senses::default());
    bring(&runtime.registry);
    let client = Client::new(Endpoint::plain(format, model.url())).unwrap();
    let settings = Settings::new("/w", Some(Asked::plainly(client, "m")), "p/m");
    let log = Sqlite::open(&folder.path().join("data")).await.unwrap();
    let engine = Engine::new(Arc::new(log), Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.create().await.unwrap();
    let mut facts = Vec::new();
    for prompt in ["Close ticket 7.", "Thank you."] {
        assert!(handle.send(Op::prompt(prompt)).await);
        let patience = Duration::from_secs(20);
        loop {
            let event = tokio::time::timeout(patience, watcher.next()).await.unwrap().unwrap();
            let Event::Fact(record) = &*event.unwrap() else { continue };
            facts.push(record.fact.clone());
            if matches!(record.fact, Fact::TurnEnded { .. }) {
                break;
            }
        }
    }
    grammar::check_settled(&facts).unwrap();
    handle.close().await.unwrap();
    Talk { requests: model.requests(), facts }
}

/// How many bytes the tools of a request take.
fn size(request: &Value) -> usize {
    request["tools"].to_string().len()
}

/// Without the marks that say how far to cache: they are no part of what is cached.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(kept.map(|(key, value)| (key.clone(), unmarked(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(unmarked).collect()),
        other => other.clone(),
    }
}

/// Every request begins with the bytes of the one before: tools, what comes before the
/// conversation, the conversation.
fn assert_grows(name: &str, requests: &[Value]) {
    for pair in requests.windows(2) {
        for part in ["tools", "system", "instructions", "systemInstruction"] {
            let [before, after] = [&pair[0], &pair[1]].map(|request| request[part].to_string());
            assert_eq!(before, after, "{name}: {part}");
        }
        let part = ["messages", "input", "contents"].into_iter();
        let part = part.clone().find(|part| pair[0].get(*part).is_some()).unwrap();
        let [before, after] =
            [&pair[0], &pair[1]].map(|request| unmarked(&request[part]).to_string());
        let same = before.strip_suffix(']').unwrap();
        assert!(after.starts_with(same), "{name}:\n{before}\n{after}");
    }
}

const REPLIES: &[&str] = &[
    "call tool_search {\"query\": \"close a ticket\"}",
    "call call_tool {\"name\": \"tickets_close\", \"arguments\": {\"id\": \"7\"}}",
    "call tickets_assign {\"id\": \"8\"}",
    "say Closed.",
    "say You are welcome.",
];

fn called(fact: &Fact) -> Option<(&str, &str)> {
    match fact {
        Fact::Settled { outcome: Outcome::Completed { output }, .. } => {
            Some(("done", &output.text))
        }
        Fact::Settled { outcome, .. } => Some(("not done", outcome.text())),
        _ => None,
    }
}

#[tokio::test]
async fn two_hundred_tools_cost_little_and_the_right_one_is_found_and_called() {
    for (name, format) in Format::NAMES {
        let plain = talk(*format, &["say No.", "say No."], |_| {}).await;
        let talk = talk(*format, REPLIES, |registry| {
            for thing in THINGS {
                for tool in tools(thing) {
                    registry.admit(thing, tool).unwrap();
                }
            }
            registry.expect(Arc::new(Late(registry.clone())));
        })
        .await;
        let [baseline, with] = [&plain, &talk].map(|talk| size(&talk.requests[0]));
        println!("{name}: {baseline} bytes of tools without, {with} with 200 of others");
        assert!(with - baseline <= 2_000 * 4, "{name}: {baseline} and {with}");
        assert_eq!(talk.requests.len(), REPLIES.len());
        assert_grows(name, &talk.requests);

        let outcomes: Vec<(&str, &str)> = talk.facts.iter().filter_map(called).collect();
        let [found, closed, assigned] = outcomes[..] else { panic!("{name}: {outcomes:?}") };
        assert!(found.1.starts_with("tickets_close — Use this to close a ticket."), "{found:?}");
        assert_eq!(closed, ("done", "tickets_close did it: {\"id\":\"7\"}"), "{name}");
        assert_eq!(assigned, ("done", "tickets_assign did it: {\"id\":\"8\"}"), "{name}");
        let started: Vec<&Vec<Access>> = talk
            .facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::Started { accesses, .. } => Some(accesses),
                _ => None,
            })
            .collect();
        let tool = "tickets_close".to_owned();
        assert_eq!(started[1], &[Access::Use { tool }], "{name}: what is on record is the target");
    }
}

#[tokio::test]
async fn what_fits_into_the_budget_is_told_of_and_the_whole_stays_within_it() {
    let (name, format) = Format::NAMES[0];
    let size_with = async |budget: Option<Budget>| {
        let talk = talk(format, &["say No.", "say No."], |registry| {
            let Some(mut budget) = budget else { return };
            for thing in THINGS {
                let mut tools = tools(thing);
                tools.truncate(3);
                let listed = budget.lists(tools.iter().map(|tool| (&*tool.name, &tool.definition)));
                for tool in tools {
                    registry.admit(thing, Puppet { listed, ..tool }).unwrap();
                }
            }
        })
        .await;
        let names = talk.requests[0]["tools"].to_string();
        let listed = THINGS.iter().filter(|thing| names.contains(&format!("{thing}s_create")));
        (size(&talk.requests[0]), listed.count(), names.contains("tool_search"))
    };
    let (baseline, ..) = size_with(None).await;
    let (with, listed, searches) = size_with(Some(Budget::default())).await;
    println!("{name}: {listed} of {SERVERS} servers are told of, for {} bytes", with - baseline);
    assert!(with - baseline <= 2_000 * 4, "{baseline} and {with}");
    assert!(with - baseline > 1_500 * 4, "the budget is used: {baseline} and {with}");
    assert!((2..SERVERS).contains(&listed) && searches, "{listed}");
    let (_, listed, searches) = size_with(Some(Budget::new(100_000))).await;
    assert_eq!((listed, searches), (SERVERS, false), "nothing to search where all are told of");
}
