//! The loop of a connection, which answers its requests one after another.

use super::connection::Connection;
use super::request_handler::handle_request;
use super::write_timeout::WriteTimeout;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Limit for the head of a later request, from the end of the one before.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Size of the buffers of a connection. It bounds what a client that does not read can hold, and is
/// larger than the head of any request that is allowed.
const MAX_BUFFER_BYTES: usize = 20 << 10;

/// Serves the requests of a connection.
pub(super) async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: Connection,
) {
    let handle = |request: hyper::Request<Incoming>| {
        let connection = connection.clone();
        connection.note_request();
        async move { Ok::<_, Infallible>(handle_request(connection, request.map(Body::new)).await) }
    };
    let stream = WriteTimeout::new(stream, connection.unlimited_writes());
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service_fn(handle));
    tokio::pin!(serving);
    // An error is the client's: it disconnected or sent no valid request.
    tokio::select! {
        _ = &mut serving => {}
        () = connection.until_cut() => {}
        () = connection.stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}
