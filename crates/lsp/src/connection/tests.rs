//! Tests of a connection against `MockLspServer`, whose messages the tests write.

use super::*;
use crate::connection::framing::FrameDecoder;
use crate::connection::handshake::HandshakeParams;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

#[derive(Default)]
struct TestServerLog(Mutex<Vec<String>>);

impl ServerLog for TestServerLog {
    fn log_line(&self, server: &str, line: &str) {
        lock(&self.0).push(format!("{server}: {line}"));
    }
}

/// Ignores all events of a server.
struct IgnoringEventHandler;

impl ServerEventHandler for IgnoringEventHandler {
    fn on_publish_diagnostics(&self, _: Value) {}
    fn on_refresh(&self) {}
    fn on_close(&self) {}
}

/// The server end of a connection.
struct MockLspServer {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
    frames: FrameDecoder,
    rest: Vec<u8>,
}

impl MockLspServer {
    async fn read(&mut self) -> Value {
        loop {
            let mut piece = self.rest.as_slice();
            let found = self.frames.decode(&mut piece).unwrap();
            self.rest = piece.to_vec();
            if let Some(body) = found {
                return serde_json::from_slice(&body).unwrap();
            }
            let mut buffer = [0; 4096];
            let count = self.reader.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the connection ended");
            self.rest.extend_from_slice(&buffer[..count]);
        }
    }

    /// Returns the next message with this method and skips all others.
    async fn read_method(&mut self, method: &str) -> Value {
        loop {
            let message = self.read().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn send(&mut self, message: Value) {
        self.write(&encode_frame(message.to_string().as_bytes())).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
    }

    async fn respond(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn send_request(&mut self, id: Value, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn send_notification(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

fn handshake_params() -> (
    HandshakeParams<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
    MockLspServer,
    Arc<TestServerLog>,
) {
    let (ours, theirs) = duplex(64 << 10);
    let ((reader, writer), log) = (split(ours), Arc::<TestServerLog>::default());
    let handshake_params = HandshakeParams {
        reader,
        writer,
        process: None,
        server_name: "fake".into(),
        log: Arc::clone(&log) as Arc<dyn ServerLog>,
        workspace: "/w".into(),
        root: "/w/sub".into(),
        workspace_info: ServerWorkspaceInfo {
            settings: json!({"a": 1}),
            root_uri: "file:///w".into(),
            root_name: "w".into(),
        },
        initialize_params: json!({"processId": null}),
        silence_limit: Duration::from_secs(10),
    };
    let (reader, writer) = split(theirs);
    (
        handshake_params,
        MockLspServer { reader, writer, frames: FrameDecoder::default(), rest: Vec::new() },
        log,
    )
}

async fn connect(
    capabilities: Value,
) -> (Arc<LspConnection<IgnoringEventHandler>>, MockLspServer, Arc<TestServerLog>) {
    let (handshake_params, mut server, log) = handshake_params();
    let serve_handshake = async {
        let request = server.read().await;
        assert_eq!((&request["method"], &request["id"]), (&json!("initialize"), &json!(1)));
        assert_eq!(request["params"], json!({"processId": null}));
        server.respond(&request, json!({"capabilities": capabilities})).await;
        assert_eq!(server.read().await["method"], "initialized");
        let configuration = server.read().await;
        assert_eq!(configuration["method"], "workspace/didChangeConfiguration");
        assert_eq!(configuration["params"], json!({"settings": {"a": 1}}));
    };
    let (connection, ()) = tokio::join!(
        LspConnection::handshake(handshake_params, |_| IgnoringEventHandler),
        serve_handshake
    );
    (Arc::new(connection.unwrap()), server, log)
}

fn spawn_request(
    connection: &Arc<LspConnection<IgnoringEventHandler>>,
    method: &'static str,
    limit: Duration,
) -> TestRequestTask {
    let connection = Arc::clone(connection);
    let mut set = JoinSet::new();
    set.spawn(async move { connection.request(method, json!({"of": method}), limit).await });
    TestRequestTask(set)
}

struct TestRequestTask(JoinSet<Result<Value, LspRequestError>>);

impl TestRequestTask {
    async fn result(mut self) -> Result<Value, LspRequestError> {
        self.0.join_next().await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn responses_reach_their_requests_in_any_order() {
    let (connection, mut server, _) = connect(json!({"positionEncoding": "utf-8"})).await;
    assert_eq!(connection.encoding(), PositionEncoding::Utf8);
    let first = spawn_request(&connection, "one", REQUEST_TIMEOUT);
    let one = server.read_method("one").await;
    let second = spawn_request(&connection, "two", REQUEST_TIMEOUT);
    let two = server.read_method("two").await;
    assert_eq!(two["params"], json!({"of": "two"}));
    server.respond(&two, json!(2)).await;
    let error = json!({"code": -32801, "message": "changed\nmeanwhile", "data": {"again": true}});
    server.send(json!({"jsonrpc": "2.0", "id": one["id"], "error": error})).await;
    assert_eq!(second.result().await, Ok(json!(2)));
    let message = "changed meanwhile".to_owned();
    let refusal =
        LspRequestError::ServerError { code: -32801, message, data: json!({"again": true}) };
    assert_eq!(first.result().await, Err(refusal));
    let third = spawn_request(&connection, "three", REQUEST_TIMEOUT);
    let three = server.read_method("three").await;
    server.send(json!({"jsonrpc": "2.0", "id": three["id"]})).await;
    assert_eq!(third.result().await, Ok(Value::Null), "a response without a result is null");
    assert!(!connection.has_pending_requests());
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_request_is_canceled() {
    let (connection, mut server, _) = connect(json!({})).await;
    let started_at = Instant::now();
    assert_eq!(
        connection.request("slow", Value::Null, REQUEST_TIMEOUT).await,
        Err(LspRequestError::TimedOut)
    );
    assert!(
        started_at.elapsed()
            < windlass_testkit::time_limits::limit(REQUEST_TIMEOUT + Duration::from_millis(200))
    );
    let slow = server.read_method("slow").await;
    assert!(slow.get("params").is_none());
    assert_eq!(server.read_method("$/cancelRequest").await["params"]["id"], slow["id"]);
    let dropped = spawn_request(&connection, "dropped", REQUEST_TIMEOUT);
    let request = server.read_method("dropped").await;
    drop(dropped);
    assert_eq!(server.read_method("$/cancelRequest").await["params"]["id"], request["id"]);
    for _ in 0..1_000 {
        server.respond(&request, json!(1)).await;
    }
    let good = spawn_request(&connection, "good", REQUEST_TIMEOUT);
    let request = server.read_method("good").await;
    server.respond(&request, json!(1)).await;
    server.respond(&request, json!(2)).await;
    assert_eq!(
        good.result().await,
        Ok(json!(1)),
        "responses to canceled requests do not count as invalid"
    );
    assert_eq!(connection.close_reason(), None);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_pending_requests_is_limited() {
    let (connection, mut server, _) = connect(json!({})).await;
    let mut all: Vec<_> = (0..MAX_PENDING_REQUESTS)
        .map(|_| spawn_request(&connection, "many", REQUEST_TIMEOUT))
        .collect();
    for _ in 0..MAX_PENDING_REQUESTS {
        server.read_method("many").await;
    }
    let refused = connection.request("one more", Value::Null, REQUEST_TIMEOUT).await;
    assert!(matches!(refused, Err(LspRequestError::ServerError { .. })), "{refused:?}");
    all.pop();
    server.read_method("$/cancelRequest").await;
    assert_eq!(
        connection.request("now", Value::Null, REQUEST_TIMEOUT).await,
        Err(LspRequestError::TimedOut)
    );
    server.read_method("now").await;
    drop(server);
    for each in all {
        assert!(matches!(
            each.result().await,
            Err(LspRequestError::ConnectionLost(_) | LspRequestError::TimedOut)
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn all_requests_fail_at_once_when_the_connection_closes() {
    for (bytes, why) in [
        (&b""[..], "it closed its output"),
        (b"Content-Length: 10\r\n\r\nhalf", "in the middle of a message"),
        (b"Content-Len", "in the middle of a message"),
        (b"Content-Length: 104857600\r\n\r\n", "more than 16 MB"),
        (b"Content-Length: x\r\n\r\n", "without a valid length"),
    ] {
        let (connection, mut server, _) = connect(json!({})).await;
        let waiting = spawn_request(&connection, "x", Duration::from_secs(60));
        let idle = connection.wait_until_idle(REQUEST_TIMEOUT);
        server.read_method("x").await;
        let started_at = Instant::now();
        server.write(bytes).await;
        let _ = server.writer.shutdown().await;
        let Err(LspRequestError::ConnectionLost(reason)) = waiting.result().await else {
            panic!("{why}")
        };
        assert!(reason.contains(why), "{reason}");
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(100))
        );
        let after = connection.request("y", Value::Null, REQUEST_TIMEOUT).await;
        assert_eq!(
            after,
            Err(LspRequestError::ConnectionLost(reason)),
            "later requests fail for the same reason"
        );
        connection.notify("z", Value::Null);
        assert!(idle.await && !connection.has_pending_requests());
        connection.wait_until_closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn server_requests_are_answered_up_to_a_rate_limit() {
    let (connection, mut server, log) = connect(json!({})).await;
    let items = json!({"items": [{"section": "a"}]});
    server.send_request(json!("odd id"), "workspace/configuration", items).await;
    let response = server.read().await;
    assert_eq!((&response["id"], &response["result"]), (&json!("odd id"), &json!([1])));
    server.send_request(json!(7), "no/such", Value::Null).await;
    assert_eq!(server.read().await["error"]["code"], -32601);
    server
        .send_request(
            json!(8),
            "window/showMessageRequest",
            json!({"message": "\u{1b}[31mUpdate\n?"}),
        )
        .await;
    assert_eq!(server.read().await["result"], Value::Null);
    assert_eq!(*lock(&log.0), ["fake: Update ?"]);
    for _ in 0..100 {
        server.send_notification("window/logMessage", json!({"message": "x".repeat(10_000)})).await;
    }
    for id in 0..150 {
        server.send_request(json!(id), "no/such", Value::Null).await;
        server.read().await;
    }
    assert!(lock(&log.0).len() <= 21 && connection.close_reason().is_none());
    assert!(lock(&log.0).iter().all(|line| line.chars().count() < 420));
    for id in 0..100 {
        server.send_request(json!(id), "no/such", Value::Null).await;
    }
    connection.wait_until_closed().await;
    assert!(connection.close_reason().unwrap().contains("200 requests in a second"));
}

#[tokio::test(start_paused = true)]
async fn invalid_messages_are_skipped_up_to_a_limit() {
    let (connection, mut server, _) = connect(json!({})).await;
    for body in
        ["", "null", "[]", "{}", "{\"id\":99999}", "{\"id\":\"x\",\"result\":1}", "{\"id\":-1}"]
    {
        server.write(&encode_frame(body.as_bytes())).await;
    }
    server.write(&encode_frame(b"\xff\xfe")).await;
    server.write(&encode_frame("[".repeat(100_000).as_bytes())).await;
    let good = spawn_request(&connection, "good", REQUEST_TIMEOUT);
    let request = server.read_method("good").await;
    server.respond(&request, json!(1)).await;
    assert_eq!(good.result().await, Ok(json!(1)));
    for id in 0..200 {
        server.send(json!({"jsonrpc": "2.0", "id": 5_000 + id, "result": 1})).await;
    }
    connection.wait_until_closed().await;
    assert!(connection.close_reason().unwrap().contains("too much invalid output"));
}

#[tokio::test(start_paused = true)]
async fn a_response_with_too_many_values_is_not_parsed() {
    let (connection, mut server, _) = connect(json!({})).await;
    let waiting = spawn_request(&connection, "x", REQUEST_TIMEOUT);
    let request = server.read_method("x").await;
    let many = format!("{{\"id\":{},\"result\":[{}0]}}", request["id"], "0,".repeat(500_000));
    let many = encode_frame(many.as_bytes());
    let sent = tokio::time::timeout(REQUEST_TIMEOUT, server.write(&many));
    let (response, sent) = tokio::join!(waiting.result(), sent);
    sent.unwrap();
    let Err(LspRequestError::ServerError { message, .. }) = response else {
        panic!("{response:?}")
    };
    assert!(message.contains("too large"), "{message}");
    assert_eq!(connection.close_reason(), None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_is_disconnected() {
    let (connection, server, _) = connect(json!({})).await;
    let text = "x".repeat(1 << 20);
    connection.notify("textDocument/didOpen", json!({"text": text}));
    let started_at = Instant::now();
    let response = connection.request("x", Value::Null, Duration::from_secs(1)).await;
    assert_eq!(
        (response, started_at.elapsed().as_millis() / 100),
        (Err(LspRequestError::TimedOut), 10)
    );
    connection.wait_until_closed().await;
    assert!(
        connection.close_reason().unwrap().contains("for 5 s"),
        "{:?}",
        connection.close_reason()
    );
    assert!(started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(6)));
    drop(server);

    let (connection, _server, _) = connect(json!({})).await;
    for _ in 0..100 {
        connection.notify("textDocument/didOpen", json!({"text": text}));
    }
    let queued = connection.shared.queued_bytes.load(Ordering::Relaxed);
    assert!(
        connection.close_reason().unwrap().contains("does not read")
            && queued < MAX_QUEUED_BYTES + (2 << 20)
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_is_disconnected_after_three_unanswered_requests() {
    let limit = Duration::from_secs(4);
    let (connection, mut server, _) = connect(json!({})).await;
    for round in 0..3 {
        assert_eq!(connection.close_reason(), None, "{round}");
        let (one, two) =
            (spawn_request(&connection, "a", limit), spawn_request(&connection, "b", limit));
        assert_eq!(one.result().await, Err(LspRequestError::TimedOut));
        assert!(two.result().await.is_err(), "requests sent together count as one");
    }
    assert!(connection.close_reason().unwrap().contains("3 requests in a row"));
    server.read_method("a").await;

    let (connection, mut server, _) = connect(json!({})).await;
    for _ in 0..9 {
        assert_eq!(
            connection.request("a", Value::Null, limit).await,
            Err(LspRequestError::TimedOut)
        );
        server.send_notification("$/progress", json!({})).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(connection.close_reason(), None, "a slow server stays connected");
    for _ in 0..9 {
        let soon = Duration::from_millis(100);
        assert_eq!(
            connection.request("a", Value::Null, soon).await,
            Err(LspRequestError::TimedOut)
        );
    }
    assert_eq!(connection.close_reason(), None, "short timeouts do not count");
}

#[tokio::test(start_paused = true)]
async fn capabilities_come_from_initialize_and_registrations() {
    let (connection, mut server, _) =
        connect(json!({"hoverProvider": true, "definitionProvider": false})).await;
    assert!(
        connection.supports("textDocument/hover")
            && !connection.supports("textDocument/definition")
    );
    assert!(!connection.supports("textDocument/diagnostic") && !connection.is_watched("a.c"));
    let registrations = json!({"registrations": [
        {"id": "d", "method": "textDocument/diagnostic", "registerOptions": {"identifier": "x"}},
        {"id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": {"watchers": [
            {"globPattern": {"baseUri": "file:///w/sub", "pattern": "**/*.c"}},
            {"globPattern": "*.h"}]}},
        {"id": "c", "method": "textDocument/prepareCallHierarchy"},
    ]});
    server.send_request(json!(1), "client/registerCapability", registrations).await;
    assert_eq!(server.read().await["result"], Value::Null);
    assert_eq!(
        connection.method_options("textDocument/diagnostic"),
        Some(json!({"identifier": "x"}))
    );
    assert!(connection.is_watched("sub/a.c") && !connection.is_watched("a.c"));
    assert!(
        connection.is_watched("sub/a.h") && !connection.is_watched("a.h"),
        "patterns are relative to the root of the server"
    );
    assert!(connection.supports("callHierarchy/incomingCalls"));
    let removed = json!({"unregisterations": [{"id": "d", "method": "textDocument/diagnostic"}]});
    server.send_request(json!(2), "client/unregisterCapability", removed).await;
    server.read().await;
    assert!(!connection.supports("textDocument/diagnostic") && connection.is_watched("sub/a.c"));
}

#[tokio::test(start_paused = true)]
async fn waiting_until_idle_is_limited() {
    let (connection, mut server, _) = connect(json!({})).await;
    assert!(connection.wait_until_idle(Duration::ZERO).await && connection.busy_text().is_none());
    let begin = json!({"kind": "begin", "title": "indexing", "percentage": 45});
    server.send_notification("$/progress", json!({"token": 1, "value": begin})).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(connection.busy_text().as_deref(), Some("indexing 45 %"));
    assert!(!connection.wait_until_idle(REQUEST_TIMEOUT).await);
    let end = json!({"token": 1, "value": {"kind": "end"}});
    let (idle, ()) = tokio::join!(
        connection.wait_until_idle(REQUEST_TIMEOUT),
        server.send_notification("$/progress", end)
    );
    assert!(idle && connection.busy_text().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_invalid_initialize_response_fails_the_handshake() {
    for (response, why) in [
        (json!({"result": {"capabilities": null}}), "`initialize` is invalid"),
        (json!({"result": [1]}), "`initialize` is invalid"),
        (
            json!({"error": {"code": 1, "message": "no license"}}),
            "rejected `initialize`: no license",
        ),
    ] {
        let (handshake_params, mut server, _) = handshake_params();
        let serve_handshake = async {
            let request = server.read().await;
            let mut response = response.clone();
            response["id"] = request["id"].clone();
            server.send(response).await;
        };
        let (connection, ()) = tokio::join!(
            LspConnection::handshake(handshake_params, |_| IgnoringEventHandler),
            serve_handshake
        );
        let error = connection.err().unwrap();
        assert!(error.contains(why), "{error}");
    }
}
