//! User requests that the driver handles without the model: switching the model, ending jobs, and
//! the updates after a rewind.

use super::{SessionDriver, SessionHandle};
use crate::clock_and_ids::new_stamp;
use crate::model_handle::{ModelHandle, NamedModel};
use crate::session::{SessionConfig, SessionInput};
use std::sync::Arc;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{ContextChange, LiveEvent, UnixMillis};
use windlass_toolkit::{Job, JobEvent};

/// The new model.
pub(super) type ModelSwitch = NamedModel;

impl SessionHandle {
    /// Switches to another model from the next step on; a step under way is not affected. Inputs
    /// sent to the session after this call reach the new model. Returns false if the session has
    /// stopped.
    pub async fn switch_model(&self, model: ModelHandle, name: &str) -> bool {
        self.model_switches.send((model, name.into())).await.is_ok()
    }
}

impl SessionDriver {
    /// Switches the model, and drops `attachment_cache` and `incremental_body`, which are of no use
    /// to it.
    pub(super) fn switch_model(&mut self, (handle, model_name): ModelSwitch) -> SessionInput {
        let settings = self.settings.with_model(handle, model_name);
        let SessionConfig { model, context_window: window, price, .. } =
            settings.session_config(&self.runtime);
        self.settings = Arc::new(settings);
        (self.attachment_cache, self.incremental_body) = Default::default();
        SessionInput::ModelChanged { model, window, price }
    }

    /// Restores `todos` and `file_tracker` after a rewind. Tool calls read them in addition to the
    /// log.
    pub(super) fn on_rewind(&mut self) {
        *lock(&self.todos) = self.session.transcript().todos();
        lock(&self.file_tracker).retain_known(self.session.files());
    }

    /// Handles a `JobEvent` of the session; returns an input if the model should know about it.
    pub(super) fn on_job_event(&self, event: JobEvent) -> Option<SessionInput> {
        match event {
            JobEvent::Notice(text) => Some(SessionInput::note(text)),
            JobEvent::Ended { job, notice } => {
                let change = ContextChange::JobEnded { job };
                Some(SessionInput::Notice { text: notice, change })
            }
            JobEvent::Update(job) => {
                self.emit_job(&job);
                None
            }
        }
    }

    fn emit_job(&self, job: &Job) {
        let at = new_stamp().at;
        self.emit_live(at, LiveEvent::JobUpdate { job: job.row(at) });
    }

    /// Ends all jobs of the session, and emits a `JobUpdate` for each to the remaining watchers.
    pub(super) async fn end_jobs(&self) {
        let (workspace, session) = (&self.runtime.workspace, self.claim.session);
        let mut jobs = workspace.background_jobs(session);
        jobs.retain(|job| !job.is_gone());
        workspace.end_jobs(session).await;
        jobs.iter().for_each(|job| self.emit_job(job));
    }

    /// Ends a background job. The model gets the usual notice of its end.
    pub(super) fn end_job(&mut self, at: UnixMillis, job: u64) {
        let running = self.runtime.workspace.background_job(self.claim.session, job);
        let Some(running) = running.filter(|running| !running.is_gone()) else {
            let text = format!("Job {job} is not running.");
            return self.emit_live(at, LiveEvent::Notice { text });
        };
        self.tasks.spawn(async move { running.kill().await });
    }
}
