//! Redaction of streamed text: an API key may arrive in several pieces.

use crate::redact::{partial_secret_start, redact_known};
use std::sync::Arc;
use windlass_protocol::{
    Event, LiveEvent, LiveEventRecord, ModelStreamKind, SessionId, UnixMillis,
};

/// Redacts registered secrets in the pieces of a stream. A piece that may end in the first part of
/// a secret is held back until more text arrives.
#[derive(Default)]
pub(super) struct DeltaRedactor {
    held: Vec<DeltaPiece>,
}

/// A `LiveEvent::ModelDelta`.
struct DeltaPiece {
    session: SessionId,
    at: UnixMillis,
    stream: ModelStreamKind,
    text: String,
}

impl DeltaRedactor {
    /// Returns the events to print instead of this one.
    pub(super) fn redact(&mut self, event: Arc<Event>) -> Vec<Arc<Event>> {
        let session = match &*event {
            Event::Live(record) => {
                // It repeats deltas that were or will be printed, and may end within a secret.
                if let LiveEvent::PartialStep { .. } = &record.event {
                    return Vec::new();
                }
                if let LiveEvent::ModelDelta { stream, text } = &record.event {
                    let (session, at) = (record.session, record.at);
                    let (stream, text) = (*stream, text.clone());
                    return self.redact_piece(DeltaPiece { session, at, stream, text });
                }
                record.session
            }
            Event::Fact(record) => record.session,
        };
        self.flush(session, event)
    }

    fn redact_piece(&mut self, piece: DeltaPiece) -> Vec<Arc<Event>> {
        let DeltaPiece { session, at, stream, text } = piece;
        let is_same = |held: &DeltaPiece| held.session == session && held.stream == stream;
        let held = self.held.iter().position(is_same).map(|index| self.held.remove(index));
        let text = held.map_or_else(String::new, |held| held.text) + &text;
        let mut safe = redact_known(&text).into_owned();
        let partial = safe.split_off(partial_secret_start(&safe));
        if !partial.is_empty() {
            self.held.push(DeltaPiece { session, at, stream, text: partial });
        }
        let safe = DeltaPiece { session, at, stream, text: safe };
        if safe.text.is_empty() { Vec::new() } else { vec![safe.into_event()] }
    }

    /// Returns what is held back for a session, then an event that ends it.
    fn flush(&mut self, session: SessionId, event: Arc<Event>) -> Vec<Arc<Event>> {
        let ended = self.held.extract_if(.., |held| held.session == session);
        ended.map(DeltaPiece::into_event).chain([event]).collect()
    }
}

impl DeltaPiece {
    fn into_event(self) -> Arc<Event> {
        let event = LiveEvent::ModelDelta { stream: self.stream, text: self.text };
        Arc::new(Event::Live(LiveEventRecord { session: self.session, at: self.at, event }))
    }
}
