//! Streams recorded from real providers, where folders of them stand beside the checkout.
#![allow(clippy::disallowed_methods, reason = "the tests read recordings from outside")]

use super::lift;
use super::torment::{dressed, read, torment};
use crate::ModelEvent;
use crate::trouble::Complaint;
use crate::wire::Format;
use serde_json::Value;
use std::path::{Path, PathBuf};
use windlass_protocol::{Fault, Finish};

/// One request and its answer.
struct Exchange {
    file: String,
    format: Format,
    request: Value,
    status: u64,
    answer: String,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// All exchanges in a format; none where the folders are not there.
fn exchanges(format: Format) -> Vec<Exchange> {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let mut found = Vec::new();
    for folder in ["recordings", "recordings-more"] {
        files(&shared.join(folder), &mut found);
    }
    let mut exchanges = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let recording: Value = serde_json::from_str(&text).unwrap();
        for interaction in recording["interactions"].as_array().unwrap() {
            let (request, response) = (&interaction["request"], &interaction["response"]);
            let answer = response["body"].as_str().unwrap_or_default().to_owned();
            if format_of(request["url"].as_str().unwrap(), &answer) == Some(format) {
                let body = request["body"].as_str().unwrap();
                exchanges.push(Exchange {
                    file: path.strip_prefix(&shared).unwrap().display().to_string(),
                    format,
                    request: serde_json::from_str(body).unwrap(),
                    status: response["status"].as_u64().unwrap(),
                    answer,
                });
            }
        }
    }
    exchanges
}

/// The format of an exchange, if it is one of ours. One recording is filed under another format
/// than it is in, so the answer has the last word.
fn format_of(url: &str, answer: &str) -> Option<Format> {
    match url {
        _ if answer.starts_with("event: message_start") => Some(Format::Anthropic),
        _ if url.contains("/chat/completions") || url == "openai-chat" => Some(Format::OpenaiChat),
        _ if url.ends_with("responses") => Some(Format::OpenaiResponses),
        _ if url.contains("/v1/messages") => Some(Format::Anthropic),
        _ if url.contains("streamGenerateContent") => Some(Format::Gemini),
        _ => None,
    }
}

/// What an answer says, read without our reader.
#[derive(Debug, Default, PartialEq)]
struct Gist {
    text: String,
    calls: Vec<(String, String)>,
    output: u64,
}

fn gist_of_events(events: &[ModelEvent]) -> Gist {
    let mut gist = Gist::default();
    for event in events {
        match event {
            ModelEvent::Text(text) => gist.text.push_str(text),
            ModelEvent::Call { tool, arguments, .. } => {
                gist.calls.push((tool.clone(), canonical(arguments)));
            }
            ModelEvent::Ended { usage, .. } => gist.output = usage.output,
            ModelEvent::Reasoning(_) | ModelEvent::Sealed(_) | ModelEvent::Failed(_) => {}
        }
    }
    gist
}

fn canonical(arguments: &str) -> String {
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    serde_json::from_str::<Value>(arguments).unwrap().to_string()
}

fn gist_of_stream(format: Format, stream: &str) -> Gist {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    let events: Vec<Value> =
        lines.filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    let mut gist = Gist::default();
    let mut open: Vec<(String, String)> = Vec::new();
    let str = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for event in &events {
        match format {
            Format::OpenaiChat => {
                let delta = &event["choices"][0]["delta"];
                gist.text += &(str(&delta["content"]) + &str(&delta["refusal"]));
                for call in delta["tool_calls"].as_array().into_iter().flatten() {
                    if call["function"]["name"].is_string() {
                        open.push((str(&call["function"]["name"]), String::new()));
                    }
                    let index = call["index"].as_u64().unwrap() as usize;
                    open[index].1 += &str(&call["function"]["arguments"]);
                }
                let tokens = event["usage"]["completion_tokens"].as_u64();
                let groq = event["x_groq"]["usage"]["completion_tokens"].as_u64();
                gist.output = tokens.or(groq).unwrap_or(gist.output);
            }
            Format::OpenaiResponses => {
                if event["type"] == "response.output_text.delta" {
                    gist.text += &str(&event["delta"]);
                }
                let response = &event["response"];
                for item in response["output"].as_array().into_iter().flatten() {
                    if item["type"] == "function_call" {
                        open.push((str(&item["name"]), str(&item["arguments"])));
                    }
                }
                gist.output = response["usage"]["output_tokens"].as_u64().unwrap_or(gist.output);
            }
            Format::Anthropic => {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    let whole = block["input"].as_object().filter(|input| !input.is_empty());
                    let whole = whole.map(|_| block["input"].to_string());
                    open.push((str(&block["name"]), whole.unwrap_or_default()));
                }
                gist.text += &(str(&block["text"]) + &str(&event["delta"]["text"]));
                if event["delta"]["type"] == "input_json_delta"
                    && let Some(call) = open.last_mut()
                    && !foreign(&events, event)
                {
                    call.1 += &str(&event["delta"]["partial_json"]);
                }
                gist.output = event["usage"]["output_tokens"].as_u64().unwrap_or(gist.output);
            }
            Format::Gemini => {
                let candidate = &event["candidates"][0];
                for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                    gist.text += &str(&part["text"]);
                    if part["functionCall"].is_object() {
                        let call = &part["functionCall"];
                        open.push((str(&call["name"]), call["args"].to_string()));
                    }
                }
                let usage = &event["usageMetadata"];
                let count = |key: &str| usage[key].as_u64().unwrap_or_default();
                gist.output = count("candidatesTokenCount") + count("thoughtsTokenCount");
            }
        }
    }
    gist.calls = open.into_iter().map(|(name, text)| (name, canonical(&text))).collect();
    gist
}

/// True if a delta belongs to a block that only a provider's own tools write.
fn foreign(events: &[Value], delta: &Value) -> bool {
    let start =
        |event: &&Value| event["type"] == "content_block_start" && event["index"] == delta["index"];
    events.iter().find(start).is_some_and(|start| start["content_block"]["type"] != "tool_use")
}

/// The first place where two requests differ.
fn differs(ours: &Value, theirs: &Value, place: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys());
            keys.into_iter()
                .find_map(|key| differs(&ours[key], &theirs[key], &format!("{place} {key}")))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (one, other))| differs(one, other, &format!("{place} {at}")))
        }
        _ if ours == theirs => None,
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{place}: ours {}, theirs {}", short(ours), short(theirs)))
        }
    }
}

/// All recordings of a format replay, cut in every way; our request means what theirs means.
fn replay(format: Format, least: usize) {
    let exchanges = exchanges(format);
    let (mut matched, mut foreign, mut differing) = (0, Vec::new(), Vec::new());
    for exchange in &exchanges {
        let Exchange { file, request, status, answer, .. } = exchange;
        assert_eq!(format, exchange.format);
        if *status == 200 {
            let text = answer.replace("\r\n", "\n");
            let events = torment(format, text.as_bytes());
            let Some(ModelEvent::Ended { finish, .. }) = events.last() else {
                panic!("{file}: {events:?}");
            };
            let mut expected = gist_of_stream(format, &text);
            if *finish == Finish::Length {
                expected.calls.clear();
            }
            assert_eq!(gist_of_events(&events), expected, "{file}");
            for (what, text) in dressed(&text) {
                assert_eq!(read(format, &[text.as_bytes()]), events, "{file} with {what}");
            }
        } else {
            let mut complaint = Complaint::of_body(answer);
            complaint.status = Some(*status as u16);
            let fault = complaint.fault();
            assert!(matches!(fault, Fault::Provider { status: Some(400), .. }), "{fault:?}");
        }
        match lift::request(format, request) {
            Ok(lifted) => {
                let ours = lift::meaning(format, &lift::body(format, &lifted));
                let theirs = lift::meaning(format, request);
                differing.extend(differs(&ours, &theirs, file));
                super::draft::grow(format, &lift::quirks(format), &lifted);
                matched += 1;
            }
            Err(why) => foreign.push(format!("{file}: {why}")),
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    if !exchanges.is_empty() {
        assert!(exchanges.len() >= least, "{} recordings", exchanges.len());
        // Most of them ask for what we ask for.
        assert!(matched * 5 >= exchanges.len() * 3, "{matched} matched; not: {foreign:#?}");
    }
}

#[test]
fn openai_chat_recordings_replay() {
    replay(Format::OpenaiChat, 65);
}

#[test]
fn openai_responses_recordings_replay() {
    replay(Format::OpenaiResponses, 150);
}

#[test]
fn anthropic_recordings_replay() {
    replay(Format::Anthropic, 48);
}

#[test]
fn gemini_recordings_replay() {
    replay(Format::Gemini, 5);
}
