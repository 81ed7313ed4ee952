//! A real model server, in each wire format that it supports. `.ci/run` starts it and sets
//! `WINDLASS_REAL_MODEL` to its address.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use windlass_engine::session::TurnLimits;
use windlass_engine::{Engine, EngineSettings, ModelHandle};
use windlass_llm::catalog::{self, Model};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{CallOutcome, Event, Fact, ModelOptions, SessionOp};
use windlass_sandbox::Workspace;
use windlass_storage::SqliteLog;
use windlass_toolkit::{Registry, ToolRuntime};

fn address() -> String {
    let address = std::env::var("WINDLASS_REAL_MODEL").unwrap();
    format!("{}/v1", address.trim_end_matches('/'))
}

/// Runs the binary with its config, data and project in `folder`.
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    // So small a model may not stop before the output limit, which is exit code 4.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{stderr}\n{:?}", output.status);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Responses are streamed, tokens are counted, and the session can be continued.
#[test]
#[ignore = "needs a real model"]
fn a_session_works_in_each_wire_format() {
    for api in ["openai-chat", "openai-responses", "anthropic"] {
        let folder = tempfile::tempdir().unwrap();
        let options = json!({"max_output": 40, "temperature": 0});
        let (_, events) = run(&folder, api, &options, &["run", "-o", "events", "Say hello."]);
        let events: Vec<Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
        assert!(count("model_delta") > 1, "{api} does not stream: {events:?}");
        assert_eq!((count("model_text"), count("turn_ended")), (1, 1), "{api}: {events:?}");
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
        assert!(matches!(end, Some("completed" | "limit_reached")), "{api}: {more}");
        assert!(more["result"].as_str().is_some_and(|text| !text.is_empty()), "{more}");
    }
}

/// The server's sampler enforces the schema.
#[test]
#[ignore = "needs a real model"]
fn an_answer_follows_its_schema() {
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

/// A grammar forces the model to write a call as text.
#[tokio::test]
#[ignore = "needs a real model"]
async fn a_call_written_as_text_runs() {
    const GRAMMAR: &str = r#"root ::= "<tool_call>{\"name\": \"read\", \"arguments\": {\"filePath\": \"" [a-z]+ ".txt\"}}</tool_call>""#;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    std::fs::create_dir(&root).unwrap();
    let runtime = ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(PermissionRules::parse(&json!("allow")).unwrap()),
        workspace: Workspace::open(&root).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::ToolIntegrations::default());
    let local = catalog::generic_provider(WireFormat::OpenaiChat, true);
    let endpoint = Endpoint {
        quirks: local.quirks,
        auth: local.auth,
        ..Endpoint::generic(WireFormat::OpenaiChat, address())
    };
    let mut options =
        ModelOptions { max_output: Some(60), temperature: Some(0.0), ..ModelOptions::default() };
    options.extra.insert("grammar".into(), GRAMMAR.into());
    // The server accepts a grammar or tools, not both.
    options.extra.insert("tools".into(), json!([]));
    let model_handle = ModelHandle {
        client: Arc::new(Client::new(endpoint).unwrap()),
        model: Arc::new(Model::unlisted("smollm2")),
        options: Arc::new(options),
    };
    let mut settings = EngineSettings::new("/w", Some(model_handle), "real/smollm2");
    // With the grammar every step is a call, so the turn is limited to one step.
    settings.limits = TurnLimits { steps: 1, ..TurnLimits::default() };
    let log = Arc::new(SqliteLog::open(&folder.path().join("data")).await.unwrap());
    let engine = Engine::new(log, Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.start_default_session().await.unwrap();
    let text = "Read the file notes.".to_owned();
    handle.send(SessionOp::prompt(text)).await;
    let mut facts = Vec::new();
    while !matches!(facts.last(), Some(Fact::TurnEnded { .. })) {
        if let Event::Fact(record) = &*watcher.next().await.unwrap().unwrap() {
            facts.push(record.fact.clone());
        }
    }
    let called = facts.iter().find_map(|fact| match fact {
        Fact::ToolCalled { tool, arguments, repair, .. } => Some((tool, arguments, repair)),
        _ => None,
    });
    let (tool, arguments, repaired) = called.unwrap_or_else(|| panic!("no call: {facts:?}"));
    assert_eq!(
        (tool.as_str(), repaired.as_slice()),
        ("read", &["the call was written as text".to_owned()][..])
    );
    let path = serde_json::from_str::<Value>(arguments).unwrap()["filePath"].clone();
    assert!(facts.iter().any(|fact| matches!(fact, Fact::CallStarted { .. })), "{facts:?}");
    let outcome = facts.iter().find_map(|fact| match fact {
        Fact::CallSettled { outcome, .. } => Some(outcome),
        _ => None,
    });
    // The file does not exist, which the tool reports, so it ran.
    let Some(CallOutcome::Failed { text }) = outcome else { panic!("{outcome:?}") };
    assert!(text.contains(path.as_str().unwrap()), "{text}");
    handle.close().await.unwrap();
}
