//! The door for clients over HTTP: who has no token is told nothing, and who comes from a page in a
//! browser, or by another name than that of this machine, is sent away.
#![allow(clippy::disallowed_types, reason = "clients come in here")]

use super::guest::Guests;
use super::{House, LONGEST};
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
use windlass_toolkit::Failure;

/// How many connections there are at the same time; more wait.
const CONNECTIONS: usize = 64;
/// How long clients have to leave once serving is over.
const LEAVING: Duration = Duration::from_secs(2);
/// Where tools are served.
const PATH: &str = "/mcp";

/// Who is let in.
pub struct Door {
    /// What a client has to know.
    pub token: SecretString,
    /// It may also stand at the end of the path, for clients that can send no header.
    pub in_path: bool,
}

impl Door {
    /// None if a request is let in, or what it is told instead.
    fn refuses(&self, request: &Request) -> Option<(StatusCode, &'static str)> {
        let path = request.uri().path();
        let by_path = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
        let by_header = request.headers().get(header::AUTHORIZATION);
        let by_header = by_header.and_then(|value| value.to_str().ok());
        let by_header = by_header.and_then(|value| value.strip_prefix("Bearer "));
        let shown = match (path == PATH, by_path) {
            (true, _) => by_header,
            (false, Some(token)) if self.in_path => Some(token),
            (false, _) => None,
        };
        match shown {
            Some(shown) if same(shown.trim(), self.token.expose_secret()) => None,
            Some(_) | None => {
                Some((StatusCode::UNAUTHORIZED, "send the token: Authorization: Bearer TOKEN\n"))
            }
        }
    }
}

/// True if both are the same. How long it takes does not say how much of it is.
fn same(one: &str, two: &str) -> bool {
    let differ = one.bytes().zip(two.bytes()).fold(0, |differ, (one, two)| differ | (one ^ two));
    std::hint::black_box(differ) == 0 && one.len() == two.len()
}

/// Serves clients until somebody stops it.
pub async fn http(
    house: Arc<dyn House>,
    listener: std::net::TcpListener,
    door: Door,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("nothing can be served there: {error}"));
    listener.set_nonblocking(true).map_err(failed)?;
    // A page that came from here is no stranger's; there is none, and some clients say they are it.
    let port = listener.local_addr().map_err(failed)?.port();
    let ours = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}"));
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(ours)
        .with_max_request_body_bytes(LONGEST)
        .with_cancellation_token(stop.child_token());
    let guests = Guests::new(house);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(guests.guest()), sessions, config);
    let (service, door) = (Arc::new(service), Arc::new(door));
    let app = Router::new().fallback(move |request: Request| {
        let (service, door) = (Arc::clone(&service), Arc::clone(&door));
        async move {
            match door.refuses(&request) {
                Some(refusal) => refused(refusal),
                None => service.handle(request).await.map(Body::new),
            }
        }
    });
    let listener = Few { listener, room: Arc::new(Semaphore::new(CONNECTIONS)) };
    let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    let leaving = async {
        stop.cancelled().await;
        tokio::time::sleep(LEAVING).await;
    };
    tokio::select! {
        served = serving.into_future() => served.map_err(failed),
        () = leaving => Ok(()),
    }
}

fn refused((status, words): (StatusCode, &'static str)) -> Response {
    (status, [(header::WWW_AUTHENTICATE, "Bearer")], words).into_response()
}

/// A listener with room for so many.
struct Few {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Listener for Few {
    type Io = Held;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Held, SocketAddr) {
        let place = Arc::clone(&self.room).acquire_owned().await.ok();
        let (stream, from) = Listener::accept(&mut self.listener).await;
        (Held { stream, _place: place }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Listener::local_addr(&self.listener)
    }
}

/// A connection, with the room it takes.
struct Held {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Held {
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

    fn status(door: &Door, path: &str, authorization: Option<&str>) -> Option<u16> {
        let mut request = Request::builder().uri(path);
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let request = request.body(Body::empty()).ok()?;
        door.refuses(&request).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_the_whole_token_opens_and_the_path_only_where_it_may() {
        let door = |in_path| Door { token: SecretString::from("s3cret"), in_path };
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
            assert_eq!(status(&door(false), path, header), plain, "{path} {header:?}");
            assert_eq!(status(&door(true), path, header), in_path, "{path} {header:?} in path");
        }
    }
}
