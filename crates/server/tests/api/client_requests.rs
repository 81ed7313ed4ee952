//! Requests of the client over the socket and over TCP.

use crate::memory_host::{BLOB, MemoryHost, session};
use crate::test_server::{TestServer, caller, soon};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use secrecy::SecretString;
use std::os::unix::fs::PermissionsExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use url::Url;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    AccessRight, BlobRef, CallId, ClientKind, OpError, OpId, PermissionAnswer, QueryReply,
    RequestError, SessionId, SessionOp, SessionQuery,
};
use windlass_server::{FrontendService, NewTokenRequest, RemoteHost, ServerAddress};

fn op(id: u128, op: SessionOp) -> FrontendRequest {
    FrontendRequest::SessionOp { session: session(), id: Some(OpId(Uuid::from_u128(id))), op }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_ours_alone_and_its_clients_have_all_rights() {
    let host = MemoryHost::with_facts(3);
    let server = TestServer::new(host.clone());
    let path = server.serve_socket();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let remote = server.connect_socket().await;
    let info = remote.info();
    assert_eq!((info.version.as_str(), info.wire), ("1.2.3", 1));
    assert_eq!((info.client.as_str(), info.right), ("anna", AccessRight::Admin));
    assert_eq!((info.host.as_str(), info.roots.as_slice()), ("desk", &["/w".to_owned()][..]));
    let answer = soon(remote.request(&caller(Some("/a b")), FrontendRequest::status())).await;
    assert!(matches!(answer, Ok(HostResponse::Status { .. })), "{answer:?}");
    let seen = host.callers.lock().unwrap().last().unwrap().clone();
    assert_eq!((seen.client.name.as_str(), seen.client.kind), ("anna", ClientKind::Terminal));
    assert_eq!((seen.right, seen.workspace.as_deref()), (AccessRight::Admin, Some("/a b")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_that_reaches_the_socket_is_refused() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let path = server.serve_socket();
    let mut stream = UnixStream::connect(path).await.unwrap();
    let head = "GET /v1 HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = vec![0; 1024];
    let length = soon(stream.read(&mut response)).await.unwrap();
    let response = String::from_utf8_lossy(&response[..length]);
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_errors_of_the_host_come_back_unchanged() {
    let host = MemoryHost::with_facts(3);
    let server = TestServer::new(host.clone());
    server.serve_socket();
    let remote = server.connect_socket().await;
    let me = caller(None);
    let ask = async |request| soon(remote.request(&me, request)).await;

    let query = SessionQuery::Events { session: session(), after: 1, limit: Some(1) };
    let events = ask(FrontendRequest::Query { query }).await.unwrap();
    let mut expected = host.facts()[1].clone();
    expected.epoch = 0;
    let reply = QueryReply::Events { events: vec![expected] };
    assert_eq!(events, HostResponse::Reply { reply });

    let content = BASE64.encode(BLOB);
    let blob = BlobRef::for_bytes(BLOB);
    let put = FrontendRequest::PutBlob { name: "a b?&".to_owned(), bytes: content.clone() };
    match ask(put).await.unwrap() {
        HostResponse::BlobStored { attachment } => {
            assert_eq!((attachment.name.as_str(), &attachment.blob), ("a b?&", &blob));
        }
        other => panic!("{other:?}"),
    }
    let bytes = ask(FrontendRequest::GetBlob { session: session(), blob }).await;
    assert_eq!(bytes, Ok(HostResponse::Bytes { bytes: content }));

    let done = ask(FrontendRequest::CloseSession { session: session() }).await;
    assert_eq!(done, Ok(HostResponse::Done));
    let accepted = ask(op(1, SessionOp::prompt("hello"))).await;
    assert_eq!(accepted, Ok(HostResponse::OpAccepted { seq: 4 }));
    let call = CallId(Uuid::from_u128(5));
    let rejected = ask(op(2, SessionOp::answer_permission(call, PermissionAnswer::Once))).await;
    assert_eq!(rejected, Ok(HostResponse::OpRejected { error: OpError::NoQuestion }));
    let other = SessionId(Uuid::from_u128(99));
    let id = Some(OpId(Uuid::from_u128(3)));
    let missing =
        ask(FrontendRequest::SessionOp { session: other, id, op: SessionOp::Compact }).await;
    assert_eq!(
        missing,
        Err(RequestError::NotFound { text: "This session is not open.".to_owned() })
    );
    for refused in [
        FrontendRequest::SessionOp { session: session(), id: None, op: SessionOp::Compact },
        FrontendRequest::AttachFile { path: "/etc/passwd".to_owned() },
    ] {
        assert!(matches!(ask(refused).await, Err(RequestError::Invalid { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_limits_what_a_client_may_do_and_admins_manage_tokens() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    server.serve_socket();
    let admin = server.connect_socket().await;
    let request =
        NewTokenRequest { name: "phone".to_owned(), right: AccessRight::Read, expires_at: None };
    let secret = admin.new_token(&request).await.unwrap();
    let phone = TestServer::connect_tcp(address, &secret.token).await;
    assert_eq!(phone.info().right, AccessRight::Read);
    assert_eq!(phone.info().client, "phone");
    let refused = phone.request(&caller(None), op(1, SessionOp::Compact)).await;
    assert_eq!(refused, Err(RequestError::Forbidden { needs: AccessRight::Write }));
    assert!(matches!(phone.tokens().await, Err(RequestError::Forbidden { .. })));
    assert!(matches!(admin.new_token(&request).await, Err(RequestError::Conflict { .. })));
    let names: Vec<String> =
        admin.tokens().await.unwrap().into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["phone"]);
    admin.revoke_token("phone").await.unwrap();
    let refused = phone.request(&caller(None), FrontendRequest::status()).await;
    assert_eq!(refused, Err(RequestError::Unauthorized));
    assert!(matches!(admin.revoke_token("phone").await, Err(RequestError::NotFound { .. })));
    assert!(matches!(admin.revoke_token("a/b").await, Err(RequestError::Invalid { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_revision_is_refused_with_the_side_that_is_older() {
    for (wire, expected) in [(0, "The server is older"), (2, "This program is older")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let body = format!(r#"{{"version":"9","wire":{wire},"right":"read","client":"a"}}"#);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).await.unwrap();
        };
        let url = Url::parse(&format!("http://{address}")).unwrap();
        let address = ServerAddress::Url(url, SecretString::from("a"));
        let (connected, ()) = tokio::join!(soon(RemoteHost::connect(address)), serving);
        match connected.err() {
            Some(RequestError::Conflict { text }) => assert!(text.contains(expected), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let address = ServerAddress::Socket(folder.path().join("missing"));
    let refused = soon(RemoteHost::connect(address)).await.err();
    assert!(matches!(refused, Some(RequestError::Unavailable { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_health_and_the_document_are_served() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let token = server.add_token("a", AccessRight::Read);
    let get = async |path: &str| {
        let http = crate::test_server::http();
        let request = http.get(format!("http://{address}{path}")).bearer_auth(&token);
        soon(request.send()).await.unwrap()
    };
    let metrics = get("/metrics").await;
    assert!(metrics.headers()["content-type"].to_str().unwrap().contains("openmetrics"));
    metrics.text().await.unwrap();
    let document: serde_json::Value = get("/openapi.json").await.json().await.unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(get("/healthz").await.status().as_u16(), 204);
    assert_eq!(get("/missing").await.status().as_u16(), 404);
    let text = get("/metrics").await.text().await.unwrap();
    for line in [
        r#"windlass_http_requests_total{method="GET",route="/metrics",status="200"} 1"#,
        r#"windlass_http_requests_total{method="GET",route="/healthz",status="204"} 1"#,
        r#"windlass_http_requests_total{method="GET",route="none",status="404"} 1"#,
        r#"windlass_http_refusals_total{reason="not_found"} 1"#,
        "windlass_http_request_duration_seconds_count 4",
        r#"windlass_event_streams{transport="tcp"} 0"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
    }
}
