//! Tests of a connection's timeouts, on a clock of their own.

use super::connection::Connection;
use super::connection_loop::serve_connection;
use super::{ApiServer, ServerConfig};
use crate::access_tokens::{
    AccessTokenStore, AccessTokens, PAGE_VALIDITY_MS, TokenKind, TokenRegistry,
};
use crate::request_checks::{AllowedHosts, Scheme, Transport};
use crate::{Caller, FrontendService, WatchOptions};
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{HostStreamItem, SessionStreamItem};
use windlass_protocol::{AccessRight, Fault, RequestError, SessionId, UnixMillis};

/// A host whose requests take a minute, and whose sessions have stopped.
struct SilentHost {
    /// Gets a permit for each finished request.
    finished: Arc<Semaphore>,
}

#[async_trait]
impl FrontendService for SilentHost {
    async fn request(
        &self,
        _caller: &Caller,
        _request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        tokio::time::sleep(Duration::from_secs(60)).await;
        self.finished.add_permits(1);
        Ok(HostResponse::Done)
    }

    async fn watch_session(
        &self,
        _caller: &Caller,
        _session: SessionId,
        _options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        let fault = Fault::Internal { message: "it has ended".to_owned() };
        Ok(stream::iter([SessionStreamItem::Stopped(fault)]).boxed())
    }

    async fn watch_host(
        &self,
        _caller: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
        Ok(stream::pending().boxed())
    }
}

struct NoStore;

impl AccessTokenStore for NoStore {
    fn save(&self, _tokens: &AccessTokens) -> Result<(), Fault> {
        Ok(())
    }
}

/// Bytes that a connection takes before the other end reads.
const BUFFER_BYTES: usize = 64 << 10;

fn config(tokens: &Arc<TokenRegistry>) -> ServerConfig {
    let started = Instant::now();
    ServerConfig {
        version: "1".to_owned(),
        host_name: "desk".to_owned(),
        roots: Box::new(|_| Vec::new()),
        user_name: "anna".to_owned(),
        extra_hosts: Vec::new(),
        tokens: Arc::clone(tokens),
        node_token: None,
        clock: Box::new(move || UnixMillis(started.elapsed().as_millis() as u64)),
        random: Box::new(|| Ok([0; 32])),
        access_log: Box::new(|_| {}),
        metrics: Default::default(),
    }
}

fn registry() -> Arc<TokenRegistry> {
    Arc::new(TokenRegistry::new(AccessTokens::default(), Box::new(NoStore)))
}

fn server(host: SilentHost) -> Arc<ApiServer> {
    ApiServer::new(config(&registry()), Arc::new(host))
}

fn silent_server() -> Arc<ApiServer> {
    server(SilentHost { finished: Arc::new(Semaphore::new(0)) })
}

/// Connections over TCP to the port 4270.
fn tcp() -> Transport {
    Transport::Tcp(Arc::new(AllowedHosts::new(4270, &[], Scheme::Http)))
}

/// Serves a connection and returns its other end.
fn connect(tasks: &mut JoinSet<()>, stop: &CancellationToken) -> DuplexStream {
    connect_to(&silent_server(), (&Transport::Socket, BUFFER_BYTES), tasks, stop)
}

fn connect_to(
    server: &Arc<ApiServer>,
    (transport, buffer_bytes): (&Transport, usize),
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> DuplexStream {
    let slots = Arc::new(Semaphore::new(1));
    let slot = slots.try_acquire_owned().unwrap();
    let (ours, theirs) = tokio::io::duplex(buffer_bytes);
    tasks.spawn(serve_connection(theirs, Connection::new(server, transport, stop, slot)));
    ours
}

/// Reads up to the end of the connection, and returns the text and the time that it took.
async fn read_to_end(stream: &mut DuplexStream) -> (String, u64) {
    let started = Instant::now();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    (String::from_utf8(bytes).unwrap(), started.elapsed().as_secs())
}

async fn read_until(stream: &mut DuplexStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains(end) {
        bytes.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_in_time_ends_the_connection() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    for start in ["", "GET /v1 HT"] {
        let mut stream = connect(&mut tasks, &stop);
        stream.write_all(start.as_bytes()).await.unwrap();
        let (text, seconds) = read_to_end(&mut stream).await;
        assert_eq!((text.as_str(), seconds), ("", 10));
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let mut stream = connect(&mut tasks, &stop);
    stream.write_all(b"GET /v1 HTTP/1.1\r\n\r\n").await.unwrap();
    let (text, seconds) = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert_eq!(seconds, 75);
    // Without a token there is no reason to wait.
    let mut stream = connect(&mut tasks, &stop);
    stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.unwrap();
    let (text, seconds) = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 204") && text.contains("connection: close"), "{text}");
    assert_eq!(seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_in_time_is_refused() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let mut stream = connect(&mut tasks, &stop);
    let head = "POST /v1/prompts/prepare HTTP/1.1\r\ncontent-type: application/json\r\n\
                content-length: 20\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let started = Instant::now();
    let text = read_until(&mut stream, "\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_has_a_heartbeat_every_15_seconds_and_ends_when_the_server_stops() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let mut stream = connect(&mut tasks, &stop);
    stream.write_all(b"GET /v1/events HTTP/1.1\r\n\r\n").await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    for _ in 0..20 {
        let started = Instant::now();
        let text = read_until(&mut stream, "\"head\":0}\n\n").await;
        assert!(text.contains("event: heartbeat\ndata: "), "{text}");
        assert_eq!(started.elapsed().as_secs(), 15);
    }
    stop.cancel();
    let (text, seconds) = read_to_end(&mut stream).await;
    assert!(
        text.contains("event: closing\ndata: {\"reason\":\"server_stopping\",\"retry_ms\":1000}")
    );
    assert_eq!(seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_on_when_its_client_leaves() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let finished = Arc::new(Semaphore::new(0));
    let host = SilentHost { finished: Arc::clone(&finished) };
    let server = server(host);
    let mut stream = connect_to(&server, (&Transport::Socket, BUFFER_BYTES), &mut tasks, &stop);
    let head = "PUT /v1/settings HTTP/1.1\r\ncontent-type: application/json\r\n\
                content-length: 22\r\n\r\n{\"name\":\"a\",\"value\":1}";
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(stream);
    let started = Instant::now();
    while tasks.join_next().await.is_some() {}
    assert!(started.elapsed() < Duration::from_secs(1), "the connection has ended");
    let _ = finished.acquire().await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 59);
}

#[tokio::test(start_paused = true)]
async fn a_query_ends_when_its_client_leaves() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let finished = Arc::new(Semaphore::new(0));
    let server = server(SilentHost { finished: Arc::clone(&finished) });
    let transport = (&Transport::Socket, BUFFER_BYTES);
    let mut stream = connect_to(&server, transport, &mut tasks, &stop);
    stream.write_all(b"GET /v1/status HTTP/1.1\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(stream);
    while tasks.join_next().await.is_some() {}
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(finished.available_permits(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_ends_the_connection() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let mut stream = connect_to(&silent_server(), (&Transport::Socket, 256), &mut tasks, &stop);
    stream.write_all(b"GET /openapi.json HTTP/1.1\r\n\r\n").await.unwrap();
    let started = Instant::now();
    // A client that reads slowly keeps its connection.
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        stream.read_exact(&mut [0; 100]).await.unwrap();
    }
    assert!(tasks.try_join_next().is_none());
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(started.elapsed().as_secs(), 150 + 60);
}

#[tokio::test(start_paused = true)]
async fn an_event_stream_that_is_not_read_stays() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let mut stream = connect_to(&silent_server(), (&Transport::Socket, 256), &mut tasks, &stop);
    stream.write_all(b"GET /v1/events HTTP/1.1\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(tasks.try_join_next().is_none());
    for _ in 0..10 {
        read_until(&mut stream, "event: heartbeat").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_stream_that_has_ended_and_is_not_read_is_cut() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let finished = Arc::new(Semaphore::new(0));
    let server = server(SilentHost { finished });
    // The head of the response alone does not fit.
    let mut stream = connect_to(&server, (&Transport::Socket, 64), &mut tasks, &stop);
    let session = SessionId(uuid::Uuid::from_u128(1));
    let head = format!("GET /v1/sessions/{session}/events HTTP/1.1\r\n\r\n");
    let started = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_token_may_have_16_requests_under_way() {
    let (mut tasks, stop, tokens) = (JoinSet::new(), CancellationToken::new(), registry());
    let add = |name: &str, bits| {
        let now = UnixMillis(0);
        tokens.add(name, AccessRight::Admin, [bits; 32], now, None).unwrap()
    };
    let (one, two) = (add("one", 1), add("two", 2));
    let host = SilentHost { finished: Arc::new(Semaphore::new(0)) };
    let server = ApiServer::new(config(&tokens), Arc::new(host));
    let tcp = tcp();
    let mut send = |token: &str| {
        let stream = connect_to(&server, (&tcp, BUFFER_BYTES), &mut tasks, &stop);
        let head = format!(
            "GET /v1/status HTTP/1.1\r\nhost: localhost:4270\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        (stream, head)
    };
    let mut waiting = Vec::new();
    for token in std::iter::repeat_n(&one, 16).chain([&two]) {
        let (mut stream, head) = send(token);
        stream.write_all(head.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mut refused, head) = send(&one);
    refused.write_all(head.as_bytes()).await.unwrap();
    let text = read_until(&mut refused, "\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 429") && text.contains("retry-after: 1"), "{text}");
    for mut stream in waiting {
        let text = read_until(&mut stream, "\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 204"), "{text}");
    }
    refused.write_all(head.as_bytes()).await.unwrap();
    let text = read_until(&mut refused, "HTTP/1.1 204").await;
    assert!(text.ends_with("HTTP/1.1 204"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn logins_are_counted_before_their_bodies_are_read() {
    let (mut tasks, stop, server) = (JoinSet::new(), CancellationToken::new(), silent_server());
    let tcp = tcp();
    let head = "POST /v1/login HTTP/1.1\r\nhost: localhost:4270\r\n\
                content-type: application/json\r\ncontent-length: 20\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..11 {
        let mut stream = connect_to(&server, (&tcp, BUFFER_BYTES), &mut tasks, &stop);
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
        tokio::task::yield_now().await;
    }
    let started = Instant::now();
    let (text, _) = read_to_end(streams.last_mut().unwrap()).await;
    assert!(text.starts_with("HTTP/1.1 429"), "{text}");
    assert_eq!(started.elapsed().as_secs(), 0);
    let (text, seconds) = read_to_end(streams.first_mut().unwrap()).await;
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert_eq!(seconds, 60);
}

#[tokio::test(start_paused = true)]
async fn no_token_is_made_without_random_bits() {
    let (mut tasks, stop, tokens) = (JoinSet::new(), CancellationToken::new(), registry());
    let random = || Err(Fault::Internal { message: "no random bits".to_owned() });
    let config = ServerConfig { random: Box::new(random), ..config(&tokens) };
    let host = SilentHost { finished: Arc::new(Semaphore::new(0)) };
    let server = ApiServer::new(config, Arc::new(host));
    for (path, body) in [("/v1/links", ""), ("/v1/tokens", r#"{"name":"a","right":"read"}"#)] {
        let transport = (&Transport::Socket, BUFFER_BYTES);
        let mut stream = connect_to(&server, transport, &mut tasks, &stop);
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let text = read_until(&mut stream, "no random bits").await;
        assert!(text.starts_with("HTTP/1.1 500"), "{text}");
    }
    assert!(tokens.rows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_lasts_as_long_as_its_token_even_if_it_is_not_read() {
    let (mut tasks, stop, tokens) = (JoinSet::new(), CancellationToken::new(), registry());
    let code = tokens.new_login_code(AccessRight::Read, [1; 32], UnixMillis(0));
    let token = tokens.redeem_login_code(&code, [2; 32], UnixMillis(0)).unwrap();
    let host = SilentHost { finished: Arc::new(Semaphore::new(0)) };
    let server = ApiServer::new(config(&tokens), Arc::new(host));
    let mut stream = connect_to(&server, (&tcp(), 256), &mut tasks, &stop);
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nhost: localhost:4270\r\norigin: http://localhost:4270\r\n\
         x-windlass: page\r\ncookie: windlass={token}\r\n\r\n"
    );
    let started = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    // Each use of the token extends it.
    let validity = Duration::from_millis(PAGE_VALIDITY_MS);
    tokio::time::sleep(validity / 2).await;
    assert!(tokens.authenticate(&token, TokenKind::Page, (server.config.clock)()).is_some());
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(started.elapsed().as_secs(), (validity / 2 + validity).as_secs());
}
