//! Tests of external tools: name conflicts, pending sources and search.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests create files directly and fail by panicking"
)]

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, PermissionAnswer, SessionId, ToolAccess, ToolOutput,
};
use windlass_sandbox::Workspace;
use windlass_toolkit::{
    CallContext, CallFailure, CallIntent, PendingToolSource, PermissionReply, Registry,
    StepContext, Tool, ToolCall, ToolCaller, ToolDefinition, ToolNameError, ToolRuntime,
    ToolSearchResults,
};

/// A tool with any name. A call with a `query` searches for tools and stores the result.
#[derive(Clone)]
struct FakeTool {
    name: String,
    listed: bool,
    search_results: Arc<Mutex<Option<ToolSearchResults>>>,
}

fn fake_tool(name: &str) -> FakeTool {
    FakeTool { name: name.into(), listed: true, search_results: Arc::default() }
}

#[async_trait]
impl Tool for FakeTool {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn is_listed(&self) -> bool {
        self.listed
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        let description = format!("Does {}.", self.name.replace('_', " "));
        ToolDefinition { description, schema: json!({"type": "object"}) }
    }

    fn access(&self, _input: &Self::Input) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: Self::Input,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        if let Some(query) = input.get("query").and_then(Value::as_str) {
            let results = cx.find_tools(query, 2).await;
            *self.search_results.lock().unwrap() = Some(results);
        }
        Ok(ToolOutput { text: self.name.clone(), ..ToolOutput::default() })
    }
}

struct PermissiveTestCaller;

#[async_trait]
impl ToolCaller for PermissiveTestCaller {
    async fn request_permission(&self, _intent: CallIntent) -> PermissionReply {
        PermissionReply::Answer(PermissionAnswer::Once)
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        PermissionAnswer::Once
    }
}

struct FakeDelayedToolSource {
    name: &'static str,
    delay: Duration,
    result: Result<(), String>,
    wait_count: AtomicUsize,
    provides: Option<(Registry, FakeTool)>,
}

#[async_trait]
impl PendingToolSource for FakeDelayedToolSource {
    fn name(&self) -> &str {
        self.name
    }

    async fn wait_until_ready(&self) -> Result<(), String> {
        self.wait_count.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.delay).await;
        if let Some((registry, tool)) = &self.provides {
            registry.register_external(self.name, tool.clone()).unwrap();
        }
        self.result.clone()
    }

    fn description(&self) -> String {
        format!("{}: some tools", self.name)
    }
}

fn late_source(
    name: &'static str,
    delay: u64,
    result: Result<(), String>,
) -> FakeDelayedToolSource {
    let delay = Duration::from_secs(delay);
    FakeDelayedToolSource { name, delay, result, wait_count: AtomicUsize::new(0), provides: None }
}

fn runtime() -> (tempfile::TempDir, ToolRuntime) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(PermissionRules::parse(&json!({"git_closed": "deny"})).unwrap()),
        workspace: Workspace::open(folder.path()).unwrap(),
        limits: Default::default(),
    };
    (folder, runtime)
}

async fn call(runtime: &ToolRuntime, tool: &str, arguments: Value) -> CallOutcome {
    let call = ToolCall {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        author: CallAuthor::Model,
        tool: tool.into(),
        arguments: arguments.to_string(),
        allowed_calls: Vec::new(),
    };
    let snapshot = runtime.snapshot(&StepContext::default()).await;
    runtime.execute(&snapshot, call, &PermissiveTestCaller, CancellationToken::new()).await
}

#[test]
fn a_built_in_name_is_never_replaced_and_a_duplicate_name_is_not_available() {
    let registry = Registry::default();
    registry.register(fake_tool("read"));
    let conflict = registry.register_external("git", fake_tool("read")).unwrap_err();
    assert_eq!(conflict.to_string(), "read of git is skipped: a built-in tool has this name");
    assert_eq!(registry.register_external("git", fake_tool("x")), Ok(()));
    assert_eq!(
        registry.register_external("git", fake_tool("x")),
        Ok(()),
        "an owner may replace its own tool"
    );
    let conflict = registry.register_external("hub", fake_tool("x")).unwrap_err();
    assert!(matches!(&conflict, ToolNameError::Duplicate { others, .. } if *others == ["git"]));
    assert_eq!(registry.names(), ["read"]);
    registry.unregister("unknown", "x");
    assert_eq!(registry.names(), ["read"]);
    registry.unregister("git", "x");
    assert_eq!(registry.names(), ["read", "x"], "the tool of the other owner becomes available");
    registry.register(fake_tool("x"));
    registry.unregister("hub", "x");
    assert_eq!(registry.names(), ["read", "x"], "a built-in tool stays");
    registry.remove("read");
    assert_eq!(registry.names(), ["read", "x"], "the external tool becomes available");
}

#[test]
fn reserved_and_invalid_names_are_rejected() {
    let registry = Registry::default();
    let long = "x".repeat(65);
    for name in
        ["", "a b", "process", "tool_definition", "network", "größe", "a/b", "a*", long.as_str()]
    {
        let conflict = registry.register_external("git", fake_tool(name)).unwrap_err();
        assert!(matches!(conflict, ToolNameError::InvalidName { .. }), "{name}");
    }
    assert!(registry.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn pending_sources_are_awaited_in_parallel_and_ready_ones_only_once() {
    let registry = Registry::default();
    let quick = Arc::new(late_source("quick", 3, Ok(())));
    let broken = Arc::new(late_source("broken", 4, Err("exited with 1".into())));
    let slow = Arc::new(late_source("slow", 60, Ok(())));
    registry.add_pending(quick.clone());
    registry.add_pending(broken.clone());
    registry.add_pending(slow);
    assert_eq!(registry.pending_descriptions().len(), 3);
    let started = tokio::time::Instant::now();
    let missing = registry.wait_for_pending(Duration::from_secs(5)).await;
    assert_eq!(started.elapsed(), Duration::from_secs(5), "the sources are awaited in parallel");
    assert_eq!(missing, ["broken: exited with 1", "slow: it is not ready yet"]);
    registry.wait_for_pending(Duration::from_secs(5)).await;
    let wait_counts = [&quick, &broken].map(|source| source.wait_count.load(Ordering::SeqCst));
    assert_eq!(wait_counts, [1, 2]);
    assert_eq!(registry.pending_descriptions(), ["broken: some tools", "slow: some tools"]);
}

#[tokio::test(start_paused = true)]
async fn an_unlisted_tool_is_found_by_search_and_can_be_called() {
    let (_folder, runtime) = runtime();
    let search = fake_tool("search");
    runtime.registry.register(search.clone());
    let unlisted = |name: &str| FakeTool { listed: false, ..fake_tool(name) };
    for name in ["git_commit", "git_commit_all", "git_recommit", "git_closed"] {
        runtime.registry.register_external("git", unlisted(name)).unwrap();
    }
    let provides = Some((runtime.registry.clone(), unlisted("late_commit")));
    runtime.registry.add_pending(Arc::new(FakeDelayedToolSource {
        provides,
        ..late_source("late", 2, Ok(()))
    }));
    runtime.registry.add_pending(Arc::new(late_source("gone", 1, Err("exited".into()))));
    let listed = runtime.snapshot(&StepContext::default()).await.listed_summaries();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["search"]);

    call(&runtime, "search", json!({"query": "commit closed"})).await;
    let results = search.search_results.lock().unwrap().take().unwrap();
    let names: Vec<&str> = results.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 2);
    assert!(
        names.iter().all(|name| name.contains("commit")),
        "{names:?}: denied tools are not found"
    );
    assert_eq!((results.omitted, results.unavailable), (1, vec!["gone: exited".to_owned()]));
    call(&runtime, "search", json!({"query": "Git_Commit"})).await;
    let results = search.search_results.lock().unwrap().take().unwrap();
    assert_eq!(
        (results.tools[0].name.as_str(), results.omitted),
        ("git_commit", 0),
        "named exactly"
    );

    for name in ["git_commit", "late_commit", "GitCommit"] {
        let outcome = call(&runtime, name, json!({})).await;
        assert!(matches!(outcome, CallOutcome::Completed { .. }), "{name}: {outcome:?}");
    }
    let outcome = call(&runtime, "git_closed", json!({})).await;
    assert!(matches!(outcome, CallOutcome::Denied { .. }), "{outcome:?}");
    let listed = runtime.snapshot(&StepContext::default()).await.listed_summaries();
    assert_eq!(listed.len(), 1, "late tools do not change the list");
}
