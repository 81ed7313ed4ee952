//! Plain requests and tunnels: what passes, and what does not.

use super::world::{Server, World, basic, read_all};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PUBLIC: &str = "93.184.216.34";
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

fn world() -> World {
    let mut world = World::new(&["allowed.com", "*.allowed.com"]);
    world.name("allowed.com", &[&[PUBLIC]]);
    world.name("evil.io", &[&[PUBLIC]]);
    world.serve(PUBLIC, Server::Says(HELLO));
    world
}

fn get(url: &str) -> Vec<u8> {
    format!("GET {url} HTTP/1.1\r\n{}\r\n", basic()).into_bytes()
}

#[tokio::test]
async fn a_plain_request_to_a_listed_host_passes() {
    let world = world();
    let reply = world.exchange(&get("http://Allowed.com/x?y")).await;
    assert_eq!(reply, HELLO);
    assert_eq!(
        world.got(),
        ["GET /x?y HTTP/1.1\r\nHost: allowed.com\r\nConnection: close\r\n\r\n"]
    );
    assert_eq!(world.decided(), ["+allowed.com:80"]);
    assert_eq!(world.dialled(), [format!("{PUBLIC}:80")]);
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_as_they_are() {
    let mut world = World::new(&["allowed.com"]);
    world.name("allowed.com", &[&[PUBLIC]]);
    world.serve(PUBLIC, Server::Echo);
    let mut stream = world.connect().await;
    // The client does not wait for the answer with its first bytes.
    let head = format!(
        "CONNECT allowed.com:443 HTTP/1.1\r\nHost: allowed.com:443\r\n{}\r\n\0early",
        basic()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = vec![0; "HTTP/1.1 200 Connection established\r\n\r\n\0early".len()];
    stream.read_exact(&mut reply).await.unwrap();
    assert!(reply.starts_with(b"HTTP/1.1 200 ") && reply.ends_with(b"\r\n\r\n\0early"));
    let large: Vec<u8> = (0..300_000_u32).map(|each| each as u8).collect();
    let (mut from, mut to) = stream.split();
    let send = async {
        to.write_all(&large).await.unwrap();
        to.write_all(&get("http://evil.io/")).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let (_, read) = tokio::join!(send, from.read_to_end(&mut back));
    read.unwrap();
    assert!(back.starts_with(&large) && back.ends_with(&get("http://evil.io/")), "only bytes now");
    assert_eq!(world.decided(), ["+allowed.com:443"]);
}

#[tokio::test]
async fn a_host_that_is_not_listed_is_refused_and_not_even_looked_up() {
    let world = world();
    for url in [
        "http://evil.io/",
        "http://allowed.com.evil.io/",
        "http://evilallowed.com/",
        "http://allowed.com:8080/",
        "http://com/",
    ] {
        let reply = world.exchange(&get(url)).await;
        assert!(reply.starts_with("HTTP/1.1 403 "), "{url}: {reply}");
        assert!(reply.contains("sandbox.network"), "{reply}");
        assert_eq!(reply.split("\r\n\r\n").nth(1).unwrap().lines().count(), 1);
    }
    let reply =
        world.exchange(format!("CONNECT evil.io:443 HTTP/1.1\r\n{}\r\n", basic()).as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 403 ") && reply.contains("add \"evil.io\" to"), "{reply}");
    let reply = world
        .exchange(format!("CONNECT allowed.com:22 HTTP/1.1\r\n{}\r\n", basic()).as_bytes())
        .await;
    assert!(reply.contains("add \"allowed.com:22\" to"), "{reply}");
    assert!(world.asked().is_empty(), "a lookup tells somebody: {:?}", world.asked());
    assert!(world.dialled().is_empty() && world.decided().len() == 7);
    assert!(world.decided().iter().all(|line| line.starts_with('-')));
}

#[tokio::test]
async fn an_empty_list_lets_nothing_out() {
    let world = World::new(&[]);
    world.name("example.com", &[&[PUBLIC]]);
    for url in ["http://example.com/", "http://93.184.216.34/", "http://[2606:4700:4700::1111]/"] {
        assert!(world.exchange(&get(url)).await.starts_with("HTTP/1.1 403 "), "{url}");
    }
    assert!(world.asked().is_empty() && world.dialled().is_empty());
    assert_eq!(world.decided().len(), 3);
}

#[tokio::test]
async fn tricks_with_the_address_lead_nowhere() {
    let world = world();
    let tricks = [
        "http://user:allowed.com@evil.io/",
        "http://allowed.com@evil.io/",
        "http://evil.io#.allowed.com/",
        "http://evil.io\\.allowed.com/",
        "http://evil.io%00.allowed.com/",
        "http://evil.io%2f.allowed.com/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fe80::1%25lo]/",
        "http://allowed.com:80@evil.io/",
        "https://allowed.com/",
        "/",
        "evil.io",
    ];
    for url in tricks {
        let reply = world.exchange(&get(url)).await;
        assert!(reply.starts_with("HTTP/1.1 40"), "{url}: {reply}");
    }
    assert!(world.asked().is_empty() && world.dialled().is_empty(), "{:?}", world.asked());
    assert_eq!(world.decided().len(), tricks.len());
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_even_if_one_address_is_public() {
    let world = World::new(&["*"]);
    let inside: &[&[&str]] = &[
        &["127.0.0.1"],
        &["10.1.2.3"],
        &["169.254.169.254"],
        &["::1"],
        &["fd00::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::1"],
        &["0.0.0.0"],
        &[PUBLIC, "192.168.0.1"],
        &["2606:4700::1", "fe80::1"],
        &["100.64.0.1", PUBLIC],
    ];
    for (at, addresses) in inside.iter().enumerate() {
        world.name(&format!("n{at}.example"), &[addresses]);
        let reply = world.exchange(&get(&format!("http://n{at}.example/"))).await;
        assert!(
            reply.starts_with("HTTP/1.1 403 ") && reply.contains("not public"),
            "{addresses:?}: {reply}"
        );
    }
    assert!(world.dialled().is_empty());
    assert_eq!(world.decided().len(), inside.len());
}

#[tokio::test]
async fn an_address_has_to_be_listed_and_public() {
    let mut world =
        World::new(&["93.184.216.34", "127.0.0.1", "[::1]", "10.0.0.1", "[::ffff:10.0.0.1]"]);
    world.serve(PUBLIC, Server::Says(HELLO));
    assert_eq!(world.exchange(&get("http://93.184.216.34/")).await, HELLO);
    for url in [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://93.184.216.35/",
    ] {
        assert!(world.exchange(&get(url)).await.starts_with("HTTP/1.1 403 "), "{url}");
    }
    assert_eq!(world.dialled(), ["93.184.216.34:80"]);
    assert!(world.asked().is_empty());
}

#[tokio::test]
async fn an_answer_that_changes_after_the_check_changes_nothing() {
    let mut world = World::new(&["allowed.com"]);
    world.name("allowed.com", &[&[PUBLIC], &["127.0.0.1"]]);
    world.serve(PUBLIC, Server::Says(HELLO));
    assert_eq!(world.exchange(&get("http://allowed.com/")).await, HELLO);
    assert_eq!(world.asked(), ["allowed.com"], "it is looked up once");
    assert_eq!(world.dialled(), [format!("{PUBLIC}:80")]);
    assert!(world.exchange(&get("http://allowed.com/")).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(world.dialled().len(), 1);
    assert_eq!(world.decided(), ["+allowed.com:80", "-allowed.com:80"]);
}

#[tokio::test]
async fn without_the_token_nothing_is_even_considered() {
    let world = world();
    let good = basic();
    let twice = format!("{good}{good}");
    let wrong = [
        "",
        "Proxy-Authorization: Basic d2luZGxhc3M6d3Jvbmc=\r\n",
        "Authorization: Basic d2luZGxhc3M6d3Jvbmc=\r\n",
        "Proxy-Authorization: Bearer s3cret-token\r\n",
        "Proxy-Authorization: s3cret-token\r\n",
        "Proxy-Authorization: Basic\r\n",
        "Proxy-Authorization: Basic \r\n",
        &twice,
        &good.replace("Proxy-", ""),
    ];
    for field in wrong {
        for line in [
            "GET http://allowed.com/ HTTP/1.1",
            "CONNECT allowed.com:443 HTTP/1.1",
            "GET http://evil.io/ HTTP/1.1",
        ] {
            let reply = world.exchange(format!("{line}\r\n{field}\r\n").as_bytes()).await;
            assert!(
                reply.starts_with("HTTP/1.1 407 ")
                    && reply.contains("\r\nProxy-Authenticate: Basic"),
                "{reply}"
            );
        }
    }
    assert!(world.asked().is_empty() && world.dialled().is_empty() && world.decided().is_empty());
}

#[tokio::test]
async fn a_second_request_does_not_ride_along() {
    let world = world();
    let second = "GET http://evil.io/ HTTP/1.1\r\nHost: evil.io\r\n\r\n";
    let token = basic();
    for (head, body) in [
        (String::from("Connection: keep-alive\r\n"), ""),
        (String::from("Content-Length: 4\r\n"), "body"),
        (
            String::from("Transfer-Encoding: chunked\r\n"),
            "4;x=y\r\nbody\r\n0\r\nHost: evil.io\r\n\r\n",
        ),
    ] {
        let text = format!("POST http://allowed.com/ HTTP/1.1\r\n{token}{head}\r\n{body}{second}");
        assert_eq!(world.exchange(text.as_bytes()).await, HELLO);
    }
    let got = world.got();
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|got| !got.contains("evil")), "{got:?}");
    assert!(got[1].ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nbody"), "{got:?}");
    assert!(got[2].ends_with("\r\n\r\n4\r\nbody\r\n0\r\n\r\n"), "{got:?}");
    assert_eq!(world.decided(), ["+allowed.com:80"; 3]);
}

#[tokio::test]
async fn requests_with_two_meanings_are_refused() {
    let world = world();
    let token = basic();
    let clear = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Transfer-Encoding: identity\r\n",
        "Host: evil.io\r\n",
        "Host: allowed.com\r\nHost: evil.io\r\n",
    ];
    for fields in clear {
        let text = format!("POST http://allowed.com/ HTTP/1.1\r\n{token}{fields}\r\nbody");
        let reply = world.exchange(text.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 400 "), "{fields:?}: {reply}");
    }
    assert_eq!(world.decided(), ["-allowed.com:80"; 5]);
    // These have no one meaning that a token could belong to.
    for fields in [
        "X: y\r\n folded\r\n",
        "X: a\nHost: evil.io\r\n",
        "X: a\rb\r\n",
        "X: a\0b\r\n",
        "X : y\r\n",
    ] {
        let text = format!("POST http://allowed.com/ HTTP/1.1\r\n{token}{fields}\r\nbody");
        let reply = world.exchange(text.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 400 "), "{fields:?}: {reply}");
    }
    assert!(world.dialled().is_empty() && world.decided().len() == 5);
}

#[tokio::test]
async fn chunks_that_lie_end_the_connection() {
    let world = world();
    let token = basic();
    for body in [
        "4\r\nbodyX\r\n0\r\n\r\n",
        "0x4\r\nbody\r\n0\r\n\r\n",
        "-1\r\n",
        "\r\n",
        "4\nbody\r\n0\r\n\r\n",
        "ffffffffffffffff\r\n",
        "+4\r\nbody\r\n0\r\n\r\n",
    ] {
        let text = format!(
            "POST http://allowed.com/ HTTP/1.1\r\n{token}Transfer-Encoding: chunked\r\n\r\n{body}GET http://evil.io/ HTTP/1.1\r\n\r\n"
        );
        assert_eq!(world.exchange(text.as_bytes()).await, "", "{body:?}");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(world.got().iter().all(|got| !got.contains("evil")));
}

#[tokio::test]
async fn a_host_that_is_listed_but_not_there_is_no_refusal() {
    let world = World::new(&["gone.example"]);
    let reply = world.exchange(&get("http://gone.example/")).await;
    assert!(reply.starts_with("HTTP/1.1 502 ") && reply.contains("was not found"), "{reply}");
    assert_eq!(world.decided(), ["+gone.example:80"]);
}

#[tokio::test]
async fn a_host_that_answers_slowly_is_heard_to_the_end() {
    let mut world = world();
    world.serve(PUBLIC, Server::Echo);
    let mut stream = world.connect().await;
    let head = format!("POST http://allowed.com/ HTTP/1.1\r\n{}Content-Length: 3\r\n\r\n", basic());
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    stream.write_all(b"abcdef").await.unwrap();
    let mut back = Vec::new();
    while !back.ends_with(b"\r\n\r\nabc") {
        let mut piece = [0; 100];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0);
        back.extend_from_slice(&piece[..read]);
    }
    world.proxy = None;
    assert_eq!(read_all(&mut stream).await, "", "nothing after the body");
}
