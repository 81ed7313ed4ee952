//! The proxy of the user's network, through which every connection leaves if the environment names
//! one: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
//!
//! Hosts are decided on before a connection is made. A name that this machine cannot resolve is
//! passed on as it is, because such networks often resolve public names in the proxy only.

use super::host_allowlist::Host;
use super::socks_codes::{
    CONNECT_COMMAND, IPV4_ADDRESS, IPV6_ADDRESS, NAME_ADDRESS, NO_LOGIN_METHOD, PASSWORD_METHOD,
    SOCKS_VERSION,
};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Limits the response of the proxy before the tunnel.
const MAX_RESPONSE_BYTES: usize = 16 << 10;

/// The proxy of the user's network, and the hosts that do not need it.
#[derive(Clone)]
pub struct UpstreamProxy(Arc<Matcher>);

/// A connection to make through the upstream proxy.
pub(super) struct UpstreamRoute(Intercept);

/// Protocol of a connection. The environment can name a proxy for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxiedProtocol {
    /// One plain HTTP request.
    Http,
    /// Any bytes, usually TLS.
    Tunnel,
}

/// A stream to the host, or to the HTTP proxy that forwards one request to it.
#[derive(Debug)]
pub(super) struct HostConnection {
    pub(super) stream: TcpStream,
    pub(super) request_form: HttpRequestForm,
}

/// The form of a plain HTTP request at the other end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HttpRequestForm {
    /// The host itself reads it.
    Origin,
    /// A proxy reads it, with this value of `Proxy-Authorization`.
    Proxy { authorization: Option<String> },
}

impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses can contain passwords.
        f.write_str("UpstreamProxy")
    }
}

impl UpstreamProxy {
    /// Returns the proxy that the environment names, if it does. Names in lower case take
    /// precedence.
    pub fn from_environment(environment: &[(OsString, OsString)]) -> Option<UpstreamProxy> {
        let value = |name: &str| {
            [name.to_ascii_lowercase(), name.to_owned()].iter().find_map(|name| {
                let (_, value) = environment.iter().find(|(key, _)| key == name.as_str())?;
                value.to_str().filter(|value| !value.is_empty())
            })
        };
        let (all, http, https) = (value("ALL_PROXY"), value("HTTP_PROXY"), value("HTTPS_PROXY"));
        all.or(http).or(https)?;
        let matcher = Matcher::builder()
            .all(all.unwrap_or_default())
            .http(http.unwrap_or_default())
            .https(https.unwrap_or_default())
            .no(value("NO_PROXY").unwrap_or_default())
            .build();
        Some(UpstreamProxy(Arc::new(matcher)))
    }

    /// Returns the route to a host, or `None` if it is reached without the proxy.
    pub(super) fn route(&self, host: &Host, protocol: ProxiedProtocol) -> Option<UpstreamRoute> {
        // A server on this machine is never behind a proxy.
        let is_local = match host {
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Address(address) => address.is_loopback(),
        };
        if is_local {
            return None;
        }
        let scheme = match protocol {
            ProxiedProtocol::Http => "http",
            ProxiedProtocol::Tunnel => "https",
        };
        let destination = format!("{scheme}://{host}").parse().ok()?;
        self.0.intercept(&destination).map(UpstreamRoute)
    }
}

impl UpstreamRoute {
    /// Connects to a host. The error is a message in words, without the password of the proxy.
    pub(super) async fn connect(
        &self,
        host: &Host,
        port: u16,
        protocol: ProxiedProtocol,
    ) -> Result<HostConnection, String> {
        let scheme = self.0.uri().scheme_str().unwrap_or("http").to_owned();
        let name = self.0.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let default_port = if scheme.starts_with("socks") { 1080 } else { 80 };
        let proxy_port = self.0.uri().port_u16().unwrap_or(default_port);
        let stream = TcpStream::connect((name.as_str(), proxy_port)).await;
        let mut stream = stream.map_err(|error| {
            format!("the proxy {name}:{proxy_port} of the environment is not reachable: {error}")
        })?;
        let _ = stream.set_nodelay(true);
        let authorization = self.0.basic_auth().and_then(|value| value.to_str().ok());
        let opened = match (scheme.as_str(), protocol) {
            ("http", ProxiedProtocol::Http) => {
                let authorization = authorization.map(str::to_owned);
                let request_form = HttpRequestForm::Proxy { authorization };
                return Ok(HostConnection { stream, request_form });
            }
            ("http", ProxiedProtocol::Tunnel) => {
                open_http_tunnel(&mut stream, host, port, authorization).await
            }
            ("socks5" | "socks5h", _) => {
                open_socks_tunnel(&mut stream, host, port, self.0.raw_auth()).await
            }
            (other, _) => Err(io::Error::other(format!(
                "proxies of the form {other}:// are not supported, only http:// and socks5://"
            ))),
        };
        opened.map_err(|error| {
            format!("the proxy {name}:{proxy_port} of the environment failed: {error}")
        })?;
        Ok(HostConnection { stream, request_form: HttpRequestForm::Origin })
    }
}

/// Asks an HTTP proxy for a tunnel. Reads not a byte beyond its response.
async fn open_http_tunnel(
    stream: &mut TcpStream,
    host: &Host,
    port: u16,
    authorization: Option<&str>,
) -> io::Result<()> {
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(authorization) = authorization {
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        if response.len() >= MAX_RESPONSE_BYTES {
            return Err(io::Error::other("its response is too long"));
        }
        response.push(stream.read_u8().await?);
    }
    let response = String::from_utf8_lossy(&response);
    let status = response.lines().next().unwrap_or_default();
    let code = status.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match code {
        Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
        Some("407") => Err(io::Error::other(
            "it requires a user name and a password. Set them in HTTPS_PROXY, like \
             http://USER:PASSWORD@HOST:PORT",
        )),
        Some(code) => Err(io::Error::other(format!("it responded with status {code}"))),
        None => Err(io::Error::other("its response is not HTTP")),
    }
}

/// Asks a SOCKS5 proxy for a tunnel.
async fn open_socks_tunnel(
    stream: &mut TcpStream,
    host: &Host,
    port: u16,
    credentials: Option<(&str, &str)>,
) -> io::Result<()> {
    let method = if credentials.is_some() { PASSWORD_METHOD } else { NO_LOGIN_METHOD };
    stream.write_all(&[SOCKS_VERSION, 1, method]).await?;
    let mut reply = [0; 2];
    stream.read_exact(&mut reply).await?;
    if reply != [SOCKS_VERSION, method] {
        return Err(io::Error::other("it requires another way to log in"));
    }
    if let Some((user, password)) = credentials {
        let mut request = vec![1];
        push_with_length(&mut request, user)?;
        push_with_length(&mut request, password)?;
        stream.write_all(&request).await?;
        stream.read_exact(&mut reply).await?;
        if reply[1] != 0 {
            return Err(io::Error::other("it refused the user name or the password"));
        }
    }
    let mut request = vec![SOCKS_VERSION, CONNECT_COMMAND, 0];
    match host {
        Host::Name(name) => {
            request.push(NAME_ADDRESS);
            push_with_length(&mut request, name)?;
        }
        Host::Address(IpAddr::V4(address)) => {
            request.push(IPV4_ADDRESS);
            request.extend(address.octets());
        }
        Host::Address(IpAddr::V6(address)) => {
            request.push(IPV6_ADDRESS);
            request.extend(address.octets());
        }
    }
    request.extend(port.to_be_bytes());
    stream.write_all(&request).await?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await?;
    let address_length = match reply {
        [SOCKS_VERSION, 0, _, IPV4_ADDRESS] => 4,
        [SOCKS_VERSION, 0, _, IPV6_ADDRESS] => 16,
        [SOCKS_VERSION, 0, _, NAME_ADDRESS] => usize::from(stream.read_u8().await?),
        [_, code, ..] => return Err(io::Error::other(format!("it responded with code {code}"))),
    };
    // The address and port that the proxy uses.
    let mut rest = vec![0; address_length + 2];
    stream.read_exact(&mut rest).await?;
    Ok(())
}

fn push_with_length(request: &mut Vec<u8>, text: &str) -> io::Result<()> {
    request.push(u8::try_from(text.len()).map_err(io::Error::other)?);
    request.extend(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
