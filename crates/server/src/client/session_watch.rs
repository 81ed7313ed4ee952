//! The event stream of a session that survives lost connections.
//!
//! Facts are yielded once and in order, whatever happens to connections: each one moves the cursor
//! from which the next connection goes on. Start reading at [`SessionWatch::next_item`].

use super::ServerHttp;
use super::event_reader::{EventReader, is_final};
use super::reconnect_delay::ReconnectDelay;
use super::session_frames::{FrameEffect, SessionFrames};
use crate::routes::{HttpRequestParts, RequestBody, Route, RouteKind, invalid};
use crate::{Caller, ClientAttendance, WatchOptions};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use url::form_urlencoded;
use windlass_protocol::session_stream::{SessionStreamItem, StreamClosing, StreamClosingReason};
use windlass_protocol::{RequestError, SessionId};

/// Watches a session. Fails if the first connection cannot be made.
pub(super) async fn watch(
    connection: Arc<ServerHttp>,
    caller: Caller,
    session: SessionId,
    options: WatchOptions,
) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
    let mut watch = SessionWatch::new(connection, caller, session, options);
    watch.reader = Some(watch.open().await?);
    let items = stream::unfold(watch, |mut watch| async move {
        watch.next_item().await.map(|item| (item, watch))
    });
    Ok(items.boxed())
}

/// The state of a watched session between two items.
struct SessionWatch {
    connection: Arc<ServerHttp>,
    caller: Caller,
    session: SessionId,
    user: ClientAttendance,
    without_live_events: bool,
    frames: SessionFrames,
    reader: Option<EventReader>,
    delay: ReconnectDelay,
    /// Least time before the next attempt, as the server asked for.
    retry_after: Duration,
    is_over: bool,
}

impl SessionWatch {
    fn new(
        connection: Arc<ServerHttp>,
        caller: Caller,
        session: SessionId,
        options: WatchOptions,
    ) -> SessionWatch {
        SessionWatch {
            connection,
            caller,
            session,
            user: options.user,
            without_live_events: options.without_live_events,
            frames: SessionFrames::new(session, &options),
            reader: None,
            delay: ReconnectDelay::default(),
            retry_after: Duration::ZERO,
            is_over: false,
        }
    }

    /// Opens a connection that goes on after the events that were yielded.
    async fn open(&self) -> Result<EventReader, RequestError> {
        EventReader::open(&self.connection, &self.caller, &self.request_parts()?).await
    }

    fn request_parts(&self) -> Result<HttpRequestParts, RequestError> {
        let route = Route::of_kind(RouteKind::SessionEvents);
        let route = route.ok_or_else(|| invalid("This route does not exist."))?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(cursor) = &self.frames.cursor {
            query.append_pair("after", &cursor.to_string());
        }
        match self.user {
            ClientAttendance::Unknown => {}
            ClientAttendance::Present => drop(query.append_pair("user", "true")),
            ClientAttendance::Absent => drop(query.append_pair("user", "false")),
        }
        if self.without_live_events {
            query.append_pair("live", "none");
        }
        Ok(HttpRequestParts {
            method: route.method.clone(),
            path: route.path.replace("{id}", &self.session.to_string()),
            query: query.finish(),
            body: RequestBody::None,
        })
    }

    /// Returns the next item. It connects again for ever, unless the server refuses the client.
    async fn next_item(&mut self) -> Option<SessionStreamItem> {
        if self.is_over {
            return None;
        }
        loop {
            let Some(reader) = &mut self.reader else {
                match self.reconnect().await {
                    Ok(reader) => {
                        self.reader = Some(reader);
                        continue;
                    }
                    Err(error) => {
                        self.is_over = true;
                        return Some(last_item(error));
                    }
                }
            };
            let effect = match reader.next_frame().await {
                Ok(frame) => self.frames.apply(&frame),
                Err(reason) => FrameEffect::Disconnect(reason, Duration::ZERO),
            };
            match effect {
                FrameEffect::Yield(item) => {
                    if let SessionStreamItem::Opened(_) = &item {
                        self.delay.reset();
                    }
                    return Some(item);
                }
                FrameEffect::YieldLast(item) => {
                    self.is_over = true;
                    return Some(item);
                }
                FrameEffect::Skip => {}
                FrameEffect::Disconnect(reason, retry_after) => {
                    self.reader = None;
                    self.retry_after = retry_after;
                    return Some(SessionStreamItem::Disconnected(reason));
                }
            }
        }
    }

    /// Connects again, however long it takes. Returns the error if the server refuses it for good.
    async fn reconnect(&mut self) -> Result<EventReader, RequestError> {
        loop {
            let delay = self.delay.next_delay().max(self.retry_after);
            self.retry_after = Duration::ZERO;
            tokio::time::sleep(delay).await;
            match self.open().await {
                Ok(reader) => return Ok(reader),
                Err(error) if is_final(&error) => return Err(error),
                Err(RequestError::TooMany { retry_after_ms, .. }) => {
                    self.retry_after = Duration::from_millis(retry_after_ms);
                }
                Err(error) => tracing::debug!(%error, "the server is not back yet"),
            }
        }
    }
}

/// Returns the last item of a stream that the server refuses to go on with.
fn last_item(error: RequestError) -> SessionStreamItem {
    let reason = match error {
        RequestError::Unauthorized | RequestError::Forbidden { .. } => {
            StreamClosingReason::TokenRevoked
        }
        RequestError::NotFound { .. } => StreamClosingReason::SessionClosed,
        RequestError::Failed { .. }
        | RequestError::Invalid { .. }
        | RequestError::Conflict { .. }
        | RequestError::TooMany { .. }
        | RequestError::Unavailable { .. } => return SessionStreamItem::Stopped(error.into()),
    };
    SessionStreamItem::Closing(StreamClosing { reason, retry_ms: None })
}
