//! Reads the files that the supervisor has kept before a command changed them.

use crate::confine::{CapturedFile, CapturedState, NotCapturedReason, read_capture_record};
use crate::fs::file_change::FileContent;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file without a name to which the supervisor appends what a command is about to change.
pub(crate) struct CapturedChanges {
    /// `None` once everything was read.
    pub(super) reader: Mutex<Option<CaptureFileReader>>,
}

pub(super) struct CaptureFileReader {
    file: Arc<File>,
    /// End of the last complete record.
    position: u64,
    /// The last known content of each file, or the reason for which it was not kept.
    pub(super) known: BTreeMap<PathBuf, Result<Option<FileContent>, NotCapturedReason>>,
}

impl CapturedChanges {
    pub(crate) fn new(file: Arc<File>) -> CapturedChanges {
        let reader = CaptureFileReader { file, position: 0, known: BTreeMap::new() };
        CapturedChanges { reader: Mutex::new(Some(reader)) }
    }
}

impl CaptureFileReader {
    pub(super) fn read_new_records(&mut self) -> io::Result<()> {
        loop {
            let mut source = ReadAt { file: &self.file, position: self.position };
            let Some((CapturedFile { path, state }, content)) = read_capture_record(&mut source)?
            else {
                return Ok(());
            };
            self.position = source.position;
            let known = match state {
                CapturedState::Absent => Ok(None),
                CapturedState::File { mode, .. } => {
                    Ok(Some(FileContent { bytes: content.into(), mode: Some(mode) }))
                }
                CapturedState::NotCaptured(reason) => Err(reason),
            };
            self.known.entry(path).or_insert(known);
        }
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
