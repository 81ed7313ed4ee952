//! Swapping two names of a folder, so that nothing is ever without a name.
//!
//! Linux and macOS can exchange two names in one step, and can refuse to replace. Where a file
//! system cannot, hard links do nearly as well: there is a moment between looking at the old file
//! and replacing it in which a change by somebody else would be lost. Where it has no links
//! either, there is a moment without the file.

use crate::change::point;
use cap_std::fs::Dir;
use std::io::{ErrorKind, Result};

/// How names are swapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// In one step, where the file system can.
    #[default]
    Exchange,
    /// By hard links.
    Link,
}

/// Swaps two files: what stood at `name` is then at `spare`, and the other way round.
pub(crate) fn exchange(dir: &Dir, spare: &str, name: &str, way: Way) -> Result<()> {
    point()?;
    if let Some(done) = exchange_at_once(dir, spare, name, way) {
        return done;
    }
    // The draft needs its name until it is in place, so the old file goes by a third one first.
    let aside = spare.replace('-', "-0");
    match dir.hard_link(name, dir, &aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
        Err(_) => dir.rename(name, dir, &aside)?,
        Ok(()) => {}
    }
    let swapped = point().and_then(|()| dir.rename(spare, dir, name));
    if let Err(error) = swapped {
        // With links this only drops the second name; without, it gives the first one back.
        let _ = dir.rename(&aside, dir, name).and_then(|()| remove_twin(dir, &aside));
        return Err(error);
    }
    dir.rename(&aside, dir, spare)
}

/// Renaming one link of a file onto another does nothing, so the first is still there.
fn remove_twin(dir: &Dir, aside: &str) -> Result<()> {
    match dir.remove_file(aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Gives a file another name, if nothing has it.
pub(crate) fn place(dir: &Dir, from: &str, to: &str, way: Way) -> Result<()> {
    point()?;
    if let Some(done) = rename_at_once(dir, from, to, way) {
        return done;
    }
    match dir.hard_link(from, dir, to) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            return Err(error);
        }
        Err(_) if dir.symlink_metadata(to).is_ok() => return Err(ErrorKind::AlreadyExists.into()),
        Err(_) => return dir.rename(from, dir, to),
    }
    let left = point().and_then(|()| dir.remove_file(from));
    if left.is_err() {
        let _ = dir.remove_file(to);
    }
    left
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn with(
    dir: &Dir,
    (from, to): (&str, &str),
    way: Way,
    flags: rustix::fs::RenameFlags,
) -> Option<Result<()>> {
    use rustix::io::Errno;
    if way == Way::Link {
        return None;
    }
    match rustix::fs::renameat_with(dir, from, dir, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => None,
        done => Some(done.map_err(Into::into)),
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange_at_once(dir: &Dir, spare: &str, name: &str, way: Way) -> Option<Result<()>> {
    with(dir, (spare, name), way, rustix::fs::RenameFlags::EXCHANGE)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_at_once(dir: &Dir, from: &str, to: &str, way: Way) -> Option<Result<()>> {
    with(dir, (from, to), way, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange_at_once(_: &Dir, _: &str, _: &str, _: Way) -> Option<Result<()>> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_at_once(_: &Dir, _: &str, _: &str, _: Way) -> Option<Result<()>> {
    None
}
