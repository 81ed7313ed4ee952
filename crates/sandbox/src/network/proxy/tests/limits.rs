//! Tests of the proxy's limits for slow, silent, endless and many clients, and of its end.

use super::test_network::{
    CONNECTION_TIMEOUT, FakeServerBehavior, ProxyTestEnv, TOKEN, authorization_header, read_all,
};
use crate::network::proxy::host_gate::is_own_machine;
use crate::network::proxy::{PROXY_LIMITS, Proxy, ProxyLimits};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PUBLIC: &str = "93.184.216.34";
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

fn create_env(limits: ProxyLimits) -> ProxyTestEnv {
    let mut env = ProxyTestEnv::with_limits(&["allowed.com"], limits);
    env.add_name("allowed.com", &[&[PUBLIC]]);
    env.add_server(PUBLIC, FakeServerBehavior::Silent);
    env
}

async fn tunnel(env: &ProxyTestEnv) -> TcpStream {
    let mut stream = env.connect().await;
    let head = format!("CONNECT allowed.com:443 HTTP/1.1\r\n{}\r\n", authorization_header());
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = [0; 39];
    stream.read_exact(&mut reply).await.unwrap();
    assert!(reply.ends_with(b"\r\n\r\n"));
    stream
}

#[tokio::test]
async fn a_slow_request_head_times_out() {
    let env = create_env(ProxyLimits { head_timeout: SHORT_TIMEOUT, ..PROXY_LIMITS });
    let start = Instant::now();
    let mut stream = env.connect().await;
    let (mut from, mut to) = stream.split();
    let trickle = async {
        for byte in "GET http://allowed.com/ HTTP/1.1\r\n".bytes().chain(std::iter::repeat(b'a')) {
            if to.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut reply = Vec::new();
    let read = async { from.read_to_end(&mut reply).await };
    let both = async {
        tokio::select! { () = trickle => {}, _ = read => {} }
    };
    timeout(CONNECTION_TIMEOUT, both).await.expect("the proxy waits for the head");
    assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 408 "));
    assert!(start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)));
    // The same applies to a silent client, and to SOCKS at each step.
    for sent in [&b""[..], b"\x05", b"\x05\x01\x02", b"\x05\x01\x02\x01\x08wind", b"GET"] {
        let mut stream = env.connect().await;
        stream.write_all(sent).await.unwrap();
        let start = Instant::now();
        read_all(&mut stream).await;
        assert!(
            start.elapsed() >= SHORT_TIMEOUT / 2
                && start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
            "{sent:?}"
        );
    }
    assert!(env.decisions().is_empty());
}

#[tokio::test]
async fn an_endless_request_head_is_rejected() {
    let env = create_env(PROXY_LIMITS);
    for long in [
        format!("GET http://allowed.com/{} HTTP/1.1\r\n", "a".repeat(20_000)),
        format!("GET http://allowed.com/ HTTP/1.1\r\n{}", "X: yyyyyyyyyy\r\n".repeat(2000)),
    ] {
        let reply = env.exchange(long.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_times_out() {
    let mut env = ProxyTestEnv::with_limits(
        &["allowed.com"],
        ProxyLimits { connect_timeout: SHORT_TIMEOUT, ..PROXY_LIMITS },
    );
    // The first two addresses do not answer; the third has its share of the time left.
    env.add_name(
        "allowed.com",
        &[&["93.184.216.1", "93.184.216.2"], &["93.184.216.1", "93.184.216.2", PUBLIC]],
    );
    env.add_server(PUBLIC, FakeServerBehavior::Responds("HTTP/1.1 200 OK\r\n\r\nhello"));
    let request = format!("GET http://allowed.com/ HTTP/1.1\r\n{}\r\n", authorization_header());
    let start = Instant::now();
    let reply = env.exchange(request.as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
    assert!(start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)));
    assert!(env.exchange(request.as_bytes()).await.ends_with("hello"));
    assert_eq!(env.decisions(), ["+allowed.com:80"; 2]);
}

#[tokio::test]
async fn a_tunnel_ends_when_idle_and_not_before() {
    let mut env =
        create_env(ProxyLimits { idle_timeout: Duration::from_millis(600), ..PROXY_LIMITS });
    let mut stream = tunnel(&env).await;
    let start = Instant::now();
    // Only one direction is active.
    for _ in 0..5 {
        stream.write_all(b"x").await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(
        timeout(Duration::from_millis(1), stream.read_u8()).await.is_err(),
        "the tunnel is still open"
    );
    read_all(&mut stream).await;
    assert!(
        start.elapsed() > Duration::from_millis(1200)
            && start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(8))
    );
    env.proxy = None;
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let env = create_env(ProxyLimits { max_connections: 3, ..PROXY_LIMITS });
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(tunnel(&env).await);
    }
    let waiting = tunnel(&env);
    tokio::pin!(waiting);
    assert!(timeout(SHORT_TIMEOUT, &mut waiting).await.is_err(), "a fourth connection is served");
    open.pop();
    assert!(timeout(CONNECTION_TIMEOUT, waiting).await.is_ok(), "a closed connection makes room");
}

#[tokio::test]
async fn all_connections_end_with_the_proxy() {
    let mut env = create_env(PROXY_LIMITS);
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(tunnel(&env).await);
    }
    let mut incomplete = env.connect().await;
    incomplete.write_all(b"GET http://allowed.com/").await.unwrap();
    env.proxy = None;
    for stream in &mut streams {
        assert_eq!(read_all(stream).await, "");
    }
    read_all(&mut incomplete).await;
    assert!(TcpStream::connect(env.address).await.is_err());
}

#[tokio::test]
async fn a_connection_to_this_machine_is_detected() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    assert!(is_own_machine(&stream, address.ip()));
    assert!(!is_own_machine(&stream, "93.184.216.34".parse().unwrap()));
}

#[test]
fn a_proxy_without_a_runtime_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(Proxy::serve(listener, crate::HostAllowlist::none(), TOKEN, drop).is_err());
}

#[test]
fn the_environment_sets_all_proxy_variables() {
    let variables = Proxy::environment(4128, "a/b c");
    let value = |name: &str| variables.iter().find(|(each, _)| each == name).unwrap().1.as_str();
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        assert_eq!(value(name), "http://windlass:a%2Fb%20c@127.0.0.1:4128");
    }
    for name in ["ALL_PROXY", "all_proxy"] {
        assert_eq!(value(name), "socks5h://windlass:a%2Fb%20c@127.0.0.1:4128");
    }
    let own = "localhost,127.0.0.1,::1";
    assert_eq!((value("NO_PROXY"), value("no_proxy"), variables.len()), (own, own, 8));
}
