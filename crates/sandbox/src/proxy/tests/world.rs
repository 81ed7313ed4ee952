//! An internet that fits into a test: names, addresses that count as public, and servers behind
//! them on the loopback. The checks of addresses are the real ones.

use crate::proxy::dial::{Gate, Outside};
use crate::proxy::token::Token;
use crate::proxy::{Decided, Hosts, LIMITS, Limits, Proxy, Ruling, start};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

pub(crate) const TOKEN: &str = "s3cret-token";
/// What a test waits for at most.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What the outside was asked for, and what it answers.
#[derive(Default)]
struct Books {
    /// Each answer is given once, the last one for ever.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    servers: HashMap<IpAddr, SocketAddr>,
    asked: Vec<String>,
    dialled: Vec<SocketAddr>,
    decided: Vec<Decided>,
    /// What servers got, one entry a connection.
    got: Vec<Arc<Mutex<Vec<u8>>>>,
}

#[derive(Clone)]
pub(crate) struct Internet(Arc<Mutex<Books>>);

impl Outside for Internet {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut books = self.0.lock().unwrap();
        books.asked.push(name.to_owned());
        let answers = books.names.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let server = {
            let mut books = self.0.lock().unwrap();
            books.dialled.push(address);
            books.servers.get(&address.ip()).copied()
        };
        match server {
            Some(server) => TcpStream::connect(server).await,
            None => std::future::pending().await,
        }
    }
}

/// What a server says to whoever has sent an empty line, if anything.
#[derive(Clone, Copy)]
pub(crate) enum Server {
    /// Sends everything back.
    Echo,
    /// Says this once a head has arrived and a moment has passed, and closes.
    Says(&'static str),
    /// Takes everything, says nothing.
    Silent,
}

pub(crate) struct World {
    pub(crate) internet: Internet,
    pub(crate) address: SocketAddr,
    pub(crate) proxy: Option<Proxy>,
    servers: Vec<AbortHandle>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.servers.iter().for_each(AbortHandle::abort);
    }
}

impl World {
    pub(crate) fn new(list: &[&str]) -> World {
        World::with(list, LIMITS)
    }

    pub(crate) fn with(list: &[&str], limits: Limits) -> World {
        World::on(TcpListener::bind("127.0.0.1:0").unwrap(), list, limits)
    }

    pub(crate) fn on(listener: TcpListener, list: &[&str], limits: Limits) -> World {
        let list: Vec<String> = list.iter().map(|each| (*each).to_owned()).collect();
        let hosts = Hosts::parse(&list).unwrap();
        let internet = Internet(Arc::default());
        let address = listener.local_addr().unwrap();
        let books = Arc::clone(&internet.0);
        let report = Box::new(move |decided| books.lock().unwrap().decided.push(decided));
        let (token, outside) = (Token::new(TOKEN), internet.clone());
        let proxy =
            start(listener, Gate { hosts, inside: Hosts::none(), token, report, outside, limits })
                .unwrap();
        World { internet, address, proxy: Some(proxy), servers: Vec::new() }
    }

    /// A name and what it leads to, each answer once.
    pub(crate) fn name(&self, name: &str, answers: &[&[&str]]) {
        let parse = |each: &&str| each.parse().unwrap();
        let answers = answers.iter().map(|list| list.iter().map(parse).collect()).collect();
        self.internet.0.lock().unwrap().names.insert(name.to_owned(), answers);
    }

    /// A server at an address that counts as public; returns where it really is.
    pub(crate) fn serve(&mut self, address: &str, server: Server) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let real = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let internet = self.internet.clone();
        internet.0.lock().unwrap().servers.insert(address.parse().unwrap(), real);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let got = Arc::new(Mutex::new(Vec::new()));
                internet.0.lock().unwrap().got.push(Arc::clone(&got));
                tokio::spawn(answer(stream, server, got));
            }
        });
        self.servers.push(task.abort_handle());
        real
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes, and returns everything that comes back.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        read_all(&mut stream).await
    }

    /// All decisions, as short lines.
    pub(crate) fn decided(&self) -> Vec<String> {
        let books = self.internet.0.lock().unwrap();
        let line = |each: &Decided| {
            let sign = match each.ruling {
                Ruling::Allowed => '+',
                Ruling::Refused => '-',
            };
            assert!(
                !each.reason.is_empty()
                    && each.host.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
            );
            format!("{sign}{}:{}", each.host, each.port)
        };
        books.decided.iter().map(line).collect()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.internet.0.lock().unwrap().asked.clone()
    }

    pub(crate) fn dialled(&self) -> Vec<String> {
        self.internet.0.lock().unwrap().dialled.iter().map(SocketAddr::to_string).collect()
    }

    /// What each connection to a server brought.
    pub(crate) fn got(&self) -> Vec<String> {
        let books = self.internet.0.lock().unwrap();
        books
            .got
            .iter()
            .map(|got| String::from_utf8_lossy(&got.lock().unwrap()).into_owned())
            .collect()
    }
}

/// Whatever comes until the end, or until it breaks off.
pub(crate) async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.expect("the connection does not end");
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn basic() -> String {
    use base64::Engine;
    let credential = base64::engine::general_purpose::STANDARD.encode(format!("windlass:{TOKEN}"));
    format!("Proxy-Authorization: Basic {credential}\r\n")
}

async fn answer(mut stream: TcpStream, server: Server, got: Arc<Mutex<Vec<u8>>>) {
    let mut piece = vec![0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece).await {
        got.lock().unwrap().extend_from_slice(&piece[..read]);
        match server {
            Server::Echo => stream.write_all(&piece[..read]).await.unwrap_or_default(),
            Server::Says(words) if has_head(&got.lock().unwrap()) => {
                // Long enough for a second request to arrive, if one is sent on.
                let more = tokio::time::timeout(Duration::from_millis(200), async {
                    while let Ok(read @ 1..) = stream.read(&mut piece).await {
                        got.lock().unwrap().extend_from_slice(&piece[..read]);
                    }
                });
                let _ = more.await;
                let _ = stream.write_all(words.as_bytes()).await;
                return;
            }
            Server::Says(_) | Server::Silent => {}
        }
    }
}

fn has_head(got: &[u8]) -> bool {
    got.windows(4).any(|four| four == b"\r\n\r\n")
}
