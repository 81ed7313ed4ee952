//! Tests of connections through a proxy of the user's network, with real sockets.
#![allow(clippy::disallowed_methods, reason = "tests start servers directly")]

use crate::network::proxy::host_allowlist::Host;
use crate::network::proxy::upstream::{HttpRequestForm, ProxiedProtocol, UpstreamProxy};
use std::ffi::OsString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

fn upstream(variables: &[(&str, &str)]) -> Option<UpstreamProxy> {
    let variables: Vec<(OsString, OsString)> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    UpstreamProxy::from_environment(&variables)
}

/// Starts a server that serves one connection and returns the bytes it received before replying.
async fn serve_once(replies: &'static [(usize, &'static [u8])]) -> (u16, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut received = Vec::new();
        for (length, reply) in replies {
            let mut bytes = vec![0; *length];
            if *length == 0 {
                bytes = read_head(&mut stream).await;
            } else {
                stream.read_exact(&mut bytes).await.unwrap();
            }
            received.extend(bytes);
            stream.write_all(reply).await.unwrap();
        }
        received
    });
    (port, task)
}

async fn read_head(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    head
}

fn name(text: &str) -> Host {
    Host::parse(text).unwrap()
}

#[test]
fn the_environment_names_a_proxy_and_its_exceptions() {
    assert!(upstream(&[("NO_PROXY", "*"), ("HTTPS_PROXY", "")]).is_none());
    let is_proxied = |variables: &[(&str, &str)], host: &str, protocol| {
        upstream(variables).unwrap().route(&name(host), protocol).is_some()
    };
    let (http, tunnel) = (ProxiedProtocol::Http, ProxiedProtocol::Tunnel);
    let https_only = [("https_proxy", "http://p:1")];
    assert!(is_proxied(&https_only, "a.example", tunnel));
    assert!(!is_proxied(&https_only, "a.example", http));
    let all = [("ALL_PROXY", "http://p:1"), ("NO_PROXY", "corp.example,10.0.0.0/8")];
    for (host, expected) in [
        ("a.example", true),
        ("corp.example", false),
        ("git.corp.example", false),
        ("notcorp.example", true),
        ("10.1.2.3", false),
        ("11.1.2.3", true),
        ("localhost", false),
        ("127.0.0.1", false),
        ("[::1]", false),
    ] {
        assert_eq!(is_proxied(&all, host, tunnel), expected, "{host}");
        assert_eq!(is_proxied(&all, host, http), expected, "{host}");
    }
}

#[tokio::test]
async fn a_tunnel_is_opened_with_the_password_and_loses_no_byte() {
    let (port, served) = serve_once(&[(0, b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nSSH-2.0")]).await;
    let proxy = format!("http://user:p%40ss@127.0.0.1:{port}");
    let upstream = upstream(&[("HTTPS_PROXY", &proxy)]).unwrap();
    let route = upstream.route(&name("a.example"), ProxiedProtocol::Tunnel).unwrap();
    let connected = route.connect(&name("a.example"), 22, ProxiedProtocol::Tunnel).await.unwrap();
    assert_eq!(connected.request_form, HttpRequestForm::Origin);
    let mut stream = connected.stream;
    let mut bytes = [0; 7];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"SSH-2.0");
    let request = String::from_utf8(served.await.unwrap()).unwrap();
    // "user:p@ss" in base64.
    assert_eq!(
        request,
        "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n\
         Proxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n"
    );
}

#[tokio::test]
async fn a_refusal_is_explained_without_the_password() {
    for (reply, expected) in [
        (&b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"[..], "requires a user name"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "status 403"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
    ] {
        let replies: &'static [(usize, &'static [u8])] = Box::leak(Box::new([(0, reply)]));
        let (port, _served) = serve_once(replies).await;
        let proxy = format!("http://user:secret@127.0.0.1:{port}");
        let upstream = upstream(&[("ALL_PROXY", &proxy)]).unwrap();
        let route = upstream.route(&name("a.example"), ProxiedProtocol::Tunnel).unwrap();
        let error =
            route.connect(&name("a.example"), 443, ProxiedProtocol::Tunnel).await.unwrap_err();
        assert!(error.contains(expected) && error.contains("127.0.0.1"), "{error}");
        assert!(!error.contains("secret") && !format!("{upstream:?}").contains("secret"));
    }
    let tls = upstream(&[("HTTPS_PROXY", "https://127.0.0.1:9")]).unwrap();
    let route = tls.route(&name("a.example"), ProxiedProtocol::Tunnel).unwrap();
    let error = route.connect(&name("a.example"), 443, ProxiedProtocol::Tunnel).await.unwrap_err();
    assert!(error.contains("not reachable") || error.contains("not supported"), "{error}");
}

#[tokio::test]
async fn socks_proxies_get_the_name_and_the_password() {
    let replies: &[(usize, &[u8])] = &[
        (3, &[5, 2]),
        (1 + 1 + 2 + 1 + 2, &[1, 0]),
        (3 + 1 + 1 + 9 + 2, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0, b'x']),
    ];
    let (port, served) = serve_once(replies).await;
    let proxy = format!("socks5h://us:pw@127.0.0.1:{port}");
    let upstream = upstream(&[("ALL_PROXY", &proxy)]).unwrap();
    let route = upstream.route(&name("a.example"), ProxiedProtocol::Http).unwrap();
    let connected = route.connect(&name("a.example"), 80, ProxiedProtocol::Http).await.unwrap();
    assert_eq!(connected.request_form, HttpRequestForm::Origin);
    let mut stream = connected.stream;
    assert_eq!(stream.read_u8().await.unwrap(), b'x');
    let expected = [
        &[5, 1, 2][..],
        &[1, 2, b'u', b's', 2, b'p', b'w'],
        &[5, 1, 0, 3, 9],
        b"a.example",
        &[0, 80],
    ]
    .concat();
    assert_eq!(served.await.unwrap(), expected);
}
