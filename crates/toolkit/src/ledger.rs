//! The way from a change in the world to whoever records it: a tool changes files on a thread that
//! may wait, its caller records them on one that may not.

use crate::tool::Caller;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use windlass_sandbox::{Ledger, Pending};

/// A batch, and the way back for whoever waits for it to be recorded.
type Entry = (Vec<Pending>, oneshot::Sender<Result<(), String>>);

struct Desk(mpsc::UnboundedSender<Entry>);

impl Ledger for Desk {
    fn record(&self, batch: Vec<Pending>) -> Result<(), String> {
        let stopped = || "the call was stopped".to_owned();
        let (done, recorded) = oneshot::channel();
        self.0.send((batch, done)).map_err(|_| stopped())?;
        recorded.blocking_recv().unwrap_or_else(|_| Err(stopped()))
    }
}

/// The batches of one call, as they come in.
pub(crate) struct Entries(mpsc::UnboundedReceiver<Entry>);

impl Entries {
    pub(crate) fn open() -> (Arc<dyn Ledger>, Entries) {
        // A tool waits for each batch, so at most one is under way.
        let (desk, entries) = mpsc::unbounded_channel();
        (Arc::new(Desk(desk)), Entries(entries))
    }

    /// Has every batch recorded, for as long as the call runs.
    pub(crate) async fn serve(&mut self, caller: &dyn Caller) -> Infallible {
        while let Some((batch, done)) = self.0.recv().await {
            let recorded = caller.record(batch).await.map_err(|failure| failure.text);
            // If the tool has been given up in the meantime, it no longer listens.
            let _ = done.send(recorded);
        }
        std::future::pending().await
    }
}
