//! The event stream of a host that survives lost connections.
//!
//! A new connection begins with all open sessions. Those that were closed in the meantime are found
//! by comparison with the sessions that the client knows.

use super::RemoteHost;
use super::event_reader::{EventReader, is_final};
use super::reconnect_delay::ReconnectDelay;
use crate::event_stream::frame;
use crate::routes::{HttpRequestParts, RequestBody, Route, RouteKind, invalid};
use crate::{Caller, FrontendService};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::{BTreeSet, VecDeque};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::HostStreamItem;
use windlass_protocol::{RequestError, SessionId};

/// Number of notices that are recognized when they come again: more than a host remembers.
const MAX_KNOWN_NOTICES: usize = 200;

/// Watches a host. Fails if the first connection cannot be made.
pub(super) async fn watch(
    host: RemoteHost,
    caller: Caller,
) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
    let reader = Some(open(&host, &caller).await?);
    let (open_sessions, closed, notices, delay) = Default::default();
    let watch = HostWatch { host, caller, reader, open_sessions, closed, notices, delay };
    let items = stream::unfold(watch, |mut watch| async move {
        watch.next_item().await.map(|item| (item, watch))
    });
    Ok(items.boxed())
}

async fn open(host: &RemoteHost, caller: &Caller) -> Result<EventReader, RequestError> {
    let route = Route::of_kind(RouteKind::HostEvents);
    let route = route.ok_or_else(|| invalid("This route does not exist."))?;
    let (method, path) = (route.method.clone(), route.path.to_owned());
    let parts = HttpRequestParts { method, path, query: String::new(), body: RequestBody::None };
    EventReader::open(&host.connection, caller, &parts).await
}

/// The state of a watched host between two items.
struct HostWatch {
    host: RemoteHost,
    caller: Caller,
    reader: Option<EventReader>,
    open_sessions: BTreeSet<SessionId>,
    /// Sessions that were closed while there was no connection.
    closed: VecDeque<SessionId>,
    /// Notices that were yielded. A new connection begins with those of before.
    notices: VecDeque<HostStreamItem>,
    delay: ReconnectDelay,
}

impl HostWatch {
    async fn next_item(&mut self) -> Option<HostStreamItem> {
        loop {
            if let Some(session) = self.closed.pop_front() {
                return Some(HostStreamItem::SessionClosed { session });
            }
            let Some(reader) = &mut self.reader else {
                self.reconnect().await?;
                continue;
            };
            let message = match reader.next_frame().await {
                Ok(message) => message,
                Err(error) => {
                    tracing::debug!(error, "the connection to the server was lost");
                    self.reader = None;
                    continue;
                }
            };
            self.delay.reset();
            if message.event != frame::HOST {
                continue;
            }
            // Unreadable items are those of a newer server.
            let Ok(item) = serde_json::from_str(&message.data) else { continue };
            match &item {
                HostStreamItem::Session { state } => {
                    self.open_sessions.insert(state.session);
                }
                HostStreamItem::SessionClosed { session } => {
                    self.open_sessions.remove(session);
                }
                HostStreamItem::Notice { .. } => {
                    if self.notices.contains(&item) {
                        continue;
                    }
                    self.notices.push_back(item.clone());
                    if self.notices.len() > MAX_KNOWN_NOTICES {
                        self.notices.pop_front();
                    }
                }
                HostStreamItem::Servers { .. } => {}
            }
            return Some(item);
        }
    }

    /// Connects again, however long it takes. Returns `None` if the server refuses it.
    async fn reconnect(&mut self) -> Option<()> {
        loop {
            tokio::time::sleep(self.delay.next_delay()).await;
            match self.try_reconnect().await {
                Ok(()) => return Some(()),
                Err(error) if is_final(&error) => return None,
                Err(error) => tracing::debug!(%error, "the server is not back yet"),
            }
        }
    }

    async fn try_reconnect(&mut self) -> Result<(), RequestError> {
        let reader = open(&self.host, &self.caller).await?;
        let answer = self.host.request(&self.caller, FrontendRequest::ListOpenSessions).await?;
        let HostResponse::OpenSessions { sessions: still_open } = answer else {
            let text = "The server did not list its open sessions.".to_owned();
            return Err(RequestError::Unavailable { text });
        };
        let still_open: BTreeSet<SessionId> =
            still_open.into_iter().map(|state| state.session).collect();
        self.closed.extend(self.open_sessions.difference(&still_open));
        self.open_sessions.retain(|session| still_open.contains(session));
        self.reader = Some(reader);
        Ok(())
    }
}
