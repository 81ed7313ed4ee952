//! The OpenAPI document against the server that it describes: schemathesis sends requests of all
//! operations, valid and invalid ones, and checks each answer.
//!
//! `WINDLASS_API_TOOLS` is a virtual environment with schemathesis and openapi-spec-validator.
//! `.ci/run` installs it and runs these tests, which are ignored otherwise.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests start processes, and fail by panicking"
)]

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::TestEnv;
use support::server::TestServer;

/// Operations whose answer never ends; the tests of the server read them.
const STREAM_PATHS: &str = "/v1/events";

/// All checks but `positive_data_acceptance`: the schema does not say which agents, models and
/// search words exist.
const CHECKS: &[&str] = &[
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "ignored_auth",
];

fn tool(name: &str) -> PathBuf {
    let folder = std::env::var_os("WINDLASS_API_TOOLS").expect("WINDLASS_API_TOOLS is not set");
    PathBuf::from(folder).join("bin").join(name)
}

#[test]
#[ignore = "needs openapi-spec-validator"]
fn the_document_is_valid() {
    let env = TestEnv::new(&[], "");
    let (code, document, stderr) = env.run(&["schema", "api"]);
    assert_eq!(code, 0, "{stderr}");
    let path = env.home().join("api.json");
    std::fs::write(&path, document).unwrap();
    let output = Command::new(tool("openapi-spec-validator")).arg(&path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("OK"), "{text}");
}

/// Sends requests with a token, and fails if an answer is not as the document says.
fn check_answers(right: &str) {
    let replies = vec!["say Hello."; 10_000];
    let env = TestEnv::new(&replies, r#""titles": false"#);
    let server = TestServer::start(&env, &["--listen", "127.0.0.1:0"]);
    let (code, _, stderr) = env.run(&["run", "--attach", "hello"]);
    assert_eq!(code, 0, "{stderr}");
    let session = env.last_session_id();
    let (code, token, stderr) = env.run(&["serve", "token", "add", "tester", "--right", right]);
    assert_eq!(code, 0, "{stderr}");
    let url = format!("http://{}", server.tcp_address());
    // With an id that exists, more requests reach the session.
    let checks: String = CHECKS.iter().map(|name| format!("{name}.enabled = true\n")).collect();
    let config = format!(
        r#"
rate-limit = "45/s"
request-timeout = 20
[checks]
{checks}positive_data_acceptance.enabled = false
[parameters]
"path.id" = "{session}"
[[operations]]
include-path = "{STREAM_PATHS}"
enabled = false
# As a list of facts, which ignores the header `Last-Event-ID` of the stream.
[[operations]]
include-path = "/v1/sessions/{{id}}/events"
headers = {{ Accept = "application/json" }}
checks.negative_data_rejection.enabled = false
# An array of values is accepted for an object with these fields in order.
[[operations]]
include-path = "/v1/sessions/{{id}}/ops"
checks.negative_data_rejection.enabled = false
"#
    );
    let config_file = env.home().join("schemathesis.toml");
    std::fs::write(&config_file, config).unwrap();
    let output = Command::new(tool("schemathesis"))
        .arg("--config-file")
        .arg(&config_file)
        .args(["run", &format!("{url}/openapi.json"), "--url", &url])
        .args(["--header", &format!("Authorization: Bearer {}", token.trim())])
        .args(["--max-examples", "15", "--seed", "1"])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--warnings", "off", "--no-color"])
        .current_dir(env.home())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The server has survived it.
    let (code, _, stderr) = env.run(&["ps"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
#[ignore = "needs schemathesis"]
fn the_answers_to_a_reader_are_as_the_document_says() {
    check_answers("read");
}

#[test]
#[ignore = "needs schemathesis"]
fn the_answers_to_a_writer_are_as_the_document_says() {
    check_answers("write");
}
