//! Tests of request heads: valid, ambiguous and arbitrary ones.

use super::{
    BodyFraming, ProxyRequest, ProxyRequestProblem, RequestHead, find_head_end, invariants_hold,
};
use crate::network::proxy::host_allowlist::Host;
use crate::network::proxy::upstream::HttpRequestForm;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn parse(text: &str) -> Result<RequestHead, &'static str> {
    match find_head_end(text.as_bytes(), 0)? {
        Some(end) => RequestHead::parse(&text.as_bytes()[..end]),
        None => Err("incomplete"),
    }
}

fn parse_request(text: &str) -> Result<ProxyRequest, ProxyRequestProblem> {
    parse(text).unwrap().parse_request().map_err(|problem| problem.problem)
}

fn rewrite(text: &str) -> String {
    let head = parse(text).unwrap();
    match head.parse_request().unwrap() {
        ProxyRequest::Forward { host, port, path, body } => {
            head.rewrite(&host, port, &path, body, &HttpRequestForm::Origin)
        }
        ProxyRequest::Tunnel { .. } => panic!("a tunnel"),
    }
}

#[test]
fn malformed_heads_are_refused() {
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
fn ambiguous_body_lengths_are_refused() {
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
        assert!(matches!(parse_request(&text), Err(ProxyRequestProblem::Request(_))), "{fields:?}");
        let text = format!("CONNECT a.b:443 HTTP/1.1\r\n{fields}\r\n");
        assert!(matches!(parse_request(&text), Err(ProxyRequestProblem::Request(_))), "{fields:?}");
    }
    let old = "POST http://a.b/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(parse_request(old).is_err(), "HTTP/1.0 has no chunked encoding");
    assert!(parse_request("CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n").is_err());
    assert!(
        parse_request("CONNECT a.b:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").is_err()
    );
}

#[test]
fn the_host_field_cannot_contradict_the_url() {
    let with = |host: &str| parse_request(&format!("GET http://a.b/ HTTP/1.1\r\n{host}\r\n"));
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
        assert!(matches!(with(host), Err(ProxyRequestProblem::Request(_))), "{host:?}");
    }
}

#[test]
fn a_target_must_name_exactly_one_host() {
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
        assert!(parse_request(&format!("GET {target} HTTP/1.1\r\n\r\n")).is_err(), "{target}");
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
        assert!(parse_request(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).is_err(), "{target}");
    }
    let Ok(ProxyRequest::Forward { host, port, path, body }) =
        parse_request("GET HTTP://A.b:8080?q=http://evil.io/ HTTP/1.1\r\n\r\n")
    else {
        panic!()
    };
    assert_eq!(
        (host, port, path.as_str(), body),
        (Host::Name("a.b".into()), 8080, "/?q=http://evil.io/", BodyFraming::Length(0))
    );
}

#[test]
fn forwarded_heads_are_rewritten() {
    let sent = rewrite(
        "POST http://A.b:8080/x?y HTTP/1.1\r\nHost: a.b:8080\r\nUser-Agent: t\r\n\
         Proxy-Authorization: Basic c2VjcmV0\r\n\
         Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Drop, host\r\nX-Drop: 1\r\n\
         Keep-Alive: 5\r\nTE: trailers\r\n\
         Upgrade: h2c\r\nContent-Length: 007\r\nX-Keep: \t a\tb \r\n\r\n",
    );
    assert_eq!(
        sent,
        "POST /x?y HTTP/1.1\r\nHost: a.b:8080\r\nUser-Agent: t\r\nX-Keep: a\tb\r\n\
         Content-Length: 7\r\nConnection: close\r\n\r\n"
    );
    assert!(
        rewrite("OPTIONS http://a.b HTTP/1.1\r\n\r\n")
            .starts_with("OPTIONS * HTTP/1.1\r\nHost: a.b\r\n")
    );
    assert!(rewrite("GET http://a.b HTTP/1.0\r\n\r\n").starts_with("GET / HTTP/1.0\r\n"));
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
    fn any_bytes_are_refused_or_forwarded_as_one_unambiguous_head(
        pieces in proptest::collection::vec(piece(), 0..12),
    ) {
        let text = pieces.concat();
        prop_assert!(invariants_hold(text.as_bytes()), "{:?}", text);
    }

    #[test]
    fn the_head_end_is_found_however_the_bytes_arrive(
        pieces in proptest::collection::vec(piece(), 0..12),
        cut in 1_usize..9,
    ) {
        let text = pieces.concat();
        let whole = find_head_end(text.as_bytes(), 0);
        let (mut seen, mut found) = (0, Ok(None));
        while seen < text.len() && found == Ok(None) {
            let now = (seen + cut).min(text.len());
            found = find_head_end(&text.as_bytes()[..now], seen);
            seen = now;
        }
        prop_assert_eq!(found, whole);
    }
}
