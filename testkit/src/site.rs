//! A site that says exactly what it is told to, byte by byte, however wrong: for whoever fetches.
//!
//! It is plain sockets, because no library writes what is wrong. Start reading at [`Site::start`].

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked for.
    pub path: String,
    /// The host that was named.
    pub host: String,
    /// The whole head.
    pub head: String,
    /// The body, as far as its length was told.
    pub body: String,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    }
}

/// A piece of an answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// These, over and over, with a pause after each time.
    Forever(Vec<u8>, Duration),
    /// Nothing, until the client has gone.
    Silence,
}

/// An answer with its length.
pub fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<Piece> {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str("connection: close\r\n\r\n");
    vec![Piece::Bytes([head.as_bytes(), body].concat())]
}

/// A page.
pub fn html(body: impl AsRef<[u8]>) -> Vec<Piece> {
    reply("200 OK", &["content-type: text/html"], body)
}

/// A redirect.
pub fn moved(to: &str) -> Vec<Piece> {
    reply("302 Found", &[&format!("location: {to}")], "")
}

/// The site. It ends when it is dropped.
pub struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Starts it on a free port of the loopback.
    pub fn start(answer: impl Fn(&Asked) -> Vec<Piece> + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, stopped, answer) = (Arc::clone(&asked), Arc::clone(&stop), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            let mut guests = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (kept, stopped) = (Arc::clone(&kept), Arc::clone(&stopped));
                let answer = Arc::clone(&answer);
                guests.push(std::thread::spawn(move || {
                    // A client that goes away early is what many tests are about.
                    let _ = serve(stream, &*answer, &kept, &stopped);
                }));
            }
            for guest in guests {
                let _ = guest.join();
            }
        });
        Site { port, asked, stop, thread: Some(thread) }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Site {
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
    answer: &dyn Fn(&Asked) -> Vec<Piece>,
    kept: &Mutex<Vec<Asked>>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut bytes = Vec::new();
    let head = loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..read]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&bytes[..at]).into_owned();
        }
    };
    let mut asked = Asked {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        host: String::new(),
        head,
        body: String::new(),
    };
    asked.host = asked.header("host").unwrap_or_default().to_owned();
    let length = asked.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(asked.head.len() + 4);
    while body.len() < length {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        body.extend_from_slice(&piece[..read]);
    }
    asked.body = String::from_utf8_lossy(&body).into_owned();
    kept.lock().unwrap().push(asked.clone());
    for piece in answer(&asked) {
        match piece {
            Piece::Bytes(bytes) => stream.write_all(&bytes)?,
            Piece::Forever(bytes, pause) => {
                while !stop.load(Ordering::SeqCst) {
                    stream.write_all(&bytes)?;
                    std::thread::sleep(pause);
                }
            }
            Piece::Silence => {
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
    // Closing on bytes that nobody read would take the answer back.
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let _ = stream.read(&mut [0; 64]);
    Ok(())
}
