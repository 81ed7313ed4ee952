//! Exchanges two names in a folder, so that no file is ever without a name.
//!
//! Linux and macOS can exchange two names in one step, and rename without replacing. Where a file
//! system cannot, hard links are nearly as good: a change by another program is lost if it happens
//! between the check of the old file and its replacement. Without hard links, there is a moment in
//! which the file does not exist.

use crate::fs::failpoint::failpoint;
use cap_std::fs::Dir;
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Method to exchange two names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FileExchangeMethod {
    /// In one atomic step, where the file system supports it.
    #[default]
    Exchange,
    /// With hard links, or with plain `rename` where the file system has none.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    HardLink,
}

/// Exchanges two files: the file at `name` moves to `spare`, and the file at `spare` to `name`.
pub(crate) fn exchange(
    dir: &Dir,
    spare: &str,
    name: &Path,
    method: FileExchangeMethod,
) -> Result<()> {
    failpoint()?;
    if let Some(result) = exchange_atomically(dir, spare, name, method) {
        return result;
    }
    // The draft keeps its name until it is in place, so the old file moves to the third name
    // `aside` first.
    let aside = spare.replace('-', "-0");
    match dir.hard_link(name, dir, &aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
        Err(_) => dir.rename(name, dir, &aside)?,
        Ok(()) => {}
    }
    let renamed = failpoint().and_then(|()| dir.rename(spare, dir, name));
    if let Err(error) = renamed {
        // With hard links this only removes the second name; without them it restores the first.
        let _ = dir.rename(&aside, dir, name).and_then(|()| remove_hard_link(dir, &aside));
        return Err(error);
    }
    dir.rename(&aside, dir, spare)
}

/// Removes the second link, because renaming one link of a file onto another does nothing.
fn remove_hard_link(dir: &Dir, aside: &str) -> Result<()> {
    match dir.remove_file(aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Renames a file, and fails if the new name exists.
pub(crate) fn rename_no_replace(
    dir: &Dir,
    from: &Path,
    to: &Path,
    method: FileExchangeMethod,
) -> Result<()> {
    failpoint()?;
    if let Some(result) = rename_atomically(dir, from, to, method) {
        return result;
    }
    match dir.hard_link(from, dir, to) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            return Err(error);
        }
        Err(_) if dir.symlink_metadata(to).is_ok() => return Err(ErrorKind::AlreadyExists.into()),
        Err(_) => return dir.rename(from, dir, to),
    }
    let removed = failpoint().and_then(|()| dir.remove_file(from));
    if removed.is_err() {
        let _ = dir.remove_file(to);
    }
    removed
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_with_flags(
    dir: &Dir,
    (from, to): (&Path, &Path),
    method: FileExchangeMethod,
    flags: rustix::fs::RenameFlags,
) -> Option<Result<()>> {
    use rustix::io::Errno;
    if method == FileExchangeMethod::HardLink {
        return None;
    }
    match rustix::fs::renameat_with(dir, from, dir, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => None,
        result => Some(result.map_err(Into::into)),
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange_atomically(
    dir: &Dir,
    spare: &str,
    name: &Path,
    method: FileExchangeMethod,
) -> Option<Result<()>> {
    rename_with_flags(dir, (spare.as_ref(), name), method, rustix::fs::RenameFlags::EXCHANGE)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_atomically(
    dir: &Dir,
    from: &Path,
    to: &Path,
    method: FileExchangeMethod,
) -> Option<Result<()>> {
    rename_with_flags(dir, (from, to), method, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange_atomically(_: &Dir, _: &str, _: &Path, _: FileExchangeMethod) -> Option<Result<()>> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_atomically(_: &Dir, _: &Path, _: &Path, _: FileExchangeMethod) -> Option<Result<()>> {
    None
}
