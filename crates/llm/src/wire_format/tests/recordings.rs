//! Replay of streams recorded from real providers, if `shared` is next to the checkout.
#![allow(clippy::disallowed_methods, reason = "the tests read recordings outside the workspace")]

use super::recorded_request;
use super::stream_splits::{decode_at_every_split, decode_chunks, framing_variants};
use crate::ModelEvent;
use crate::provider_error::ProviderError;
use crate::wire_format::WireFormat;
use serde_json::Value;
use std::path::{Path, PathBuf};
use windlass_protocol::{Fault, FinishReason};

/// A recorded request and its response.
struct RecordedExchange {
    file: String,
    format: WireFormat,
    request: Value,
    status: u64,
    response_body: String,
}

fn list_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => list_files(&path, found),
            false => found.push(path),
        }
    }
}

/// Loads all exchanges in a format; none if the folders do not exist.
fn load_exchanges(format: WireFormat) -> Vec<RecordedExchange> {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let mut found = Vec::new();
    for folder in ["recordings", "recordings-more"] {
        list_files(&shared.join(folder), &mut found);
    }
    let mut exchanges = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let recording: Value = serde_json::from_str(&text).unwrap();
        for interaction in recording["interactions"].as_array().unwrap() {
            let (request, response) = (&interaction["request"], &interaction["response"]);
            let response_body = response["body"].as_str().unwrap_or_default().to_owned();
            if format_of(request["url"].as_str().unwrap(), &response_body) == Some(format) {
                let body = request["body"].as_str().unwrap();
                exchanges.push(RecordedExchange {
                    file: path.strip_prefix(&shared).unwrap().display().to_string(),
                    format,
                    request: serde_json::from_str(body).unwrap(),
                    status: response["status"].as_u64().unwrap(),
                    response_body,
                });
            }
        }
    }
    exchanges
}

/// Returns the format of an exchange, if it is one of ours. The URL of one recording belongs to
/// another format, so the response takes precedence.
fn format_of(url: &str, response_body: &str) -> Option<WireFormat> {
    match url {
        _ if response_body.starts_with("event: message_start") => Some(WireFormat::Anthropic),
        _ if url.contains("/chat/completions") || url == "openai-chat" => {
            Some(WireFormat::OpenaiChat)
        }
        _ if url.ends_with("responses") => Some(WireFormat::OpenaiResponses),
        _ if url.contains("/v1/messages") => Some(WireFormat::Anthropic),
        _ if url.contains("streamGenerateContent") => Some(WireFormat::Gemini),
        _ => None,
    }
}

/// The content of a response, extracted without our decoder.
#[derive(Debug, Default, PartialEq)]
struct TestResponseSummary {
    text: String,
    calls: Vec<(String, String)>,
    output: u64,
}

fn summarize_events(events: &[ModelEvent]) -> TestResponseSummary {
    let mut summary = TestResponseSummary::default();
    for event in events {
        match event {
            ModelEvent::Text(text) => summary.text.push_str(text),
            ModelEvent::Call { tool, arguments, .. } => {
                summary.calls.push((tool.clone(), canonical(arguments)));
            }
            ModelEvent::Ended { usage, .. } => summary.output = usage.output,
            ModelEvent::Reasoning(_)
            | ModelEvent::ProviderSignature(_)
            | ModelEvent::CallDelta { .. }
            | ModelEvent::Failed(_) => {}
        }
    }
    summary
}

fn canonical(arguments: &str) -> String {
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    serde_json::from_str::<Value>(arguments).unwrap().to_string()
}

fn summarize_stream(format: WireFormat, stream: &str) -> TestResponseSummary {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    let events: Vec<Value> =
        lines.filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    let mut summary = TestResponseSummary::default();
    let mut open_calls: Vec<(String, String)> = Vec::new();
    let str = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for event in &events {
        match format {
            WireFormat::OpenaiChat => {
                let delta = &event["choices"][0]["delta"];
                summary.text += &(str(&delta["content"]) + &str(&delta["refusal"]));
                for call in delta["tool_calls"].as_array().into_iter().flatten() {
                    if call["function"]["name"].is_string() {
                        open_calls.push((str(&call["function"]["name"]), String::new()));
                    }
                    let index = call["index"].as_u64().unwrap() as usize;
                    open_calls[index].1 += &str(&call["function"]["arguments"]);
                }
                let tokens = event["usage"]["completion_tokens"].as_u64();
                let groq = event["x_groq"]["usage"]["completion_tokens"].as_u64();
                summary.output = tokens.or(groq).unwrap_or(summary.output);
            }
            WireFormat::OpenaiResponses => {
                if event["type"] == "response.output_text.delta" {
                    summary.text += &str(&event["delta"]);
                }
                let response = &event["response"];
                for item in response["output"].as_array().into_iter().flatten() {
                    if item["type"] == "function_call" {
                        open_calls.push((str(&item["name"]), str(&item["arguments"])));
                    }
                }
                summary.output =
                    response["usage"]["output_tokens"].as_u64().unwrap_or(summary.output);
            }
            WireFormat::Anthropic => {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    let complete_input =
                        block["input"].as_object().filter(|input| !input.is_empty());
                    let complete_input = complete_input.map(|_| block["input"].to_string());
                    open_calls.push((str(&block["name"]), complete_input.unwrap_or_default()));
                }
                summary.text += &(str(&block["text"]) + &str(&event["delta"]["text"]));
                if event["delta"]["type"] == "input_json_delta"
                    && let Some(call) = open_calls.last_mut()
                    && !is_provider_tool_delta(&events, event)
                {
                    call.1 += &str(&event["delta"]["partial_json"]);
                }
                summary.output = event["usage"]["output_tokens"].as_u64().unwrap_or(summary.output);
            }
            WireFormat::Gemini => {
                let candidate = &event["candidates"][0];
                for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                    summary.text += &str(&part["text"]);
                    if part["functionCall"].is_object() {
                        let call = &part["functionCall"];
                        open_calls.push((str(&call["name"]), call["args"].to_string()));
                    }
                }
                let usage = &event["usageMetadata"];
                let count = |key: &str| usage[key].as_u64().unwrap_or_default();
                summary.output = count("candidatesTokenCount") + count("thoughtsTokenCount");
            }
        }
    }
    summary.calls = open_calls.into_iter().map(|(name, text)| (name, canonical(&text))).collect();
    summary
}

/// Returns true if a delta belongs to a block of a tool that is built into the provider.
fn is_provider_tool_delta(events: &[Value], delta: &Value) -> bool {
    let start =
        |event: &&Value| event["type"] == "content_block_start" && event["index"] == delta["index"];
    events.iter().find(start).is_some_and(|start| start["content_block"]["type"] != "tool_use")
}

/// Returns the first path where two requests differ.
fn first_difference(ours: &Value, theirs: &Value, location: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys());
            keys.into_iter().find_map(|key| {
                first_difference(&ours[key], &theirs[key], &format!("{location} {key}"))
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (one, other))| {
                first_difference(one, other, &format!("{location} {at}"))
            })
        }
        _ if ours == theirs => None,
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{location}: ours {}, theirs {}", short(ours), short(theirs)))
        }
    }
}

/// Replays all recordings of a format at every split, and compares our requests with theirs.
fn replay(format: WireFormat, min_recordings: usize) {
    let exchanges = load_exchanges(format);
    let (mut matched, mut skipped, mut differences) = (0, Vec::new(), Vec::new());
    for exchange in &exchanges {
        let RecordedExchange { file, request, status, response_body, .. } = exchange;
        assert_eq!(format, exchange.format);
        if *status == 200 {
            let text = response_body.replace("\r\n", "\n");
            let events = decode_at_every_split(format, text.as_bytes());
            let Some(ModelEvent::Ended { finish, .. }) = events.last() else {
                panic!("{file}: {events:?}");
            };
            let mut expected = summarize_stream(format, &text);
            if *finish == FinishReason::Length {
                expected.calls.clear();
            }
            assert_eq!(summarize_events(&events), expected, "{file}");
            for (variant, text) in framing_variants(&text) {
                assert_eq!(
                    decode_chunks(format, &[text.as_bytes()]),
                    events,
                    "{file} with {variant}"
                );
            }
        } else {
            let mut error = ProviderError::from_body(response_body);
            error.status = Some(*status as u16);
            let fault = error.into_fault();
            assert!(matches!(fault, Fault::Provider { status: Some(400), .. }), "{fault:?}");
        }
        match recorded_request::parse_request(format, request) {
            Ok(parsed) => {
                let ours = recorded_request::normalize(
                    format,
                    &recorded_request::write_body(format, &parsed),
                );
                let theirs = recorded_request::normalize(format, request);
                differences.extend(first_difference(&ours, &theirs, file));
                super::incremental_request_body::check_growing(
                    format,
                    &recorded_request::recording_quirks(format),
                    &parsed,
                );
                matched += 1;
            }
            Err(reason) => skipped.push(format!("{file}: {reason}")),
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    if !exchanges.is_empty() {
        assert!(exchanges.len() >= min_recordings, "{} recordings", exchanges.len());
        // Most recorded requests use only features that we use.
        assert!(matched * 5 >= exchanges.len() * 3, "{matched} matched; skipped: {skipped:#?}");
    }
}

#[test]
fn openai_chat_recordings_replay() {
    replay(WireFormat::OpenaiChat, 65);
}

#[test]
fn openai_responses_recordings_replay() {
    replay(WireFormat::OpenaiResponses, 150);
}

#[test]
fn anthropic_recordings_replay() {
    replay(WireFormat::Anthropic, 48);
}

#[test]
fn gemini_recordings_replay() {
    replay(WireFormat::Gemini, 5);
}
