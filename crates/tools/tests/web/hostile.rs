//! Answers that mean harm. Each ends in time, in little memory, and in a sentence.

use crate::yard::{Yard, done, failed, memory};
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_testkit::site::{Piece, html, reply};

fn head(text: &str) -> Piece {
    Piece::Bytes(text.as_bytes().to_vec())
}

pub fn a_bomb_costs_little() {
    // A hundred and more of them, each of eight megabytes: a gigabyte.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&vec![b' '; 8 << 20]).unwrap();
    let bomb = packed.finish().unwrap().repeat(128);
    assert!(bomb.len() < 8 << 20, "{}", bomb.len());
    let yard = Yard::new(move |_| {
        reply("200 OK", &["content-type: text/plain", "content-encoding: gzip"], &bomb)
    });
    let before = memory();
    done(&yard.get("/"), "only its beginning");
    let grown = memory().saturating_sub(before);
    assert!(grown < 48 << 20, "{} MB", grown >> 20);
}

pub fn an_endless_body_is_cut() {
    for kind in ["text/plain", "text/html", "application/octet-stream"] {
        let yard = Yard::new(move |_| {
            let head = head(&format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n"));
            vec![head, Piece::Forever(vec![b'x'; 64 << 10], Duration::ZERO)]
        });
        let outcome = yard.get("/");
        match kind {
            "application/octet-stream" => failed(&outcome, "at most 5 MB are fetched"),
            _ => done(&outcome, "only its beginning"),
        }
    }
}

pub fn a_drip_is_ended_by_the_deadline() {
    let yard = Yard::new(|_| {
        let drip = Piece::Forever(b"x".to_vec(), Duration::from_millis(100));
        vec![head("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"), drip]
    });
    let begun = Instant::now();
    failed(&yard.fetch(json!({"url": yard.url("a", "/"), "timeout": 2})), "it took too long");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

pub fn silence_is_ended() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/head" => vec![Piece::Silence],
        _ => vec![head("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), Piece::Silence],
    });
    for path in ["/head", "/body"] {
        let begun = Instant::now();
        failed(&yard.fetch(json!({"url": yard.url("a", path), "timeout": 1})), "it took too long");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}

pub fn heads_without_end_are_ended() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/endless" => vec![
            head("HTTP/1.1 200 OK\r\n"),
            Piece::Forever(format!("x: {}\r\n", "y".repeat(1000)).into_bytes(), Duration::ZERO),
        ],
        "/line" => {
            vec![head("HTTP/1.1 200 OK\r\nx: "), Piece::Forever(vec![b'y'; 4096], Duration::ZERO)]
        }
        _ => reply("200 OK", &[&format!("x: {}", "y".repeat(1 << 20))], "hello"),
    });
    let before = memory();
    for path in ["/endless", "/line", "/long"] {
        let begun = Instant::now();
        failed(&yard.fetch(json!({"url": yard.url("a", path), "timeout": 5})), "");
        assert!(begun.elapsed() < Duration::from_secs(7), "{path}: {:?}", begun.elapsed());
    }
    assert!(memory() - before < 48 << 20);
}

pub fn a_huge_page_is_cut_and_said_to_be() {
    let yard = Yard::new(|_| html(format!("<h1>Long</h1>{}", "<p>word ".repeat(1_250_000))));
    let outcome = yard.fetch(json!({"url": yard.url("a", "/"), "timeout": 60}));
    done(&outcome, "# Long");
}

pub fn deep_pages_are_read_in_no_time() {
    for depth in [5_000, 100_000] {
        let yard = Yard::new(move |_| html(format!("<p>top{}bottom", "<div><b>".repeat(depth))));
        let begun = Instant::now();
        let outcome = yard.get("/");
        done(&outcome, "top");
        done(&outcome, "bottom");
        assert!(begun.elapsed() < Duration::from_secs(5), "{depth}: {:?}", begun.elapsed());
    }
}

pub fn answers_that_are_none_are_told() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/noise" => vec![head("\u{0}\u{1}hello\r\n\r\n")],
        "/nothing" => Vec::new(),
        "/br" => reply("200 OK", &["content-encoding: br"], "xx"),
        "/notgzip" => reply("200 OK", &["content-encoding: gzip"], "<p>plain"),
        "/two" => {
            vec![head("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nhello")]
        }
        _ => vec![head("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")],
    });
    for (path, words) in [
        ("/noise", "could not be reached"),
        ("/nothing", "could not be reached"),
        ("/br", "an encoding that nobody asked for"),
        ("/notgzip", "not packed as it says"),
        ("/two", ""),
        ("/chunks", "broke off"),
    ] {
        failed(&yard.get(path), words);
    }
}

pub fn a_call_that_is_stopped_ends_at_once() {
    let yard = Yard::new(|_| vec![Piece::Silence]);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.cancel();
    });
    let begun = Instant::now();
    let outcome = yard.fetch_until(json!({"url": yard.url("a", "/")}), cancel);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?} {outcome:?}", begun.elapsed());
    stopping.join().unwrap();
}
