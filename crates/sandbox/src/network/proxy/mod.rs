//! Proxy that filters by host name: the only way to the network for a command without network
//! access of its own.
//!
//! One listener serves HTTP (`CONNECT` and plain requests) and SOCKS5. A client presents the
//! session's token and names a host. The proxy connects it if the host is on the list and every
//! address of the name is public, or opened by the user. The proxy does not inspect encrypted traffic: the server at the
//! other end of TLS decides what a request means, so a listed host is trusted with the data it
//! receives.
//!
//! Invariants: the proxy dials exactly the addresses it checked, never resolves a name that is not
//! listed, and reports every decision once. Start reading at [`Proxy`], then `dial`, which makes
//! the decisions.
#![allow(
    clippy::disallowed_types,
    reason = "the proxy connects commands to the network; its tasks end with it"
)]

mod host_allowlist;
mod host_gate;
mod host_groups;
mod http;
mod public_address;
mod relay;
mod request_head;
mod socks;
mod socks_codes;
mod token;
mod upstream;

pub use host_allowlist::{HostAllowlist, HostAllowlistError};
pub use public_address::{is_public, is_public_or_fake};
pub use upstream::UpstreamProxy;

pub use host_gate::NameResolver;
use host_gate::{HostGate, NetworkConnector, SystemConnector};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use token::ProxyToken;
#[cfg(target_os = "linux")]
pub(crate) use token::visible_forms;
pub(crate) use token::{PROXY_USER, new_token, percent_encode};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

/// Pause after `accept` fails, as it does when file descriptors run out.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The decision about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDecision {
    /// Requested host, as far as it could be parsed, without control characters.
    pub host: String,
    /// Requested port, or 0 if none could be parsed.
    pub port: u16,
    pub ruling: HostRuling,
    /// Reason for the decision, in words.
    pub reason: String,
}

/// The outcome of a [`HostDecision`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRuling {
    /// The request was allowed; the host may still be unreachable.
    Allowed,
    /// The request was refused and nothing was sent.
    Refused,
}

/// Time and connection limits for clients.
#[derive(Debug, Clone, Copy)]
struct ProxyLimits {
    /// Time until a client has sent its request head.
    head_timeout: Duration,
    /// Time to resolve the host and connect to it.
    connect_timeout: Duration,
    /// Time without a byte in either direction.
    idle_timeout: Duration,
    /// Connections at once; further ones wait to be accepted.
    max_connections: usize,
}

const PROXY_LIMITS: ProxyLimits = ProxyLimits {
    head_timeout: Duration::from_secs(10),
    connect_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(300),
    max_connections: 128,
};

/// The hosts that a proxy serves.
#[derive(Default)]
pub(crate) struct ProxyHostSettings {
    pub(crate) hosts: HostAllowlist,
    /// The subset of `hosts` that may resolve to any address, including this machine.
    pub(crate) private_hosts: HostAllowlist,
    /// Replaces the system's name resolution if set.
    pub(crate) resolver: Option<Arc<dyn NameResolver>>,
    /// The proxy through which connections leave.
    pub(crate) upstream: Option<UpstreamProxy>,
}

/// A running proxy. Dropping it ends it and all its connections.
#[derive(Debug)]
pub struct Proxy(JoinHandle<()>);

impl Proxy {
    /// Serves clients that connect to `listener` and present the token. Calls `report` once for
    /// each decision about an authenticated request, before the first byte goes out. Requires a
    /// Tokio runtime with I/O and timers; `report` runs on it and must not block.
    pub fn serve(
        listener: TcpListener,
        hosts: HostAllowlist,
        token: &str,
        report: impl Fn(HostDecision) + Send + Sync + 'static,
    ) -> io::Result<Proxy> {
        Proxy::serve_targets(
            listener,
            ProxyHostSettings { hosts, ..ProxyHostSettings::default() },
            token,
            report,
        )
    }

    /// Serves like [`Proxy::serve`], with private hosts and a name resolver in addition.
    pub(crate) fn serve_targets(
        listener: TcpListener,
        targets: ProxyHostSettings,
        token: &str,
        report: impl Fn(HostDecision) + Send + Sync + 'static,
    ) -> io::Result<Proxy> {
        let ProxyHostSettings { hosts, private_hosts, resolver, upstream } = targets;
        let report = Box::new(report);
        let token = ProxyToken::new(token);
        let connector = SystemConnector(resolver);
        start_proxy(
            listener,
            HostGate {
                hosts,
                private_hosts,
                upstream,
                token,
                report,
                connector,
                limits: PROXY_LIMITS,
            },
        )
    }

    /// Returns the environment variables that direct common programs to a proxy on this loopback
    /// port.
    pub fn environment(port: u16, token: &str) -> Vec<(String, String)> {
        let token = percent_encode(token);
        let authority = format!("{PROXY_USER}:{token}@127.0.0.1:{port}");
        let http = format!("http://{authority}");
        let pairs = [
            ("HTTP_PROXY", http.clone()),
            ("HTTPS_PROXY", http),
            ("ALL_PROXY", format!("socks5h://{authority}")),
            // The command's own loopback bypasses the proxy. The variable is always set, so that
            // exceptions in the user's environment do not apply.
            ("NO_PROXY", "localhost,127.0.0.1,::1".to_owned()),
        ];
        let variables = pairs.into_iter().flat_map(|(name, value)| {
            [(name.to_owned(), value.clone()), (name.to_ascii_lowercase(), value)]
        });
        variables.collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn start_proxy<O: NetworkConnector>(listener: TcpListener, gate: HostGate<O>) -> io::Result<Proxy> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok(Proxy(runtime.spawn(accept_connections(listener, Arc::new(gate)))))
}

/// Accepts connections up to the limit. They end when this future is dropped.
async fn accept_connections<O: NetworkConnector>(
    listener: tokio::net::TcpListener,
    gate: Arc<HostGate<O>>,
) {
    let permits = Arc::new(Semaphore::new(gate.limits.max_connections));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let gate = Arc::clone(&gate);
        connections.spawn(async move {
            // The client has already seen the error, and there is no other way to handle it.
            let _ = serve_connection(stream, &gate).await;
            drop(permit);
        });
    }
}

/// Selects the protocol by the first byte that the client sends.
async fn serve_connection<O: NetworkConnector>(
    stream: TcpStream,
    gate: &HostGate<O>,
) -> io::Result<()> {
    let deadline = Instant::now() + gate.limits.head_timeout;
    stream.set_nodelay(true)?;
    let mut first = [0];
    timeout_at(deadline, stream.peek(&mut first)).await??;
    match first {
        [socks_codes::SOCKS_VERSION] => socks::serve(stream, gate, deadline).await,
        // SOCKS4 has no password authentication.
        [4] => socks::refuse_socks4(stream).await,
        _ => http::serve(stream, gate, deadline).await,
    }
}

/// Checks the invariants of heads of proxy requests on any bytes. For the fuzzer.
#[doc(hidden)]
pub fn check_proxy_head_invariants(bytes: &[u8]) -> bool {
    request_head::invariants_hold(bytes)
}

#[cfg(test)]
mod tests;
