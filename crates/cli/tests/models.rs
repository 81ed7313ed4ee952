//! Any model: what is said when something is missing, what each provider is sent, and whether an
//! answer fits.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use yard::{Yard, told};

const SAYS: &[&str] = &["say Hello."];

/// The binary with these variables in its environment.
fn run(yard: &Yard, variables: &[(&str, &str)], args: &[&str]) -> (i32, String, String) {
    told(&yard.windlass(args).envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn what_is_missing_is_said_and_how_to_get_it() {
    let yard = Yard::new(SAYS, "");
    let says = |model: &str, code: i32, words: &[&str]| {
        let (got, _, told) = run(&yard, &[], &["run", "--model", model, "p"]);
        assert_eq!(got, code, "{told}");
        for word in words {
            assert!(told.contains(word), "{model}: {told}");
        }
    };
    says(
        "anthropic/claude-opus-4-7",
        2,
        &["no key for anthropic", "ANTHROPIC_API_KEY", "windlass auth login anthropic", "https://"],
    );
    says("anthropik/x", 2, &["no provider `anthropik`", "Near: anthropic"]);
    says("openai", 2, &["PROVIDER/MODEL"]);
    says("azure/gpt", 2, &["AZURE_RESOURCE_NAME"]);
    says("scripted/m", 0, &[]);
}

#[test]
fn a_wrong_model_and_nobody_at_the_address_are_told_apart() {
    let error =
        r#"{"error": {"message": "The model `nope` does not exist", "code": "model_not_found"}}"#;
    let yard = Yard::new(&[&format!("status 404 {error}")], "");
    let (code, _, told) = yard.run(&["run", "p"]);
    assert_eq!(code, 1);
    assert!(told.contains("does not exist") && told.contains("windlass models"), "{told}");
    assert!(told.contains("404"), "{told}");

    // A port nobody listens at: bound, and let go.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    yard.write_config(&format!(
        r#"{{"model": "mine/m", "provider": {{"mine": {{"api": "openai-chat", "base_url": "http://127.0.0.1:{port}/v1"}}}}}}"#
    ));
    let mut child = yard.windlass(&["run", "p"]).spawn().unwrap();
    // It tries again for a while; that it says so is enough.
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().unwrap();
    let (_, _, told) = yard::told(&child.wait_with_output().unwrap());
    assert!(told.contains(&format!("127.0.0.1:{port}")) && told.contains("refused"), "{told}");
    assert!(told.contains("trying again"), "{told}");
}

/// One request is taken, its head is handed on, and it is answered with this.
fn answering(answer: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
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
fn a_proxy_is_asked_and_its_refusal_is_told() {
    let yard = Yard::new(&[], "");
    let (proxy, heads) = answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let variables = [("HTTPS_PROXY", proxy.as_str()), ("ANTHROPIC_API_KEY", "sk-very-secret")];
    let mut command = yard.windlass(&["run", "--model", "anthropic/claude-opus-4-7", "p"]);
    let mut child = command.envs(variables).spawn().unwrap();
    let head = heads.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().unwrap();
    let (_, _, told) = yard::told(&child.wait_with_output().unwrap());
    assert!(head.starts_with("CONNECT api.anthropic.com:443"), "{head}");
    assert!(!head.contains("sk-very-secret"), "the key went to the proxy: {head}");
    assert!(told.contains("through the proxy in HTTPS_PROXY"), "{told}");
}

/// A key goes where its row says, in the way its row says.
#[test]
fn each_format_is_asked_at_its_place_with_its_key_in_its_way() {
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
        let yard = Yard::new(&replies, "");
        yard.write_config(&format!(
            r#"{{"model": "mine/m", "provider": {{"mine": {{"api": "{api}", "base_url": "{}",
            "api_key": "sk-very-secret", "headers": {{"x-team": "blue"}}}}}}}}"#,
            yard.model.url()
        ));
        let (code, answer, told) = yard.run(&["run", "p"]);
        assert_eq!((code, answer.as_str()), (0, "It says hello.\n"), "{api}: {told}");
        let asked = yard.model.asked();
        assert_eq!((asked.len(), asked[0].path.as_str()), (2, path));
        assert_eq!(asked[0].header(header), Some(value), "{api}");
        assert_eq!(asked[0].header("x-team"), Some("blue"), "{api}");
    }
}

#[test]
fn options_reach_the_model_and_config_show_says_whose_they_are() {
    let yard = Yard::new(SAYS, "");
    yard.write_config(&format!(
        r#"{{"model": "mine/m",
"provider": {{"mine": {{"api": "openai-chat", "base_url": "{}",
"options": {{"temperature": 0.5, "extra": {{"seed": 7}}}},
"models": {{"m": {{"id": "real-name", "variants": {{"hard": {{"max_output": 9}}}}}}}}
}}}}, "agent": {{"build": {{"options": {{"top_p": 0.25}}}}}}}}"#,
        yard.model.url()
    ));
    assert_eq!(yard.run(&["run", "--variant", "hard", "p"]).0, 0);
    let body = &yard.model.requests()[0];
    assert_eq!(body["model"], "real-name");
    assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.25)));
    assert_eq!((&body["seed"], &body["max_tokens"]), (&json!(7), &json!(9)));
    let (_, shown, _) = yard.run(&["config", "show"]);
    for (option, line) in [("temperature = 0.5", 3), ("extra.seed = 7", 3), ("top_p = 0.25", 5)] {
        let row = shown.lines().find(|row| row.starts_with(&format!("options.{option}")));
        let row = row.unwrap_or_else(|| panic!("{shown}"));
        assert!(row.contains(&format!("windlass.jsonc:{line}:")), "{row}");
    }
    let (code, _, told) = yard.run(&["run", "--variant", "soft", "p"]);
    assert!(code == 2 && told.contains("It has: hard"), "{told}");
}

#[test]
fn the_models_are_listed_with_what_a_config_adds() {
    let yard = Yard::new(SAYS, "");
    let (code, all, _) = yard.run(&["models"]);
    assert_eq!(code, 0);
    assert!(all.lines().count() > 500 && all.contains("anthropic/claude-"), "{}", all.len());
    assert!(all.contains("scripted/m "), "the config's own");
    let (_, json, _) = yard.run(&["models", "--provider", "openai", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert!(rows.iter().all(|row| row["name"].as_str().unwrap().starts_with("openai/")));
    assert!(rows.iter().any(|row| row["price"]["input"].as_f64() > Some(0.0)));
    let (code, _, told) = yard.run(&["models", "--provider", "opnai"]);
    assert!(code == 2 && told.contains("Near: openai"), "{told}");
}

/// Where a server has no word for it, the answer is checked, and asked for again.
#[test]
fn an_answer_has_to_fit_its_schema() {
    let schema =
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let replies = ["say Well, seven.", "say ```json\\n{\"n\": \"7\"}\\n```", "say {\"n\": 7}"];
    let yard = Yard::new(&replies, "");
    std::fs::write(yard.root().join("s.json"), schema).unwrap();
    let (code, answer, told) = yard.run(&["run", "--output-schema", "s.json", "p"]);
    assert_eq!((code, answer.as_str()), (0, "{\"n\":7}\n"), "{told}");
    let second = yard.model.requests()[1].to_string();
    assert!(second.contains("does not fit the schema"), "{second}");

    let yard = Yard::new(&["say no", "say no", "say no", "say never asked"], "");
    std::fs::write(yard.root().join("s.json"), schema).unwrap();
    let (code, answer, told) = yard.run(&["run", "--output-schema", "s.json", "p"]);
    assert_eq!((code, answer.as_str(), yard.model.requests().len()), (1, "", 3), "{told}");
    assert!(told.contains("does not fit the schema"), "{told}");
    let (code, _, told) = yard.run(&["run", "--output-schema", "README.md", "p"]);
    assert!(code == 2 && told.contains("README.md is not JSON"), "{told}");
}

#[test]
fn a_file_goes_with_a_prompt_if_it_is_one_a_model_can_see() {
    let yard = Yard::new(SAYS, "");
    let config =
        std::fs::read_to_string(yard.home().join(".config/windlass/windlass.jsonc")).unwrap();
    yard.write_config(&config.replace(r#""m": {}"#, r#""m": {"images": true}"#));
    std::fs::write(yard.root().join("a.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    assert_eq!(yard.run(&["run", "--file", "a.png", "what is it?"]).0, 0);
    let body = yard.model.requests()[0].to_string();
    assert!(body.contains("data:image/png;base64,iVBORw0KGgpyZXN0"), "{body}");
    std::fs::write(yard.root().join("a.bin"), b"\x00\x01\xff").unwrap();
    let (code, _, told) = yard.run(&["run", "--file", "a.bin", "p"]);
    assert!(code == 2 && told.contains("neither text"), "{told}");
    std::fs::write(yard.root().join("long.txt"), "x".repeat(300_000)).unwrap();
    let (code, _, told) = yard.run(&["run", "--file", "long.txt", "p"]);
    assert!(code == 2 && told.contains("longer than 256 kB"), "{told}");
    let (code, _, told) = yard.run(&["run", "--file", "README.md", "-f", "a.png", "look"]);
    assert_eq!(code, 0, "{told}");
    let body = yard.model.requests()[1].to_string();
    assert!(body.contains("look\\n\\nThe file README.md:\\n```\\n# Hello\\n"), "{body}");
    assert!(body.contains("data:image/png"), "{body}");
    let (code, _, told) = yard.run(&["run", "--file", "gone.png", "p"]);
    assert!(code == 2 && told.contains("gone.png cannot be read"), "{told}");
}

/// Not in what is printed, nor in anything that is kept.
#[test]
fn a_key_is_nowhere_but_in_the_request() {
    let yard = Yard::new(&["status 400 {\"error\": \"you sent sk-from-env\"}"], "");
    yard.write_config(&format!(
        r#"{{"model": "openai/m", "provider": {{"openai": {{"api": "openai-chat", "base_url": "{}",
        "api_key": "{{env:OPENAI_API_KEY}}"}}}}}}"#,
        yard.model.url()
    ));
    let variables = [("OPENAI_API_KEY", "sk-from-env"), ("WINDLASS_LOG", "trace")];
    let (code, out, told) = run(&yard, &variables, &["run", "-o", "events", "p"]);
    assert_eq!(code, 1, "{told}");
    assert_eq!(yard.model.asked()[0].header("authorization"), Some("Bearer sk-from-env"));
    assert!(!out.contains("sk-from-env") && !told.contains("sk-from-env"), "{out}{told}");
    let mut search = std::process::Command::new("grep");
    let found = search.args(["-r", "sk-from-env"]).arg(yard.data()).output().unwrap();
    assert_eq!(found.status.code(), Some(1), "{found:?}");
}

/// A variable is for the address it is known for; another one has to ask for it by name.
#[test]
fn a_known_key_does_not_go_to_another_address_by_itself() {
    let yard = Yard::new(&["say Hello."], "");
    for (name, alias) in [("google", "google"), ("google", "gemini"), ("gemini", "google")] {
        yard.write_config(&format!(
            r#"{{"model": "{alias}/m", "provider": {{"{name}": {{"api": "openai-chat", "base_url": "{}"}}}}}}"#,
            yard.model.url()
        ));
        let (code, _, told) = run(&yard, &[("GEMINI_API_KEY", "sk-from-env")], &["run", "p"]);
        assert_eq!(code, 0, "{told}");
        let asked = yard.model.asked();
        assert!(!format!("{:?}", asked.last()).contains("sk-from-env"), "{asked:?}");
    }
}

/// A row that is half understood is not used: what is missing may be its address.
#[test]
fn a_provider_with_a_mistake_is_not_used() {
    for mistake in [
        r#""baseurl": "http://127.0.0.1:1/v1""#,
        r#""base_url": 7"#,
        r#""models": {"m": {"context": 1e6}}"#,
    ] {
        let yard = Yard::new(&[], "");
        yard.write_config(&format!(
            r#"{{"model": "openai/m", "provider": {{"openai": {{{mistake}}}}}}}"#
        ));
        let (code, _, told) = run(&yard, &[("OPENAI_API_KEY", "sk-from-env")], &["run", "p"]);
        assert!(code == 2 && told.contains("until that is mended"), "{mistake}: {told}");
    }
}

#[test]
fn what_is_on_this_machine_is_not_asked_for_through_a_proxy() {
    let yard = Yard::new(SAYS, "");
    let variables = [("HTTP_PROXY", "http://127.0.0.1:1"), ("ALL_PROXY", "http://127.0.0.1:1")];
    let (code, answer, told) = run(&yard, &variables, &["run", "p"]);
    assert_eq!((code, answer.as_str()), (0, "Hello.\n"), "{told}");
}

#[test]
fn a_model_that_cannot_call_is_offered_nothing_to_call() {
    let yard = Yard::new(SAYS, "");
    let config =
        std::fs::read_to_string(yard.home().join(".config/windlass/windlass.jsonc")).unwrap();
    yard.write_config(&config.replace(r#""m": {}"#, r#""m": {"calls": false}"#));
    assert_eq!(yard.run(&["run", "p"]).0, 0);
    assert!(yard.model.requests()[0].get("tools").is_none());
}

/// Thoughts and calls as a model on one's own machine writes them; one that may not call does not.
#[test]
fn a_call_written_as_text_is_made_unless_calls_are_barred() {
    let call = "say <think>Let me look.</think><tool_call>{\"name\": \"Read\", \"arguments\": {\"file_path\": \"README.md\"}}</tool_call>";
    let yard = Yard::new(&[call, "say It says hello."], "");
    let (code, answer, told) = yard.run(&["run", "p"]);
    assert_eq!((code, answer.as_str()), (0, "It says hello.\n"), "{told}");
    let facts = yard.facts();
    let of = |kind: &str| facts.iter().find(|fact| fact["kind"] == kind).unwrap();
    assert_eq!(of("reasoned")["text"], "Let me look.");
    assert_eq!(of("called")["repaired"], json!(["the call was written as text"]));
    let repaired = of("started")["repaired"].to_string();
    assert!(
        repaired.contains("the name was `Read`") && repaired.contains("filePath"),
        "{repaired}"
    );
    // What it is shown afterwards is what ran.
    let second = yard.model.requests()[1].to_string();
    assert!(second.contains(r#"{\"filePath\":\"README.md\"}"#), "{second}");

    let barred = r#""agent": {"build": {"options": {"tool_choice": "none"}}}"#;
    let yard = Yard::new(&[call, "say never asked"], barred);
    assert_eq!(yard.run(&["run", "p"]).0, 0);
    assert_eq!(yard.model.requests().len(), 1);
}
