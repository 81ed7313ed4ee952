//! Stubs for platforms on which commands cannot run yet: all but Linux. The names are the same as
//! on Linux, so that callers need no special case; no [`Job`] can be constructed.

mod start;

use crate::Error;
use crate::command::command_types::{
    CapturedOutput, CommandSandboxConfig, ExitReport, HostAttempt, OutputChunk, OutputPreview,
};
use crate::path_lookup::MachinePathLookup;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use windlass_protocol::{JobRow, UnixMillis};

/// The `MachinePathLookup` of a workspace; there are no jobs.
#[derive(Debug)]
pub(crate) struct WorkspaceJobs(Arc<MachinePathLookup>);

impl WorkspaceJobs {
    fn new(shell: &CommandSandboxConfig, root: &Path) -> WorkspaceJobs {
        let home = shell.home.as_deref();
        let sandbox_mode = shell.sandbox_mode.clone();
        let lookup = MachinePathLookup::new(root, home, &shell.inherited_env, sandbox_mode);
        let lookup = lookup
            .with_folders(shell.additional_folders.clone(), shell.private_paths.clone())
            .with_readable_folders(shell.readable_folders.clone());
        WorkspaceJobs(Arc::new(lookup))
    }
}

/// Returns the `Error::NotStarted` for commands on an unsupported platform.
fn unsupported() -> Error {
    Error::NotStarted { reason: "commands are supported on Linux only, for now".to_owned() }
}

/// Fails: there is no supervisor on this platform.
pub fn run_supervisor() -> Result<(), Error> {
    Err(unsupported())
}

/// A job of a session; cannot be constructed on this platform.
#[derive(Debug)]
pub enum Job {}

#[allow(missing_docs, reason = "documented in the Linux implementation; these cannot be called")]
impl Job {
    pub fn id(&self) -> u64 {
        match *self {}
    }

    pub fn command(&self) -> &str {
        match *self {}
    }

    pub async fn wait_for_exit(&self) -> ExitReport {
        match *self {}
    }

    pub fn exit_report(&self) -> Option<ExitReport> {
        match *self {}
    }

    pub fn is_gone(&self) -> bool {
        match *self {}
    }

    pub fn output(&self) -> CapturedOutput {
        match *self {}
    }

    pub fn row(&self, _now: UnixMillis) -> JobRow {
        match *self {}
    }

    pub fn take_whole_output(&self) -> Option<Vec<u8>> {
        match *self {}
    }

    pub fn output_tail(&self) -> String {
        match *self {}
    }

    pub fn output_since(&self, _offset: &mut u64) -> Vec<OutputChunk> {
        match *self {}
    }

    pub fn unread_output(&self) -> Vec<OutputChunk> {
        match *self {}
    }

    pub fn mask_secrets(&self, _text: &str) -> String {
        match *self {}
    }

    pub fn watch_output(&self) -> watch::Receiver<OutputPreview> {
        match *self {}
    }

    pub async fn write_stdin(&self, _bytes: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    pub async fn kill(&self) {
        match *self {}
    }

    pub async fn kill_in_background(&self) {
        match *self {}
    }

    pub fn host_attempts(&self, _start: usize) -> Vec<HostAttempt> {
        match *self {}
    }

    pub fn dropped_hosts(&self) -> u64 {
        match *self {}
    }

    pub fn is_sandboxed(&self) -> bool {
        match *self {}
    }

    pub fn has_no_snapshot(&self) -> bool {
        match *self {}
    }

    pub fn notes(&self) -> Vec<String> {
        match *self {}
    }

    pub fn final_notes(&self) -> Vec<String> {
        match *self {}
    }
}

/// The handle of a long-running process; cannot be constructed on this platform.
#[derive(Debug)]
pub enum ProcessHandle {}

#[allow(missing_docs, reason = "documented in the Linux implementation; these cannot be called")]
impl ProcessHandle {
    pub fn name(&self) -> &str {
        match *self {}
    }

    pub fn pid(&self) -> Option<i32> {
        match *self {}
    }

    pub async fn wait_for_exit(&self) -> ExitReport {
        match *self {}
    }

    pub fn exit_report(&self) -> Option<ExitReport> {
        match *self {}
    }

    pub fn is_gone(&self) -> bool {
        match *self {}
    }

    pub fn memory_bytes(&self) -> u64 {
        match *self {}
    }

    pub fn stderr_output(&self) -> CapturedOutput {
        match *self {}
    }

    pub fn stderr_since(&self, _offset: u64) -> OutputChunk {
        match *self {}
    }

    pub fn stderr_tail(&self) -> String {
        match *self {}
    }

    pub fn exit_summary(&self) -> Option<String> {
        match *self {}
    }

    pub fn notes(&self) -> Vec<String> {
        match *self {}
    }

    pub fn host_attempts(&self, _start: usize) -> Vec<HostAttempt> {
        match *self {}
    }

    pub async fn terminate(&self, _grace: Duration) {
        match *self {}
    }
}
