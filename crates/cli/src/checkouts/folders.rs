//! Folders and names that a session may have made: how they are removed, and read without following
//! links.
#![allow(
    clippy::disallowed_methods,
    reason = "checkouts are made and removed before a session works in them"
)]

use super::STORE_NAME;
use std::path::{Path, PathBuf};

/// Removes the locks of `git` commands that were killed with their node.
pub(super) fn remove_stale_locks(checkouts: &Path) {
    let store = checkouts.join(STORE_NAME);
    let mut folders = vec![checkouts.to_owned(), store.join("refs"), store];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let (path, is_ref) =
                (entry.path(), folder.components().any(|part| part.as_os_str() == "refs"));
            let is_file = entry.metadata().is_ok_and(|file| file.is_file());
            if is_file && path.extension().is_some_and(|extension| extension == "lock") {
                let _ = std::fs::remove_file(&path);
            } else if is_ref && path.is_dir() {
                folders.push(path);
            }
        }
    }
}

pub(super) fn ignore_missing(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// Removes a folder, also if a session has made folders in it that cannot be written.
pub(super) fn remove_folder(folder: &Path) -> std::io::Result<()> {
    match ignore_missing(std::fs::remove_dir_all(folder)) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            make_writable(folder);
            ignore_missing(std::fs::remove_dir_all(folder))
        }
        removed => removed,
    }
}

/// Makes a folder and those in it writable for their owner.
fn make_writable(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            let _ = std::fs::set_permissions(&folder, mode);
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path()));
    }
}

/// Returns the size of a file or link in a folder, if its name does not lead through a link.
pub(super) fn find_file(folder: &Path, name: &[u8]) -> Option<u64> {
    let name = path_of(name)?;
    let mut parents = name.ancestors().skip(1).filter(|parent| *parent != Path::new(""));
    let is_link = |parent: &Path| {
        folder.join(parent).symlink_metadata().is_ok_and(|found| found.is_symlink())
    };
    if parents.any(is_link) {
        return None;
    }
    let found = folder.join(name).symlink_metadata().ok()?;
    (found.is_file() || found.is_symlink()).then_some(found.len())
}

/// Splits names as commands print them, each with a zero byte at its end.
pub(super) fn split_names(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    names.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Returns names as commands read them.
pub(super) fn join_names(names: &[&[u8]]) -> Vec<u8> {
    names.iter().flat_map(|name| name.iter().chain(b"\0")).copied().collect()
}

#[cfg(unix)]
fn path_of(name: &[u8]) -> Option<PathBuf> {
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
    Some(PathBuf::from(name))
}

#[cfg(not(unix))]
fn path_of(name: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(name).ok().map(PathBuf::from)
}
