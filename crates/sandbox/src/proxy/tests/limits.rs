//! Clients that are slow, silent, endless or many; and the end of a proxy.

use super::world::{PATIENCE, Server, TOKEN, World, basic, read_all};
use crate::proxy::dial::is_own;
use crate::proxy::{LIMITS, Limits, Proxy};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PUBLIC: &str = "93.184.216.34";
const SOON: Duration = Duration::from_millis(300);

fn world(limits: Limits) -> World {
    let mut world = World::with(&["allowed.com"], limits);
    world.name("allowed.com", &[&[PUBLIC]]);
    world.serve(PUBLIC, Server::Silent);
    world
}

async fn tunnel(world: &World) -> TcpStream {
    let mut stream = world.connect().await;
    let head = format!("CONNECT allowed.com:443 HTTP/1.1\r\n{}\r\n", basic());
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = [0; 39];
    stream.read_exact(&mut reply).await.unwrap();
    assert!(reply.ends_with(b"\r\n\r\n"));
    stream
}

#[tokio::test]
async fn a_head_that_trickles_is_not_waited_for() {
    let world = world(Limits { head: SOON, ..LIMITS });
    let start = Instant::now();
    let mut stream = world.connect().await;
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
    timeout(PATIENCE, both).await.expect("it is waited for");
    assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 408 "));
    assert!(start.elapsed() < Duration::from_secs(5));
    // The same for one that says nothing, and for SOCKS at each step.
    for said in [&b""[..], b"\x05", b"\x05\x01\x02", b"\x05\x01\x02\x01\x08wind", b"GET"] {
        let mut stream = world.connect().await;
        stream.write_all(said).await.unwrap();
        let start = Instant::now();
        read_all(&mut stream).await;
        assert!(
            start.elapsed() >= SOON / 2 && start.elapsed() < Duration::from_secs(5),
            "{said:?}"
        );
    }
    assert!(world.decided().is_empty());
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let world = world(LIMITS);
    for long in [
        format!("GET http://allowed.com/{} HTTP/1.1\r\n", "a".repeat(20_000)),
        format!("GET http://allowed.com/ HTTP/1.1\r\n{}", "X: yyyyyyyyyy\r\n".repeat(2000)),
    ] {
        let reply = world.exchange(long.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_given_up() {
    let mut world = World::with(&["allowed.com"], Limits { connect: SOON, ..LIMITS });
    // Nobody is at the first two addresses; the third has its share of the time left.
    world.name(
        "allowed.com",
        &[&["93.184.216.1", "93.184.216.2"], &["93.184.216.1", "93.184.216.2", PUBLIC]],
    );
    world.serve(PUBLIC, Server::Says("HTTP/1.1 200 OK\r\n\r\nhello"));
    let request = format!("GET http://allowed.com/ HTTP/1.1\r\n{}\r\n", basic());
    let start = Instant::now();
    let reply = world.exchange(request.as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(world.exchange(request.as_bytes()).await.ends_with("hello"));
    assert_eq!(world.decided(), ["+allowed.com:80"; 2]);
}

#[tokio::test]
async fn a_tunnel_ends_when_nothing_moves_and_not_before() {
    let mut world = world(Limits { idle: Duration::from_millis(600), ..LIMITS });
    let mut stream = tunnel(&world).await;
    let start = Instant::now();
    // One direction moves, the other does not.
    for _ in 0..5 {
        stream.write_all(b"x").await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(timeout(Duration::from_millis(1), stream.read_u8()).await.is_err(), "still open");
    read_all(&mut stream).await;
    assert!(
        start.elapsed() > Duration::from_millis(1200) && start.elapsed() < Duration::from_secs(8)
    );
    world.proxy = None;
}

#[tokio::test]
async fn no_more_connections_than_there_are_seats() {
    let world = world(Limits { connections: 3, ..LIMITS });
    let mut seated = Vec::new();
    for _ in 0..3 {
        seated.push(tunnel(&world).await);
    }
    let waiting = tunnel(&world);
    tokio::pin!(waiting);
    assert!(timeout(SOON, &mut waiting).await.is_err(), "a fourth is served");
    seated.pop();
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "its seat is free again");
}

#[tokio::test]
async fn everything_ends_with_the_proxy() {
    let mut world = world(LIMITS);
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(tunnel(&world).await);
    }
    let mut asking = world.connect().await;
    asking.write_all(b"GET http://allowed.com/").await.unwrap();
    world.proxy = None;
    for stream in &mut streams {
        assert_eq!(read_all(stream).await, "");
    }
    read_all(&mut asking).await;
    assert!(TcpStream::connect(world.address).await.is_err());
}

#[tokio::test]
async fn a_connection_to_this_machine_is_known_for_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    assert!(is_own(&stream, address.ip()));
    assert!(!is_own(&stream, "93.184.216.34".parse().unwrap()));
}

#[test]
fn a_proxy_without_a_runtime_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(Proxy::serve(listener, crate::Hosts::none(), TOKEN, drop).is_err());
}

#[test]
fn the_environment_names_it_for_every_habit() {
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
