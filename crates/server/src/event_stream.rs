//! Event streams on the wire: server-sent events that the connection pulls.
//!
//! The next frame is made when the socket has taken the last one, so a client that does not read
//! costs one frame, whatever the session produces. Start reading at [`EventStreamBody`].

use crate::limits::{ClientSlot, UnlimitedWrites};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Stream};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt::Display;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use windlass_protocol::session_stream::{
    HostStreamItem, SessionStreamItem, StreamClosing, StreamClosingReason, StreamHeartbeat,
};
use windlass_protocol::{Fact, LogSeq, SessionId};

/// Media type of event streams.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
/// Interval of heartbeats: three of them are missed before a client gives a connection up.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Time after which a client may connect again to a server that stops: a restart takes less.
const RESTART_MS: u64 = 1_000;
/// Unused capacity of a frame that is worth another allocation.
const MAX_SPARE_BYTES: usize = 4 << 10;

/// Names of the frames.
pub(crate) mod frame {
    pub(crate) const OPEN: &str = "open";
    pub(crate) const FACT: &str = "fact";
    pub(crate) const LIVE: &str = "live";
    pub(crate) const LAGGED: &str = "lagged";
    pub(crate) const RESET: &str = "reset";
    pub(crate) const STOPPED: &str = "stopped";
    pub(crate) const CLOSING: &str = "closing";
    pub(crate) const HEARTBEAT: &str = "heartbeat";
    pub(crate) const HOST: &str = "host";
}

/// Conditions that end a stream from outside.
pub(crate) struct StreamEnd {
    /// The server stops.
    pub(crate) stop: CancellationToken,
    /// The token of the client was revoked.
    pub(crate) revoked: CancellationToken,
    /// Ready when the token of the client has expired.
    pub(crate) expired: BoxFuture<'static, ()>,
    /// Session whose next end of a turn ends the stream.
    pub(crate) turn_of: Option<SessionId>,
}

/// The body of an event stream.
pub(crate) struct EventStreamBody<T> {
    source: BoxStream<'static, T>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
    expired: BoxFuture<'static, ()>,
    heartbeat: Pin<Box<Sleep>>,
    turn_of: Option<SessionId>,
    /// Last position that was sent.
    head: LogSeq,
    state: BodyState,
    _slot: ClientSlot,
    /// The client of a stream may read slowly; one that gets the last frame has a minute.
    _unlimited: UnlimitedWrites,
}

enum BodyState {
    Running,
    /// One more frame follows.
    Closing(StreamClosingReason),
    Over,
}

impl<T> EventStreamBody<T> {
    pub(crate) fn new(
        source: BoxStream<'static, T>,
        end: StreamEnd,
        (slot, unlimited): (ClientSlot, UnlimitedWrites),
    ) -> EventStreamBody<T> {
        EventStreamBody {
            source,
            stop: Box::pin(end.stop.cancelled_owned()),
            revoked: Box::pin(end.revoked.cancelled_owned()),
            expired: end.expired,
            heartbeat: Box::pin(tokio::time::sleep(HEARTBEAT_INTERVAL)),
            turn_of: end.turn_of,
            head: 0,
            state: BodyState::Running,
            _slot: slot,
            _unlimited: unlimited,
        }
    }

    /// Returns the reason to end the stream now.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Option<StreamClosingReason> {
        if self.stop.as_mut().poll(cx).is_ready() {
            return Some(StreamClosingReason::ServerStopping);
        }
        let is_expired = self.expired.as_mut().poll(cx).is_ready();
        match is_expired || self.revoked.as_mut().poll(cx).is_ready() {
            true => Some(StreamClosingReason::TokenRevoked),
            false => None,
        }
    }
}

impl<T: StreamItem> Stream for EventStreamBody<T> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let closing = match &this.state {
            BodyState::Over => return Poll::Ready(None),
            BodyState::Closing(reason) => Some(*reason),
            BodyState::Running => this.poll_closing(cx),
        };
        if let Some(reason) = closing {
            this.state = BodyState::Over;
            return Poll::Ready(Some(Ok(encode_closing(reason))));
        }
        while let Poll::Ready(item) = this.source.as_mut().poll_next(cx) {
            let Some(item) = item else {
                this.state = BodyState::Over;
                return Poll::Ready(None);
            };
            this.head = item.position_of_main_session().unwrap_or(this.head);
            if item.is_last() {
                this.state = BodyState::Over;
            } else if this.turn_of.is_some_and(|session| item.is_turn_end_of(session)) {
                this.state = BodyState::Closing(StreamClosingReason::TurnEnded);
            }
            if let Some(frame) = item.encode() {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
        if this.heartbeat.as_mut().poll(cx).is_ready() {
            this.heartbeat.as_mut().reset(Instant::now() + HEARTBEAT_INTERVAL);
            let heartbeat = encode_frame(frame::HEARTBEAT, &StreamHeartbeat { head: this.head });
            return Poll::Ready(heartbeat.map(Ok));
        }
        Poll::Pending
    }
}

/// An item of an event stream.
pub(crate) trait StreamItem: Send + 'static {
    /// Returns the frame of the item, if clients get it.
    fn encode(&self) -> Option<Bytes>;
    /// Returns true if no further item follows.
    fn is_last(&self) -> bool;
    /// Returns the position that the item moves the stream to.
    fn position_of_main_session(&self) -> Option<LogSeq>;
    /// Returns true for the end of a turn of a session.
    fn is_turn_end_of(&self, session: SessionId) -> bool;
}

impl StreamItem for SessionStreamItem {
    fn encode(&self) -> Option<Bytes> {
        match self {
            SessionStreamItem::Opened(opening) => encode_frame(frame::OPEN, opening),
            SessionStreamItem::Fact(record, cursor) => {
                encode_with_id(frame::FACT, Some(cursor), record)
            }
            SessionStreamItem::Live(event) => encode_frame(frame::LIVE, event),
            SessionStreamItem::Lagged(lag) => encode_frame(frame::LAGGED, lag),
            SessionStreamItem::Reset(reset) => encode_frame(frame::RESET, reset),
            SessionStreamItem::Stopped(fault) => encode_frame(frame::STOPPED, fault),
            SessionStreamItem::Closing(closing) => encode_frame(frame::CLOSING, closing),
            SessionStreamItem::Disconnected(_) => None,
        }
    }

    fn is_last(&self) -> bool {
        match self {
            SessionStreamItem::Stopped(_) | SessionStreamItem::Closing(_) => true,
            SessionStreamItem::Opened(_)
            | SessionStreamItem::Fact(..)
            | SessionStreamItem::Live(_)
            | SessionStreamItem::Lagged(_)
            | SessionStreamItem::Reset(_)
            | SessionStreamItem::Disconnected(_) => false,
        }
    }

    fn position_of_main_session(&self) -> Option<LogSeq> {
        match self {
            SessionStreamItem::Fact(_, cursor) => Some(cursor.position.seq),
            SessionStreamItem::Opened(_)
            | SessionStreamItem::Live(_)
            | SessionStreamItem::Lagged(_)
            | SessionStreamItem::Reset(_)
            | SessionStreamItem::Stopped(_)
            | SessionStreamItem::Closing(_)
            | SessionStreamItem::Disconnected(_) => None,
        }
    }

    fn is_turn_end_of(&self, session: SessionId) -> bool {
        match self {
            SessionStreamItem::Fact(record, _) => {
                record.session == session && matches!(record.fact, Fact::TurnEnded { .. })
            }
            SessionStreamItem::Opened(_)
            | SessionStreamItem::Live(_)
            | SessionStreamItem::Lagged(_)
            | SessionStreamItem::Reset(_)
            | SessionStreamItem::Stopped(_)
            | SessionStreamItem::Closing(_)
            | SessionStreamItem::Disconnected(_) => false,
        }
    }
}

impl StreamItem for HostStreamItem {
    fn encode(&self) -> Option<Bytes> {
        encode_frame(frame::HOST, self)
    }

    fn is_last(&self) -> bool {
        false
    }

    fn position_of_main_session(&self) -> Option<LogSeq> {
        None
    }

    fn is_turn_end_of(&self, _session: SessionId) -> bool {
        false
    }
}

fn encode_closing(reason: StreamClosingReason) -> Bytes {
    let retry_ms = match reason {
        StreamClosingReason::ServerStopping => Some(RESTART_MS),
        StreamClosingReason::TokenRevoked
        | StreamClosingReason::SessionClosed
        | StreamClosingReason::TurnEnded => None,
    };
    encode_frame(frame::CLOSING, &StreamClosing { reason, retry_ms }).unwrap_or_default()
}

fn encode_frame(name: &str, data: &impl Serialize) -> Option<Bytes> {
    encode_with_id(name, None::<&u64>, data)
}

/// Encodes a frame. JSON text has no line breaks, so its data is one line.
fn encode_with_id(name: &str, id: Option<&impl Display>, data: &impl Serialize) -> Option<Bytes> {
    let write = || -> Result<Vec<u8>, serde_json::Error> {
        let mut frame = Vec::with_capacity(512);
        writeln!(frame, "event: {name}").map_err(serde_json::Error::io)?;
        if let Some(id) = id {
            writeln!(frame, "id: {id}").map_err(serde_json::Error::io)?;
        }
        frame.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut frame, data)?;
        frame.extend_from_slice(b"\n\n");
        Ok(frame)
    };
    match write() {
        Ok(mut frame) => {
            if frame.capacity() - frame.len() > MAX_SPARE_BYTES {
                frame.shrink_to_fit();
            }
            Some(Bytes::from(frame))
        }
        Err(error) => {
            tracing::error!(%error, name, "an event could not be encoded");
            None
        }
    }
}
