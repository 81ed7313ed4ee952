//! A real model engine, in each wire format it speaks. `.ci/run` starts it and says where it is in
//! `WINDLASS_REAL_MODEL`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use windlass_engine::session::Limits;
use windlass_engine::{Asked, Engine, Settings};
use windlass_llm::catalog::{self, Model};
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Event, Fact, Op, Options, Outcome};
use windlass_sandbox::Workspace;
use windlass_storage::Sqlite;
use windlass_toolkit::{Registry, Runtime};

fn address() -> String {
    let address = std::env::var("WINDLASS_REAL_MODEL").unwrap();
    format!("{}/v1", address.trim_end_matches('/'))
}

/// Runs the binary in a folder of its own.
fn run(folder: &tempfile::TempDir, api: &str, options: &Value, args: &[&str]) -> (i32, String) {
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("config/windlass")).unwrap();
    std::fs::create_dir_all(at("w")).unwrap();
    let config = json!({"model": "real/smollm2", "provider": {"real": {
        "api": api,
        "base_url": address(),
        "options": options,
    }}});
    std::fs::write(at("config/windlass/windlass.jsonc"), config.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .current_dir(at("w"))
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", at("config"))
        .env("XDG_DATA_HOME", at("data"))
        .env("WINDLASS_KEYRING", "off")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    // So small a model may talk on until it is cut off, which is an end like another.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{told}\n{:?}", output.status);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// One session in each format: it streams, it counts tokens, and it goes on where it was.
#[test]
#[ignore = "needs a real model"]
fn a_session_in_each_format_it_speaks() {
    for api in ["openai-chat", "openai-responses", "anthropic"] {
        let folder = tempfile::tempdir().unwrap();
        let options = json!({"max_output": 40, "temperature": 0});
        let (_, events) = run(&folder, api, &options, &["run", "-o", "events", "Say hello."]);
        let events: Vec<Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
        assert!(of("delta") > 1, "{api} does not stream: {events:?}");
        assert_eq!((of("said"), of("turn_ended")), (1, 1), "{api}: {events:?}");
        let ended = events.iter().find(|event| event["kind"] == "step_ended").unwrap();
        let usage = &ended["usage"];
        assert!(
            usage["input"].as_u64() > Some(50) && usage["output"].as_u64() > Some(1),
            "{usage}"
        );
        let (_, more) =
            run(&folder, api, &options, &["run", "--continue", "-o", "json", "And goodbye."]);
        let more: Value = serde_json::from_str(&more).unwrap();
        let end = more["end"]["end"].as_str();
        assert!(matches!(end, Some("done" | "limit")), "{api}: {more}");
        assert!(more["result"].as_str().is_some_and(|text| !text.is_empty()), "{more}");
    }
}

/// The engine's own sampler keeps to the schema, and we check that it did.
#[test]
#[ignore = "needs a real model"]
fn an_answer_after_a_schema() {
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "size": {"enum": ["big", "small"]}},
        "required": ["city", "size"],
        "additionalProperties": false,
    });
    let file = folder.path().join("schema.json");
    std::fs::write(&file, schema.to_string()).unwrap();
    let options = json!({"max_output": 100, "temperature": 0, "tool_choice": "none"});
    let args = ["run", "--output-schema", file.to_str().unwrap(), "Name a city."];
    let (_, answer) = run(&folder, "openai-chat", &options, &args);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(jsonschema::is_valid(&schema, &answer), "{answer}");
}

/// A call written as text, because the engine's grammar leaves it no choice, is carried out.
#[tokio::test]
#[ignore = "needs a real model"]
async fn a_call_written_as_text_is_carried_out() {
    const GRAMMAR: &str = r#"root ::= "<tool_call>{\"name\": \"read\", \"arguments\": {\"filePath\": \"" [a-z]+ ".txt\"}}</tool_call>""#;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    std::fs::create_dir(&root).unwrap();
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(Rules::parse(&json!("allow")).unwrap()),
        workspace: Workspace::at(&root).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::Senses::default());
    let local = catalog::plain(Format::OpenaiChat, true);
    let endpoint = Endpoint {
        quirks: local.quirks,
        auth: local.auth,
        ..Endpoint::plain(Format::OpenaiChat, address())
    };
    let mut options =
        Options { max_output: Some(60), temperature: Some(0.0), ..Options::default() };
    options.extra.insert("grammar".into(), GRAMMAR.into());
    // The engine takes a grammar or tools, not both.
    options.extra.insert("tools".into(), json!([]));
    let asked = Asked {
        client: Arc::new(Client::new(endpoint).unwrap()),
        model: Arc::new(Model::assumed("smollm2")),
        options: Arc::new(options),
    };
    let mut settings = Settings::new("/w", Some(asked), "real/smollm2");
    // The grammar makes it call for ever; one step is enough.
    settings.limits = Limits { steps: 1, ..Limits::default() };
    let log = Arc::new(Sqlite::open(&folder.path().join("data")).await.unwrap());
    let engine = Engine::new(log, Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.create().await.unwrap();
    let text = "Read the file notes.".to_owned();
    handle.send(Op::prompt(text)).await;
    let mut facts = Vec::new();
    while !matches!(facts.last(), Some(Fact::TurnEnded { .. })) {
        if let Event::Fact(record) = &*watcher.next().await.unwrap().unwrap() {
            facts.push(record.fact.clone());
        }
    }
    let called = facts.iter().find_map(|fact| match fact {
        Fact::Called { tool, arguments, repaired, .. } => Some((tool, arguments, repaired)),
        _ => None,
    });
    let (tool, arguments, repaired) = called.unwrap_or_else(|| panic!("no call: {facts:?}"));
    assert_eq!(
        (tool.as_str(), repaired.as_slice()),
        ("read", &["the call was written as text".to_owned()][..])
    );
    let path = serde_json::from_str::<Value>(arguments).unwrap()["filePath"].clone();
    assert!(facts.iter().any(|fact| matches!(fact, Fact::Started { .. })), "{facts:?}");
    let outcome = facts.iter().find_map(|fact| match fact {
        Fact::Settled { outcome, .. } => Some(outcome),
        _ => None,
    });
    // There is no such file, and the tool itself says so: it ran.
    let Some(Outcome::Failed { text }) = outcome else { panic!("{outcome:?}") };
    assert!(text.contains(path.as_str().unwrap()), "{text}");
    handle.close().await.unwrap();
}
