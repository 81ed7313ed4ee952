//! The mark that every process of a job carries, wherever it is in the process tree.
//!
//! The mark is the soft `RLIMIT_RTTIME`, which children inherit and no program changes. It limits
//! the CPU time of realtime processes in microseconds; the value is so large that it never takes
//! effect. Unlike the environment, the kernel shows it without the lock on the memory of the
//! process: in a fork bomb thousands of processes wait for the CPU, and one of them that holds its
//! own lock would block the reader for minutes.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io;

/// Tells a mark from an ordinary limit.
const MARK_BASE: u64 = 1 << 60;
const SUPERVISOR_SHIFT: u32 = 32;

/// Identifies a job of any supervisor on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobMark {
    pub(crate) supervisor_pid: u32,
    pub(crate) job: u32,
}

impl JobMark {
    /// Creates the mark of a job. Job numbers beyond 32 bits wrap, because no two jobs that far
    /// apart run at once.
    pub(super) fn new(supervisor: Pid, job: u64) -> JobMark {
        JobMark { supervisor_pid: supervisor.as_raw_pid().cast_unsigned(), job: job as u32 }
    }

    /// Marks this process and its future children. Does nothing if the hard limit is too low.
    pub(super) fn apply(self) -> io::Result<()> {
        let value =
            MARK_BASE | u64::from(self.supervisor_pid) << SUPERVISOR_SHIFT | u64::from(self.job);
        let hard_limit = getrlimit(Resource::Rttime).maximum;
        if hard_limit.is_some_and(|hard_limit| hard_limit < value) {
            return Ok(());
        }
        setrlimit(Resource::Rttime, Rlimit { current: Some(value), maximum: hard_limit })?;
        Ok(())
    }

    /// Reads the mark of a process.
    pub(crate) fn of_process(pid: i32) -> Option<JobMark> {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let soft_limit = limits.lines().find_map(|line| {
            line.strip_prefix("Max realtime timeout")?.split_ascii_whitespace().next()
        });
        JobMark::from_limit(soft_limit?.parse().ok()?)
    }

    fn from_limit(value: u64) -> Option<JobMark> {
        let mark = value.checked_sub(MARK_BASE)?;
        let supervisor_pid = u32::try_from(mark >> SUPERVISOR_SHIFT).ok()?;
        let job = u32::try_from(mark & u64::from(u32::MAX)).ok()?;
        // Process IDs have 22 bits at most, so a larger value is an ordinary limit.
        (1..1 << 22).contains(&supervisor_pid).then_some(JobMark { supervisor_pid, job })
    }
}
