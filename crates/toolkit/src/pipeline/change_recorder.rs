//! A channel from file changes to the caller that records them: tools change files on a blocking
//! thread, the caller records them on an async task.

use crate::tool_caller::ToolCaller;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};
use windlass_sandbox::{ChangeRecorder, PendingFileChange, WriteBatchOutcome};

/// A change to record, with the channel for the confirmation.
enum ChangeRecordRequest {
    Batch(Vec<PendingFileChange>, oneshot::Sender<Result<(), String>>),
    Retracted(oneshot::Sender<()>),
}

struct ChannelChangeRecorder {
    entries: mpsc::UnboundedSender<ChangeRecordRequest>,
    is_writing: Arc<AtomicBool>,
}

impl ChangeRecorder for ChannelChangeRecorder {
    fn record_batch(&self, batch: Vec<PendingFileChange>) -> Result<(), String> {
        let canceled = || "the call was canceled".to_owned();
        let (confirm, recorded) = oneshot::channel();
        self.entries.send(ChangeRecordRequest::Batch(batch, confirm)).map_err(|_| canceled())?;
        recorded.blocking_recv().unwrap_or_else(|_| Err(canceled()))
    }

    fn close_batch(&self, end: WriteBatchOutcome) {
        let (confirm, recorded) = oneshot::channel();
        if end == WriteBatchOutcome::RolledBack
            && self.entries.send(ChangeRecordRequest::Retracted(confirm)).is_ok()
        {
            // If it is no longer recorded, the next open of the session detects it.
            let _ = recorded.blocking_recv();
        }
        self.is_writing.store(false, Ordering::SeqCst);
    }
}

/// The incoming batches of `PendingFileChange`s of one call.
pub(crate) struct FileChangeQueue {
    entries: mpsc::UnboundedReceiver<ChangeRecordRequest>,
    is_writing: Arc<AtomicBool>,
}

impl FileChangeQueue {
    pub(crate) fn open() -> (Arc<dyn ChangeRecorder>, FileChangeQueue) {
        // The channel needs no bound: a tool waits for each batch, so at most one is queued.
        let (sender, entries) = mpsc::unbounded_channel();
        let is_writing = Arc::new(AtomicBool::new(false));
        (
            Arc::new(ChannelChangeRecorder {
                entries: sender,
                is_writing: Arc::clone(&is_writing),
            }),
            FileChangeQueue { entries, is_writing },
        )
    }

    /// Returns a flag that is true from the time a batch is recorded until it is written or rolled
    /// back. The call must not be abandoned in between.
    pub(crate) fn is_writing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_writing)
    }

    /// Passes all batches to `ToolCaller::record_changes` as long as the call runs.
    pub(crate) async fn record_batches(&mut self, caller: &dyn ToolCaller) -> Infallible {
        while let Some(entry) = self.entries.recv().await {
            // Sending fails if the tool was abandoned in the meantime.
            match entry {
                ChangeRecordRequest::Batch(batch, confirm) => {
                    let result = caller.record_changes(batch).await.map_err(|failure| failure.text);
                    self.is_writing.store(result.is_ok(), Ordering::SeqCst);
                    let _ = confirm.send(result);
                }
                ChangeRecordRequest::Retracted(confirm) => {
                    caller.retract_changes().await;
                    let _ = confirm.send(());
                }
            }
        }
        std::future::pending().await
    }
}
