//! The stream of a session that any node of the fleet may have, and that may move between nodes.
//!
//! The events come from this process if the session is open here, from the node that has it, or else
//! from the log. When the session moves, the stream goes on from its cursor with another source.

use super::SessionHub;
use super::closed_session::{closed_opening, next_log_item};
use crate::fleet_node::{FleetNode, SessionPlace};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;
use windlass_engine::SessionWatcher;
use windlass_protocol::session_stream::{SessionStreamItem, StreamClosing, StreamClosingReason};
use windlass_protocol::{EventCursor, Fault, LogPosition, RequestError, SessionId};
use windlass_server::{Caller, FrontendService, WatchOptions};

/// Time between two looks for a better source of events. A look interrupts the watcher of the log,
/// which reads once a second.
const PLACE_INTERVAL: Duration = Duration::from_millis(1_500);

/// The state of the stream.
struct FleetStream {
    hub: Arc<SessionHub>,
    fleet: Arc<FleetNode>,
    session: SessionId,
    caller: Caller,
    options: WatchOptions,
    /// The last event that was yielded; the next source begins after it.
    cursor: EventCursor,
    source: Source,
    /// The time of the next look for a better source.
    look_at: Instant,
    /// True if the last opening was of a live source; `None` before the first one.
    was_live: Option<bool>,
    has_ended: bool,
}

/// The source of the events of a session.
enum Source {
    /// To be found. Without nodes, it is this process or the log.
    None { without_nodes: bool },
    /// This process.
    Here(BoxStream<'static, SessionStreamItem>),
    /// Another node.
    Node(Uuid, BoxStream<'static, SessionStreamItem>),
    /// The log.
    Log(Box<SessionWatcher>),
}

impl SessionHub {
    /// Watches a session that any node may have.
    pub(super) async fn watch_in_fleet(
        &self,
        fleet: &Arc<FleetNode>,
        caller: &Caller,
        session: SessionId,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        let head = match self.workspace_of(session).await {
            Ok(workspace) => {
                workspace.state().inspect_engine().await?.last_position(session).await?
            }
            // A session without a fact is known to its node only.
            Err(error) => match fleet.place_of(session).await? {
                SessionPlace::Node(..) => LogPosition::START,
                SessionPlace::NotElsewhere | SessionPlace::Unreachable => return Err(error),
            },
        };
        let hub = self.own.upgrade().ok_or_else(|| RequestError::Unavailable {
            text: "the server is stopping".to_owned(),
        })?;
        let cursor = options.after.clone().unwrap_or_else(|| head.into());
        let stream = FleetStream {
            hub,
            fleet: Arc::clone(fleet),
            session,
            caller: caller.clone(),
            options,
            cursor,
            source: Source::None { without_nodes: false },
            look_at: Instant::now() + PLACE_INTERVAL,
            was_live: None,
            has_ended: false,
        };
        let items = stream::unfold(stream, |mut stream| async move {
            stream.next_item().await.map(|item| (item, stream))
        });
        Ok(items.boxed())
    }
}

impl FleetStream {
    async fn next_item(&mut self) -> Option<SessionStreamItem> {
        loop {
            if self.has_ended {
                return None;
            }
            let item = match &mut self.source {
                Source::None { without_nodes } => {
                    let without_nodes = *without_nodes;
                    match self.find_source(without_nodes).await {
                        Ok(Some(item @ SessionStreamItem::Closing(_))) => return Some(item),
                        Ok(Some(item)) => Some(item),
                        Ok(None) => continue,
                        Err(error) => {
                            self.has_ended = true;
                            return Some(SessionStreamItem::Stopped(error.into()));
                        }
                    }
                }
                Source::Here(items) => items.next().await,
                Source::Node(_, items) => {
                    match tokio::time::timeout_at(self.look_at, items.next()).await {
                        Ok(item) => item,
                        Err(_) => {
                            self.look_for_better_source().await;
                            continue;
                        }
                    }
                }
                Source::Log(watcher) => {
                    match tokio::time::timeout_at(self.look_at, next_log_item(watcher)).await {
                        Ok(Ok(item)) => item,
                        Ok(Err(fault)) => {
                            self.has_ended = true;
                            return Some(SessionStreamItem::Stopped(fault));
                        }
                        Err(_) => {
                            self.look_for_better_source().await;
                            continue;
                        }
                    }
                }
            };
            if let Some(item) = self.pass_on(item) {
                return Some(item);
            }
        }
    }

    /// Returns an item for the client, and leaves a source that has ended.
    fn pass_on(&mut self, item: Option<SessionStreamItem>) -> Option<SessionStreamItem> {
        match item {
            Some(SessionStreamItem::Opened(opening)) => {
                let earlier = self.was_live.replace(opening.is_live);
                (earlier != Some(opening.is_live)).then_some(SessionStreamItem::Opened(opening))
            }
            Some(SessionStreamItem::Fact(record, cursor)) => {
                self.cursor = cursor.clone();
                Some(SessionStreamItem::Fact(record, cursor))
            }
            Some(SessionStreamItem::Reset(reset)) => {
                match reset.session == self.session {
                    true => self.cursor.position = reset.to,
                    false => drop(self.cursor.subagents.insert(reset.session, reset.to)),
                }
                Some(SessionStreamItem::Reset(reset))
            }
            Some(SessionStreamItem::Disconnected(_)) => {
                if let Source::Node(node, _) = &self.source {
                    self.fleet.note_failure(*node);
                }
                self.leave_source();
                None
            }
            // The session has moved, or is closed on this node. Its events go on elsewhere.
            None
            | Some(
                SessionStreamItem::Closing(_)
                | SessionStreamItem::Stopped(Fault::SessionMoved { .. }),
            ) => {
                self.leave_source();
                None
            }
            Some(item @ SessionStreamItem::Stopped(_)) => {
                self.has_ended = true;
                Some(item)
            }
            Some(item) => Some(item),
        }
    }

    fn leave_source(&mut self) {
        // It may end the same way again, until the database knows where the session is.
        let without_nodes = matches!(self.source, Source::Node(..));
        self.source = Source::None { without_nodes };
    }

    /// Leaves the source if another one is better: the session has moved, perhaps from a node that
    /// does not know it yet.
    async fn look_for_better_source(&mut self) {
        let is_here = self.hub.open_session(self.session).is_some();
        let place = self.fleet.place_of(self.session).await;
        self.look_at = Instant::now() + PLACE_INTERVAL;
        let is_best = match (&self.source, place) {
            _ if is_here => false,
            // Without the database, nothing is known to be better.
            (_, Err(_)) => true,
            (Source::Node(node, _), Ok(SessionPlace::Node(holder, _))) => *node == holder,
            // The stream itself is alive.
            (Source::Node(..), Ok(SessionPlace::Unreachable)) => true,
            (Source::Log(_), Ok(place)) => !matches!(place, SessionPlace::Node(..)),
            (_, Ok(_)) => false,
        };
        if !is_best {
            self.source = Source::None { without_nodes: false };
        }
    }

    /// Finds the source of the next events. Returns an opening if it is the log, which has none of its
    /// own.
    async fn find_source(
        &mut self,
        without_nodes: bool,
    ) -> Result<Option<SessionStreamItem>, RequestError> {
        let options = WatchOptions { after: Some(self.cursor.clone()), ..self.options.clone() };
        if let Some(open) = self.hub.open_session(self.session) {
            self.source = Source::Here(open.watch(self.caller.client.clone(), options));
            return Ok(None);
        }
        if !without_nodes
            && let Ok(SessionPlace::Node(node, remote)) = self.fleet.place_of(self.session).await
        {
            match remote.watch_session(&self.caller, self.session, options).await {
                Ok(items) => {
                    self.source = Source::Node(node, items);
                    return Ok(None);
                }
                Err(error) => {
                    tracing::debug!(%error, %node, "the stream of a node was not opened");
                    if let RequestError::Unavailable { .. } = error {
                        self.fleet.note_failure(node);
                    }
                }
            }
        }
        let workspace = match self.hub.workspace_of(self.session).await {
            // It was deleted.
            Err(RequestError::NotFound { .. }) if self.was_live.is_some() => {
                self.has_ended = true;
                let reason = StreamClosingReason::SessionClosed;
                let closing = StreamClosing { reason, retry_ms: None };
                return Ok(Some(SessionStreamItem::Closing(closing)));
            }
            workspace => workspace?,
        };
        let engine = workspace.state().inspect_engine().await?;
        let watcher = engine.watch_log(self.session, self.cursor.clone());
        self.source = Source::Log(Box::new(watcher));
        let head = engine.last_position(self.session).await?;
        Ok(Some(SessionStreamItem::Opened(closed_opening(self.session, head))))
    }
}
