//! A mock MCP server on loopback that requires a login, with its authorization server: OAuth 2.1
//! with PKCE, registration of clients, and refresh tokens that can be used once.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine;
use serde_json::{Value, json};
use sha2::Digest;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

/// Configurable behavior of the server.
#[derive(Clone, Debug)]
pub struct OAuthBehavior {
    /// Lifetime of access tokens.
    pub token_lifetime_seconds: u64,
    /// Clients get a secret when they register, and must send it.
    pub issues_client_secret: bool,
    /// The user denies access.
    pub denies_access: bool,
    /// The issuer in the redirect to the client, if it is not the own one.
    pub claimed_issuer: Option<String>,
}

impl Default for OAuthBehavior {
    fn default() -> OAuthBehavior {
        OAuthBehavior {
            token_lifetime_seconds: 3600,
            issues_client_secret: false,
            denies_access: false,
            claimed_issuer: None,
        }
    }
}

/// Counts of events at the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthCounts {
    /// Registered clients.
    pub registered: usize,
    /// Access tokens issued for a code.
    pub granted: usize,
    /// Access tokens issued for a refresh token.
    pub refreshed: usize,
    /// Refresh tokens that were used a second time.
    pub reused: usize,
    /// The last requested scopes.
    pub scope: String,
}

/// A mock OAuth and MCP server. It stops when it is dropped.
pub struct MockOAuthServer {
    address: std::net::SocketAddr,
    server: Arc<OAuthServerState>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct OAuthServerState {
    base: String,
    behavior: Mutex<OAuthBehavior>,
    records: Mutex<IssuedOAuthCredentials>,
}

#[derive(Default)]
struct IssuedOAuthCredentials {
    counts: OAuthCounts,
    clients: BTreeMap<String, Option<String>>,
    /// Code → challenge, scope, redirect URI.
    codes: BTreeMap<String, (String, String, String)>,
    /// Token → scope.
    tokens: BTreeMap<String, String>,
    /// Refresh token → scope, or `None` after its use.
    refresh: BTreeMap<String, Option<String>>,
    next_number: usize,
}

impl IssuedOAuthCredentials {
    fn next_name(&mut self, kind: &str) -> String {
        self.next_number += 1;
        format!("{kind}-{}", self.next_number)
    }

    fn tokens(&mut self, scope: &str, token_lifetime_seconds: u64) -> Value {
        let (token, refresh) = (self.next_name("token"), self.next_name("refresh"));
        self.tokens.insert(token.clone(), scope.to_owned());
        self.refresh.insert(refresh.clone(), Some(scope.to_owned()));
        json!({"access_token": token, "token_type": "Bearer", "expires_in": token_lifetime_seconds,
               "refresh_token": refresh, "scope": scope})
    }
}

impl MockOAuthServer {
    /// Starts the server on a free port.
    pub fn start(behavior: OAuthBehavior) -> MockOAuthServer {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let server = Arc::new(OAuthServerState {
                    base: format!("http://{address}"),
                    behavior: Mutex::new(behavior),
                    records: Mutex::default(),
                });
                ready.send((address, Arc::clone(&server))).unwrap();
                let router = Router::new().fallback(handle_request).with_state(server);
                let serve = axum::serve(listener, router).into_future();
                tokio::select! {
                    served = serve => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let (address, server) = started.recv().unwrap();
        MockOAuthServer { address, server, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> OAuthCounts {
        self.server.records.lock().unwrap().counts.clone()
    }

    /// Changes the behavior.
    pub fn change_behavior(&self, change: impl FnOnce(&mut OAuthBehavior)) {
        change(&mut self.server.behavior.lock().unwrap());
    }

    /// Revokes all access tokens; refresh tokens stay valid.
    pub fn revoke_access_tokens(&self) {
        self.server.records.lock().unwrap().tokens.clear();
    }

    /// Revokes all access tokens and refresh tokens.
    pub fn revoke_all_tokens(&self) {
        let mut records = self.server.records.lock().unwrap();
        records.tokens.clear();
        records.refresh.clear();
    }
}

impl Drop for MockOAuthServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens the login page and follows its redirect, like a user who grants access.
pub fn open_login_page(page: &str) -> std::thread::JoinHandle<String> {
    let page = page.to_owned();
    std::thread::spawn(move || {
        let response = get(&page);
        let location = response.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        });
        match location {
            Some(location) => get(&location),
            None => response,
        }
    })
}

/// Requests a page over plain HTTP, and returns headers and body.
pub fn get(page: &str) -> String {
    let rest = page.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

async fn handle_request(State(server): State<Arc<OAuthServerState>>, request: Request) -> Response {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().map(str::to_owned));
    let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let header = header.unwrap_or_default().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    let base = server.base.clone();
    match path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => reply(
            200,
            &[],
            &json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["read"]}),
        ),
        "/.well-known/oauth-authorization-server" => reply(
            200,
            &[],
            &json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "grant_types_supported": ["authorization_code", "refresh_token"]}),
        ),
        "/register" => register(&server),
        "/authorize" => authorize(&server, &parse_form(&query.unwrap_or_default())),
        "/token" => token(&server, &parse_form(&body), &header),
        "/mcp" => mcp_endpoint(&server, &body, &header),
        _ => reply(404, &[], &json!({})),
    }
}

fn reply(status: u16, headers: &[(&str, String)], body: &Value) -> Response {
    let mut response =
        Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    response.body(Body::from(body.to_string())).unwrap()
}

fn register(server: &OAuthServerState) -> Response {
    let issues_client_secret = server.behavior.lock().unwrap().issues_client_secret;
    let mut records = server.records.lock().unwrap();
    records.counts.registered += 1;
    let id = records.next_name("client");
    let secret = issues_client_secret.then(|| records.next_name("secret"));
    records.clients.insert(id.clone(), secret.clone());
    reply(201, &[], &json!({"client_id": id, "client_secret": secret, "redirect_uris": []}))
}

fn authorize(server: &OAuthServerState, params: &BTreeMap<String, String>) -> Response {
    let behavior = server.behavior.lock().unwrap().clone();
    let mut records = server.records.lock().unwrap();
    let redirect_uri = params["redirect_uri"].clone();
    let state = &params["state"];
    assert_eq!(params["code_challenge_method"], "S256");
    assert_eq!(params["resource"], format!("{}/mcp", server.base));
    if behavior.denies_access {
        let location = format!("{redirect_uri}?error=access_denied&state={state}");
        return reply(302, &[("location", location)], &json!({}));
    }
    let scope = params.get("scope").cloned().unwrap_or_default();
    records.counts.scope = scope.clone();
    let code = records.next_name("code");
    records
        .codes
        .insert(code.clone(), (params["code_challenge"].clone(), scope, redirect_uri.clone()));
    let issuer = behavior.claimed_issuer.unwrap_or_else(|| server.base.clone());
    let location = format!("{redirect_uri}?code={code}&state={state}&iss={issuer}");
    reply(302, &[("location", location)], &json!({}))
}

fn token(server: &OAuthServerState, params: &BTreeMap<String, String>, header: &str) -> Response {
    let token_lifetime_seconds = server.behavior.lock().unwrap().token_lifetime_seconds;
    let mut records = server.records.lock().unwrap();
    let error_reply = |error: &str| reply(400, &[], &json!({"error": error}));
    let (id, secret) = client_credentials(params, header);
    if records.clients.get(&id).cloned().flatten() != secret {
        return reply(401, &[], &json!({"error": "invalid_client"}));
    }
    match params.get("grant_type").map(String::as_str) {
        Some("authorization_code") => {
            let Some((challenge, scope, redirect_uri)) = records.codes.remove(&params["code"])
            else {
                return error_reply("invalid_grant");
            };
            let hash = sha2::Sha256::digest(params["code_verifier"].as_bytes());
            let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash);
            if hash != challenge || params["redirect_uri"] != redirect_uri {
                return error_reply("invalid_grant");
            }
            records.counts.granted += 1;
            let tokens = records.tokens(&scope, token_lifetime_seconds);
            reply(200, &[], &tokens)
        }
        Some("refresh_token") => {
            match records.refresh.get_mut(&params["refresh_token"]).map(Option::take) {
                Some(Some(scope)) => {
                    records.counts.refreshed += 1;
                    let tokens = records.tokens(&scope, token_lifetime_seconds);
                    reply(200, &[], &tokens)
                }
                Some(None) => {
                    records.counts.reused += 1;
                    error_reply("invalid_grant")
                }
                None => error_reply("invalid_grant"),
            }
        }
        _ => error_reply("unsupported_grant_type"),
    }
}

/// Returns id and secret of the client, from the header or the form.
fn client_credentials(params: &BTreeMap<String, String>, header: &str) -> (String, Option<String>) {
    if let Some(basic) = header.strip_prefix("Basic ") {
        let text = base64::engine::general_purpose::STANDARD.decode(basic).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (id, secret) = text.split_once(':').unwrap();
        return (percent_decode(id), Some(percent_decode(secret)));
    }
    (params.get("client_id").cloned().unwrap_or_default(), params.get("client_secret").cloned())
}

fn mcp_endpoint(server: &OAuthServerState, body: &str, header: &str) -> Response {
    let metadata_url = format!("{}/.well-known/oauth-protected-resource/mcp", server.base);
    let records = server.records.lock().unwrap();
    let token = header.strip_prefix("Bearer ").unwrap_or_default();
    let Some(scope) = records.tokens.get(token) else {
        let challenge = format!("Bearer resource_metadata=\"{metadata_url}\", scope=\"read\"");
        return reply(401, &[("www-authenticate", challenge)], &json!({}));
    };
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"}})
        }
        Some("tools/list") => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}},
            {"name": "change", "inputSchema": {"type": "object"}}]}),
        Some("tools/call")
            if message["params"]["name"] == "change"
                && !scope.split(' ').any(|scope| scope == "write") =>
        {
            let challenge = format!(
                "Bearer error=\"insufficient_scope\", scope=\"write\", resource_metadata=\"{metadata_url}\""
            );
            return reply(403, &[("www-authenticate", challenge)], &json!({}));
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": scope}]}),
        Some(method) if method.starts_with("notifications/") => return reply(202, &[], &json!({})),
        None => return reply(405, &[], &json!({})),
        Some(_) => {
            return reply(
                200,
                &[],
                &json!({"jsonrpc": "2.0", "id": message["id"],
                "error": {"code": -32601, "message": "unknown"}}),
            );
        }
    };
    reply(200, &[], &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn parse_form(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (percent_decode(name), percent_decode(value))).collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let pair = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&pair).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}
