//! Recorded and hostile streams, each read whole, in every way it can be cut in two, byte by
//! byte, and cut off at every byte.
#![allow(clippy::disallowed_methods, reason = "the tests read recordings from outside")]

use super::{Step, body};
use crate::{ModelEvent, Request};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_protocol::{Author, CallPart, Finish, Message, Outcome, Part, Role, ToolSummary};
use windlass_testkit::Case;
use windlass_testkit::case::Section;

windlass_testkit::cases!(check, "wire/openai_chat/cases":
    text_comes_in_pieces,
    a_call_is_gathered_from_its_pieces,
    two_calls_keep_their_order,
    calls_without_an_index_are_told_apart_by_id,
    a_call_at_the_output_limit_is_not_handed_on,
    reasoning_and_refusals_are_text_of_their_own,
    cached_tokens_are_counted,
    a_thought_under_two_names_is_one_thought,
    an_error_inside_the_stream_ends_it,
    a_line_nobody_can_read_ends_it,
    a_stream_that_stops_early_is_a_fault,
    a_stream_without_done_is_complete_when_it_said_why,
    nothing_follows_the_end,
    comments_marks_and_foreign_line_ends_are_framing,
);

fn read(pieces: &[&[u8]]) -> Vec<ModelEvent> {
    let mut step = Step::default();
    let mut events: Vec<ModelEvent> = pieces.iter().flat_map(|piece| step.step(piece)).collect();
    events.extend(step.end());
    events
}

/// Deltas joined, so that only what they add up to counts.
fn joined(events: &[ModelEvent]) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more)) => text.push_str(more),
            (Some(ModelEvent::Reasoning(text)), ModelEvent::Reasoning(more)) => text.push_str(more),
            _ => joined.push(event.clone()),
        }
    }
    joined
}

fn is_last(event: &ModelEvent) -> bool {
    matches!(event, ModelEvent::Ended { .. } | ModelEvent::Failed(_))
}

/// Cuts a stream in every way and compares with reading it whole.
fn torment(bytes: &[u8]) -> Vec<ModelEvent> {
    let whole = read(&[bytes]);
    assert_eq!(whole.iter().filter(|event| is_last(event)).count(), 1, "{whole:?}");
    assert!(whole.last().is_some_and(is_last));
    // Every cut of a long stream would take minutes; a prime stride meets every kind of place.
    let stride = if bytes.len() > 4_000 { 97 } else { 1 };
    for at in (0..bytes.len()).step_by(stride) {
        let (one, two) = bytes.split_at(at);
        assert_eq!(read(&[one, two]), whole, "cut in two at {at}");
        let short = read(&[one]);
        assert!(short.last().is_some_and(is_last), "cut off at {at}");
        assert_eq!(short.iter().filter(|event| is_last(event)).count(), 1);
        for event in &short {
            if matches!(event, ModelEvent::Call { .. }) {
                assert!(whole.contains(event), "half a call at {at}: {event:?}");
            }
        }
    }
    let singles: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&singles), whole, "byte by byte");
    whole
}

fn check(case: Case) {
    let bytes = case.one("bytes").body.replace("\\r", "\r").replace("\\u{feff}", "\u{feff}");
    let events = torment(bytes.as_bytes());
    let lines: String = joined(&events).iter().map(|event| format!("{event:?}\n")).collect();
    case.check(&["events"], &[Section::new("events", "", &lines)]);
}

#[test]
fn a_stream_may_be_hostile() {
    let deep = format!("data: {}\n\n", "[".repeat(200_000));
    let long = format!("data: {}\n\n", "x".repeat(17 << 20));
    for stream in [deep.as_bytes(), long.as_bytes(), b"\xff\xfe\x00\n\ndata: \xff\n\n", b""] {
        let events = read(&[stream]);
        assert!(matches!(events.as_slice(), [ModelEvent::Failed(_)]), "{:?}", events.last());
    }
}

/// Streams recorded from real providers, where a folder of them stands beside the checkout.
#[test]
fn recorded_streams_read_the_same_however_they_are_cut() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/recordings"));
    let (mut streams, mut calls) = (0, 0);
    for folder in ["openai-chat", "openai-compatible-chat"] {
        for file in std::fs::read_dir(root.join(folder)).into_iter().flatten() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let recording: Value = serde_json::from_str(&text).unwrap();
            for interaction in recording["interactions"].as_array().unwrap() {
                let stream = interaction["response"]["body"].as_str().unwrap();
                let events = torment(stream.as_bytes());
                assert!(matches!(events.last(), Some(ModelEvent::Ended { .. })), "{events:?}");
                for event in &events {
                    if let ModelEvent::Call { tool, arguments, .. } = event {
                        assert!(!tool.is_empty());
                        serde_json::from_str::<Value>(arguments).unwrap();
                        calls += 1;
                    }
                }
                streams += 1;
            }
        }
    }
    if root.exists() {
        assert!(streams >= 15 && calls >= 5, "{streams} streams, {calls} calls");
    }
}

fn message(role: Role, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message { role, seq: 1, parts })
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn called(by: Author, arguments: &str, outcome: Option<Outcome>) -> Part {
    Part::Call(Box::new(CallPart {
        call: windlass_protocol::CallId(Default::default()),
        reference: "call_1".into(),
        tool: "read".into(),
        arguments: arguments.into(),
        by,
        outcome,
    }))
}

#[test]
fn a_conversation_is_written_as_the_format_wants_it() {
    let failed = Some(Outcome::Failed { text: "no such file".into() });
    let request = Request {
        model: "m".into(),
        system: "be brief".into(),
        messages: vec![
            message(Role::User, vec![text("what is in a?")]),
            message(
                Role::Assistant,
                vec![
                    Part::Reasoning { text: "hm".into() },
                    called(Author::Model, "{\"filePath\": \"a", failed),
                ],
            ),
            message(Role::Context, vec![text("a was changed")]),
            message(Role::Assistant, vec![called(Author::Person, "{}", Some(Outcome::Unknown))]),
            message(Role::Assistant, vec![Part::Reasoning { text: "nothing said".into() }]),
            message(Role::Assistant, vec![text("done")]),
        ],
        tools: vec![ToolSummary {
            name: "read".into(),
            description: "Reads.".into(),
            schema: serde_json::json!({"type": "object"}),
        }],
        max_output: Some(1_000),
    };
    expect_test::expect_file!["body.json"]
        .assert_eq(&(serde_json::to_string_pretty(&body(&request)).unwrap() + "\n"));
}

#[test]
fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
    let mut request = Request {
        model: "m".into(),
        system: "s".into(),
        messages: vec![message(Role::User, vec![text("one")])],
        tools: Vec::new(),
        max_output: None,
    };
    let short = body(&request)["messages"].to_string();
    request.messages.push(message(Role::Assistant, vec![text("two")]));
    let long = body(&request)["messages"].to_string();
    assert!(long.starts_with(short.trim_end_matches(']')));
}

#[test]
fn a_finish_nobody_knows_is_a_stop() {
    let stream =
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"eos\"}]}\n\ndata: [DONE]\n\n";
    let finish = match read(&[stream]).as_slice() {
        [ModelEvent::Ended { finish, .. }] => finish.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(finish, Finish::Stop);
}
