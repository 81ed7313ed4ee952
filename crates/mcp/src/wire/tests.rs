//! A server on loopback that says exactly what it is told to, byte by byte, and the client against it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is the server, too"
)]

use super::client::{Bounds, Fault, Wire, parameter};
use super::{LARGEST, Reach, Trouble, custom, transport, trouble};
use crate::tokens::Auth;
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

/// What a request said.
#[derive(Clone, Debug)]
struct Asked {
    line: String,
    head: String,
    body: Value,
}

/// What is answered: bytes, and pauses.
enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// The same bytes for as long as somebody reads.
    Forever(Vec<u8>, Duration),
}

type Script = Arc<dyn Fn(&Asked) -> Vec<Piece> + Send + Sync>;

/// The server. Its tasks end with the test's runtime.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    async fn start(script: impl Fn(&Asked) -> Vec<Piece> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (script, seen): (Script, _) = (Arc::new(script), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(play(stream, Arc::clone(&script), Arc::clone(&seen)));
            }
        });
        Server { url, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Posts a message, and says what came of it.
    async fn post(
        &self,
        message: Value,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Fault>> {
        self.post_in(message, None).await
    }

    async fn post_in(
        &self,
        message: Value,
        session: Option<&str>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Fault>> {
        let message: ClientJsonRpcMessage = serde_json::from_value(message).unwrap();
        let uri: Arc<str> = self.url.as_str().into();
        let wire = wire(&self.url);
        wire.post_message(uri, message, session.map(Into::into), None, HashMap::new()).await
    }
}

fn wire(url: &str) -> Wire {
    let bounds = Bounds { most: LARGEST, patience: Duration::from_millis(400) };
    Wire::new(Reach::Anywhere, url).unwrap().with_bounds(bounds)
}

async fn play(mut stream: TcpStream, script: Script, seen: Arc<Mutex<Vec<Asked>>>) -> Option<()> {
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
    let asked = Asked { line, head: head.to_ascii_lowercase(), body };
    let pieces = script(&asked);
    seen.lock().unwrap().push(asked);
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => stream.write_all(&bytes).await.ok()?,
            Piece::Pause(time) => tokio::time::sleep(time).await,
            Piece::Forever(bytes, pause) => loop {
                stream.write_all(&bytes).await.ok()?;
                tokio::time::sleep(pause).await;
            },
        }
    }
    stream.shutdown().await.ok()
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<Piece> {
    let length = body.len();
    vec![Piece::Bytes(
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
async fn an_answer_comes_as_json_or_as_events_and_brings_the_session() {
    let server = Server::start(|asked| {
        assert!(asked.head.contains("accept: application/json, text/event-stream"));
        answer(
            "200 OK",
            "content-type: application/json; charset=utf-8\r\nmcp-session-id: s1\r\n",
            &pong(1),
        )
    })
    .await;
    let got = server.post_in(ping(), Some("s0")).await.unwrap();
    let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Response(_), session) = got else {
        panic!("{got:?}")
    };
    assert_eq!(session.as_deref(), Some("s1"));
    assert!(server.asked()[0].head.contains("mcp-session-id: s0"));

    let server = Server::start(|_| {
        // Cut inside a line, and between the two bytes that end one.
        let (first, rest) =
            ("event: message\r\nid: 7\r\ndata: {\"jsonrpc\"", ":\"2.0\",\"id\":1,\"result\":{}}\r");
        let pause = || Piece::Pause(Duration::from_millis(20));
        vec![
            Piece::Bytes(EVENTS.into()),
            Piece::Bytes(first.into()),
            pause(),
            Piece::Bytes(rest.into()),
            pause(),
            Piece::Bytes("\n\r\n".into()),
        ]
    })
    .await;
    let got = server.post(ping()).await.unwrap();
    let StreamableHttpPostResponse::Sse(mut events, None) = got else { panic!("{got:?}") };
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.id.as_deref(), Some("7"));
    assert_eq!(
        event.data.as_deref(),
        Some(pong(1).as_str()).map(|_| "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}")
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_body_is_read_as_far_as_it_is_allowed_to_be() {
    // One says how long it is, one does not and never ends.
    let said = Server::start(|_| {
        vec![Piece::Bytes(
            format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 1000000000\r\n\r\n").into(),
        )]
    })
    .await;
    let endless = Server::start(|_| {
        vec![
            Piece::Bytes(format!("HTTP/1.1 200 OK\r\n{JSON}connection: close\r\n\r\n\"").into()),
            Piece::Forever(vec![b'x'; 1 << 20], Duration::ZERO),
        ]
    })
    .await;
    for server in [said, endless] {
        let error = server.post(ping()).await.unwrap_err();
        assert!(matches!(error, StreamableHttpError::Client(Fault::TooLong { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn an_event_that_is_too_long_ends_the_stream_and_is_not_asked_for_again() {
    let server = Server::start(|_| {
        vec![
            Piece::Bytes(format!("{EVENTS}id: 1\ndata: {{}}\n\ndata: ").into()),
            Piece::Forever(vec![b'x'; 1 << 20], Duration::ZERO),
        ]
    })
    .await;
    let (uri, wire): (Arc<str>, _) = (server.url.as_str().into(), wire(&server.url));
    let message: ClientJsonRpcMessage = serde_json::from_value(ping()).unwrap();
    let got = wire.post_message(Arc::clone(&uri), message, None, None, HashMap::new()).await;
    let StreamableHttpPostResponse::Sse(mut events, _) = got.unwrap() else { panic!("no events") };
    assert!(events.next().await.unwrap().is_ok(), "what came before it counts");
    let error = loop {
        match events.next().await.expect("an error comes before the end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(format!("{error:?}").contains("TooLong"), "{error:?}");
    let again = wire.get_stream(uri, None, Some("1".into()), None, HashMap::new()).await;
    assert!(matches!(again.err(), Some(StreamableHttpError::ServerDoesNotSupportSse)));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_server_that_says_a_byte_at_a_time_is_not_waited_for() {
    let server = Server::start(|asked| {
        let status = if asked.body["id"] == 1 { "200 OK" } else { "400 Bad Request" };
        vec![
            Piece::Bytes(
                format!("HTTP/1.1 {status}\r\n{JSON}content-length: 100000\r\n\r\n").into(),
            ),
            Piece::Forever(b" ".to_vec(), Duration::from_millis(50)),
        ]
    })
    .await;
    let start = Instant::now();
    let error = server.post(ping()).await.unwrap_err();
    assert!(matches!(error, StreamableHttpError::Client(Fault::Slow(_))), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_message_is_sent_on_only_within_the_origin_and_whole() {
    let server = Server::start(|asked| {
        if asked.line.contains("/other") {
            answer("200 OK", JSON, &pong(asked.body["id"].as_u64().unwrap()))
        } else {
            answer("307 Temporary Redirect", "location: /other\r\n", "")
        }
    })
    .await;
    assert!(server.post(ping()).await.is_ok());
    assert_eq!(server.asked()[1].body, ping(), "the message goes on whole");

    let stranger = Server::start(|_| answer("200 OK", JSON, &pong(1))).await;
    let there = stranger.url.clone();
    let away = Server::start(move |_| {
        answer("307 Temporary Redirect", &format!("location: {there}\r\n"), "")
    })
    .await;
    let to_a_get = Server::start(|_| answer("302 Found", "location: /other\r\n", "")).await;
    for server in [&away, &to_a_get] {
        let error = server.post(ping()).await.unwrap_err();
        assert!(error.to_string().contains("HTTP 30"), "{error}");
    }
    assert!(stranger.asked().is_empty(), "nothing goes to another origin");

    let round = Server::start(|_| answer("308 Permanent Redirect", "location: /mcp\r\n", "")).await;
    assert!(round.post(ping()).await.is_err());
    assert!(round.asked().len() < 10);
}

#[tokio::test]
async fn each_refusal_means_what_has_to_be_done_about_it() {
    let server = Server::start(|asked| match asked.body["id"].as_u64() {
        Some(401) => answer(
            "401 Unauthorized",
            "www-authenticate: Bearer resource_metadata=\"https://x/y\"\r\n",
            "",
        ),
        Some(402) => answer("401 Unauthorized", "", ""),
        Some(403) => answer(
            "403 Forbidden",
            "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"a b\"\r\n",
            "",
        ),
        Some(404) => answer("404 Not Found", "content-type: text/html\r\n", "<html>\u{1b}[31m no"),
        Some(429) => answer("429 Too Many Requests", &format!("retry-after: 7\r\n{JSON}"), "{}"),
        Some(500) => answer("500 Internal Server Error", "", "oh"),
        Some(501) => answer(
            "500 Internal Server Error",
            JSON,
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"broken"}}"#,
        ),
        _ => answer("403 Forbidden", "", "go away"),
    })
    .await;
    let ask = |id: u64| server.post(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    let challenge = Some("Bearer resource_metadata=\"https://x/y\"".to_owned());
    assert_eq!(trouble(&ask(401).await.unwrap_err()), Trouble::NeedsLogin { challenge });
    assert_eq!(trouble(&ask(402).await.unwrap_err()), Trouble::NeedsLogin { challenge: None });
    let Trouble::NeedsScope { scope, .. } = trouble(&ask(403).await.unwrap_err()) else { panic!() };
    assert_eq!(scope.as_deref(), Some("a b"));
    let Trouble::Other(words) = trouble(&ask(404).await.unwrap_err()) else { panic!() };
    assert!(words.contains("404") && !words.contains('\u{1b}'), "{words}");
    let busy = ask(429).await.unwrap_err();
    assert!(
        matches!(&busy, StreamableHttpError::HttpStatus(error) if error.retry_after.as_deref() == Some("7"))
    );
    assert!(matches!(ask(500).await.unwrap_err(), StreamableHttpError::HttpStatus(_)));
    let Trouble::Other(words) = trouble(&ask(405).await.unwrap_err()) else { panic!() };
    assert!(words.contains("403") && words.contains("go away"), "{words}");
    // An error of the protocol is one whatever the status, and belongs to what was asked.
    let got = ask(501).await.unwrap();
    let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _) = got else {
        panic!()
    };
    assert_eq!(serde_json::to_value(error.id).unwrap(), 501);
    let gone =
        server.post_in(json!({"jsonrpc": "2.0", "id": 404, "method": "ping"}), Some("s")).await;
    assert!(matches!(gone.unwrap_err(), StreamableHttpError::SessionExpired));
}

#[tokio::test]
async fn what_is_no_answer_is_said_and_nobody_waits_for_another() {
    let server = Server::start(|asked| match asked.body["id"].as_u64() {
        Some(1) => answer("200 OK", "content-type: text/html\r\n", &pong(1)),
        Some(2) => answer("200 OK", "", &pong(2)),
        Some(3) => answer("200 OK", JSON, &pong(77)),
        Some(4) => answer("200 OK", JSON, &"[".repeat(100_000)),
        Some(5) => answer("200 OK", JSON, "{}"),
        _ => answer("200 OK", JSON, ""),
    })
    .await;
    for id in 1..=6 {
        let error = server.post(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).await;
        let error = error.unwrap_err().to_string();
        assert!(error.len() < 500, "{id}: {error}");
    }
    // What asks nothing needs no answer.
    let told = server.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert!(matches!(told.unwrap(), StreamableHttpPostResponse::Accepted));
}

#[tokio::test]
async fn a_server_that_does_not_know_the_new_question_is_asked_the_old_one() {
    let server = Server::start(|asked| match asked.body["method"].as_str() {
        Some("server/discover") => answer("404 Not Found", "content-type: text/html\r\n", "<html>"),
        Some("initialize") => answer(
            "200 OK",
            &format!("{JSON}mcp-session-id: abc\r\n"),
            &json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"}}})
            .to_string(),
        ),
        Some("tools/list") => answer(
            "200 OK",
            JSON,
            &json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"tools": [
                {"name": "echo", "inputSchema": {"type": "object"}}]}})
            .to_string(),
        ),
        Some(_) => answer("202 Accepted", "", ""),
        None => answer("405 Method Not Allowed", "", ""),
    })
    .await;
    let headers = [("X-Team".to_owned(), "seven".to_owned().into())];
    let way = transport(&server.url, &headers, &Auth::None).unwrap();
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: vec![rmcp::model::ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let running = ().serve_with_lifecycle(way, auto).await.unwrap();
    let tools = running.peer().list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 1);
    running.cancel().await.unwrap();
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.head.contains("x-team: seven")));
    let listing = asked.iter().find(|asked| asked.body["method"] == "tools/list").unwrap();
    assert!(listing.head.contains("mcp-session-id: abc"), "{}", listing.head);
    assert!(listing.head.contains("mcp-protocol-version: 2025-11-25"), "{}", listing.head);
}

#[tokio::test]
async fn a_stream_that_asks_to_be_resumed_at_once_is_resumed_at_a_pace() {
    let server =
        Server::start(|_| vec![Piece::Bytes(format!("{EVENTS}id: 1\nretry: 0\ndata:\n\n").into())])
            .await;
    let (uri, wire): (Arc<str>, _) = (server.url.as_str().into(), wire(&server.url));
    let start = Instant::now();
    for _ in 0..4 {
        let stream =
            wire.get_stream(Arc::clone(&uri), None, Some("1".into()), None, HashMap::new());
        assert!(stream.await.unwrap().next().await.unwrap().is_ok());
    }
    assert!(start.elapsed() >= 3 * super::PACE, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_projects_server_is_public() {
    for url in [
        "http://example.com/mcp",
        "https://127.0.0.1/mcp",
        "https://[::1]/mcp",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest",
    ] {
        assert!(Wire::new(Reach::Public, url).is_err(), "{url}");
        assert!(Wire::new(Reach::Anywhere, url).is_ok(), "{url}");
    }
    for url in ["file:///etc/passwd", "mcp", "", "https://me:secret@example.com/"] {
        let error = Wire::new(Reach::Anywhere, url).err().unwrap();
        assert!(!error.text.contains("secret"), "{}", error.text);
    }
    // A name that leads inside is refused when it is looked up.
    let url = "https://localhost:9/mcp";
    let wire = Wire::new(Reach::Public, url).unwrap();
    let message: ClientJsonRpcMessage = serde_json::from_value(ping()).unwrap();
    let error =
        wire.post_message(url.into(), message, None, None, HashMap::new()).await.unwrap_err();
    assert!(super::trouble::words(&error).contains("has to be public"), "{error}");
}

#[test]
fn headers_of_the_protocol_are_not_for_anybody_to_set() {
    for name in ["Accept", "mcp-session-id", "MCP-Protocol-Version", "Host", "a b", ""] {
        let error = custom(&[(name.to_owned(), "x".to_owned().into())]).unwrap_err();
        assert!(error.text.contains("change the config"), "{}", error.text);
    }
    let error = custom(&[("X-Key".to_owned(), "hush\n".to_owned().into())]).unwrap_err();
    assert!(!error.text.contains("hush"), "{}", error.text);
    let fine = custom(&[("Authorization".to_owned(), "Bearer hush".to_owned().into())]).unwrap();
    assert!(!format!("{fine:?}").contains("hush"));
}

#[test]
fn a_challenge_is_read_whatever_its_form() {
    let quoted = "Bearer realm=\"a, scope=no\", error=\"insufficient_scope\",scope=\"x y\"";
    assert_eq!(parameter(quoted, "scope").as_deref(), Some("x y"));
    assert_eq!(parameter(quoted, "ERROR").as_deref(), Some("insufficient_scope"));
    assert_eq!(parameter("Bearer scope=x, error=e", "error").as_deref(), Some("e"));
    for odd in
        ["", "Bearer", "=", "Bearer scope", "Bearer scope=\"open", "scope=\"\"", "Bearer ===="]
    {
        assert_eq!(parameter(odd, "scope"), None, "{odd}");
    }
}
