//! A session that is open in this process, and the streams of its events.
//!
//! A stream outlives the loop of the session: when the session is opened again with another config,
//! the stream goes on from its cursor.

use crate::workspace_host::WorkspaceHost;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use windlass_engine::{
    AttendanceGuard, SessionActivity, SessionHandle, SessionWatcher, WatchedEvent,
};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::session_stream::{
    OpenSessionState, SessionStreamItem, StreamClosing, StreamClosingReason, StreamLag,
    StreamOpening, StreamReset,
};
use windlass_protocol::{ClientInfo, Event, EventCursor, Fault, LogSeq, SessionId};
use windlass_server::{ClientAttendance, WatchOptions};

/// A session that is open in this process.
pub(crate) struct OpenSession {
    pub(crate) session: SessionId,
    pub(crate) workspace: Arc<WorkspaceHost>,
    pub(super) phase: watch::Sender<SessionPhase>,
    /// The clients that watch the session, by the number of their stream.
    clients: watch::Sender<BTreeMap<u64, ClientInfo>>,
    last_stream: Mutex<u64>,
    /// The place among the open sessions; `None` once the session is closed.
    room: Mutex<Option<OwnedSemaphorePermit>>,
    pub(super) opened_at: Instant,
    is_in_fleet: bool,
    /// The time since when the session is idle and has no clients, as of the last change.
    pub(super) idle_since: Mutex<Instant>,
    /// Held while the shell steps of a custom command run.
    pub(super) command_steps: tokio::sync::Mutex<()>,
    /// Held while the checkout of the session is saved.
    pub(super) saving: tokio::sync::Mutex<()>,
}

/// The phase of an open session.
#[derive(Clone)]
pub(super) enum SessionPhase {
    /// Its loop runs.
    Running(SessionHandle),
    /// Its loop is being closed, perhaps to be opened again.
    Suspended,
    /// It is closed; with the fault that stopped it, if any.
    Closed(Option<Fault>),
}

impl OpenSession {
    pub(super) fn new(
        workspace: Arc<WorkspaceHost>,
        handle: SessionHandle,
        room: OwnedSemaphorePermit,
        is_in_fleet: bool,
    ) -> OpenSession {
        let now = Instant::now();
        OpenSession {
            session: handle.session,
            workspace,
            phase: watch::Sender::new(SessionPhase::Running(handle)),
            clients: watch::Sender::default(),
            last_stream: Mutex::default(),
            room: Mutex::new(Some(room)),
            opened_at: now,
            is_in_fleet,
            idle_since: Mutex::new(now),
            command_steps: tokio::sync::Mutex::default(),
            saving: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the handle of the session, unless it is closed.
    pub(super) fn handle(&self) -> Option<SessionHandle> {
        match &*self.phase.borrow() {
            SessionPhase::Running(handle) => Some(handle.clone()),
            SessionPhase::Suspended | SessionPhase::Closed(_) => None,
        }
    }

    /// Returns true if this is the loop of the session, and has not been told to end.
    pub(super) fn is_running(&self, handle: &SessionHandle) -> bool {
        self.handle().is_some_and(|current| current.is_same_loop(handle))
    }

    /// Ends the session, and leaves its place to another one.
    pub(super) fn end(&self, fault: Option<Fault>) {
        self.phase.send_replace(SessionPhase::Closed(fault));
        drop(lock(&self.room).take());
    }

    /// Waits while the session is being opened again, and returns its handle unless it is closed.
    pub(super) async fn running_handle(&self) -> Option<SessionHandle> {
        let mut phase = self.phase.subscribe();
        let settled = phase.wait_for(|phase| !matches!(phase, SessionPhase::Suspended)).await;
        match settled.as_deref() {
            Ok(SessionPhase::Running(handle)) => Some(handle.clone()),
            Ok(SessionPhase::Suspended | SessionPhase::Closed(_)) | Err(_) => None,
        }
    }

    /// Returns the last position of the log, unless the session is closed.
    pub(crate) fn head(&self) -> Option<LogSeq> {
        Some(self.handle()?.activity().borrow().head)
    }

    /// Returns a receiver that reports when clients come and go.
    pub(super) fn subscribe_to_clients(&self) -> watch::Receiver<BTreeMap<u64, ClientInfo>> {
        self.clients.subscribe()
    }

    /// Returns true if a client watches the session.
    pub(super) fn is_watched(&self) -> bool {
        !self.clients.borrow().is_empty()
    }

    /// Returns true if the session has no clients and does nothing. In a fleet, a session that waits
    /// for its user does nothing: the answer opens it again.
    pub(super) fn is_idle(&self) -> bool {
        let is_resting = |activity: &SessionActivity| {
            let is_at_rest = !activity.is_busy || (self.is_in_fleet && activity.is_waiting);
            is_at_rest && activity.background_count == 0
        };
        !self.is_watched()
            && self.handle().is_some_and(|handle| is_resting(&handle.activity().borrow()))
    }

    /// Returns the state of the session for lists; `None` while it is not running.
    pub(super) fn state(&self) -> Option<OpenSessionState> {
        let handle = self.handle()?;
        let activity = handle.activity().borrow().clone();
        Some(OpenSessionState {
            session: self.session,
            workspace: self.workspace.name(),
            title: activity.title,
            is_busy: activity.is_busy,
            open_questions: handle.open_questions().borrow().keys().copied().collect(),
            background_count: activity.background_count,
            head: activity.head,
            clients: self.clients.borrow().values().cloned().collect(),
            is_in_server: false,
        })
    }

    /// Watches the session for a client.
    pub(super) fn watch(
        self: &Arc<Self>,
        client: ClientInfo,
        options: WatchOptions,
    ) -> BoxStream<'static, SessionStreamItem> {
        let number = {
            let mut last = lock(&self.last_stream);
            *last += 1;
            *last
        };
        self.clients.send_modify(|clients| drop(clients.insert(number, client)));
        let state = SessionStream {
            phase: self.phase.subscribe(),
            source: None,
            cursor: options.after,
            user: options.user,
            without_live_events: options.without_live_events,
            is_open: false,
            has_ended: false,
            _presence: ClientPresence { open: Arc::clone(self), number },
        };
        stream::unfold(state, SessionStream::next).boxed()
    }
}

/// The presence of a client at a session, until this is dropped.
struct ClientPresence {
    open: Arc<OpenSession>,
    number: u64,
}

impl Drop for ClientPresence {
    fn drop(&mut self) {
        self.open.clients.send_modify(|clients| drop(clients.remove(&self.number)));
    }
}

/// The state of a stream of events.
struct SessionStream {
    phase: watch::Receiver<SessionPhase>,
    /// The events of the current loop of the session.
    source: Option<(SessionWatcher, Option<AttendanceGuard>)>,
    /// Events after this cursor follow; `None` until the first loop is found.
    cursor: Option<EventCursor>,
    user: ClientAttendance,
    without_live_events: bool,
    /// `SessionStreamItem::Opened` was sent.
    is_open: bool,
    has_ended: bool,
    _presence: ClientPresence,
}

impl SessionStream {
    async fn next(mut self) -> Option<(SessionStreamItem, SessionStream)> {
        loop {
            if self.has_ended {
                return None;
            }
            let Some((watcher, _)) = &mut self.source else {
                if let Some(item) = self.find_source().await {
                    return Some((item, self));
                }
                continue;
            };
            match watcher.next_item().await {
                Ok(Some(WatchedEvent::Event(event))) => {
                    if let Some(item) = self.event_item(&event) {
                        return Some((item, self));
                    }
                }
                Ok(Some(WatchedEvent::Lagged { events })) => {
                    return Some((SessionStreamItem::Lagged(StreamLag { events }), self));
                }
                Ok(Some(WatchedEvent::Reset { session, to })) => {
                    return Some((SessionStreamItem::Reset(StreamReset { session, to }), self));
                }
                Ok(None) => {
                    self.cursor = Some(watcher.cursor().clone());
                    self.source = None;
                    // Who closes the session says what comes next.
                    if matches!(*self.phase.borrow(), SessionPhase::Running(_))
                        && self.phase.changed().await.is_err()
                    {
                        return None;
                    }
                }
                Err(error) => {
                    self.has_ended = true;
                    let fault = Fault::Storage { message: error.to_string() };
                    return Some((SessionStreamItem::Stopped(fault), self));
                }
            }
        }
    }

    /// Subscribes to the running session, or says that it is closed.
    async fn find_source(&mut self) -> Option<SessionStreamItem> {
        let is_settled = |phase: &SessionPhase| !matches!(phase, SessionPhase::Suspended);
        let phase = self.phase.wait_for(is_settled).await.map(|phase| phase.clone());
        self.phase.mark_unchanged();
        match phase {
            Ok(SessionPhase::Running(handle)) => {
                let activity = handle.activity().borrow().clone();
                let head = handle.log_position(activity.head).await;
                let cursor = self.cursor.clone().unwrap_or_else(|| head.into());
                let guard = match self.user {
                    ClientAttendance::Unknown => None,
                    ClientAttendance::Present => Some(handle.attend()),
                    ClientAttendance::Absent => Some(handle.attend_without_user()),
                };
                self.cursor = Some(cursor.clone());
                self.source = Some((handle.watch(cursor).await, guard));
                if self.is_open {
                    return None;
                }
                self.is_open = true;
                let open = &self._presence.open;
                Some(SessionStreamItem::Opened(StreamOpening {
                    session: open.session,
                    head: head.seq,
                    epoch: head.epoch,
                    is_busy: activity.is_busy,
                    is_live: true,
                    open_questions: handle.read_open_questions().await,
                    clients: open.clients.borrow().values().cloned().collect(),
                }))
            }
            Ok(SessionPhase::Closed(Some(fault))) => {
                self.has_ended = true;
                Some(SessionStreamItem::Stopped(fault))
            }
            Ok(SessionPhase::Closed(None) | SessionPhase::Suspended) | Err(_) => {
                self.has_ended = true;
                let reason = StreamClosingReason::SessionClosed;
                Some(SessionStreamItem::Closing(StreamClosing { reason, retry_ms: None }))
            }
        }
    }

    fn event_item(&self, event: &Event) -> Option<SessionStreamItem> {
        match event {
            Event::Fact(record) => {
                let (watcher, _) = self.source.as_ref()?;
                let cursor = watcher.cursor().clone();
                Some(SessionStreamItem::Fact(Box::new(record.clone()), cursor))
            }
            Event::Live(_) if self.without_live_events => None,
            Event::Live(record) => Some(SessionStreamItem::Live(Box::new(record.clone()))),
        }
    }
}
