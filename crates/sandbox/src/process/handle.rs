//! The handle of a long-running process, with its exit, stderr and notes.

use crate::command::command_types::{
    CapturedOutput, ExitReport, HostAttempt, OutputChunk, ProcessExit,
};
use crate::command::job::describe_refused_hosts;
use crate::confine::{self, SandboxProfile};
use crate::network::host_access_log::HostAccessLog;
use crate::supervisor::client::SupervisedProcess;
use crate::supervisor::process_tree;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_protocol::mutex_lock::lock;

/// Limits the stderr that [`ProcessHandle::stderr_tail`] returns.
const MAX_STDERR_TAIL_BYTES: usize = 2 << 10;

/// Time that a process may take to end after its handle is dropped.
const DROP_GRACE: Duration = Duration::from_secs(1);

const WIDEN_ACCESS_HINT: &str = "To give it more access, change its config entry: \"write\" and \
                                 \"network\", or in your own config \"sandbox\": false, which \
                                 also allows services of this machine";

/// A handle that keeps a process running. Dropping the last one ends the process and everything it
/// started.
pub struct ProcessHandle {
    name: String,
    process: SupervisedProcess,
    sandbox: SandboxProfile,
    host_log: Arc<Mutex<HostAccessLog>>,
    /// Differences between the requested `SandboxProfile` and the one in which the process started.
    start_notes: Vec<String>,
    /// Forms of the proxy token, which `mask_secrets` removes from stderr.
    secrets: Vec<String>,
}

impl ProcessHandle {
    pub(crate) fn new(
        name: String,
        process: SupervisedProcess,
        sandbox: SandboxProfile,
        host_log: Arc<Mutex<HostAccessLog>>,
        start_notes: Vec<String>,
        secrets: Vec<String>,
    ) -> ProcessHandle {
        ProcessHandle { name, process, sandbox, host_log, start_notes, secrets }
    }

    /// Returns the name of the process, such as `mcp/git`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process ID, or `None` if the start has not succeeded.
    pub fn pid(&self) -> Option<i32> {
        self.process.pid()
    }

    /// Waits until the process exits and its stderr up to then has been read.
    pub async fn wait_for_exit(&self) -> ExitReport {
        self.process.wait_for_exit().await
    }

    /// Returns the exit report, or `None` while the process runs.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.process.exit_report()
    }

    /// Returns true if neither the process nor anything it started runs.
    pub fn is_gone(&self) -> bool {
        self.process.is_gone()
    }

    /// Returns the memory of the process and everything it started, in bytes; shared memory counts
    /// for each process. Reads `/proc` for every process of the machine.
    pub fn memory_bytes(&self) -> u64 {
        let Some(pid) = self.pid().filter(|_| !self.is_gone()) else { return 0 };
        let members = process_tree::descendants(pid).into_iter().map(|(process, _)| process.pid);
        members.chain([pid]).map(process_tree::memory_bytes).sum()
    }

    /// Returns the captured stderr, unmasked. Do not show it.
    pub fn stderr_output(&self) -> CapturedOutput {
        self.process.output()
    }

    /// Returns stderr since `offset`: 0 at first, then [`OutputChunk::next_offset`].
    pub fn stderr_since(&self, offset: u64) -> OutputChunk {
        let mut chunk = self.process.output_since(offset);
        chunk.text = self.mask_secrets(&chunk.text);
        chunk
    }

    /// Returns the end of stderr, masked and without control characters, for display.
    pub fn stderr_tail(&self) -> String {
        let output = self.process.output();
        // If bytes between head and tail were dropped, joining the two would corrupt a line, so
        // only the tail is used.
        let bytes = if output.dropped_bytes() > 0 {
            output.tail
        } else {
            [output.head, output.tail].concat()
        };
        let text = self.mask_secrets(&String::from_utf8_lossy(&bytes));
        let plain: String =
            text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        let plain = plain.trim();
        let start = plain.ceil_char_boundary(plain.len().saturating_sub(MAX_STDERR_TAIL_BYTES));
        plain.get(start..).unwrap_or_default().trim_start().to_owned()
    }

    /// Describes the exit in sentences, with its cause as far as known; `None` while the process
    /// runs.
    pub fn exit_summary(&self) -> Option<String> {
        let report = self.exit_report()?;
        let outcome = match report.exit {
            ProcessExit::Code(code) => format!("exited with code {code}"),
            ProcessExit::Signal(signal) => format!("was killed by signal {signal}"),
            ProcessExit::TooManyProcesses(limit) => {
                format!("was killed, because it had more than {limit} processes")
            }
            ProcessExit::OutOfMemory => {
                "was killed, because the machine was almost out of memory".to_owned()
            }
            ProcessExit::DiskFull => "was killed, because the disk was almost full".to_owned(),
            ProcessExit::SupervisorLost => "was killed by another program".to_owned(),
        };
        let stderr = self.stderr_tail();
        let stderr = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
        let notes: String = self.notes().iter().map(|note| format!("\n({note})")).collect();
        Some(format!("{} {outcome}{stderr}{notes}", self.name))
    }

    /// Returns notes about the sandbox of the process and about failures it caused, as far as
    /// known.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.start_notes.clone();
        let code = self.exit_report().and_then(|report| report.exit.code());
        let refused = {
            let host_log = lock(&self.host_log);
            describe_refused_hosts(&host_log.since(0), host_log.dropped_count())
        };
        let explanation = confine::explain_failure(&self.stderr_tail(), code, &self.sandbox);
        let is_blocked = explanation.is_some() || refused.is_some();
        notes.extend(explanation);
        notes.extend(refused);
        notes.extend(is_blocked.then(|| WIDEN_ACCESS_HINT.to_owned()));
        notes
    }

    /// Returns the host attempts from index `start` on, one per host and answer, in the order they
    /// first occurred.
    pub fn host_attempts(&self, start: usize) -> Vec<HostAttempt> {
        lock(&self.host_log).since(start)
    }

    /// Asks the process and everything it started to end, and kills the processes that still run
    /// after `grace`. Nothing of it runs on return, unless the kernel blocks a process.
    pub async fn terminate(&self, grace: Duration) {
        self.process.kill_after(grace).await;
    }

    fn mask_secrets(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.secrets {
            masked = masked.replace(secret.as_str(), "…");
        }
        masked
    }
}

impl Drop for ProcessHandle {
    fn drop(&mut self) {
        self.process.kill_without_waiting(DROP_GRACE);
    }
}

impl std::fmt::Debug for ProcessHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessHandle").field("name", &self.name).finish_non_exhaustive()
    }
}
