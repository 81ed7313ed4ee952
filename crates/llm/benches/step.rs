//! How fast streams are read: recorded bytes through each format's decoder, beside serde_json alone
//! over the same events. The recordings are read from beside the checkout; without them there is
//! nothing to measure.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and tells"
)]

use bytes::Bytes;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;
use windlass_llm::wire::{Decoder, Format};

/// How much of a stream a connection hands over at a time.
const PIECE: usize = 16 * 1024;

/// How many times everything is read; the best time counts.
const ROUNDS: usize = 25;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn streams(format: Format) -> Vec<Bytes> {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let mut found = Vec::new();
    for folder in ["recordings", "recordings-more"] {
        files(&shared.join(folder), &mut found);
    }
    let mut streams = Vec::new();
    for path in found {
        let recording: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for interaction in recording["interactions"].as_array().unwrap() {
            let url = interaction["request"]["url"].as_str().unwrap();
            let body = interaction["response"]["body"].as_str().unwrap_or_default();
            let is = match format {
                Format::OpenaiChat => url.contains("chat") && !body.starts_with("event: message"),
                Format::OpenaiResponses => url.ends_with("responses"),
                Format::Anthropic => body.starts_with("event: message_start"),
                Format::Gemini => url.contains("streamGenerateContent"),
            };
            if is && interaction["response"]["status"] == 200 {
                streams.push(Bytes::from(body.to_owned()));
            }
        }
    }
    streams
}

/// The best speed of several rounds, in MB/s.
fn speed(bytes: usize, mut round: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round();
        best = best.min(start.elapsed().as_secs_f64());
    }
    bytes as f64 / 1e6 / best
}

fn main() {
    println!(
        "{:<17} {:>8} {:>8} {:>11} {:>13}",
        "format", "streams", "MB", "step MB/s", "serde_json"
    );
    for (name, format) in Format::NAMES {
        let streams = streams(*format);
        let once: usize = streams.iter().map(Bytes::len).sum();
        if once == 0 {
            continue;
        }
        let times = (40_000_000 / once).max(1);
        let step = speed(once * times, || {
            for stream in (0..times).flat_map(|_| &streams) {
                let mut decoder = Decoder::plain(*format);
                let mut rest = stream.clone();
                while !rest.is_empty() {
                    let piece = rest.split_to(PIECE.min(rest.len()));
                    std::hint::black_box(decoder.step(piece));
                }
                std::hint::black_box(decoder.end());
            }
        });
        // The same bytes: every line is looked at, every event's JSON is parsed.
        let alone = speed(once * times, || {
            for stream in (0..times).flat_map(|_| &streams) {
                for line in std::str::from_utf8(stream).unwrap().lines() {
                    if let Some(data) = line.strip_prefix("data:") {
                        std::hint::black_box(serde_json::from_str::<Value>(data.trim()).ok());
                    }
                }
            }
        });
        let (count, size) = (streams.len(), once as f64 / 1e6);
        println!("{name:<17} {count:>8} {size:>8.2} {step:>11.0} {alone:>13.0}");
    }
}
