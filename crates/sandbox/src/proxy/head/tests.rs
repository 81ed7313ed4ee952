//! Heads that are clear, heads that could be read in two ways, and any bytes at all.

use super::{Body, Head, Wish, Wrong, find_end};
use crate::proxy::hosts::Host;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn parse(text: &str) -> Result<Head, &'static str> {
    match find_end(text.as_bytes(), 0)? {
        Some(end) => Head::parse(&text.as_bytes()[..end]),
        None => Err("incomplete"),
    }
}

fn wish(text: &str) -> Result<Wish, Wrong> {
    parse(text).unwrap().wish().map_err(|flaw| flaw.wrong)
}

fn rewritten(text: &str) -> String {
    let head = parse(text).unwrap();
    match head.wish().unwrap() {
        Wish::Request { host, port, path, body } => head.rewrite(&host, port, &path, body),
        Wish::Tunnel { .. } => panic!("a tunnel"),
    }
}

#[test]
fn lines_that_end_wrongly_are_refused() {
    for text in [
        "GET http://a.b/ HTTP/1.1\nHost: a.b\n\n",
        "GET http://a.b/ HTTP/1.1\r\nHost: a.b\n\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nX: y\rHost: evil.io\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nX: y\r\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\n X: folded\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nX: y\r\n\tfolded\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nX : y\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\n: y\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nno colon\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nX: a\0b\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nX: a\x1bb\r\n\r\n",
        "GET  http://a.b/ HTTP/1.1\r\n\r\n",
        "GET http://a.b/ x HTTP/1.1\r\n\r\n",
        "GET http://a.b/\tHTTP/1.1\r\n\r\n",
        "GET http://a.b/ö HTTP/1.1\r\n\r\n",
        "GET http://a.b/ HTTP/2.0\r\n\r\n",
        "GET http://a.b/ HTTP/1.1 \r\n\r\n",
        "GET http://a.b/\r\n\r\n",
        "G@T http://a.b/ HTTP/1.1\r\n\r\n",
        "\r\nGET http://a.b/ HTTP/1.1\r\n\r\n",
        " GET http://a.b/ HTTP/1.1\r\n\r\n",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
    let many = "X: y\r\n".repeat(200);
    assert!(parse(&format!("GET http://a.b/ HTTP/1.1\r\n{many}\r\n")).is_err());
}

#[test]
fn a_body_with_two_ends_is_refused() {
    for fields in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3\r\ncontent-length: 3\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: -3\r\n",
        "Content-Length: 0x3\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \x20\r\n",
    ] {
        let text = format!("POST http://a.b/ HTTP/1.1\r\n{fields}\r\n");
        assert!(matches!(wish(&text), Err(Wrong::Request(_))), "{fields:?}");
        let text = format!("CONNECT a.b:443 HTTP/1.1\r\n{fields}\r\n");
        assert!(matches!(wish(&text), Err(Wrong::Request(_))), "{fields:?}");
    }
    let old = "POST http://a.b/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(wish(old).is_err(), "the old version knows no chunks");
    assert!(wish("CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n").is_err());
    assert!(wish("CONNECT a.b:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
}

#[test]
fn the_host_field_cannot_contradict_the_address() {
    let with = |host: &str| wish(&format!("GET http://a.b/ HTTP/1.1\r\n{host}\r\n"));
    for host in ["Host: a.b\r\n", "Host: A.B.\r\n", "host: a.b:80\r\n", ""] {
        assert!(with(host).is_ok(), "{host:?}");
    }
    for host in [
        "Host: evil.io\r\n",
        "Host: a.b:81\r\n",
        "Host:\r\n",
        "Host: a.b\r\nHost: a.b\r\n",
        "Host: a.b, evil.io\r\n",
        "Host: evil.io\r\nHost: a.b\r\n",
        "Host: x@a.b\r\n",
    ] {
        assert!(matches!(with(host), Err(Wrong::Request(_))), "{host:?}");
    }
}

#[test]
fn a_target_names_one_host_and_nothing_else() {
    for target in [
        "http://user@a.b/",
        "http://user:a.b@evil.io/",
        "http://a.b\\@evil.io/",
        "http://evil.io#.a.b/",
        "http://evil.io#@a.b/",
        "http://a.b/#evil",
        "http:///",
        "http://",
        "http://a.b:/",
        "http://a.b:0/",
        "http://a.b:99999/",
        "http://a.b:80:80/",
        "http://a..b/",
        "http://%61.b/",
        "http://::1/",
        "http://[::1/",
        "http://a.b;evil.io/",
        "https://a.b/",
        "ftp://a.b/",
        "file:///etc/passwd",
        "/",
        "*",
        "a.b:80",
        "http:/a.b/",
        "http:a.b",
    ] {
        assert!(wish(&format!("GET {target} HTTP/1.1\r\n\r\n")).is_err(), "{target}");
    }
    for target in [
        "a.b",
        "a.b:",
        "a.b:x",
        "http://a.b/",
        "a.b:443/",
        "u@a.b:443",
        "a.b:443#x",
        "::1:443",
        "[::1]x:443",
        "a.b:0",
        "/",
    ] {
        assert!(wish(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).is_err(), "{target}");
    }
    let Ok(Wish::Request { host, port, path, body }) =
        wish("GET HTTP://A.b:8080?q=http://evil.io/ HTTP/1.1\r\n\r\n")
    else {
        panic!()
    };
    assert_eq!(
        (host, port, path.as_str(), body),
        (Host::Name("a.b".into()), 8080, "/?q=http://evil.io/", Body::Length(0))
    );
}

#[test]
fn what_is_sent_on_is_written_anew() {
    let sent = rewritten(
        "POST http://A.b:8080/x?y HTTP/1.1\r\nHost: a.b:8080\r\nUser-Agent: t\r\nProxy-Authorization: Basic c2VjcmV0\r\n\
         Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Drop, host\r\nX-Drop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n\
         Upgrade: h2c\r\nContent-Length: 007\r\nX-Keep: \t a\tb \r\n\r\n",
    );
    assert_eq!(
        sent,
        "POST /x?y HTTP/1.1\r\nHost: a.b:8080\r\nUser-Agent: t\r\nX-Keep: a\tb\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"
    );
    assert!(
        rewritten("OPTIONS http://a.b HTTP/1.1\r\n\r\n")
            .starts_with("OPTIONS * HTTP/1.1\r\nHost: a.b\r\n")
    );
    assert!(rewritten("GET http://a.b HTTP/1.0\r\n\r\n").starts_with("GET / HTTP/1.0\r\n"));
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\r\n".to_owned()),
        Just("\r\n\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("GET http://a.b/ HTTP/1.1\r\n".to_owned()),
        Just("CONNECT a.b:1 HTTP/1.1\r\n".to_owned()),
        Just("Content-Length: 1\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Host: a.b\r\n".to_owned()),
        "[ -~]{0,9}",
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_and_what_is_sent_on_is_one_clear_head(pieces in proptest::collection::vec(piece(), 0..12)) {
        let text = pieces.concat();
        let Ok(head) = parse(&text) else { return Ok(()) };
        let Ok(Wish::Request { host, port, path, body }) = head.wish() else { return Ok(()) };
        let sent = head.rewrite(&host, port, &path, body);
        prop_assert_eq!(find_end(sent.as_bytes(), 0), Ok(Some(sent.len())));
        let again = Head::parse(sent.as_bytes()).unwrap();
        prop_assert_eq!(again.all("host").count(), 1);
        prop_assert_eq!(again.body(), Ok(body));
        prop_assert!(again.all("connection").eq(["close"]));
    }

    #[test]
    fn the_end_is_found_however_the_bytes_arrive(pieces in proptest::collection::vec(piece(), 0..12), cut in 1_usize..9) {
        let text = pieces.concat();
        let whole = find_end(text.as_bytes(), 0);
        let (mut seen, mut found) = (0, Ok(None));
        while seen < text.len() && found == Ok(None) {
            let now = (seen + cut).min(text.len());
            found = find_end(&text.as_bytes()[..now], seen);
            seen = now;
        }
        prop_assert_eq!(found, whole);
    }
}
