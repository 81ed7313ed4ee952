//! Tests of the proxy behind the proxy of the user's network.

use super::test_network::{ProxyTestEnv, TOKEN, authorization_header};
use crate::network::proxy::{HostAllowlist, PROXY_LIMITS, UpstreamProxy};
use std::ffi::OsString;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Starts an HTTP proxy that answers every request itself, and records the heads.
async fn start_upstream() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let reply = match head.starts_with("CONNECT") {
                true => "HTTP/1.1 200 OK\r\n\r\ntunnel",
                false => "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nforward",
            };
            recorded.lock().unwrap().push(head);
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    (port, heads)
}

fn env(port: u16, no_proxy: &str) -> ProxyTestEnv {
    let variables: Vec<(OsString, OsString)> = vec![
        ("ALL_PROXY".into(), format!("http://u:secret@127.0.0.1:{port}").into()),
        ("NO_PROXY".into(), no_proxy.into()),
    ];
    let upstream = UpstreamProxy::from_environment(&variables);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    ProxyTestEnv::with_hosts(listener, HostAllowlist::any(), upstream, PROXY_LIMITS)
}

fn request(line: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\n{}\r\n", authorization_header()).into_bytes()
}

#[tokio::test]
async fn everything_that_leaves_goes_through_the_upstream_proxy() {
    let (port, heads) = start_upstream().await;
    let env = env(port, "");
    env.add_name("known.example", &[&["93.184.216.34"]]);
    // The second name is unknown on this machine.
    let tunneled = env.exchange(&request("CONNECT known.example:443")).await;
    let forwarded = env.exchange(&request("GET http://unknown.example:8080/x?y")).await;
    assert!(
        tunneled.ends_with("tunnel") && forwarded.ends_with("forward"),
        "{tunneled}{forwarded}"
    );
    let heads = heads.lock().unwrap().clone();
    assert!(heads[0].starts_with("CONNECT known.example:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[1].starts_with("GET http://unknown.example:8080/x?y HTTP/1.1\r\n"), "{heads:?}");
    for head in &heads {
        assert_eq!(
            head.matches("Proxy-Authorization: Basic dTpzZWNyZXQ=\r\n").count(),
            1,
            "{head}"
        );
        assert!(!head.contains(TOKEN) && !head.contains(authorization_header().trim()), "{head}");
    }
    assert_eq!(env.dialed_addresses(), [] as [String; 0]);
    assert_eq!(env.decisions(), ["+known.example:443", "+unknown.example:8080"]);
}

#[tokio::test]
async fn the_upstream_proxy_opens_nothing_that_is_closed() {
    let (port, heads) = start_upstream().await;
    let env = env(port, "");
    env.add_name("rebound.example", &[&["10.0.0.1"]]);
    for line in [
        "CONNECT rebound.example:443",
        "CONNECT 10.0.0.1:443",
        "GET http://169.254.169.254/latest",
        "GET http://8.8.8.8/",
    ] {
        let reply = env.exchange(&request(line)).await;
        assert!(reply.starts_with("HTTP/1.1 403 "), "{line}: {reply}");
    }
    assert_eq!(*heads.lock().unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn exceptions_are_reached_directly() {
    let (port, heads) = start_upstream().await;
    let mut env = env(port, "near.example");
    env.add_name("near.example", &[&["93.184.216.34"]]);
    let hello = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    env.add_server("93.184.216.34", super::test_network::FakeServerBehavior::Responds(hello));
    assert_eq!(env.exchange(&request("GET http://near.example/")).await, hello);
    assert_eq!(*heads.lock().unwrap(), [] as [String; 0]);
    assert_eq!(env.dialed_addresses(), ["93.184.216.34:80"]);
}
