//! Parses any text as the output of a local model.
#![no_main]

use windlass_llm::ModelEvent;
use windlass_llm::inline_calls::InlineCallParser;
use windlass_protocol::{FinishReason, TokenUsage};

fn parse_in_chunks(
    text: &str,
    chunk_bytes: usize,
    finish: FinishReason,
) -> (String, String, Vec<ModelEvent>) {
    let mut parser = InlineCallParser::new(true, Some(vec!["read".into(), "write".into()]));
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.ceil_char_boundary(chunk_bytes.max(1).min(rest.len()));
        let (chunk, after) = rest.split_at(at);
        parser.process_event(ModelEvent::Text(chunk.to_owned()), &mut out);
        rest = after;
    }
    let end = ModelEvent::Ended { finish, usage: TokenUsage::default() };
    parser.process_event(end, &mut out);
    let (mut text_out, mut reasoning, mut others) = (String::new(), String::new(), Vec::new());
    for event in out {
        match event {
            ModelEvent::Text(text) => text_out += &text,
            ModelEvent::Reasoning(text) => reasoning += &text,
            other => others.push(other),
        }
    }
    (text_out, reasoning, others)
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (chunk_bytes, data) =
        data.split_first().map_or((1, data), |(first, rest)| (*first as usize, rest));
    let text = String::from_utf8_lossy(data);
    let whole = parse_in_chunks(&text, text.len(), FinishReason::Stop);
    assert!(whole.0.len() + whole.1.len() <= text.len());
    assert_eq!(parse_in_chunks(&text, chunk_bytes, FinishReason::Stop), whole);
    // A truncated response makes no call.
    let cut = parse_in_chunks(&text, chunk_bytes, FinishReason::Length);
    assert_eq!(cut.2.len(), 1);
});
