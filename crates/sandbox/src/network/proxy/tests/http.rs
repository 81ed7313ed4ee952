//! Tests of plain HTTP requests and tunnels.

use super::test_network::{FakeServerBehavior, ProxyTestEnv, authorization_header, read_all};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PUBLIC: &str = "93.184.216.34";
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

fn create_env() -> ProxyTestEnv {
    let mut env = ProxyTestEnv::new(&["allowed.com", "*.allowed.com"]);
    env.add_name("allowed.com", &[&[PUBLIC]]);
    env.add_name("evil.io", &[&[PUBLIC]]);
    env.add_server(PUBLIC, FakeServerBehavior::Responds(HELLO));
    env
}

fn get(url: &str) -> Vec<u8> {
    format!("GET {url} HTTP/1.1\r\n{}\r\n", authorization_header()).into_bytes()
}

#[tokio::test]
async fn a_plain_request_to_a_listed_host_passes() {
    let env = create_env();
    let reply = env.exchange(&get("http://Allowed.com/x?y")).await;
    assert_eq!(reply, HELLO);
    assert_eq!(
        env.received(),
        ["GET /x?y HTTP/1.1\r\nHost: allowed.com\r\nConnection: close\r\n\r\n"]
    );
    assert_eq!(env.decisions(), ["+allowed.com:80"]);
    assert_eq!(env.dialed_addresses(), [format!("{PUBLIC}:80")]);
}

#[tokio::test]
async fn a_tunnel_carries_bytes_unchanged_in_both_directions() {
    let mut env = ProxyTestEnv::new(&["allowed.com"]);
    env.add_name("allowed.com", &[&[PUBLIC]]);
    env.add_server(PUBLIC, FakeServerBehavior::Echo);
    let mut stream = env.connect().await;
    // The client sends its first bytes before the response.
    let head = format!(
        "CONNECT allowed.com:443 HTTP/1.1\r\nHost: allowed.com:443\r\n{}\r\n\0early",
        authorization_header()
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
    assert!(
        back.starts_with(&large) && back.ends_with(&get("http://evil.io/")),
        "the tunnel does not parse requests"
    );
    assert_eq!(env.decisions(), ["+allowed.com:443"]);
}

#[tokio::test]
async fn an_unlisted_host_is_refused_and_not_resolved() {
    let env = create_env();
    for url in [
        "http://evil.io/",
        "http://allowed.com.evil.io/",
        "http://evilallowed.com/",
        "http://allowed.com:8080/",
        "http://com/",
    ] {
        let reply = env.exchange(&get(url)).await;
        assert!(reply.starts_with("HTTP/1.1 403 "), "{url}: {reply}");
        assert!(reply.contains("sandbox.network"), "{reply}");
        assert_eq!(reply.split("\r\n\r\n").nth(1).unwrap().lines().count(), 1);
    }
    let reply = env
        .exchange(
            format!("CONNECT evil.io:443 HTTP/1.1\r\n{}\r\n", authorization_header()).as_bytes(),
        )
        .await;
    assert!(reply.starts_with("HTTP/1.1 403 ") && reply.contains("add \"evil.io\" to"), "{reply}");
    let reply = env
        .exchange(
            format!("CONNECT allowed.com:22 HTTP/1.1\r\n{}\r\n", authorization_header()).as_bytes(),
        )
        .await;
    assert!(reply.contains("add \"allowed.com:22\" to"), "{reply}");
    assert!(
        env.resolved_names().is_empty(),
        "a lookup would reveal the name: {:?}",
        env.resolved_names()
    );
    assert!(env.dialed_addresses().is_empty() && env.decisions().len() == 7);
    assert!(env.decisions().iter().all(|line| line.starts_with('-')));
}

#[tokio::test]
async fn an_empty_list_allows_nothing() {
    let env = ProxyTestEnv::new(&[]);
    env.add_name("example.com", &[&[PUBLIC]]);
    for url in ["http://example.com/", "http://93.184.216.34/", "http://[2606:4700:4700::1111]/"] {
        assert!(env.exchange(&get(url)).await.starts_with("HTTP/1.1 403 "), "{url}");
    }
    assert!(env.resolved_names().is_empty() && env.dialed_addresses().is_empty());
    assert_eq!(env.decisions().len(), 3);
}

#[tokio::test]
async fn misleading_urls_are_refused() {
    let env = create_env();
    let urls = [
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
    for url in urls {
        let reply = env.exchange(&get(url)).await;
        assert!(reply.starts_with("HTTP/1.1 40"), "{url}: {reply}");
    }
    assert!(
        env.resolved_names().is_empty() && env.dialed_addresses().is_empty(),
        "{:?}",
        env.resolved_names()
    );
    assert_eq!(env.decisions().len(), urls.len());
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused_even_if_another_is_public() {
    let env = ProxyTestEnv::new(&["*"]);
    let answers: &[&[&str]] = &[
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
    for (index, addresses) in answers.iter().enumerate() {
        env.add_name(&format!("n{index}.example"), &[addresses]);
        let reply = env.exchange(&get(&format!("http://n{index}.example/"))).await;
        assert!(
            reply.starts_with("HTTP/1.1 403 ") && reply.contains("not public"),
            "{addresses:?}: {reply}"
        );
    }
    assert!(env.dialed_addresses().is_empty());
    assert_eq!(env.decisions().len(), answers.len());
}

#[tokio::test]
async fn an_address_has_to_be_listed_and_public() {
    let mut env = ProxyTestEnv::new(&[
        "93.184.216.34",
        "127.0.0.1",
        "[::1]",
        "10.0.0.1",
        "[::ffff:10.0.0.1]",
    ]);
    env.add_server(PUBLIC, FakeServerBehavior::Responds(HELLO));
    assert_eq!(env.exchange(&get("http://93.184.216.34/")).await, HELLO);
    for url in [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://93.184.216.35/",
    ] {
        assert!(env.exchange(&get(url)).await.starts_with("HTTP/1.1 403 "), "{url}");
    }
    assert_eq!(env.dialed_addresses(), ["93.184.216.34:80"]);
    assert!(env.resolved_names().is_empty());
}

#[tokio::test]
async fn a_dns_answer_that_changes_after_the_check_has_no_effect() {
    let mut env = ProxyTestEnv::new(&["allowed.com"]);
    env.add_name("allowed.com", &[&[PUBLIC], &["127.0.0.1"]]);
    env.add_server(PUBLIC, FakeServerBehavior::Responds(HELLO));
    assert_eq!(env.exchange(&get("http://allowed.com/")).await, HELLO);
    assert_eq!(env.resolved_names(), ["allowed.com"], "the name is resolved once");
    assert_eq!(env.dialed_addresses(), [format!("{PUBLIC}:80")]);
    assert!(env.exchange(&get("http://allowed.com/")).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(env.dialed_addresses().len(), 1);
    assert_eq!(env.decisions(), ["+allowed.com:80", "-allowed.com:80"]);
}

#[tokio::test]
async fn without_the_token_no_host_is_considered() {
    let env = create_env();
    let good = authorization_header();
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
            let reply = env.exchange(format!("{line}\r\n{field}\r\n").as_bytes()).await;
            assert!(
                reply.starts_with("HTTP/1.1 407 ")
                    && reply.contains("\r\nProxy-Authenticate: Basic"),
                "{reply}"
            );
        }
    }
    assert!(
        env.resolved_names().is_empty()
            && env.dialed_addresses().is_empty()
            && env.decisions().is_empty()
    );
}

#[tokio::test]
async fn a_second_request_on_a_connection_is_not_forwarded() {
    let env = create_env();
    let second = "GET http://evil.io/ HTTP/1.1\r\nHost: evil.io\r\n\r\n";
    let token = authorization_header();
    for (head, body) in [
        (String::from("Connection: keep-alive\r\n"), ""),
        (String::from("Content-Length: 4\r\n"), "body"),
        (
            String::from("Transfer-Encoding: chunked\r\n"),
            "4;x=y\r\nbody\r\n0\r\nHost: evil.io\r\n\r\n",
        ),
    ] {
        let text = format!("POST http://allowed.com/ HTTP/1.1\r\n{token}{head}\r\n{body}{second}");
        assert_eq!(env.exchange(text.as_bytes()).await, HELLO);
    }
    let received = env.received();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|received| !received.contains("evil")), "{received:?}");
    assert!(
        received[1].ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nbody"),
        "{received:?}"
    );
    assert!(received[2].ends_with("\r\n\r\n4\r\nbody\r\n0\r\n\r\n"), "{received:?}");
    assert_eq!(env.decisions(), ["+allowed.com:80"; 3]);
}

#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let env = create_env();
    let token = authorization_header();
    let readable = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Transfer-Encoding: identity\r\n",
        "Host: evil.io\r\n",
        "Host: allowed.com\r\nHost: evil.io\r\n",
    ];
    for fields in readable {
        let text = format!("POST http://allowed.com/ HTTP/1.1\r\n{token}{fields}\r\nbody");
        let reply = env.exchange(text.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 400 "), "{fields:?}: {reply}");
    }
    assert_eq!(env.decisions(), ["-allowed.com:80"; 5]);
    // Heads that cannot be parsed are refused before the token is checked.
    for fields in [
        "X: y\r\n folded\r\n",
        "X: a\nHost: evil.io\r\n",
        "X: a\rb\r\n",
        "X: a\0b\r\n",
        "X : y\r\n",
    ] {
        let text = format!("POST http://allowed.com/ HTTP/1.1\r\n{token}{fields}\r\nbody");
        let reply = env.exchange(text.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 400 "), "{fields:?}: {reply}");
    }
    assert!(env.dialed_addresses().is_empty() && env.decisions().len() == 5);
}

#[tokio::test]
async fn invalid_chunks_end_the_connection() {
    let env = create_env();
    let token = authorization_header();
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
            "POST http://allowed.com/ HTTP/1.1\r\n{token}Transfer-Encoding: \
             chunked\r\n\r\n{body}GET http://evil.io/ HTTP/1.1\r\n\r\n"
        );
        assert_eq!(env.exchange(text.as_bytes()).await, "", "{body:?}");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(env.received().iter().all(|received| !received.contains("evil")));
}

#[tokio::test]
async fn an_unresolvable_listed_host_is_not_a_refusal() {
    let env = ProxyTestEnv::new(&["gone.example"]);
    let reply = env.exchange(&get("http://gone.example/")).await;
    assert!(reply.starts_with("HTTP/1.1 502 ") && reply.contains("was not found"), "{reply}");
    assert_eq!(env.decisions(), ["+gone.example:80"]);
}

#[tokio::test]
async fn a_late_body_is_forwarded_up_to_its_declared_length() {
    let mut env = create_env();
    env.add_server(PUBLIC, FakeServerBehavior::Echo);
    let mut stream = env.connect().await;
    let head = format!(
        "POST http://allowed.com/ HTTP/1.1\r\n{}Content-Length: 3\r\n\r\n",
        authorization_header()
    );
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
    env.proxy = None;
    assert_eq!(read_all(&mut stream).await, "", "nothing follows the body");
}
