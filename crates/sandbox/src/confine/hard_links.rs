//! Separates a file from its other names before a command changes it.
//!
//! A file with several hard links may have a name outside the workspace: package managers such as
//! pnpm and uv link the files of a project to a store that all projects share. A write would change
//! all of them. So the name in the workspace gets a copy first. Links that commands made in this
//! sandbox are known, and files with only such names are changed in place.

use super::resolve_path::{AnchoredPath, ResolvedTarget};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// The largest file that is copied. Larger ones cannot be changed by a command.
const MAX_COPIED_BYTES: u64 = 256 << 20;

/// Limits the links that are remembered. Further ones count as links to elsewhere.
const MAX_KNOWN_FILES: usize = 100_000;

/// Hard links that commands made, by device and inode.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    made_links: BTreeMap<(u64, u64), u64>,
}

impl HardLinks {
    /// Remembers that a command made this link.
    pub(super) fn remember_link(&mut self, path: &AnchoredPath) {
        let Some((stat, key)) = multiply_linked_file(path) else { return };
        if self.made_links.len() < MAX_KNOWN_FILES || self.made_links.contains_key(&key) {
            let count = self.made_links.entry(key).or_default();
            *count = (*count + 1).min(stat.st_nlink);
        }
    }

    /// Forgets a link that is about to be removed.
    pub(super) fn forget_name(&mut self, path: &AnchoredPath) {
        let Some((_, key)) = multiply_linked_file(path) else { return };
        if let Some(count) = self.made_links.get_mut(&key) {
            *count = count.saturating_sub(1);
        }
    }

    /// Replaces a file that has names of unknown origin by a copy.
    pub(super) fn break_link(&self, target: &ResolvedTarget) -> Result<(), Errno> {
        let path = match target {
            ResolvedTarget::Path(path) => path,
            // The file was separated when it was opened for writing.
            ResolvedTarget::Descriptor { .. } => return Ok(()),
        };
        let Some((stat, key)) = multiply_linked_file(path) else { return Ok(()) };
        let made_links = self.made_links.get(&key).copied().unwrap_or_default();
        if stat.st_nlink <= made_links + 1 {
            return Ok(());
        }
        if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MAX_COPIED_BYTES {
            return Err(Errno::PERM);
        }
        replace_by_copy(path, &stat)
    }
}

/// Returns metadata and identity of a regular file with several names.
fn multiply_linked_file(path: &AnchoredPath) -> Option<(Stat, (u64, u64))> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = rustix::fs::statat(&path.folder, &path.name, flags).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (is_file && stat.st_nlink > 1).then_some((stat, (stat.st_dev, stat.st_ino)))
}

fn replace_by_copy(path: &AnchoredPath, stat: &Stat) -> Result<(), Errno> {
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut source = File::from(rustix::fs::openat(&path.folder, &path.name, read, Mode::empty())?);
    let copy_name = format!(".windlass-copy-{}-{}", stat.st_ino, std::process::id());
    let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
    let mut copy = File::from(rustix::fs::openat(&path.folder, &copy_name, write, mode)?);
    let copied = io::copy(&mut source, &mut copy)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let result = copied
        .and_then(|_| rustix::fs::fchmod(&copy, mode))
        .and_then(|()| rustix::fs::renameat(&path.folder, &copy_name, &path.folder, &path.name));
    if result.is_err() {
        let _ = rustix::fs::unlinkat(&path.folder, &copy_name, AtFlags::empty());
    }
    result
}
