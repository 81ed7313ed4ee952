//! A fake internet: names, addresses that count as public, and servers behind them on the loopback.
//! The address checks are the real ones.

use crate::network::proxy::host_gate::{HostGate, NetworkConnector};
use crate::network::proxy::token::ProxyToken;
use crate::network::proxy::{
    HostAllowlist, HostDecision, HostRuling, PROXY_LIMITS, Proxy, ProxyLimits, UpstreamProxy,
    start_proxy,
};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

pub(crate) const TOKEN: &str = "s3cret-token";
/// Time after which a connection counts as hanging.
pub(crate) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(20);

/// Names and servers of the fake internet, and the requests it received.
#[derive(Default)]
struct FakeInternetState {
    /// The answers for a name, in order; the last one repeats.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    servers: HashMap<IpAddr, SocketAddr>,
    resolved_names: Vec<String>,
    dialed_addresses: Vec<SocketAddr>,
    decisions: Vec<HostDecision>,
    /// Bytes that servers received, one entry per connection.
    received: Vec<Arc<Mutex<Vec<u8>>>>,
}

/// A `NetworkConnector` that resolves and connects within the fake internet.
#[derive(Clone)]
pub(crate) struct FakeInternet(Arc<Mutex<FakeInternetState>>);

impl NetworkConnector for FakeInternet {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut state = self.0.lock().unwrap();
        state.resolved_names.push(name.to_owned());
        let answers = state.names.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let server = {
            let mut state = self.0.lock().unwrap();
            state.dialed_addresses.push(address);
            state.servers.get(&address.ip()).copied()
        };
        match server {
            Some(server) => TcpStream::connect(server).await,
            None => std::future::pending().await,
        }
    }
}

/// The behavior of a fake server.
#[derive(Clone, Copy)]
pub(crate) enum FakeServerBehavior {
    /// Sends every byte back.
    Echo,
    /// Sends this response a moment after a request head arrived, and closes.
    Responds(&'static str),
    /// Reads everything and sends nothing.
    Silent,
}

/// A proxy in front of the fake internet.
pub(crate) struct ProxyTestEnv {
    pub(crate) internet: FakeInternet,
    pub(crate) address: SocketAddr,
    pub(crate) proxy: Option<Proxy>,
    servers: Vec<AbortHandle>,
}

impl Drop for ProxyTestEnv {
    fn drop(&mut self) {
        self.servers.iter().for_each(AbortHandle::abort);
    }
}

impl ProxyTestEnv {
    pub(crate) fn new(list: &[&str]) -> ProxyTestEnv {
        ProxyTestEnv::with_limits(list, PROXY_LIMITS)
    }

    pub(crate) fn with_limits(list: &[&str], limits: ProxyLimits) -> ProxyTestEnv {
        ProxyTestEnv::on_listener(TcpListener::bind("127.0.0.1:0").unwrap(), list, limits)
    }

    pub(crate) fn on_listener(
        listener: TcpListener,
        list: &[&str],
        limits: ProxyLimits,
    ) -> ProxyTestEnv {
        let list: Vec<String> = list.iter().map(|each| (*each).to_owned()).collect();
        let hosts = HostAllowlist::parse(&list).unwrap();
        ProxyTestEnv::with_hosts(listener, hosts, None, limits)
    }

    pub(crate) fn with_hosts(
        listener: TcpListener,
        hosts: HostAllowlist,
        upstream: Option<UpstreamProxy>,
        limits: ProxyLimits,
    ) -> ProxyTestEnv {
        let internet = FakeInternet(Arc::default());
        let address = listener.local_addr().unwrap();
        let state = Arc::clone(&internet.0);
        let report = Box::new(move |decision| state.lock().unwrap().decisions.push(decision));
        let (token, connector) = (ProxyToken::new(TOKEN), internet.clone());
        let proxy = start_proxy(
            listener,
            HostGate {
                hosts,
                private_hosts: HostAllowlist::none(),
                upstream,
                token,
                report,
                connector,
                limits,
            },
        )
        .unwrap();
        ProxyTestEnv { internet, address, proxy: Some(proxy), servers: Vec::new() }
    }

    /// Adds a name with its answers, in order; the last one repeats.
    pub(crate) fn add_name(&self, name: &str, answers: &[&[&str]]) {
        let parse = |each: &&str| each.parse().unwrap();
        let answers = answers.iter().map(|list| list.iter().map(parse).collect()).collect();
        self.internet.0.lock().unwrap().names.insert(name.to_owned(), answers);
    }

    /// Adds a server at a public address, and returns its real address.
    pub(crate) fn add_server(&mut self, address: &str, server: FakeServerBehavior) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let real = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let internet = self.internet.clone();
        internet.0.lock().unwrap().servers.insert(address.parse().unwrap(), real);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let received = Arc::new(Mutex::new(Vec::new()));
                internet.0.lock().unwrap().received.push(Arc::clone(&received));
                tokio::spawn(handle_connection(stream, server, received));
            }
        });
        self.servers.push(task.abort_handle());
        real
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes to the proxy and returns the whole response.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        read_all(&mut stream).await
    }

    /// Returns all decisions as short lines, such as `+example.com:80`.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let state = self.internet.0.lock().unwrap();
        let line = |decision: &HostDecision| {
            let sign = match decision.ruling {
                HostRuling::Allowed => '+',
                HostRuling::Refused => '-',
            };
            assert!(
                !decision.reason.is_empty()
                    && decision.host.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
            );
            format!("{sign}{}:{}", decision.host, decision.port)
        };
        state.decisions.iter().map(line).collect()
    }

    pub(crate) fn resolved_names(&self) -> Vec<String> {
        self.internet.0.lock().unwrap().resolved_names.clone()
    }

    pub(crate) fn dialed_addresses(&self) -> Vec<String> {
        self.internet.0.lock().unwrap().dialed_addresses.iter().map(SocketAddr::to_string).collect()
    }

    /// Returns the bytes that each server connection received.
    pub(crate) fn received(&self) -> Vec<String> {
        let state = self.internet.0.lock().unwrap();
        state
            .received
            .iter()
            .map(|received| String::from_utf8_lossy(&received.lock().unwrap()).into_owned())
            .collect()
    }
}

/// Reads until the connection ends or breaks.
pub(crate) async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(CONNECTION_TIMEOUT, stream.read_to_end(&mut bytes)).await;
    let _ = read.expect("the connection does not end");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the header line with the proxy token.
pub(crate) fn authorization_header() -> String {
    use base64::Engine;
    let credential = base64::engine::general_purpose::STANDARD.encode(format!("windlass:{TOKEN}"));
    format!("Proxy-Authorization: Basic {credential}\r\n")
}

async fn handle_connection(
    mut stream: TcpStream,
    server: FakeServerBehavior,
    received: Arc<Mutex<Vec<u8>>>,
) {
    let mut piece = vec![0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece).await {
        received.lock().unwrap().extend_from_slice(&piece[..read]);
        match server {
            FakeServerBehavior::Echo => stream.write_all(&piece[..read]).await.unwrap_or_default(),
            FakeServerBehavior::Responds(response) if has_head(&received.lock().unwrap()) => {
                // Waits long enough for a second request to arrive, in case one is forwarded.
                let more = tokio::time::timeout(Duration::from_millis(200), async {
                    while let Ok(read @ 1..) = stream.read(&mut piece).await {
                        received.lock().unwrap().extend_from_slice(&piece[..read]);
                    }
                });
                let _ = more.await;
                let _ = stream.write_all(response.as_bytes()).await;
                return;
            }
            FakeServerBehavior::Responds(_) | FakeServerBehavior::Silent => {}
        }
    }
}

fn has_head(received: &[u8]) -> bool {
    received.windows(4).any(|four| four == b"\r\n\r\n")
}
