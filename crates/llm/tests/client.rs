//! The client against a real HTTP server that gates, stalls, cuts and garbles its stream.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and measures time"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_llm::catalog::Model as Row;
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint, Key, ModelEvent, Request, Timers};
use windlass_protocol::{Fault, Finish, Message, Part, Role};
use windlass_testkit::{Model, Script};

const KEY: &str = "sk-very-secret";

fn client(url: String, idle: Duration) -> Client {
    let timers = Timers { idle, first: idle, headers: idle, ..Timers::default() };
    let key = Some(Key { secret: KEY.to_owned().into(), from: "the test".into() });
    Client::new(Endpoint { key, timers, ..Endpoint::plain(Format::OpenaiChat, url) }).unwrap()
}

fn request() -> Request {
    let parts = vec![Part::text("hello")];
    Request {
        model: Arc::new(Row::assumed("m")),
        name: "scripted/m".into(),
        system: "s".into(),
        messages: vec![Message { role: Role::User, seq: 1, model: None, parts }].into(),
        files: Default::default(),
        tools: Vec::new(),
        options: Arc::default(),
        cache_key: None,
        draft: Arc::default(),
    }
}

async fn gather(client: &Client) -> Vec<ModelEvent> {
    let (sink, mut events) = tokio::sync::mpsc::channel(1);
    let request = request();
    let step = async move { client.step(&request, &sink).await };
    let ((), events) = tokio::join!(step, async {
        let mut all = Vec::new();
        while let Some(event) = events.recv().await {
            all.push(event);
        }
        all
    });
    events
}

async fn step(reply: &str) -> Vec<ModelEvent> {
    let model = Model::start(Script::new([reply]));
    gather(&client(model.url(), Duration::from_secs(20))).await
}

async fn fault(reply: &str) -> Fault {
    let events = step(reply).await;
    let last = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Failed(_) | ModelEvent::Ended { .. }));
    assert_eq!(last.count(), 1, "{events:?}");
    match events.last() {
        Some(ModelEvent::Failed(fault)) => fault.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_arrives_whole_however_it_is_split() {
    for split in ["", "split 1\n", "split 7\n"] {
        let script = format!("{split}think hm\nsay Grüß Gott\ncall read {{\"filePath\": \"a\"}}");
        let events = step(&script).await;
        let text: String = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "Grüß Gott");
        let calls = |event: &&ModelEvent| matches!(event, ModelEvent::Call { .. });
        assert_eq!(events.iter().filter(calls).count(), 1);
        let last = events.last();
        assert!(matches!(last, Some(ModelEvent::Ended { finish: Finish::Calls, .. })), "{last:?}");
    }
}

#[tokio::test]
async fn a_cut_connection_is_a_network_fault_and_its_call_is_not_handed_on() {
    let events = step("say Half\ncall write {\"filePath\": \"a\", \"content\": \"\"}\ncut").await;
    assert!(matches!(events.last(), Some(ModelEvent::Failed(Fault::Network { .. }))), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::Call { .. })));
}

#[tokio::test]
async fn a_garbled_stream_is_a_provider_fault() {
    let garbled = fault("say Half\nraw data: {\"choices\": [}\\n\\n").await;
    assert!(matches!(garbled, Fault::Provider { status: None, .. }), "{garbled:?}");
}

#[tokio::test]
async fn silence_ends_on_time_also_when_the_connection_is_kept_alive() {
    let pings = "raw : ping\\n\\n\nstall 60\n".repeat(60);
    let empty = "raw data: {\"choices\":[{\"delta\":{}}]}\\n\\n\nstall 60\n".repeat(60);
    let half = "raw data: {\"choices\":[{\"del\ngate never";
    for script in [
        "late 5000",
        "gate never",
        half,
        "say Half\ngate never",
        &pings,
        &empty,
        &format!("say Half\n{pings}"),
        &format!("say Half\n{empty}"),
    ] {
        let model = Model::start(Script::new([script]));
        let started = Instant::now();
        let events = gather(&client(model.url(), Duration::from_millis(300))).await;
        let last = events.last();
        assert!(matches!(last, Some(ModelEvent::Failed(Fault::Network { .. }))), "{last:?}");
        assert!(started.elapsed() < Duration::from_secs(2), "{script}");
    }
}

#[tokio::test]
async fn a_long_call_is_not_a_silence() {
    let pieces: String = (0..8)
        .map(|_| "raw data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"x\"}}]}}]}\\n\\n\nstall 100\n")
        .collect();
    let model = Model::start(Script::new([pieces.as_str()]));
    let events = gather(&client(model.url(), Duration::from_millis(300))).await;
    assert!(matches!(events.last(), Some(ModelEvent::Ended { .. })), "{events:?}");
}

#[tokio::test]
async fn a_status_says_what_kind_of_fault_it_is() {
    let limited = fault("header retry-after 7\nstatus 429 {}").await;
    assert!(matches!(limited, Fault::RateLimited { wait_ms: Some(7_000), .. }), "{limited:?}");
    let auth =
        fault(&format!("status 401 {{\"error\": {{\"message\": \"bad key {KEY}\"}}}}")).await;
    let message = "the provider did not accept the key from the test: bad key [key]".into();
    assert_eq!(auth, Fault::Auth { message }, "the key must not be told");
    let overflow =
        r#"status 400 {"error": {"message": "This model's maximum context length is 8"}}"#;
    assert!(matches!(fault(overflow).await, Fault::Overflow { .. }));
    let down = fault("status 503 <html>down</html>").await;
    assert!(
        matches!(&down, Fault::Provider { status: Some(503), message, .. } if message.contains("down"))
    );
    let moved = fault("header location http://127.0.0.1:1/\nstatus 302 {}").await;
    assert!(
        matches!(moved, Fault::Provider { status: Some(302), .. }),
        "a redirect takes the key along"
    );
}

#[tokio::test]
async fn nobody_at_the_address_is_a_network_fault() {
    let events = gather(&client("http://127.0.0.1:1/v1".into(), Duration::from_secs(5))).await;
    let last = events.last();
    assert!(matches!(last, Some(ModelEvent::Failed(Fault::Network { .. }))), "{last:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_step_closes_the_connection() {
    let model = Model::start(Script::new(["say Half\ngate never"]));
    let client = client(model.url(), Duration::from_secs(60));
    tokio::select! {
        events = gather(&client) => panic!("it should still be waiting: {events:?}"),
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
    model.wait_at_gate("never");
    model.wait_until_nobody_listens();
}

/// A whole answer where a stream should be has been paid for: asking again would pay again.
#[tokio::test]
async fn an_answer_that_is_no_stream_is_not_asked_for_again() {
    let whole = r#"{"type":"message","content":[{"type":"text","text":"the context window"}],"stop_reason":"end_turn"}"#;
    let fault = fault(&format!("header content-type application/json\nstatus 200 {whole}")).await;
    assert!(matches!(fault, Fault::Provider { status: Some(200), .. }), "{fault:?}");
    let tries = windlass_protocol::Tries { failed: 1, ..Default::default() };
    assert_eq!(fault.retry_after(&tries), None);
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let fault = fault_of(error).await;
    assert!(matches!(fault, Fault::Provider { status: Some(529), .. }), "{fault:?}");
}

async fn fault_of(error: &str) -> Fault {
    fault(&format!("header content-type application/json\nstatus 200 {error}")).await
}

#[tokio::test]
async fn a_header_a_person_sets_stands_and_a_query_stays() {
    let model = Model::start(Script::new(["say hi"]));
    let key = Some(Key { secret: KEY.to_owned().into(), from: "the test".into() });
    let endpoint = Endpoint {
        key,
        headers: vec![("Authorization".into(), "Basic dGVhbTpibHVl".into())],
        ..Endpoint::plain(Format::OpenaiChat, format!("{}?api-version=7", model.url()))
    };
    gather(&Client::new(endpoint).unwrap()).await;
    let asked = &model.asked()[0];
    assert_eq!(asked.header("authorization"), Some("Basic dGVhbTpibHVl"));
    assert_eq!(asked.path, "/v1/chat/completions?api-version=7");
}

#[test]
fn an_address_that_cannot_be_right_is_refused() {
    for (url, words) in [
        ("ftp://x/v1", "not http"),
        ("nowhere", "not a URL"),
        ("http://me:secret-word@x/v1", "holds a password"),
    ] {
        let told = match Client::new(Endpoint::plain(Format::OpenaiChat, url.into())) {
            Err(fault) => fault.to_string(),
            Ok(_) => panic!("{url}"),
        };
        assert!(told.contains(words) && !told.contains("secret-word"), "{told}");
    }
}

/// How long a provider asks us to wait, in each of its ways.
#[tokio::test]
async fn a_wait_is_understood_in_seconds_milliseconds_and_dates() {
    for (headers, expected) in [
        ("header retry-after 2\n", Some(2_000)),
        ("header retry-after 1.5\n", Some(1_500)),
        ("header retry-after-ms 250\nheader retry-after 9\n", Some(250)),
        (
            "header date Sun, 15 Nov 2026 10:00:00 GMT\nheader retry-after Sun, 15 Nov 2026 10:00:20 GMT\n",
            Some(20_000),
        ),
        ("header retry-after soon\n", None),
        ("header retry-after -1\n", None),
        ("", None),
    ] {
        let Fault::Provider { wait_ms, .. } = fault(&format!("{headers}status 503 {{}}")).await
        else {
            panic!("{headers}")
        };
        assert_eq!(wait_ms, expected, "{headers}");
    }
}
