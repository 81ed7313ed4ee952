//! A job of a session: its output, exit and stdin, and notes for the model.

use crate::Error;
use crate::command::captured_changes::CapturedChanges;
use crate::command::command_types::{
    CapturedOutput, ExitReport, HostAttempt, OutputChunk, OutputPreview,
};
use crate::confine::{self, ProtectedPathsSnapshot, SandboxBackend, SandboxProfile};
use crate::network::host_access_log::HostAccessLog;
use crate::supervisor::client::SupervisedProcess;
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{JobRow, UnixMillis};

/// Most chunks that [`Job::output_since`] returns: the rest of the head, then the tail.
const MAX_CHUNKS: usize = 2;

/// Limits the output that [`Job::output_tail`] shows the user.
const MAX_OUTPUT_TAIL_BYTES: usize = 32 << 10;

/// Limits the refused hosts that a note names.
const MAX_NAMED_HOSTS: usize = 5;

/// Keeps the state of the protected paths for the next command of the session.
pub(super) type KeepSnapshot = Box<dyn Fn(ProtectedPathsSnapshot) + Send + Sync>;

/// A job of a session: a shell command and every process it started.
pub struct Job {
    process: SupervisedProcess,
    sandbox: SandboxProfile,
    /// State of the protected paths before the command started, and the function that keeps the
    /// state after it; [`Job::notes`] compares them.
    protected_paths: Option<(ProtectedPathsSnapshot, KeepSnapshot)>,
    captured_changes: Option<CapturedChanges>,
    host_log: Arc<Mutex<HostAccessLog>>,
    /// Differences between the requested `SandboxProfile` and the one in which the job started.
    start_notes: Vec<String>,
    /// Forms of the proxy token, which [`Job::mask_secrets`] removes from output.
    secrets: Vec<String>,
    /// Offset up to which [`Job::unread_output`] has returned output.
    read_offset: Mutex<u64>,
    /// Set once [`Job::final_notes`] has returned the notes.
    final_notes_taken: AtomicBool,
    in_background: AtomicBool,
}

impl Job {
    pub(crate) fn new(
        process: SupervisedProcess,
        sandbox: SandboxProfile,
        protected_paths: Option<(ProtectedPathsSnapshot, KeepSnapshot)>,
        captured_changes: Option<CapturedChanges>,
        host_log: Arc<Mutex<HostAccessLog>>,
        start_notes: Vec<String>,
        secrets: Vec<String>,
    ) -> Job {
        Job {
            process,
            sandbox,
            protected_paths,
            captured_changes,
            host_log,
            start_notes,
            secrets,
            read_offset: Mutex::default(),
            final_notes_taken: AtomicBool::default(),
            in_background: AtomicBool::default(),
        }
    }

    /// Returns the ID of the job, unique in its session.
    pub fn id(&self) -> u64 {
        self.process.id()
    }

    /// Returns the shell command.
    pub fn command(&self) -> &str {
        self.process.command()
    }

    /// Waits until the command exits, even if processes it started still run.
    pub async fn wait_for_exit(&self) -> ExitReport {
        self.process.wait_for_exit().await
    }

    /// Returns the exit report, or `None` while the command runs.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.process.exit_report()
    }

    /// Waits until no process of the job runs.
    pub(crate) async fn wait_until_gone(&self) {
        self.process.wait_until_gone().await;
    }

    /// Returns the `JobRow` for front ends as of `now`, with the last few lines of output.
    pub fn row(&self, now: UnixMillis) -> JobRow {
        let exit_code = self.exit_report().and_then(|report| report.exit.code());
        let age = u64::try_from(self.process.age().as_millis()).unwrap_or(u64::MAX);
        JobRow {
            id: self.id(),
            command: self.command().to_owned(),
            running: !self.is_gone(),
            exit_code,
            started_at: UnixMillis(now.0.saturating_sub(age)),
            output_tail: self.mask_secrets(&self.watch_output().borrow().last_lines),
        }
    }

    /// Returns true if `follow_job` has moved the job to the background.
    pub fn is_in_background(&self) -> bool {
        self.in_background.load(Ordering::Acquire)
    }

    /// Returns true if a call has returned the output with the exit and its notes.
    pub(crate) fn has_reported_end(&self) -> bool {
        self.final_notes_taken.load(Ordering::Acquire)
    }

    pub(crate) fn set_in_background(&self) {
        self.in_background.store(true, Ordering::Release);
    }

    /// Returns true if no process of the job runs.
    pub fn is_gone(&self) -> bool {
        self.process.is_gone()
    }

    /// Returns the captured output, unmasked. Pass it through [`Job::mask_secrets`] before showing
    /// it.
    pub fn output(&self) -> CapturedOutput {
        self.process.output()
    }

    /// Returns the whole of a large output, once, if it was kept; unmasked.
    pub fn take_whole_output(&self) -> Option<Vec<u8>> {
        let mut file = self.process.take_whole_output()?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Returns the end of the output, masked, at most `MAX_OUTPUT_TAIL_BYTES`.
    pub fn output_tail(&self) -> String {
        let output = self.output();
        let bytes = if output.dropped_bytes() > 0 {
            output.tail
        } else {
            [output.head, output.tail].concat()
        };
        let (dropped, tail) = bytes.split_at(bytes.len().saturating_sub(MAX_OUTPUT_TAIL_BYTES));
        // Omits the first line if it was cut.
        let first_line_end =
            tail.iter().position(|byte| *byte == b'\n').filter(|_| !dropped.is_empty());
        let tail = tail.get(first_line_end.map_or(0, |end| end + 1)..).unwrap_or_default();
        self.mask_secrets(&String::from_utf8_lossy(tail))
    }

    /// Returns the output since `offset` (0 at first) and advances `offset`: one chunk, or two with
    /// a gap between them. Returns only output captured so far, so a command that writes fast cannot
    /// prolong the call.
    pub fn output_since(&self, offset: &mut u64) -> Vec<OutputChunk> {
        let mut chunks = Vec::new();
        while chunks.len() < MAX_CHUNKS {
            let mut chunk = self.process.output_since(*offset);
            if chunk.next_offset == *offset {
                break;
            }
            *offset = chunk.next_offset;
            chunk.text = self.mask_secrets(&chunk.text);
            chunks.push(chunk);
        }
        chunks
    }

    /// Returns the output since the last call.
    pub fn unread_output(&self) -> Vec<OutputChunk> {
        self.output_since(&mut lock(&self.read_offset))
    }

    /// Replaces every form of the proxy token in `text` with `…`.
    pub fn mask_secrets(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.secrets {
            masked = masked.replace(secret.as_str(), "…");
        }
        masked
    }

    /// Subscribes to an [`OutputPreview`] of the output while the command runs.
    pub fn watch_output(&self) -> watch::Receiver<OutputPreview> {
        self.process.watch_output()
    }

    /// Writes to the stdin of the command. Fails with `Error::NoStdin` if it has none.
    pub async fn write_stdin(&self, bytes: &[u8]) -> Result<(), Error> {
        self.process.write_stdin(bytes).await
    }

    /// Ends the job and every process it started.
    pub async fn kill(&self) {
        self.process.kill().await;
    }

    /// Requests the end of the job like [`Job::kill`], without waiting for it.
    pub async fn kill_in_background(&self) {
        self.process.kill_in_background().await;
    }

    /// Returns the host attempts from index `start` on, one per host and answer, in the order they
    /// first occurred.
    pub fn host_attempts(&self, start: usize) -> Vec<HostAttempt> {
        lock(&self.host_log).since(start)
    }

    /// Returns the number of host decisions that the `HostAccessLog` had no room for.
    pub fn dropped_hosts(&self) -> u64 {
        lock(&self.host_log).dropped_count()
    }

    pub(super) fn captured_changes(&self) -> Option<&CapturedChanges> {
        self.captured_changes.as_ref()
    }

    /// Returns false if the job runs without a sandbox, so that its changes are not known.
    pub fn is_sandboxed(&self) -> bool {
        self.sandbox.backend != SandboxBackend::Off
    }

    /// Returns true if [`Job::notes`] reads no files and therefore returns at once.
    pub fn has_no_snapshot(&self) -> bool {
        self.protected_paths.is_none()
    }

    /// Returns notes for readers of the output: failures caused by the sandbox, refused hosts, and
    /// protected paths that changed.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.start_notes.clone();
        if let Some(report) = self.exit_report() {
            let output = self.output();
            let text = [output.head, output.tail].concat();
            let text = String::from_utf8_lossy(&text);
            let code = report.exit.code().filter(|_| !hides_exit_code(self.command()));
            notes.extend(confine::explain_failure(&text, code, &self.sandbox));
        }
        notes.extend(describe_refused_hosts(&self.host_attempts(0), self.dropped_hosts()));
        let mut changed = Vec::new();
        if let Some((before, keep_snapshot)) = &self.protected_paths {
            let after;
            (changed, after) = confine::changed_since(before);
            keep_snapshot(after);
        }
        if !changed.is_empty() {
            let names: Vec<String> =
                changed.iter().map(|path| path.display().to_string()).collect();
            notes.push(format!(
                "protected paths changed while it or another job ran: {}. If no other program did \
                 that, tell the user before anything else",
                names.join(", ")
            ));
        }
        notes
    }

    /// Returns [`Job::notes`] once, on the first call after the command has exited; later calls
    /// return nothing.
    pub fn final_notes(&self) -> Vec<String> {
        let is_first =
            self.exit_report().is_some() && !self.final_notes_taken.swap(true, Ordering::AcqRel);
        if is_first { self.notes() } else { Vec::new() }
    }
}

/// Describes the refused hosts in one sentence, or returns `None` if there are none.
pub(crate) fn describe_refused_hosts(
    attempts: &[HostAttempt],
    dropped_count: u64,
) -> Option<String> {
    let refused: Vec<&HostAttempt> =
        attempts.iter().filter(|attempt| attempt.refusal.is_some()).collect();
    let first = refused.first()?;
    let names: Vec<&str> =
        refused.iter().take(MAX_NAMED_HOSTS).map(|attempt| attempt.host.as_str()).collect();
    let more = refused.len().saturating_sub(MAX_NAMED_HOSTS) as u64 + dropped_count;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let reason = first.refusal.as_deref().unwrap_or_default();
    Some(format!("network access was refused: {}{more} ({reason})", names.join(", ")))
}

/// Programs at the end of a pipe that succeed whatever the others do.
const ALWAYS_SUCCEEDING_PROGRAMS: [&str; 4] = ["tail", "head", "tee", "cat"];
/// Programs that print the texts of files, which may contain messages about errors.
const FILE_PRINTING_PROGRAMS: [&str; 9] =
    ["grep", "rg", "git", "cat", "sed", "awk", "less", "find", "journalctl"];

/// Returns true if the exit code of a command says nothing about the programs in it:
/// `make | tail`. Commands that only show files do not count.
fn hides_exit_code(command: &str) -> bool {
    let statements = command.split(['\n', ';']).flat_map(|part| part.split("&&"));
    let last = statements.filter(|statement| !statement.trim().is_empty()).last();
    let Some((first, rest)) = last.unwrap_or_default().split_once('|') else { return false };
    let last = rest.rsplit('|').next().unwrap_or_default();
    ALWAYS_SUCCEEDING_PROGRAMS.contains(&first_word(last))
        && !FILE_PRINTING_PROGRAMS.contains(&first_word(first))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_into_tail_hides_the_exit_code() {
        for command in ["npm ci 2>&1 | tail -3", "cd a && make | tee log", "x; y | head"] {
            assert!(hides_exit_code(command), "{command}");
        }
        for command in
            ["make", "make || true", "grep -r EROFS . | head", "git log | tail", "ls | wc"]
        {
            assert!(!hides_exit_code(command), "{command}");
        }
    }
}
