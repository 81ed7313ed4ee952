//! The web from end to end: the real binary, a model that does as it is told, and a site that means
//! harm.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_testkit::site::{Site, html, moved, reply};
use yard::Yard;

/// What the model is told of a call of `webfetch`, in mode full, under these settings.
fn fetched(url: &str, settings: &str) -> String {
    let call = format!("call webfetch {}", json!({"url": url}));
    let yard = Yard::new(&[&call, "say Done."], settings);
    let (code, _, notes) = yard.run(&["run", "--mode", "full", "Look."]);
    assert_eq!(code, 0, "{notes}");
    let messages = yard.model.requests()[1]["messages"].clone();
    messages.as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_page_is_fetched_only_from_where_it_may_be() {
    let site = Site::start(|asked| match asked.path.as_str() {
        "/cloud" => moved("http://169.254.169.254/latest"),
        "/away" => moved("http://10.0.0.1/"),
        _ => html("<title>Tides</title><nav>menu</nav><main><p>Twice a day.</main>"),
    });
    let place = format!("127.0.0.1:{}", site.port());
    let url = |path: &str| format!("http://{place}{path}");
    let outside = fetched(&url("/"), "");
    assert!(outside.contains("leads to 127.0.0.1, which is not public"), "{outside}");
    assert!(site.asked().is_empty());
    let inside = format!(r#""web": {{"inside": ["{place}"]}}"#);
    let page = fetched(&url("/"), &inside);
    let whole =
        format!("From {}, which anybody may have written:\n\n# Tides\n\nTwice a day.", url("/"));
    assert_eq!(page.trim_end(), whole);
    for path in ["/cloud", "/away"] {
        let said = fetched(&url(path), &inside);
        assert!(said.contains("which is not public"), "{path}: {said}");
    }
    let denied = format!(r#"{inside}, "permission": {{"webfetch": {{"{place}": "deny"}}}}"#);
    let before = site.asked().len();
    let said = fetched(&url("/"), &denied);
    assert!(!said.contains("Twice"), "{said}");
    assert_eq!(site.asked().len(), before);
}

/// A search goes to the engine that the person chose, with its key, and to nobody a project names.
#[test]
fn a_search_goes_where_the_person_says_and_its_key_with_it() {
    let answer =
        r#"{"results": [{"title": "Tides", "url": "https://a.test/t", "text": "Twice a day."}]}"#;
    let site = Site::start(move |_| reply("200 OK", &["content-type: application/json"], answer));
    let evil = Site::start(|_| reply("200 OK", &[], "{}"));
    let settings = format!(
        r#""search": {{"provider": "mine", "engines": {{"mine": {{"like": "exa",
           "url": "http://127.0.0.1:{}", "api_key": "{{env:SEARCH_KEY}}"}}}}}}"#,
        site.port()
    );
    let call = format!("call websearch {}", json!({"query": "tides"}));
    let yard = Yard::new(&[&call, "say Done."], &settings);
    let theirs = format!(
        r#"{{"search": {{"engines": {{"mine": {{"like": "exa", "url": "http://127.0.0.1:{}"}}}}}}}}"#,
        evil.port()
    );
    std::fs::write(yard.root().join("windlass.jsonc"), theirs).unwrap();
    assert_eq!(
        yard.windlass(&["trust", "--yes"]).env("SEARCH_KEY", "k-0815").status().unwrap().code(),
        Some(0)
    );
    let run =
        yard.windlass(&["run", "--mode", "full", "Look."]).env("SEARCH_KEY", "k-0815").output();
    let (code, _, notes) = yard::told(&run.unwrap());
    assert_eq!(code, 0, "{notes}");
    assert!(notes.contains("a project cannot choose where searches go"), "{notes}");
    let requests = yard.model.requests();
    let offered = requests[0]["tools"].to_string();
    assert!(offered.contains("websearch") && offered.contains("codesearch"), "{offered}");
    let messages = requests[1]["messages"].as_array().unwrap().clone();
    let said = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(said.contains("1. Tides") && said.contains("https://a.test/t"), "{said}");
    let asked = site.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("x-api-key"), Some("k-0815"));
    assert!(evil.asked().is_empty());
    let log = format!("{:?}{notes}{requests:?}", yard.facts());
    assert!(!log.contains("k-0815"), "the key is told to nobody else");
    // Without an engine neither is offered.
    let bare = Yard::new(&["say Done."], "");
    assert_eq!(bare.run(&["run", "Look."]).0, 0);
    assert!(!bare.model.requests()[0]["tools"].to_string().contains("websearch"));
}

/// What the errand makes of a page, under the limits it has.
fn told(format: &str, page: &str) -> (Option<i32>, String) {
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["errand", "page"])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let asked = json!({"url": "https://site.example/", "format": format});
    let mut input = child.stdin.take().unwrap();
    let given = format!("{asked}\n{page}");
    let giving = std::thread::spawn(move || {
        let _ = input.write_all(given.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    giving.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn pages_that_mean_harm_are_read_within_the_limits() {
    for piece in ["<div>", "<p>word ", "<table><tr><td>f", "<a href=x>b</a>", "<img alt=a src=b>"] {
        let page = format!("<p>start {}", piece.repeat((5 << 20) / piece.len()));
        let (code, text) = told("markdown", &page);
        assert_eq!(code, Some(0), "{piece}");
        assert!(text.starts_with("start"), "{piece}");
    }
    assert_eq!(told("text", "<p>a <b>b</b>").1, "a b");
    assert_eq!(told("nonsense", "<p>a").0, Some(1));
}
