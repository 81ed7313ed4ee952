//! Events from the jobs of a session, the same on every platform.

use crate::Job;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An event from the jobs of a session, received through [`JobEvents`].
pub enum JobEvent {
    /// A message for the model.
    Notice(String),
    /// A background job ended.
    Ended {
        /// Number of the job.
        job: u64,
        /// Message for the model.
        notice: String,
    },
    /// A background job started, wrote output or ended.
    Update(Arc<Job>),
}

/// The stream of events from the jobs of a session. Dropping it ends all jobs of the session that
/// still run.
pub struct JobEvents {
    pub(super) receiver: mpsc::UnboundedReceiver<JobEvent>,
    /// Runs on `drop` and ends the jobs of the session.
    pub(super) on_drop: Option<Box<dyn FnOnce() + Send>>,
}

impl JobEvents {
    /// Receives the next [`JobEvent`], or `None` when the stream has ended.
    pub async fn recv(&mut self) -> Option<JobEvent> {
        self.receiver.recv().await
    }
}

impl Drop for JobEvents {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}
