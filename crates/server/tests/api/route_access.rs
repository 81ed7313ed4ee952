//! Every route with every kind of client: the status is what the table says.

use crate::memory_host::{MemoryHost, session};
use crate::test_server::{TestServer, http, soon};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;
use url::Url;
use windlass_protocol::AccessRight;
use windlass_server::routes::{
    ParameterPlace, Route, RouteAccess, RouteAnswer, RouteKind, ServerRoute, all_routes,
};

/// The body of a valid request. A new route does not compile until it is listed here.
fn valid_body(kind: RouteKind, number: u64) -> Option<Value> {
    Some(match kind {
        RouteKind::NewSession | RouteKind::ForkSession | RouteKind::OpenSession => return None,
        RouteKind::SessionOp => json!({ "op": "compact" }),
        RouteKind::RenameSession => json!({ "title": "a" }),
        RouteKind::RunReportAction => json!({ "item": "a", "action": "revoke" }),
        RouteKind::PreparePrompt => json!({ "text": "a" }),
        RouteKind::ExpandCommand => json!({ "name": "a", "arguments": "" }),
        RouteKind::SetTrust => json!({ "decision": "trust" }),
        RouteKind::SetDefaultModel => json!({ "model": "a/b" }),
        RouteKind::AddProvider => json!({ "name": "a", "base_url": "b", "key": "c", "model": "d" }),
        RouteKind::SaveKey => json!({ "provider": "a", "key": "b" }),
        RouteKind::SetConfig => json!({ "name": "a", "value": 1 }),
        RouteKind::PutBlob => json!("bytes"),
        RouteKind::Server(ServerRoute::NewToken) => {
            json!({ "name": format!("new-{number}"), "right": "read" })
        }
        RouteKind::Server(ServerRoute::PageLogin) => json!({ "code": "wrong" }),
        RouteKind::Status
        | RouteKind::Sessions
        | RouteKind::OpenSessions
        | RouteKind::DeleteSession
        | RouteKind::CloseSession
        | RouteKind::SessionEvents
        | RouteKind::SessionPrompts
        | RouteKind::WorkspacePrompts
        | RouteKind::Context
        | RouteKind::Jobs
        | RouteKind::Transcript
        | RouteKind::Changes
        | RouteKind::FindText
        | RouteKind::RenderSession
        | RouteKind::SearchSessions
        | RouteKind::Tools
        | RouteKind::List
        | RouteKind::Report
        | RouteKind::GetBlob
        | RouteKind::Thumbnail
        | RouteKind::Doctor
        | RouteKind::ReviewTrust
        | RouteKind::DiscoverProviders
        | RouteKind::HostEvents
        | RouteKind::Server(
            ServerRoute::ServerInfo
            | ServerRoute::Health
            | ServerRoute::Metrics
            | ServerRoute::OpenApi
            | ServerRoute::PageLogout
            | ServerRoute::NewLoginCode
            | ServerRoute::Tokens
            | ServerRoute::RevokeToken,
        ) => return None,
    })
}

/// The value of a parameter.
fn parameter_value(name: &str) -> String {
    match name {
        "id" => session().to_string(),
        "blob" => "a".repeat(64),
        "list" => "agents".to_owned(),
        "kind" => "plugins".to_owned(),
        "scope" => "all".to_owned(),
        "format" => "markdown".to_owned(),
        "width" | "height" => "5".to_owned(),
        _ => "spare".to_owned(),
    }
}

/// The status of a request with all rights.
fn success_status(route: &Route) -> u16 {
    match (route.kind, route.answer) {
        (RouteKind::Server(ServerRoute::PageLogin), _) => 401, // the code is wrong
        (_, RouteAnswer::Response { status, .. } | RouteAnswer::ServerJson { status, .. }) => {
            status
        }
        (_, RouteAnswer::Empty) => 204,
        _ => 200,
    }
}

struct Matrix {
    server: TestServer,
    address: SocketAddr,
    http: Client,
    number: u64,
}

impl Matrix {
    /// Builds a valid request without a token.
    fn request(&mut self, route: &Route, method: &Method) -> RequestBuilder {
        self.number += 1;
        let mut path = route.path.to_owned();
        let mut query = vec![("workspace", "/w".to_owned())];
        for parameter in route.parameters {
            let value = parameter_value(parameter.name);
            match parameter.place {
                ParameterPlace::Path => {
                    path = path.replace(&format!("{{{}}}", parameter.name), &value);
                }
                ParameterPlace::RequiredQuery => query.push((parameter.name, value)),
                ParameterPlace::Query | ParameterPlace::QueryWithDefault(_) => {}
            }
        }
        let url = format!("http://{}{path}", self.address);
        let url = Url::parse_with_params(&url, query).unwrap();
        let request = self.http.request(method.clone(), url);
        match valid_body(route.kind, self.number) {
            None => request,
            Some(Value::String(bytes)) => {
                request.header("content-type", "application/octet-stream").body(bytes)
            }
            Some(body) => request.json(&body),
        }
    }

    /// Returns the status of a valid request with a change.
    async fn status(
        &mut self,
        route: &Route,
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> u16 {
        self.send(route, &route.method, change).await.status().as_u16()
    }

    async fn send(
        &mut self,
        route: &Route,
        method: &Method,
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Response {
        if route.kind == RouteKind::Server(ServerRoute::RevokeToken) {
            let _ = self.server.tokens.revoke("spare");
            self.server.add_token("spare", AccessRight::Read);
        }
        let request = change(self.request(route, method));
        let response = soon(request.send()).await.unwrap();
        for (name, expected) in [
            ("x-windlass-version", "1.2.3"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(response.headers()[name], expected, "{} {}", route.method, route.path);
        }
        for (name, _) in response.headers() {
            assert!(!name.as_str().starts_with("access-control-"), "{name}");
        }
        response
    }
}

async fn matrix() -> Matrix {
    let server = TestServer::new(MemoryHost::with_facts(3));
    let address = server.serve_tcp().await;
    Matrix { server, address, http: http(), number: 0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_needs_a_token_with_its_right() {
    let mut matrix = matrix().await;
    let rights = [AccessRight::Read, AccessRight::Write, AccessRight::Admin];
    let tokens = rights.map(|right| (right, matrix.server.add_token(&right.to_string(), right)));
    for route in all_routes() {
        let at = format!("{} {}", route.method, route.path);
        let success = success_status(route);
        let without_token = match route.access {
            RouteAccess::Public => success,
            RouteAccess::Needs(_) => 401,
        };
        assert_eq!(matrix.status(route, |request| request).await, without_token, "{at}");
        for wrong in ["wlt_wrong", "", "admin"] {
            let status = matrix.status(route, |request| request.bearer_auth(wrong)).await;
            assert_eq!(status, without_token, "{at} with {wrong:?}");
        }
        for (right, token) in &tokens {
            let expected = match route.access {
                RouteAccess::Needs(needed) if *right < needed => 403,
                RouteAccess::Needs(_) | RouteAccess::Public => success,
            };
            let status = matrix.status(route, |request| request.bearer_auth(token)).await;
            assert_eq!(status, expected, "{at} with the right {right}");
        }
    }
    assert!(matrix.number > 300, "{} requests", matrix.number);
    let log = matrix.server.log.lock().unwrap();
    assert_eq!(log.len() as u64, matrix.number);
    let log = format!("{log:?}");
    for (right, token) in &tokens {
        assert!(!log.contains(token), "a token is in the log");
        assert!(log.contains(&format!("client: Some(\"{right}\")")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_another_site_or_for_another_host_is_refused_whatever_its_token() {
    let mut matrix = matrix().await;
    let port = matrix.address.port();
    let other_port = format!("127.0.0.1:{}", port.wrapping_add(1).max(1));
    let own_origin = format!("http://127.0.0.1:{port}");
    let foreign: Vec<(&str, String)> = vec![
        ("origin", "https://evil.example".to_owned()),
        ("origin", "null".to_owned()),
        ("origin", format!("https://127.0.0.1:{port}")),
        ("origin", format!("http://{other_port}")),
        ("sec-fetch-site", "cross-site".to_owned()),
        ("sec-fetch-site", "same-site".to_owned()),
        ("host", "evil.example".to_owned()),
        ("host", format!("evil.example:{port}")),
        ("host", other_port),
        ("host", "localhost".to_owned()),
        ("upgrade", "websocket".to_owned()),
    ];
    // Each route has a token of its own, because of the limit of requests.
    for (index, route) in all_routes().enumerate() {
        let at = format!("{} {}", route.method, route.path);
        let token = matrix.server.add_token(&format!("admin-{index}"), AccessRight::Admin);
        for (name, value) in &foreign {
            let change = |request: RequestBuilder| request.bearer_auth(&token).header(*name, value);
            assert_eq!(matrix.status(route, change).await, 403, "{at} {name}: {value}");
        }
        let change = |request: RequestBuilder| request.bearer_auth(&token);
        let response = matrix.send(route, &Method::OPTIONS, change).await;
        assert_eq!(response.status().as_u16(), 403, "OPTIONS {}", route.path);

        let form = |request: RequestBuilder| {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, form)]);
            request.bearer_auth(&token).headers(headers)
        };
        let is_get = route.method == Method::GET;
        let expected = if is_get { success_status(route) } else { 415 };
        assert_eq!(matrix.status(route, form).await, expected, "{at} with a form");

        let expected = match route.kind {
            RouteKind::Server(ServerRoute::Health) => 403,
            _ => success_status(route),
        };
        let change = |request: RequestBuilder| {
            let request = request.bearer_auth(&token).header("origin", &own_origin);
            request.header("sec-fetch-site", "same-origin")
        };
        assert_eq!(matrix.status(route, change).await, expected, "{at} of our own origin");
        for host in [format!("localhost:{port}"), "windlass.example".to_owned()] {
            let change =
                |request: RequestBuilder| request.bearer_auth(&token).header("host", &host);
            assert_eq!(matrix.status(route, change).await, success_status(route), "{at} at {host}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_and_paths_are_named_only_to_clients_with_a_token() {
    let matrix = matrix().await;
    let token = matrix.server.add_token("a", AccessRight::Read);
    let url = |path: &str| format!("http://{}{path}", matrix.address);
    let send = |request: RequestBuilder| async { soon(request.send()).await.unwrap() };
    let anonymous = send(matrix.http.patch(url("/v1/sessions"))).await;
    assert_eq!(anonymous.status().as_u16(), 401);
    assert_eq!(anonymous.headers()["www-authenticate"], "Bearer");
    let other = send(matrix.http.patch(url("/v1/sessions")).bearer_auth(&token)).await;
    assert_eq!(other.status().as_u16(), 405);
    assert_eq!(other.headers()["allow"], "GET, POST");
    let missing = send(matrix.http.get(url("/v2")).bearer_auth(&token)).await;
    assert_eq!(missing.status().as_u16(), 404);
    assert_eq!(send(matrix.http.get(url("/v2"))).await.status().as_u16(), 401);
    let head = send(matrix.http.head(url("/v1/status")).bearer_auth(&token)).await;
    assert_eq!(head.status().as_u16(), 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_mode_needs_the_right_admin() {
    let mut matrix = matrix().await;
    let route = all_routes().find(|route| route.kind == RouteKind::SessionOp).unwrap();
    let write = matrix.server.add_token("w", AccessRight::Write);
    let admin = matrix.server.add_token("a", AccessRight::Admin);
    for (token, mode, expected) in
        [(&write, "auto", 200), (&write, "full", 403), (&admin, "full", 200)]
    {
        let body = json!({ "op": "set_mode", "mode": mode });
        let change = |request: RequestBuilder| request.bearer_auth(token).json(&body);
        assert_eq!(matrix.status(route, change).await, expected, "{mode}");
    }
}
