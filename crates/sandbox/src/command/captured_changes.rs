//! Reads the files that the supervisor has kept before a command changed them.

use crate::confine::{CapturedFile, CapturedState, NotCapturedReason, read_capture_record};
use crate::fs::file_change::FileContent;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use windlass_protocol::mutex_lock::lock;

/// The file without a name to which the supervisor appends what a command is about to change.
/// `None` once it was read.
pub(crate) struct CapturedChanges(Mutex<Option<Arc<File>>>);

/// The content of files before a command changed them, or the reason for which it was not kept.
pub(super) type CapturedFiles = BTreeMap<PathBuf, Result<Option<FileContent>, NotCapturedReason>>;

impl CapturedChanges {
    pub(crate) fn new(file: Arc<File>) -> CapturedChanges {
        CapturedChanges(Mutex::new(Some(file)))
    }

    /// Returns what was kept until now; empty if it was already taken.
    pub(super) fn take(&self) -> CapturedFiles {
        let mut files = BTreeMap::new();
        let Some(file) = lock(&self.0).take() else { return files };
        let mut source = ReadAt { file: &file, position: 0 };
        // After an error, the rest is unknown.
        while let Ok(Some((CapturedFile { path, state }, content))) =
            read_capture_record(&mut source)
        {
            let known = match state {
                CapturedState::Absent => Ok(None),
                CapturedState::File { mode, .. } => {
                    Ok(Some(FileContent { bytes: content.into(), mode: Some(mode) }))
                }
                CapturedState::NotCaptured(reason) => Err(reason),
            };
            files.entry(path).or_insert(known);
        }
        files
    }
}

/// Reads a file at a position of its own, because the supervisor moves the one of the file.
struct ReadAt<'a> {
    file: &'a File,
    position: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// Creates the file for the changes of a command. It has no name, so nothing has to remove it.
pub(crate) fn create_capture_file(folder: &Path) -> io::Result<Arc<File>> {
    Ok(Arc::new(tempfile::tempfile_in(folder)?))
}
