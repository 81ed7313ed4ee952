//! Tests of SOCKS5: names, addresses, and unsupported commands.

use super::test_network::{FakeServerBehavior, ProxyTestEnv, TOKEN};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PUBLIC: &str = "93.184.216.34";

fn create_env(list: &[&str]) -> ProxyTestEnv {
    let mut env = ProxyTestEnv::new(list);
    env.add_name("allowed.com", &[&[PUBLIC]]);
    env.add_server(PUBLIC, FakeServerBehavior::Echo);
    env
}

fn login_message(user: &str, password: &str) -> Vec<u8> {
    let mut bytes = vec![1, user.len() as u8];
    bytes.extend_from_slice(user.as_bytes());
    bytes.push(password.len() as u8);
    bytes.extend_from_slice(password.as_bytes());
    bytes
}

fn connect_to_name(name: &[u8], port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 3, name.len() as u8];
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes
}

/// Logs in, sends a request, and returns the code of the reply with the connection.
async fn send_request(env: &ProxyTestEnv, request: &[u8]) -> (u8, TcpStream) {
    let mut stream = env.connect().await;
    let mut greeting = vec![5, 2, 0, 2];
    greeting.extend(login_message("windlass", TOKEN));
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
    let env = create_env(&["allowed.com"]);
    let (code, mut stream) = send_request(&env, &connect_to_name(b"Allowed.com", 443)).await;
    assert_eq!(code, 0);
    stream.write_all(b"\x05ping\0").await.unwrap();
    let mut back = [0; 6];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"\x05ping\0");
    assert_eq!(env.decisions(), ["+allowed.com:443"]);
    assert_eq!(env.dialed_addresses(), [format!("{PUBLIC}:443")]);
}

#[tokio::test]
async fn names_that_do_not_match_exactly_are_refused() {
    let env = create_env(&["allowed.com", "*.allowed.com"]);
    env.add_name("evil", &[&[PUBLIC]]);
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
        let (code, mut stream) = send_request(&env, &connect_to_name(name, 443)).await;
        assert!(code == 1 || code == 2, "{code}: {:?}", String::from_utf8_lossy(name));
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0, "the connection ends");
    }
    assert!(
        env.resolved_names().is_empty() && env.dialed_addresses().is_empty(),
        "{:?}",
        env.resolved_names()
    );
    assert_eq!(env.decisions().len(), names.len());
    assert!(env.decisions().iter().all(|line| line.starts_with('-')));
}

#[tokio::test]
async fn addresses_have_to_be_listed_and_public() {
    let env = create_env(&["*", "93.184.216.34", "127.0.0.1", "[::1]"]);
    let connect_ipv4 = |a: [u8; 4]| [&[5, 1, 0, 1][..], &a, &[0, 80]].concat();
    let connect_ipv6 = |a: &str| {
        [&[5, 1, 0, 4][..], &a.parse::<std::net::Ipv6Addr>().unwrap().octets(), &[0, 80]].concat()
    };
    assert_eq!(send_request(&env, &connect_ipv4([93, 184, 216, 34])).await.0, 0);
    for request in [
        connect_ipv4([127, 0, 0, 1]),
        connect_ipv4([8, 8, 8, 8]),
        connect_ipv4([0; 4]),
        connect_ipv6("::1"),
        connect_ipv6("::ffff:93.184.216.34"),
        connect_ipv6("2606:4700::1"),
    ] {
        assert_eq!(send_request(&env, &request).await.0, 2, "{request:?}");
    }
    assert_eq!(env.dialed_addresses(), [format!("{PUBLIC}:80")]);
    assert_eq!(env.decisions().len(), 7);
}

#[tokio::test]
async fn only_connect_is_supported() {
    let env = create_env(&["allowed.com"]);
    for command in [0, 2, 3, 0xff] {
        let mut request = connect_to_name(b"allowed.com", 443);
        request[1] = command;
        assert_eq!(send_request(&env, &request).await.0, 7, "{command}");
    }
    assert_eq!(env.decisions(), ["-allowed.com:443"; 4]);
    let mut request = connect_to_name(b"allowed.com", 443);
    request[3] = 9;
    assert_eq!(send_request(&env, &request).await.0, 8);
    request[2] = 1;
    assert_eq!(send_request(&env, &request).await.0, 1);
    let reply = env.exchange(b"\x04\x01\x01\xbb\x00\x00\x00\x01me\0allowed.com\0").await;
    assert!(reply.starts_with("\0["), "{reply:?}");
    assert!(env.dialed_addresses().is_empty() && env.decisions().len() == 4);
}

#[tokio::test]
async fn without_the_token_no_host_is_considered() {
    let env = create_env(&["allowed.com"]);
    for methods in [&[5, 1, 0][..], &[5, 0], &[5, 2, 0, 1]] {
        assert_eq!(env.exchange(methods).await, "\u{5}\u{fffd}");
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
        bytes.extend(login_message(user, password));
        bytes.extend(connect_to_name(b"allowed.com", 443));
        assert_eq!(env.exchange(&bytes).await, "\u{5}\u{2}\u{1}\u{1}", "{user}:{password}");
    }
    assert!(env.decisions().is_empty() && env.resolved_names().is_empty());
}
