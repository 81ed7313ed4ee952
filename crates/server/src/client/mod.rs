//! Client of a server: [`RemoteHost`] lets a front end use a host in another process.
//!
//! Operations have ids, so one that was sent and not acknowledged is sent again until the server
//! answers. Start reading at [`RemoteHost::connect`]; `session_watch` reads event streams.

mod connection_errors;
mod event_reader;
mod host_watch;
mod reconnect_delay;
mod responses;
mod session_frames;
mod session_watch;

pub use session_frames::decode_session_stream;

use crate::request_checks::{
    CLIENT_HEADER, NODE_RIGHT_HEADER, NODE_TENANT_HEADER, NODE_USER_HEADER, client_kind_name,
};
use crate::routes::{
    HttpRequestParts, RequestBody, Route, RouteKind, ServerRoute, WORKSPACE_PARAMETER, invalid,
    to_http,
};
use crate::server_messages::{
    LoginCode, NewTokenRequest, NewTokenSecret, ServerInfo, TokenList, TokenRow, WIRE_REVISION,
};
use crate::{Caller, ClientAttendance, FrontendService, WatchOptions};
use async_trait::async_trait;
use axum::http::{Method, header};
use connection_errors::{connection_error, error_chain};
use futures_util::stream::BoxStream;
use reconnect_delay::ReconnectDelay;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::{Host, Url, form_urlencoded};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{HostStreamItem, SessionStreamItem};
use windlass_protocol::{AccessRight, ClientInfo, ClientKind, RequestError, SessionId};

/// Limit for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for an answer. Some requests run commands of the user.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Time for which an operation is sent again if it is not acknowledged.
const RESEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time that a request waits for a limit of the server, instead of failing.
const MAX_LIMIT_WAIT_MS: u64 = 1_000;
/// Time after which an unused connection is not used again: the server closes it after 75 seconds.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Address of a server.
pub enum ServerAddress {
    /// Path of its Unix socket. Systems without such sockets cannot connect to it.
    Socket(PathBuf),
    /// Base URL, such as `http://127.0.0.1:4096`, and a token.
    Url(Url, SecretString),
    /// Base URL of another node of the fleet, and the node's token. Requests state for which client
    /// they are sent.
    Node(Url, SecretString),
}

impl ServerAddress {
    /// Returns the host of a URL.
    pub fn host_of(url: &str) -> Option<String> {
        Some(Url::parse(url).ok()?.host_str()?.to_owned())
    }
}

/// A host in another process.
#[derive(Clone)]
pub struct RemoteHost {
    connection: Arc<ServerHttp>,
    info: ServerInfo,
}

/// The part of a [`RemoteHost`] that sends requests.
struct ServerHttp {
    http: Client,
    base: Url,
    token: Option<SecretString>,
    /// True to state the client of each request.
    is_node: bool,
}

impl RemoteHost {
    /// Connects to a server whose revision of the messages is ours.
    pub async fn connect(address: ServerAddress) -> Result<RemoteHost, RequestError> {
        let connection = Arc::new(ServerHttp::new(address)?);
        let parts = server_request(ServerRoute::ServerInfo, "", RequestBody::None)?;
        let response = connection.send(connection.build(&parts, &server_caller())?).await?;
        let info: ServerInfo = match responses::read_json(response).await {
            Err(RequestError::NotFound { .. } | RequestError::Unavailable { .. }) => {
                return Err(invalid("This address is not that of a Windlass server."));
            }
            info => info?,
        };
        let (server, ours) = (info.wire, WIRE_REVISION);
        let problem = match server.cmp(&ours) {
            std::cmp::Ordering::Equal => return Ok(RemoteHost { connection, info }),
            std::cmp::Ordering::Less => "The server is older than this program. Update the server",
            std::cmp::Ordering::Greater => "This program is older than the server. Update it",
        };
        let version = &info.version;
        let text =
            format!("{problem}: it has version {version}, revision {server} instead of {ours}.");
        Err(RequestError::Conflict { text })
    }

    /// Returns the server, and what it lets this client do.
    pub fn info(&self) -> &ServerInfo {
        &self.info
    }

    /// Returns the metrics of the server in the OpenMetrics format.
    pub async fn metrics(&self) -> Result<String, RequestError> {
        let parts = server_request(ServerRoute::Metrics, "", RequestBody::None)?;
        let request = self.connection.build(&parts, &server_caller())?;
        let response = responses::check_status(self.connection.send(request).await?).await?;
        response.text().await.map_err(connection_error)
    }

    /// Creates a one-time code that logs a page in.
    pub async fn new_login_code(&self) -> Result<LoginCode, RequestError> {
        self.server_json(ServerRoute::NewLoginCode, "", RequestBody::None).await
    }

    /// Returns the tokens of the server.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, RequestError> {
        let list: TokenList = self.server_json(ServerRoute::Tokens, "", RequestBody::None).await?;
        Ok(list.tokens)
    }

    /// Adds a token to the server.
    pub async fn new_token(
        &self,
        request: &NewTokenRequest,
    ) -> Result<NewTokenSecret, RequestError> {
        let body = serde_json::to_vec(request).map_err(|error| invalid(error.to_string()))?;
        self.server_json(ServerRoute::NewToken, "", RequestBody::Json(body)).await
    }

    /// Revokes a token of the server and ends the streams of its clients.
    pub async fn revoke_token(&self, name: &str) -> Result<(), RequestError> {
        if !crate::access_tokens::is_token_name(name) {
            return Err(crate::access_tokens::TokenError::InvalidName.into());
        }
        let parts = server_request(ServerRoute::RevokeToken, name, RequestBody::None)?;
        let request = self.connection.build(&parts, &server_caller())?;
        let response = self.connection.send(request).await?;
        responses::check_status(response).await.map(|_| ())
    }

    async fn server_json<T: DeserializeOwned>(
        &self,
        kind: ServerRoute,
        name: &str,
        body: RequestBody,
    ) -> Result<T, RequestError> {
        let parts = server_request(kind, name, body)?;
        let request = self.connection.build(&parts, &server_caller())?;
        responses::read_json(self.connection.send(request).await?).await
    }

    /// Sends a request until it is answered, if it has an id or changes nothing.
    async fn send_request(
        &self,
        caller: &Caller,
        parts: &HttpRequestParts,
        resend: Resend,
    ) -> Result<Response, RequestError> {
        let give_up_at = Instant::now() + RESEND_TIMEOUT;
        let mut delay = ReconnectDelay::default();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let request = self.connection.build(parts, caller)?;
            let error = match self.connection.send(request).await {
                Ok(response) if !responses::is_deferred(&response) => return Ok(response),
                Ok(response) => match responses::check_status(response).await {
                    Ok(response) => return Ok(response),
                    Err(RequestError::TooMany { retry_after_ms, .. })
                        if retry_after_ms <= MAX_LIMIT_WAIT_MS && Instant::now() < give_up_at =>
                    {
                        // The server did nothing with the request.
                        tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let may_resend = match resend {
                Resend::Never => false,
                Resend::Once => attempts < 2,
                Resend::UntilAnswered => Instant::now() < give_up_at,
            };
            if !may_resend {
                return Err(error);
            }
            tokio::time::sleep(delay.next_delay()).await;
        }
    }
}

/// Treatment of a request that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resend {
    /// Its effects must not happen twice.
    Never,
    /// It has no effects.
    Once,
    /// The session recognizes its id.
    UntilAnswered,
}

impl ServerHttp {
    fn new(address: ServerAddress) -> Result<ServerHttp, RequestError> {
        let builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            // A token belongs to one server.
            .redirect(Policy::none());
        let is_node = matches!(address, ServerAddress::Node(..));
        let (builder, base, token) = match address {
            #[cfg(not(unix))]
            ServerAddress::Socket(_) => {
                let text = "This system has no Unix sockets. Name the URL of the server instead.";
                return Err(invalid(text));
            }
            #[cfg(unix)]
            ServerAddress::Socket(path) => {
                let base =
                    Url::parse("http://localhost/").map_err(|error| invalid(error.to_string()))?;
                (builder.unix_socket(path).no_proxy(), base, None)
            }
            ServerAddress::Url(base, token) | ServerAddress::Node(base, token) => {
                let is_loopback = match base.host() {
                    Some(Host::Domain(name)) => name == "localhost",
                    Some(Host::Ipv4(address)) => address.is_loopback(),
                    Some(Host::Ipv6(address)) => address.is_loopback(),
                    None => {
                        return Err(invalid("The address has no host. Use `http://HOST:PORT`."));
                    }
                };
                let builder = if is_loopback || is_node { builder.no_proxy() } else { builder };
                (builder, base, Some(token))
            }
        };
        let http = builder.build().map_err(|error| invalid(error_chain(&error)))?;
        Ok(ServerHttp { http, base, token, is_node })
    }

    /// Builds a request.
    fn build(
        &self,
        parts: &HttpRequestParts,
        caller: &Caller,
    ) -> Result<RequestBuilder, RequestError> {
        let mut url = self.base.clone();
        // The base may have a path of its own, behind a reverse proxy.
        let path = format!("{}{}", self.base.path().trim_end_matches('/'), parts.path);
        url.set_path(&path);
        url.set_query(Some(parts.query.as_str()).filter(|query| !query.is_empty()));
        if let Some(workspace) = &caller.workspace {
            url.query_pairs_mut().append_pair(WORKSPACE_PARAMETER, workspace);
        }
        let mut request = self.http.request(parts.method.clone(), url);
        request = request.header(CLIENT_HEADER, client_kind_name(caller.client.kind));
        if self.is_node {
            let name = form_urlencoded::byte_serialize(caller.client.name.as_bytes());
            request = request.header(NODE_USER_HEADER, name.collect::<String>());
            request = request.header(NODE_RIGHT_HEADER, caller.right.to_string());
            if let Some(tenant) = &caller.tenant {
                request = request.header(NODE_TENANT_HEADER, tenant);
            }
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        Ok(match &parts.body {
            RequestBody::None => request,
            RequestBody::Json(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(body.clone())
            }
            RequestBody::Bytes(body) => {
                request.header(header::CONTENT_TYPE, "application/octet-stream").body(body.clone())
            }
        })
    }

    /// Sends a request whose answer is not a stream.
    async fn send(&self, request: RequestBuilder) -> Result<Response, RequestError> {
        let request = request.timeout(REQUEST_TIMEOUT).header(header::ACCEPT, "application/json");
        request.send().await.map_err(connection_error)
    }
}

/// Returns the caller of requests about the server itself.
fn server_caller() -> Caller {
    let client = ClientInfo { name: String::new(), kind: ClientKind::Program };
    Caller::new(client, AccessRight::Read)
}

/// Returns the request for a route of the server itself.
fn server_request(
    kind: ServerRoute,
    name: &str,
    body: RequestBody,
) -> Result<HttpRequestParts, RequestError> {
    let route = Route::of_kind(RouteKind::Server(kind))
        .ok_or_else(|| invalid("This route does not exist."))?;
    let path = route.path.replace("{name}", name);
    Ok(HttpRequestParts { method: route.method.clone(), path, query: String::new(), body })
}

#[async_trait]
impl FrontendService for RemoteHost {
    async fn request(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        let parts = to_http(&request).ok_or_else(|| {
            invalid("This request cannot be sent to a server. Run it on the server's machine.")
        })?;
        let resend = if let FrontendRequest::SessionOp { id, .. } = &request {
            if id.is_none() {
                return Err(invalid("An operation for a server needs an id."));
            }
            Resend::UntilAnswered
        } else if parts.method == Method::GET {
            Resend::Once
        } else {
            Resend::Never
        };
        drop(request);
        let response = self.send_request(caller, &parts, resend).await?;
        responses::read_host_response(&parts, response).await
    }

    async fn watch_session(
        &self,
        caller: &Caller,
        session: SessionId,
        mut options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        let right = if self.connection.is_node { caller.right } else { self.info.right };
        if right < AccessRight::Write {
            // The user of a client that may only read cannot answer questions.
            options.user = ClientAttendance::Unknown;
        }
        session_watch::watch(Arc::clone(&self.connection), caller.clone(), session, options).await
    }

    async fn watch_host(
        &self,
        caller: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
        host_watch::watch(self.clone(), caller.clone()).await
    }
}
