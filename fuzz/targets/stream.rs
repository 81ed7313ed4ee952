//! What every stream has to keep, whatever its bytes: it ends exactly once, calls count only where
//! it ends with calls, and where it is cut into pieces makes no difference.

use bytes::Bytes;
use windlass_llm::ModelEvent;
use windlass_llm::wire::{Decoder, Format};

fn read(format: Format, data: &[u8], piece: usize) -> Vec<ModelEvent> {
    let mut decoder = Decoder::plain(format);
    let mut events = Vec::new();
    for chunk in data.chunks(piece.max(1)) {
        events.extend(decoder.step(Bytes::copy_from_slice(chunk)));
    }
    events.extend(decoder.end());
    events
}

/// Checks one stream, cut into pieces of the size its first byte says.
pub fn check(format: Format, data: &[u8]) {
    let (piece, data) = data.split_first().map_or((1, data), |(first, rest)| (*first as usize, rest));
    let whole = read(format, data, data.len());
    assert_eq!(whole.iter().filter(|event| event.is_last()).count(), 1);
    assert!(whole.last().is_some_and(ModelEvent::is_last));
    let calls = whole.iter().any(|event| matches!(event, ModelEvent::Call { .. }));
    if calls {
        let finish = windlass_protocol::Finish::Calls;
        assert!(matches!(whole.last(), Some(ModelEvent::Ended { finish: end, .. }) if *end == finish));
    }
    assert_eq!(read(format, data, piece), whole);
}
