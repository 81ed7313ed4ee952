//! Engines are asked as their rows say, and what they answer is told: over the real wire, by a server
//! that answers as they do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};
use windlass_testkit::site::{Asked, Piece, Site, moved, reply};
use windlass_web::{Engine, Lookup, Web, engines};

const KEY: &str = "k-3cret/+=";

fn lookup() -> Lookup {
    Lookup {
        query: "tides & gauges".into(),
        results: 2,
        effort: Some("deep".into()),
        livecrawl: None,
        characters: 40,
        tokens: 3000,
    }
}

/// A known row that is asked at a site, with a key if it wants one.
fn row(name: &str, site: &Site) -> Engine {
    let known = engines().into_iter().find(|row| row.name == name).unwrap();
    let mut row = known.like(name.to_owned(), Some(format!("http://127.0.0.1:{}", site.port())));
    row.key = (!known.env.is_empty()).then(|| KEY.to_owned().into());
    row
}

fn ask(engine: &Engine, what: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let web = Web::new(Vec::new(), "windlass/test".to_owned());
    let recipe = if what == "code" { &engine.code } else { &engine.web };
    let lookup = lookup();
    let asked = web.search(engine, recipe.as_ref().unwrap(), &lookup);
    runtime.block_on(asked).map_err(|failure| failure.text)
}

fn json_reply(body: &Value) -> Vec<Piece> {
    reply("200 OK", &["content-type: application/json"], body.to_string())
}

fn only(site: &Site) -> Asked {
    let asked = site.asked();
    assert_eq!(asked.len(), 1);
    asked[0].clone()
}

fn line(asked: &Asked) -> &str {
    asked.head.lines().next().unwrap()
}

#[test]
fn exa_is_asked_for_pages() {
    let site = Site::start(|_| {
        json_reply(&json!({"requestId": "r", "results": [
            {"title": "Tides", "url": "https://a.example/t", "publishedDate": "2024-03-01T00:00:00.000Z",
             "text": "Twice a day the water rises, and twice it falls."},
            {"title": null, "url": "https://b.example/"},
        ]}))
    });
    let said = ask(&row("exa", &site), "web").unwrap();
    assert_eq!(
        said,
        "1. Tides\n   https://a.example/t (2024-03-01T00:00:00.000Z)\n   Twice a day the wate …\n\n\
         2. (without a title)\n   https://b.example/"
    );
    let asked = only(&site);
    assert_eq!(line(&asked), "POST /search HTTP/1.1");
    assert_eq!(asked.header("x-api-key"), Some(KEY));
    assert_eq!(asked.header("user-agent"), Some("windlass/test"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!(
        body,
        json!({"query": "tides & gauges", "numResults": 2, "type": "deep",
               "contents": {"text": {"maxCharacters": 20}}})
    );
}

#[test]
fn exa_is_asked_for_code() {
    let site = Site::start(|_| {
        json_reply(&json!({"requestId": "r", "query": "q", "resultsCount": 3,
            "response": "## Tides\n```rust\nfn rise() {}\n```\n"}))
    });
    let said = ask(&row("exa", &site), "code").unwrap();
    assert_eq!(said, "## Tides\n```rust\nfn rise() {}\n```");
    let asked = only(&site);
    assert_eq!(line(&asked), "POST /context HTTP/1.1");
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!(body, json!({"query": "tides & gauges", "tokensNum": 3000}));
}

#[test]
fn brave_is_asked() {
    let site = Site::start(|_| {
        json_reply(&json!({"type": "search", "web": {"results": [
            {"title": "Tides", "url": "https://a.example/t", "description": "Up and down.", "age": "May 1, 2024"},
        ]}}))
    });
    let said = ask(&row("brave", &site), "web").unwrap();
    assert_eq!(said, "1. Tides\n   https://a.example/t (May 1, 2024)\n   Up and down.");
    let asked = only(&site);
    assert_eq!(line(&asked), "GET /res/v1/web/search?q=tides+%26+gauges&count=2 HTTP/1.1");
    assert_eq!(asked.header("x-subscription-token"), Some(KEY));
    assert_eq!(asked.header("accept"), Some("application/json"));
    assert!(asked.body.is_empty());
}

#[test]
fn tavily_is_asked() {
    let site = Site::start(|_| {
        json_reply(&json!({"query": "q", "results": [
            {"title": "Tides", "url": "https://a.example/t", "content": "Up and down.", "score": 0.9},
        ]}))
    });
    assert_eq!(
        ask(&row("tavily", &site), "web").unwrap(),
        "1. Tides\n   https://a.example/t\n   Up and down."
    );
    let asked = only(&site);
    assert_eq!(line(&asked), "POST /search HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!(
        body,
        json!({"query": "tides & gauges", "max_results": 2, "search_depth": "advanced"})
    );
}

#[test]
fn searxng_is_asked_and_gives_too_much() {
    let site = Site::start(|_| {
        let results: Vec<Value> = (0..30)
            .map(|n| json!({"title": format!("T{n}"), "url": format!("https://{n}.example/"), "content": "c"}))
            .collect();
        json_reply(&json!({"query": "q", "results": results}))
    });
    let said = ask(&row("searxng", &site), "web").unwrap();
    assert_eq!(said.matches("https://").count(), 2, "{said}");
    let asked = only(&site);
    assert_eq!(line(&asked), "GET /search?q=tides+%26+gauges&format=json HTTP/1.1");
    assert!(asked.header("authorization").is_none());
}

#[test]
fn what_goes_wrong_is_told_without_the_key() {
    let big = format!("{{\"results\": [\"{}\"]}}", "x".repeat(3 << 20));
    let cases: Vec<(Vec<Piece>, &str)> = vec![
        (
            reply("401 Unauthorized", &[], KEY),
            "exa does not accept the key. The person can give another with `windlass auth login exa`",
        ),
        (reply("403 Forbidden", &[], KEY), "does not accept the key"),
        (
            reply("429 Too Many Requests", &["retry-after: 30"], ""),
            "asked too often. Try again in 30 s",
        ),
        (reply("429 Too Many Requests", &[], ""), "Try again later"),
        (
            reply("500 Internal Server Error", &[], format!("<h1>Bad key {KEY}</h1>")),
            "exa answered HTTP 500 Internal Server Error: Bad key …",
        ),
        (reply("200 OK", &[], "<html>sorry"), "in a form that nobody expected"),
        (reply("200 OK", &[], "{\"other\": []}"), "in a form that nobody expected"),
        (reply("200 OK", &[], big), "more than 2 MB"),
        (Vec::new(), "exa could not be reached"),
    ];
    for (answer, words) in cases {
        let site = Site::start(move |_| answer.clone());
        let error = ask(&row("exa", &site), "web").unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
        assert!(!error.contains(KEY), "{error}");
    }
}

#[test]
fn a_key_goes_to_its_own_engine_only() {
    let other = Site::start(|_| json_reply(&json!({"results": []})));
    let place = format!("http://127.0.0.1:{}/search", other.port());
    let site = Site::start(move |_| moved(&place));
    let error = ask(&row("exa", &site), "web").unwrap_err();
    assert!(error.contains("HTTP 302"), "{error}");
    assert!(other.asked().is_empty());
    // Not over a line that others read, either.
    let mut plain = row("exa", &other);
    plain.base = Some("http://search.example".to_owned());
    let error = ask(&plain, "web").unwrap_err();
    assert!(error.contains("would be sent unencrypted"), "{error}");
    assert!(!format!("{plain:?}").contains(KEY), "a key is not printed");
}
