//! Data types for starting commands and reporting on them, the same on every platform.

use crate::fs::file_change::PendingFileChange;
use crate::{GitHookMode, NetworkPolicy, SandboxMode};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use windlass_protocol::SessionId;

/// Configuration for running the commands of a workspace.
#[derive(Clone, Debug)]
pub struct CommandSandboxConfig {
    pub sandbox_mode: SandboxMode,
    /// Environment from which [`crate::command_environment()`] selects variables.
    pub inherited_env: Vec<(OsString, OsString)>,
    /// Hosts that commands may reach without approval; see [`NetworkPolicy::Listed`].
    pub network_policy: NetworkPolicy,
    /// Folders besides the workspace that commands may change.
    pub writable_folders: Vec<PathBuf>,
    /// Folders outside the workspace that tools and commands may read without approval, besides
    /// toolchains.
    pub readable_folders: Vec<PathBuf>,
    /// The user's home folder. Commands cannot read the secrets in it, and without approval nothing
    /// but toolchains and `readable_folders`.
    pub home: Option<PathBuf>,
    /// Folders outside the workspace that tools may use like it. Commands need them in
    /// `writable_folders`, too.
    pub additional_folders: Vec<PathBuf>,
    /// Paths that commands never see, wherever they are: our own configuration and sessions.
    pub private_paths: Vec<PathBuf>,
    /// Folder for the package caches that commands fill. Without it, caches are read-only.
    pub cache_folder: Option<PathBuf>,
    /// Setting for the project's git hooks: `Run` only in a trusted folder.
    pub git_hooks: GitHookMode,
}

/// Parameters for starting a job.
#[derive(Clone, Copy, Debug)]
pub struct JobSpec<'a> {
    pub session: SessionId,
    /// Command line, passed to the shell.
    pub command: &'a str,
    /// Working folder, relative to the workspace.
    pub folder: &'a str,
    pub stdin: StdinMode,
}

/// Source of a command's stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinMode {
    /// No input: stdin is at end of file from the start.
    Closed,
    /// A pipe, written by [`crate::Job::write_stdin`].
    Pipe,
    /// A terminal of its own, for both input and output.
    Terminal { rows: u16, cols: u16 },
}

/// The exit of a command, with the `leftover` processes that still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReport {
    pub exit: ProcessExit,
    /// Processes of the job that still run.
    pub leftover: Vec<LeftoverProcess>,
    /// Number of running processes beyond those in `leftover`.
    pub more_leftover: usize,
    pub duration: Duration,
}

/// Ways in which a command can end.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// Exited with this code.
    Code(i32),
    /// Terminated by this signal.
    Signal(i32),
    /// Killed because it had more than this many processes.
    TooManyProcesses(usize),
    /// Killed because the machine was almost out of memory.
    OutOfMemory,
    /// Killed because the disk was almost full.
    DiskFull,
    /// Unknown, because the supervisor (`run_supervisor`) was killed from outside.
    SupervisorLost,
}

impl ProcessExit {
    /// Returns the exit code, if the command exited by itself.
    pub fn code(self) -> Option<i32> {
        match self {
            ProcessExit::Code(code) => Some(code),
            ProcessExit::Signal(_)
            | ProcessExit::TooManyProcesses(_)
            | ProcessExit::OutOfMemory
            | ProcessExit::DiskFull
            | ProcessExit::SupervisorLost => None,
        }
    }
}

/// A process that outlives its command.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct LeftoverProcess {
    pub pid: i32,
    pub name: String,
    /// Command line, truncated if long.
    pub command_line: String,
}

/// The captured output of a command: its head, its tail and exact counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    pub head: Vec<u8>,
    /// The end of the output, without the bytes in `head`. Bytes between the two are dropped.
    pub tail: Vec<u8>,
    pub total_bytes: u64,
    /// Number of lines, including an incomplete last line.
    pub total_lines: u64,
}

impl CapturedOutput {
    /// Returns the number of bytes dropped between `head` and `tail`.
    pub fn dropped_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

/// Changes that commands have made.
#[derive(Debug, Default)]
pub struct CommandChanges {
    /// Changes of files, each with the content before and after.
    pub changes: Vec<PendingFileChange>,
    /// Files whose earlier content was not kept, each with the reason.
    pub not_captured: Vec<String>,
}

/// A piece of output since an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputChunk {
    /// The output, with replacement characters for invalid UTF-8.
    pub text: String,
    /// Number of dropped bytes before `text`.
    pub dropped_bytes: u64,
    /// Offset at which to continue reading.
    pub next_offset: u64,
}

/// A preview of a running command's output, from `watch_output`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPreview {
    pub last_lines: String,
    pub total_bytes: u64,
    pub total_lines: u64,
}

/// A host that a command tried to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAttempt {
    /// Host and port, as `host:port`.
    pub host: String,
    /// Reason for the refusal, or `None` if the attempt was allowed.
    pub refusal: Option<String>,
    /// Number of attempts with this answer.
    pub count: u64,
}
