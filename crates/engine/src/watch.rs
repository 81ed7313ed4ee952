//! Watching a session: facts in order without gaps, live events as long as one keeps up.

use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use windlass_protocol::{Event, Seq, SessionId};
use windlass_storage::{Error, Log};

/// Sees everything a session does from a position on. One that falls behind loses live events,
/// never facts: those it reads again from the log. It never holds the session up.
pub struct Watcher {
    log: Arc<dyn Log>,
    session: SessionId,
    events: broadcast::Receiver<Arc<Event>>,
    seen: Seq,
    missed: VecDeque<Arc<Event>>,
}

impl Watcher {
    pub(crate) fn new(
        log: Arc<dyn Log>,
        session: SessionId,
        events: broadcast::Receiver<Arc<Event>>,
        seen: Seq,
    ) -> Watcher {
        Watcher { log, session, events, seen, missed: VecDeque::new() }
    }

    /// The next event; `None` when the session is closed.
    pub async fn next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        loop {
            let event = match self.missed.pop_front() {
                Some(event) => event,
                None => match self.events.recv().await {
                    Ok(event) => event,
                    Err(RecvError::Closed) => return Ok(None),
                    Err(RecvError::Lagged(_)) => {
                        let page = self.log.read(self.session, self.seen).await?;
                        self.missed = page.into_iter().map(|r| Arc::new(Event::Fact(r))).collect();
                        continue;
                    }
                },
            };
            match &*event {
                Event::Live(_) => return Ok(Some(event)),
                // What was read from the log comes again from the channel.
                Event::Fact(record) if record.seq <= self.seen => {}
                Event::Fact(record) if record.seq > self.seen + 1 => {
                    let page = self.log.read(self.session, self.seen).await?;
                    self.missed = page.into_iter().map(|r| Arc::new(Event::Fact(r))).collect();
                    if self.missed.is_empty() {
                        return Ok(None);
                    }
                }
                Event::Fact(record) => {
                    self.seen = record.seq;
                    return Ok(Some(event));
                }
            }
        }
    }
}
