//! Serves HTTP clients: a `CONNECT` tunnel or one plain request.
//!
//! After one request, the proxy forwards nothing more from the client. Otherwise a second request
//! could reach a different site on the host's servers through its `Host` field.

use super::host_gate::{HostGate, NetworkConnector, ProxyError, ProxyRefusalReason};
use super::relay::{ActivityClock, copy_exactly, copy_to_end, tunnel};
use super::request_head::{
    BodyFraming, MAX_HEAD_BYTES, ProxyRequest, ProxyRequestProblem, RequestHead, find_head_end,
};
use super::upstream::ProxiedProtocol;
use std::io::{self, Cursor};
use std::time::Duration;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// Longest line before a chunk.
const MAX_CHUNK_LINE_BYTES: u64 = 256;
/// Time and bytes that a refused client may still send, so that it sees the response.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);
const MAX_LINGER_BYTES: u64 = 256 * 1024;

#[derive(Debug, Clone, Copy)]
enum ProxyHttpStatus {
    BadRequest,
    Forbidden,
    AuthenticationRequired,
    RequestTimeout,
    HeadTooLarge,
    BadGateway,
}

impl ProxyHttpStatus {
    fn status_line(self) -> &'static str {
        match self {
            ProxyHttpStatus::BadRequest => "400 Bad Request",
            ProxyHttpStatus::Forbidden => "403 Forbidden",
            ProxyHttpStatus::AuthenticationRequired => {
                "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"windlass\""
            }
            ProxyHttpStatus::RequestTimeout => "408 Request Timeout",
            ProxyHttpStatus::HeadTooLarge => "431 Request Header Fields Too Large",
            ProxyHttpStatus::BadGateway => "502 Bad Gateway",
        }
    }
}

/// Serves one connection. The client must send its request head before `deadline`.
pub(super) async fn serve<O: NetworkConnector>(
    mut stream: TcpStream,
    gate: &HostGate<O>,
    deadline: Instant,
) -> io::Result<()> {
    let result = timeout_at(deadline, read_head(&mut stream)).await;
    let (head, rest) = match result {
        Ok(Ok(Ok(parts))) => parts,
        Ok(Ok(Err((status, message)))) => return send_error(stream, status, message).await,
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            let message = "The request timed out. Send it right after connecting";
            return send_error(stream, ProxyHttpStatus::RequestTimeout, message).await;
        }
    };
    if !gate.token.is_shown_in(&head) {
        let message = "The proxy token is missing or wrong. Use the address in HTTP_PROXY \
                       unchanged";
        return send_error(stream, ProxyHttpStatus::AuthenticationRequired, message).await;
    }
    let opened = match head.parse_request() {
        Err(problem) => {
            let reason = match problem.problem {
                ProxyRequestProblem::Host(text) => ProxyRefusalReason::InvalidHost(text),
                ProxyRequestProblem::Request(text) => ProxyRefusalReason::UnsupportedRequest(text),
            };
            Err(gate.refuse(&problem.host, problem.port, reason))
        }
        Ok(request) => {
            let (ProxyRequest::Tunnel { host, port } | ProxyRequest::Forward { host, port, .. }) =
                &request;
            let protocol = match request {
                ProxyRequest::Tunnel { .. } => ProxiedProtocol::Tunnel,
                ProxyRequest::Forward { .. } => ProxiedProtocol::Http,
            };
            let connection = gate.open_connection(host, *port, protocol).await;
            connection.map(|connection| (request, connection))
        }
    };
    match opened {
        Ok((ProxyRequest::Tunnel { .. }, connection)) => {
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            tunnel(stream, connection.stream, &rest, gate.limits.idle_timeout).await
        }
        Ok((ProxyRequest::Forward { host, port, path, body }, connection)) => {
            let head = head.rewrite(&host, port, &path, body, &connection.request_form);
            let request = (head.as_str(), rest, body);
            forward_request(stream, connection.stream, request, gate.limits.idle_timeout).await
        }
        Err(ProxyError::Refused(message)) => {
            send_error(stream, ProxyHttpStatus::Forbidden, &message).await
        }
        Err(ProxyError::BadRequest(message)) => {
            send_error(stream, ProxyHttpStatus::BadRequest, &message).await
        }
        Err(ProxyError::Unreachable(message)) => {
            send_error(stream, ProxyHttpStatus::BadGateway, &message).await
        }
    }
}

type HeadAndRest = (RequestHead, Vec<u8>);
type HttpRefusal = (ProxyHttpStatus, &'static str);

/// Reads until the head is complete; also returns the bytes that arrived after it.
async fn read_head(stream: &mut TcpStream) -> io::Result<Result<HeadAndRest, HttpRefusal>> {
    let mut bytes = Vec::new();
    let bad_request = |reason| Ok(Err((ProxyHttpStatus::BadRequest, reason)));
    loop {
        let mut buffer = [0; 2048];
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let seen = bytes.len();
        bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let end = match find_head_end(&bytes, seen) {
            Ok(end) => end,
            Err(reason) => return bad_request(reason),
        };
        if end.unwrap_or(bytes.len()) > MAX_HEAD_BYTES {
            return Ok(Err((
                ProxyHttpStatus::HeadTooLarge,
                "The request head is larger than 16 KiB",
            )));
        }
        if let Some(end) = end {
            let rest = bytes.split_off(end);
            return match RequestHead::parse(&bytes) {
                Ok(head) => Ok(Ok((head, rest))),
                Err(reason) => bad_request(reason),
            };
        }
    }
}

/// Sends a one-line error response and closes the connection.
async fn send_error(
    mut stream: TcpStream,
    status: ProxyHttpStatus,
    message: &str,
) -> io::Result<()> {
    let (line, length) = (status.status_line(), message.len() + 1);
    let reply = format!(
        "HTTP/1.1 {line}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{message}\n"
    );
    let send = async {
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with unread bytes resets the connection and discards the response.
        tokio::io::copy(&mut stream.take(MAX_LINGER_BYTES), &mut tokio::io::sink()).await
    };
    let _ = timeout(LINGER_TIMEOUT, send).await;
    Ok(())
}

/// Forwards one request to the host and the response to the client.
async fn forward_request(
    mut client: TcpStream,
    mut host: TcpStream,
    (head, rest, body): (&str, Vec<u8>, BodyFraming),
    idle: Duration,
) -> io::Result<()> {
    let activity = ActivityClock::new();
    let (from_client, mut to_client) = client.split();
    let (mut from_host, mut to_host) = host.split();
    let mut from_client = BufReader::new(Cursor::new(rest).chain(from_client));
    let send_request = async {
        to_host.write_all(head.as_bytes()).await?;
        match body {
            BodyFraming::Length(length) => {
                copy_exactly(&mut from_client, &mut to_host, length, &activity).await
            }
            BodyFraming::Chunked => forward_chunks(&mut from_client, &mut to_host, &activity).await,
        }
    };
    let receive_response = copy_to_end(&mut from_host, &mut to_client, &activity);
    tokio::pin!(send_request, receive_response);
    let idle_timeout = activity.wait_until_idle(idle);
    tokio::pin!(idle_timeout);
    // The host may respond before it has read the whole request; the rest is then not needed.
    tokio::select! {
        sent = &mut send_request => sent?,
        received = &mut receive_response => return received,
        error = &mut idle_timeout => return Err(error),
    }
    tokio::select! {
        received = receive_response => received,
        error = idle_timeout => Err(error),
    }
}

/// Forwards a chunked body. Checks the size of each chunk and writes a new size line; drops
/// extensions and trailers.
async fn forward_chunks(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &ActivityClock,
) -> io::Result<()> {
    loop {
        let line = read_line(from).await?;
        let size = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
        let hex = (1..=15).contains(&size.len()) && size.bytes().all(|b| b.is_ascii_hexdigit());
        let size = u64::from_str_radix(size, 16).ok().filter(|_| hex).ok_or_else(invalid_data)?;
        if size == 0 {
            break;
        }
        to.write_all(format!("{size:x}\r\n").as_bytes()).await?;
        copy_exactly(from, to, size, activity).await?;
        if !read_line(from).await?.is_empty() {
            return Err(invalid_data());
        }
        to.write_all(b"\r\n").await?;
    }
    for _ in 0..MAX_HEAD_BYTES as u64 / MAX_CHUNK_LINE_BYTES {
        if read_line(from).await?.is_empty() {
            return to.write_all(b"0\r\n\r\n").await;
        }
    }
    Err(invalid_data())
}

/// Reads one line that ends in CRLF and returns it without the CRLF.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(MAX_CHUNK_LINE_BYTES).read_until(b'\n', &mut line).await?;
    let line = String::from_utf8(line).map_err(|_| invalid_data())?;
    let line = line.strip_suffix("\r\n").filter(|line| !line.contains('\r'));
    line.map(str::to_owned).ok_or_else(invalid_data)
}

fn invalid_data() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
