//! Changes of files, and the recorder that keeps the replaced contents for undo.

use std::sync::Arc;

/// The largest file that can be changed, because its old content is kept for undo.
pub const MAX_CHANGED_FILE_BYTES: u64 = 32 << 20;

/// Complete content of a file, with its mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Arc<[u8]>,
    /// Unix permission bits, where the system has them.
    pub mode: Option<u32>,
}

/// A requested change of a file.
#[derive(Clone, Debug)]
pub struct FileWrite {
    pub path: String,
    /// The content that the change started from. If the file contains anything else, the change
    /// fails.
    pub before: Option<Arc<[u8]>>,
    /// The new content, or `None` to remove the file.
    pub after: Option<Arc<[u8]>>,
    /// The new mode, or `None` to keep the current one.
    pub mode: Option<u32>,
}

/// A change that is about to be made, for the `ChangeRecorder`.
#[derive(Clone, Debug)]
pub struct PendingFileChange {
    /// The resolved path.
    pub path: String,
    /// The current content, or `None` if the file does not exist.
    pub before: Option<FileContent>,
    /// The new content, or `None` to remove the file.
    pub after: Option<FileContent>,
}

/// Records changes before they are made. A change that cannot be recorded is not made.
pub trait ChangeRecorder: Send + Sync {
    /// Records a batch. The error is the reason for which it could not.
    fn record_batch(&self, batch: Vec<PendingFileChange>) -> Result<(), String>;

    /// Records the result of the last recorded batch. Called once for each batch.
    fn close_batch(&self, end: WriteBatchOutcome);
}

/// Result of a batch, for `ChangeRecorder::close_batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBatchOutcome {
    /// All changes were made.
    Committed,
    /// No change was made; everything is as before.
    RolledBack,
}
