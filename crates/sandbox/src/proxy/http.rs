//! HTTP: a tunnel by CONNECT, or one plain request.
//!
//! After the one request nothing more of a client is sent on, so that a second one cannot ride
//! along to wherever the host's servers take it by its `Host` field.

use super::dial::{Closed, Gate, Outside, Why};
use super::head::{Body, Head, LONGEST, Wish, Wrong, find_end};
use super::relay::{Pulse, measure, pour, tunnel};
use std::io::{self, Cursor};
use std::time::Duration;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// How long the line before a chunk may be.
const LONGEST_LINE: u64 = 256;
/// How long and how much a client that was refused may still send, so that it sees the answer.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES: u64 = 256 * 1024;

#[derive(Debug, Clone, Copy)]
enum Status {
    Flawed,
    Forbidden,
    NoToken,
    Late,
    TooLong,
    Unreachable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Flawed => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NoToken => {
                "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"windlass\""
            }
            Status::Late => "408 Request Timeout",
            Status::TooLong => "431 Request Header Fields Too Large",
            Status::Unreachable => "502 Bad Gateway",
        }
    }
}

/// Serves one connection, whose client has until then to say what it wants.
pub(super) async fn serve<O: Outside>(
    mut stream: TcpStream,
    gate: &Gate<O>,
    deadline: Instant,
) -> io::Result<()> {
    let read = timeout_at(deadline, read_head(&mut stream)).await;
    let (head, rest) = match read {
        Ok(Ok(Ok(parts))) => parts,
        Ok(Ok(Err((status, sentence)))) => return answer(stream, status, sentence).await,
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            let sentence = "The request did not arrive in time. Send it at once";
            return answer(stream, Status::Late, sentence).await;
        }
    };
    if !gate.token.is_in(&head) {
        let sentence = "The token is missing or wrong. Use the address in HTTP_PROXY as it is";
        return answer(stream, Status::NoToken, sentence).await;
    }
    let opened = match head.wish() {
        Err(flaw) => {
            let why = match flaw.wrong {
                Wrong::Host(what) => Why::Malformed(what),
                Wrong::Request(what) => Why::Unserved(what),
            };
            Err(gate.refuse(&flaw.host, flaw.port, why))
        }
        Ok(wish) => {
            let (Wish::Tunnel { host, port } | Wish::Request { host, port, .. }) = &wish;
            gate.open(host, *port).await.map(|outside| (wish, outside))
        }
    };
    match opened {
        Ok((Wish::Tunnel { .. }, outside)) => {
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            tunnel(stream, outside, &rest, gate.limits.idle).await
        }
        Ok((Wish::Request { host, port, path, body }, outside)) => {
            let head = head.rewrite(&host, port, &path, body);
            forward(stream, outside, (&head, rest, body), gate.limits.idle).await
        }
        Err(Closed::Refused(sentence)) => answer(stream, Status::Forbidden, &sentence).await,
        Err(Closed::Flawed(sentence)) => answer(stream, Status::Flawed, &sentence).await,
        Err(Closed::Unreachable(sentence)) => answer(stream, Status::Unreachable, &sentence).await,
    }
}

type Parts = (Head, Vec<u8>);
type Objection = (Status, &'static str);

/// Reads until the head is complete; what came after it is given along.
async fn read_head(stream: &mut TcpStream) -> io::Result<Result<Parts, Objection>> {
    let mut bytes = Vec::new();
    let flawed = |why| Ok(Err((Status::Flawed, why)));
    loop {
        let mut piece = [0; 2048];
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let seen = bytes.len();
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        let end = match find_end(&bytes, seen) {
            Ok(end) => end,
            Err(why) => return flawed(why),
        };
        if end.unwrap_or(bytes.len()) > LONGEST {
            return Ok(Err((Status::TooLong, "The head of the request is longer than 16 KiB")));
        }
        if let Some(end) = end {
            let rest = bytes.split_off(end);
            return match Head::parse(&bytes) {
                Ok(head) => Ok(Ok((head, rest))),
                Err(why) => flawed(why),
            };
        }
    }
}

/// Says one line and ends the connection.
async fn answer(mut stream: TcpStream, status: Status, sentence: &str) -> io::Result<()> {
    let (line, length) = (status.line(), sentence.len() + 1);
    let reply = format!(
        "HTTP/1.1 {line}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{sentence}\n"
    );
    let say = async {
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing on bytes that nobody read would take the answer back.
        tokio::io::copy(&mut stream.take(LINGER_BYTES), &mut tokio::io::sink()).await
    };
    let _ = timeout(LINGER, say).await;
    Ok(())
}

/// Sends one request on, and everything that comes back.
async fn forward(
    mut client: TcpStream,
    mut outside: TcpStream,
    (head, rest, body): (&str, Vec<u8>, Body),
    idle: Duration,
) -> io::Result<()> {
    let pulse = Pulse::new();
    let (from_client, mut to_client) = client.split();
    let (mut from_host, mut to_host) = outside.split();
    let mut from_client = BufReader::new(Cursor::new(rest).chain(from_client));
    let ask = async {
        to_host.write_all(head.as_bytes()).await?;
        match body {
            Body::Length(length) => measure(&mut from_client, &mut to_host, length, &pulse).await,
            Body::Chunks => carry_chunks(&mut from_client, &mut to_host, &pulse).await,
        }
    };
    let hear = pour(&mut from_host, &mut to_client, &pulse);
    tokio::pin!(ask, hear);
    let stop = pulse.stop(idle);
    tokio::pin!(stop);
    // The host may answer before it has heard everything, and then nobody needs the rest.
    tokio::select! {
        asked = &mut ask => asked?,
        heard = &mut hear => return heard,
        late = &mut stop => return Err(late),
    }
    tokio::select! {
        heard = hear => heard,
        late = stop => Err(late),
    }
}

/// Sends chunks on, each measured and with a line of our own; extensions and trailers are left
/// out.
async fn carry_chunks(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    pulse: &Pulse,
) -> io::Result<()> {
    loop {
        let line = read_line(from).await?;
        let size = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
        let hex = (1..=15).contains(&size.len()) && size.bytes().all(|b| b.is_ascii_hexdigit());
        let size = u64::from_str_radix(size, 16).ok().filter(|_| hex).ok_or_else(flawed)?;
        if size == 0 {
            break;
        }
        to.write_all(format!("{size:x}\r\n").as_bytes()).await?;
        measure(from, to, size, pulse).await?;
        if !read_line(from).await?.is_empty() {
            return Err(flawed());
        }
        to.write_all(b"\r\n").await?;
    }
    for _ in 0..LONGEST as u64 / LONGEST_LINE {
        if read_line(from).await?.is_empty() {
            return to.write_all(b"0\r\n\r\n").await;
        }
    }
    Err(flawed())
}

/// One line that ends as it must, without its end.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    let line = String::from_utf8(line).map_err(|_| flawed())?;
    let line = line.strip_suffix("\r\n").filter(|line| !line.contains('\r'));
    line.map(str::to_owned).ok_or_else(flawed)
}

fn flawed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
