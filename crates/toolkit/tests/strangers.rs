//! Tools that others bring: whose a name is, who is waited for, what is found.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Access, Answer, Author, CallId, Outcome, Output, SessionId};
use windlass_sandbox::Workspace;
use windlass_toolkit::{
    Call, Caller, Clash, Cx, Definition, Failure, Found, Intent, Permit, Registry, Runtime, Scene,
    Source, Tool,
};

/// Somebody's tool; `search` looks for others.
#[derive(Clone)]
struct Puppet {
    name: String,
    listed: bool,
    found: Arc<Mutex<Option<Found>>>,
}

fn puppet(name: &str) -> Puppet {
    Puppet { name: name.into(), listed: true, found: Arc::default() }
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
        let description = format!("Does {}.", self.name.replace('_', " "));
        Definition { description, schema: json!({"type": "object"}) }
    }

    fn access(&self, _input: &Self::Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, input: Self::Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        if let Some(query) = input.get("query").and_then(Value::as_str) {
            let found = cx.find_tools(query, 2).await;
            *self.found.lock().unwrap() = Some(found);
        }
        Ok(Output { text: self.name.clone(), ..Output::default() })
    }
}

struct Nobody;

#[async_trait]
impl Caller for Nobody {
    async fn permit(&self, _intent: Intent) -> Permit {
        Permit::Answer(Answer::Once)
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        Answer::Once
    }
}

struct Late {
    name: &'static str,
    takes: Duration,
    result: Result<(), String>,
    asked: AtomicUsize,
    brings: Option<(Registry, Puppet)>,
}

#[async_trait]
impl Source for Late {
    fn name(&self) -> &str {
        self.name
    }

    async fn arrive(&self) -> Result<(), String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        if let Some((registry, tool)) = &self.brings {
            registry.admit(self.name, tool.clone()).unwrap();
        }
        self.result.clone()
    }

    fn brief(&self) -> String {
        format!("{}: some tools", self.name)
    }
}

fn late(name: &'static str, takes: u64, result: Result<(), String>) -> Late {
    let takes = Duration::from_secs(takes);
    Late { name, takes, result, asked: AtomicUsize::new(0), brings: None }
}

fn runtime() -> (tempfile::TempDir, Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(Rules::parse(&json!({"git_closed": "deny"})).unwrap()),
        workspace: Workspace::at(folder.path()).unwrap(),
        limits: Default::default(),
    };
    (folder, runtime)
}

async fn call(runtime: &Runtime, tool: &str, arguments: Value) -> Outcome {
    let call = Call {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        by: Author::Model,
        tool: tool.into(),
        arguments: arguments.to_string(),
    };
    let snapshot = runtime.snapshot(&Scene::default()).await;
    runtime.travel(&snapshot, call, &Nobody, CancellationToken::new()).await
}

#[test]
fn a_built_in_name_is_never_taken_and_a_contested_one_is_nobodys() {
    let registry = Registry::default();
    registry.register(puppet("read"));
    let clash = registry.admit("git", puppet("read")).unwrap_err();
    assert_eq!(clash.to_string(), "read is built in, so that of git is left out");
    assert_eq!(registry.admit("git", puppet("x")), Ok(()));
    assert_eq!(registry.admit("git", puppet("x")), Ok(()), "they may replace their own");
    let clash = registry.admit("hub", puppet("x")).unwrap_err();
    assert!(matches!(&clash, Clash::Contested { others, .. } if *others == ["git"]));
    assert_eq!(registry.ids(), ["read"]);
    registry.retract("nobody", "x");
    assert_eq!(registry.ids(), ["read"]);
    registry.retract("git", "x");
    assert_eq!(registry.ids(), ["read", "x"], "it is the other's now");
    registry.register(puppet("x"));
    registry.retract("hub", "x");
    assert_eq!(registry.ids(), ["read", "x"], "nobody takes away what is built in");
    registry.remove("read");
    assert_eq!(registry.ids(), ["read", "x"], "then the stranger's is left");
}

#[test]
fn a_name_that_rules_or_providers_take_for_something_else_is_not_let_in() {
    let registry = Registry::default();
    let long = "x".repeat(65);
    for odd in ["", "a b", "servant", "definition", "network", "größe", "a/b", "a*", long.as_str()]
    {
        let clash = registry.admit("git", puppet(odd)).unwrap_err();
        assert!(matches!(clash, Clash::Unfit { .. }), "{odd}");
    }
    assert!(registry.ids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_are_waited_for_at_once_and_those_who_came_not_again() {
    let registry = Registry::default();
    let quick = Arc::new(late("quick", 3, Ok(())));
    let broken = Arc::new(late("broken", 4, Err("exited with 1".into())));
    let slow = Arc::new(late("slow", 60, Ok(())));
    registry.expect(quick.clone());
    registry.expect(broken.clone());
    registry.expect(slow);
    assert_eq!(registry.awaited().len(), 3);
    let since = tokio::time::Instant::now();
    let missing = registry.arrivals(Duration::from_secs(5)).await;
    assert_eq!(since.elapsed(), Duration::from_secs(5), "not one after the other");
    assert_eq!(missing, ["broken: exited with 1", "slow: it is not there yet"]);
    registry.arrivals(Duration::from_secs(5)).await;
    let asked = [&quick, &broken].map(|source| source.asked.load(Ordering::SeqCst));
    assert_eq!(asked, [1, 2]);
    assert_eq!(registry.awaited(), ["broken: some tools", "slow: some tools"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_told_of_is_found_and_can_be_called() {
    let (_folder, runtime) = runtime();
    let search = puppet("search");
    runtime.registry.register(search.clone());
    let unlisted = |name: &str| Puppet { listed: false, ..puppet(name) };
    for name in ["git_commit", "git_commit_all", "git_recommit", "git_closed"] {
        runtime.registry.admit("git", unlisted(name)).unwrap();
    }
    let brings = Some((runtime.registry.clone(), unlisted("late_commit")));
    runtime.registry.expect(Arc::new(Late { brings, ..late("late", 2, Ok(())) }));
    runtime.registry.expect(Arc::new(late("gone", 1, Err("exited".into()))));
    let told = runtime.snapshot(&Scene::default()).await.offered();
    assert_eq!(told.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["search"]);

    call(&runtime, "search", json!({"query": "commit closed"})).await;
    let found = search.found.lock().unwrap().take().unwrap();
    let names: Vec<&str> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.contains("commit")), "{names:?}: denied is not found");
    assert_eq!((found.more, found.missing), (1, vec!["gone: exited".to_owned()]));

    for name in ["git_commit", "late_commit", "GitCommit"] {
        let outcome = call(&runtime, name, json!({})).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{name}: {outcome:?}");
    }
    let outcome = call(&runtime, "git_closed", json!({})).await;
    assert!(matches!(outcome, Outcome::Denied { .. }), "{outcome:?}");
    let told = runtime.snapshot(&Scene::default()).await.offered();
    assert_eq!(told.len(), 1, "what came late changes nothing of what a model is told");
}
