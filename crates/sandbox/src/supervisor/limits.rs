//! Resource limits of a job.

use serde::{Deserialize, Serialize};

pub(super) const MAX_WRITTEN_FILE_BYTES: u64 = 4 << 30;
pub(crate) const MAX_JOB_PROCESSES: usize = 2000;

/// Resource limits of a job; `resource_limits` in `spawn` sets those that the kernel can enforce.
#[derive(Serialize, Deserialize, Debug, Clone, Copy)]
pub(crate) struct JobLimits {
    /// Largest file that the job may write.
    pub(crate) max_file_bytes: u64,
    /// Most processes that the job may have at once.
    pub(crate) max_processes: usize,
}
