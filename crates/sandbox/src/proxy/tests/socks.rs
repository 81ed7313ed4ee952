//! SOCKS5: names, addresses, and everything that is not CONNECT.

use super::world::{Server, TOKEN, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PUBLIC: &str = "93.184.216.34";

fn world(list: &[&str]) -> World {
    let mut world = World::new(list);
    world.name("allowed.com", &[&[PUBLIC]]);
    world.serve(PUBLIC, Server::Echo);
    world
}

fn login(user: &str, password: &str) -> Vec<u8> {
    let mut bytes = vec![1, user.len() as u8];
    bytes.extend_from_slice(user.as_bytes());
    bytes.push(password.len() as u8);
    bytes.extend_from_slice(password.as_bytes());
    bytes
}

fn by_name(name: &[u8], port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 3, name.len() as u8];
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes
}

/// The code of the answer, and the connection.
async fn ask(world: &World, request: &[u8]) -> (u8, TcpStream) {
    let mut stream = world.connect().await;
    let mut greeting = vec![5, 2, 0, 2];
    greeting.extend(login("windlass", TOKEN));
    stream.write_all(&greeting).await.unwrap();
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply, [5, 2, 1, 0]);
    stream.write_all(request).await.unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.unwrap();
    (reply[1], stream)
}

#[tokio::test]
async fn a_listed_name_is_reached() {
    let world = world(&["allowed.com"]);
    let (code, mut stream) = ask(&world, &by_name(b"Allowed.com", 443)).await;
    assert_eq!(code, 0);
    stream.write_all(b"\x05ping\0").await.unwrap();
    let mut back = [0; 6];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"\x05ping\0");
    assert_eq!(world.decided(), ["+allowed.com:443"]);
    assert_eq!(world.dialled(), [format!("{PUBLIC}:443")]);
}

#[tokio::test]
async fn a_name_is_all_of_its_bytes() {
    let world = world(&["allowed.com", "*.allowed.com"]);
    world.name("evil", &[&[PUBLIC]]);
    let names: &[&[u8]] = &[
        b"evil\0.allowed.com",
        b"allowed.com\0",
        b"\0allowed.com",
        b"evil\r\n.allowed.com",
        b"evil\x7f.allowed.com",
        b"evil\xff.allowed.com",
        "еvil.allowed.com".as_bytes(),
        b"evil .allowed.com",
        b"evil%00.allowed.com",
        b"evil/.allowed.com",
        b"u@.allowed.com",
        b"",
        b".",
        b"allowed.com..",
        b"allowed.com.evil.io",
        b"evilallowed.com",
        b"evil.io#.allowed.com",
        b"127.0.0.1",
        b"2130706433",
        b"0177.1",
        b"::1",
        b"[::1]",
        b"fe80::1%lo",
        b"localhost",
    ];
    for name in names {
        let (code, mut stream) = ask(&world, &by_name(name, 443)).await;
        assert!(code == 1 || code == 2, "{code}: {:?}", String::from_utf8_lossy(name));
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0, "and the end");
    }
    assert!(world.asked().is_empty() && world.dialled().is_empty(), "{:?}", world.asked());
    assert_eq!(world.decided().len(), names.len());
    assert!(world.decided().iter().all(|line| line.starts_with('-')));
}

#[tokio::test]
async fn addresses_have_to_be_listed_and_public() {
    let world = world(&["*", "93.184.216.34", "127.0.0.1", "[::1]"]);
    let four = |a: [u8; 4]| [&[5, 1, 0, 1][..], &a, &[0, 80]].concat();
    let six = |a: &str| {
        [&[5, 1, 0, 4][..], &a.parse::<std::net::Ipv6Addr>().unwrap().octets(), &[0, 80]].concat()
    };
    assert_eq!(ask(&world, &four([93, 184, 216, 34])).await.0, 0);
    for request in [
        four([127, 0, 0, 1]),
        four([8, 8, 8, 8]),
        four([0; 4]),
        six("::1"),
        six("::ffff:93.184.216.34"),
        six("2606:4700::1"),
    ] {
        assert_eq!(ask(&world, &request).await.0, 2, "{request:?}");
    }
    assert_eq!(world.dialled(), [format!("{PUBLIC}:80")]);
    assert_eq!(world.decided().len(), 7);
}

#[tokio::test]
async fn only_connect_is_served() {
    let world = world(&["allowed.com"]);
    for command in [0, 2, 3, 0xff] {
        let mut request = by_name(b"allowed.com", 443);
        request[1] = command;
        assert_eq!(ask(&world, &request).await.0, 7, "{command}");
    }
    assert_eq!(world.decided(), ["-allowed.com:443"; 4]);
    let mut request = by_name(b"allowed.com", 443);
    request[3] = 9;
    assert_eq!(ask(&world, &request).await.0, 8);
    request[2] = 1;
    assert_eq!(ask(&world, &request).await.0, 1);
    let reply = world.exchange(b"\x04\x01\x01\xbb\x00\x00\x00\x01me\0allowed.com\0").await;
    assert!(reply.starts_with("\0["), "{reply:?}");
    assert!(world.dialled().is_empty() && world.decided().len() == 4);
}

#[tokio::test]
async fn without_the_token_nothing_is_even_considered() {
    let world = world(&["allowed.com"]);
    for methods in [&[5, 1, 0][..], &[5, 0], &[5, 2, 0, 1]] {
        assert_eq!(world.exchange(methods).await, "\u{5}\u{fffd}");
    }
    let long = "x".repeat(255);
    for (user, password) in [
        ("windlass", "wrong"),
        ("windlass", ""),
        ("root", TOKEN),
        ("", TOKEN),
        ("windlass", &long),
        ("windlass", "s3cret-tokeN"),
    ] {
        let mut bytes = vec![5, 1, 2];
        bytes.extend(login(user, password));
        bytes.extend(by_name(b"allowed.com", 443));
        assert_eq!(world.exchange(&bytes).await, "\u{5}\u{2}\u{1}\u{1}", "{user}:{password}");
    }
    assert!(world.decided().is_empty() && world.asked().is_empty());
}
