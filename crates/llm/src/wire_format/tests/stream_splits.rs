//! Decoding of a stream that is split or cut off at every byte.

use crate::ModelEvent;
use crate::wire_format::{AnyStreamReader, ResponseDecoder, WireFormat};
use bytes::Bytes;
use std::collections::BTreeMap;
use windlass_protocol::FinishReason;
use windlass_testkit::Case;
use windlass_testkit::case_file::CaseSection;

/// Decodes a stream that arrives in these chunks.
pub(crate) fn decode_chunks(format: WireFormat, chunks: &[&[u8]]) -> Vec<ModelEvent> {
    let mut decoder = ResponseDecoder::without_quirks(format);
    let step = |piece: &&[u8]| decoder.decode(Bytes::copy_from_slice(piece));
    let mut events: Vec<ModelEvent> = chunks.iter().flat_map(step).collect();
    events.extend(decoder.finish());
    events
}

/// Joins consecutive deltas, so that only their sum is compared.
fn join_deltas(events: &[ModelEvent]) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more)) => text.push_str(more),
            (Some(ModelEvent::Reasoning(text)), ModelEvent::Reasoning(more)) => text.push_str(more),
            (
                Some(ModelEvent::CallDelta { index, arguments, .. }),
                ModelEvent::CallDelta { index: same, arguments: more, .. },
            ) if index == same => arguments.push_str(more),
            _ => joined.push(event.clone()),
        }
    }
    joined
}

/// Checks that the deltas of a call add up to the call, if it has any.
fn check_call_deltas(events: &[ModelEvent]) {
    let mut deltas: BTreeMap<u64, (String, String)> = BTreeMap::new();
    for event in events {
        if let ModelEvent::CallDelta { index, tool, arguments } = event {
            let (name, written) = deltas.entry(*index).or_default();
            name.clone_from(tool);
            written.push_str(arguments);
        }
    }
    let written: Vec<(String, String)> = deltas.into_values().collect();
    if written.is_empty() {
        return;
    }
    let calls: Vec<(String, String)> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Call { tool, arguments, .. } => Some((tool.clone(), arguments.clone())),
            _ => None,
        })
        .collect();
    // Arguments in the start of a block have no delta.
    let matches = |(call, delta): (&(String, String), &(String, String))| {
        call == delta || (delta.1.is_empty() && call.0 == delta.0)
    };
    if !calls.is_empty() {
        assert_eq!(calls.len(), written.len(), "{events:?}");
        assert!(calls.iter().zip(&written).all(matches), "{events:?}");
    }
}

/// Decodes a stream, and checks that splitting it and cutting it off give consistent events.
pub(crate) fn decode_at_every_split(format: WireFormat, bytes: &[u8]) -> Vec<ModelEvent> {
    let whole = decode_chunks(format, &[bytes]);
    assert!(whole.last().is_some_and(ModelEvent::is_last));
    assert_eq!(whole.iter().filter(|event| event.is_last()).count(), 1, "{whole:?}");
    check_call_deltas(&whole);
    check_truncation(format, bytes, &whole);
    check_splits(format, bytes, &whole);
    whole
}

/// Decodes the stream byte by byte, and checks the events if it ended after each byte.
fn check_truncation(format: WireFormat, bytes: &[u8], whole: &[ModelEvent]) {
    let mut decoder = ResponseDecoder::without_quirks(format);
    let mut events = Vec::new();
    for at in 0..=bytes.len() {
        let end = decoder.finish();
        let has_ended = events.last().is_some_and(ModelEvent::is_last);
        assert_eq!(end.last().is_some_and(ModelEvent::is_last), !has_ended, "cut off at {at}");
        let all_events = || events.iter().chain(&end);
        assert_eq!(all_events().filter(|event| event.is_last()).count(), 1, "cut off at {at}");
        let call = |event: &&ModelEvent| matches!(event, ModelEvent::Call { .. });
        if matches!(
            all_events().last(),
            Some(ModelEvent::Ended { finish: FinishReason::ToolCalls, .. })
        ) {
            let (short, all) = (all_events().filter(call), whole.iter().filter(call));
            assert!(short.eq(all), "calls are missing or incomplete, cut off at {at}");
        }
        for event in all_events().filter(call) {
            assert!(whole.contains(event), "an incomplete call, cut off at {at}: {event:?}");
        }
        if let Some(byte) = bytes.get(at..at + 1) {
            events.extend(decoder.decode(Bytes::copy_from_slice(byte)));
        }
    }
    events.extend(decoder.finish());
    assert_eq!(events, whole, "byte by byte");
}

/// Splits the stream in two at every byte. Each split is tried on the event that contains it and on
/// the next one, from the state before; if the state afterwards is the same, so is everything that
/// follows. In the middle of a very long event only every 97th position is tried.
fn check_splits(format: WireFormat, bytes: &[u8], whole: &[ModelEvent]) {
    const LONG_EVENT_BYTES: usize = 6_000;
    let ends = event_ends(bytes);
    let mut before = ResponseDecoder::without_quirks(format);
    let mut start = 0;
    let mut decoded = Vec::new();
    for (index, &end) in ends.iter().enumerate() {
        let next = ends.get(index + 1).copied().unwrap_or(end);
        let piece = |from: usize, to: usize| Bytes::copy_from_slice(&bytes[from..to]);
        let mut after = before.clone();
        let events = after.decode(piece(start, end));
        let mut later = after.clone();
        let following = later.decode(piece(end, next));
        for at in start..end {
            let edge = at - start < 500 || end - at < 500;
            if end - start > LONG_EVENT_BYTES && !edge && at % 97 != 0 {
                continue;
            }
            let mut decoder = before.clone();
            let mut split_events = decoder.decode(piece(start, at));
            split_events.extend(decoder.decode(piece(at, end)));
            assert_eq!(split_events, events, "split at {at}");
            assert!(is_same_state(&decoder, &after), "another state after a split at {at}");
            assert_eq!(
                decoder.decode(piece(end, next)),
                following,
                "next event after a split at {at}"
            );
        }
        decoded.extend(events);
        (before, start) = (after, end);
    }
    decoded.extend(before.finish());
    assert_eq!(decoded, whole, "event by event");
}

fn is_same_state(one: &ResponseDecoder, other: &ResponseDecoder) -> bool {
    match &one.reader {
        AnyStreamReader::OpenaiChat(one) => {
            matches!(&other.reader, AnyStreamReader::OpenaiChat(other) if one.is_same_state(other))
        }
        AnyStreamReader::OpenaiResponses(one) => {
            matches!(&other.reader, AnyStreamReader::OpenaiResponses(other) if one.is_same_state(other))
        }
        AnyStreamReader::Anthropic(one) => {
            matches!(&other.reader, AnyStreamReader::Anthropic(other) if one.is_same_state(other))
        }
        AnyStreamReader::Gemini(one) => {
            matches!(&other.reader, AnyStreamReader::Gemini(other) if one.is_same_state(other))
        }
    }
}

/// Returns the end offset of each event, and the end of the stream.
fn event_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    for at in 1..bytes.len() {
        if bytes[at] == b'\n' && bytes[at - 1] == b'\n' {
            ends.push(at + 1);
        }
    }
    if ends.last() != Some(&bytes.len()) {
        ends.push(bytes.len());
    }
    ends
}

/// Variants of a stream with other framing: line ends, a byte-order mark, comments, other fields.
pub(super) fn framing_variants(text: &str) -> Vec<(&'static str, String)> {
    vec![
        ("CRLF", text.replace('\n', "\r\n")),
        ("CR", text.replace('\n', "\r")),
        ("a byte-order mark", format!("\u{feff}{text}")),
        (
            "comments",
            format!(": hello\n\n{}", text.replace("\n\n", "\n: more\n\n: still here\n\n")),
        ),
        ("other fields", text.replace("data:", "id: 7\nretry: 10\nunknown: x\ndata:")),
    ]
}

/// Runs a `.case` file of a format: bytes in, events out.
pub(crate) fn check_case(format: WireFormat, case: Case) {
    let bytes = case.one("bytes").body.replace("\\r", "\r").replace("\\u{feff}", "\u{feff}");
    let events = decode_at_every_split(format, bytes.as_bytes());
    if !bytes.contains('\r') {
        for (variant, text) in framing_variants(&bytes) {
            assert_eq!(decode_chunks(format, &[text.as_bytes()]), events, "with {variant}");
        }
    }
    let lines: String = join_deltas(&events).iter().map(|event| format!("{event:?}\n")).collect();
    case.check(&["events"], &[CaseSection::new("events", "", &lines)]);
}
