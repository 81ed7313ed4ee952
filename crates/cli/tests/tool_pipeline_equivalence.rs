//! One pipeline for all tools: the same call records the same facts, whatever provides the tool and
//! however it is called. Names and ids are masked; everything else is compared literally.
//!
//! To add a source, add a row to [`TOOL_SOURCES`]. It registers a tool with the arguments `text` and
//! `lines` that requires permission for its own name and returns the text, or that many lines of it.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::{TestEnv, decode_output};
use windlass_engine::{AgentDefinition, Engine, EngineSettings, ModelHandle};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    AgentRole, Event, Fact, FactRecord, PermissionAnswer, SessionOp, ToolAccess, ToolOutput,
};
use windlass_sandbox::Workspace;
use windlass_storage::SqliteLog;
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{
    AgentRestrictions, CallContext, CallFailure, Registry, StepContext, Tool, ToolDefinition,
    ToolRuntime,
};

/// A source of a tool and a method to call it.
struct ToolSourceCase {
    name: &'static str,
    /// The name of the tool.
    tool: &'static str,
    register: fn(&ToolRuntime),
    method: TestToolCallMethod,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TestToolCallMethod {
    /// By its name.
    Direct,
    /// Through `call_tool`, because the tool is not listed.
    CallTool,
    /// By a subagent.
    Subagent,
}

const TOOL_SOURCES: &[ToolSourceCase] = &[
    ToolSourceCase {
        name: "built in",
        tool: "sample",
        register: register_built_in,
        method: TestToolCallMethod::Direct,
    },
    ToolSourceCase {
        name: "built in, by a subagent",
        tool: "sample",
        register: register_built_in,
        method: TestToolCallMethod::Subagent,
    },
    ToolSourceCase {
        name: "external",
        tool: "x_sample",
        register: register_external,
        method: TestToolCallMethod::Direct,
    },
    ToolSourceCase {
        name: "external, unlisted",
        tool: "x_hidden",
        register: register_unlisted,
        method: TestToolCallMethod::CallTool,
    },
    ToolSourceCase {
        name: "external, unlisted, by a subagent",
        tool: "x_hidden",
        register: register_unlisted,
        method: TestToolCallMethod::Subagent,
    },
];

fn register_built_in(runtime: &ToolRuntime) {
    runtime.registry.register(EchoTool { name: "sample", listed: true });
}

fn register_external(runtime: &ToolRuntime) {
    runtime.registry.register_external("x", EchoTool { name: "x_sample", listed: true }).unwrap();
}

fn register_unlisted(runtime: &ToolRuntime) {
    runtime.registry.register_external("x", EchoTool { name: "x_hidden", listed: false }).unwrap();
}

/// A tool that returns its text.
struct EchoTool {
    name: &'static str,
    listed: bool,
}

#[async_trait]
impl Tool for EchoTool {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        self.name
    }

    fn is_listed(&self) -> bool {
        self.listed
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"},
            "lines": {"type": "integer"}}, "required": ["text"], "additionalProperties": false});
        ToolDefinition { description: "Says it again.".into(), schema }
    }

    fn access(&self, _input: &Self::Input) -> Vec<ToolAccess> {
        vec![ToolAccess::UseTool { tool: self.name.to_owned() }]
    }

    async fn preview(
        &self,
        input: &Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        Ok(Some(serde_json::to_string_pretty(input).unwrap()))
    }

    async fn run(
        &self,
        input: Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let text = input["text"].as_str().unwrap();
        let text = match input.get("lines").and_then(Value::as_u64) {
            Some(lines) => (1..=lines).map(|n| format!("{text} {n}\n")).collect(),
            None => text.to_owned(),
        };
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// A permission rule for the tool, the user's answer, and the arguments of the call.
struct PipelineCase {
    name: &'static str,
    rule: &'static str,
    answer: Option<PermissionAnswer>,
    arguments: &'static str,
}

fn cases() -> Vec<PipelineCase> {
    let valid = r#"{"text": "hello"}"#;
    let no = PermissionAnswer::No { reason: Some("not now".into()) };
    vec![
        PipelineCase { name: "allowed", rule: "allow", answer: None, arguments: valid },
        PipelineCase {
            name: "yes",
            rule: "ask",
            answer: Some(PermissionAnswer::Once),
            arguments: valid,
        },
        PipelineCase { name: "no", rule: "ask", answer: Some(no), arguments: valid },
        PipelineCase { name: "denied", rule: "deny", answer: None, arguments: valid },
        PipelineCase { name: "wrong", rule: "allow", answer: None, arguments: r#"{"txet": 7}"# },
        PipelineCase {
            name: "repaired",
            rule: "allow",
            answer: None,
            arguments: r#"{"text": "a",}"#,
        },
        PipelineCase {
            name: "long",
            rule: "allow",
            answer: None,
            arguments: r#"{"text": "line", "lines": 3000}"#,
        },
    ]
}

/// Runs a turn in which the model makes this call, and returns its records.
async fn run_turn(source: &ToolSourceCase, case: &PipelineCase) -> Vec<FactRecord> {
    let folder = tempfile::tempdir().unwrap();
    let call = match source.method {
        TestToolCallMethod::CallTool => {
            let arguments = case.arguments;
            format!("call call_tool {{\"name\": \"{}\", \"arguments\": {arguments}}}", source.tool)
        }
        TestToolCallMethod::Direct | TestToolCallMethod::Subagent => {
            format!("call {} {}", source.tool, case.arguments)
        }
    };
    let work = r#"call task {"description": "d", "prompt": "do it", "subagent_type": "helper"}"#;
    let scripts = match source.method {
        TestToolCallMethod::Subagent => [vec![work, "say Over."], vec![&*call, "say Done."]],
        TestToolCallMethod::Direct | TestToolCallMethod::CallTool => {
            [vec![&*call, "say Done."], vec![]]
        }
    };
    let models = scripts.map(|replies| ScriptedModel::start(ModelScript::new(replies)));
    let [root, helper] = [&models[0], &models[1]].map(|model| {
        let client = Client::new(Endpoint::generic(WireFormat::OpenaiChat, model.url())).unwrap();
        ModelHandle::from_model_name(client, "m")
    });
    let rules = json!({"task": "allow", source.tool: case.rule});
    let runtime = ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(PermissionRules::parse(&rules).unwrap()),
        workspace: Workspace::open(folder.path()).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::ToolIntegrations::default());
    (source.register)(&runtime);
    let mut settings = EngineSettings::new("/w", Some(root), "p/m");
    settings.agents = vec![Arc::new(AgentDefinition {
        name: "helper".into(),
        description: "Helps.".into(),
        role: AgentRole::Subagent,
        prompt: "You help.".into(),
        replaces_prompt: false,
        max_steps: None,
        options: Default::default(),
        restrictions: AgentRestrictions::default(),
        fallback_models: Vec::new(),
        model: Some((helper, "p/m".into())),
    })]
    .into();
    let log = SqliteLog::open(&folder.path().join("data")).await.unwrap();
    let engine = Engine::new(Arc::new(log), Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    let mut records = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap();
        let Event::Fact(record) = &*next.unwrap().unwrap() else { continue };
        records.push(record.clone());
        if let Fact::PermissionAsked { call, .. } = &record.fact {
            let answer = case
                .answer
                .clone()
                .unwrap_or_else(|| panic!("{}: unexpected permission request", source.name));
            assert!(
                handle.send(SessionOp::AnswerPermission { call: *call, answer, asked: None }).await
            );
        }
        if record.session == handle.session && matches!(record.fact, Fact::TurnEnded { .. }) {
            break;
        }
    }
    let own = records.iter().filter(|record| record.session == handle.session);
    log_grammar::check_settled(&own.map(|record| record.fact.clone()).collect::<Vec<_>>()).unwrap();
    handle.close().await.unwrap();
    records
}

/// Returns the facts about the call, with names and ids masked.
fn call_facts(source: &ToolSourceCase, records: &[FactRecord]) -> Vec<String> {
    let sessions: std::collections::BTreeSet<_> =
        records.iter().map(|record| record.session).collect();
    assert_eq!(
        sessions.len(),
        if source.method == TestToolCallMethod::Subagent { 2 } else { 1 },
        "{}",
        source.name
    );
    let session = match source.method {
        TestToolCallMethod::Subagent => {
            records.iter().map(|record| record.session).find(|it| *it != records[0].session)
        }
        TestToolCallMethod::Direct | TestToolCallMethod::CallTool => Some(records[0].session),
    };
    let kinds = ["permission_asked", "permission_answered", "call_started", "call_settled"];
    let facts = records.iter().filter(|record| Some(record.session) == session);
    facts
        .filter(|record| kinds.contains(&record.fact.kind()))
        .map(|record| {
            let mut fact = serde_json::to_value(&record.fact).unwrap();
            fact.as_object_mut().unwrap().shift_remove("call");
            let text = fact.to_string().replace(source.tool, "TOOL");
            // The arguments as the model wrote them are wrapped for `call_tool`.
            // The example is, too.
            text.replace(
                r#"{\"name\":\"TOOL\",\"arguments\":{\"text\":\"a\"}}"#,
                r#"{\"text\":\"a\"}"#,
            )
            .replace(
                r#"call_tool {\"name\":\"TOOL\",\"arguments\":{\"text\":\"…\"}}"#,
                r#"{\"text\":\"…\"}"#,
            )
        })
        .collect()
}

#[tokio::test]
async fn every_tool_source_records_the_same_facts() {
    for case in cases() {
        let mut first: Option<Vec<String>> = None;
        for source in TOOL_SOURCES {
            let facts = call_facts(source, &run_turn(source, &case).await);
            assert!(facts.last().unwrap().contains("\"call_settled\""), "{}: {facts:?}", case.name);
            let expected = first.get_or_insert_with(|| facts.clone());
            assert_eq!(&facts, expected, "{}: {}", case.name, source.name);
        }
        let facts = first.unwrap().join("\n");
        let expected_text = match case.name {
            "allowed" => "hello",
            "yes" => "\"answer\":\"once\"",
            "no" => "not now",
            "denied" => "a rule denies TOOL",
            "wrong" => "`text`: required, but missing",
            "repaired" => "trailing comma",
            "long" => "lines, ",
            other => panic!("{other}"),
        };
        println!("{}: {}", case.name, &facts[..facts.len().min(300)]);
        assert!(facts.contains(expected_text), "{}: {facts}", case.name);
    }
}

/// A tool outside the binary.
struct ExternalToolFixture {
    name: &'static str,
    tool: &'static str,
    /// Its files in the project, with their content.
    files: &'static [(&'static str, &'static str)],
    /// Additional settings.
    settings: &'static str,
    /// The command that installs it.
    setup: &'static [&'static str],
}

const PYTHON: &str = r#"#!/usr/bin/env python3
import json, sys
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "lines": {"type": "integer"}},
          "required": ["text"], "additionalProperties": False}
for line in sys.stdin:
    ask = json.loads(line)
    if ask["method"] == "describe":
        answer = {"description": "Says it again.", "schema": SCHEMA}
    elif ask["method"] == "call":
        text, lines = ask["arguments"]["text"], ask["arguments"].get("lines")
        answer = {"result": "".join(f"{text} {n}\n" for n in range(1, lines + 1)) if lines else text}
    else:
        continue
    print(json.dumps({"id": ask["id"], **answer}), flush=True)
"#;

const SHELL: &str = r#"#!/bin/bash
while IFS= read -r line; do
  id=$(sed 's/.*"id":\([0-9]*\).*/\1/' <<< "$line")
  case $line in
    *'"method":"describe"'*)
      echo "{\"id\":$id,\"description\":\"Says it again.\",\"schema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},\"lines\":{\"type\":\"integer\"}},\"required\":[\"text\"],\"additionalProperties\":false}}" ;;
    *'"method":"call"'*)
      text=$(sed 's/.*"text":"\([^"]*\)".*/\1/' <<< "$line")
      if [[ $line == *'"lines":'* ]]; then
        lines=$(sed 's/.*"lines":\([0-9]*\).*/\1/' <<< "$line")
        echo "{\"id\":$id,\"result\":\"$(seq -f "$text %.0f" "$lines" | sed 's/$/\\n/' | tr -d '\n')\"}"
      else
        echo "{\"id\":$id,\"result\":\"$text\"}"
      fi ;;
  esac
done
"#;

const JAVASCRIPT: &str = r#"import { tool } from "@opencode-ai/plugin";
const { schema } = tool;
export default tool({
  description: "Says it again.",
  args: { text: schema.string(), lines: schema.number().int().optional() },
  async execute({ text, lines }) {
    return lines ? Array.from({ length: lines }, (_, n) => `${text} ${n + 1}\n`).join("") : text;
  },
});
"#;

const SERVER: &str = r#"import json, sys
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "lines": {"type": "integer"}},
          "required": ["text"], "additionalProperties": False}
for line in sys.stdin:
    ask = json.loads(line)
    method, params = ask.get("method"), ask.get("params", {})
    if "id" not in ask:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if method == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}}}
    elif method == "tools/list":
        answer = {"result": {"tools": [
            {"name": "again", "description": "Says it again.", "inputSchema": SCHEMA}]}}
    elif method == "tools/call":
        text, lines = params["arguments"]["text"], params["arguments"].get("lines")
        text = "".join(f"{text} {n}\n" for n in range(1, lines + 1)) if lines else text
        answer = {"result": {"content": [{"type": "text", "text": text}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **answer}), flush=True)
"#;

const EXTERNAL_TOOLS: &[ExternalToolFixture] = &[
    ExternalToolFixture {
        name: "python",
        tool: "pytool",
        files: &[(".windlass/tools/pytool", PYTHON)],
        settings: "",
        setup: &["trust", "--yes"],
    },
    ExternalToolFixture {
        name: "shell",
        tool: "shtool",
        files: &[(".windlass/tools/shtool", SHELL)],
        settings: "",
        setup: &["trust", "--yes"],
    },
    ExternalToolFixture {
        name: "typescript",
        tool: "tstool",
        files: &[(".windlass/tools/tstool.mjs", JAVASCRIPT)],
        settings: "",
        setup: &["trust", "--yes"],
    },
    ExternalToolFixture {
        name: "mcp",
        tool: "s_again",
        files: &[("server.py", SERVER)],
        settings: r#", "mcp": {"s": {"command": ["python3", "{folder}/server.py"]}}"#,
        setup: &["mcp", "tools", "s"],
    },
    ExternalToolFixture {
        name: "plugin",
        tool: "kittool",
        files: &[
            ("kit/plugin.json", r#"{"name": "kit", "version": "1.0.0", "description": "A kit."}"#),
            ("kit/dev.windlass/tools/kittool", PYTHON),
        ],
        settings: "",
        setup: &["plugin", "add", "--yes", "./kit"],
    },
];

/// Runs the binary with a model that makes this call, and returns the masked facts about the call.
fn call_facts_of_binary(external: &ExternalToolFixture, case: &PipelineCase) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let call = format!("call {} {}", external.tool, case.arguments);
    let rules = json!({external.tool: case.rule}).to_string();
    let settings = format!(r#""permission": {rules}{}"#, external.settings);
    let env = TestEnv::new(&[&call, "say Done."], &settings);
    // Data and cache must not be in `/tmp`, which is not visible in the sandbox.
    let visible = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = env.windlass(arguments);
        command.env("XDG_CACHE_HOME", visible.path().join("cache"));
        decode_output(&command.env("XDG_DATA_HOME", visible.path().join("data")).output().unwrap())
    };
    for (name, text) in external.files {
        let file = env.root().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (code, out, stderr) = run(external.setup);
    assert_eq!(code, 0, "{}: {out}\n{stderr}", external.name);
    let yes: &[&str] = if case.answer.is_some() { &["--yes"] } else { &[] };
    let (_, _, stderr) = run(&[&["run", "go"], yes].concat());
    let kinds = ["permission_asked", "permission_answered", "call_started", "call_settled"];
    let session = run(&["session", "list", "--json"]).1;
    let session: Value = serde_json::from_str(&session).unwrap();
    let log = run(&["session", "export", session[0]["session"].as_str().unwrap()]).1;
    let facts = log.lines().skip(1).filter_map(|line| {
        let mut fact: Value = serde_json::from_str(line).unwrap();
        for key in ["call", "seq", "at", "session", "check", "origin"] {
            fact.as_object_mut().unwrap().shift_remove(key);
        }
        let is_call_fact = kinds.contains(&fact["kind"].as_str().unwrap_or_default());
        is_call_fact.then(|| fact.to_string().replace(external.tool, "TOOL"))
    });
    let facts: Vec<String> = facts.collect();
    assert!(!facts.is_empty(), "{}: {stderr}", external.name);
    facts
}

#[tokio::test]
async fn external_tools_in_any_language_record_the_facts_of_a_built_in_tool() {
    let has_node = std::process::Command::new("node").arg("--version").output().is_ok();
    for case in cases() {
        // Without a terminal there is no user to deny with a reason.
        if matches!(case.answer, Some(PermissionAnswer::No { .. })) {
            continue;
        }
        let expected = call_facts(&TOOL_SOURCES[0], &run_turn(&TOOL_SOURCES[0], &case).await);
        for external in
            EXTERNAL_TOOLS.iter().filter(|external| has_node || external.name != "typescript")
        {
            assert_eq!(
                call_facts_of_binary(external, &case),
                expected,
                "{}: {}",
                case.name,
                external.name
            );
        }
    }
}
