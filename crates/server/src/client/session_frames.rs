//! The frames of a session's event stream, as a client applies them: pure, without connections.
//!
//! Facts are yielded once and in order: those up to a position that the client has are dropped.

use crate::WatchOptions;
use crate::event_stream::frame;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use sse_core::{MessageEvent, SseDecoder, SseEvent};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;
use windlass_protocol::session_stream::{
    SessionStreamItem, StreamClosing, StreamClosingReason, StreamOpening, StreamReset,
};
use windlass_protocol::{EventCursor, FactRecord, LogPosition, LogSeq, SessionId};

/// Maximum size of a frame.
const MAX_FRAME_BYTES: NonZeroUsize = NonZeroUsize::new(64 << 20).unwrap();

/// Creates a decoder of frames.
pub(super) fn new_decoder() -> SseDecoder {
    SseDecoder::with_limit(MAX_FRAME_BYTES)
}

/// The position of a client in the stream of a session.
pub(super) struct SessionFrames {
    session: SessionId,
    /// The events that were yielded; unknown until the first connection says where it begins.
    pub(super) cursor: Option<EventCursor>,
    /// Last position of each session that was yielded.
    yielded: BTreeMap<SessionId, LogSeq>,
}

/// The meaning of a frame for the stream.
pub(super) enum FrameEffect {
    /// Yields an item.
    Yield(SessionStreamItem),
    /// Yields the last item.
    YieldLast(SessionStreamItem),
    /// Yields nothing.
    Skip,
    /// Ends the connection, and connects again after this time.
    Disconnect(String, Duration),
}

impl SessionFrames {
    pub(super) fn new(session: SessionId, options: &WatchOptions) -> SessionFrames {
        let mut yielded = BTreeMap::new();
        if let Some(cursor) = &options.after {
            yielded.insert(session, cursor.position.seq);
            let subagents = cursor.subagents.iter();
            yielded.extend(subagents.map(|(session, position)| (*session, position.seq)));
        }
        SessionFrames { session, cursor: options.after.clone(), yielded }
    }

    /// Applies a frame to the state. Unknown frames are those of a newer server.
    pub(super) fn apply(&mut self, message: &MessageEvent) -> FrameEffect {
        let data = message.data.as_str();
        match message.event.as_ref() {
            frame::OPEN => self.apply_opening(data),
            frame::FACT => self.apply_fact(data, message.last_event_id.as_deref()),
            frame::LIVE => item_of(data, |event| SessionStreamItem::Live(Box::new(event))),
            frame::LAGGED => item_of(data, SessionStreamItem::Lagged),
            frame::RESET => self.apply_reset(data),
            frame::STOPPED => match parse_frame(data) {
                Some(fault) => FrameEffect::YieldLast(SessionStreamItem::Stopped(fault)),
                None => disconnect("the session stopped"),
            },
            frame::CLOSING => self.apply_closing(data),
            _ => FrameEffect::Skip,
        }
    }

    fn apply_opening(&mut self, data: &str) -> FrameEffect {
        item_of(data, |opening: StreamOpening| {
            if self.cursor.is_none() {
                let position = LogPosition { seq: opening.head, epoch: opening.epoch };
                self.cursor = Some(position.into());
                self.yielded.insert(self.session, opening.head);
            }
            SessionStreamItem::Opened(opening)
        })
    }

    fn apply_fact(&mut self, data: &str, id: Option<&str>) -> FrameEffect {
        let Some(cursor) = id.and_then(|id| id.parse::<EventCursor>().ok()) else {
            return disconnect("a fact has no cursor");
        };
        self.cursor = Some(cursor.clone());
        let Some(mut record) = parse_frame::<FactRecord>(data) else { return FrameEffect::Skip };
        let yielded = self.yielded.entry(record.session).or_default();
        if record.seq <= *yielded {
            return FrameEffect::Skip;
        }
        *yielded = record.seq;
        // The JSON of a fact has no epoch; its cursor has.
        let position = match record.session == self.session {
            true => Some(&cursor.position),
            false => cursor.subagents.get(&record.session),
        };
        let position = position.filter(|position| position.seq == record.seq);
        record.epoch = position.and_then(|position| position.epoch).unwrap_or(0);
        FrameEffect::Yield(SessionStreamItem::Fact(Box::new(record), cursor))
    }

    fn apply_reset(&mut self, data: &str) -> FrameEffect {
        let Some(reset) = parse_frame::<StreamReset>(data) else {
            return disconnect("a reset is not readable");
        };
        let cursor = self.cursor.get_or_insert_default();
        match reset.session == self.session {
            true => cursor.position = reset.to,
            false => {
                cursor.subagents.insert(reset.session, reset.to);
            }
        }
        self.yielded.insert(reset.session, reset.to.seq);
        FrameEffect::Yield(SessionStreamItem::Reset(reset))
    }

    fn apply_closing(&mut self, data: &str) -> FrameEffect {
        let Some(closing) = parse_frame::<StreamClosing>(data) else {
            return disconnect("the server closed the connection");
        };
        match closing.reason {
            StreamClosingReason::ServerStopping => {
                let retry_after = Duration::from_millis(closing.retry_ms.unwrap_or(0));
                FrameEffect::Disconnect("the server stops".to_owned(), retry_after)
            }
            StreamClosingReason::TokenRevoked
            | StreamClosingReason::SessionClosed
            | StreamClosingReason::TurnEnded => {
                FrameEffect::YieldLast(SessionStreamItem::Closing(closing))
            }
        }
    }
}

fn disconnect(reason: &str) -> FrameEffect {
    FrameEffect::Disconnect(reason.to_owned(), Duration::ZERO)
}

/// Returns the item of a frame, or nothing for a frame that a newer server made.
fn item_of<T: DeserializeOwned>(
    data: &str,
    to_item: impl FnOnce(T) -> SessionStreamItem,
) -> FrameEffect {
    parse_frame(data).map_or(FrameEffect::Skip, |value| FrameEffect::Yield(to_item(value)))
}

/// Parses the data of a frame.
fn parse_frame<T: DeserializeOwned>(data: &str) -> Option<T> {
    serde_json::from_str(data)
        .inspect_err(|error| tracing::warn!(%error, "an event of the server is not readable"))
        .ok()
}

/// Returns the items of a stream whose bytes come in chunks of a size, until the connection or the
/// stream ends. For fuzzing: any bytes may come.
pub fn decode_session_stream(
    session: SessionId,
    data: &[u8],
    chunk_bytes: usize,
) -> Vec<SessionStreamItem> {
    let mut frames = SessionFrames::new(session, &WatchOptions::default());
    let (mut decoder, mut items) = (new_decoder(), Vec::new());
    for chunk in data.chunks(chunk_bytes.max(1)) {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(event) = decoder.next(&mut chunk) {
            let message = match event {
                Ok(SseEvent::Message(message)) => message,
                Ok(SseEvent::Retry(_)) => continue,
                Err(_) => return items,
            };
            match frames.apply(&message) {
                FrameEffect::Yield(item) => items.push(item),
                FrameEffect::YieldLast(item) => {
                    items.push(item);
                    return items;
                }
                FrameEffect::Skip => {}
                FrameEffect::Disconnect(..) => return items,
            }
        }
    }
    items
}
