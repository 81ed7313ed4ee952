//! A running job of the supervisor, and the state of its termination.

use super::free_resources::WatchedDisk;
use crate::command::command_types::ProcessExit;
use crate::confine::PathGuard;
use crate::supervisor::limits::JobLimits;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process_group};
use std::time::Instant;

/// A command and everything it started.
pub(super) struct RunningJob {
    pub(super) pid: Pid,
    pub(super) command_line: String,
    /// Set while the command runs.
    pub(super) command_pidfd: Option<OwnedFd>,
    /// Pidfds of some processes that outlive the command.
    pub(super) leftover_pidfds: Vec<OwnedFd>,
    /// Device and inode of the program that keeps the sandbox open (bubblewrap), which is not part
    /// of the job.
    pub(super) sandbox_program: Option<(u64, u64)>,
    /// Answers the command's system calls that create or change names.
    pub(super) path_guard: Option<PathGuard>,
    pub(super) limits: JobLimits,
    pub(super) disks: Vec<WatchedDisk>,
    pub(super) fate: JobTerminationState,
    /// Set if the job was killed because of a limit.
    pub(super) exceeded_limit: Option<ProcessExit>,
}

#[derive(Clone, Copy)]
pub(super) enum JobTerminationState {
    Running,
    /// Asked to end; killed at `kill_at`.
    Terminating {
        kill_at: Instant,
    },
    Killing {
        since: Instant,
    },
}

impl RunningJob {
    pub(super) fn start_killing(&mut self) {
        if !self.is_being_killed() {
            self.fate = JobTerminationState::Killing { since: Instant::now() };
            // Without the guard, the job's pending and later calls fail at once.
            self.path_guard = None;
            // Kills the command's group before searching for processes, because the search is slow
            // if there are many. The PID cannot be reused, because the command is not reaped yet.
            if self.command_pidfd.is_some() {
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
        }
    }

    /// Kills the job because of a limit, which is reported as its exit.
    pub(super) fn kill_for(&mut self, exit: ProcessExit) {
        if !self.is_being_killed() {
            self.exceeded_limit = Some(exit);
        }
        self.start_killing();
    }

    pub(super) fn is_being_killed(&self) -> bool {
        matches!(self.fate, JobTerminationState::Killing { .. })
    }
}
