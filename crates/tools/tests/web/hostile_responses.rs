//! Tests with hostile responses. Each call ends in time, uses little memory and fails with a
//! message.

use crate::support::{WebFetchTestEnv, assert_completed, assert_failed, peak_memory};
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_testkit::mock_http_server::{ResponsePart, html, reply};

fn head(text: &str) -> ResponsePart {
    ResponsePart::Bytes(text.as_bytes().to_vec())
}

pub fn a_compression_bomb_uses_little_memory() {
    // 128 members of 8 MB each: 1 GB.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&vec![b' '; 8 << 20]).unwrap();
    let bomb = encoder.finish().unwrap().repeat(128);
    assert!(bomb.len() < 8 << 20, "{}", bomb.len());
    let env = WebFetchTestEnv::new(move |_| {
        reply("200 OK", &["content-type: text/plain", "content-encoding: gzip"], &bomb)
    });
    let before = peak_memory();
    assert_completed(&env.get("/"), "only the beginning");
    let growth = peak_memory().saturating_sub(before);
    assert!(growth < 48 << 20, "{} MB", growth >> 20);
}

pub fn an_endless_body_is_truncated() {
    for kind in ["text/plain", "text/html", "application/octet-stream"] {
        let env = WebFetchTestEnv::new(move |_| {
            let head = head(&format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n"));
            vec![head, ResponsePart::Forever(vec![b'x'; 64 << 10], Duration::ZERO)]
        });
        let outcome = env.get("/");
        match kind {
            "application/octet-stream" => assert_failed(&outcome, "the limit is 5 MB"),
            _ => assert_completed(&outcome, "only the beginning"),
        }
    }
}

pub fn a_slow_body_is_stopped_by_the_timeout() {
    let env = WebFetchTestEnv::new(|_| {
        let drip = ResponsePart::Forever(b"x".to_vec(), Duration::from_millis(100));
        vec![head("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"), drip]
    });
    let started = Instant::now();
    assert_failed(
        &env.fetch(json!({"url": env.url("a", "/"), "timeout": 2})),
        "the request timed out",
    );
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(4)),
        "{:?}",
        started.elapsed()
    );
}

pub fn a_silent_server_is_stopped_by_the_timeout() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/head" => vec![ResponsePart::Silence],
        _ => vec![head("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), ResponsePart::Silence],
    });
    for path in ["/head", "/body"] {
        let started = Instant::now();
        assert_failed(
            &env.fetch(json!({"url": env.url("a", path), "timeout": 1})),
            "the request timed out",
        );
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
            "{:?}",
            started.elapsed()
        );
    }
}

pub fn endless_headers_are_refused() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/endless" => vec![
            head("HTTP/1.1 200 OK\r\n"),
            ResponsePart::Forever(
                format!("x: {}\r\n", "y".repeat(1000)).into_bytes(),
                Duration::ZERO,
            ),
        ],
        "/line" => {
            vec![
                head("HTTP/1.1 200 OK\r\nx: "),
                ResponsePart::Forever(vec![b'y'; 4096], Duration::ZERO),
            ]
        }
        _ => reply("200 OK", &[&format!("x: {}", "y".repeat(1 << 20))], "hello"),
    });
    let before = peak_memory();
    for path in ["/endless", "/line", "/long"] {
        let started = Instant::now();
        assert_failed(&env.fetch(json!({"url": env.url("a", path), "timeout": 5})), "");
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(7)),
            "{path}: {:?}",
            started.elapsed()
        );
    }
    assert!(peak_memory() - before < 48 << 20);
}

pub fn the_beginning_of_a_huge_page_is_shown() {
    let env =
        WebFetchTestEnv::new(|_| html(format!("<h1>Long</h1>{}", "<p>word ".repeat(1_250_000))));
    let outcome = env.fetch(json!({"url": env.url("a", "/"), "timeout": 60}));
    assert_completed(&outcome, "# Long");
}

pub fn deeply_nested_pages_are_converted_quickly() {
    for depth in [5_000, 100_000] {
        let env = WebFetchTestEnv::new(move |_| {
            html(format!("<p>top{}bottom", "<div><b>".repeat(depth)))
        });
        let started = Instant::now();
        let outcome = env.get("/");
        assert_completed(&outcome, "top");
        assert_completed(&outcome, "bottom");
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
            "{depth}: {:?}",
            started.elapsed()
        );
    }
}

pub fn invalid_responses_are_reported() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/noise" => vec![head("\u{0}\u{1}hello\r\n\r\n")],
        "/nothing" => Vec::new(),
        "/br" => reply("200 OK", &["content-encoding: br"], "xx"),
        "/notgzip" => reply("200 OK", &["content-encoding: gzip"], "<p>plain"),
        "/two" => {
            vec![head("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nhello")]
        }
        _ => vec![head("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")],
    });
    for (path, expected) in [
        ("/noise", "could not be reached"),
        ("/nothing", "could not be reached"),
        ("/br", "an unsupported Content-Encoding"),
        ("/notgzip", "does not match its Content-Encoding"),
        ("/two", ""),
        ("/chunks", "was interrupted"),
    ] {
        assert_failed(&env.get(path), expected);
    }
}

pub fn a_canceled_call_ends_at_once() {
    let env = WebFetchTestEnv::new(|_| vec![ResponsePart::Silence]);
    let cancel = CancellationToken::new();
    let cancel_handle = cancel.clone();
    let cancel_thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel_handle.cancel();
    });
    let started = Instant::now();
    let outcome = env.fetch_with_cancel(json!({"url": env.url("a", "/")}), cancel);
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
        "{:?} {outcome:?}",
        started.elapsed()
    );
    cancel_thread.join().unwrap();
}
