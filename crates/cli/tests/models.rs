//! Models and providers: errors for missing settings, requests in each wire format, keys, options
//! and output schemas.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use support::{TestEnv, decode_output};

const REPLIES: &[&str] = &["say Hello."];

/// Runs the binary with `variables` in its environment.
fn run(env: &TestEnv, variables: &[(&str, &str)], args: &[&str]) -> (i32, String, String) {
    decode_output(&env.windlass(args).envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn missing_keys_and_unknown_providers_are_reported_with_a_hint() {
    let env = TestEnv::new(REPLIES, "");
    let check = |model: &str, code: i32, words: &[&str]| {
        let (got, _, stderr) = run(&env, &[], &["run", "--model", model, "p"]);
        assert_eq!(got, code, "{stderr}");
        for word in words {
            assert!(stderr.contains(word), "{model}: {stderr}");
        }
    };
    check(
        "anthropic/claude-opus-4-7",
        2,
        &[
            "no API key for anthropic",
            "ANTHROPIC_API_KEY",
            "windlass auth login anthropic",
            "https://",
        ],
    );
    check("anthropik/x", 2, &["unknown provider `anthropik`", "Did you mean anthropic"]);
    check("openai", 2, &["PROVIDER/MODEL"]);
    check("azure/gpt", 2, &["AZURE_RESOURCE_NAME"]);
    check("scripted/m", 0, &[]);
}

#[test]
fn an_unknown_model_and_an_unreachable_server_are_reported() {
    let error =
        r#"{"error": {"message": "The model `nope` does not exist", "code": "model_not_found"}}"#;
    let env = TestEnv::new(&[&format!("status 404 {error}")], "");
    let (code, _, stderr) = env.run(&["run", "p"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("does not exist") && stderr.contains("windlass models"), "{stderr}");
    assert!(stderr.contains("404"), "{stderr}");

    // A free port: bound, and closed again.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    env.write_config(&format!(
        r#"{{"model": "mine/m", "provider": {{"mine": {{"api": "openai-chat", "base_url": "http://127.0.0.1:{port}/v1"}}}}}}"#
    ));
    let mut child = env.windlass(&["run", "p"]).spawn().unwrap();
    // The run retries for a while, so it is killed after its message.
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().unwrap();
    let (_, _, stderr) = support::decode_output(&child.wait_with_output().unwrap());
    assert!(
        stderr.contains(&format!("127.0.0.1:{port}")) && stderr.contains("refused"),
        "{stderr}"
    );
    assert!(stderr.contains("retrying in"), "{stderr}");
}

/// Starts a server that gives `answer` to every request. Returns its URL and the heads of requests.
fn start_server(answer: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (send, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let _ = send.send(String::from_utf8_lossy(&head).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, heads)
}

#[test]
fn a_proxy_is_used_and_its_refusal_is_reported() {
    let env = TestEnv::new(&[], "");
    let (proxy, heads) = start_server("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let variables = [("HTTPS_PROXY", proxy.as_str()), ("ANTHROPIC_API_KEY", "sk-very-secret")];
    let mut command = env.windlass(&["run", "--model", "anthropic/claude-opus-4-7", "p"]);
    let mut child = command.envs(variables).spawn().unwrap();
    let head = heads.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().unwrap();
    let (_, _, stderr) = support::decode_output(&child.wait_with_output().unwrap());
    assert!(head.starts_with("CONNECT api.anthropic.com:443"), "{head}");
    assert!(!head.contains("sk-very-secret"), "the key was sent to the proxy: {head}");
    assert!(stderr.contains("through the proxy in HTTPS_PROXY"), "{stderr}");
}

#[test]
fn each_format_has_its_own_path_and_key_header() {
    for (api, path, header, value) in [
        ("openai-chat", "/v1/chat/completions", "authorization", "Bearer sk-very-secret"),
        ("openai-responses", "/v1/responses", "authorization", "Bearer sk-very-secret"),
        ("anthropic", "/v1/messages", "x-api-key", "sk-very-secret"),
        (
            "gemini",
            "/v1/models/m:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            "sk-very-secret",
        ),
    ] {
        let replies = ["think Hm.\ncall read {\"filePath\": \"README.md\"}", "say It says hello."];
        let env = TestEnv::new(&replies, "");
        env.write_config(&format!(
            r#"{{"model": "mine/m", "provider": {{"mine": {{"api": "{api}", "base_url": "{}",
            "api_key": "sk-very-secret", "headers": {{"x-team": "blue"}}}}}}}}"#,
            env.model.url()
        ));
        let (code, answer, stderr) = env.run(&["run", "p"]);
        assert_eq!((code, answer.as_str()), (0, "It says hello.\n"), "{api}: {stderr}");
        let received = env.model.request_heads();
        assert_eq!((received.len(), received[0].path.as_str()), (2, path));
        assert_eq!(received[0].header(header), Some(value), "{api}");
        assert_eq!(received[0].header("x-team"), Some("blue"), "{api}");
    }
}

#[test]
fn options_reach_the_model_and_config_show_names_their_origin() {
    let env = TestEnv::new(REPLIES, "");
    env.write_config(&format!(
        r#"{{"model": "mine/m",
"provider": {{"mine": {{"api": "openai-chat", "base_url": "{}",
"options": {{"temperature": 0.5, "extra": {{"seed": 7}}}},
"models": {{"m": {{"id": "real-name", "variants": {{"hard": {{"max_output": 9}}}}}}}}
}}}}, "agent": {{"build": {{"options": {{"top_p": 0.25}}}}}}}}"#,
        env.model.url()
    ));
    assert_eq!(env.run(&["run", "--variant", "hard", "p"]).0, 0);
    let body = &env.model.requests()[0];
    assert_eq!(body["model"], "real-name");
    assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.25)));
    assert_eq!((&body["seed"], &body["max_tokens"]), (&json!(7), &json!(9)));
    let (_, shown, _) = env.run(&["config", "show"]);
    for (option, line) in [("temperature = 0.5", 3), ("extra.seed = 7", 3), ("top_p = 0.25", 5)] {
        let row = shown.lines().find(|row| row.starts_with(&format!("options.{option}")));
        let row = row.unwrap_or_else(|| panic!("{shown}"));
        assert!(row.contains(&format!("windlass.jsonc:{line}:")), "{row}");
    }
    let (code, _, stderr) = env.run(&["run", "--variant", "soft", "p"]);
    assert!(code == 2 && stderr.contains("available: hard"), "{stderr}");
}

#[test]
fn models_are_listed_including_those_of_the_config() {
    let env = TestEnv::new(REPLIES, "");
    let (code, all, _) = env.run(&["models"]);
    assert_eq!(code, 0);
    assert!(all.lines().count() > 500 && all.contains("anthropic/claude-"), "{}", all.len());
    assert!(all.contains("scripted/m "), "the model of the config is not listed");
    let (_, json, _) = env.run(&["models", "openai", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert!(rows.iter().all(|row| row["name"].as_str().unwrap().starts_with("openai/")));
    assert!(rows.iter().any(|row| row["price"]["input"].as_f64() > Some(0.0)));
    let (code, _, stderr) = env.run(&["models", "opnai"]);
    assert!(code == 2 && stderr.contains("Did you mean openai"), "{stderr}");
}

/// The model gets another try for an answer that does not match.
#[test]
fn an_answer_must_match_its_schema() {
    let schema =
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let replies = ["say Well, seven.", "say ```json\\n{\"n\": \"7\"}\\n```", "say {\"n\": 7}"];
    let env = TestEnv::new(&replies, "");
    std::fs::write(env.root().join("s.json"), schema).unwrap();
    let (code, answer, stderr) = env.run(&["run", "--output-schema", "s.json", "p"]);
    assert_eq!((code, answer.as_str()), (0, "{\"n\":7}\n"), "{stderr}");
    let second = env.model.requests()[1].to_string();
    assert!(second.contains("does not match the required schema"), "{second}");

    let env = TestEnv::new(&["say no", "say no", "say no", "say never asked"], "");
    std::fs::write(env.root().join("s.json"), schema).unwrap();
    let (code, answer, stderr) = env.run(&["run", "--output-schema", "s.json", "p"]);
    assert_eq!((code, answer.as_str(), env.model.requests().len()), (1, "", 3), "{stderr}");
    assert!(stderr.contains("does not match the schema"), "{stderr}");
    let (code, _, stderr) = env.run(&["run", "--output-schema", "README.md", "p"]);
    assert!(code == 2 && stderr.contains("README.md is not JSON"), "{stderr}");
}

#[test]
fn text_and_image_files_can_be_attached_to_a_prompt() {
    let env = TestEnv::new(REPLIES, "");
    let config =
        std::fs::read_to_string(env.home().join(".config/windlass/windlass.jsonc")).unwrap();
    env.write_config(&config.replace(r#""m": {}"#, r#""m": {"images": true}"#));
    std::fs::write(env.root().join("a.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    assert_eq!(env.run(&["run", "--file", "a.png", "what is it?"]).0, 0);
    let body = env.model.requests()[0].to_string();
    assert!(body.contains("data:image/png;base64,iVBORw0KGgpyZXN0"), "{body}");
    std::fs::write(env.root().join("a.bin"), b"\x00\x01\xff").unwrap();
    let (code, _, stderr) = env.run(&["run", "--file", "a.bin", "p"]);
    assert!(code == 2 && stderr.contains("neither UTF-8 text"), "{stderr}");
    std::fs::write(env.root().join("long.txt"), "x".repeat(300_000)).unwrap();
    let (code, _, stderr) = env.run(&["run", "--file", "long.txt", "p"]);
    assert!(code == 2 && stderr.contains("larger than 256 KiB"), "{stderr}");
    let (code, _, stderr) = env.run(&["run", "--file", "README.md", "-f", "a.png", "look"]);
    assert_eq!(code, 0, "{stderr}");
    let body = env.model.requests()[1].to_string();
    assert!(body.contains("look\\n\\nFile README.md:\\n```\\n# Hello\\n"), "{body}");
    assert!(body.contains("data:image/png"), "{body}");
    let (code, _, stderr) = env.run(&["run", "--file", "gone.png", "p"]);
    assert!(code == 2 && stderr.contains("cannot read gone.png"), "{stderr}");
}

/// The output and the data folder do not contain the key.
#[test]
fn a_key_is_only_in_the_request() {
    let env = TestEnv::new(&["status 400 {\"error\": \"you sent sk-from-env\"}"], "");
    env.write_config(&format!(
        r#"{{"model": "openai/m", "provider": {{"openai": {{"api": "openai-chat", "base_url": "{}",
        "api_key": "{{env:OPENAI_API_KEY}}"}}}}}}"#,
        env.model.url()
    ));
    let variables = [("OPENAI_API_KEY", "sk-from-env"), ("WINDLASS_LOG", "trace")];
    let (code, out, stderr) = run(&env, &variables, &["run", "-o", "events", "p"]);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(env.model.request_heads()[0].header("authorization"), Some("Bearer sk-from-env"));
    assert!(!out.contains("sk-from-env") && !stderr.contains("sk-from-env"), "{out}{stderr}");
    let mut search = std::process::Command::new("grep");
    let found = search.args(["-r", "sk-from-env"]).arg(env.data()).output().unwrap();
    assert_eq!(found.status.code(), Some(1), "{found:?}");
}

/// The config of a provider with another address must name the variable explicitly.
#[test]
fn a_providers_key_is_not_sent_to_another_address_by_default() {
    let env = TestEnv::new(&["say Hello."], "");
    for (name, alias) in [("google", "google"), ("google", "gemini"), ("gemini", "google")] {
        env.write_config(&format!(
            r#"{{"model": "{alias}/m", "provider": {{"{name}": {{"api": "openai-chat", "base_url": "{}"}}}}}}"#,
            env.model.url()
        ));
        let (code, _, stderr) = run(&env, &[("GEMINI_API_KEY", "sk-from-env")], &["run", "p"]);
        assert_eq!(code, 0, "{stderr}");
        let received = env.model.request_heads();
        assert!(!format!("{:?}", received.last()).contains("sk-from-env"), "{received:?}");
    }
}

/// The invalid setting may be the address, so the key would go to the wrong server.
#[test]
fn a_provider_with_a_config_error_is_not_used() {
    for mistake in [
        r#""baseurl": "http://127.0.0.1:1/v1""#,
        r#""base_url": 7"#,
        r#""models": {"m": {"context": 1e6}}"#,
    ] {
        let env = TestEnv::new(&[], "");
        env.write_config(&format!(
            r#"{{"model": "openai/m", "provider": {{"openai": {{{mistake}}}}}}}"#
        ));
        let (code, _, stderr) = run(&env, &[("OPENAI_API_KEY", "sk-from-env")], &["run", "p"]);
        assert!(code == 2 && stderr.contains("is disabled: "), "{mistake}: {stderr}");
    }
}

#[test]
fn local_servers_are_not_reached_through_a_proxy() {
    let env = TestEnv::new(REPLIES, "");
    let variables = [("HTTP_PROXY", "http://127.0.0.1:1"), ("ALL_PROXY", "http://127.0.0.1:1")];
    let (code, answer, stderr) = run(&env, &variables, &["run", "p"]);
    assert_eq!((code, answer.as_str()), (0, "Hello.\n"), "{stderr}");
}

#[test]
fn a_model_without_tool_calls_is_offered_no_tools() {
    let env = TestEnv::new(REPLIES, "");
    let config =
        std::fs::read_to_string(env.home().join(".config/windlass/windlass.jsonc")).unwrap();
    env.write_config(&config.replace(r#""m": {}"#, r#""m": {"calls": false}"#));
    assert_eq!(env.run(&["run", "p"]).0, 0);
    assert!(env.model.requests()[0].get("tools").is_none());
}

/// Local models write reasoning and calls as text.
#[test]
fn a_call_written_as_text_runs_unless_calls_are_disabled() {
    let call = "say <think>Let me look.</think><tool_call>{\"name\": \"Read\", \"arguments\": {\"file_path\": \"README.md\"}}</tool_call>";
    let env = TestEnv::new(&[call, "say It says hello."], "");
    let (code, answer, stderr) = env.run(&["run", "p"]);
    assert_eq!((code, answer.as_str()), (0, "It says hello.\n"), "{stderr}");
    let facts = env.facts();
    let of = |kind: &str| facts.iter().find(|fact| fact["kind"] == kind).unwrap();
    assert_eq!(of("model_reasoning")["text"], "Let me look.");
    assert_eq!(of("tool_called")["repair"], json!(["the call was written as text"]));
    let repaired = of("call_started")["repair"].to_string();
    assert!(
        repaired.contains("the name was `Read`") && repaired.contains("filePath"),
        "{repaired}"
    );
    // The next request contains the call as it ran.
    let second = env.model.requests()[1].to_string();
    assert!(second.contains(r#"{\"filePath\":\"README.md\"}"#), "{second}");

    let calls_disabled = r#""agent": {"build": {"options": {"tool_choice": "none"}}}"#;
    let env = TestEnv::new(&[call, "say never asked"], calls_disabled);
    assert_eq!(env.run(&["run", "p"]).0, 0);
    assert_eq!(env.model.requests().len(), 1);
}

/// A gateway whose models write their reasoning into the answer, and strict schemas of tools.
#[test]
fn a_provider_may_have_think_tags_and_strict_tools() {
    for is_set in [false, true] {
        let env = TestEnv::new(&["say <think>Hm.</think>Done."], "");
        let url = env.model.url();
        env.write_config(&format!(
            r#"{{"model": "gate/m", "provider": {{"gate": {{"like": "deepseek", "base_url": "{url}",
                "api_key": "k", "think_tags": {is_set}, "strict_tools": {is_set},
                "models": {{"m": {{"options": {{"top_k": 7}}}}}}}}}}}}"#
        ));
        let (code, stdout, stderr) = env.run(&["run", "hi"]);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(stdout.contains("<think>"), !is_set, "{stdout}");
        let request = &env.model.requests()[0];
        let tools = request["tools"].as_array().unwrap();
        let strict = tools.iter().filter(|tool| tool["function"]["strict"] == true).count();
        assert_eq!(strict > 5, is_set, "{request}");
        assert!(request.get("top_k").is_none(), "the API does not define it: {request}");
    }
}

/// APIs that define `top_k` get that of the agent.
#[test]
fn the_top_k_of_an_agent_reaches_the_request() {
    for (api, pointer) in [("anthropic", "/top_k"), ("gemini", "/generationConfig/topK")] {
        let env = TestEnv::new(&["say Done."], "");
        let url = env.model.url();
        env.write_config(&format!(
            r#"{{"model": "own/m", "provider": {{"own": {{"api": "{api}", "base_url": "{url}",
                "api_key": "k", "models": {{"m": {{}}}}}}}},
                "agent": {{"build": {{"options": {{"top_k": 7}}}}}}}}"#
        ));
        let (code, stdout, stderr) = env.run(&["run", "hi"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        let request = &env.model.requests()[0];
        assert_eq!(request.pointer(pointer), Some(&serde_json::json!(7)), "{api}: {request}");
    }
}

/// Returns the model of each step in the last session.
fn step_models(env: &TestEnv) -> Vec<String> {
    let facts = env.facts();
    let steps = facts.iter().filter(|fact| fact["kind"] == "step_started");
    steps.map(|fact| fact["model"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_list_of_models_names_fallbacks_in_config_flag_and_agent() {
    let next = windlass_testkit::ScriptedModel::start(windlass_testkit::ModelScript::new([
        "say From the next.",
    ]));
    let env = TestEnv::new(&["status 402 {}"], "");
    let provider = |url: String| {
        format!(
            r#"{{"api": "openai-chat", "base_url": "{url}", "api_key": "k", "models": {{"m": {{}}}}}}"#
        )
    };
    let write_config = |model: &str| {
        env.write_config(&format!(
            r#"{{"model": {model}, "provider": {{"scripted": {}, "next": {}}}}}"#,
            provider(env.model.url()),
            provider(next.url())
        ));
    };
    let check = |args: &[&str]| {
        let (code, stdout, stderr) = env.run(&[&["run", "p"], args].concat());
        assert_eq!(code, 0, "{args:?}: {stderr}");
        assert_eq!(stdout.trim(), "From the next.", "{args:?}");
        assert!(stderr.contains("retrying with next/m"), "{args:?}: {stderr}");
        assert_eq!(step_models(&env), ["scripted/m", "next/m"], "{args:?}");
    };
    write_config(r#"["scripted/m", "next/m"]"#);
    check(&[]);
    let (_, shown, _) = env.run(&["config", "show"]);
    assert!(shown.contains("model = scripted/m, next/m"), "{shown}");
    write_config(r#""scripted/m""#);
    check(&["--model", "scripted/m,next/m"]);
    assert_eq!(env.run(&["run", "p"]).0, 1, "without a fallback the turn fails");
    let agents = env.config_folder().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    let agent = "---\ndescription: d\nmodel: [scripted/m, next/m]\n---\nWork.\n";
    std::fs::write(agents.join("worker.md"), agent).unwrap();
    check(&["--agent", "worker"]);
    // A fallback that cannot be used is left out.
    write_config(r#"["next/m", "anthropic/claude-sonnet-4-5"]"#);
    let (code, _, stderr) = env.run(&["run", "p"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("note: anthropic/claude-sonnet-4-5 is not used: no API key"),
        "{stderr}"
    );
}

#[test]
fn a_small_model_is_set_in_the_users_config_or_by_flag() {
    let summary = "say It said something long.";
    let small = windlass_testkit::ScriptedModel::start(windlass_testkit::ModelScript::new([
        summary, summary, summary,
    ]));
    // After the summary, the conversation has fewer answers, so the script starts again.
    let replies = [
        "once call read {\"filePath\": \"a.txt\"}\nonce usage 5000 5\nsay Over.",
        "once call read {\"filePath\": \"b.txt\"}\nonce usage 11500 5\nsay Over.",
        "say Over.",
    ];
    for (setting, flags) in
        [(r#""small_model": "small/s","#, &[][..]), ("", &["--small-model", "small/s"][..])]
    {
        let env = TestEnv::new(&replies, "");
        for name in ["a.txt", "b.txt"] {
            std::fs::write(env.root().join(name), "word word word word\n".repeat(500)).unwrap();
        }
        env.write_config(&format!(
            r#"{{"model": "scripted/m", {setting} "permission": "allow", "provider": {{
            "scripted": {{"api": "openai-chat", "base_url": "{}", "api_key": "k",
                "models": {{"m": {{"context": 12000, "output": 1000}}}}}},
            "small": {{"api": "openai-chat", "base_url": "{}", "api_key": "k",
                "models": {{"s": {{"context": 100000}}}}}}}}}}"#,
            env.model.url(),
            small.url()
        ));
        let (code, _, stderr) = env.run(&[&["run", "read both"], flags].concat());
        assert_eq!(code, 0, "{stderr}");
        let models = step_models(&env);
        assert!(models.contains(&"small/s".to_owned()), "{flags:?}: {models:?}");
        assert_eq!(models.last().map(String::as_str), Some("scripted/m"), "{models:?}");
    }
}
