//! Event stream of a session: facts in order without gaps, live events as long as the watcher keeps
//! up.

use crate::lineage::MAX_SUBAGENT_DEPTH;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};
use windlass_protocol::{
    Event, EventCursor, Fact, FactRecord, LiveEventRecord, LogPosition, LogSeq, SessionId,
};
use windlass_storage::{Log, PageLimit, StorageError};

/// Maximum size of a page of facts that a watcher holds.
const WATCHER_PAGE: PageLimit = PageLimit { facts: 64, bytes: 1 << 20 };

/// Interval at which the log of a session in another process is read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Number of facts from which on no further page is added to those that a watcher holds.
const MAX_BACKLOG_FACTS: usize = 256;

/// A request to the loop of a session for its events from now on.
pub(crate) type SubscribeRequest = oneshot::Sender<Subscription>;

/// The events of a session from one moment on.
pub(crate) struct Subscription {
    pub(crate) events: broadcast::Receiver<Arc<Event>>,
    /// Last position of the log at that moment.
    pub(crate) head: LogSeq,
    /// The `LiveEvent::PartialStep` at that moment, if a model request is under way.
    pub(crate) partial_step: Option<LiveEventRecord>,
}

/// Receives all events of a session from a cursor on, and those of its subagents. A watcher that
/// falls behind loses live events but never facts: it reads those from the log. It never slows the
/// session down, and does not keep it open.
pub struct SessionWatcher {
    log: Arc<dyn Log>,
    session: SessionId,
    subscriptions: mpsc::Sender<SubscribeRequest>,
    /// `None` after falling behind, until the next subscription.
    events: Option<broadcast::Receiver<Arc<Event>>>,
    cursor: EventCursor,
    /// Positions in the logs of subagents that have ended, in case they are resumed.
    ended_subagents: BTreeMap<SessionId, LogPosition>,
    /// Ended subagents whose logs may continue, to be read once more.
    unread_subagents: BTreeSet<SessionId>,
    /// Last position to read from the log of the session; `events` has the facts after it.
    read_until: LogSeq,
    /// Positions of `cursor` that the log may no longer have.
    unchecked: VecDeque<SessionId>,
    /// Facts read from the log and not yet returned.
    backlog: VecDeque<FactRecord>,
    /// The log may contain facts that `events` does not deliver.
    is_behind: bool,
    /// Returned when the watcher has caught up.
    partial_step: Option<LiveEventRecord>,
    closed: bool,
    /// Another process runs the session: its facts are read from the log as they appear.
    polls_log: bool,
}

/// An item of the stream of a [`SessionWatcher`].
#[derive(Clone, Debug, PartialEq)]
pub enum WatchedEvent {
    /// The next event.
    Event(Arc<Event>),
    /// The watcher fell behind and missed live events. Facts follow from the log.
    Lagged {
        /// Number of events that it could not receive in time, including facts.
        events: u64,
    },
    /// The end of the log was lost since the cursor was valid: the facts of this session after the
    /// position no longer exist, and others may follow in their place.
    Reset {
        /// The session, or a subagent of it.
        session: SessionId,
        /// Last position that is still valid.
        to: LogPosition,
    },
}

impl SessionWatcher {
    /// Creates a watcher that has been subscribed since before the session did anything.
    pub(crate) fn from_start(
        log: Arc<dyn Log>,
        session: SessionId,
        events: broadcast::Receiver<Arc<Event>>,
        position: LogPosition,
        subscriptions: mpsc::Sender<SubscribeRequest>,
    ) -> SessionWatcher {
        SessionWatcher {
            events: Some(events),
            read_until: position.seq,
            // The caller has just read this position from the log.
            unchecked: VecDeque::new(),
            ..SessionWatcher::unsubscribed(log, session, position.into(), subscriptions)
        }
    }

    /// Creates a watcher of the events after a cursor.
    pub(crate) async fn subscribe(
        log: Arc<dyn Log>,
        session: SessionId,
        cursor: EventCursor,
        subscriptions: mpsc::Sender<SubscribeRequest>,
    ) -> SessionWatcher {
        let mut watcher = SessionWatcher::unsubscribed(log, session, cursor, subscriptions);
        watcher.renew_subscription().await;
        watcher
    }

    /// Creates a watcher of a session that another process may run: it gets facts only, and gets
    /// them late. It never ends by itself.
    pub(crate) fn of_log(
        log: Arc<dyn Log>,
        session: SessionId,
        cursor: EventCursor,
    ) -> SessionWatcher {
        let (subscriptions, _) = mpsc::channel(1);
        let watcher = SessionWatcher::unsubscribed(log, session, cursor, subscriptions);
        SessionWatcher { closed: true, polls_log: true, ..watcher }
    }

    fn unsubscribed(
        log: Arc<dyn Log>,
        session: SessionId,
        cursor: EventCursor,
        subscriptions: mpsc::Sender<SubscribeRequest>,
    ) -> SessionWatcher {
        let unchecked = std::iter::once(session).chain(cursor.subagents.keys().copied()).collect();
        SessionWatcher {
            log,
            session,
            subscriptions,
            events: None,
            cursor,
            ended_subagents: BTreeMap::new(),
            unread_subagents: BTreeSet::new(),
            read_until: LogSeq::MAX,
            unchecked,
            backlog: VecDeque::new(),
            is_behind: true,
            partial_step: None,
            closed: false,
            polls_log: false,
        }
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the cursor after the last returned event.
    pub fn cursor(&self) -> &EventCursor {
        &self.cursor
    }

    /// Returns the next event, or `None` when the session is closed. It is cancel-safe: dropping
    /// the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Arc<Event>>, StorageError> {
        loop {
            match self.next_item().await? {
                Some(WatchedEvent::Event(event)) => return Ok(Some(event)),
                Some(WatchedEvent::Lagged { .. } | WatchedEvent::Reset { .. }) => {}
                None => return Ok(None),
            }
        }
    }

    /// Like `next`, but also says when live events were missed and when facts no longer exist.
    pub async fn next_item(&mut self) -> Result<Option<WatchedEvent>, StorageError> {
        loop {
            if let Some(session) = self.unchecked.front().copied() {
                if !self.is_own_or_subagent(session).await? {
                    self.unchecked.pop_front();
                    self.cursor.subagents.remove(&session);
                    continue;
                }
                let position = self.position_of(session).unwrap_or_default();
                let valid = self.log.resume_position(session, position).await?;
                self.unchecked.pop_front();
                if valid.seq != position.seq {
                    self.set_position(session, valid);
                    return Ok(Some(WatchedEvent::Reset { session, to: valid }));
                }
                continue;
            }
            if self.events.is_none() && !self.closed {
                self.renew_subscription().await;
            }
            if let Some(record) = self.backlog.pop_front() {
                self.mark_seen(&record);
                // Events of a subagent may have been missed together with its start.
                self.is_behind |= matches!(record.fact, Fact::SubagentStarted { .. });
                return Ok(Some(WatchedEvent::Event(Arc::new(Event::Fact(record)))));
            }
            if self.is_behind {
                self.read_backlog().await?;
                continue;
            }
            if let Some(record) = self.partial_step.take() {
                return Ok(Some(WatchedEvent::Event(Arc::new(Event::Live(record)))));
            }
            let Some(events) = &mut self.events else {
                if !self.polls_log {
                    return Ok(None);
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                self.is_behind = true;
                self.unread_subagents.extend(self.ended_subagents.keys());
                continue;
            };
            match events.recv().await {
                Ok(event) => match &*event {
                    Event::Live(_) => return Ok(Some(WatchedEvent::Event(event))),
                    Event::Fact(record) => match self.position_of(record.session) {
                        Some(seen) if record.seq <= seen.seq => {}
                        Some(seen) if record.seq > seen.seq + 1 => {
                            // The log has it and those before.
                            self.is_behind = true;
                            match record.session == self.session {
                                true => self.read_until = self.read_until.max(record.seq),
                                false => drop(self.unread_subagents.insert(record.session)),
                            }
                        }
                        Some(_) | None => {
                            self.mark_seen(record);
                            return Ok(Some(WatchedEvent::Event(event)));
                        }
                    },
                },
                Err(RecvError::Lagged(missed)) => {
                    (self.events, self.is_behind) = (None, true);
                    self.unread_subagents.extend(self.ended_subagents.keys());
                    return Ok(Some(WatchedEvent::Lagged { events: missed }));
                }
                Err(RecvError::Closed) => self.close(),
            }
        }
    }

    /// Subscribes to the events from now on. Those before are in the log.
    async fn renew_subscription(&mut self) {
        let (request, subscription) = oneshot::channel();
        let is_sent = self.subscriptions.send(request).await.is_ok();
        self.is_behind = true;
        match subscription.await {
            Ok(Subscription { events, head, partial_step }) if is_sent => {
                (self.events, self.partial_step) = (Some(events), partial_step);
                self.read_until = head;
            }
            Ok(_) | Err(_) => self.close(),
        }
    }

    /// Reads the rest from the log, because the session has ended.
    fn close(&mut self) {
        (self.events, self.closed, self.is_behind) = (None, true, true);
        self.read_until = LogSeq::MAX;
        self.unread_subagents.extend(self.ended_subagents.keys());
    }

    /// Returns true for the session itself and its subagents, at any depth. A cursor comes from a
    /// client, which must not read other sessions with it.
    async fn is_own_or_subagent(&self, mut session: SessionId) -> Result<bool, StorageError> {
        for _ in 0..=MAX_SUBAGENT_DEPTH {
            if session == self.session {
                return Ok(true);
            }
            let first = self.log.read_page(session, 0, PageLimit::facts(1)).await?;
            session = match first.first().map(|record| &record.fact) {
                Some(Fact::SessionOpened { parent: Some(parent), .. }) => parent.session,
                Some(_) | None => return Ok(false),
            };
        }
        Ok(false)
    }

    async fn read_backlog(&mut self) -> Result<(), StorageError> {
        let mut records = Vec::new();
        let seen = self.cursor.position.seq;
        if seen < self.read_until {
            records = self.log.read_page(self.session, seen, WATCHER_PAGE).await?;
            records.retain(|record| record.seq <= self.read_until);
        }
        let unread = self.unread_subagents.iter().filter_map(|subagent| {
            self.ended_subagents.get(subagent).map(|seen| (*subagent, *seen))
        });
        let subagents = self.cursor.subagents.iter().map(|(subagent, seen)| (*subagent, *seen));
        for (subagent, seen) in subagents.chain(unread) {
            if records.len() >= MAX_BACKLOG_FACTS {
                break;
            }
            records.extend(self.log.read_page(subagent, seen.seq, WATCHER_PAGE).await?);
        }
        self.is_behind = !records.is_empty();
        if !self.is_behind {
            self.unread_subagents.clear();
        }
        self.backlog = records.into();
        Ok(())
    }

    /// Returns the last position seen of a session, or `None` for a subagent not seen before, which
    /// may have earlier facts.
    fn position_of(&self, session: SessionId) -> Option<LogPosition> {
        if session == self.session {
            return Some(self.cursor.position);
        }
        let active = self.cursor.subagents.get(&session);
        active.or_else(|| self.ended_subagents.get(&session)).copied()
    }

    fn set_position(&mut self, session: SessionId, position: LogPosition) {
        match session == self.session {
            true => self.cursor.position = position,
            false => drop(self.cursor.subagents.insert(session, position)),
        }
    }

    fn mark_seen(&mut self, record: &FactRecord) {
        // A subagent that goes on after the end of a turn is active again.
        self.ended_subagents.remove(&record.session);
        self.set_position(record.session, LogPosition::of(record));
        if let Fact::SubagentStarted { session, after, .. } = &record.fact {
            let ended = self.ended_subagents.remove(session);
            let seen = ended.unwrap_or(LogPosition::unchecked(*after));
            self.cursor.subagents.entry(*session).or_insert(seen);
        }
        if record.session != self.session && matches!(record.fact, Fact::TurnEnded { .. }) {
            let ended = self.cursor.subagents.remove(&record.session);
            self.ended_subagents.extend(ended.map(|position| (record.session, position)));
            self.unread_subagents.insert(record.session);
        }
    }
}
