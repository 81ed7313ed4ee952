//! The HTTP server: listeners, and what all their connections share.
//!
//! A listener accepts at most [`MAX_CONNECTIONS`] connections at once. A connection that becomes an
//! event stream is counted as a stream instead, so streams keep no request out. Start reading at
//! [`ApiServer`]; `request_handler` answers a request.

mod connection;
mod connection_loop;
mod content;
mod listeners;
#[cfg(not(unix))]
mod missing_socket;
mod request_handler;
mod responses;
mod served_request;
mod server_routes;
mod tls;
#[cfg(unix)]
mod unix_socket;
mod write_timeout;

pub use listeners::{TcpEndpoint, TcpSecurity};
#[cfg(not(unix))]
pub use missing_socket::MissingSocket as SocketEndpoint;
pub use tls::{TlsError, TlsIdentity};
#[cfg(unix)]
pub use unix_socket::SocketEndpoint;

use crate::FrontendService;
use crate::access_log::AccessLogEntry;
use crate::access_tokens::{TokenDigest, TokenRegistry};
use crate::limits::{ClientSlots, LOGIN_RATE, REQUEST_RATE, RateLimiter, SlotLimit};
use crate::metrics::ServerMetrics;
use prometheus_client::registry::Registry;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use windlass_protocol::{Fault, RequestError, UnixMillis};

/// Maximum number of connections of a listener that are no event streams.
const MAX_CONNECTIONS: usize = 256;
/// Limit of event streams over TCP.
const TCP_STREAMS: SlotLimit = SlotLimit {
    by_client: 32,
    total: 512,
    text: "Too many event streams are open. Close one.",
    retry_after_ms: 5_000,
};
/// Limit of event streams over the socket, whose clients are all the same user.
const SOCKET_STREAMS: SlotLimit = SlotLimit { by_client: 1_024, total: 1_024, ..TCP_STREAMS };
/// Limit of requests over TCP that the host answers at once.
const TCP_REQUESTS: SlotLimit = SlotLimit {
    by_client: 16,
    total: MAX_CONNECTIONS,
    text: "Too many requests are under way. Wait until one is answered.",
    retry_after_ms: 1_000,
};
/// Limit of requests over the socket that the host answers at once.
const SOCKET_REQUESTS: SlotLimit = SlotLimit { by_client: MAX_CONNECTIONS, ..TCP_REQUESTS };

/// Returns the folders that clients of a tenant may work in, or the server's own clients.
pub type RootsOfTenant = Box<dyn Fn(Option<&str>) -> Vec<String> + Send + Sync>;

/// The parts of a server that its owner provides.
pub struct ServerConfig {
    /// Version of Windlass.
    pub version: String,
    /// Name of this machine.
    pub host_name: String,
    /// Folders that clients may work in.
    pub roots: RootsOfTenant,
    /// Name of the user, which clients of the socket have.
    pub user_name: String,
    /// Names in the header `Host` that are allowed besides those of the loopback.
    pub extra_hosts: Vec<String>,
    /// Tokens of clients.
    pub tokens: Arc<TokenRegistry>,
    /// The token with which other nodes of a fleet send requests of their clients.
    pub node_token: Option<SecretString>,
    /// Returns the time.
    pub clock: Box<dyn Fn() -> UnixMillis + Send + Sync>,
    /// Returns 256 random bits.
    pub random: Box<dyn Fn() -> Result<[u8; 32], Fault> + Send + Sync>,
    /// Receives a line for every request.
    pub access_log: Box<dyn Fn(&AccessLogEntry) + Send + Sync>,
    /// Metrics of the host, to which the server adds its own.
    pub metrics: Registry,
}

/// A server of one host. Several listeners may share it.
pub struct ApiServer {
    config: ServerConfig,
    metrics: ServerMetrics,
    node_token: Option<TokenDigest>,
    service: Arc<dyn FrontendService>,
    request_rate: RateLimiter,
    login_rate: RateLimiter,
    tcp_streams: ClientSlots,
    socket_streams: ClientSlots,
    tcp_requests: ClientSlots,
    socket_requests: ClientSlots,
    /// Requests that change something, and go on even if their clients have gone.
    requests: TaskTracker,
}

impl ApiServer {
    /// Creates a server, which serves once it has a listener.
    pub fn new(mut config: ServerConfig, service: Arc<dyn FrontendService>) -> Arc<ApiServer> {
        let metrics = ServerMetrics::new(std::mem::take(&mut config.metrics));
        let node_token = config.node_token.take();
        let node_token = node_token.map(|token| TokenDigest::of(token.expose_secret()));
        Arc::new(ApiServer {
            config,
            metrics,
            node_token,
            service,
            request_rate: RateLimiter::new(REQUEST_RATE),
            login_rate: RateLimiter::new(LOGIN_RATE),
            tcp_streams: ClientSlots::new(TCP_STREAMS),
            socket_streams: ClientSlots::new(SOCKET_STREAMS),
            tcp_requests: ClientSlots::new(TCP_REQUESTS),
            socket_requests: ClientSlots::new(SOCKET_REQUESTS),
            requests: TaskTracker::new(),
        })
    }

    /// Returns 256 random bits.
    fn random(&self) -> Result<[u8; 32], RequestError> {
        Ok((self.config.random)()?)
    }

    /// Waits until a token has expired. A page's token lives longer each time it is used, so its
    /// time is looked up again when it has come.
    async fn until_expired(self: Arc<Self>, client: String, mut expires_at: Option<UnixMillis>) {
        loop {
            let Some(at) = expires_at else { return std::future::pending().await };
            let now = (self.config.clock)();
            if now >= at {
                match self.config.tokens.expires_at(&client) {
                    Some(at) if now >= at => return,
                    later => expires_at = later,
                }
                continue;
            }
            tokio::time::sleep(Duration::from_millis(at.0.saturating_sub(now.0))).await;
        }
    }
}

#[cfg(test)]
mod tests;
