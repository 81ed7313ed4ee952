//! Event streams: their frames, their end, and readers that do not read.

use crate::memory_host::{EPOCH, MemoryHost, session};
use crate::test_server::{TestServer, caller, http, soon};
use futures_util::StreamExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{
    HostStreamItem, SessionStreamItem, StreamClosing, StreamClosingReason,
};
use windlass_protocol::{AccessRight, Fault, LogPosition, RequestError, SessionId, UnixMillis};
use windlass_server::{ClientAttendance, FrontendService, WatchOptions};
use windlass_testkit::time_limits::limit;

fn after(seq: u64) -> WatchOptions {
    let position = LogPosition { seq, epoch: Some(EPOCH) };
    WatchOptions { after: Some(position.into()), ..WatchOptions::default() }
}

/// Reads a stream over TCP up to a text, or to its end.
async fn read_until(response: &mut reqwest::Response, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        match soon(response.chunk()).await.unwrap() {
            Some(chunk) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
            None => break,
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_come_as_frames_whose_id_is_the_cursor() {
    let host = MemoryHost::with_facts(2);
    let server = TestServer::new(host.clone());
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Write);
    let url = format!("http://{address}/v1/sessions/{}/events", session());
    let get = |query: &str| http().get(format!("{url}{query}")).bearer_auth(&token);

    let request = get("?after=0&live=none&user=true").header("windlass-client", "editor");
    let mut response = soon(request.send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let text = read_until(&mut response, &format!("id: 2.{EPOCH}\n")).await;
    assert!(text.starts_with("event: open\ndata: {\"session\":"), "{text}");
    assert!(text.contains(&format!("\n\nevent: fact\nid: 1.{EPOCH}\ndata: {{\"session\":")));
    let options = host.watches.lock().unwrap().last().unwrap().clone();
    assert!(
        options.user == windlass_server::ClientAttendance::Present && options.without_live_events
    );
    assert_eq!(host.callers.lock().unwrap()[0].client.to_string(), "a (editor)");

    // The header of an `EventSource` wins over the query.
    let request = get("?after=0").header("last-event-id", "1");
    let mut response = soon(request.send()).await.unwrap();
    let text = read_until(&mut response, "event: fact").await;
    assert!(text.contains("id: 2.") && !text.contains("id: 1."), "{text}");

    let list = get("?after=1").header("accept", "application/json");
    let list: serde_json::Value = soon(list.send()).await.unwrap().json().await.unwrap();
    assert_eq!(list["reply"]["events"][0]["seq"], 2);
    for refused in [get("?after=x"), get("").header("last-event-id", "1.2.3")] {
        assert_eq!(soon(refused.send()).await.unwrap().status().as_u16(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_until_the_turn_ends_with_it() {
    let host = MemoryHost::with_facts(1);
    let server = TestServer::new(host.clone());
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Read);
    let url = format!("http://{address}/v1/sessions/{}/events?until=turn", session());
    let mut response = soon(http().get(url).bearer_auth(&token).send()).await.unwrap();
    read_until(&mut response, "event: open").await;
    host.add_text("answer");
    host.end_turn();
    host.add_text("the next turn");
    let text = read_until(&mut response, "never").await;
    assert!(text.contains("answer") && !text.contains("the next turn"), "{text}");
    assert!(text.ends_with("event: closing\ndata: {\"reason\":\"turn_ended\"}\n\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_the_same_items_as_a_front_end_of_the_process() {
    let host = MemoryHost::with_facts(5);
    let server = TestServer::new(host.clone());
    server.serve_socket();
    let remote = server.connect_socket().await;
    let mut items = remote.watch_session(&caller(None), session(), after(2)).await.unwrap();
    let mut expected = host.watch_session(&caller(None), session(), after(2)).await.unwrap();
    for number in 0..4 {
        let (got, wanted) = (soon(items.next()).await, soon(expected.next()).await);
        match (got, wanted) {
            (Some(SessionStreamItem::Opened(got)), Some(SessionStreamItem::Opened(wanted))) => {
                assert_eq!((number, got.head), (0, wanted.head));
            }
            (got, wanted) => assert_eq!(got, wanted),
        }
    }
    host.add_text("new");
    assert_eq!(soon(items.next()).await, soon(expected.next()).await);
    let other = SessionId(Uuid::from_u128(9));
    let missing = remote.watch_session(&caller(None), other, after(0)).await;
    assert!(matches!(missing.err(), Some(RequestError::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_ends_its_streams_at_once() {
    let server = TestServer::new(MemoryHost::with_facts(1));
    let address = server.serve_tcp().await;
    let token = server.add_token("phone", AccessRight::Read);
    let remote = TestServer::connect_tcp(address, &token).await;
    let options = WatchOptions::default();
    let mut items = remote.watch_session(&caller(None), session(), options).await.unwrap();
    assert!(matches!(soon(items.next()).await, Some(SessionStreamItem::Opened(_))));
    // Another client with the token does not read at all.
    let mut stalled = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /v1/sessions/{}/events?workspace=endless HTTP/1.1\r\nhost: {address}\r\n\
         authorization: Bearer {token}\r\n\r\n",
        session()
    );
    stalled.write_all(head.as_bytes()).await.unwrap();
    stalled.readable().await.unwrap();

    let revoked_at = Instant::now();
    server.tokens.revoke("phone").unwrap();
    let closing = StreamClosing { reason: StreamClosingReason::TokenRevoked, retry_ms: None };
    assert_eq!(soon(items.next()).await, Some(SessionStreamItem::Closing(closing)));
    assert!(revoked_at.elapsed() < limit(Duration::from_secs(1)));
    assert_eq!(soon(items.next()).await, None);
    // The connection that does not read is cut, too: no producer is left.
    soon(async {
        let taken = &server.host.taken_live_events;
        while std::sync::Arc::strong_count(taken) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(revoked_at.elapsed() < limit(Duration::from_secs(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_ends_its_streams() {
    let server = TestServer::new(MemoryHost::with_facts(1));
    let address = server.serve_tcp().await;
    let expires_at = UnixMillis(server.now.load(Ordering::SeqCst) + 200);
    let now = UnixMillis(0);
    let token =
        server.tokens.add("short", AccessRight::Read, [5; 32], now, Some(expires_at)).unwrap();
    let url = format!("http://{address}/v1/events");
    let mut response = soon(http().get(url).bearer_auth(&token).send()).await.unwrap();
    server.now.fetch_add(200, Ordering::SeqCst);
    let text = read_until(&mut response, "never").await;
    assert!(text.ends_with("event: closing\ndata: {\"reason\":\"token_revoked\"}\n\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_is_not_buffered() {
    let server = TestServer::new(MemoryHost::with_facts(1));
    let path = server.serve_socket();
    let mut stream = UnixStream::connect(path).await.unwrap();
    let head = format!(
        "GET /v1/sessions/{}/events?workspace=endless HTTP/1.1\r\nhost: localhost\r\n\r\n",
        session()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let taken = &server.host.taken_live_events;
    // The producer is endless, so it stops only because nobody takes its events.
    let stable = soon(async {
        let mut before = u64::MAX;
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = taken.load(Ordering::SeqCst);
            if now > 0 && now == before {
                return now;
            }
            before = now;
        }
    })
    .await;
    // A frame has 1 kB. The kernel takes some hundred of them, the server 32 KiB and a frame.
    assert!(stable < 1_000, "{stable} events were taken");
    // It goes on when the reader does.
    let mut buffer = vec![0; 64 << 10];
    soon(async {
        while taken.load(Ordering::SeqCst) < stable + 500 {
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_its_stream() {
    let server = TestServer::new(MemoryHost::with_facts(1));
    server.serve_socket();
    let remote = server.connect_socket().await;
    let me = caller(Some("endless"));
    let mut items = remote.watch_session(&me, session(), WatchOptions::default()).await.unwrap();
    assert!(soon(items.next()).await.is_some());
    assert!(std::sync::Arc::strong_count(&server.host.taken_live_events) > 1);
    drop(items);
    soon(async {
        while std::sync::Arc::strong_count(&server.host.taken_live_events) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_finds_the_server_again_and_goes_on_where_it_was() {
    let host = MemoryHost::with_facts(2);
    let server = TestServer::new(host.clone());
    server.serve_socket();
    let remote = server.connect_socket().await;
    // Without a cursor the stream starts now; a fact of the time without a connection is not lost.
    let options = WatchOptions::default();
    let mut items = remote.watch_session(&caller(None), session(), options).await.unwrap();
    assert!(matches!(soon(items.next()).await, Some(SessionStreamItem::Opened(_))));
    server.stop().await;
    match soon(items.next()).await {
        Some(SessionStreamItem::Disconnected(reason)) => {
            assert_eq!(reason, "the server stops");
        }
        other => panic!("{other:?}"),
    }
    host.add_text("missed");
    server.serve_socket();
    assert!(matches!(soon(items.next()).await, Some(SessionStreamItem::Opened(_))));
    match soon(items.next()).await {
        Some(SessionStreamItem::Fact(record, cursor)) => {
            assert_eq!((record.seq, record.epoch), (3, EPOCH));
            assert_eq!(cursor.to_string(), format!("3.{EPOCH}"));
        }
        other => panic!("{other:?}"),
    }
    // The server can tell whether the position at which the client began is still the same.
    let after = host.watches.lock().unwrap().last().unwrap().after.clone();
    assert_eq!(after.unwrap().to_string(), format!("2.{EPOCH}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_were_closed_in_the_meantime_are_reported_after_a_reconnect() {
    let host = MemoryHost::with_facts(0);
    let (first, second) = (session(), SessionId(Uuid::from_u128(77)));
    host.set_open_sessions(vec![first, second]);
    host.notices.lock().unwrap().push("an old one".to_owned());
    let server = TestServer::new(host.clone());
    server.serve_socket();
    let remote = server.connect_socket().await;
    let mut items = remote.watch_host(&caller(None)).await.unwrap();
    let next =
        async |items: &mut futures_util::stream::BoxStream<'static, HostStreamItem>| match soon(
            items.next(),
        )
        .await
        {
            Some(HostStreamItem::Session { state }) => ("open", state.session),
            Some(HostStreamItem::SessionClosed { session }) => ("closed", session),
            Some(HostStreamItem::Notice { .. }) => ("notice", session()),
            other => panic!("{other:?}"),
        };
    assert_eq!(next(&mut items).await, ("notice", session()));
    assert_eq!(next(&mut items).await, ("open", first));
    assert_eq!(next(&mut items).await, ("open", second));
    server.stop().await;
    host.set_open_sessions(vec![second]);
    // A notice that is repeated to every new client is yielded once.
    host.notices.lock().unwrap().push("a new one".to_owned());
    server.serve_socket();
    assert_eq!(next(&mut items).await, ("closed", first));
    assert_eq!(next(&mut items).await, ("notice", session()));
    assert_eq!(next(&mut items).await, ("open", second));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_silent_for_45_seconds_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    // Answers the first request, and sends the head of a stream to each later one.
    let serving = async {
        let info = r#"{"version":"1","wire":1,"right":"read","client":"a"}"#;
        let opening =
            format!(r#"{{"session":"{}","head":0,"is_busy":false,"is_live":true}}"#, session());
        let mut streams = Vec::new();
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let response = match number {
                0 => format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{info}",
                    info.len()
                ),
                _ => format!("HTTP/1.1 200 OK\r\n\r\nevent: open\ndata: {opening}\n\n"),
            };
            stream.write_all(response.as_bytes()).await.unwrap();
            if number > 0 {
                streams.push(stream);
            }
        }
    };
    let watching = async {
        let address = windlass_server::ServerAddress::Socket(path.clone());
        let remote = windlass_server::RemoteHost::connect(address).await.unwrap();
        let mut items = remote.watch_session(&caller(None), session(), after(0)).await.unwrap();
        assert!(matches!(items.next().await, Some(SessionStreamItem::Opened(_))));
        let opened_at = tokio::time::Instant::now();
        let lost = SessionStreamItem::Disconnected("the server does not answer".to_owned());
        assert_eq!(items.next().await, Some(lost));
        assert_eq!(opened_at.elapsed().as_secs(), 45);
        assert!(matches!(items.next().await, Some(SessionStreamItem::Opened(_))));
    };
    tokio::select! {
        () = watching => {}
        () = serving => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_may_only_read_decides_nothing_about_questions() {
    let host = MemoryHost::with_facts(1);
    let server = TestServer::new(host.clone());
    let address = server.serve_tcp().await;
    let (read, write) =
        (server.add_token("r", AccessRight::Read), server.add_token("w", AccessRight::Write));
    for (token, user, expected) in [
        (&read, "", 200),
        (&read, "?user=true", 403),
        (&read, "?user=false", 403),
        (&write, "?user=true", 200),
        (&write, "?user=false", 200),
    ] {
        let url = format!("http://{address}/v1/sessions/{}/events{user}", session());
        let response = soon(http().get(url).bearer_auth(token).send()).await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{user}");
    }
    assert_eq!(host.watches.lock().unwrap().len(), 3);
    // The client watches without saying that it has a user.
    let remote = TestServer::connect_tcp(address, &read).await;
    let options = WatchOptions { user: ClientAttendance::Present, ..WatchOptions::default() };
    let mut items = remote.watch_session(&caller(None), session(), options).await.unwrap();
    assert!(matches!(soon(items.next()).await, Some(SessionStreamItem::Opened(_))));
    assert_eq!(host.watches.lock().unwrap().last().unwrap().user, ClientAttendance::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_is_not_about_the_token_is_reported_as_it_is() {
    for (status, error, expected) in [
        ("400 Bad Request", r#"{"error":"invalid","text":"no such cursor"}"#, None),
        (
            "401 Unauthorized",
            r#"{"error":"unauthorized"}"#,
            Some(StreamClosingReason::TokenRevoked),
        ),
        (
            "404 Not Found",
            r#"{"error":"not_found","text":"gone"}"#,
            Some(StreamClosingReason::SessionClosed),
        ),
    ] {
        let server = TestServer::new(MemoryHost::with_facts(1));
        let path = server.serve_socket();
        let remote = server.connect_socket().await;
        let options = WatchOptions::default();
        let mut items = remote.watch_session(&caller(None), session(), options).await.unwrap();
        assert!(matches!(soon(items.next()).await, Some(SessionStreamItem::Opened(_))));
        server.stop().await;
        assert!(matches!(soon(items.next()).await, Some(SessionStreamItem::Disconnected(_))));
        // Another server takes the place of the first one, and refuses the client.
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let refusing = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let body = format!(r#"{{"error":{error}}}"#);
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        };
        let (last, ()) = soon(futures_util::future::join(items.next(), refusing)).await;
        match (last.unwrap(), expected) {
            (SessionStreamItem::Closing(closing), Some(reason)) => {
                assert_eq!(closing.reason, reason);
            }
            (SessionStreamItem::Stopped(Fault::Refused { message }), None) => {
                assert_eq!(message, "no such cursor");
            }
            other => panic!("{status}: {other:?}"),
        }
        assert_eq!(soon(items.next()).await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_waits_for_the_limits_of_the_server() {
    let server = TestServer::new(MemoryHost::with_facts(1));
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Read);
    let remote = TestServer::connect_tcp(address, &token).await;
    let me = caller(None);
    let requests = (0..230).map(|_| remote.request(&me, FrontendRequest::ListOpenSessions));
    for answer in soon(futures_util::future::join_all(requests)).await {
        assert!(matches!(answer, Ok(HostResponse::OpenSessions { .. })), "{answer:?}");
    }
}
