//! Two hundred external tools, and sixty skills: their size in a request, how a model finds one,
//! and that the prefix of requests does not change. All four wire formats, with real requests.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Engine, EngineSettings, ModelHandle};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{CallOutcome, Event, Fact, SessionOp, ToolAccess, ToolOutput};
use windlass_sandbox::Workspace;
use windlass_storage::SqliteLog;
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{
    CallContext, CallFailure, PendingToolSource, Registry, SkillDefinition, StepContext, Tool,
    ToolDefinition, ToolDefinitionBudget, ToolRuntime,
};

/// An external tool with a definition of usual size.
#[derive(Clone)]
struct FakeExternalTool {
    name: String,
    definition: ToolDefinition,
    listed: bool,
}

#[async_trait]
impl Tool for FakeExternalTool {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn is_listed(&self) -> bool {
        self.listed
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        self.definition.clone()
    }

    fn access(&self, _input: &Self::Input) -> Vec<ToolAccess> {
        vec![ToolAccess::UseTool { tool: self.name.clone() }]
    }

    async fn run(
        &self,
        input: Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let text = format!("{} did it: {}", self.name, Value::Object(input));
        Ok(ToolOutput { text, ..ToolOutput::default() })
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

/// Returns the tools of one server.
fn server_tools(thing: &str) -> Vec<FakeExternalTool> {
    let tool = |verb: &&str| FakeExternalTool {
        name: format!("{thing}s_{verb}"),
        definition: ToolDefinition {
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

/// A server that registers one more tool after the session has started.
struct LateToolServer(Registry);

#[async_trait]
impl PendingToolSource for LateToolServer {
    fn name(&self) -> &str {
        "late"
    }

    async fn wait_until_ready(&self) -> Result<(), String> {
        let [mut tool, ..] =
            <[FakeExternalTool; 10]>::try_from(server_tools(THINGS[0])).ok().unwrap();
        tool.name = "late_comet".into();
        self.0.register_external("late", tool).map_err(|clash| clash.to_string())
    }

    fn description(&self) -> String {
        "late: starting".into()
    }
}

/// The requests and facts of a session.
struct SessionRequestsAndFacts {
    requests: Vec<Value>,
    facts: Vec<Fact>,
}

/// Runs two turns of a session with additional tools.
async fn run_session(
    format: WireFormat,
    replies: &[&str],
    register: impl FnOnce(&Registry),
) -> SessionRequestsAndFacts {
    run_session_with_skills(format, replies, Vec::new(), register).await
}

async fn run_session_with_skills(
    format: WireFormat,
    replies: &[&str],
    skills: Vec<SkillDefinition>,
    register: impl FnOnce(&Registry),
) -> SessionRequestsAndFacts {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
    let runtime = ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(PermissionRules::parse(&json!("allow")).unwrap()),
        workspace: Workspace::open(folder.path()).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::ToolIntegrations::default());
    register(&runtime.registry);
    let client = Client::new(Endpoint::generic(format, model.url())).unwrap();
    let mut settings =
        EngineSettings::new("/w", Some(ModelHandle::from_model_name(client, "m")), "p/m");
    settings.skills = skills.into();
    let log = SqliteLog::open(&folder.path().join("data")).await.unwrap();
    let engine = Engine::new(Arc::new(log), Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.start_default_session().await.unwrap();
    let mut facts = Vec::new();
    for prompt in ["Close ticket 7.", "Thank you."] {
        assert!(handle.send(SessionOp::prompt(prompt)).await);
        let timeout = Duration::from_secs(20);
        loop {
            let event = tokio::time::timeout(timeout, watcher.next()).await.unwrap().unwrap();
            let Event::Fact(record) = &*event.unwrap() else { continue };
            facts.push(record.fact.clone());
            if matches!(record.fact, Fact::TurnEnded { .. }) {
                break;
            }
        }
    }
    log_grammar::check_settled(&facts).unwrap();
    handle.close().await.unwrap();
    SessionRequestsAndFacts { requests: model.requests(), facts }
}

/// Returns the size of the tools of a request, in bytes.
fn tools_size(request: &Value) -> usize {
    request["tools"].to_string().len()
}

/// Removes `cache_control`, which is not part of the cached text.
fn without_cache_control(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(
                entries.map(|(key, value)| (key.clone(), without_cache_control(value))).collect(),
            )
        }
        Value::Array(list) => Value::Array(list.iter().map(without_cache_control).collect()),
        other => other.clone(),
    }
}

/// Checks that every request begins with the previous one: tools, system prompt and messages.
fn assert_stable_prefix(name: &str, requests: &[Value]) {
    for pair in requests.windows(2) {
        for part in ["tools", "system", "instructions", "systemInstruction"] {
            let [before, after] = [&pair[0], &pair[1]].map(|request| request[part].to_string());
            assert_eq!(before, after, "{name}: {part}");
        }
        let part = ["messages", "input", "contents"].into_iter();
        let part = part.clone().find(|part| pair[0].get(*part).is_some()).unwrap();
        let [before, after] =
            [&pair[0], &pair[1]].map(|request| without_cache_control(&request[part]).to_string());
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

/// Returns whether a call completed, and its text.
fn settled_call(fact: &Fact) -> Option<(&str, &str)> {
    match fact {
        Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } => {
            Some(("done", &output.text))
        }
        Fact::CallSettled { outcome, .. } => Some(("not done", outcome.text())),
        _ => None,
    }
}

#[tokio::test]
async fn two_hundred_tools_cost_little_and_can_be_found_and_called() {
    for (name, format) in WireFormat::NAMES {
        let plain = run_session(*format, &["say No.", "say No."], |_| {}).await;
        let session = run_session(*format, REPLIES, |registry| {
            for thing in THINGS {
                for tool in server_tools(thing) {
                    registry.register_external(thing, tool).unwrap();
                }
            }
            registry.add_pending(Arc::new(LateToolServer(registry.clone())));
        })
        .await;
        let [baseline, with] = [&plain, &session].map(|session| tools_size(&session.requests[0]));
        println!("{name}: {baseline} bytes of tools, {with} with 200 external ones");
        assert!(with - baseline <= 1_500 * 4, "{name}: {baseline} and {with}");
        assert_eq!(session.requests.len(), REPLIES.len());
        assert_stable_prefix(name, &session.requests);

        let outcomes: Vec<(&str, &str)> = session.facts.iter().filter_map(settled_call).collect();
        let [found, closed, assigned] = outcomes[..] else { panic!("{name}: {outcomes:?}") };
        assert!(found.1.starts_with("tickets_close — Use this to close a ticket."), "{found:?}");
        assert_eq!(closed, ("done", "tickets_close did it: {\"id\":\"7\"}"), "{name}");
        assert_eq!(assigned, ("done", "tickets_assign did it: {\"id\":\"8\"}"), "{name}");
        let started: Vec<&Vec<ToolAccess>> = session
            .facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::CallStarted { accesses, .. } => Some(accesses),
                _ => None,
            })
            .collect();
        let tool = "tickets_close".to_owned();
        assert_eq!(
            started[1],
            &[ToolAccess::UseTool { tool }],
            "{name}: the recorded access is not that of the target"
        );
    }
}

#[tokio::test]
async fn tools_are_listed_until_the_definition_budget_is_used() {
    let (name, format) = WireFormat::NAMES[0];
    let size_with = async |budget: Option<ToolDefinitionBudget>| {
        let session = run_session(format, &["say No.", "say No."], |registry| {
            let Some(mut budget) = budget else { return };
            for thing in THINGS {
                let mut tools = server_tools(thing);
                tools.truncate(3);
                let listed =
                    budget.try_spend(tools.iter().map(|tool| (&*tool.name, &tool.definition)));
                for tool in tools {
                    registry.register_external(thing, FakeExternalTool { listed, ..tool }).unwrap();
                }
            }
        })
        .await;
        let names = session.requests[0]["tools"].to_string();
        let listed = THINGS.iter().filter(|thing| names.contains(&format!("{thing}s_create")));
        (tools_size(&session.requests[0]), listed.count(), names.contains("tool_search"))
    };
    let (baseline, ..) = size_with(None).await;
    let (with, listed, searches) = size_with(Some(ToolDefinitionBudget::default())).await;
    println!("{name}: {listed} of {SERVERS} servers are listed, for {} bytes", with - baseline);
    assert!(with - baseline <= 1_500 * 4, "{baseline} and {with}");
    assert!(with - baseline > 1_000 * 4, "the budget is not used: {baseline} and {with}");
    assert!((2..SERVERS).contains(&listed) && searches, "{listed}");
    let (_, listed, searches) = size_with(Some(ToolDefinitionBudget::new(100_000))).await;
    assert_eq!(
        (listed, searches),
        (SERVERS, false),
        "`tool_search` is offered although all tools are listed"
    );
}

/// Returns three skills for each thing, with descriptions of usual length.
fn sixty_skills() -> Vec<SkillDefinition> {
    let skill = |thing: &str, verb: &str| SkillDefinition {
        name: format!("{thing}-{verb}"),
        description: format!(
            "How a {thing} is handled when you {verb} it: the steps, the people to ask, and the \
             checks before and after. Use this before you {verb} a {thing}, and when a {thing} \
             looks wrong."
        ),
        body: format!("Look at the {thing} twice."),
        folder: format!("/skills/{thing}-{verb}"),
        ..SkillDefinition::default()
    };
    let skills =
        THINGS.iter().flat_map(|thing| VERBS.iter().take(3).map(|verb| skill(thing, verb)));
    let mut skills: Vec<SkillDefinition> = skills.collect();
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

/// The whole first request counts, with four bytes per token, as the definition budget does. Some
/// tools are listed, until the budget is used, as the binary does it. A server's tools are listed
/// all or not at all, so small servers use more of the budget.
#[tokio::test]
async fn two_hundred_tools_and_sixty_skills_add_few_tokens() {
    let replies = [
        "call skill {\"name\": \"rocket-close\"}",
        "call call_tool {\"name\": \"rockets_close\", \"arguments\": {\"id\": \"7\"}}",
        "say Closed.",
        "say You are welcome.",
    ];
    for ((name, format), server_size) in
        WireFormat::NAMES.iter().flat_map(|format| [(format, 10), (format, 2)])
    {
        let plain = run_session(*format, &["say No.", "say No."], |_| {}).await;
        let skills = sixty_skills();
        let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
        let session = run_session_with_skills(*format, &replies, skills, |registry| {
            let mut budget = ToolDefinitionBudget::default();
            for thing in THINGS {
                for (number, tools) in server_tools(thing).chunks(server_size).enumerate() {
                    let server = format!("{thing}{number}");
                    let definitions = tools.iter().map(|tool| (&*tool.name, &tool.definition));
                    let listed = budget.try_spend(definitions);
                    for tool in tools.iter().cloned() {
                        let tool = FakeExternalTool { listed, ..tool };
                        registry.register_external(&server, tool).unwrap();
                    }
                }
            }
        })
        .await;
        let [before, after] = [&plain, &session].map(|it| it.requests[0].to_string().len());
        let tokens = (after - before) / 4;
        println!("{name}: 200 tools of servers with {server_size}, and 60 skills: {tokens} tokens");
        assert!(tokens <= 2_500, "{name}: {tokens}");
        let request = session.requests[0].to_string();
        assert_eq!(names.len(), 60);
        for skill in names {
            assert!(request.contains(&format!("- {skill}: ")), "{name}: {skill} is not listed");
        }
        assert_stable_prefix(name, &session.requests);
        let outcomes: Vec<(&str, &str)> = session.facts.iter().filter_map(settled_call).collect();
        let [loaded, closed] = outcomes[..] else { panic!("{name}: {outcomes:?}") };
        assert!(loaded.1.contains("Look at the rocket twice."), "{name}: {loaded:?}");
        assert_eq!(closed, ("done", "rockets_close did it: {\"id\":\"7\"}"), "{name}");
    }
}
