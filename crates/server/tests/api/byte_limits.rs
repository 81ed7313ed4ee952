//! Limits on the size and number of requests, and responses that browsers must not run.

use crate::memory_host::{BLOB, MemoryHost, session};
use crate::test_server::{TestServer, http, soon};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_protocol::AccessRight;
use windlass_server::AccessLogEntry;

/// Sends bytes and returns the head and the start of the response.
async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = vec![0; 4096];
    let length = soon(stream.read(&mut response)).await.unwrap();
    String::from_utf8_lossy(&response[..length]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_and_bodies_that_are_too_long_are_refused_before_they_are_read() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Admin);
    let head = |path: &str, more: &str| {
        format!("{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{more}\r\n")
    };
    let long = |bytes: usize| format!("x-long: {}\r\n", "a".repeat(bytes));
    let fits = exchange(address, &head("GET /v1", &long(15 << 10))).await;
    assert!(fits.starts_with("HTTP/1.1 200"), "{fits}");
    for bytes in [16 << 10, 40 << 10] {
        let refused = exchange(address, &head("GET /v1", &long(bytes))).await;
        assert!(refused.starts_with("HTTP/1.1 431"), "{refused}");
    }
    let body = |media_type: &str, bytes: usize| {
        format!("content-type: {media_type}\r\ncontent-length: {bytes}\r\n")
    };
    let json = body("application/json", (4 << 20) + 1);
    let refused = exchange(address, &head("POST /v1/sessions", &json)).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    let blob = body("application/octet-stream", (20 << 20) + 1);
    let refused = exchange(address, &head("POST /v1/blobs?name=a", &blob)).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    // This route needs no token, and expects a short code.
    let login = format!("POST /v1/login HTTP/1.1\r\nhost: {address}\r\n");
    let login = format!("{login}{}\r\n", body("application/json", (16 << 10) + 1));
    let refused = exchange(address, &login).await;
    assert!(refused.starts_with("HTTP/1.1 413") && refused.contains("16 KiB"), "{refused}");
    // A body without a length is counted while it comes.
    let mut stream = TcpStream::connect(address).await.unwrap();
    let chunked = "content-type: application/json\r\ntransfer-encoding: chunked\r\n";
    stream.write_all(head("POST /v1/sessions", chunked).as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..5 {
        // The server may have answered and closed before the last chunk.
        let _ = stream.write_all(chunk.as_bytes()).await;
    }
    let _ = stream.write_all(b"0\r\n\r\n").await;
    soon(async {
        let is_refused = |entry: &AccessLogEntry| entry.status == 413;
        while server.log.lock().unwrap().iter().filter(|entry| is_refused(entry)).count() < 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(server.host.callers.lock().unwrap().is_empty(), "no host was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_twenty_mebibytes_can_be_stored() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Write);
    let request = http()
        .post(format!("http://{address}/v1/blobs?name=a"))
        .bearer_auth(token)
        .header("content-type", "application/octet-stream")
        .body(vec![7; 20 << 20]);
    assert_eq!(soon(request.send()).await.unwrap().status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_is_a_download_that_runs_nothing() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Read);
    let url = format!("http://{address}/v1/sessions/{}/blobs/{}", session(), "0".repeat(64));
    let response = soon(http().get(url).bearer_auth(token).send()).await.unwrap();
    let headers = response.headers();
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(headers["content-disposition"], "attachment");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert_eq!(response.bytes().await.unwrap(), BLOB);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_sends_too_many_requests_must_wait_and_others_need_not() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let (one, two) =
        (server.add_token("one", AccessRight::Read), server.add_token("two", AccessRight::Read));
    let http = http();
    let send = |token: &str| {
        let request = http.get(format!("http://{address}/v1")).bearer_auth(token);
        async { soon(request.send()).await.unwrap() }
    };
    let mut allowed = 0;
    // 50 more are allowed each second, so a machine that is slower never reaches the limit.
    let refused = loop {
        let responses = futures_util::future::join_all((0..50).map(|_| send(&one))).await;
        allowed += responses.iter().filter(|response| response.status().is_success()).count();
        match responses.into_iter().find(|response| !response.status().is_success()) {
            Some(refused) => break refused,
            None if allowed > 20_000 => panic!("no limit"),
            None => {}
        }
    };
    assert!(allowed >= 200, "{allowed}");
    assert_eq!(refused.status().as_u16(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let body: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["error"], "too_many");
    assert_eq!(send(&two).await.status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_may_have_32_streams_and_streams_keep_no_request_out() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Read);
    let http = http();
    let open = || {
        let request = http.get(format!("http://{address}/v1/events")).bearer_auth(&token);
        async { soon(request.send()).await.unwrap() }
    };
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(open().await);
        assert_eq!(streams.last().unwrap().status().as_u16(), 200);
    }
    let refused = open().await;
    assert_eq!(refused.status().as_u16(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let request = http.get(format!("http://{address}/v1")).bearer_auth(&token);
    assert_eq!(soon(request.send()).await.unwrap().status().as_u16(), 200);
    // A stream that ends gives its place back, as soon as the server sees it.
    streams.pop();
    soon(async {
        while open().await.status().as_u16() != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
