//! Files and folders of the data folder: created so that only their owner can read them.
#![allow(clippy::disallowed_methods, reason = "the storage crate opens its own files directly")]

use crate::{StorageError, head_file};
use std::fs::{File, OpenOptions};
use std::path::Path;
use windlass_protocol::{LogSeq, SessionId};

/// Creates a folder that only its owner can open.
pub(crate) fn create_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Closes a folder of this user to others, if it is open to them.
pub(crate) fn make_folder_private(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o077 != 0) {
            // It may be on a file system without modes.
            let _ = std::fs::set_permissions(path, PermissionsExt::from_mode(0o700));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Creates a file that only its owner can open.
pub(crate) fn create_private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens or creates a lock file.
pub(crate) fn open_lock_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    // Opening a FIFO only for writing would wait for a reader.
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a lock file, if it exists.
pub(crate) fn open_existing_lock_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Returns false if a folder cannot be written, such as on a read-only file system.
pub(crate) fn is_writable(folder: &Path) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let opened = open_lock_file(&folder.join("open.lock"));
    !opened.is_err_and(|error| matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem))
}

/// Removes a file and ignores errors, such as a missing file.
pub(crate) fn remove_file_if_exists(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Lists the sessions of a data folder and their last positions, as noted in their lock files.
pub(crate) fn noted_heads(folder: &Path) -> impl Iterator<Item = (SessionId, LogSeq)> {
    let locks = std::fs::read_dir(folder.join("locks")).into_iter().flatten().flatten();
    locks.filter_map(|entry| {
        let session = entry.file_name().to_str()?.parse().ok()?;
        let head = head_file::read(&File::open(entry.path()).ok()?)?;
        Some((session, head))
    })
}

/// Fails if the database is empty although sessions were stored: opening it would start a new
/// log without a word.
pub(crate) fn check_not_emptied(folder: &Path, database: &Path) -> Result<(), StorageError> {
    let is_empty = file_bytes(database) == 0;
    let has_wal = std::fs::metadata(folder.join("windlass.db-wal")).is_ok();
    let has_sessions = || noted_heads(folder).next().is_some();
    if is_empty && !has_wal && has_sessions() {
        return Err(StorageError::DatabaseDamaged {
            path: database.display().to_string(),
            reason: "it is empty, but there are sessions in this folder".to_owned(),
        });
    }
    Ok(())
}

/// Returns the size of a file, or 0 if there is none.
pub(crate) fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
