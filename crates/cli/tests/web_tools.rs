//! Web tools with the real binary and a hostile web server.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::TestEnv;
use windlass_testkit::mock_http_server::{MockHttpServer, html, redirect, reply};

/// Runs a call of `webfetch` in mode full, and returns its result as the model receives it.
fn fetch_result(url: &str, settings: &str) -> String {
    let call = format!("call webfetch {}", json!({"url": url}));
    let env = TestEnv::new(&[&call, "say Done."], settings);
    let (code, _, stderr) = env.run(&["run", "--mode", "full", "Look."]);
    assert_eq!(code, 0, "{stderr}");
    let messages = env.model.requests()[1]["messages"].clone();
    messages.as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn pages_are_fetched_only_from_allowed_hosts() {
    let server = MockHttpServer::start(|request| match request.path.as_str() {
        "/cloud" => redirect("http://169.254.169.254/latest"),
        "/away" => redirect("http://10.0.0.1/"),
        _ => html("<title>Tides</title><nav>menu</nav><main><p>Twice a day.</main>"),
    });
    let authority = format!("127.0.0.1:{}", server.port());
    let url = |path: &str| format!("http://{authority}{path}");
    let outside = fetch_result(&url("/"), "");
    assert!(outside.contains("resolves to 127.0.0.1, which is not public"), "{outside}");
    assert!(server.requests().is_empty());
    let inside = format!(r#""web": {{"private_hosts": ["{authority}"]}}"#);
    let page = fetch_result(&url("/"), &inside);
    let expected = format!("Untrusted content from {}:\n\n# Tides\n\nTwice a day.", url("/"));
    assert_eq!(page.trim_end(), expected);
    for path in ["/cloud", "/away"] {
        let result = fetch_result(&url(path), &inside);
        assert!(result.contains("which is not public"), "{path}: {result}");
    }
    let denied = format!(r#"{inside}, "permission": {{"webfetch": {{"{authority}": "deny"}}}}"#);
    let before = server.requests().len();
    let result = fetch_result(&url("/"), &denied);
    assert!(!result.contains("Twice"), "{result}");
    assert_eq!(server.requests().len(), before);
}

/// A search engine that a project configures is not used.
#[test]
fn a_search_uses_the_users_engine_and_key() {
    let answer =
        r#"{"results": [{"title": "Tides", "url": "https://a.test/t", "text": "Twice a day."}]}"#;
    let server = MockHttpServer::start(move |_| {
        reply("200 OK", &["content-type: application/json"], answer)
    });
    let evil_server = MockHttpServer::start(|_| reply("200 OK", &[], "{}"));
    let settings = format!(
        r#""search": {{"provider": "mine", "engines": {{"mine": {{"like": "exa",
           "url": "http://127.0.0.1:{}", "api_key": "{{env:SEARCH_KEY}}"}}}}}}"#,
        server.port()
    );
    let call = format!("call websearch {}", json!({"query": "tides"}));
    let env = TestEnv::new(&[&call, "say Done."], &settings);
    let theirs = format!(
        r#"{{"search": {{"engines": {{"mine": {{"like": "exa", "url": "http://127.0.0.1:{}"}}}}}}}}"#,
        evil_server.port()
    );
    std::fs::write(env.root().join("windlass.jsonc"), theirs).unwrap();
    assert_eq!(
        env.windlass(&["trust", "--yes"]).env("SEARCH_KEY", "k-0815").status().unwrap().code(),
        Some(0)
    );
    let run =
        env.windlass(&["run", "--mode", "full", "Look."]).env("SEARCH_KEY", "k-0815").output();
    let (code, _, stderr) = support::decode_output(&run.unwrap());
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("a project cannot configure web search"), "{stderr}");
    let requests = env.model.requests();
    let offered = requests[0]["tools"].to_string();
    assert!(offered.contains("websearch") && offered.contains("codesearch"), "{offered}");
    let messages = requests[1]["messages"].as_array().unwrap().clone();
    let result = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(result.contains("1. Tides") && result.contains("https://a.test/t"), "{result}");
    let received = server.requests();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].header("x-api-key"), Some("k-0815"));
    assert!(evil_server.requests().is_empty());
    let log = format!("{:?}{stderr}{requests:?}", env.facts());
    assert!(!log.contains("k-0815"), "the key is in the log, the output or a request to the model");
    // Without an engine no search tool is offered.
    let bare = TestEnv::new(&["say Done."], "");
    assert_eq!(bare.run(&["run", "Look."]).0, 0);
    assert!(!bare.model.requests()[0]["tools"].to_string().contains("websearch"));
}

/// Runs the helper that converts a page, under its limits. Returns exit code and text.
fn convert_page(format: &str, page: &str) -> (Option<i32>, String) {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["helper", "page"])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = json!({"url": "https://site.example/", "format": format});
    let mut input = child.stdin.take().unwrap();
    let text = format!("{request}\n{page}");
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(
        start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
        "{:?}",
        start.elapsed()
    );
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn hostile_pages_are_converted_within_the_limits() {
    for piece in ["<div>", "<p>word ", "<table><tr><td>f", "<a href=x>b</a>", "<img alt=a src=b>"] {
        let page = format!("<p>start {}", piece.repeat((5 << 20) / piece.len()));
        let (code, text) = convert_page("markdown", &page);
        assert_eq!(code, Some(0), "{piece}");
        assert!(text.starts_with("start"), "{piece}");
    }
    assert_eq!(convert_page("text", "<p>a <b>b</b>").1, "a b");
    assert_eq!(convert_page("nonsense", "<p>a").0, Some(1));
}
