//! A server over TCP and over a socket, with tokens for each right.

use crate::memory_host::MemoryHost;
use reqwest::Client;
use secrecy::SecretString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use url::Url;
use windlass_protocol::{AccessRight, ClientInfo, ClientKind, Fault, UnixMillis};
use windlass_server::{
    AccessLogEntry, AccessTokenStore, AccessTokens, ApiServer, Caller, RemoteHost, ServerAddress,
    ServerConfig, SocketEndpoint, TcpEndpoint, TcpSecurity, TlsIdentity, TokenRegistry,
};

/// Longest wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A caller whose name and right the server ignores.
pub fn caller(workspace: Option<&str>) -> Caller {
    Caller {
        client: ClientInfo { name: "ignored".to_owned(), kind: ClientKind::Terminal },
        right: AccessRight::Read,
        workspace: workspace.map(str::to_owned),
        through_node: false,
        tenant: None,
    }
}

struct NoStore;

impl AccessTokenStore for NoStore {
    fn save(&self, _tokens: &AccessTokens) -> Result<(), Fault> {
        Ok(())
    }
}

/// A server with its host.
pub struct TestServer {
    pub host: Arc<MemoryHost>,
    pub tokens: Arc<TokenRegistry>,
    /// Time of the server.
    pub now: Arc<AtomicU64>,
    pub log: Arc<Mutex<Vec<AccessLogEntry>>>,
    server: Arc<ApiServer>,
    folder: TempDir,
    stop: Mutex<CancellationToken>,
    tasks: Mutex<JoinSet<()>>,
}

impl TestServer {
    pub fn new(host: Arc<MemoryHost>) -> TestServer {
        let store = Box::new(NoStore);
        let tokens = Arc::new(TokenRegistry::new(AccessTokens::default(), store));
        let now = Arc::new(AtomicU64::new(1_000_000));
        let log: Arc<Mutex<Vec<AccessLogEntry>>> = Arc::default();
        let (clock, entries, counter) = (Arc::clone(&now), Arc::clone(&log), AtomicU64::new(1));
        let config = ServerConfig {
            version: "1.2.3".to_owned(),
            host_name: "desk".to_owned(),
            roots: Box::new(|_| vec!["/w".to_owned()]),
            user_name: "anna".to_owned(),
            extra_hosts: vec!["windlass.example".to_owned()],
            tokens: Arc::clone(&tokens),
            node_token: None,
            clock: Box::new(move || UnixMillis(clock.load(Ordering::SeqCst))),
            random: Box::new(move || {
                let mut bits = [0; 32];
                bits[..8].copy_from_slice(&counter.fetch_add(1, Ordering::SeqCst).to_be_bytes());
                Ok(bits)
            }),
            access_log: Box::new(move |entry| entries.lock().unwrap().push(entry.clone())),
            metrics: Default::default(),
        };
        let server = ApiServer::new(config, Arc::clone(&host) as _);
        TestServer {
            host,
            tokens,
            now,
            log,
            server,
            folder: tempfile::tempdir().unwrap(),
            stop: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    pub fn add_token(&self, name: &str, right: AccessRight) -> String {
        let mut secret = [0xaa; 32];
        secret[..name.len().min(32)].copy_from_slice(&name.as_bytes()[..name.len().min(32)]);
        self.tokens.add(name, right, secret, UnixMillis(0), None).unwrap()
    }

    pub async fn serve_tcp(&self) -> SocketAddr {
        self.serve(TcpSecurity::LoopbackOnly).await
    }

    pub async fn serve_tls(&self) -> SocketAddr {
        let certificate = include_bytes!("../fixtures/localhost.cert.pem");
        let key = include_bytes!("../fixtures/localhost.key.pem");
        self.serve(TcpSecurity::Tls(TlsIdentity::from_pem(certificate, key).unwrap())).await
    }

    async fn serve(&self, security: TcpSecurity) -> SocketAddr {
        let endpoint = TcpEndpoint::bind("127.0.0.1:0", &security).await.unwrap();
        let address = endpoint.local_address().unwrap();
        let (server, stop) = (Arc::clone(&self.server), self.stop.lock().unwrap().clone());
        self.tasks.lock().unwrap().spawn(async move {
            server.serve_tcp(endpoint, security, stop).await.unwrap();
        });
        address
    }

    pub fn socket_path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn serve_socket(&self) -> PathBuf {
        let path = self.socket_path();
        let endpoint = SocketEndpoint::bind(&path).unwrap();
        let (server, stop) = (Arc::clone(&self.server), self.stop.lock().unwrap().clone());
        self.tasks.lock().unwrap().spawn(server.serve_socket(endpoint, stop));
        path
    }

    /// Stops serving, and frees the path of the socket.
    pub async fn stop(&self) {
        let stop = std::mem::take(&mut *self.stop.lock().unwrap());
        stop.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        tokio::time::timeout(PATIENCE, tasks.join_all()).await.expect("serving stops");
        let _ = std::fs::remove_file(self.socket_path());
    }

    /// Connects over the socket.
    pub async fn connect_socket(&self) -> RemoteHost {
        RemoteHost::connect(ServerAddress::Socket(self.socket_path())).await.unwrap()
    }

    /// Connects over TCP.
    pub async fn connect_tcp(address: SocketAddr, token: &str) -> RemoteHost {
        let url = Url::parse(&format!("http://{address}")).unwrap();
        RemoteHost::connect(ServerAddress::Url(url, SecretString::from(token))).await.unwrap()
    }
}

/// Returns a plain HTTP client.
pub fn http() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

/// Waits for something that must happen.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("this must not take so long")
}
