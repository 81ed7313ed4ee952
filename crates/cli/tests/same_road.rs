//! One road: whoever brings a tool, and however it is called, the same situation gives the same
//! facts. Names and ids are masked; everything else is compared word for word.
//!
//! To add a way, add a row to [`WAYS`]: it puts a tool into the registry that is called with
//! `{"text": …, "lines": …}`, asks by its own name, and gives back the text, or so many lines of it.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Asked, Engine, Role, Settings, Worker};
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Access, Answer, Event, Fact, Op, Output, Record};
use windlass_sandbox::Workspace;
use windlass_storage::Sqlite;
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Bounds, Cx, Definition, Failure, Registry, Runtime, Scene, Tool};
use yard::{Yard, told};

/// A way to a tool.
struct Way {
    /// Who brings it.
    name: &'static str,
    /// The name it is called by.
    tool: &'static str,
    /// Puts it there.
    bring: fn(&Runtime),
    /// How a model calls it.
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// By its name.
    Plainly,
    /// Found, then called through `call_tool`.
    Found,
    /// By an agent that another one put to work.
    ByAgent,
}

const WAYS: &[Way] = &[
    Way { name: "built in", tool: "puppet", bring: built_in, how: How::Plainly },
    Way { name: "built in, by an agent", tool: "puppet", bring: built_in, how: How::ByAgent },
    Way { name: "somebody's", tool: "x_puppet", bring: admitted, how: How::Plainly },
    Way { name: "somebody's, found", tool: "x_hidden", bring: hidden, how: How::Found },
    Way { name: "found by an agent", tool: "x_hidden", bring: hidden, how: How::ByAgent },
];

fn built_in(runtime: &Runtime) {
    runtime.registry.register(Puppet { name: "puppet", listed: true });
}

fn admitted(runtime: &Runtime) {
    runtime.registry.admit("x", Puppet { name: "x_puppet", listed: true }).unwrap();
}

fn hidden(runtime: &Runtime) {
    runtime.registry.admit("x", Puppet { name: "x_hidden", listed: false }).unwrap();
}

struct Puppet {
    name: &'static str,
    listed: bool,
}

#[async_trait]
impl Tool for Puppet {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        self.name
    }

    fn listed(&self) -> bool {
        self.listed
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"},
            "lines": {"type": "integer"}}, "required": ["text"], "additionalProperties": false});
        Definition { description: "Says it again.".into(), schema }
    }

    fn access(&self, _input: &Self::Input) -> Vec<Access> {
        vec![Access::Use { tool: self.name.to_owned() }]
    }

    async fn preview(&self, input: &Self::Input, _cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        Ok(Some(serde_json::to_string_pretty(input).unwrap()))
    }

    async fn run(&self, input: Self::Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        let text = input["text"].as_str().unwrap();
        let text = match input.get("lines").and_then(Value::as_u64) {
            Some(lines) => (1..=lines).map(|n| format!("{text} {n}\n")).collect(),
            None => text.to_owned(),
        };
        Ok(Output { title: self.name.to_owned(), text, ..Output::default() })
    }
}

/// What a rule says of the tool, what the person answers, and what it is called with.
struct Case {
    name: &'static str,
    rule: &'static str,
    answer: Option<Answer>,
    arguments: &'static str,
}

fn cases() -> Vec<Case> {
    let fine = r#"{"text": "hello"}"#;
    let no = Answer::No { reason: Some("not now".into()) };
    vec![
        Case { name: "allowed", rule: "allow", answer: None, arguments: fine },
        Case { name: "yes", rule: "ask", answer: Some(Answer::Once), arguments: fine },
        Case { name: "no", rule: "ask", answer: Some(no), arguments: fine },
        Case { name: "denied", rule: "deny", answer: None, arguments: fine },
        Case { name: "wrong", rule: "allow", answer: None, arguments: r#"{"txet": 7}"# },
        Case { name: "repaired", rule: "allow", answer: None, arguments: r#"{"text": "a",}"# },
        Case {
            name: "long",
            rule: "allow",
            answer: None,
            arguments: r#"{"text": "line", "lines": 3000}"#,
        },
    ]
}

/// All that was seen of a turn in which the model makes this call.
async fn play(way: &Way, case: &Case) -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let call = match way.how {
        How::Found => {
            let arguments = case.arguments;
            format!("call call_tool {{\"name\": \"{}\", \"arguments\": {arguments}}}", way.tool)
        }
        How::Plainly | How::ByAgent => format!("call {} {}", way.tool, case.arguments),
    };
    let work = r#"call task {"description": "d", "prompt": "do it", "subagent_type": "helper"}"#;
    let scripts = match way.how {
        How::ByAgent => [vec![work, "say Over."], vec![&*call, "say Done."]],
        How::Plainly | How::Found => [vec![&*call, "say Done."], vec![]],
    };
    let models = scripts.map(|replies| Model::start(Script::new(replies)));
    let [root, helper] = [&models[0], &models[1]].map(|model| {
        let client = Client::new(Endpoint::plain(Format::OpenaiChat, model.url())).unwrap();
        Asked::plainly(client, "m")
    });
    let rules = json!({"task": "allow", way.tool: case.rule});
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(Rules::parse(&rules).unwrap()),
        workspace: Workspace::at(folder.path()).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::Senses::default());
    (way.bring)(&runtime);
    let mut settings = Settings::new("/w", Some(root), "p/m");
    settings.agents = vec![Arc::new(Worker {
        name: "helper".into(),
        description: "Helps.".into(),
        role: Role::Subagent,
        prompt: "You help.".into(),
        bounds: Bounds::default(),
        model: Some((helper, "p/m".into())),
    })]
    .into();
    let log = Sqlite::open(&folder.path().join("data")).await.unwrap();
    let engine = Engine::new(Arc::new(log), Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.create().await.unwrap();
    assert!(handle.send(Op::prompt("go")).await);
    let mut seen = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap();
        let Event::Fact(record) = &*next.unwrap().unwrap() else { continue };
        seen.push(record.clone());
        if let Fact::Asked { call, .. } = &record.fact {
            let answer = case.answer.clone().unwrap_or_else(|| panic!("{}: asked", way.name));
            assert!(handle.send(Op::Answer { call: *call, answer }).await);
        }
        if record.session == handle.session && matches!(record.fact, Fact::TurnEnded { .. }) {
            break;
        }
    }
    let own = seen.iter().filter(|record| record.session == handle.session);
    grammar::check_settled(&own.map(|record| record.fact.clone()).collect::<Vec<_>>()).unwrap();
    handle.close().await.unwrap();
    seen
}

/// What is on record of the call of the tool, with names and ids masked.
fn road(way: &Way, seen: &[Record]) -> Vec<String> {
    let sessions: std::collections::BTreeSet<_> =
        seen.iter().map(|record| record.session).collect();
    assert_eq!(sessions.len(), if way.how == How::ByAgent { 2 } else { 1 }, "{}", way.name);
    let session = match way.how {
        How::ByAgent => seen.iter().map(|record| record.session).find(|it| *it != seen[0].session),
        How::Plainly | How::Found => Some(seen[0].session),
    };
    let kinds = ["asked", "answered", "started", "settled"];
    let facts = seen.iter().filter(|record| Some(record.session) == session);
    facts
        .filter(|record| kinds.contains(&record.fact.kind()))
        .map(|record| {
            let mut fact = serde_json::to_value(&record.fact).unwrap();
            fact.as_object_mut().unwrap().shift_remove("call");
            let text = fact.to_string().replace(way.tool, "TOOL");
            // What a model wrote stays in its own form, wrapped or not.
            text.replace(
                r#"{\"name\":\"TOOL\",\"arguments\":{\"text\":\"a\"}}"#,
                r#"{\"text\":\"a\"}"#,
            )
        })
        .collect()
}

#[tokio::test]
async fn every_way_to_a_tool_leaves_the_same_facts() {
    for case in cases() {
        let mut first: Option<Vec<String>> = None;
        for way in WAYS {
            let facts = road(way, &play(way, &case).await);
            assert!(facts.last().unwrap().contains("\"settled\""), "{}: {facts:?}", case.name);
            let expected = first.get_or_insert_with(|| facts.clone());
            assert_eq!(&facts, expected, "{}: {}", case.name, way.name);
        }
        let facts = first.unwrap().join("\n");
        let told = match case.name {
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
        assert!(facts.contains(told), "{}: {facts}", case.name);
    }
}

/// A tool as somebody would write it: what it is made of, and what it is called.
struct Kind {
    name: &'static str,
    tool: &'static str,
    /// Its files in the project, and what stands in them.
    files: &'static [(&'static str, &'static str)],
    /// What the config says besides.
    settings: &'static str,
    /// What the person does first.
    first: &'static [&'static str],
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

const SCRIPT: &str = r#"import { tool } from "@opencode-ai/plugin";
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

const KINDS: &[Kind] = &[
    Kind {
        name: "python",
        tool: "pytool",
        files: &[(".windlass/tools/pytool", PYTHON)],
        settings: "",
        first: &["trust", "--yes"],
    },
    Kind {
        name: "shell",
        tool: "shtool",
        files: &[(".windlass/tools/shtool", SHELL)],
        settings: "",
        first: &["trust", "--yes"],
    },
    Kind {
        name: "typescript",
        tool: "tstool",
        files: &[(".windlass/tools/tstool.mjs", SCRIPT)],
        settings: "",
        first: &["trust", "--yes"],
    },
    Kind {
        name: "mcp",
        tool: "s_again",
        files: &[("server.py", SERVER)],
        settings: r#", "mcp": {"s": {"command": ["python3", "{folder}/server.py"]}}"#,
        first: &["mcp", "tools", "s"],
    },
    Kind {
        name: "plugin",
        tool: "kittool",
        files: &[
            ("kit/plugin.json", r#"{"name": "kit", "version": "1.0.0", "description": "A kit."}"#),
            ("kit/dev.windlass/tools/kittool", PYTHON),
        ],
        settings: "",
        first: &["plugin", "add", "--yes", "./kit"],
    },
];

/// What is on record when a model of the binary makes this call.
fn record(kind: &Kind, case: &Case) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let call = format!("call {} {}", kind.tool, case.arguments);
    let rules = json!({kind.tool: case.rule}).to_string();
    let settings = format!(r#""permission": {rules}{}"#, kind.settings);
    let yard = Yard::new(&[&call, "say Done."], &settings);
    // What is kept for programs has to be where a sandbox sees it.
    let seen = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = yard.windlass(arguments);
        command.env("XDG_CACHE_HOME", seen.path().join("cache"));
        told(&command.env("XDG_DATA_HOME", seen.path().join("data")).output().unwrap())
    };
    for (name, text) in kind.files {
        let file = yard.root().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (code, out, notes) = run(kind.first);
    assert_eq!(code, 0, "{}: {out}\n{notes}", kind.name);
    let yes: &[&str] = if case.answer.is_some() { &["--yes"] } else { &[] };
    let (_, _, notes) = run(&[&["run", "go"], yes].concat());
    let kinds = ["asked", "answered", "started", "settled"];
    let session = run(&["session", "list", "--json"]).1;
    let session: Value = serde_json::from_str(&session).unwrap();
    let log = run(&["session", "export", session[0]["session"].as_str().unwrap()]).1;
    let facts = log.lines().skip(1).filter_map(|line| {
        let mut fact: Value = serde_json::from_str(line).unwrap();
        for key in ["call", "seq", "at", "session"] {
            fact.as_object_mut().unwrap().shift_remove(key);
        }
        let is_one = kinds.contains(&fact["kind"].as_str().unwrap_or_default());
        is_one.then(|| fact.to_string().replace(kind.tool, "TOOL"))
    });
    let facts: Vec<String> = facts.collect();
    assert!(!facts.is_empty(), "{}: {notes}", kind.name);
    facts
}

#[tokio::test]
async fn whoever_writes_a_tool_and_in_whatever_language_the_facts_are_those_of_a_built_in_one() {
    let has_node = std::process::Command::new("node").arg("--version").output().is_ok();
    for case in cases() {
        // Nobody is there to say no to the binary.
        if matches!(case.answer, Some(Answer::No { .. })) {
            continue;
        }
        let expected = road(&WAYS[0], &play(&WAYS[0], &case).await);
        for kind in KINDS.iter().filter(|kind| has_node || kind.name != "typescript") {
            assert_eq!(record(kind, &case), expected, "{}: {}", case.name, kind.name);
        }
    }
}
