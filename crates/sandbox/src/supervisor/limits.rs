//! Resource limits of a job.

use serde::{Deserialize, Serialize};

pub(crate) const MAX_JOB_PROCESSES: usize = 2000;

/// Resource limits of a job. The kernel enforces the size of files (`resource_limits` in `spawn`),
/// the supervisor the others.
#[derive(Serialize, Deserialize, Debug, Clone, Copy)]
pub struct JobLimits {
    /// Largest file that the job may write.
    pub max_file_bytes: u64,
    /// Most processes that the job may have at once.
    pub max_processes: usize,
    /// Memory that must remain available on the machine. Below it, the job with the most memory is
    /// killed.
    pub min_free_memory: u64,
    /// Disk space that must remain free. Below it, a job is killed if the space clearly shrank
    /// while it ran.
    pub min_free_disk: u64,
}

impl Default for JobLimits {
    fn default() -> JobLimits {
        JobLimits {
            max_file_bytes: 4 << 30,
            max_processes: MAX_JOB_PROCESSES,
            min_free_memory: 256 << 20,
            min_free_disk: 1 << 30,
        }
    }
}
