//! Client of the supervisor: starts the commands of a session, reads their output, writes to their
//! stdin, waits for them and ends them.
//!
//! A job is a command and everything it starts. Callers that wait see it end when the command
//! itself exits. Background processes stay tracked until they are gone, and none outlives the
//! session: see [`crate::run_supervisor()`]. Start reading at [`SupervisorClient::start`].
#![allow(
    clippy::disallowed_methods,
    reason = "commands are started only here; one thread per command reads its output, so that \
              no amount of output blocks a session"
)]

use crate::command::command_types::{
    CapturedOutput, ExitReport, OutputChunk, OutputPreview, StdinMode,
};
use crate::command::head_tail_buffer::HeadTailBuffer;
use crate::command::output_reader::{SharedJobState, start_output_reader};
use crate::command::stdio::{JobStdio, StdioPipes};
use crate::supervisor::connection::{SUPERVISOR_TIMEOUT, SupervisorConnection};
use crate::supervisor::limits::JobLimits;
use crate::supervisor::messages::{
    SerializedOsString, SpawnRequest, StdioLayout, SupervisorRequest,
};
use crate::{Error, PackageCaches, SandboxProfile};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use windlass_protocol::mutex_lock::lock;

/// Time between asking a job to end and killing it.
const KILL_GRACE: Duration = Duration::from_secs(3);
/// Time between asking a job to end and killing it when the session ends.
const SESSION_END_GRACE: Duration = Duration::from_secs(1);
/// Number of finished jobs whose output can still be read.
const MAX_FINISHED_JOBS: usize = 32;

/// A command to start.
#[derive(Clone, Debug)]
pub struct SpawnSpec {
    /// Command line, passed to the shell.
    pub command: String,
    /// Path to bash.
    pub shell: PathBuf,
    pub folder: PathBuf,
    /// The whole environment; nothing is inherited. See [`crate::command_environment()`].
    pub env: Vec<(OsString, OsString)>,
    pub sandbox: SandboxProfile,
    pub package_caches: Option<PackageCaches>,
    pub stdin: StdinMode,
    /// Folder for a file with the whole output, if that is to be kept.
    pub spill_folder: Option<PathBuf>,
    /// A file to which the supervisor appends what the command is about to change.
    pub capture_file: Option<Arc<File>>,
    pub limits: JobLimits,
}

/// A long-running process to start; see [`SupervisorClient::start_process`].
pub(crate) struct ProcessSpawnSpec {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: PathBuf,
    /// The whole environment; nothing is inherited.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) sandbox: SandboxProfile,
}

/// A started process, with our ends of its stdin and stdout.
pub(crate) struct SpawnedProcess {
    pub(crate) process: SupervisedProcess,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
}

/// The jobs of a session, run by its supervisor. Dropping the last clone ends all jobs that still
/// run.
#[derive(Clone, Default)]
pub struct SupervisorClient(Arc<SupervisorClientState>);

#[derive(Default)]
struct SupervisorClientState {
    connection: Mutex<Option<Arc<SupervisorConnection>>>,
    jobs: Mutex<BTreeMap<u64, SupervisedProcess>>,
    last_id: Mutex<u64>,
    /// Temporary folder that the supervisor removes with the session, however the session ends.
    temp_dir: Option<PathBuf>,
}

impl Drop for SupervisorClientState {
    fn drop(&mut self) {
        // A caller that still has a job must not keep it running.
        if let Some(connection) = lock(&self.connection).take() {
            connection.close();
        }
    }
}

/// A command or process that a [`SupervisorClient`] started.
#[derive(Clone)]
pub struct SupervisedProcess {
    record: Arc<SharedJobState>,
    connection: Arc<SupervisorConnection>,
}

impl SupervisorClient {
    /// Creates a client without jobs. The supervisor starts with the first job.
    pub fn new() -> SupervisorClient {
        SupervisorClient::default()
    }

    /// Creates a client for a session with a temporary folder. The supervisor removes the folder
    /// when the session has ended and nothing of it runs, even if the session was killed.
    pub fn with_temp(temp: &Path) -> SupervisorClient {
        let mut session = SupervisorClientState::default();
        session.temp_dir = Some(temp.to_owned());
        SupervisorClient(Arc::new(session))
    }

    /// Starts a command. If the caller drops the future before the start completes, the command is
    /// ended.
    pub async fn start(&self, spec: SpawnSpec) -> Result<SupervisedProcess, Error> {
        let (stdio, mut child_fds, layout) = JobStdio::open(spec.stdin).map_err(not_started)?;
        if let Some(file) = &spec.capture_file {
            child_fds.push(file.try_clone().map_err(not_started)?.into());
        }
        let id = self.next_id();
        let output = spec.spill_folder.clone().map(HeadTailBuffer::with_spill_folder);
        let output = output.unwrap_or_default();
        let record = SharedJobState::new(id, spec.command.clone(), stdio.input, output)
            .map_err(not_started)?;
        self.start_supervised(record, spawn_request(id, spec, layout), child_fds, stdio.output)
            .await
    }

    /// Starts a long-running process. The caller gets its stdin and stdout; its stderr is captured
    /// like the output of a command. The process stays tracked until [`SupervisorClient::forget`].
    pub(crate) async fn start_process(
        &self,
        spec: ProcessSpawnSpec,
    ) -> Result<SpawnedProcess, Error> {
        let (pipes, child_fds) = StdioPipes::open().map_err(not_started)?;
        let id = self.next_id();
        let record = SharedJobState::new(id, spec.name, None, HeadTailBuffer::default())
            .map_err(not_started)?;
        let request = SpawnRequest {
            job: id,
            program: spec.program.into_os_string().into(),
            arguments: spec.arguments.into_iter().map(SerializedOsString::from).collect(),
            environment: to_os_text(spec.env),
            folder: spec.folder.into_os_string().into(),
            sandbox: spec.sandbox,
            package_caches: None,
            stdio: StdioLayout::ThreePipes,
            has_capture_file: false,
            limits: JobLimits::default(),
        };
        let job = self.start_supervised(record, request, child_fds, pipes.stderr).await?;
        Ok(SpawnedProcess { process: job, stdin: pipes.stdin, stdout: pipes.stdout })
    }

    /// Stops tracking a job, without ending it.
    pub(crate) fn forget(&self, job: &SupervisedProcess) {
        lock(&self.0.jobs).remove(&job.id());
    }

    fn next_id(&self) -> u64 {
        let mut count = lock(&self.0.last_id);
        *count += 1;
        *count
    }

    async fn start_supervised(
        &self,
        record: Arc<SharedJobState>,
        request: SpawnRequest,
        child_fds: Vec<OwnedFd>,
        output: OwnedFd,
    ) -> Result<SupervisedProcess, Error> {
        let job = SupervisedProcess { record: Arc::clone(&record), connection: self.connection()? };
        job.connection.register(&record);
        self.track(&job);
        let mut guard = JobStartGuard { process: Some(job.clone()), client: self };
        job.connection.send(&SupervisorRequest::Start(Box::new(request)), &child_fds).await?;
        drop(child_fds);
        start_output_reader(output, &record).map_err(not_started)?;
        record.wait_for_start().await?;
        guard.process = None;
        Ok(job)
    }

    /// Returns all tracked jobs, oldest first.
    pub fn list(&self) -> Vec<SupervisedProcess> {
        lock(&self.0.jobs).values().cloned().collect()
    }

    /// Ends all jobs that still run. None runs on return, unless the kernel blocks a process.
    pub async fn end_all(&self) {
        let jobs: Vec<SupervisedProcess> =
            self.list().into_iter().filter(|job| !job.is_gone()).collect();
        for job in &jobs {
            let _ = job.request_end(SESSION_END_GRACE).await;
        }
        for job in &jobs {
            // The supervisor keeps killing the remaining processes, as long as it lives.
            let _ =
                timeout(SESSION_END_GRACE + SUPERVISOR_TIMEOUT, job.record.wait_until_gone()).await;
        }
    }

    /// Returns true if a supervisor runs.
    pub(crate) fn has_supervisor(&self) -> bool {
        lock(&self.0.connection).as_ref().is_some_and(|connection| connection.is_alive())
    }

    /// Returns the connection to the supervisor; opens a new one if the last one was lost.
    fn connection(&self) -> Result<Arc<SupervisorConnection>, Error> {
        let mut connection = lock(&self.0.connection);
        match connection.as_ref().filter(|connection| connection.is_alive()) {
            Some(connection) => Ok(Arc::clone(connection)),
            None => {
                let opened = SupervisorConnection::open(self.0.temp_dir.as_deref());
                let opened = opened.map_err(|source| Error::SupervisorFailed { source })?;
                Ok(Arc::clone(connection.insert(opened)))
            }
        }
    }

    /// Tracks a job. Drops the oldest finished jobs beyond `MAX_FINISHED_JOBS`, because each keeps
    /// its output.
    fn track(&self, job: &SupervisedProcess) {
        let mut jobs = lock(&self.0.jobs);
        let finished: Vec<u64> =
            jobs.iter().filter(|(_, job)| job.is_gone()).map(|(id, _)| *id).collect();
        for id in finished.iter().rev().skip(MAX_FINISHED_JOBS - 1) {
            jobs.remove(id);
        }
        jobs.insert(job.id(), job.clone());
    }
}

/// Guards a job until [`SupervisorClient::start`] returns it: on drop before that, the job is
/// forgotten and ended.
struct JobStartGuard<'a> {
    process: Option<SupervisedProcess>,
    client: &'a SupervisorClient,
}

impl Drop for JobStartGuard<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.process.take() {
            lock(&self.client.0.jobs).remove(&job.id());
            // If the job was not started, there is nothing to end. If the message cannot be sent
            // now, the supervisor is not reading, and the end of the session ends the job.
            let _ = job.connection.try_send(&SupervisorRequest::End { job: job.id(), grace: 0 });
        }
    }
}

fn not_started(error: std::io::Error) -> Error {
    Error::NotStarted { reason: error.to_string() }
}

fn to_os_text(
    environment: Vec<(OsString, OsString)>,
) -> Vec<(SerializedOsString, SerializedOsString)> {
    environment
        .into_iter()
        .map(|(name, value)| (SerializedOsString::from(name), SerializedOsString::from(value)))
        .collect()
}

fn spawn_request(job: u64, spec: SpawnSpec, stdio: StdioLayout) -> SpawnRequest {
    SpawnRequest {
        job,
        program: spec.shell.into_os_string().into(),
        arguments: vec![
            SerializedOsString::Text("-c".to_owned()),
            SerializedOsString::Text(spec.command),
        ],
        environment: to_os_text(spec.env),
        folder: spec.folder.into_os_string().into(),
        sandbox: spec.sandbox,
        package_caches: spec.package_caches,
        stdio,
        has_capture_file: spec.capture_file.is_some(),
        limits: spec.limits,
    }
}

impl SupervisedProcess {
    /// Returns the ID of the job, unique in its session.
    pub fn id(&self) -> u64 {
        self.record.id
    }

    /// Returns the shell command, or the name of the process.
    pub fn command(&self) -> &str {
        &self.record.command
    }

    /// Returns the time since the start.
    pub(crate) fn age(&self) -> Duration {
        self.record.age()
    }

    /// Returns the process ID, or `None` if the start has not succeeded.
    pub fn pid(&self) -> Option<i32> {
        self.record.pid()
    }

    /// Takes the listening socket at the proxy's port in the job's own network namespace; `None` if
    /// it has no such namespace or the socket was already taken.
    pub fn take_listener(&self) -> Option<OwnedFd> {
        self.record.take_listener()
    }

    /// Returns the exit report, or `None` while the command runs.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.record.exit_report()
    }

    /// Returns true if no process of the job runs.
    pub fn is_gone(&self) -> bool {
        self.record.is_gone()
    }

    /// Waits until the command exits and its output up to then has been read, even if processes it
    /// started still run.
    pub async fn wait_for_exit(&self) -> ExitReport {
        self.record.wait_for_exit().await
    }

    /// Waits until no process of the job runs.
    pub async fn wait_until_gone(&self) {
        self.record.wait_until_gone().await;
    }

    /// Returns the [`CapturedOutput`]: head, tail and counts.
    pub fn output(&self) -> CapturedOutput {
        self.record.output().to_captured_output()
    }

    /// Returns the whole output of a large one, once, if it was kept.
    pub(crate) fn take_whole_output(&self) -> Option<File> {
        self.record.output().take_spilled()
    }

    /// Returns the output since `offset`: 0 at first, then [`OutputChunk::next_offset`].
    pub fn output_since(&self, offset: u64) -> OutputChunk {
        let is_closed = self.record.is_output_closed();
        self.record.output().chunk_since(offset, is_closed)
    }

    /// Subscribes to [`OutputPreview`]s: a new one at most every 100 ms.
    pub fn watch_output(&self) -> watch::Receiver<OutputPreview> {
        self.record.watch_output()
    }

    /// Writes exactly these bytes to stdin. If the command reads nothing for 5 s, fails with the
    /// number of bytes written. If the caller cancels it earlier, part of the bytes may have been
    /// written.
    pub async fn write_stdin(&self, bytes: &[u8]) -> Result<(), Error> {
        self.record.write_stdin(bytes).await
    }

    /// Asks the job and everything it started to end, and kills the processes that still run after
    /// 3 s. Nothing of it runs on return, unless the kernel blocks a process.
    pub async fn kill(&self) {
        self.kill_after(KILL_GRACE).await;
    }

    /// Asks the job to end like [`SupervisedProcess::kill`], without waiting for it.
    pub async fn kill_in_background(&self) {
        if !self.is_gone() {
            // If the connection is lost, so is the job.
            let _ = self.request_end(KILL_GRACE).await;
        }
    }

    /// Ends the job, for callers that cannot wait, such as `Drop`.
    pub(crate) fn kill_without_waiting(&self, grace: Duration) {
        if self.is_gone() {
            return;
        }
        let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let sent =
            self.connection.try_send(&SupervisorRequest::End { job: self.id(), grace: millis });
        // The socket was full. Without a runtime to retry, the end of the session ends the job.
        if sent.is_err()
            && self.connection.is_alive()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let job = self.clone();
            runtime.spawn(async move { job.kill_after(grace).await });
        }
    }

    /// Ends the job like [`SupervisedProcess::kill`], with another grace period; zero kills at
    /// once.
    pub async fn kill_after(&self, grace: Duration) {
        if self.is_gone() {
            return;
        }
        // If the connection is lost, so is the job.
        if self.request_end(grace).await.is_ok() {
            let _ = timeout(grace + SUPERVISOR_TIMEOUT, self.record.wait_until_gone()).await;
        }
    }

    async fn request_end(&self, grace: Duration) -> Result<(), Error> {
        let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.connection.send(&SupervisorRequest::End { job: self.id(), grace }, &[]).await
    }
}

impl std::fmt::Debug for SupervisedProcess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SupervisedProcess").field("id", &self.id()).finish_non_exhaustive()
    }
}
