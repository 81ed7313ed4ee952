//! Requests to the built-in search engines and their formatted results, with a mock HTTP server
//! that responds like the engines.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};
use windlass_testkit::mock_http_server::{
    MockHttpServer, RecordedRequest, ResponsePart, redirect, reply,
};
use windlass_web::{SearchEngine, SearchQuery, WebClient, built_in_engines};

const KEY: &str = "k-3cret/+=";

fn search_query() -> SearchQuery {
    SearchQuery {
        text: "tides & gauges".into(),
        max_results: 2,
        effort: Some("deep".into()),
        livecrawl: None,
        max_characters: 40,
        max_tokens: 3000,
    }
}

/// Returns a built-in engine at the address of a mock server, with a key if it needs one.
fn engine_at(name: &str, server: &MockHttpServer) -> SearchEngine {
    let known = built_in_engines().into_iter().find(|engine| engine.name == name).unwrap();
    let mut engine =
        known.copy_as(name.to_owned(), Some(format!("http://127.0.0.1:{}", server.port())));
    engine.key = (!known.env.is_empty()).then(|| KEY.to_owned().into());
    engine
}

fn search(engine: &SearchEngine, kind: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let web = WebClient::new(Vec::new(), "windlass/test".to_owned());
    let template = if kind == "code" { &engine.code } else { &engine.web };
    let query = search_query();
    let search = web.search(engine, template.as_ref().unwrap(), &query);
    runtime.block_on(search).map_err(|failure| failure.text)
}

fn json_reply(body: &Value) -> Vec<ResponsePart> {
    reply("200 OK", &["content-type: application/json"], body.to_string())
}

fn only_request(server: &MockHttpServer) -> RecordedRequest {
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    requests[0].clone()
}

fn request_line(request: &RecordedRequest) -> &str {
    request.head.lines().next().unwrap()
}

#[test]
fn exa_pages_are_requested_and_formatted() {
    let server = MockHttpServer::start(|_| {
        json_reply(&json!({"requestId": "r", "results": [
            {"title": "Tides", "url": "https://a.example/t", "publishedDate": "2024-03-01T00:00:00.000Z",
             "text": "Twice a day the water rises, and twice it falls."},
            {"title": null, "url": "https://b.example/"},
        ]}))
    });
    let text = search(&engine_at("exa", &server), "web").unwrap();
    assert_eq!(
        text,
        "1. Tides\n   https://a.example/t (2024-03-01T00:00:00.000Z)\n   Twice a day the wate …\n\n\
         2. (untitled)\n   https://b.example/"
    );
    let request = only_request(&server);
    assert_eq!(request_line(&request), "POST /search HTTP/1.1");
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("user-agent"), Some("windlass/test"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        body,
        json!({"query": "tides & gauges", "numResults": 2, "type": "deep",
               "contents": {"text": {"maxCharacters": 20}}})
    );
}

#[test]
fn exa_code_is_requested_and_formatted() {
    let server = MockHttpServer::start(|_| {
        json_reply(&json!({"requestId": "r", "query": "q", "resultsCount": 3,
            "response": "## Tides\n```rust\nfn rise() {}\n```\n"}))
    });
    let text = search(&engine_at("exa", &server), "code").unwrap();
    assert_eq!(text, "## Tides\n```rust\nfn rise() {}\n```");
    let request = only_request(&server);
    assert_eq!(request_line(&request), "POST /context HTTP/1.1");
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, json!({"query": "tides & gauges", "tokensNum": 3000}));
}

#[test]
fn brave_is_requested_and_formatted() {
    let server = MockHttpServer::start(|_| {
        json_reply(&json!({"type": "search", "web": {"results": [
            {"title": "Tides", "url": "https://a.example/t", "description": "Up and down.", "age": "May 1, 2024"},
        ]}}))
    });
    let text = search(&engine_at("brave", &server), "web").unwrap();
    assert_eq!(text, "1. Tides\n   https://a.example/t (May 1, 2024)\n   Up and down.");
    let request = only_request(&server);
    assert_eq!(
        request_line(&request),
        "GET /res/v1/web/search?q=tides+%26+gauges&count=2 HTTP/1.1"
    );
    assert_eq!(request.header("x-subscription-token"), Some(KEY));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert!(request.body.is_empty());
}

#[test]
fn tavily_is_requested_and_formatted() {
    let server = MockHttpServer::start(|_| {
        json_reply(&json!({"query": "q", "results": [
            {"title": "Tides", "url": "https://a.example/t", "content": "Up and down.", "score": 0.9},
        ]}))
    });
    assert_eq!(
        search(&engine_at("tavily", &server), "web").unwrap(),
        "1. Tides\n   https://a.example/t\n   Up and down."
    );
    let request = only_request(&server);
    assert_eq!(request_line(&request), "POST /search HTTP/1.1");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        body,
        json!({"query": "tides & gauges", "max_results": 2, "search_depth": "advanced"})
    );
}

#[test]
fn searxng_is_requested_and_limited() {
    let server = MockHttpServer::start(|_| {
        let results: Vec<Value> = (0..30)
            .map(|n| json!({"title": format!("T{n}"), "url": format!("https://{n}.example/"), "content": "c"}))
            .collect();
        json_reply(&json!({"query": "q", "results": results}))
    });
    let text = search(&engine_at("searxng", &server), "web").unwrap();
    assert_eq!(text.matches("https://").count(), 2, "{text}");
    let request = only_request(&server);
    assert_eq!(request_line(&request), "GET /search?q=tides+%26+gauges&format=json HTTP/1.1");
    assert!(request.header("authorization").is_none());
}

#[test]
fn errors_are_reported_without_the_key() {
    let big = format!("{{\"results\": [\"{}\"]}}", "x".repeat(3 << 20));
    let cases: Vec<(Vec<ResponsePart>, &str)> = vec![
        (
            reply("401 Unauthorized", &[], KEY),
            "exa rejected the API key. The user can set another with `windlass auth login exa`",
        ),
        (reply("403 Forbidden", &[], KEY), "rejected the API key"),
        (reply("429 Too Many Requests", &["retry-after: 30"], ""), "exceeded. Try again in 30 s"),
        (reply("429 Too Many Requests", &[], ""), "Try again later"),
        (
            reply("500 Internal Server Error", &[], format!("<h1>Bad key {KEY}</h1>")),
            "exa answered HTTP 500 Internal Server Error: Bad key …",
        ),
        (reply("200 OK", &[], "<html>sorry"), "sent an unexpected response"),
        (reply("200 OK", &[], "{\"other\": []}"), "sent an unexpected response"),
        (reply("200 OK", &[], big), "more than 2 MB"),
        (Vec::new(), "exa could not be reached"),
    ];
    for (response, expected) in cases {
        let server = MockHttpServer::start(move |_| response.clone());
        let error = search(&engine_at("exa", &server), "web").unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!error.contains(KEY), "{error}");
    }
}

#[test]
fn a_key_is_sent_only_to_its_own_engine() {
    let other = MockHttpServer::start(|_| json_reply(&json!({"results": []})));
    let location = format!("http://127.0.0.1:{}/search", other.port());
    let server = MockHttpServer::start(move |_| redirect(&location));
    let error = search(&engine_at("exa", &server), "web").unwrap_err();
    assert!(error.contains("HTTP 302"), "{error}");
    assert!(other.requests().is_empty());
    // A key is not sent unencrypted, either.
    let mut unencrypted = engine_at("exa", &other);
    unencrypted.base = Some("http://search.example".to_owned());
    let error = search(&unencrypted, "web").unwrap_err();
    assert!(error.contains("would be sent unencrypted"), "{error}");
    assert!(!format!("{unencrypted:?}").contains(KEY), "a key is not in debug output");
}
