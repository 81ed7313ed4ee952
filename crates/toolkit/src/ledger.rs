//! The way from a change in the world to whoever records it: a tool changes files on a thread that
//! may wait, its caller records them on one that may not.

use crate::tool::Caller;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};
use windlass_sandbox::{End, Ledger, Pending};

/// What a tool wants recorded, and the way back for whoever waits for it.
enum Entry {
    Batch(Vec<Pending>, oneshot::Sender<Result<(), String>>),
    Withdrawn(oneshot::Sender<()>),
}

struct Desk {
    entries: mpsc::UnboundedSender<Entry>,
    open: Arc<AtomicBool>,
}

impl Ledger for Desk {
    fn record(&self, batch: Vec<Pending>) -> Result<(), String> {
        let stopped = || "the call was stopped".to_owned();
        let (done, recorded) = oneshot::channel();
        self.entries.send(Entry::Batch(batch, done)).map_err(|_| stopped())?;
        recorded.blocking_recv().unwrap_or_else(|_| Err(stopped()))
    }

    fn close(&self, end: End) {
        let (done, recorded) = oneshot::channel();
        if end == End::Unmade && self.entries.send(Entry::Withdrawn(done)).is_ok() {
            // If nobody records it any more, whoever opens the session next finds it out.
            let _ = recorded.blocking_recv();
        }
        self.open.store(false, Ordering::SeqCst);
    }
}

/// The batches of one call, as they come in.
pub(crate) struct Entries {
    entries: mpsc::UnboundedReceiver<Entry>,
    open: Arc<AtomicBool>,
}

impl Entries {
    pub(crate) fn open() -> (Arc<dyn Ledger>, Entries) {
        // A tool waits for each batch, so at most one is under way.
        let (sender, entries) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicBool::new(false));
        (Arc::new(Desk { entries: sender, open: Arc::clone(&open) }), Entries { entries, open })
    }

    /// True from when a batch is on record until it has been made, or has not. In between the call
    /// must not be given up.
    pub(crate) fn under_way(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.open)
    }

    /// Has every batch recorded, for as long as the call runs.
    pub(crate) async fn serve(&mut self, caller: &dyn Caller) -> Infallible {
        while let Some(entry) = self.entries.recv().await {
            // If the tool has been given up in the meantime, it no longer listens.
            match entry {
                Entry::Batch(batch, done) => {
                    let recorded = caller.record(batch).await.map_err(|failure| failure.text);
                    self.open.store(recorded.is_ok(), Ordering::SeqCst);
                    let _ = done.send(recorded);
                }
                Entry::Withdrawn(done) => {
                    caller.withdraw().await;
                    let _ = done.send(());
                }
            }
        }
        std::future::pending().await
    }
}
