//! Tests of the HTTP client against a loopback server that sends exactly the given bytes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests act as the server"
)]

use super::client::{BodyLimits, McpHttpClient, challenge_parameter};
use super::error::{HttpTransportError, may_have_been_sent};
use super::{
    AddressPolicy, MAX_BODY_BYTES, McpHttpError, classify_error, http_transport, parse_headers,
};
use crate::oauth::tokens::McpAuth;
use futures_util::StreamExt;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request that the server received.
#[derive(Clone, Debug)]
struct ScriptedServerRequest {
    line: String,
    head: String,
    body: Value,
}

/// A part of a response.
enum ScriptedResponsePart {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// The same bytes until the client disconnects, with a pause after each time.
    Forever(Vec<u8>, Duration),
}

type ResponseScript =
    Arc<dyn Fn(&ScriptedServerRequest) -> Vec<ScriptedResponsePart> + Send + Sync>;

/// A scripted HTTP server. Its tasks end with the runtime of the test.
struct ScriptedHttpServer {
    url: String,
    requests: Arc<Mutex<Vec<ScriptedServerRequest>>>,
}

impl ScriptedHttpServer {
    async fn start(
        script: impl Fn(&ScriptedServerRequest) -> Vec<ScriptedResponsePart> + Send + Sync + 'static,
    ) -> ScriptedHttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<ScriptedServerRequest>>>::default();
        let (script, recorded): (ResponseScript, _) = (Arc::new(script), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, Arc::clone(&script), Arc::clone(&recorded)));
            }
        });
        ScriptedHttpServer { url, requests }
    }

    fn requests(&self) -> Vec<ScriptedServerRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Posts a message, and returns the response.
    async fn post(
        &self,
        message: Value,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpTransportError>> {
        self.post_in(message, None).await
    }

    async fn post_in(
        &self,
        message: Value,
        session: Option<&str>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpTransportError>> {
        let message: ClientJsonRpcMessage = serde_json::from_value(message).unwrap();
        let uri: Arc<str> = self.url.as_str().into();
        let http_client = http_client(&self.url);
        http_client.post_message(uri, message, session.map(Into::into), None, HashMap::new()).await
    }
}

fn http_client(url: &str) -> McpHttpClient {
    let limits = BodyLimits { max_bytes: MAX_BODY_BYTES, timeout: Duration::from_millis(400) };
    McpHttpClient::new(AddressPolicy::Anywhere, url).unwrap().with_limits(limits)
}

async fn serve_connection(
    mut stream: TcpStream,
    script: ResponseScript,
    recorded: Arc<Mutex<Vec<ScriptedServerRequest>>>,
) -> Option<()> {
    let mut text = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                break (head.to_owned(), body.to_owned());
            }
        }
    };
    let line = head.lines().next()?.to_owned();
    let body = serde_json::from_str(&body).unwrap_or_default();
    let request = ScriptedServerRequest { line, head: head.to_ascii_lowercase(), body };
    let parts = script(&request);
    recorded.lock().unwrap().push(request);
    for part in parts {
        match part {
            ScriptedResponsePart::Bytes(bytes) => stream.write_all(&bytes).await.ok()?,
            ScriptedResponsePart::Pause(time) => tokio::time::sleep(time).await,
            ScriptedResponsePart::Forever(bytes, pause) => loop {
                stream.write_all(&bytes).await.ok()?;
                tokio::time::sleep(pause).await;
            },
        }
    }
    stream.shutdown().await.ok()
}

fn respond(status: &str, headers: &str, body: &str) -> Vec<ScriptedResponsePart> {
    let length = body.len();
    vec![ScriptedResponsePart::Bytes(
        format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .into(),
    )]
}

const JSON: &str = "content-type: application/json\r\n";
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

fn pong(id: u64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string()
}

#[tokio::test]
async fn a_response_is_json_or_events_and_carries_the_session() {
    let server = ScriptedHttpServer::start(|request| {
        assert!(request.head.contains("accept: application/json, text/event-stream"));
        respond(
            "200 OK",
            "content-type: application/json; charset=utf-8\r\nmcp-session-id: s1\r\n",
            &pong(1),
        )
    })
    .await;
    let response = server.post_in(ping(), Some("s0")).await.unwrap();
    let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Response(_), session) = response
    else {
        panic!("{response:?}")
    };
    assert_eq!(session.as_deref(), Some("s1"));
    assert!(server.requests()[0].head.contains("mcp-session-id: s0"));

    let server = ScriptedHttpServer::start(|_| {
        // Split inside a line, and between the two bytes of a line ending.
        let (first, rest) =
            ("event: message\r\nid: 7\r\ndata: {\"jsonrpc\"", ":\"2.0\",\"id\":1,\"result\":{}}\r");
        let pause = || ScriptedResponsePart::Pause(Duration::from_millis(20));
        vec![
            ScriptedResponsePart::Bytes(EVENTS.into()),
            ScriptedResponsePart::Bytes(first.into()),
            pause(),
            ScriptedResponsePart::Bytes(rest.into()),
            pause(),
            ScriptedResponsePart::Bytes("\n\r\n".into()),
        ]
    })
    .await;
    let response = server.post(ping()).await.unwrap();
    let StreamableHttpPostResponse::Sse(mut events, None) = response else {
        panic!("{response:?}")
    };
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.id.as_deref(), Some("7"));
    assert_eq!(
        event.data.as_deref(),
        Some(pong(1).as_str()).map(|_| "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}")
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_body_that_is_too_long_is_an_error() {
    // One body announces its length, the other one never ends.
    let with_length = ScriptedHttpServer::start(|_| {
        vec![ScriptedResponsePart::Bytes(
            format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 1000000000\r\n\r\n").into(),
        )]
    })
    .await;
    let endless = ScriptedHttpServer::start(|_| {
        vec![
            ScriptedResponsePart::Bytes(
                format!("HTTP/1.1 200 OK\r\n{JSON}connection: close\r\n\r\n\"").into(),
            ),
            ScriptedResponsePart::Forever(vec![b'x'; 1 << 20], Duration::ZERO),
        ]
    })
    .await;
    for server in [with_length, endless] {
        let error = server.post(ping()).await.unwrap_err();
        assert!(
            matches!(error, StreamableHttpError::Client(HttpTransportError::BodyTooLong { .. })),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn an_event_that_is_too_long_ends_the_stream_for_good() {
    let server = ScriptedHttpServer::start(|_| {
        vec![
            ScriptedResponsePart::Bytes(format!("{EVENTS}id: 1\ndata: {{}}\n\ndata: ").into()),
            ScriptedResponsePart::Forever(vec![b'x'; 1 << 20], Duration::ZERO),
        ]
    })
    .await;
    let (uri, http_client): (Arc<str>, _) = (server.url.as_str().into(), http_client(&server.url));
    let message: ClientJsonRpcMessage = serde_json::from_value(ping()).unwrap();
    let response =
        http_client.post_message(Arc::clone(&uri), message, None, None, HashMap::new()).await;
    let StreamableHttpPostResponse::Sse(mut events, _) = response.unwrap() else {
        panic!("no events")
    };
    assert!(events.next().await.unwrap().is_ok(), "earlier events are delivered");
    let error = loop {
        match events.next().await.expect("the stream must fail before its end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(format!("{error:?}").contains("TooLong"), "{error:?}");
    let again = http_client.get_stream(uri, None, Some("1".into()), None, HashMap::new()).await;
    assert!(matches!(again.err(), Some(StreamableHttpError::ServerDoesNotSupportSse)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_body_that_trickles_in_times_out() {
    let server = ScriptedHttpServer::start(|request| {
        let status = if request.body["id"] == 1 { "200 OK" } else { "400 Bad Request" };
        vec![
            ScriptedResponsePart::Bytes(
                format!("HTTP/1.1 {status}\r\n{JSON}content-length: 100000\r\n\r\n").into(),
            ),
            ScriptedResponsePart::Forever(b" ".to_vec(), Duration::from_millis(50)),
        ]
    })
    .await;
    let start = Instant::now();
    let error = server.post(ping()).await.unwrap_err();
    assert!(
        matches!(error, StreamableHttpError::Client(HttpTransportError::TimedOut(_))),
        "{error:?}"
    );
    assert!(
        start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_redirect_is_followed_only_within_the_origin_and_with_its_body() {
    let server = ScriptedHttpServer::start(|request| {
        if request.line.contains("/other") {
            respond("200 OK", JSON, &pong(request.body["id"].as_u64().unwrap()))
        } else {
            respond("307 Temporary Redirect", "location: /other\r\n", "")
        }
    })
    .await;
    assert!(server.post(ping()).await.is_ok());
    assert_eq!(server.requests()[1].body, ping(), "the redirected request keeps its body");

    let other_origin = ScriptedHttpServer::start(|_| respond("200 OK", JSON, &pong(1))).await;
    let location = other_origin.url.clone();
    let cross_origin = ScriptedHttpServer::start(move |_| {
        respond("307 Temporary Redirect", &format!("location: {location}\r\n"), "")
    })
    .await;
    let to_a_get =
        ScriptedHttpServer::start(|_| respond("302 Found", "location: /other\r\n", "")).await;
    for server in [&cross_origin, &to_a_get] {
        let error = server.post(ping()).await.unwrap_err();
        assert!(error.to_string().contains("HTTP 30"), "{error}");
    }
    assert!(other_origin.requests().is_empty(), "nothing is sent to another origin");

    let redirect_loop =
        ScriptedHttpServer::start(|_| respond("308 Permanent Redirect", "location: /mcp\r\n", ""))
            .await;
    assert!(redirect_loop.post(ping()).await.is_err());
    assert!(redirect_loop.requests().len() < 10);
}

#[tokio::test]
async fn http_errors_are_classified() {
    let server = ScriptedHttpServer::start(|request| match request.body["id"].as_u64() {
        Some(401) => respond(
            "401 Unauthorized",
            "www-authenticate: Bearer resource_metadata=\"https://x/y\"\r\n",
            "",
        ),
        Some(402) => respond("401 Unauthorized", "", ""),
        Some(403) => respond(
            "403 Forbidden",
            "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"a b\"\r\n",
            "",
        ),
        Some(404) => respond("404 Not Found", "content-type: text/html\r\n", "<html>\u{1b}[31m no"),
        Some(429) => respond("429 Too Many Requests", &format!("retry-after: 7\r\n{JSON}"), "{}"),
        Some(500) => respond("500 Internal Server Error", "", "oh"),
        Some(501) => respond(
            "500 Internal Server Error",
            JSON,
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"broken"}}"#,
        ),
        _ => respond("403 Forbidden", "", "go away"),
    })
    .await;
    let post_with_id = |id: u64| server.post(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    let challenge = Some("Bearer resource_metadata=\"https://x/y\"".to_owned());
    assert_eq!(
        classify_error(&post_with_id(401).await.unwrap_err()),
        McpHttpError::NeedsLogin { challenge }
    );
    assert_eq!(
        classify_error(&post_with_id(402).await.unwrap_err()),
        McpHttpError::NeedsLogin { challenge: None }
    );
    let McpHttpError::NeedsScope { scope, .. } =
        classify_error(&post_with_id(403).await.unwrap_err())
    else {
        panic!()
    };
    assert_eq!(scope.as_deref(), Some("a b"));
    let McpHttpError::Other(text) = classify_error(&post_with_id(404).await.unwrap_err()) else {
        panic!()
    };
    assert!(text.contains("404") && !text.contains('\u{1b}'), "{text}");
    let busy = post_with_id(429).await.unwrap_err();
    assert!(
        matches!(&busy, StreamableHttpError::HttpStatus(error) if error.retry_after.as_deref() == Some("7"))
    );
    assert!(!may_have_been_sent(&busy), "the server did not accept it");
    let failed = post_with_id(500).await.unwrap_err();
    assert!(matches!(failed, StreamableHttpError::HttpStatus(_)));
    assert!(may_have_been_sent(&failed), "a gateway may have passed it on");
    let McpHttpError::Other(text) = classify_error(&post_with_id(405).await.unwrap_err()) else {
        panic!()
    };
    assert!(text.contains("403") && text.contains("go away"), "{text}");
    // A JSON-RPC error counts with any status, and belongs to the request.
    let response = post_with_id(501).await.unwrap();
    let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _) = response else {
        panic!()
    };
    assert_eq!(serde_json::to_value(error.id).unwrap(), 501);
    let gone =
        server.post_in(json!({"jsonrpc": "2.0", "id": 404, "method": "ping"}), Some("s")).await;
    assert!(matches!(gone.unwrap_err(), StreamableHttpError::SessionExpired));
}

#[tokio::test]
async fn an_invalid_response_is_an_error() {
    let server = ScriptedHttpServer::start(|request| match request.body["id"].as_u64() {
        Some(1) => respond("200 OK", "content-type: text/html\r\n", &pong(1)),
        Some(2) => respond("200 OK", "", &pong(2)),
        Some(3) => respond("200 OK", JSON, &pong(77)),
        Some(4) => respond("200 OK", JSON, &"[".repeat(100_000)),
        Some(5) => respond("200 OK", JSON, "{}"),
        _ => respond("200 OK", JSON, ""),
    })
    .await;
    for id in 1..=6 {
        let error = server.post(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).await;
        let error = error.unwrap_err().to_string();
        assert!(error.len() < 500, "{id}: {error}");
    }
    // A notification needs no response.
    let notification =
        server.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert!(matches!(notification.unwrap(), StreamableHttpPostResponse::Accepted));
}

#[tokio::test]
async fn the_client_falls_back_to_initialize_with_an_older_server() {
    let server = ScriptedHttpServer::start(|request| match request.body["method"].as_str() {
        Some("server/discover") => {
            respond("404 Not Found", "content-type: text/html\r\n", "<html>")
        }
        Some("initialize") => respond(
            "200 OK",
            &format!("{JSON}mcp-session-id: abc\r\n"),
            &json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"}}})
            .to_string(),
        ),
        Some("tools/list") => respond(
            "200 OK",
            JSON,
            &json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {"tools": [
                {"name": "echo", "inputSchema": {"type": "object"}}]}})
            .to_string(),
        ),
        Some(_) => respond("202 Accepted", "", ""),
        None => respond("405 Method Not Allowed", "", ""),
    })
    .await;
    let headers = [("X-Team".to_owned(), "seven".to_owned().into())];
    let transport = http_transport(&server.url, &headers, &McpAuth::None).unwrap();
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: vec![rmcp::model::ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let client = ().serve_with_lifecycle(transport, auto).await.unwrap();
    let tools = client.peer().list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 1);
    client.cancel().await.unwrap();
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.head.contains("x-team: seven")));
    let listing = requests.iter().find(|request| request.body["method"] == "tools/list").unwrap();
    assert!(listing.head.contains("mcp-session-id: abc"), "{}", listing.head);
    assert!(listing.head.contains("mcp-protocol-version: 2025-11-25"), "{}", listing.head);
}

#[tokio::test]
async fn stream_resumes_are_rate_limited() {
    let server = ScriptedHttpServer::start(|_| {
        vec![ScriptedResponsePart::Bytes(format!("{EVENTS}id: 1\nretry: 0\ndata:\n\n").into())]
    })
    .await;
    let (uri, http_client): (Arc<str>, _) = (server.url.as_str().into(), http_client(&server.url));
    let start = Instant::now();
    for _ in 0..4 {
        let stream =
            http_client.get_stream(Arc::clone(&uri), None, Some("1".into()), None, HashMap::new());
        assert!(stream.await.unwrap().next().await.unwrap().is_ok());
    }
    assert!(start.elapsed() >= 3 * super::MIN_RESUME_INTERVAL, "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_server_of_a_project_must_have_a_public_address() {
    for url in [
        "http://example.com/mcp",
        "https://127.0.0.1/mcp",
        "https://[::1]/mcp",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest",
    ] {
        assert!(McpHttpClient::new(AddressPolicy::PublicOnly, url).is_err(), "{url}");
        assert!(McpHttpClient::new(AddressPolicy::Anywhere, url).is_ok(), "{url}");
    }
    for url in ["file:///etc/passwd", "mcp", "", "https://me:secret@example.com/"] {
        let error = McpHttpClient::new(AddressPolicy::Anywhere, url).err().unwrap();
        assert!(!error.text.contains("secret"), "{}", error.text);
    }
    // A name that resolves to a private address is rejected.
    let url = "https://localhost:9/mcp";
    let http_client = McpHttpClient::new(AddressPolicy::PublicOnly, url).unwrap();
    let message: ClientJsonRpcMessage = serde_json::from_value(ping()).unwrap();
    let error = http_client
        .post_message(url.into(), message, None, None, HashMap::new())
        .await
        .unwrap_err();
    assert!(super::error::error_chain(&error).contains("must be public"), "{error}");
}

#[test]
fn protocol_headers_cannot_be_configured() {
    for name in ["Accept", "mcp-session-id", "MCP-Protocol-Version", "Host", "a b", ""] {
        let error = parse_headers(&[(name.to_owned(), "x".to_owned().into())]).unwrap_err();
        assert!(error.text.contains("change the config"), "{}", error.text);
    }
    let error = parse_headers(&[("X-Key".to_owned(), "hush\n".to_owned().into())]).unwrap_err();
    assert!(!error.text.contains("hush"), "{}", error.text);
    let headers =
        parse_headers(&[("Authorization".to_owned(), "Bearer hush".to_owned().into())]).unwrap();
    assert!(!format!("{headers:?}").contains("hush"));
}

#[test]
fn challenge_parameters_are_parsed_in_all_forms() {
    let quoted = "Bearer realm=\"a, scope=no\", error=\"insufficient_scope\",scope=\"x y\"";
    assert_eq!(challenge_parameter(quoted, "scope").as_deref(), Some("x y"));
    assert_eq!(challenge_parameter(quoted, "ERROR").as_deref(), Some("insufficient_scope"));
    assert_eq!(challenge_parameter("Bearer scope=x, error=e", "error").as_deref(), Some("e"));
    for invalid in
        ["", "Bearer", "=", "Bearer scope", "Bearer scope=\"open", "scope=\"\"", "Bearer ===="]
    {
        assert_eq!(challenge_parameter(invalid, "scope"), None, "{invalid}");
    }
}
