//! Starts commands for the model: from a grant to a job in its sandbox.
//!
//! Only the grant, the user's configuration and this file widen or narrow a sandbox. The tool call
//! contributes nothing but the command and its folder. Start reading at
//! [`CallWorkspace::start_job`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the sandbox crate is the only one that starts processes; it also resolves the \
              paths of commands"
)]

use crate::command::captured_changes::{CapturedChanges, create_capture_file};
use crate::command::command_types::{CommandSandboxConfig, JobSpec, StdinMode};
use crate::command::environment::{CommandEnvironmentOptions, command_environment};
use crate::command::job::{Job, KeepSnapshot};
use crate::command::job_events::{JobEvent, JobEvents};
use crate::command::workspace_jobs::{JobEventSender, SessionJobs, WorkspaceJobs};
use crate::confine::{self, NetworkAccess, SandboxBackend, SandboxProfile};
use crate::network::command_network::{CommandNetwork, NetworkConsent};
use crate::path_lookup::MachinePathLookup;
use crate::supervisor::client::SpawnSpec;
use crate::supervisor::limits::JobLimits;
use crate::{CallWorkspace, Error, HostAllowlist, NetworkPolicy, UpstreamProxy, Workspace};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use windlass_permission::CommandPathAccess;
use windlass_protocol::path_escapes::escape_path_lossy;
use windlass_protocol::{PermissionMode, SessionId, ToolAccess};

/// Least time between two `JobEvent::Update`s about the output of a background job.
const JOB_UPDATE_INTERVAL: Duration = Duration::from_millis(500);

fn not_started(error: impl ToString) -> Error {
    Error::NotStarted { reason: error.to_string() }
}

impl Workspace {
    /// Sets the `CommandSandboxConfig` for commands. Without it the workspace runs no commands.
    #[must_use]
    pub fn with_shell(mut self, shell: CommandSandboxConfig) -> Workspace {
        self.network.set_policy(&shell.network_policy);
        self.network.upstream = UpstreamProxy::from_environment(&shell.inherited_env);
        self.jobs = Some(Arc::new(WorkspaceJobs::new(shell, self.root())));
        self
    }

    /// Returns the `MachinePathLookup` that resolve paths in commands, or `None` if the workspace runs
    /// no commands.
    pub fn machine_paths(&self) -> Option<Arc<MachinePathLookup>> {
        self.jobs.as_ref().map(|workspace_jobs| Arc::clone(&workspace_jobs.machine_paths))
    }

    /// Opens the [`JobEvents`] stream of a session.
    pub fn job_events(&self, session: SessionId) -> JobEvents {
        let (sender, receiver) = mpsc::unbounded_channel();
        let Some(workspace_jobs) = &self.jobs else { return JobEvents { receiver, on_drop: None } };
        workspace_jobs.set_event_sender(session, sender.clone());
        let workspace_jobs = Arc::downgrade(workspace_jobs);
        let on_drop = move || {
            if let Some(workspace_jobs) = workspace_jobs.upgrade() {
                workspace_jobs.remove_session(session, &sender);
            }
        };
        JobEvents { receiver, on_drop: Some(Box::new(on_drop)) }
    }

    /// Sends a `JobEvent::Notice` to a session, to be read between its steps. Has no effect if the
    /// session is gone.
    pub fn notify_session(&self, session: SessionId, text: String) {
        let sender =
            self.jobs.as_ref().and_then(|workspace_jobs| workspace_jobs.event_sender(session));
        if let Some(sender) = sender {
            // Fails only if the session is gone.
            let _ = sender.send(JobEvent::Notice(text));
        }
    }

    /// Returns a number that changes whenever a command may have changed files.
    pub fn change_counter(&self) -> u64 {
        self.jobs.as_ref().map_or(0, |workspace_jobs| workspace_jobs.change_counter())
    }

    /// Returns the known background jobs of a session, oldest first.
    pub fn background_jobs(&self, session: SessionId) -> Vec<Arc<Job>> {
        let session_jobs =
            self.jobs.as_ref().and_then(|workspace_jobs| workspace_jobs.get_session(session));
        let jobs = session_jobs.map(|session_jobs| session_jobs.jobs());
        jobs.into_iter().flatten().filter(|job| job.is_in_background()).collect()
    }

    /// Returns one of the [`Workspace::background_jobs`] of a session.
    pub fn background_job(&self, session: SessionId, id: u64) -> Option<Arc<Job>> {
        self.background_jobs(session).into_iter().find(|job| job.id() == id)
    }

    /// Ends all jobs of a session that still run.
    pub async fn end_jobs(&self, session: SessionId) {
        let Some(workspace_jobs) = &self.jobs else { return };
        if let Some(session_jobs) = workspace_jobs.take_session(session) {
            session_jobs.supervisor.end_all().await;
        }
    }
}

/// Sends a session the `JobEvent`s of a background job: its start, periodic output updates and its
/// end.
async fn forward_job_events(job: Arc<Job>, sender: JobEventSender) {
    let mut output = job.watch_output();
    let mut next_update = Instant::now();
    let mut has_exited = false;
    let mut is_gone = false;
    while sender.send(JobEvent::Update(Arc::clone(&job))).is_ok() && !(has_exited && is_gone) {
        let output_changed = async {
            tokio::time::sleep_until(next_update).await;
            output.changed().await
        };
        tokio::select! {
            biased;
            _ = job.wait_for_exit(), if !has_exited => {
                has_exited = true;
                // A call that waits for the job reports the end itself.
                tokio::time::sleep(END_NOTICE_DELAY).await;
                if job.has_reported_end() {
                    continue;
                }
                let id = job.id();
                let notice = format!(
                    "Job {id} has ended. Read its output with job {{\"id\": {id}, \"action\": \
                     \"output\"}}."
                );
                // If the receiver is gone, the next send in the loop fails and ends it.
                let _ = sender.send(JobEvent::Ended { job: id, notice });
            }
            () = job.wait_until_gone(), if !is_gone => is_gone = true,
            Ok(()) = output_changed => next_update = Instant::now() + JOB_UPDATE_INTERVAL,
        }
    }
}

impl CallWorkspace {
    /// Starts a command in a sandbox as wide as the grant. A command that the user let out of the
    /// sandbox or into the whole network gets no stdin: the approval covers only the text that the
    /// user read.
    pub async fn start_job(&self, spec: JobSpec<'_>) -> Result<Arc<Job>, Error> {
        let real = self.resolve_path(spec.folder)?;
        let command = spec.command.to_owned();
        let access = ToolAccess::RunCommand { command: command.clone(), folder: real.clone() };
        self.check_granted(access, &real)?;
        let workspace = self.workspace();
        let Some(workspace_jobs) = &workspace.jobs else {
            return Err(not_started("commands are not available here"));
        };
        let program =
            confine::system_program("bash").ok_or_else(|| not_started(NO_BASH_MESSAGE))?;
        let session_jobs = workspace_jobs.get_or_open_session(spec.session)?;
        let shell = &workspace_jobs.config;
        let leaves_sandbox =
            self.grant().covers(&ToolAccess::LeaveSandbox { command: command.clone() });
        let connects_anywhere = self.grant().covers(&ToolAccess::Connect { host: "*".to_owned() });
        let backend =
            if leaves_sandbox { SandboxBackend::Off } else { shell.sandbox_mode.backend() };
        let consent = match (connects_anywhere, self.grant().reaches_registries()) {
            (true, _) => NetworkConsent::Granted,
            (false, true) => NetworkConsent::Registries,
            (false, false) => NetworkConsent::None,
        };
        // Without approval, only the words that are known were checked.
        let network_policy = match self.grant().is_read_only() {
            true => &NetworkPolicy::Listed(HostAllowlist::default()),
            false => &shell.network_policy,
        };
        let network = CommandNetwork::prepare(
            &backend,
            network_policy,
            consent,
            workspace.network.upstream.clone(),
        )?;
        let restricted_paths = match backend {
            SandboxBackend::Off => Vec::new(),
            SandboxBackend::Bubblewrap { .. }
            | SandboxBackend::Landlock
            | SandboxBackend::Seatbelt => {
                self.find_restricted_paths(&workspace_jobs.machine_paths).await?
            }
        };
        let network_access = network.network_access();
        let (mut profile, mut notes) =
            self.sandbox_profile(workspace_jobs, backend, &session_jobs, network_access);
        for (path, access) in restricted_paths {
            match access {
                CommandPathAccess::Full => {}
                CommandPathAccess::ReadOnly if !profile.workspace_writable => {}
                CommandPathAccess::ReadOnly => profile.protected_paths.push(path),
                CommandPathAccess::Hidden => profile.hidden_paths.push(path),
            }
        }
        notes.extend(network.note().map(str::to_owned));
        let stdin =
            if leaves_sandbox || connects_anywhere { StdinMode::Closed } else { spec.stdin };
        let options = CommandEnvironmentOptions {
            has_terminal: matches!(stdin, StdinMode::Terminal { .. }),
            git_hooks: shell.git_hooks,
        };
        let mut env = command_environment(shell.inherited_env.iter().cloned(), &options);
        env.extend(
            network.proxy_variables().into_iter().map(|(name, value)| (name.into(), value.into())),
        );
        // Takes no snapshot if the workspace is not writable, or if there is no sandbox to protect
        // it.
        let needs_snapshot = profile.workspace_writable && profile.backend != SandboxBackend::Off;
        let protected_before =
            needs_snapshot.then(|| session_jobs.snapshot_protected(workspace.root()));
        // Without the file the command runs as well, but its changes cannot be undone.
        let file_folder = shell.cache_folder.as_deref().filter(|folder| folder.is_dir());
        let file_folder = file_folder.unwrap_or(session_jobs.temp_dir.path());
        let capture_file = needs_snapshot.then(|| create_capture_file(file_folder).ok()).flatten();
        let folder = workspace.absolute_path(&real);
        let package_caches = workspace_jobs.package_caches.as_ref();
        let package_caches =
            package_caches.and_then(|caches| caches.for_command(&command, connects_anywhere));
        let spawn_spec = SpawnSpec {
            command,
            shell: program,
            folder,
            env,
            sandbox: profile.clone(),
            package_caches,
            stdin,
            // The end of a command in the background may never be read.
            spill_folder: (stdin == StdinMode::Closed).then(|| file_folder.to_owned()),
            capture_file: capture_file.clone(),
            limits: JobLimits::default(),
        };
        let process = session_jobs.supervisor.start(spawn_spec).await?;
        let secrets = network.secrets();
        let host_log = match network.serve_proxy(&process) {
            Ok(host_log) => host_log,
            Err(error) => {
                process.kill_after(Duration::ZERO).await;
                return Err(error);
            }
        };
        let session = Arc::downgrade(&session_jobs);
        let keep_snapshot: KeepSnapshot = Box::new(move |snapshot| {
            if let Some(session) = session.upgrade() {
                session.keep_snapshot(snapshot);
            }
        });
        let protected_paths = protected_before.map(|before| (before, keep_snapshot));
        let captured_changes = capture_file.map(CapturedChanges::new);
        let job =
            Job::new(process, profile, protected_paths, captured_changes, host_log, notes, secrets);
        let job = Arc::new(job);
        workspace_jobs.count_change();
        session_jobs.track(&job);
        Ok(job)
    }

    /// Returns a job that this session started earlier.
    pub fn job(&self, session: SessionId, id: u64) -> Option<Arc<Job>> {
        self.workspace().jobs.as_ref()?.get_session(session)?.job(id)
    }

    /// Returns all known jobs of the session, oldest first.
    pub fn jobs(&self, session: SessionId) -> Vec<Arc<Job>> {
        let session_jobs = self
            .workspace()
            .jobs
            .as_ref()
            .and_then(|workspace_jobs| workspace_jobs.get_session(session));
        session_jobs.map(|session_jobs| session_jobs.jobs()).unwrap_or_default()
    }

    /// Moves a job to the background and forwards its events to the session.
    pub fn follow_job(&self, session: SessionId, job: &Arc<Job>) {
        job.set_in_background();
        let workspace_jobs = self.workspace().jobs.as_ref();
        let Some(sender) =
            workspace_jobs.and_then(|workspace_jobs| workspace_jobs.event_sender(session))
        else {
            return;
        };
        // The task ends with its job, which ends with the session.
        tokio::spawn(forward_job_events(Arc::clone(job), sender));
    }

    /// Returns the paths of the workspace that the grant does not open to the command.
    async fn find_restricted_paths(
        &self,
        machine_paths: &MachinePathLookup,
    ) -> Result<Vec<(PathBuf, CommandPathAccess)>, Error> {
        let index = Arc::clone(machine_paths.restricted_paths());
        let rules = self.grant().path_rules();
        let paths = tokio::task::spawn_blocking(move || index.paths(&rules)).await;
        let root = self.workspace().root();
        let with_access = paths.map_err(not_started)?.into_iter().map(|path| {
            let access = self.grant().command_path_access(&escape_path_lossy(path.as_os_str()));
            (root.join(path), access)
        });
        Ok(with_access.collect())
    }

    fn sandbox_profile(
        &self,
        workspace_jobs: &WorkspaceJobs,
        backend: SandboxBackend,
        session_jobs: &SessionJobs,
        network: NetworkAccess,
    ) -> (SandboxProfile, Vec<String>) {
        let (shell, machine_paths) = (&workspace_jobs.config, &workspace_jobs.machine_paths);
        let root = self.workspace().root().to_owned();
        let workspace_writable =
            self.grant().mode() != PermissionMode::Plan && !self.grant().is_read_only();
        let (extra_writable, notes) = match workspace_writable {
            true => usable_folders(&shell.writable_folders, &root, "sandbox.write in the config"),
            false => (Vec::new(), Vec::new()),
        };
        let is_sandboxed = backend != SandboxBackend::Off;
        let home = shell.home.as_ref().filter(|_| is_sandboxed);
        let mut hidden_paths = home.map(|home| confine::secret_paths(home)).unwrap_or_default();
        let mut readable_paths = Vec::new();
        let hidden_home = home.filter(|home| {
            !self.grant().is_approved() && home.parent().is_some() && !home.starts_with(&root)
        });
        if let Some(home) = hidden_home {
            hidden_paths.push(home.clone());
            let program_folders = machine_paths.program_folders();
            readable_paths = confine::readable_home_paths(home, &root, program_folders);
        }
        let is_covered = |folder: &Path| {
            let covered = ["/tmp", "/var/tmp", "/run", "/var/run"];
            hidden_home.is_some() || covered.iter().any(|base| folder.starts_with(base))
        };
        let more = shell.readable_folders.iter().filter(|folder| is_sandboxed && folder.exists());
        readable_paths.extend(more.filter(|folder| is_covered(folder)).cloned());
        let profile = SandboxProfile {
            backend,
            workspace_writable,
            extra_writable,
            cache_folders: Vec::new(),
            temp_dir: session_jobs.temp_dir.path().to_owned(),
            hidden_paths,
            readable_paths,
            private_paths: shell.private_paths.clone(),
            protected_paths: if is_sandboxed && workspace_writable {
                confine::protected_paths(&root)
            } else {
                Vec::new()
            },
            network,
            loopback: confine::LoopbackScope::Session,
            root,
        };
        (profile, notes)
    }
}

/// Time for a call that waits for a job to report its end.
const END_NOTICE_DELAY: Duration = Duration::from_millis(200);

const NO_BASH_MESSAGE: &str = "bash was not found as a system program in /usr/bin, /bin or \
                               /usr/local/bin. Ask the user to install it";

/// Returns the folders that can be opened under the names given, and a note for each other folder.
/// Skips folders that do not exist yet.
pub(crate) fn usable_folders(
    folders: &[PathBuf],
    root: &Path,
    source: &str,
) -> (Vec<PathBuf>, Vec<String>) {
    let mut usable = Vec::new();
    let mut notes = Vec::new();
    for folder in folders {
        let Ok(real) = folder.canonicalize() else { continue };
        let reason = if real != *folder {
            "its path contains a symbolic link"
        } else if real.starts_with(root) {
            "it is inside the workspace"
        } else if !real.is_dir() {
            "it is not a folder"
        } else {
            usable.push(real);
            continue;
        };
        let folder = folder.display();
        notes.push(format!("{source}: {folder} was skipped, because {reason}"));
    }
    (usable, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_folders_outside_the_workspace_are_made_writable() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        for name in ["cache", "work/sub", "far/deep"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("file"), "").unwrap();
        std::os::unix::fs::symlink("far", base.join("link")).unwrap();
        let names = ["cache", "work", "work/sub", "link", "link/deep", "file", "absent"];
        let folders: Vec<PathBuf> = names.iter().map(|name| base.join(name)).collect();
        let (usable, notes) = usable_folders(&folders, &base.join("work"), "here");
        assert_eq!(usable, [base.join("cache")]);
        assert_eq!(notes.len(), 5, "{notes:?}");
        assert_eq!(
            notes.iter().filter(|note| note.contains("a symbolic link")).count(),
            2,
            "{notes:?}"
        );
    }
}
