//! A proxy on a TCP port in front of a server on a Unix socket, which cuts connections.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyDirection {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Answer,
}

/// The place at which a connection is cut.
#[derive(Clone, Copy, Debug)]
pub struct CutPoint {
    pub direction: ProxyDirection,
    /// The bytes that are still passed in this direction, counted from when the cut is set.
    pub bytes: u64,
}

/// A proxy that passes all bytes until it is told to cut.
pub struct TcpProxy {
    address: SocketAddr,
    state: Arc<Mutex<ProxyState>>,
    _tasks: JoinSet<()>,
}

struct ProxyState {
    /// The socket of the server.
    server: PathBuf,
    /// The next cut, with the bytes that are left.
    cut: Option<CutPoint>,
    is_refusing: bool,
    passed_requests: u64,
    passed_answers: u64,
    cuts: u64,
}

impl TcpProxy {
    /// Starts a proxy in front of a socket. It ends when it is dropped.
    pub async fn start(server: &Path) -> TcpProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(ProxyState {
            server: server.to_owned(),
            cut: None,
            is_refusing: false,
            passed_requests: 0,
            passed_answers: 0,
            cuts: 0,
        }));
        let accepting = Arc::clone(&state);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&accepting);
                if !state.lock().unwrap().is_refusing {
                    connections.spawn(pass(client, state));
                }
                while connections.try_join_next().is_some() {}
            }
        });
        TcpProxy { address, state, _tasks: tasks }
    }

    /// Returns the address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the connection that passes the byte of this point, once.
    pub fn cut_at(&self, point: CutPoint) {
        self.state.lock().unwrap().cut = Some(point);
    }

    /// Removes the cut. Returns false if it has happened.
    pub fn take_cut(&self) -> bool {
        self.state.lock().unwrap().cut.take().is_some()
    }

    /// Passes new connections to another server. Those of a server that has ended are closed.
    pub fn redirect(&self, server: &Path) {
        self.state.lock().unwrap().server = server.to_owned();
    }

    /// Closes new connections at once, or accepts them again.
    pub fn refuse_connections(&self, is_refusing: bool) {
        self.state.lock().unwrap().is_refusing = is_refusing;
    }

    /// Returns the bytes that were passed in a direction so far.
    pub fn passed_bytes(&self, direction: ProxyDirection) -> u64 {
        let state = self.state.lock().unwrap();
        match direction {
            ProxyDirection::Request => state.passed_requests,
            ProxyDirection::Answer => state.passed_answers,
        }
    }

    /// Returns the number of connections that were cut.
    pub fn cuts(&self) -> u64 {
        self.state.lock().unwrap().cuts
    }
}

impl ProxyState {
    /// Counts bytes that are about to be passed. Returns how many of them to pass, and whether to
    /// cut the connection after them.
    fn count(&mut self, direction: ProxyDirection, length: usize) -> (usize, bool) {
        let (allowed, is_cut) = match &mut self.cut {
            Some(cut) if cut.direction == direction => {
                let allowed = length.min(usize::try_from(cut.bytes).unwrap());
                cut.bytes -= allowed as u64;
                (allowed, cut.bytes == 0)
            }
            _ => (length, false),
        };
        if is_cut {
            self.cut = None;
            self.cuts += 1;
        }
        match direction {
            ProxyDirection::Request => self.passed_requests += allowed as u64,
            ProxyDirection::Answer => self.passed_answers += allowed as u64,
        }
        (allowed, is_cut)
    }
}

/// Passes the bytes of a connection until an end closes it or it is cut.
async fn pass(mut client: TcpStream, state: Arc<Mutex<ProxyState>>) {
    let server = state.lock().unwrap().server.clone();
    let Ok(mut server) = UnixStream::connect(&server).await else { return };
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        () = copy(from_client, to_server, ProxyDirection::Request, &state) => {}
        () = copy(from_server, to_client, ProxyDirection::Answer, &state) => {}
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    direction: ProxyDirection,
    state: &Mutex<ProxyState>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        let (allowed, is_cut) = state.lock().unwrap().count(direction, length);
        if to.write_all(&buffer[..allowed]).await.is_err() || is_cut {
            return;
        }
    }
}
