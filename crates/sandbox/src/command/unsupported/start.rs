//! Methods of the workspace that start and list commands and processes: they fail, or find none.

use super::{Job, WorkspaceJobs, unsupported};
use crate::command::command_types::{CommandChanges, CommandSandboxConfig, JobSpec};
use crate::command::job_events::JobEvents;
use crate::path_lookup::MachinePathLookup;
use crate::process::spec::{ProcessIo, ProcessSpec};
use crate::{CallWorkspace, Error, Workspace};
use std::sync::Arc;
use tokio::sync::mpsc;
use windlass_permission::Grant;
use windlass_protocol::SessionId;

impl Workspace {
    /// Sets the `CommandSandboxConfig`, which here only determines `MachinePathLookup` and the network policy.
    #[must_use]
    pub fn with_shell(mut self, shell: CommandSandboxConfig) -> Workspace {
        self.network.set_policy(&shell.network_policy);
        self.jobs = Some(Arc::new(WorkspaceJobs::new(&shell, self.root())));
        self
    }

    /// Returns the `MachinePathLookup` that resolve paths in commands, or `None` without a
    /// `CommandSandboxConfig`.
    pub fn machine_paths(&self) -> Option<Arc<MachinePathLookup>> {
        self.jobs.as_ref().map(|jobs| Arc::clone(&jobs.0))
    }

    /// Returns a stream without events.
    pub fn job_events(&self, _session: SessionId) -> JobEvents {
        JobEvents { receiver: mpsc::unbounded_channel().1, on_drop: None }
    }

    /// Does nothing.
    pub fn notify_session(&self, _session: SessionId, _text: String) {}

    /// Returns 0: no command changes files.
    pub fn change_counter(&self) -> u64 {
        0
    }

    /// Returns no jobs.
    pub fn background_jobs(&self, _session: SessionId) -> Vec<Arc<Job>> {
        Vec::new()
    }

    /// Returns `None`.
    pub fn background_job(&self, _session: SessionId, _id: u64) -> Option<Arc<Job>> {
        None
    }

    /// Does nothing: there are no jobs.
    pub async fn end_jobs(&self, _session: SessionId) {}

    /// Fails: processes cannot run on this platform.
    pub async fn start_process(
        &self,
        _grant: &Grant,
        _process: ProcessSpec,
    ) -> Result<ProcessIo, Error> {
        Err(unsupported())
    }

    /// Does nothing: there are no processes.
    pub async fn stop_processes(&self) {}
}

impl CallWorkspace {
    /// Fails: commands cannot run on this platform.
    pub async fn start_job(&self, _spec: JobSpec<'_>) -> Result<Arc<Job>, Error> {
        Err(unsupported())
    }

    /// Returns `None`.
    pub fn job(&self, _session: SessionId, _id: u64) -> Option<Arc<Job>> {
        None
    }

    /// Returns no jobs.
    pub fn jobs(&self, _session: SessionId) -> Vec<Arc<Job>> {
        Vec::new()
    }

    /// Does nothing: there are no jobs.
    pub fn follow_job(&self, _session: SessionId, _job: &Arc<Job>) {}
}

impl CallWorkspace {
    /// Returns what a job has changed since the last call.
    pub fn take_job_changes(&self, job: &Job) -> CommandChanges {
        match *job {}
    }
}
