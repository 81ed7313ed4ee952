//! The client against a local HTTP server that delays, stalls, cuts off and garbles its stream.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and measures time"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_llm::catalog::Model as CatalogModel;
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{ApiKey, Client, Endpoint, EndpointTimeouts, ModelEvent, ModelRequest};
use windlass_protocol::{Fault, FinishReason, Message, MessagePart, MessageRole};
use windlass_testkit::{ModelScript, ScriptedModel};

const KEY: &str = "sk-very-secret";

fn new_client(url: String, idle: Duration) -> Client {
    let timeouts =
        EndpointTimeouts { idle, first_event: idle, headers: idle, ..EndpointTimeouts::default() };
    let key = Some(ApiKey { secret: KEY.to_owned().into(), source: "the test".into() });
    Client::new(Endpoint {
        api_key: key,
        timeouts,
        ..Endpoint::generic(WireFormat::OpenaiChat, url)
    })
    .unwrap()
}

fn request() -> ModelRequest {
    let parts = vec![MessagePart::text("hello")];
    ModelRequest {
        model: Arc::new(CatalogModel::unlisted("m")),
        model_name: "scripted/m".into(),
        system_prompt: "s".into(),
        messages: vec![Message { role: MessageRole::User, seq: 1, model: None, parts }].into(),
        file_bytes: Default::default(),
        tools: Vec::new(),
        options: Arc::default(),
        cache_key: None,
        incremental_body: Arc::default(),
    }
}

async fn run_step(client: &Client) -> Vec<ModelEvent> {
    let (sink, mut events) = tokio::sync::mpsc::channel(1);
    let request = request();
    let step = async move { client.run_step(&request, &sink).await };
    let ((), events) = tokio::join!(step, async {
        let mut all = Vec::new();
        while let Some(event) = events.recv().await {
            all.push(event);
        }
        all
    });
    events
}

async fn step_for_reply(reply: &str) -> Vec<ModelEvent> {
    let model = ScriptedModel::start(ModelScript::new([reply]));
    run_step(&new_client(model.url(), Duration::from_secs(20))).await
}

async fn fault_for_reply(reply: &str) -> Fault {
    let events = step_for_reply(reply).await;
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
async fn a_response_is_the_same_however_it_is_split() {
    for split in ["", "split 1\n", "split 7\n"] {
        let script = format!("{split}think hm\nsay Grüß Gott\ncall read {{\"filePath\": \"a\"}}");
        let events = step_for_reply(&script).await;
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
        assert!(
            matches!(last, Some(ModelEvent::Ended { finish: FinishReason::ToolCalls, .. })),
            "{last:?}"
        );
    }
}

#[tokio::test]
async fn a_cut_connection_is_a_network_fault_and_its_call_is_not_emitted() {
    let events =
        step_for_reply("say Half\ncall write {\"filePath\": \"a\", \"content\": \"\"}\ncut").await;
    assert!(matches!(events.last(), Some(ModelEvent::Failed(Fault::Network { .. }))), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::Call { .. })));
}

#[tokio::test]
async fn the_tool_of_a_call_is_known_while_its_arguments_are_written() {
    let chunk = |call: &str| {
        format!("raw data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\\n\\n\n")
    };
    let head = chunk(r#"{"index":0,"id":"c","function":{"name":"write","arguments":""}}"#);
    let piece = chunk(r#"{"index":0,"function":{"arguments":"{\"path\":\"a\"}"}}"#);
    let script = format!("{head}gate arguments\n{piece}");
    let model = ScriptedModel::start(ModelScript::new([script.as_str()]));
    let client = new_client(model.url(), Duration::from_secs(20));
    let (sink, mut events) = tokio::sync::mpsc::channel(1);
    let step = tokio::spawn(async move { client.run_step(&request(), &sink).await });
    let delta = |arguments: &str| ModelEvent::CallDelta {
        index: 0,
        tool: "write".into(),
        arguments: arguments.into(),
    };
    // The gate is closed, so this event cannot depend on the rest of the call.
    assert_eq!(events.recv().await, Some(delta("")));
    model.open_gate("arguments");
    assert_eq!(events.recv().await, Some(delta(r#"{"path":"a"}"#)));
    assert!(matches!(events.recv().await, Some(ModelEvent::Call { .. })));
    assert!(matches!(events.recv().await, Some(ModelEvent::Ended { .. })));
    step.await.unwrap();
}

#[tokio::test]
async fn a_garbled_stream_is_a_provider_fault() {
    let garbled = fault_for_reply("say Half\nraw data: {\"choices\": [}\\n\\n").await;
    assert!(matches!(garbled, Fault::Provider { status: None, .. }), "{garbled:?}");
}

#[tokio::test]
async fn a_silent_step_times_out_even_when_the_connection_is_kept_alive() {
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
        let model = ScriptedModel::start(ModelScript::new([script]));
        let started = Instant::now();
        let events = run_step(&new_client(model.url(), Duration::from_millis(300))).await;
        let last = events.last();
        assert!(matches!(last, Some(ModelEvent::Failed(Fault::Network { .. }))), "{last:?}");
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
            "{script}"
        );
    }
}

#[tokio::test]
async fn a_long_call_does_not_time_out() {
    let pieces: String = (0..8)
        .map(|_| "raw data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"x\"}}]}}]}\\n\\n\nstall 100\n")
        .collect();
    let model = ScriptedModel::start(ModelScript::new([pieces.as_str()]));
    let events = run_step(&new_client(model.url(), Duration::from_millis(300))).await;
    assert!(matches!(events.last(), Some(ModelEvent::Ended { .. })), "{events:?}");
}

#[tokio::test]
async fn the_status_determines_the_kind_of_fault() {
    let limited = fault_for_reply("header retry-after 7\nstatus 429 {}").await;
    assert!(
        matches!(limited, Fault::RateLimited { retry_after_ms: Some(7_000), .. }),
        "{limited:?}"
    );
    let auth =
        fault_for_reply(&format!("status 401 {{\"error\": {{\"message\": \"bad key {KEY}\"}}}}"))
            .await;
    let message = "the provider rejected the API key from the test: bad key [key]".into();
    assert_eq!(auth, Fault::Auth { message }, "the message must not contain the key");
    let overflow =
        r#"status 400 {"error": {"message": "This model's maximum context length is 8"}}"#;
    assert!(matches!(fault_for_reply(overflow).await, Fault::ContextOverflow { .. }));
    let down = fault_for_reply("status 503 <html>down</html>").await;
    assert!(
        matches!(&down, Fault::Provider { status: Some(503), message, .. } if message.contains("down"))
    );
    let moved = fault_for_reply("header location http://127.0.0.1:1/\nstatus 302 {}").await;
    assert!(
        matches!(moved, Fault::Provider { status: Some(302), .. }),
        "a followed redirect would send the key along"
    );
}

#[tokio::test]
async fn a_rejected_request_without_a_key_does_not_name_one() {
    let model =
        ScriptedModel::start(ModelScript::new([r#"status 401 {"error": {"message": "who?"}}"#]));
    let endpoint = Endpoint::generic(WireFormat::OpenaiChat, model.url());
    assert!(endpoint.api_key.is_none());
    let events = run_step(&Client::new(endpoint).unwrap()).await;
    let message = "the provider rejected the request because no API key is set: who?".into();
    assert_eq!(events, [ModelEvent::Failed(Fault::Auth { message })]);
}

#[tokio::test]
async fn a_refused_connection_is_a_network_fault() {
    let events =
        run_step(&new_client("http://127.0.0.1:1/v1".into(), Duration::from_secs(5))).await;
    let last = events.last();
    assert!(matches!(last, Some(ModelEvent::Failed(Fault::Network { .. }))), "{last:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_step_closes_the_connection() {
    let model = ScriptedModel::start(ModelScript::new(["say Half\ngate never"]));
    let client = new_client(model.url(), Duration::from_secs(60));
    tokio::select! {
        events = run_step(&client) => panic!("the step ended early: {events:?}"),
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
    model.wait_at_gate("never");
    model.wait_until_disconnected();
}

/// A complete response instead of a stream has been billed: a retry would be billed again.
#[tokio::test]
async fn a_response_that_is_not_a_stream_is_not_retried() {
    let whole = r#"{"type":"message","content":[{"type":"text","text":"the context window"}],"stop_reason":"end_turn"}"#;
    let fault =
        fault_for_reply(&format!("header content-type application/json\nstatus 200 {whole}")).await;
    assert!(matches!(fault, Fault::Provider { status: Some(200), .. }), "{fault:?}");
    let retry_state = windlass_protocol::RetryState { failed_attempts: 1, ..Default::default() };
    assert_eq!(fault.retry_delay_ms(&retry_state), None);
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let fault = fault_for_json_body(error).await;
    assert!(matches!(fault, Fault::Provider { status: Some(529), .. }), "{fault:?}");
}

async fn fault_for_json_body(error: &str) -> Fault {
    fault_for_reply(&format!("header content-type application/json\nstatus 200 {error}")).await
}

#[tokio::test]
async fn user_headers_take_precedence_and_the_query_is_kept() {
    let model = ScriptedModel::start(ModelScript::new(["say hi"]));
    let key = Some(ApiKey { secret: KEY.to_owned().into(), source: "the test".into() });
    let endpoint = Endpoint {
        api_key: key,
        user_headers: vec![("Authorization".into(), "Basic dGVhbTpibHVl".into())],
        ..Endpoint::generic(WireFormat::OpenaiChat, format!("{}?api-version=7", model.url()))
    };
    run_step(&Client::new(endpoint).unwrap()).await;
    let request = &model.request_heads()[0];
    assert_eq!(request.header("authorization"), Some("Basic dGVhbTpibHVl"));
    assert_eq!(request.path, "/v1/chat/completions?api-version=7");
}

#[test]
fn an_invalid_base_url_is_refused() {
    for (url, expected) in [
        ("ftp://x/v1", "must use http"),
        ("nowhere", "not a URL"),
        ("http://me:secret-word@x/v1", "contains a password"),
    ] {
        let message = match Client::new(Endpoint::generic(WireFormat::OpenaiChat, url.into())) {
            Err(fault) => fault.to_string(),
            Ok(_) => panic!("{url}"),
        };
        assert!(message.contains(expected) && !message.contains("secret-word"), "{message}");
    }
}

#[tokio::test]
async fn retry_after_may_be_seconds_milliseconds_or_a_date() {
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
        let Fault::Provider { retry_after_ms, .. } =
            fault_for_reply(&format!("{headers}status 503 {{}}")).await
        else {
            panic!("{headers}")
        };
        assert_eq!(retry_after_ms, expected, "{headers}");
    }
}
