//! SOCKS5: a tunnel by name or address, with the token as password.
//!
//! Only CONNECT. A name is taken as the bytes it has, and is checked before anyone else sees it;
//! a zero byte in it ends nothing here.

use super::dial::{Closed, Gate, Outside, Why};
use super::hosts::Host;
use super::relay::tunnel;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// The first byte of everything said in it.
pub(super) const VERSION: u8 = 5;
const PASSWORD: u8 = 2;
const NONE_OF_THESE: u8 = 0xff;
const CONNECT: u8 = 1;

#[derive(Debug, Clone, Copy)]
enum Reply {
    Done,
    Failed,
    Forbidden,
    Unreachable,
    NoSuchCommand,
    NoSuchAddress,
}

impl Reply {
    /// With an address of zeros, as no client needs ours.
    fn bytes(self) -> [u8; 10] {
        let code = match self {
            Reply::Done => 0,
            Reply::Failed => 1,
            Reply::Forbidden => 2,
            Reply::Unreachable => 4,
            Reply::NoSuchCommand => 7,
            Reply::NoSuchAddress => 8,
        };
        [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// What a client asked for, as it said it.
struct Asked {
    command: u8,
    /// As it can be shown, and as it can be dialled.
    shown: String,
    host: Result<Host, &'static str>,
    port: u16,
}

/// Serves one connection, whose client has until then to say what it wants.
pub(super) async fn serve<O: Outside>(
    mut stream: TcpStream,
    gate: &Gate<O>,
    deadline: Instant,
) -> io::Result<()> {
    let asked = timeout_at(deadline, async {
        if !greet(&mut stream, gate).await? {
            return Ok(None);
        }
        read_request(&mut stream).await
    });
    let Some(asked) = asked.await?? else { return stream.shutdown().await };
    let opened = if asked.command == CONNECT {
        match asked.host {
            Ok(host) => gate.open(&host, asked.port).await,
            Err(why) => Err(gate.refuse(&asked.shown, asked.port, Why::Malformed(why))),
        }
    } else {
        let why = Why::Unserved("SOCKS5 serves CONNECT only");
        gate.refuse(&asked.shown, asked.port, why);
        return say(stream, Reply::NoSuchCommand).await;
    };
    match opened {
        Ok(outside) => {
            stream.write_all(&Reply::Done.bytes()).await?;
            tunnel(stream, outside, &[], gate.limits.idle).await
        }
        Err(Closed::Refused(_)) => say(stream, Reply::Forbidden).await,
        Err(Closed::Flawed(_)) => say(stream, Reply::Failed).await,
        Err(Closed::Unreachable(_)) => say(stream, Reply::Unreachable).await,
    }
}

/// Tells a client of the older version that it is not served.
pub(super) async fn refuse_four(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(&[0, 91, 0, 0, 0, 0, 0, 0]).await?;
    stream.shutdown().await
}

async fn say(mut stream: TcpStream, reply: Reply) -> io::Result<()> {
    stream.write_all(&reply.bytes()).await?;
    stream.shutdown().await
}

/// Whether the client has shown the token.
async fn greet<O: Outside>(stream: &mut TcpStream, gate: &Gate<O>) -> io::Result<bool> {
    let _version = stream.read_u8().await?;
    let methods = read_counted(stream).await?;
    if !methods.contains(&PASSWORD) {
        stream.write_all(&[VERSION, NONE_OF_THESE]).await?;
        return Ok(false);
    }
    stream.write_all(&[VERSION, PASSWORD]).await?;
    let version = stream.read_u8().await?;
    let user = read_counted(stream).await?;
    let password = read_counted(stream).await?;
    let known = version == 1 && gate.token.is(&user, &password);
    stream.write_all(&[1, u8::from(!known)]).await?;
    Ok(known)
}

/// What follows a byte that says how long it is.
async fn read_counted(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// The request, or nothing if it is none and the client has been told.
async fn read_request(stream: &mut TcpStream) -> io::Result<Option<Asked>> {
    let mut start = [0; 4];
    stream.read_exact(&mut start).await?;
    let [VERSION, command, 0, kind] = start else {
        stream.write_all(&Reply::Failed.bytes()).await?;
        return Ok(None);
    };
    let (shown, host) = match kind {
        1 => {
            let host = Host::Address(Ipv4Addr::from_bits(stream.read_u32().await?).into());
            (host.to_string(), Ok(host))
        }
        3 => {
            let bytes = read_counted(stream).await?;
            let host = match str::from_utf8(&bytes) {
                Ok(text) => Host::read(text),
                Err(_) => Err("it is not text"),
            };
            (String::from_utf8_lossy(&bytes).into_owned(), host)
        }
        4 => {
            let host = Host::Address(Ipv6Addr::from_bits(stream.read_u128().await?).into());
            (host.to_string(), Ok(host))
        }
        _ => {
            stream.write_all(&Reply::NoSuchAddress.bytes()).await?;
            return Ok(None);
        }
    };
    let port = stream.read_u16().await?;
    Ok(Some(Asked { command, shown, host, port }))
}
