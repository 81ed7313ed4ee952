//! Serves SOCKS5 clients: a tunnel to a name or address, with the token as password.
//!
//! Only `CONNECT` is supported. The host name is the bytes of the request, validated before any
//! other use; a zero byte does not terminate it.

use super::host_allowlist::Host;
use super::host_gate::{HostGate, NetworkConnector, ProxyError, ProxyRefusalReason};
use super::relay::tunnel;
use super::socks_codes::{
    CONNECT_COMMAND, IPV4_ADDRESS, IPV6_ADDRESS, NAME_ADDRESS, NO_ACCEPTABLE_METHOD,
    PASSWORD_METHOD, SOCKS_VERSION,
};
use super::upstream::ProxiedProtocol;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

#[derive(Debug, Clone, Copy)]
enum SocksReply {
    Succeeded,
    GeneralFailure,
    Forbidden,
    Unreachable,
    UnsupportedCommand,
    UnsupportedAddress,
}

impl SocksReply {
    /// Encodes the reply with an all-zero address, because no client needs ours.
    fn to_bytes(self) -> [u8; 10] {
        let code = match self {
            SocksReply::Succeeded => 0,
            SocksReply::GeneralFailure => 1,
            SocksReply::Forbidden => 2,
            SocksReply::Unreachable => 4,
            SocksReply::UnsupportedCommand => 7,
            SocksReply::UnsupportedAddress => 8,
        };
        [SOCKS_VERSION, code, 0, IPV4_ADDRESS, 0, 0, 0, 0, 0, 0]
    }
}

/// The request of a client, as received.
struct SocksRequest {
    command: u8,
    /// The host for display; `host` is the parsed form to dial.
    display_host: String,
    host: Result<Host, &'static str>,
    port: u16,
}

/// Serves one connection. The client must send its request before `deadline`.
pub(super) async fn serve<O: NetworkConnector>(
    mut stream: TcpStream,
    gate: &HostGate<O>,
    deadline: Instant,
) -> io::Result<()> {
    let request = timeout_at(deadline, async {
        if !authenticate(&mut stream, gate).await? {
            return Ok(None);
        }
        read_request(&mut stream).await
    });
    let Some(request) = request.await?? else { return stream.shutdown().await };
    let opened = if request.command == CONNECT_COMMAND {
        match request.host {
            Ok(host) => gate.open_connection(&host, request.port, ProxiedProtocol::Tunnel).await,
            Err(reason) => Err(gate.refuse(
                &request.display_host,
                request.port,
                ProxyRefusalReason::InvalidHost(reason),
            )),
        }
    } else {
        let reason = ProxyRefusalReason::UnsupportedRequest("SOCKS5 serves CONNECT only");
        gate.refuse(&request.display_host, request.port, reason);
        return send_reply(stream, SocksReply::UnsupportedCommand).await;
    };
    match opened {
        Ok(connection) => {
            stream.write_all(&SocksReply::Succeeded.to_bytes()).await?;
            tunnel(stream, connection.stream, &[], gate.limits.idle_timeout).await
        }
        Err(ProxyError::Refused(_)) => send_reply(stream, SocksReply::Forbidden).await,
        Err(ProxyError::BadRequest(_)) => send_reply(stream, SocksReply::GeneralFailure).await,
        Err(ProxyError::Unreachable(_)) => send_reply(stream, SocksReply::Unreachable).await,
    }
}

/// Rejects a SOCKS4 client.
pub(super) async fn refuse_socks4(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(&[0, 91, 0, 0, 0, 0, 0, 0]).await?;
    stream.shutdown().await
}

async fn send_reply(mut stream: TcpStream, reply: SocksReply) -> io::Result<()> {
    stream.write_all(&reply.to_bytes()).await?;
    stream.shutdown().await
}

/// Negotiates password authentication; returns true if the client presented the token.
async fn authenticate<O: NetworkConnector>(
    stream: &mut TcpStream,
    gate: &HostGate<O>,
) -> io::Result<bool> {
    let _version = stream.read_u8().await?;
    let methods = read_length_prefixed(stream).await?;
    if !methods.contains(&PASSWORD_METHOD) {
        stream.write_all(&[SOCKS_VERSION, NO_ACCEPTABLE_METHOD]).await?;
        return Ok(false);
    }
    stream.write_all(&[SOCKS_VERSION, PASSWORD_METHOD]).await?;
    let version = stream.read_u8().await?;
    let user = read_length_prefixed(stream).await?;
    let password = read_length_prefixed(stream).await?;
    let is_valid = version == 1 && gate.token.matches_credentials(&user, &password);
    stream.write_all(&[1, u8::from(!is_valid)]).await?;
    Ok(is_valid)
}

/// Reads bytes preceded by a one-byte length.
async fn read_length_prefixed(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the request. Returns `None` if it is invalid, after replying to the client.
async fn read_request(stream: &mut TcpStream) -> io::Result<Option<SocksRequest>> {
    let mut start = [0; 4];
    stream.read_exact(&mut start).await?;
    let [SOCKS_VERSION, command, 0, kind] = start else {
        stream.write_all(&SocksReply::GeneralFailure.to_bytes()).await?;
        return Ok(None);
    };
    let (display_host, host) = match kind {
        IPV4_ADDRESS => {
            let host = Host::Address(Ipv4Addr::from_bits(stream.read_u32().await?).into());
            (host.to_string(), Ok(host))
        }
        NAME_ADDRESS => {
            let bytes = read_length_prefixed(stream).await?;
            let host = match str::from_utf8(&bytes) {
                Ok(text) => Host::parse(text),
                Err(_) => Err("it is not valid UTF-8"),
            };
            (String::from_utf8_lossy(&bytes).into_owned(), host)
        }
        IPV6_ADDRESS => {
            let host = Host::Address(Ipv6Addr::from_bits(stream.read_u128().await?).into());
            (host.to_string(), Ok(host))
        }
        _ => {
            stream.write_all(&SocksReply::UnsupportedAddress.to_bytes()).await?;
            return Ok(None);
        }
    };
    let port = stream.read_u16().await?;
    Ok(Some(SocksRequest { command, display_host, host, port }))
}
