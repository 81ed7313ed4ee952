//! The HTTP endpoint for clients. A request without the token gets no information; a request from a
//! web page, or for a host name other than that of this machine, is rejected.
#![allow(clippy::disallowed_types, reason = "this module accepts the connections of clients")]

use super::server_handler::{McpServerHandler, McpServerHandlerFactory};
use super::{MAX_MESSAGE_BYTES, ToolHost};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use secrecy::{ExposeSecret, SecretString};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_toolkit::CallFailure;

/// Maximum number of connections that have sent the token.
const MAX_CLIENTS: usize = 64;
/// Maximum number of connections that have not sent the token.
const MAX_UNAUTHENTICATED: usize = 64;
/// Limit for a client to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Limit for clients to disconnect after serving was stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The path of the MCP endpoint.
const MCP_PATH: &str = "/mcp";

/// Access control for HTTP clients.
pub struct HttpAccessControl {
    /// The bearer token that a client must send.
    pub token: SecretString,
    /// Allows the token as the last part of the path, for clients that cannot set a header.
    pub allow_token_in_path: bool,
}

impl HttpAccessControl {
    /// Returns the rejection of a request, or `None` if it is allowed.
    fn rejection_for(&self, request: &Request) -> Option<(StatusCode, &'static str)> {
        let path = request.uri().path();
        let by_path = path.strip_prefix(MCP_PATH).and_then(|rest| rest.strip_prefix('/'));
        let by_header = request.headers().get(header::AUTHORIZATION);
        let by_header = by_header.and_then(|value| value.to_str().ok());
        let by_header = by_header.and_then(|value| value.strip_prefix("Bearer "));
        let presented = match (path == MCP_PATH, by_path) {
            (true, _) => by_header,
            (false, Some(token)) if self.allow_token_in_path => Some(token),
            (false, _) => None,
        };
        match presented {
            Some(presented)
                if equal_constant_time(presented.trim(), self.token.expose_secret()) =>
            {
                None
            }
            Some(_) | None => {
                Some((StatusCode::UNAUTHORIZED, "send the token: Authorization: Bearer TOKEN\n"))
            }
        }
    }
}

/// Compares two strings in a time that does not reveal how much of them is equal.
fn equal_constant_time(one: &str, two: &str) -> bool {
    let differ = one.bytes().zip(two.bytes()).fold(0, |differ, (one, two)| differ | (one ^ two));
    std::hint::black_box(differ) == 0 && one.len() == two.len()
}

/// Serves HTTP clients until `stop` fires.
pub async fn serve_http(
    tool_host: Arc<dyn ToolHost>,
    listener: std::net::TcpListener,
    access: HttpAccessControl,
    stop: CancellationToken,
) -> Result<(), CallFailure> {
    let serve_error =
        |error: io::Error| CallFailure::new(format!("could not serve on this address: {error}"));
    listener.set_nonblocking(true).map_err(serve_error)?;
    // Our own origin is safe: we serve no pages from it, and some clients send it.
    let port = listener.local_addr().map_err(serve_error)?.port();
    let allowed_origins = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}"));
    let listener = TcpListener::from_std(listener).map_err(serve_error)?;
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(allowed_origins)
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_cancellation_token(stop.child_token());
    let mcp_sessions = McpServerHandlerFactory::new(tool_host);
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(move || Ok(mcp_sessions.new_session()), sessions, config);
    let server = Arc::new(HttpServer {
        service,
        access,
        unauthenticated: UnauthenticatedConnections::default(),
        client_slots: Arc::new(Semaphore::new(MAX_CLIENTS)),
    });
    let mut tasks = JoinSet::new();
    let accepting = async {
        for number in 0.. {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let serving =
                        serve_connection(Arc::clone(&server), stream, number, stop.clone());
                    server.unauthenticated.add(number, || tasks.spawn(serving));
                }
                // Such as too many open files: closed connections free some.
                Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
            }
            while tasks.try_join_next().is_some() {}
        }
    };
    accepting.await;
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    // Dropping the tasks closes connections that are still open.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all_ended).await;
    Ok(())
}

/// The parts that all connections share.
struct HttpServer {
    service: StreamableHttpService<McpServerHandler, LocalSessionManager>,
    access: HttpAccessControl,
    unauthenticated: UnauthenticatedConnections,
    client_slots: Arc<Semaphore>,
}

/// Serves the requests of one connection.
async fn serve_connection(
    server: Arc<HttpServer>,
    stream: TcpStream,
    number: u64,
    stop: CancellationToken,
) {
    let slot: Arc<Mutex<Option<OwnedSemaphorePermit>>> = Arc::default();
    let handle = |request: hyper::Request<Incoming>| {
        let (server, slot) = (Arc::clone(&server), Arc::clone(&slot));
        async move {
            let request = request.map(Body::new);
            let response = match server.access.rejection_for(&request) {
                Some(rejection) => rejection_response(rejection),
                None if server.take_slot(&slot, number) => {
                    server.service.handle(request).await.map(Body::new)
                }
                None => (StatusCode::SERVICE_UNAVAILABLE, "too many clients\n").into_response(),
            };
            Ok::<_, Infallible>(response)
        }
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service_fn(handle));
    tokio::pin!(connection);
    // An error is the client's: it disconnected or sent no valid request.
    let _ = tokio::select! {
        served = &mut connection => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    server.unauthenticated.remove(number);
}

impl HttpServer {
    /// Makes a connection that has sent the token the connection of a client. Returns false if
    /// there are too many clients.
    fn take_slot(&self, slot: &Mutex<Option<OwnedSemaphorePermit>>, number: u64) -> bool {
        let mut slot = lock(slot);
        if slot.is_none() {
            *slot = Arc::clone(&self.client_slots).try_acquire_owned().ok();
        }
        if slot.is_some() {
            self.unauthenticated.remove(number);
        }
        slot.is_some()
    }
}

/// UnauthenticatedConnections that have not sent the token, oldest first. They take no place from clients: if
/// there are too many, the oldest is closed.
#[derive(Default)]
struct UnauthenticatedConnections(Mutex<VecDeque<(u64, AbortHandle)>>);

impl UnauthenticatedConnections {
    /// Starts a connection and adds it, before the connection can remove itself.
    fn add(&self, number: u64, start: impl FnOnce() -> AbortHandle) {
        let mut connections = lock(&self.0);
        connections.push_back((number, start()));
        if connections.len() > MAX_UNAUTHENTICATED
            && let Some((_, oldest)) = connections.pop_front()
        {
            oldest.abort();
        }
    }

    fn remove(&self, number: u64) {
        lock(&self.0).retain(|(other, _)| *other != number);
    }
}

fn rejection_response((status, text): (StatusCode, &'static str)) -> Response {
    (status, [(header::WWW_AUTHENTICATE, "Bearer")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection_status(
        access: &HttpAccessControl,
        path: &str,
        authorization: Option<&str>,
    ) -> Option<u16> {
        let mut request = Request::builder().uri(path);
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let request = request.body(Body::empty()).ok()?;
        access.rejection_for(&request).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_the_exact_token_is_accepted_and_in_the_path_only_if_allowed() {
        let access = |in_path| HttpAccessControl {
            token: SecretString::from("s3cret"),
            allow_token_in_path: in_path,
        };
        for (path, header, plain, in_path) in [
            ("/mcp", Some("Bearer s3cret"), None, None),
            ("/mcp", Some("Bearer s3cre"), Some(401), Some(401)),
            ("/mcp", Some("Bearer s3cret2"), Some(401), Some(401)),
            ("/mcp", Some("Bearer "), Some(401), Some(401)),
            ("/mcp", Some("Basic s3cret"), Some(401), Some(401)),
            ("/mcp", None, Some(401), Some(401)),
            ("/mcp/s3cret", None, Some(401), None),
            ("/mcp/s3cret/", None, Some(401), Some(401)),
            ("/mcp/", None, Some(401), Some(401)),
            ("/mcps3cret", None, Some(401), Some(401)),
            ("/", Some("Bearer s3cret"), Some(401), Some(401)),
        ] {
            assert_eq!(rejection_status(&access(false), path, header), plain, "{path} {header:?}");
            assert_eq!(
                rejection_status(&access(true), path, header),
                in_path,
                "{path} {header:?} in path"
            );
        }
    }
}
