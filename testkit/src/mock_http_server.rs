//! An HTTP server that sends exactly the given bytes, however invalid, for tests of clients.
//!
//! It uses plain sockets, because no library writes invalid responses. Start reading at
//! [`MockHttpServer::start`].

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The requested path.
    pub path: String,
    /// The `host` header.
    pub host: String,
    /// The request line and all headers.
    pub head: String,
    /// The body, by its `content-length`.
    pub body: String,
}

impl RecordedRequest {
    /// Returns the value of a header.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    }
}

/// A part of a response.
#[derive(Clone, Debug)]
pub enum ResponsePart {
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, repeated forever, with a pause after each time.
    Forever(Vec<u8>, Duration),
    /// Nothing, until the client disconnects.
    Silence,
}

/// Returns a response with its length.
pub fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<ResponsePart> {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str("connection: close\r\n\r\n");
    vec![ResponsePart::Bytes([head.as_bytes(), body].concat())]
}

/// Returns an HTML page.
pub fn html(body: impl AsRef<[u8]>) -> Vec<ResponsePart> {
    reply("200 OK", &["content-type: text/html"], body)
}

/// Returns a redirect.
pub fn redirect(to: &str) -> Vec<ResponsePart> {
    reply("302 Found", &[&format!("location: {to}")], "")
}

/// An HTTP server on loopback. It stops when it is dropped.
pub struct MockHttpServer {
    port: u16,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MockHttpServer {
    /// Starts the server on a free port of the loopback interface.
    pub fn start(
        respond: impl Fn(&RecordedRequest) -> Vec<ResponsePart> + Send + Sync + 'static,
    ) -> MockHttpServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (recorded, stopped, respond) =
            (Arc::clone(&requests), Arc::clone(&stop), Arc::new(respond));
        let thread = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (recorded, stopped) = (Arc::clone(&recorded), Arc::clone(&stopped));
                let respond = Arc::clone(&respond);
                connections.push(std::thread::spawn(move || {
                    // Many tests disconnect early.
                    let _ = serve(stream, &*respond, &recorded, &stopped);
                }));
            }
            for connection in connections {
                let _ = connection.join();
            }
        });
        MockHttpServer { port, requests, stop, thread: Some(thread) }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for MockHttpServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut stream: TcpStream,
    respond: &dyn Fn(&RecordedRequest) -> Vec<ResponsePart>,
    recorded: &Mutex<Vec<RecordedRequest>>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut bytes = Vec::new();
    let head = loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&bytes[..at]).into_owned();
        }
    };
    let mut request = RecordedRequest {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        host: String::new(),
        head,
        body: String::new(),
    };
    request.host = request.header("host").unwrap_or_default().to_owned();
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(request.head.len() + 4);
    while body.len() < length {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        body.extend_from_slice(&chunk[..read]);
    }
    request.body = String::from_utf8_lossy(&body).into_owned();
    recorded.lock().unwrap().push(request.clone());
    for part in respond(&request) {
        match part {
            ResponsePart::Bytes(bytes) => stream.write_all(&bytes)?,
            ResponsePart::Forever(bytes, pause) => {
                while !stop.load(Ordering::SeqCst) {
                    stream.write_all(&bytes)?;
                    std::thread::sleep(pause);
                }
            }
            ResponsePart::Silence => {
                stream.set_read_timeout(Some(Duration::from_millis(50)))?;
                while !stop.load(Ordering::SeqCst) {
                    if matches!(stream.read(&mut [0]), Ok(0)) {
                        return Ok(());
                    }
                }
            }
        }
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // Closing with unread bytes would reset the connection and discard the response.
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let _ = stream.read(&mut [0; 64]);
    Ok(())
}
