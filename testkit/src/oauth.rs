//! A server of the Model Context Protocol on loopback that wants a login, and who gives it: OAuth 2.1 with
//! PKCE, registration of clients, and refresh tokens that are used once.

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

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Manners {
    /// How long a token is good for, in seconds.
    pub lasts: u64,
    /// Clients get a secret when they register, and have to show it.
    pub secretive: bool,
    /// The person says no.
    pub refuses: bool,
    /// The name it gives for itself when the browser goes back, if another than its own.
    pub poses_as: Option<String>,
}

impl Default for Manners {
    fn default() -> Manners {
        Manners { lasts: 3600, secretive: false, refuses: false, poses_as: None }
    }
}

/// What happened at the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Clients that registered.
    pub registered: usize,
    /// Tokens given for a code.
    pub granted: usize,
    /// Tokens given for a refresh token.
    pub refreshed: usize,
    /// Refresh tokens that were shown a second time.
    pub reused: usize,
    /// The scopes that were asked for last.
    pub scope: String,
}

/// The server. It ends when it is dropped.
pub struct OAuth {
    address: std::net::SocketAddr,
    stage: Arc<Stage>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Stage {
    base: String,
    manners: Mutex<Manners>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    tally: Tally,
    clients: BTreeMap<String, Option<String>>,
    /// Code → challenge, scope, where the browser goes back to.
    codes: BTreeMap<String, (String, String, String)>,
    /// Token → scope.
    tokens: BTreeMap<String, String>,
    /// Refresh token → scope; none once it was used.
    refresh: BTreeMap<String, Option<String>>,
    next: usize,
}

impl Books {
    fn name(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}", self.next)
    }

    fn tokens(&mut self, scope: &str, lasts: u64) -> Value {
        let (token, refresh) = (self.name("token"), self.name("refresh"));
        self.tokens.insert(token.clone(), scope.to_owned());
        self.refresh.insert(refresh.clone(), Some(scope.to_owned()));
        json!({"access_token": token, "token_type": "Bearer", "expires_in": lasts,
               "refresh_token": refresh, "scope": scope})
    }
}

impl OAuth {
    /// Starts it on a free port.
    pub fn start(manners: Manners) -> OAuth {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let stage = Arc::new(Stage {
                    base: format!("http://{address}"),
                    manners: Mutex::new(manners),
                    books: Mutex::default(),
                });
                ready.send((address, Arc::clone(&stage))).unwrap();
                let router = Router::new().fallback(answer).with_state(stage);
                let serve = axum::serve(listener, router).into_future();
                tokio::select! {
                    served = serve => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let (address, stage) = started.recv().unwrap();
        OAuth { address, stage, stop: Some(stop), thread: Some(thread) }
    }

    /// The server's address.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What happened so far.
    pub fn tally(&self) -> Tally {
        self.stage.books.lock().unwrap().tally.clone()
    }

    /// Changes how it behaves.
    pub fn behave(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.stage.manners.lock().unwrap());
    }

    /// No token that was given counts any more; refresh tokens do.
    pub fn revoke(&self) {
        self.stage.books.lock().unwrap().tokens.clear();
    }

    /// Nothing that was given counts any more.
    pub fn forget(&self) {
        let mut books = self.stage.books.lock().unwrap();
        books.tokens.clear();
        books.refresh.clear();
    }
}

impl Drop for OAuth {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A person who says yes: opens the page, and goes where it sends the browser.
pub fn browse(page: &str) -> std::thread::JoinHandle<String> {
    let page = page.to_owned();
    std::thread::spawn(move || {
        let sent = get(&page);
        let place = sent.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        });
        match place {
            Some(place) => get(&place),
            None => sent,
        }
    })
}

/// Asks for a page over plain HTTP; the head and the body.
pub fn get(page: &str) -> String {
    let rest = page.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let ask = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

async fn answer(State(stage): State<Arc<Stage>>, request: Request) -> Response {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().map(str::to_owned));
    let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let header = header.unwrap_or_default().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    let base = stage.base.clone();
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
        "/register" => register(&stage),
        "/authorize" => authorize(&stage, &fields(&query.unwrap_or_default())),
        "/token" => token(&stage, &fields(&body), &header),
        "/mcp" => resource(&stage, &body, &header),
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

fn register(stage: &Stage) -> Response {
    let secretive = stage.manners.lock().unwrap().secretive;
    let mut books = stage.books.lock().unwrap();
    books.tally.registered += 1;
    let id = books.name("client");
    let secret = secretive.then(|| books.name("secret"));
    books.clients.insert(id.clone(), secret.clone());
    reply(201, &[], &json!({"client_id": id, "client_secret": secret, "redirect_uris": []}))
}

fn authorize(stage: &Stage, asked: &BTreeMap<String, String>) -> Response {
    let manners = stage.manners.lock().unwrap().clone();
    let mut books = stage.books.lock().unwrap();
    let back = asked["redirect_uri"].clone();
    let state = &asked["state"];
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], format!("{}/mcp", stage.base));
    if manners.refuses {
        let place = format!("{back}?error=access_denied&state={state}");
        return reply(302, &[("location", place)], &json!({}));
    }
    let scope = asked.get("scope").cloned().unwrap_or_default();
    books.tally.scope = scope.clone();
    let code = books.name("code");
    books.codes.insert(code.clone(), (asked["code_challenge"].clone(), scope, back.clone()));
    let issuer = manners.poses_as.unwrap_or_else(|| stage.base.clone());
    let place = format!("{back}?code={code}&state={state}&iss={issuer}");
    reply(302, &[("location", place)], &json!({}))
}

fn token(stage: &Stage, asked: &BTreeMap<String, String>, header: &str) -> Response {
    let lasts = stage.manners.lock().unwrap().lasts;
    let mut books = stage.books.lock().unwrap();
    let no = |error: &str| reply(400, &[], &json!({"error": error}));
    let (id, secret) = client(asked, header);
    if books.clients.get(&id).cloned().flatten() != secret {
        return reply(401, &[], &json!({"error": "invalid_client"}));
    }
    match asked.get("grant_type").map(String::as_str) {
        Some("authorization_code") => {
            let Some((challenge, scope, back)) = books.codes.remove(&asked["code"]) else {
                return no("invalid_grant");
            };
            let proof = sha2::Sha256::digest(asked["code_verifier"].as_bytes());
            let proof = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(proof);
            if proof != challenge || asked["redirect_uri"] != back {
                return no("invalid_grant");
            }
            books.tally.granted += 1;
            let tokens = books.tokens(&scope, lasts);
            reply(200, &[], &tokens)
        }
        Some("refresh_token") => {
            match books.refresh.get_mut(&asked["refresh_token"]).map(Option::take) {
                Some(Some(scope)) => {
                    books.tally.refreshed += 1;
                    let tokens = books.tokens(&scope, lasts);
                    reply(200, &[], &tokens)
                }
                Some(None) => {
                    books.tally.reused += 1;
                    no("invalid_grant")
                }
                None => no("invalid_grant"),
            }
        }
        _ => no("unsupported_grant_type"),
    }
}

/// Who asks for a token: in the body, or in the header.
fn client(asked: &BTreeMap<String, String>, header: &str) -> (String, Option<String>) {
    if let Some(basic) = header.strip_prefix("Basic ") {
        let text = base64::engine::general_purpose::STANDARD.decode(basic).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (id, secret) = text.split_once(':').unwrap();
        return (decoded(id), Some(decoded(secret)));
    }
    (asked.get("client_id").cloned().unwrap_or_default(), asked.get("client_secret").cloned())
}

fn resource(stage: &Stage, body: &str, header: &str) -> Response {
    let meta = format!("{}/.well-known/oauth-protected-resource/mcp", stage.base);
    let books = stage.books.lock().unwrap();
    let token = header.strip_prefix("Bearer ").unwrap_or_default();
    let Some(scope) = books.tokens.get(token) else {
        let challenge = format!("Bearer resource_metadata=\"{meta}\", scope=\"read\"");
        return reply(401, &[("www-authenticate", challenge)], &json!({}));
    };
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match asked["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"}})
        }
        Some("tools/list") => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}},
            {"name": "change", "inputSchema": {"type": "object"}}]}),
        Some("tools/call")
            if asked["params"]["name"] == "change"
                && !scope.split(' ').any(|scope| scope == "write") =>
        {
            let challenge = format!(
                "Bearer error=\"insufficient_scope\", scope=\"write\", resource_metadata=\"{meta}\""
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
                &json!({"jsonrpc": "2.0", "id": asked["id"],
                "error": {"code": -32601, "message": "unknown"}}),
            );
        }
    };
    reply(200, &[], &json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
}

fn fields(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
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
