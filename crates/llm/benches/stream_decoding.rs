//! Throughput of stream decoding: recorded bytes through the decoder of each format, compared with
//! serde_json alone over the same events. The recordings are in `shared`, next to the checkout;
//! without them nothing is measured.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and prints it"
)]

use bytes::Bytes;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;
use windlass_llm::wire_format::{ResponseDecoder, WireFormat};

/// The size of the chunks in which a stream arrives.
const CHUNK_BYTES: usize = 16 * 1024;

/// The number of measurements; the best time counts.
const ROUNDS: usize = 25;

fn list_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { list_files(&path, found) } else { found.push(path) }
    }
}

fn load_streams(format: WireFormat) -> Vec<Bytes> {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let mut found = Vec::new();
    for folder in ["recordings", "recordings-more"] {
        list_files(&shared.join(folder), &mut found);
    }
    let mut streams = Vec::new();
    for path in found {
        let recording: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for interaction in recording["interactions"].as_array().unwrap() {
            let url = interaction["request"]["url"].as_str().unwrap();
            let body = interaction["response"]["body"].as_str().unwrap_or_default();
            let is_match = match format {
                WireFormat::OpenaiChat => {
                    url.contains("chat") && !body.starts_with("event: message")
                }
                WireFormat::OpenaiResponses => url.ends_with("responses"),
                WireFormat::Anthropic => body.starts_with("event: message_start"),
                WireFormat::Gemini => url.contains("streamGenerateContent"),
            };
            if is_match && interaction["response"]["status"] == 200 {
                streams.push(Bytes::from(body.to_owned()));
            }
        }
    }
    streams
}

/// Returns the best throughput of several rounds, in MB/s.
fn best_throughput(bytes: usize, mut round: impl FnMut()) -> f64 {
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
    for (name, format) in WireFormat::NAMES {
        let streams = load_streams(*format);
        let total_bytes: usize = streams.iter().map(Bytes::len).sum();
        if total_bytes == 0 {
            continue;
        }
        let repeats = (40_000_000 / total_bytes).max(1);
        let step = best_throughput(total_bytes * repeats, || {
            for stream in (0..repeats).flat_map(|_| &streams) {
                let mut decoder = ResponseDecoder::without_quirks(*format);
                let mut rest = stream.clone();
                while !rest.is_empty() {
                    let chunk = rest.split_to(CHUNK_BYTES.min(rest.len()));
                    std::hint::black_box(decoder.decode(chunk));
                }
                std::hint::black_box(decoder.finish());
            }
        });
        // The baseline splits the same bytes into lines and parses the JSON of every event.
        let json_only = best_throughput(total_bytes * repeats, || {
            for stream in (0..repeats).flat_map(|_| &streams) {
                for line in std::str::from_utf8(stream).unwrap().lines() {
                    if let Some(data) = line.strip_prefix("data:") {
                        std::hint::black_box(serde_json::from_str::<Value>(data.trim()).ok());
                    }
                }
            }
        });
        let (count, size) = (streams.len(), total_bytes as f64 / 1e6);
        println!("{name:<17} {count:>8} {size:>8.2} {step:>11.0} {json_only:>13.0}");
    }
}
