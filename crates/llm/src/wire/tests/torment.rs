//! Every way a stream can be cut.

use crate::ModelEvent;
use crate::wire::{AnyReader, Decoder, Format};
use bytes::Bytes;
use windlass_protocol::Finish;
use windlass_testkit::Case;
use windlass_testkit::case::Section;

/// Reads a stream in these pieces.
pub(crate) fn read(format: Format, pieces: &[&[u8]]) -> Vec<ModelEvent> {
    let mut decoder = Decoder::plain(format);
    let step = |piece: &&[u8]| decoder.step(Bytes::copy_from_slice(piece));
    let mut events: Vec<ModelEvent> = pieces.iter().flat_map(step).collect();
    events.extend(decoder.end());
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

/// Cuts a stream in every way and compares with reading it whole.
pub(crate) fn torment(format: Format, bytes: &[u8]) -> Vec<ModelEvent> {
    let whole = read(format, &[bytes]);
    assert!(whole.last().is_some_and(ModelEvent::is_last));
    assert_eq!(whole.iter().filter(|event| event.is_last()).count(), 1, "{whole:?}");
    cut_off(format, bytes, &whole);
    split(format, bytes, &whole);
    whole
}

/// The stream byte by byte, and what it would mean if it ended at each of them.
fn cut_off(format: Format, bytes: &[u8], whole: &[ModelEvent]) {
    let mut decoder = Decoder::plain(format);
    let mut events = Vec::new();
    for at in 0..=bytes.len() {
        let end = decoder.end();
        let over = events.last().is_some_and(ModelEvent::is_last);
        assert_eq!(end.last().is_some_and(ModelEvent::is_last), !over, "cut off at {at}");
        let told = || events.iter().chain(&end);
        assert_eq!(told().filter(|event| event.is_last()).count(), 1, "cut off at {at}");
        let call = |event: &&ModelEvent| matches!(event, ModelEvent::Call { .. });
        if matches!(told().last(), Some(ModelEvent::Ended { finish: Finish::Calls, .. })) {
            let (short, all) = (told().filter(call), whole.iter().filter(call));
            assert!(short.eq(all), "some calls are missing or half, cut off at {at}");
        }
        for event in told().filter(call) {
            assert!(whole.contains(event), "half a call at {at}: {event:?}");
        }
        if let Some(byte) = bytes.get(at..at + 1) {
            events.extend(decoder.step(Bytes::copy_from_slice(byte)));
        }
    }
    events.extend(decoder.end());
    assert_eq!(events, whole, "byte by byte");
}

/// The stream in two pieces, at every byte. Each cut is tried on the event it falls into and the
/// one after it, from the state before; where the state behind is the same, so is all that
/// follows. In the middle of a very long event only every 97th place is tried.
fn split(format: Format, bytes: &[u8], whole: &[ModelEvent]) {
    const LONG: usize = 6_000;
    let ends = boundaries(bytes);
    let mut before = Decoder::plain(format);
    let mut start = 0;
    let mut seen = Vec::new();
    for (index, &end) in ends.iter().enumerate() {
        let next = ends.get(index + 1).copied().unwrap_or(end);
        let piece = |from: usize, to: usize| Bytes::copy_from_slice(&bytes[from..to]);
        let mut after = before.clone();
        let events = after.step(piece(start, end));
        let mut later = after.clone();
        let following = later.step(piece(end, next));
        for at in start..end {
            let edge = at - start < 500 || end - at < 500;
            if end - start > LONG && !edge && at % 97 != 0 {
                continue;
            }
            let mut decoder = before.clone();
            let mut cut = decoder.step(piece(start, at));
            cut.extend(decoder.step(piece(at, end)));
            assert_eq!(cut, events, "cut in two at {at}");
            assert!(same(&decoder, &after), "another state after a cut at {at}");
            assert_eq!(decoder.step(piece(end, next)), following, "after a cut at {at}");
        }
        seen.extend(events);
        (before, start) = (after, end);
    }
    seen.extend(before.end());
    assert_eq!(seen, whole, "event by event");
}

fn same(one: &Decoder, other: &Decoder) -> bool {
    match (&one.reader, &other.reader) {
        (AnyReader::OpenaiChat(one), AnyReader::OpenaiChat(other)) => one.same(other),
        (AnyReader::OpenaiResponses(one), AnyReader::OpenaiResponses(other)) => one.same(other),
        (AnyReader::Anthropic(one), AnyReader::Anthropic(other)) => one.same(other),
        (AnyReader::Gemini(one), AnyReader::Gemini(other)) => one.same(other),
        _ => false,
    }
}

/// Where each event ends, and where the stream does.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
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

/// A stream in other clothes: line ends, a mark at the beginning, comments, heartbeats.
pub(super) fn dressed(text: &str) -> Vec<(&'static str, String)> {
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

/// A `.case` of a format: bytes in, events out.
pub(crate) fn check_case(format: Format, case: Case) {
    let bytes = case.one("bytes").body.replace("\\r", "\r").replace("\\u{feff}", "\u{feff}");
    let events = torment(format, bytes.as_bytes());
    if !bytes.contains('\r') {
        for (what, text) in dressed(&bytes) {
            assert_eq!(read(format, &[text.as_bytes()]), events, "with {what}");
        }
    }
    let lines: String = joined(&events).iter().map(|event| format!("{event:?}\n")).collect();
    case.check(&["events"], &[Section::new("events", "", &lines)]);
}
