//! The TCP listener of the server, with or without TLS, and the acceptance of connections.
#![allow(clippy::disallowed_types, reason = "this module accepts the connections of clients")]

use super::connection::Connection;
use super::connection_loop::serve_connection;
use super::tls::TlsIdentity;
use super::{ApiServer, MAX_CONNECTIONS};
use crate::request_checks::{AllowedHosts, Scheme, Transport};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Limit for clients to disconnect after serving was stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Limit for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A TCP address to serve.
pub struct TcpEndpoint {
    listener: TcpListener,
}

/// The protection of a TCP connection.
#[derive(Clone)]
pub enum TcpSecurity {
    /// TLS with this certificate.
    Tls(TlsIdentity),
    /// None, for loopback addresses only.
    LoopbackOnly,
    /// None, because a reverse proxy or a private network protects the connection.
    External,
}

impl TcpEndpoint {
    /// Listens on an address such as `127.0.0.1:0`. An address beyond the loopback needs a
    /// `TcpSecurity` that permits it.
    pub async fn bind(address: &str, security: &TcpSecurity) -> io::Result<TcpEndpoint> {
        let listener = TcpListener::bind(address).await?;
        let is_loopback = listener.local_addr()?.ip().is_loopback();
        match security {
            TcpSecurity::LoopbackOnly if !is_loopback => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this address is reachable from other machines; \
                 add --tls-cert and --tls-key, or --plain if something else protects it",
            )),
            TcpSecurity::LoopbackOnly | TcpSecurity::Tls(_) | TcpSecurity::External => {
                Ok(TcpEndpoint { listener })
            }
        }
    }

    /// Returns the address with its port.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl ApiServer {
    /// Serves TCP clients until `stop` fires.
    pub async fn serve_tcp(
        self: Arc<Self>,
        endpoint: TcpEndpoint,
        security: TcpSecurity,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let port = endpoint.local_address()?.port();
        let (scheme, tls) = match security {
            TcpSecurity::Tls(identity) => (Scheme::Https, Some(identity.acceptor())),
            TcpSecurity::LoopbackOnly | TcpSecurity::External => (Scheme::Http, None),
        };
        let hosts = Arc::new(AllowedHosts::new(port, &self.config.extra_hosts, scheme));
        let transport = Transport::Tcp(hosts);
        let listener = endpoint.listener;
        let serve = move |stream: TcpStream, connection: Connection| {
            let tls = tls.clone();
            async move {
                // Frames and answers are written whole; waiting to join them only adds latency.
                let _ = stream.set_nodelay(true);
                let Some(tls) = tls else { return serve_connection(stream, connection).await };
                let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
                // An error is the client's: it disconnected or does not trust the certificate.
                if let Ok(Ok(stream)) = handshake.await {
                    serve_connection(stream, connection).await;
                }
            }
        };
        accept_until_stopped(self, transport, stop, listener, serve).await;
        Ok(())
    }
}

/// A source of connections.
pub(super) trait Listener: Send + Sync {
    type Stream: Send;

    fn accept_stream(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept_stream(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// Accepts connections until `stop` fires, then waits a moment for them to end.
pub(super) async fn accept_until_stopped<L: Listener, F>(
    server: Arc<ApiServer>,
    transport: Transport,
    stop: CancellationToken,
    listener: L,
    serve: impl Fn(L::Stream, Connection) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut tasks = JoinSet::new();
    loop {
        let accept_next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (listener.accept_stream().await, slot)
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept_next => accepted,
        };
        match accepted {
            (Ok(stream), Ok(slot)) => {
                let connection = Connection::new(&server, &transport, &stop, slot);
                tasks.spawn(serve(stream, connection));
            }
            // Such as too many open files: closed connections free some.
            (Err(_), _) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
            (Ok(_), Err(_)) => break,
        }
        while tasks.try_join_next().is_some() {}
    }
    // Clients that come now must find nobody, instead of a server that does not answer.
    drop(listener);
    server.requests.close();
    let all_ended = async {
        while tasks.join_next().await.is_some() {}
        server.requests.wait().await;
    };
    // Dropping the tasks closes connections that are still open.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all_ended).await;
}
