//! The HTTP endpoint for clients. A request without the token gets no information; a request from a
//! web page, or for a host name other than that of this machine, is rejected.
#![allow(clippy::disallowed_types, reason = "this module accepts the connections of clients")]

use super::server_handler::McpServerHandlerFactory;
use super::{MAX_MESSAGE_BYTES, ToolHost};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use secrecy::{ExposeSecret, SecretString};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use windlass_toolkit::CallFailure;

/// Further connections wait.
const MAX_CONNECTIONS: usize = 64;
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
    let service = Arc::new(service);
    let access = Arc::new(access);
    let app = Router::new().fallback(move |request: Request| {
        let service = Arc::clone(&service);
        let access = Arc::clone(&access);
        async move {
            match access.rejection_for(&request) {
                Some(rejection) => rejection_response(rejection),
                None => service.handle(request).await.map(Body::new),
            }
        }
    });
    let listener =
        LimitedListener { listener, connection_permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
    let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    let shutdown_timeout = async {
        stop.cancelled().await;
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    };
    tokio::select! {
        served = serving.into_future() => served.map_err(serve_error),
        () = shutdown_timeout => Ok(()),
    }
}

fn rejection_response((status, text): (StatusCode, &'static str)) -> Response {
    (status, [(header::WWW_AUTHENTICATE, "Bearer")], text).into_response()
}

/// A listener that accepts at most `MAX_CONNECTIONS` at a time.
struct LimitedListener {
    listener: TcpListener,
    connection_permits: Arc<Semaphore>,
}

impl Listener for LimitedListener {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedConnection, SocketAddr) {
        let permit = Arc::clone(&self.connection_permits).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (LimitedConnection { stream, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Listener::local_addr(&self.listener)
    }
}

/// A connection with its permit of `LimitedListener`.
struct LimitedConnection {
    stream: TcpStream,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for LimitedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
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
