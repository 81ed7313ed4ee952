//! Invariants of every model stream: it ends exactly once, calls are emitted only if it ends with
//! `ToolCalls`, and the events do not depend on chunk boundaries.

use bytes::Bytes;
use windlass_llm::ModelEvent;
use windlass_llm::wire_format::{ResponseDecoder, WireFormat};

fn decode_in_chunks(format: WireFormat, data: &[u8], chunk_bytes: usize) -> Vec<ModelEvent> {
    let mut decoder = ResponseDecoder::without_quirks(format);
    let mut events = Vec::new();
    for chunk in data.chunks(chunk_bytes.max(1)) {
        events.extend(decoder.decode(Bytes::copy_from_slice(chunk)));
    }
    events.extend(decoder.finish());
    events
}

/// Checks one stream in chunks of the size that its first byte gives.
pub fn check(format: WireFormat, data: &[u8]) {
    let (chunk_bytes, data) =
        data.split_first().map_or((1, data), |(first, rest)| (*first as usize, rest));
    let whole = decode_in_chunks(format, data, data.len());
    assert_eq!(whole.iter().filter(|event| event.is_last()).count(), 1);
    assert!(whole.last().is_some_and(ModelEvent::is_last));
    let calls = whole.iter().any(|event| matches!(event, ModelEvent::Call { .. }));
    if calls {
        let finish = windlass_protocol::FinishReason::ToolCalls;
        assert!(
            matches!(whole.last(), Some(ModelEvent::Ended { finish: end, .. }) if *end == finish)
        );
    }
    assert_eq!(decode_in_chunks(format, data, chunk_bytes), whole);
}
