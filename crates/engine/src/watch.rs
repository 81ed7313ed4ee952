//! Watching a session: facts in order without gaps, live events as long as one keeps up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use windlass_protocol::{Event, Fact, Record, Seq, SessionId};
use windlass_storage::{Error, Log};

/// Sees everything a session does from a position on, and what the sessions do that its calls
/// begin. One that falls behind loses live events, never facts: those it reads from the log. It
/// never holds the session up.
pub struct Watcher {
    log: Arc<dyn Log>,
    session: SessionId,
    events: broadcast::Receiver<Arc<Event>>,
    seen: Seq,
    /// The last position that was seen of each session begun by a call.
    children: BTreeMap<SessionId, Seq>,
    /// Facts from the log that have not been handed on yet.
    read: VecDeque<Record>,
    /// The log may have facts that the channel does not.
    behind: bool,
    closed: bool,
}

impl Watcher {
    /// Watches from behind `seen`. Unless it was there from the start, the first facts come from
    /// the log.
    pub(crate) fn new(
        log: Arc<dyn Log>,
        session: SessionId,
        events: broadcast::Receiver<Arc<Event>>,
        seen: Seq,
    ) -> Watcher {
        Watcher {
            log,
            session,
            events,
            seen,
            children: BTreeMap::new(),
            read: VecDeque::new(),
            behind: true,
            closed: false,
        }
    }

    /// The next event; `None` when the session is closed. Nothing is lost if the future is dropped
    /// before it is done.
    pub async fn next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        loop {
            if let Some(record) = self.read.pop_front() {
                self.note(&record);
                if let Fact::Spawned { session, .. } = &record.fact {
                    // What it did may have been missed with this.
                    self.children.entry(*session).or_insert(0);
                    self.behind = true;
                }
                return Ok(Some(Arc::new(Event::Fact(record))));
            }
            if self.behind {
                let mut read = self.log.read(self.session, self.seen).await?;
                for (child, seen) in &self.children {
                    read.extend(self.log.read(*child, *seen).await?);
                }
                self.behind = !read.is_empty();
                self.read = read.into();
                continue;
            }
            if self.closed {
                return Ok(None);
            }
            match self.events.recv().await {
                Ok(event) => match &*event {
                    Event::Live(_) => return Ok(Some(event)),
                    Event::Fact(record) => match self.last(record) {
                        Some(seen) if record.seq <= seen => {}
                        Some(seen) if record.seq > seen + 1 => self.behind = true,
                        Some(_) | None => {
                            self.note(record);
                            return Ok(Some(event));
                        }
                    },
                },
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => (self.closed, self.behind) = (true, true),
            }
        }
    }

    /// The last position seen of a record's session; none of a child that was not seen before, which
    /// may have a past.
    fn last(&self, record: &Record) -> Option<Seq> {
        let own = (record.session == self.session).then_some(self.seen);
        own.or_else(|| self.children.get(&record.session).copied())
    }

    fn note(&mut self, record: &Record) {
        if record.session == self.session {
            self.seen = record.seq;
        } else if let Fact::TurnEnded { .. } = &record.fact {
            self.children.remove(&record.session);
        } else {
            self.children.insert(record.session, record.seq);
        }
    }
}
