//! Swapping two names of a folder, so that nothing is ever without a name.
//!
//! Linux and macOS can exchange two names in one step, and can refuse to replace. Where a file
//! system cannot, hard links do nearly as well: there is a moment between looking at the old file
//! and replacing it in which a change by somebody else would be lost.

use cap_std::fs::Dir;
use std::io::Result;

/// How names are swapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// In one step, where the file system can.
    #[default]
    Exchange,
    /// By hard links.
    Link,
}

/// Puts `spare` in the place of `name`; what stood there is then at `spare`.
pub(crate) fn replace(dir: &Dir, spare: &str, name: &str, way: Way) -> Result<()> {
    if let Some(done) = exchange(dir, spare, name, way) {
        return done;
    }
    // The draft needs its name until it is in place, so the old file goes by a third one first.
    let aside = format!("{spare}-old");
    dir.hard_link(name, dir, &aside)?;
    let replaced = dir.rename(spare, dir, name).and_then(|()| dir.rename(&aside, dir, spare));
    if replaced.is_err() {
        let _ = dir.remove_file(&aside);
    }
    replaced
}

/// Gives a file the name `name`, if nothing has it.
pub(crate) fn place(dir: &Dir, spare: &str, name: &str, way: Way) -> Result<()> {
    match rename_new(dir, spare, name, way) {
        Some(done) => done,
        None => dir.hard_link(spare, dir, name).and_then(|()| dir.remove_file(spare)),
    }
}

/// Takes a file's name away; it is then at `spare`.
pub(crate) fn take(dir: &Dir, name: &str, spare: &str, way: Way) -> Result<()> {
    place(dir, name, spare, way)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn with(
    dir: &Dir,
    from: &str,
    to: &str,
    way: Way,
    flags: rustix::fs::RenameFlags,
) -> Option<Result<()>> {
    use rustix::io::Errno;
    if way == Way::Link {
        return None;
    }
    match rustix::fs::renameat_with(dir, from, dir, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
        done => Some(done.map_err(Into::into)),
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(dir: &Dir, spare: &str, name: &str, way: Way) -> Option<Result<()>> {
    with(dir, spare, name, way, rustix::fs::RenameFlags::EXCHANGE)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_new(dir: &Dir, from: &str, to: &str, way: Way) -> Option<Result<()>> {
    with(dir, from, to, way, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Dir, _: &str, _: &str, _: Way) -> Option<Result<()>> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_new(_: &Dir, _: &str, _: &str, _: Way) -> Option<Result<()>> {
    None
}
