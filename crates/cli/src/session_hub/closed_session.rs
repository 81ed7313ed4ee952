//! The stream of a session that is not open in this process: another one may run it.
//!
//! Its facts are read from the log as they appear. When the session is opened here, the stream goes
//! on with its events.

use super::OpenSessions;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::sync::Arc;
use tokio::sync::watch;
use windlass_engine::{Engine, SessionWatcher, WatchedEvent};
use windlass_protocol::session_stream::{SessionStreamItem, StreamLag, StreamOpening, StreamReset};
use windlass_protocol::{ClientInfo, Event, Fault, LogPosition, SessionId};
use windlass_server::WatchOptions;

/// The state of the stream until the session is open here.
struct ClosedSessionStream {
    session: SessionId,
    watcher: SessionWatcher,
    open_sessions: watch::Receiver<OpenSessions>,
    client: ClientInfo,
    options: WatchOptions,
    opened: Option<BoxStream<'static, SessionStreamItem>>,
    has_ended: bool,
}

/// Watches a session that is not open in this process.
pub(super) fn watch_closed_session(
    (session, head): (SessionId, LogPosition),
    (engine, open_sessions): (Arc<Engine>, watch::Receiver<OpenSessions>),
    (client, options): (ClientInfo, WatchOptions),
) -> BoxStream<'static, SessionStreamItem> {
    let from_now = || head.into();
    let cursor = options.after.clone().unwrap_or_else(from_now);
    let watcher = engine.watch_log(session, cursor);
    let opening = SessionStreamItem::Opened(closed_opening(session, head));
    let (opened, has_ended) = (None, false);
    let state =
        ClosedSessionStream { session, watcher, open_sessions, client, options, opened, has_ended };
    let items = stream::unfold(state, |mut state| async move {
        state.next_item().await.map(|item| (item, state))
    });
    stream::iter([opening]).chain(items).boxed()
}

impl ClosedSessionStream {
    async fn next_item(&mut self) -> Option<SessionStreamItem> {
        loop {
            if let Some(opened) = &mut self.opened {
                return opened.next().await;
            }
            if self.has_ended {
                return None;
            }
            let (session, is_open) = (self.session, |all: &OpenSessions, session| {
                OpenSessions::contains_key(all, &session)
            });
            let item = tokio::select! {
                biased;
                Ok(open) = self.open_sessions.wait_for(|all| is_open(all, session)) => {
                    let open = open.get(&session).cloned();
                    let after = Some(self.watcher.cursor().clone());
                    let options = WatchOptions { after, ..self.options.clone() };
                    self.opened = open.map(|open| open.watch(self.client.clone(), options));
                    continue;
                }
                item = next_log_item(&mut self.watcher) => item,
            };
            return item.unwrap_or_else(|fault| {
                self.has_ended = true;
                Some(SessionStreamItem::Stopped(fault))
            });
        }
    }
}

/// Returns the opening of the stream of a session that is only read.
pub(super) fn closed_opening(session: SessionId, head: LogPosition) -> StreamOpening {
    StreamOpening {
        session,
        head: head.seq,
        epoch: head.epoch,
        is_busy: false,
        is_live: false,
        open_questions: Vec::new(),
        clients: Vec::new(),
    }
}

/// Returns the next item of a log.
pub(super) async fn next_log_item(
    watcher: &mut SessionWatcher,
) -> Result<Option<SessionStreamItem>, Fault> {
    loop {
        return Ok(match watcher.next_item().await {
            Ok(Some(WatchedEvent::Event(event))) => match &*event {
                Event::Fact(record) => {
                    let cursor = watcher.cursor().clone();
                    Some(SessionStreamItem::Fact(Box::new(record.clone()), cursor))
                }
                Event::Live(_) => continue,
            },
            Ok(Some(WatchedEvent::Lagged { events })) => {
                Some(SessionStreamItem::Lagged(StreamLag { events }))
            }
            Ok(Some(WatchedEvent::Reset { session, to })) => {
                Some(SessionStreamItem::Reset(StreamReset { session, to }))
            }
            Ok(None) => None,
            Err(error) => return Err(Fault::Storage { message: error.to_string() }),
        });
    }
}
