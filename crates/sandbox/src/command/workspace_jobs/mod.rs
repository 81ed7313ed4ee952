//! The jobs and processes of a workspace, by session.

use crate::command::command_types::CommandSandboxConfig;
use crate::command::job::Job;
use crate::command::job_events::JobEvent;
use crate::command::package_caches::ProjectCaches;
use crate::confine::{self, ProtectedPathsSnapshot};
use crate::path_lookup::MachinePathLookup;
use crate::supervisor::client::SupervisorClient;
use crate::{Error, GitHookMode};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::sync::mpsc;
use windlass_protocol::SessionId;
use windlass_protocol::mutex_lock::lock;

/// Sends [`JobEvent`]s to a session.
pub(super) type JobEventSender = mpsc::UnboundedSender<JobEvent>;

/// The jobs and processes of a workspace, with the configuration to start them.
pub(crate) struct WorkspaceJobs {
    pub(crate) config: CommandSandboxConfig,
    pub(crate) machine_paths: Arc<MachinePathLookup>,
    /// The package caches that commands may fill, if there is a folder for them.
    pub(crate) package_caches: Option<ProjectCaches>,
    sessions: Mutex<HashMap<SessionId, Arc<SessionJobs>>>,
    /// Supervisor and temporary folder that long-running processes share.
    processes: Mutex<Option<Arc<SessionJobs>>>,
    event_senders: Mutex<HashMap<SessionId, JobEventSender>>,
    /// Counts the times at which a command may have changed files; see
    /// [`crate::Workspace::change_counter`].
    changes: Mutex<JobChangeCounter>,
}

/// A counter that advances while a job runs, because files may then change unseen.
#[derive(Default)]
struct JobChangeCounter {
    count: u64,
    /// A job was running when the counter was last read.
    was_running: bool,
}

/// The `SupervisorClient`, temporary folder and jobs of one session.
pub(crate) struct SessionJobs {
    pub(crate) supervisor: SupervisorClient,
    pub(crate) temp_dir: TempDir,
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
    /// The protected paths after the last command, if processes of the session still ran then.
    protected_paths: Mutex<Option<ProtectedPathsSnapshot>>,
}

impl std::fmt::Debug for WorkspaceJobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceJobs")
            .field("sandbox_mode", &self.config.sandbox_mode)
            .finish_non_exhaustive()
    }
}

impl WorkspaceJobs {
    pub(super) fn new(config: CommandSandboxConfig, root: &Path) -> WorkspaceJobs {
        let home = config.home.as_deref();
        let sandbox_mode = config.sandbox_mode.clone();
        let machine_paths = MachinePathLookup::new(root, home, &config.inherited_env, sandbox_mode)
            .with_trust(config.git_hooks == GitHookMode::Run)
            .with_folders(config.additional_folders.clone(), config.private_paths.clone())
            .with_readable_folders(config.readable_folders.clone());
        let package_caches = match (&config.cache_folder, home) {
            (Some(folder), Some(home)) => {
                Some(ProjectCaches::new(folder, root, home, &config.inherited_env))
            }
            _ => None,
        };
        WorkspaceJobs {
            package_caches,
            machine_paths: Arc::new(machine_paths),
            config,
            sessions: Mutex::default(),
            processes: Mutex::default(),
            event_senders: Mutex::default(),
            changes: Mutex::default(),
        }
    }

    /// Advances the change counter: a command was started.
    pub(super) fn count_change(&self) {
        lock(&self.changes).count += 1;
    }

    pub(super) fn change_counter(&self) -> u64 {
        let has_running_job = |session_jobs: &Arc<SessionJobs>| {
            lock(&session_jobs.jobs).values().any(|job| !job.is_gone())
        };
        let is_running = lock(&self.sessions).values().any(has_running_job);
        let mut changes = lock(&self.changes);
        changes.count += u64::from(is_running || changes.was_running);
        changes.was_running = is_running;
        changes.count
    }

    pub(super) fn get_or_open_session(
        &self,
        session: SessionId,
    ) -> Result<Arc<SessionJobs>, Error> {
        let mut sessions = lock(&self.sessions);
        if let Some(session_jobs) = sessions.get(&session) {
            return Ok(Arc::clone(session_jobs));
        }
        let session_jobs = SessionJobs::open()?;
        sessions.insert(session, Arc::clone(&session_jobs));
        Ok(session_jobs)
    }

    /// Returns the `SessionJobs` for long-running processes, which belong to no session; creates it
    /// on first use.
    pub(crate) fn get_or_open_processes(&self) -> Result<Arc<SessionJobs>, Error> {
        let mut processes = lock(&self.processes);
        if let Some(session_jobs) = processes.as_ref() {
            return Ok(Arc::clone(session_jobs));
        }
        Ok(Arc::clone(processes.insert(SessionJobs::open()?)))
    }

    /// Takes the `SessionJobs` for long-running processes out of the workspace.
    pub(crate) fn take_processes(&self) -> Option<Arc<SessionJobs>> {
        lock(&self.processes).take()
    }

    /// Removes a session whose `JobEvents` was dropped. If the session was reopened in the
    /// meantime, the jobs of the new one stay.
    pub(super) fn remove_session(&self, session: SessionId, sender: &JobEventSender) {
        let mut event_senders = lock(&self.event_senders);
        if event_senders.get(&session).is_some_and(|current| current.same_channel(sender)) {
            event_senders.remove(&session);
            lock(&self.sessions).remove(&session);
        }
    }

    /// Takes the `SessionJobs` of a session out of the workspace, and removes its event sender.
    pub(super) fn take_session(&self, session: SessionId) -> Option<Arc<SessionJobs>> {
        lock(&self.event_senders).remove(&session);
        lock(&self.sessions).remove(&session)
    }

    pub(super) fn get_session(&self, session: SessionId) -> Option<Arc<SessionJobs>> {
        lock(&self.sessions).get(&session).cloned()
    }

    pub(super) fn set_event_sender(&self, session: SessionId, sender: JobEventSender) {
        lock(&self.event_senders).insert(session, sender);
    }

    pub(super) fn event_sender(&self, session: SessionId) -> Option<JobEventSender> {
        lock(&self.event_senders).get(&session).cloned()
    }
}

impl SessionJobs {
    fn open() -> Result<Arc<SessionJobs>, Error> {
        let temp_dir =
            create_temp_dir().map_err(|error| Error::NotStarted { reason: error.to_string() })?;
        let supervisor = SupervisorClient::with_temp(temp_dir.path());
        Ok(Arc::new(SessionJobs {
            supervisor,
            temp_dir,
            jobs: Mutex::default(),
            protected_paths: Mutex::default(),
        }))
    }

    /// Adds a job, and drops jobs that the supervisor client no longer tracks.
    pub(super) fn track(&self, job: &Arc<Job>) {
        let tracked: Vec<u64> = self.supervisor.list().iter().map(|job| job.id()).collect();
        let mut jobs = lock(&self.jobs);
        jobs.retain(|id, _| tracked.contains(id));
        jobs.insert(job.id(), Arc::clone(job));
    }

    /// Returns the protected paths to compare with after the next command. If processes ran since
    /// the last command, that is the state after it, so that what they changed is reported.
    pub(super) fn snapshot_protected(&self, root: &Path) -> ProtectedPathsSnapshot {
        let earlier = lock(&self.protected_paths).take();
        earlier.unwrap_or_else(|| confine::snapshot_protected(root))
    }

    /// Keeps the state of the protected paths after a command if processes of the session run on.
    pub(super) fn keep_snapshot(&self, snapshot: ProtectedPathsSnapshot) {
        // A sandbox that is about to close is no process of the job.
        let runs_on = |job: &Arc<Job>| match job.exit_report() {
            Some(report) => !job.is_gone() && !report.leftover.is_empty(),
            None => true,
        };
        let has_processes = lock(&self.jobs).values().any(runs_on);
        *lock(&self.protected_paths) = has_processes.then_some(snapshot);
    }

    pub(super) fn job(&self, id: u64) -> Option<Arc<Job>> {
        lock(&self.jobs).get(&id).cloned()
    }

    /// Returns all known jobs, oldest first.
    pub(super) fn jobs(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).values().cloned().collect()
    }
}

impl Drop for SessionJobs {
    fn drop(&mut self) {
        // The supervisor removes the folder when the session has ended. On a disk that is mounted
        // with `discard`, that can take a second, and the user would wait for it at exit.
        self.temp_dir.disable_cleanup(self.supervisor.has_supervisor());
    }
}

/// Creates a temporary folder with mode `0o700`, which only the user can access.
fn create_temp_dir() -> std::io::Result<TempDir> {
    temp_dir_builder().tempdir()
}

/// Creates a private temporary folder inside `folder`.
pub(crate) fn create_temp_dir_in(folder: &Path) -> std::io::Result<TempDir> {
    temp_dir_builder().tempdir_in(folder)
}

fn temp_dir_builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("windlass-").permissions(std::fs::Permissions::from_mode(0o700));
    builder
}

#[cfg(test)]
mod tests;
