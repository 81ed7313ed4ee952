//! What a person wants of the driver rather than of the model: another model, an end for a job, and
//! what follows a step back.

use super::{Driver, Handle, lock, stamp};
use crate::host::{Asked, Settings};
use crate::session::{Input, Terms};
use std::sync::Arc;
use windlass_protocol::{Live, Millis};
use windlass_toolkit::{Task, Word};

/// Whom to ask from now on, and that model as it is recorded.
pub(super) type Another = (Asked, Arc<str>);

impl Handle {
    /// Has another model asked from the next step on; a step under way is not disturbed. What is said
    /// to the session after this is heard by that model. False if the session has stopped.
    pub async fn ask_another(&self, asked: Asked, name: &str) -> bool {
        self.others.send((asked, name.into())).await.is_ok()
    }
}

impl Driver {
    /// Takes another model. What was kept of requests to the last one is of no use to it.
    pub(super) fn ask_another(&mut self, (asked, name): Another) -> Input {
        let settings =
            Settings { model: Some(asked), model_name: name, ..(*self.settings).clone() };
        let Terms { model, window, price, .. } = settings.terms();
        self.settings = Arc::new(settings);
        (self.album, self.draft) = Default::default();
        Input::Another { model, window, price }
    }

    /// What calls read beside the log follows a step back.
    pub(super) fn heed_step_back(&mut self) {
        *lock(&self.todos) = self.session.transcript().todos();
        lock(&self.shelf).keep(self.session.files());
    }

    /// Hears of the session's commands, and gives what the model is to know.
    pub(super) fn told(&self, word: Word) -> Option<Input> {
        match word {
            Word::Tell(text) => Some(Input::Told { text }),
            Word::Job(job) => {
                self.show_job(&job);
                None
            }
        }
    }

    fn show_job(&self, job: &Task) {
        let at = stamp().at;
        self.show(at, Live::Job { job: job.row(at) });
    }

    /// Ends every command. Whoever still watches sees that.
    pub(super) async fn end_jobs(&self) {
        let (workspace, session) = (&self.runtime.workspace, self.claim.session);
        let mut jobs = workspace.jobs(session);
        jobs.retain(|job| !job.gone());
        workspace.end_jobs(session).await;
        jobs.iter().for_each(|job| self.show_job(job));
    }

    /// Ends a command in the background. That it has ended the model is told as always.
    pub(super) fn end_job(&mut self, at: Millis, job: u64) {
        let task = self.runtime.workspace.job(self.claim.session, job);
        let Some(task) = task.filter(|task| !task.gone()) else {
            let text = format!("Job {job} does not run.");
            return self.show(at, Live::Noticed { text });
        };
        self.tasks.spawn(async move { task.kill().await });
    }
}
