//! The network by name: the only way out for a command that has none of its own.
//!
//! One listener speaks HTTP (CONNECT and plain requests) and SOCKS5. A client shows the session's
//! token, names a host, and is led there if the host is on the list and every address behind its
//! name is public. It does not look into what is encrypted: whoever is reached by TLS decides
//! what a request means, so a listed host is trusted with what it is sent. The invariants: what
//! was checked is what is dialled, a name that is not listed is never even looked up, and every
//! decision is told once. Start reading at [`Proxy`], then `dial`, where decisions are made.
#![allow(
    clippy::disallowed_types,
    reason = "a command reaches the network here; every task ends with its proxy"
)]

mod dial;
mod groups;
mod head;
mod hosts;
mod http;
mod public;
mod relay;
mod socks;
mod token;

pub use hosts::{HostError, Hosts};
pub use public::is_public;

pub use dial::Names;
use dial::{Gate, Outside, System};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use token::Token;
pub(crate) use token::{USER, escape, new_token, shown};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

/// How long accepting rests after it failed, as it does when descriptors run out.
const REST: Duration = Duration::from_millis(50);

/// What was decided about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The host, as far as it could be read; without control characters.
    pub host: String,
    /// The port, or 0 where none could be read.
    pub port: u16,
    /// Whether the request was let through.
    pub ruling: Ruling,
    /// Why, in words.
    pub reason: String,
}

/// Whether a request was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It was, as far as the host can be reached.
    Allowed,
    /// It was not, and nothing was sent.
    Refused,
}

/// How long and how much a client may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Until it has said what it wants.
    head: Duration,
    /// Until the host has been found and answers.
    connect: Duration,
    /// Without a byte in either direction.
    idle: Duration,
    /// At once; more wait to be accepted.
    connections: usize,
}

const LIMITS: Limits = Limits {
    head: Duration::from_secs(10),
    connect: Duration::from_secs(10),
    idle: Duration::from_secs(300),
    connections: 128,
};

/// Where a proxy leads.
#[derive(Default)]
pub(crate) struct Leading {
    /// The hosts.
    pub(crate) hosts: Hosts,
    /// Those of them that may be anywhere, also on this machine.
    pub(crate) inside: Hosts,
    /// What names lead to, if not to what the system says.
    pub(crate) names: Option<Arc<dyn Names>>,
}

/// A running proxy. It ends with its owner, and all its connections with it.
#[derive(Debug)]
pub struct Proxy(JoinHandle<()>);

impl Proxy {
    /// Serves whoever connects to the listener and knows the token. Each decision about a request
    /// that showed the token is reported once, before the first byte goes out. It needs a runtime
    /// that drives sockets and timers; the report is called on it and must not block.
    pub fn serve(
        listener: TcpListener,
        hosts: Hosts,
        token: &str,
        report: impl Fn(Decided) + Send + Sync + 'static,
    ) -> io::Result<Proxy> {
        Proxy::into(listener, Leading { hosts, ..Leading::default() }, token, report)
    }

    /// The same for whoever has hosts of their own, or names.
    pub(crate) fn into(
        listener: TcpListener,
        leading: Leading,
        token: &str,
        report: impl Fn(Decided) + Send + Sync + 'static,
    ) -> io::Result<Proxy> {
        let Leading { hosts, inside, names } = leading;
        let (report, token) = (Box::new(report), Token::new(token));
        let outside = System(names);
        start(listener, Gate { hosts, inside, token, report, outside, limits: LIMITS })
    }

    /// The variables that lead common programs to a proxy on this port of the loopback.
    pub fn environment(port: u16, token: &str) -> Vec<(String, String)> {
        let token = escape(token);
        let address = format!("{USER}:{token}@127.0.0.1:{port}");
        let http = format!("http://{address}");
        let pairs = [
            ("HTTP_PROXY", http.clone()),
            ("HTTPS_PROXY", http),
            ("ALL_PROXY", format!("socks5h://{address}")),
            // Its own loopback is no business of the proxy. Set, so that no exception of the
            // person's own environment counts.
            ("NO_PROXY", "localhost,127.0.0.1,::1".to_owned()),
        ];
        let both = pairs.into_iter().flat_map(|(name, value)| {
            [(name.to_owned(), value.clone()), (name.to_ascii_lowercase(), value)]
        });
        both.collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn start<O: Outside>(listener: TcpListener, gate: Gate<O>) -> io::Result<Proxy> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok(Proxy(runtime.spawn(accept(listener, Arc::new(gate)))))
}

/// Takes connections as long as there are not too many; they end when this does.
async fn accept<O: Outside>(listener: tokio::net::TcpListener, gate: Arc<Gate<O>>) {
    let seats = Arc::new(Semaphore::new(gate.limits.connections));
    let mut guests = JoinSet::new();
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        while guests.try_join_next().is_some() {}
        let gate = Arc::clone(&gate);
        guests.spawn(async move {
            // How a connection ends was told to its client; nobody else can do anything about it.
            let _ = converse(stream, &gate).await;
            drop(seat);
        });
    }
}

/// The first byte says which protocol a client speaks.
async fn converse<O: Outside>(stream: TcpStream, gate: &Gate<O>) -> io::Result<()> {
    let deadline = Instant::now() + gate.limits.head;
    stream.set_nodelay(true)?;
    let mut first = [0];
    timeout_at(deadline, stream.peek(&mut first)).await??;
    match first {
        [socks::VERSION] => socks::serve(stream, gate, deadline).await,
        // Its older version knows no passwords.
        [4] => socks::refuse_four(stream).await,
        _ => http::serve(stream, gate, deadline).await,
    }
}

#[cfg(test)]
mod tests;
