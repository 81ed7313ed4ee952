//! Decides on host requests and opens the connections. No other module of the proxy connects to a
//! host.
//!
//! It resolves a name once, requires all its addresses to be public or opened by the user, and
//! dials exactly those addresses, so a DNS answer that changes later has no effect. An upstream
//! proxy gets the name instead, after the same checks. Tests replace [`SystemConnector`]; the checks
//! are outside it and cannot be bypassed.

use super::host_allowlist::{Host, HostAllowlist, WEB_PORTS};
use super::public_address::{
    is_metadata_service, is_private_network, is_public, is_public_or_fake,
};
use super::token::ProxyToken;
use super::upstream::{HostConnection, HttpRequestForm, ProxiedProtocol, UpstreamProxy};
use super::{HostDecision, HostRuling, ProxyLimits};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// Limits the addresses tried per host.
const MAX_ADDRESSES_TRIED: usize = 4;
/// Time to resolve a name that an upstream proxy will resolve again.
const UPSTREAM_RESOLVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Limits the client's text that an error message repeats.
const MAX_ECHO_CHARS: usize = 300;

/// Name resolution and outgoing connections.
pub(super) trait NetworkConnector: Send + Sync + 'static {
    /// Resolves a name to all its addresses.
    fn resolve(&self, name: &str) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
    /// Connects to exactly this address.
    fn connect(&self, address: SocketAddr) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// Name resolution that replaces the system's.
pub trait NameResolver: Send + Sync + 'static {
    /// Returns all addresses of a name.
    fn resolve(&self, name: &str) -> Vec<IpAddr>;
}

/// The `NetworkConnector` of the system, with an optional `NameResolver` in place of DNS.
#[derive(Default)]
pub(super) struct SystemConnector(pub(super) Option<Arc<dyn NameResolver>>);

impl NetworkConnector for SystemConnector {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Some(resolver) = &self.0 {
            return Ok(resolver.resolve(name));
        }
        // The final dot keeps the resolver from trying the name in the machine's search domains.
        // Not every system resolves `localhost` with the dot.
        let fqdn = if name == "localhost" { name.to_owned() } else { format!("{name}.") };
        match tokio::net::lookup_host((fqdn, 0)).await {
            Ok(addresses) => Ok(addresses.map(|address| address.ip()).collect()),
            // The system compares names with the dot to those in the file, which have none.
            Err(error) => {
                #[allow(clippy::disallowed_methods, reason = "a file of the system, not of a user")]
                let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
                let addresses = find_in_hosts_file(&hosts, name);
                if addresses.is_empty() { Err(error) } else { Ok(addresses) }
            }
        }
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Returns the addresses of a name in a text like `/etc/hosts`.
fn find_in_hosts_file(hosts: &str, name: &str) -> Vec<IpAddr> {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let found = lines.filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
    });
    found.collect()
}

/// The reason why the gate refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyRefusalReason {
    NotListed,
    NotPublic(IpAddr),
    /// The host is not a valid name or address.
    InvalidHost(&'static str),
    /// The request is ambiguous, or of a kind that the proxy does not serve.
    UnsupportedRequest(&'static str),
}

impl ProxyRefusalReason {
    fn reason(self) -> String {
        match self {
            ProxyRefusalReason::NotListed => "it is not on the list of allowed hosts".to_owned(),
            ProxyRefusalReason::NotPublic(address) => {
                format!("it resolves to {address}, which is not public")
            }
            ProxyRefusalReason::InvalidHost(text)
            | ProxyRefusalReason::UnsupportedRequest(text) => text.to_owned(),
        }
    }

    fn advice(self, host: &str, port: u16) -> String {
        let entry = match WEB_PORTS.contains(&port) {
            true => host.to_owned(),
            false => format!("{host}:{port}"),
        };
        match self {
            ProxyRefusalReason::NotListed => {
                format!("To reach it, ask the user to add \"{entry}\" to sandbox.network")
            }
            ProxyRefusalReason::NotPublic(address) if is_metadata_service(address) => {
                "Metadata services cannot be reached".to_owned()
            }
            ProxyRefusalReason::NotPublic(_) => format!(
                "To reach a private host, ask the user to add \"{entry}\" to sandbox.network in \
                 their own config"
            ),
            ProxyRefusalReason::InvalidHost(_) => {
                "Use one plain host name, such as example.com".to_owned()
            }
            ProxyRefusalReason::UnsupportedRequest(_) => {
                "Send one plain HTTP request, or open a connection with CONNECT or SOCKS5"
                    .to_owned()
            }
        }
    }
}

/// The reason why a client gets no connection, with a message for the client.
#[derive(Debug)]
pub(super) enum ProxyError {
    /// The host may not be reached.
    Refused(String),
    /// The request is invalid.
    BadRequest(String),
    /// The host may be reached, but cannot be.
    Unreachable(String),
}

/// Decides on requests: the host lists, the token, and the callback that gets each decision.
pub(super) struct HostGate<O> {
    pub(super) hosts: HostAllowlist,
    /// The subset of `hosts` that may resolve to any address, including this machine.
    pub(super) private_hosts: HostAllowlist,
    /// The proxy through which connections leave.
    pub(super) upstream: Option<UpstreamProxy>,
    pub(super) token: ProxyToken,
    pub(super) report: Box<dyn Fn(HostDecision) + Send + Sync>,
    pub(super) connector: O,
    pub(super) limits: ProxyLimits,
}

impl<O: NetworkConnector> HostGate<O> {
    /// Decides on a host, reports the [`HostDecision`], and connects.
    pub(super) async fn open_connection(
        &self,
        host: &Host,
        port: u16,
        protocol: ProxiedProtocol,
    ) -> Result<HostConnection, ProxyError> {
        let text = host.to_string();
        let Some(rule) = self.hosts.matching_entry(host, port) else {
            return Err(self.refuse(&text, port, ProxyRefusalReason::NotListed));
        };
        let deadline = Instant::now() + self.limits.connect_timeout;
        let upstream = self.upstream.as_ref().and_then(|upstream| upstream.route(host, protocol));
        let resolve_deadline = match upstream {
            Some(_) => Instant::now() + UPSTREAM_RESOLVE_TIMEOUT,
            None => deadline,
        };
        let addresses = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                match timeout_at(resolve_deadline, self.connector.resolve(name)).await {
                    Ok(Ok(addresses)) => addresses,
                    Ok(Err(_)) | Err(_) => Vec::new(),
                }
            }
        };
        let forbidden = addresses.iter().find(|address| !self.may_reach(host, port, **address));
        if let Some(address) = forbidden {
            return Err(self.refuse(&text, port, ProxyRefusalReason::NotPublic(*address)));
        }
        let reason = match addresses.is_empty() && upstream.is_none() {
            false => format!("\"{rule}\" is on the list of allowed hosts"),
            true => {
                format!("\"{rule}\" is on the list of allowed hosts, but its name was not found")
            }
        };
        self.report_decision(&text, port, HostRuling::Allowed, reason);
        if let Some(route) = upstream {
            let connected = timeout_at(deadline, route.connect(host, port, protocol)).await;
            let connected = connected.unwrap_or_else(|_| {
                Err("the proxy of the environment does not respond".to_owned())
            });
            return connected
                .map_err(|reason| ProxyError::Unreachable(format!("{text}:{port}: {reason}")));
        }
        if addresses.is_empty() {
            return Err(ProxyError::Unreachable(format!(
                "{text} was not found. Check the spelling, or try again later"
            )));
        }
        let stream = self.dial(host, &addresses, port, deadline).await.ok_or_else(|| {
            ProxyError::Unreachable(format!("{text}:{port} does not respond. Try again later"))
        })?;
        Ok(HostConnection { stream, request_form: HttpRequestForm::Origin })
    }

    /// Returns true if a host on the list may be reached at this address.
    fn may_reach(&self, host: &Host, port: u16, address: IpAddr) -> bool {
        if self.private_hosts.matching_entry(host, port).is_some() {
            return true;
        }
        let is_usual = match host {
            Host::Name(_) => {
                is_public_or_fake(address)
                    || is_private_network(address) && self.hosts.allows_private(host, port)
            }
            Host::Address(_) => is_public(address),
        };
        let is_opened = is_usual || self.hosts.allows_private(&Host::Address(address), port);
        is_opened && !is_metadata_service(address)
    }

    /// Tries the addresses in order, each with an equal share of `connect_timeout`.
    async fn dial(
        &self,
        host: &Host,
        addresses: &[IpAddr],
        port: u16,
        deadline: Instant,
    ) -> Option<TcpStream> {
        let tries = addresses.len().clamp(1, MAX_ADDRESSES_TRIED);
        let share = self.limits.connect_timeout / u32::try_from(tries).unwrap_or(1);
        for address in addresses.iter().take(MAX_ADDRESSES_TRIED) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let time_limit = share.min(remaining).max(Duration::from_millis(1));
            let connect = self.connector.connect(SocketAddr::new(*address, port));
            let Ok(Ok(stream)) = timeout(time_limit, connect).await else { continue };
            let is_private = self.private_hosts.matching_entry(host, port).is_some()
                || self.hosts.allows_private(host, port)
                || self.hosts.allows_private(&Host::Address(*address), port);
            if is_private || !is_own_machine(&stream, *address) {
                return Some(stream);
            }
        }
        None
    }

    /// Reports a refusal and returns the `ProxyError` for the client.
    pub(super) fn refuse(&self, host: &str, port: u16, refusal: ProxyRefusalReason) -> ProxyError {
        let host = escape_for_display(host);
        self.report_decision(&host, port, HostRuling::Refused, refusal.reason());
        let reason = refusal.reason();
        let advice = refusal.advice(&host, port);
        let target = if port == 0 { host } else { format!("{host}:{port}") };
        let message = format!("{target} was refused: {reason}. {advice}");
        match refusal {
            ProxyRefusalReason::NotListed | ProxyRefusalReason::NotPublic(_) => {
                ProxyError::Refused(message)
            }
            ProxyRefusalReason::InvalidHost(_) | ProxyRefusalReason::UnsupportedRequest(_) => {
                ProxyError::BadRequest(message)
            }
        }
    }

    fn report_decision(&self, host: &str, port: u16, ruling: HostRuling, reason: String) {
        (self.report)(HostDecision { host: host.to_owned(), port, ruling, reason });
    }
}

/// Returns true if the connection leads to this machine: a public address can be its own.
pub(super) fn is_own_machine(stream: &TcpStream, address: IpAddr) -> bool {
    stream.local_addr().map_or(true, |local| local.ip() == address)
}

/// Escapes and truncates text of a client for display.
fn escape_for_display(text: &str) -> String {
    text.chars().take(MAX_ECHO_CHARS).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_hosts_file_are_found_without_a_final_dot() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.9 build\n10.0.0.5\tBuild build.corp # ci\n::5 build\nx y\n";
        let found = |name: &str| find_in_hosts_file(hosts, name);
        assert_eq!(found("build"), ["10.0.0.5".parse::<IpAddr>().unwrap(), "::5".parse().unwrap()]);
        assert_eq!(found("build.corp").len(), 1);
        assert_eq!(found("ci"), [] as [IpAddr; 0]);
    }
}
