//! Login of a page: one-time codes, cookies and when they count.

use crate::memory_host::MemoryHost;
use crate::test_server::{TestServer, http, soon};
use reqwest::{Certificate, RequestBuilder, Response};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use windlass_protocol::{AccessRight, ClientKind};

async fn send(request: RequestBuilder) -> Response {
    soon(request.send()).await.unwrap()
}

async fn log_in(address: SocketAddr, code: &str) -> Response {
    send(http().post(format!("http://{address}/v1/login")).json(&json!({ "code": code }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_code_gives_a_cookie_once_and_for_a_minute() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    server.serve_socket();
    let admin = server.connect_socket().await;
    let code = admin.new_login_code().await.unwrap();
    assert_eq!(code.expires_in_ms, 60_000);
    let response = log_in(address, &code.code).await;
    assert_eq!(response.status().as_u16(), 204);
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("windlass=wlt_"), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "a browser ignores such a cookie without TLS");
    let again = log_in(address, &code.code).await;
    assert_eq!(again.status().as_u16(), 401);
    assert!(!again.headers().contains_key("set-cookie"));
    let late = admin.new_login_code().await.unwrap();
    server.now.fetch_add(60_000, Ordering::SeqCst);
    assert_eq!(log_in(address, &late.code).await.status().as_u16(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_logins_a_minute_are_tried() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tcp().await;
    let mut statuses = Vec::new();
    for _ in 0..11 {
        statuses.push(log_in(address, "wrong").await.status().as_u16());
    }
    assert_eq!(statuses[..10], [401; 10]);
    assert_eq!(statuses[10], 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_counts_only_for_scripts_of_our_own_page() {
    let host = MemoryHost::with_facts(0);
    let server = TestServer::new(host.clone());
    let address = server.serve_tcp().await;
    let code = server.tokens.new_login_code(
        AccessRight::Write,
        [9; 32],
        windlass_protocol::UnixMillis(server.now.load(Ordering::SeqCst)),
    );
    let response = log_in(address, &code).await;
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let origin = format!("http://{address}");
    let get = |headers: &[(&str, &str)]| {
        let mut request = http().get(format!("http://{address}/v1/status"));
        request = request.header("cookie", format!("other=1; {cookie}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        async { send(request).await.status().as_u16() }
    };
    let page = ("x-windlass", "page");
    assert_eq!(get(&[page, ("origin", &origin)]).await, 200);
    assert_eq!(get(&[page, ("sec-fetch-site", "same-origin")]).await, 200);
    assert_eq!(host.callers.lock().unwrap()[0].client.kind, ClientKind::WebPage);
    assert_eq!(host.callers.lock().unwrap()[0].right, AccessRight::Write);
    assert_eq!(get(&[]).await, 401);
    assert_eq!(get(&[page]).await, 401);
    assert_eq!(get(&[("origin", &origin)]).await, 401);
    assert_eq!(get(&[page, ("sec-fetch-site", "none")]).await, 401);
    assert_eq!(get(&[page, ("sec-fetch-site", "cross-site")]).await, 403);
    assert_eq!(get(&[page, ("origin", "https://evil.example")]).await, 403);
    let as_bearer = format!("Bearer {}", cookie.trim_start_matches("windlass="));
    assert_eq!(get(&[("authorization", &as_bearer)]).await, 401);

    let logout = http().post(format!("http://{address}/v1/logout")).header("cookie", &cookie);
    let response = send(logout.header(page.0, page.1).header("origin", &origin)).await;
    assert_eq!(response.status().as_u16(), 204);
    assert!(response.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(get(&[page, ("origin", &origin)]).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tls_the_cookie_is_bound_to_the_host() {
    let server = TestServer::new(MemoryHost::with_facts(0));
    let address = server.serve_tls().await;
    let token = server.add_token("a", AccessRight::Admin);
    let certificate = include_bytes!("../fixtures/localhost.cert.pem");
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([Certificate::from_pem(certificate).unwrap()])
        .build()
        .unwrap();
    let url = format!("https://localhost:{}", address.port());
    let link = send(http.post(format!("{url}/v1/links")).bearer_auth(&token)).await;
    let link: serde_json::Value = link.json().await.unwrap();
    let login = http.post(format!("{url}/v1/login")).json(&json!({ "code": link["code"] }));
    let response = send(login.header("origin", &url)).await;
    assert_eq!(response.status().as_u16(), 204);
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-windlass=wlt_") && cookie.contains("; Secure"), "{cookie}");
    let other_scheme = format!("http://localhost:{}", address.port());
    let request = http.get(format!("{url}/v1")).bearer_auth(&token).header("origin", other_scheme);
    assert_eq!(send(request).await.status().as_u16(), 403);
    // A plain request to the TLS port gets no answer.
    let plain = format!("http://{address}/v1");
    assert!(soon(http.get(plain).bearer_auth(&token).send()).await.is_err());
}
