//! Where it is decided whether a host is reached, and the only place that reaches one.
//!
//! A name is looked up once. All its addresses have to be public, and exactly these are dialled,
//! so an answer that changes afterwards changes nothing. Tests put another world in place of
//! [`System`]; the checks are on this side of it and cannot be left out.

use super::hosts::{Host, Hosts};
use super::public::is_public;
use super::token::Token;
use super::{Decided, Limits, Ruling};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// How many addresses of one host are tried.
const TRIES: usize = 4;
/// How much of what a client sent is repeated.
const ECHO: usize = 300;

/// The world outside: names and connections.
pub(super) trait Outside: Send + Sync + 'static {
    /// All addresses of a name.
    fn resolve(&self, name: &str) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
    /// A connection to exactly this address.
    fn connect(&self, address: SocketAddr) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// What names lead to, for whoever has names of their own.
pub trait Names: Send + Sync + 'static {
    /// All addresses of a name.
    fn resolve(&self, name: &str) -> Vec<IpAddr>;
}

/// The world as it is, but for names that somebody else knows.
#[derive(Default)]
pub(super) struct System(pub(super) Option<Arc<dyn Names>>);

impl Outside for System {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Some(names) = &self.0 {
            return Ok(names.resolve(name));
        }
        // The final dot keeps a resolver from trying the name below the machine's own domains. Of
        // this machine not all know their own name with it.
        let whole = if name == "localhost" { name.to_owned() } else { format!("{name}.") };
        let found = tokio::net::lookup_host((whole, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Unlisted,
    NotPublic(IpAddr),
    /// The host cannot be read.
    Malformed(&'static str),
    /// The request could be understood in two ways, or is one that is not served.
    Unserved(&'static str),
}

impl Why {
    fn reason(self) -> String {
        match self {
            Why::Unlisted => "it is not on the list of hosts".to_owned(),
            Why::NotPublic(address) => format!("it leads to {address}, which is not public"),
            Why::Malformed(what) | Why::Unserved(what) => what.to_owned(),
        }
    }

    fn advice(self, host: &str, port: u16) -> String {
        match self {
            Why::Unlisted if port == 80 || port == 443 => {
                format!("To reach it, ask the person to add \"{host}\" to sandbox.network")
            }
            Why::Unlisted => {
                format!("To reach it, ask the person to add \"{host}:{port}\" to sandbox.network")
            }
            Why::NotPublic(_) => "Only public hosts can be reached from here".to_owned(),
            Why::Malformed(_) => "Name one host as it is, like example.com".to_owned(),
            Why::Unserved(_) => {
                "Send one plain HTTP request, or open a connection with CONNECT or SOCKS5"
                    .to_owned()
            }
        }
    }
}

/// Why a client gets no connection, with a sentence for it.
#[derive(Debug)]
pub(super) enum Closed {
    /// It may not be reached.
    Refused(String),
    /// The request is no good.
    Flawed(String),
    /// It may be reached, but cannot.
    Unreachable(String),
}

/// Where a host may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// On the public network, and not on this machine.
    Public,
    /// Anywhere.
    None,
}

/// The list, the token, and whoever is told.
pub(super) struct Gate<O> {
    pub(super) hosts: Hosts,
    /// Those of them that may be anywhere, also on this machine.
    pub(super) inside: Hosts,
    pub(super) token: Token,
    pub(super) report: Box<dyn Fn(Decided) + Send + Sync>,
    pub(super) outside: O,
    pub(super) limits: Limits,
}

impl<O: Outside> Gate<O> {
    /// Decides, tells, and connects.
    pub(super) async fn open(&self, host: &Host, port: u16) -> Result<TcpStream, Closed> {
        let text = host.to_string();
        let Some(rule) = self.hosts.rule(host, port) else {
            return Err(self.refuse(&text, port, Why::Unlisted));
        };
        let deadline = Instant::now() + self.limits.connect;
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => match timeout_at(deadline, self.outside.resolve(name)).await {
                Ok(Ok(found)) => found,
                Ok(Err(_)) | Err(_) => Vec::new(),
            },
        };
        let bounds = match self.inside.rule(host, port) {
            Some(_) => Bounds::None,
            None => Bounds::Public,
        };
        let private = |address: &&IpAddr| bounds == Bounds::Public && !is_public(**address);
        if let Some(address) = found.iter().find(private) {
            return Err(self.refuse(&text, port, Why::NotPublic(*address)));
        }
        let reason = match found.is_empty() {
            false => format!("\"{rule}\" is on the list of hosts"),
            true => format!("\"{rule}\" is on the list of hosts, but its name was not found"),
        };
        self.tell(&text, port, Ruling::Allowed, reason);
        if found.is_empty() {
            return Err(Closed::Unreachable(format!(
                "{text} was not found. Check its spelling, or try again later"
            )));
        }
        self.dial(&found, port, bounds, deadline).await.ok_or_else(|| {
            Closed::Unreachable(format!("{text}:{port} does not answer. Try again later"))
        })
    }

    /// Tries one address after the other, each with a fair share of the time.
    async fn dial(
        &self,
        found: &[IpAddr],
        port: u16,
        bounds: Bounds,
        deadline: Instant,
    ) -> Option<TcpStream> {
        let tries = found.len().clamp(1, TRIES);
        let share = self.limits.connect / u32::try_from(tries).unwrap_or(1);
        for address in found.iter().take(TRIES) {
            let left = deadline.saturating_duration_since(Instant::now());
            let patience = share.min(left).max(Duration::from_millis(1));
            let connecting = self.outside.connect(SocketAddr::new(*address, port));
            let Ok(Ok(stream)) = timeout(patience, connecting).await else { continue };
            if bounds == Bounds::None || !is_own(&stream, *address) {
                return Some(stream);
            }
        }
        None
    }

    /// Tells of a refusal, and gives the sentence for the client.
    pub(super) fn refuse(&self, host: &str, port: u16, why: Why) -> Closed {
        let host = echo(host);
        self.tell(&host, port, Ruling::Refused, why.reason());
        let (reason, advice) = (why.reason(), why.advice(&host, port));
        let place = if port == 0 { host } else { format!("{host}:{port}") };
        let sentence = format!("{place} was refused: {reason}. {advice}");
        match why {
            Why::Unlisted | Why::NotPublic(_) => Closed::Refused(sentence),
            Why::Malformed(_) | Why::Unserved(_) => Closed::Flawed(sentence),
        }
    }

    fn tell(&self, host: &str, port: u16, ruling: Ruling, reason: String) {
        (self.report)(Decided { host: host.to_owned(), port, ruling, reason });
    }
}

/// True for a connection to this machine itself: a public address can still be its own.
pub(super) fn is_own(stream: &TcpStream, address: IpAddr) -> bool {
    stream.local_addr().map_or(true, |local| local.ip() == address)
}

/// What a client sent, fit to be shown.
fn echo(text: &str) -> String {
    text.chars().take(ECHO).flat_map(char::escape_default).collect()
}
