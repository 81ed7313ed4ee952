//! Telemetry: traces and metrics for an OpenTelemetry collector, and the log file.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use support::{TestEnv, decode_output};

/// Starts a collector that accepts so many reports. Returns its URL, and path, headers and body of
/// each report.
fn start_collector(reports: usize) -> (String, Receiver<(String, String, Value)>) {
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
    let env = TestEnv::new(READS, "");
    let (address, reports) = start_collector(2);
    let mut run = env.windlass(&["run", "what is in README.md?"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    run.env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue%20sky");
    run.env("OTEL_SERVICE_NAME", "trial");
    let (code, _, stderr) = decode_output(&run.output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    let (path, headers, traces) = reports.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(path, "/v1/traces");
    assert!(headers.contains("x-team: blue sky"), "{headers}");
    let resource_spans = &traces["resourceSpans"][0];
    assert_eq!(resource_spans["resource"]["attributes"][0]["value"]["stringValue"], "trial");
    let spans = resource_spans["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chat m", "execute_tool read", "chat m", "invoke_agent build"]);
    let text = traces.to_string();
    assert!(!text.contains("README") && !text.contains("small project"), "{text}");
    let (path, _, metrics) = reports.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(path, "/v1/metrics");
    assert!(metrics.to_string().contains("gen_ai.client.token.usage"));
}

#[test]
fn an_unreachable_collector_does_not_fail_a_run() {
    let env = TestEnv::new(READS, "");
    let mut run = env.windlass(&["run", "what is in README.md?"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let (code, answer, stderr) = decode_output(&run.output().unwrap());
    assert_eq!((code, answer.as_str()), (0, "It is a small project.\n"), "{stderr}");
    assert!(stderr.contains("cannot send telemetry to the collector"), "{stderr}");
}

#[test]
fn a_log_file_is_written_on_request_and_contains_no_key() {
    let env = TestEnv::new(READS, "");
    let log = env.data().join("log/windlass.log");
    let (code, _, stderr) = env.run(&["run", "what is in README.md?"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(!log.exists(), "a log file was written without a request");
    let mut run = env.windlass(&["run", "and sk-abcdefghijklmnopqrstuvwx?"]);
    run.env("WINDLASS_LOG", "trace");
    let (_, _, stderr) = decode_output(&run.output().unwrap());
    let log_text = std::fs::read_to_string(&log).unwrap();
    for text in [&log_text, &stderr] {
        assert!(text.lines().any(|line| line.contains("TRACE") || line.contains("DEBUG")));
        assert!(!text.contains("sk-very-secret") && !text.contains("sk-abcdefghijklm"), "{text}");
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&log.metadata().unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "others can read the log file");
    }
}
