//! A run as a collector and a log file tell it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use yard::{Yard, told};

/// Takes in reports: address, headers, body. It serves so many, then it is gone.
fn collector(reports: usize) -> (String, Receiver<(String, String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut served = 0;
        while served < reports {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut read = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut headers, mut length) = (String::new(), String::new(), 0);
            read.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                read.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                headers.push_str(&line.to_ascii_lowercase());
            }
            let mut body = vec![0; length];
            read.read_exact(&mut body).unwrap();
            let path = first.split(' ').nth(1).unwrap().to_owned();
            let _ = sender.send((path, headers, serde_json::from_slice(&body).unwrap()));
            let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).unwrap();
            served += 1;
        }
    });
    (address, receiver)
}

const READS: &[&str] = &["call read {\"filePath\": \"README.md\"}", "say It is a small project."];

#[test]
fn a_collector_receives_the_trace_of_a_run() {
    let yard = Yard::new(READS, "");
    let (address, reports) = collector(2);
    let mut run = yard.windlass(&["run", "what is in README.md?"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    run.env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue%20sky");
    run.env("OTEL_SERVICE_NAME", "trial");
    let (code, _, happened) = told(&run.output().unwrap());
    assert_eq!(code, 0, "{happened}");
    let (path, headers, traces) = reports.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(path, "/v1/traces");
    assert!(headers.contains("x-team: blue sky"), "{headers}");
    let told = &traces["resourceSpans"][0];
    assert_eq!(told["resource"]["attributes"][0]["value"]["stringValue"], "trial");
    let spans = told["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chat m", "execute_tool read", "chat m", "invoke_agent build"]);
    let text = traces.to_string();
    assert!(!text.contains("README") && !text.contains("small project"), "{text}");
    let (path, _, metrics) = reports.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(path, "/v1/metrics");
    assert!(metrics.to_string().contains("gen_ai.client.token.usage"));
}

#[test]
fn a_collector_that_is_not_there_does_not_spoil_a_run() {
    let yard = Yard::new(READS, "");
    let mut run = yard.windlass(&["run", "what is in README.md?"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let (code, answer, happened) = told(&run.output().unwrap());
    assert_eq!((code, answer.as_str()), (0, "It is a small project.\n"), "{happened}");
    assert!(happened.contains("the collector did not take a report"), "{happened}");
}

#[test]
fn a_log_is_kept_when_it_is_asked_for_and_holds_no_key() {
    let yard = Yard::new(READS, "");
    let log = yard.data().join("log/windlass.log");
    let (code, _, happened) = yard.run(&["run", "what is in README.md?"]);
    assert_eq!(code, 0, "{happened}");
    assert!(!log.exists(), "nobody asked for it");
    let mut run = yard.windlass(&["run", "and sk-abcdefghijklmnopqrstuvwx?"]);
    run.env("WINDLASS_LOG", "trace");
    let (_, _, happened) = told(&run.output().unwrap());
    let kept = std::fs::read_to_string(&log).unwrap();
    for text in [&kept, &happened] {
        assert!(text.lines().any(|line| line.contains("TRACE") || line.contains("DEBUG")));
        assert!(!text.contains("sk-very-secret") && !text.contains("sk-abcdefghijklm"), "{text}");
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&log.metadata().unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "others can read it");
    }
}
