//! Watching a session: facts in order without gaps, live events as long as one keeps up.

use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use windlass_protocol::{Event, Record, Seq, SessionId};
use windlass_storage::{Error, Log};

/// Sees everything a session does from a position on. One that falls behind loses live events,
/// never facts: those it reads from the log. It never holds the session up.
pub struct Watcher {
    log: Arc<dyn Log>,
    session: SessionId,
    events: broadcast::Receiver<Arc<Event>>,
    seen: Seq,
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
        Watcher { log, session, events, seen, read: VecDeque::new(), behind: true, closed: false }
    }

    /// The next event; `None` when the session is closed. Nothing is lost if the future is dropped
    /// before it is done.
    pub async fn next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        loop {
            if let Some(record) = self.read.pop_front() {
                self.seen = record.seq;
                return Ok(Some(Arc::new(Event::Fact(record))));
            }
            if self.behind {
                self.read = self.log.read(self.session, self.seen).await?.into();
                self.behind = !self.read.is_empty();
                continue;
            }
            if self.closed {
                return Ok(None);
            }
            match self.events.recv().await {
                Ok(event) => match &*event {
                    Event::Live(_) => return Ok(Some(event)),
                    Event::Fact(record) if record.seq <= self.seen => {}
                    Event::Fact(record) if record.seq == self.seen + 1 => {
                        self.seen = record.seq;
                        return Ok(Some(event));
                    }
                    Event::Fact(_) => self.behind = true,
                },
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => (self.closed, self.behind) = (true, true),
            }
        }
    }
}
