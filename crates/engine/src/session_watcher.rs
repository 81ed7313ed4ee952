//! Event stream of a session: facts in order without gaps, live events as long as the watcher keeps
//! up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use windlass_protocol::{Event, Fact, FactRecord, LogSeq, SessionId};
use windlass_storage::{Log, StorageError};

/// Receives all events of a session from a log position on, and those of its subagents. A watcher
/// that falls behind loses live events but never facts: it reads those from the log. It never slows
/// the session down.
pub struct SessionWatcher {
    log: Arc<dyn Log>,
    session: SessionId,
    events: broadcast::Receiver<Arc<Event>>,
    last_seen: LogSeq,
    /// Last `LogSeq` seen of each subagent session.
    subagents_last_seen: BTreeMap<SessionId, LogSeq>,
    /// Facts read from the log and not yet returned.
    backlog: VecDeque<FactRecord>,
    /// The log may contain facts that `events` does not deliver.
    is_behind: bool,
    closed: bool,
}

impl SessionWatcher {
    /// Creates a watcher of the facts after `last_seen`. The first facts come from the log, unless
    /// the watcher existed from the start.
    pub(crate) fn new(
        log: Arc<dyn Log>,
        session: SessionId,
        events: broadcast::Receiver<Arc<Event>>,
        last_seen: LogSeq,
    ) -> SessionWatcher {
        SessionWatcher {
            log,
            session,
            events,
            last_seen,
            subagents_last_seen: BTreeMap::new(),
            backlog: VecDeque::new(),
            is_behind: true,
            closed: false,
        }
    }

    /// Returns the next event, or `None` when the session is closed. It is cancel-safe: dropping
    /// the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Arc<Event>>, StorageError> {
        loop {
            if let Some(record) = self.backlog.pop_front() {
                self.mark_seen(&record);
                if let Fact::SubagentStarted { session, .. } = &record.fact {
                    // Events of this subagent may have been missed together with `SubagentStarted`.
                    self.subagents_last_seen.entry(*session).or_insert(0);
                    self.is_behind = true;
                }
                return Ok(Some(Arc::new(Event::Fact(record))));
            }
            if self.is_behind {
                let mut records = self.log.read(self.session, self.last_seen).await?;
                for (subagent, seen) in &self.subagents_last_seen {
                    records.extend(self.log.read(*subagent, *seen).await?);
                }
                self.is_behind = !records.is_empty();
                self.backlog = records.into();
                continue;
            }
            if self.closed {
                return Ok(None);
            }
            match self.events.recv().await {
                Ok(event) => match &*event {
                    Event::Live(_) => return Ok(Some(event)),
                    Event::Fact(record) => match self.last_seen_of(record) {
                        Some(seen) if record.seq <= seen => {}
                        Some(seen) if record.seq > seen + 1 => self.is_behind = true,
                        Some(_) | None => {
                            self.mark_seen(record);
                            return Ok(Some(event));
                        }
                    },
                },
                Err(RecvError::Lagged(_)) => self.is_behind = true,
                Err(RecvError::Closed) => (self.closed, self.is_behind) = (true, true),
            }
        }
    }

    /// Returns the last position seen of the record's session, or `None` for a subagent not seen
    /// before, which may have earlier facts.
    fn last_seen_of(&self, record: &FactRecord) -> Option<LogSeq> {
        let own = (record.session == self.session).then_some(self.last_seen);
        own.or_else(|| self.subagents_last_seen.get(&record.session).copied())
    }

    fn mark_seen(&mut self, record: &FactRecord) {
        if record.session == self.session {
            self.last_seen = record.seq;
        } else if let Fact::TurnEnded { .. } = &record.fact {
            self.subagents_last_seen.remove(&record.session);
        } else {
            self.subagents_last_seen.insert(record.session, record.seq);
        }
    }
}
