//! Keeps the files that a command changes as they were before, so that the changes can be undone.
//!
//! The `PathGuard` sees every call that changes a path before it is made. The first time that a
//! command touches a file, its content is appended to a file without a name, which the owner of the
//! job has open, too, and which nothing in the sandbox can reach. A record is a length in four
//! bytes, a header of this length and the content.

use super::path_policy::SyscallTarget;
use super::path_serde;
use super::resolve_path::{AnchoredPath, ResolvedTarget};
use super::syscall_request::SyscallRequest;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest file whose content is kept.
const MAX_FILE_BYTES: u64 = 10 << 20;
/// Limits the content that is kept of all files of a command.
const MAX_COMMAND_BYTES: u64 = 200 << 20;
/// Limits the files that a command can change undoably.
const MAX_FILES: usize = 5_000;
/// Limits the depth of a folder that is moved, and the names in it.
const MAX_DEPTH: usize = 32;
const MAX_WALKED_ENTRIES: usize = 10_000;

/// Folders with the data of tools, which can be created again.
const SKIPPED_FOLDERS: [&str; 12] = [
    ".git",
    "node_modules",
    "target",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
];

/// A file as it was before a command changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CapturedFile {
    #[serde(with = "path_serde::one")]
    pub(crate) path: PathBuf,
    pub(crate) state: CapturedState,
}

/// The state of a path before a command changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CapturedState {
    Absent,
    /// A file with this mode; `bytes` of content follow.
    File {
        mode: u32,
        bytes: u64,
    },
    NotCaptured(NotCapturedReason),
}

/// The reason for which a file was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotCapturedReason {
    TooLarge,
    /// The command has changed too much.
    LimitReached,
    Unreadable,
    /// A symbolic link or another special file.
    Special,
}

/// Appends the files that a command is about to change to the owner's file.
#[derive(Debug)]
pub(crate) struct ChangeCapture {
    output: File,
    /// Folders whose files are kept.
    folders: Vec<PathBuf>,
    captured: BTreeSet<PathBuf>,
    kept_bytes: u64,
    is_broken: bool,
    is_limit_recorded: bool,
}

impl ChangeCapture {
    pub(crate) fn new(output: OwnedFd, folders: Vec<PathBuf>) -> ChangeCapture {
        ChangeCapture {
            output: File::from(output),
            folders,
            captured: BTreeSet::new(),
            kept_bytes: 0,
            is_broken: false,
            is_limit_recorded: false,
        }
    }

    /// Keeps the files that a call is about to change.
    pub(super) fn capture_call(
        &mut self,
        request: &SyscallRequest,
        from: Option<&SyscallTarget>,
        to: Option<&SyscallTarget>,
    ) {
        let Some(to) = to.map(|to| &to.target) else { return };
        match (request, from.map(|from| &from.target), to) {
            (
                SyscallRequest::Rename { .. },
                Some(ResolvedTarget::Path(from)),
                ResolvedTarget::Path(to),
            ) => self.capture_move(from, to),
            (SyscallRequest::MakeFolder { .. } | SyscallRequest::Bind { .. }, _, _) => {}
            (
                SyscallRequest::Open { .. }
                | SyscallRequest::MakeNode { .. }
                | SyscallRequest::Remove { .. }
                | SyscallRequest::Rename { .. }
                | SyscallRequest::Link { .. }
                | SyscallRequest::Symlink { .. }
                | SyscallRequest::Truncate { .. }
                | SyscallRequest::SetMode { .. }
                | SyscallRequest::SetOwner { .. }
                | SyscallRequest::SetTimes { .. }
                | SyscallRequest::SetAttribute { .. }
                | SyscallRequest::RemoveAttribute { .. },
                _,
                to,
            ) => self.capture(to),
        }
    }

    /// Keeps a file that is about to be changed. Folders are not kept.
    fn capture(&mut self, target: &ResolvedTarget) {
        match target {
            ResolvedTarget::Path(path) => self.capture_at(&path.folder, &path.name, &path.path),
            ResolvedTarget::Descriptor { file, path: Some(path) } if self.is_wanted(path) => {
                let reopened = format!("/proc/self/fd/{}", file.as_raw_fd());
                let flags = read_flags().difference(OFlags::NOFOLLOW);
                let stat = rustix::fs::fstat(file);
                self.add(path, stat, || rustix::fs::open(reopened, flags, Mode::empty()));
            }
            ResolvedTarget::Descriptor { .. } => {}
        }
    }

    /// Keeps the files that are about to be moved, and those that they replace.
    fn capture_move(&mut self, from: &AnchoredPath, to: &AnchoredPath) {
        if !self.is_kept(&from.path) && !self.is_kept(&to.path) {
            return;
        }
        let moved = self.capture_tree(from);
        let replaced = self.capture_tree(to);
        // Both trees are kept completely, so that a path without a record does not exist.
        if let (Some(moved), Some(replaced)) = (moved, replaced) {
            for (files, target) in [(moved, to), (replaced, from)] {
                for relative in files {
                    self.add_absent(&target.path.join(relative));
                }
            }
        } else {
            self.write_limit_record(&from.path);
        }
    }

    /// Keeps a file, or all files of a folder. Returns the relative paths of the files in a folder,
    /// or `None` if there are too many. Each folder is opened from the one that contains it and
    /// never through a link, because a link of the command could lead anywhere.
    fn capture_tree(&mut self, top: &AnchoredPath) -> Option<Vec<PathBuf>> {
        let Ok(folder) = open_folder(&top.folder, &top.name) else {
            self.capture_at(&top.folder, &top.name, &top.path);
            return Some(Vec::new());
        };
        let mut files = Vec::new();
        let mut folders = vec![(folder, PathBuf::new(), 0)];
        let mut remaining = MAX_WALKED_ENTRIES;
        while let Some((folder, parent, depth)) = folders.pop() {
            let entries = Dir::read_from(&folder).ok()?;
            for entry in entries.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." || is_skipped(name) {
                    continue;
                }
                remaining = remaining.checked_sub(1)?;
                let relative = parent.join(name);
                match open_folder(&folder, name) {
                    Ok(_) if depth == MAX_DEPTH => return None,
                    Ok(inner) => folders.push((inner, relative, depth + 1)),
                    Err(_) => {
                        self.capture_at(&folder, name, &top.path.join(&relative));
                        files.push(relative);
                    }
                }
            }
        }
        (!self.is_full()).then_some(files)
    }

    /// Keeps the file with this name in a folder.
    fn capture_at(&mut self, folder: &OwnedFd, name: &OsStr, path: &Path) {
        if self.is_wanted(path) {
            let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            self.add(path, stat, || rustix::fs::openat(folder, name, read_flags(), Mode::empty()));
        }
    }

    /// Records that a path does not exist, unless there is a record of it.
    fn add_absent(&mut self, path: &Path) {
        if self.is_wanted(path) {
            self.add(path, Err(Errno::NOENT), || Err(Errno::NOENT));
        }
    }

    /// Returns true if a path is to be kept and has no record yet.
    fn is_wanted(&self, path: &Path) -> bool {
        !self.is_broken && self.is_kept(path) && !self.captured.contains(path)
    }

    /// Writes the record of a file that is wanted.
    fn add(
        &mut self,
        path: &Path,
        stat: Result<rustix::fs::Stat, Errno>,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) {
        let stat = match stat {
            Ok(stat) => Some(stat),
            // Folders on the way to it may be missing as well.
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(_) => return,
        };
        let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind == Some(FileType::Directory) {
            return;
        }
        if self.is_full() {
            return self.write_limit_record(path);
        }
        let mut content = Vec::new();
        let state = match (stat, kind) {
            (None, _) => CapturedState::Absent,
            (Some(stat), Some(FileType::RegularFile)) => {
                let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                match self.read(size, open) {
                    Ok(bytes) => {
                        content = bytes;
                        let bytes = content.len() as u64;
                        CapturedState::File { mode: stat.st_mode & 0o7777, bytes }
                    }
                    Err(reason) => CapturedState::NotCaptured(reason),
                }
            }
            (Some(_), _) => CapturedState::NotCaptured(NotCapturedReason::Special),
        };
        self.captured.insert(path.to_owned());
        self.kept_bytes += content.len() as u64;
        self.write_record(&CapturedFile { path: path.to_owned(), state }, &content);
    }

    fn read(
        &self,
        size: u64,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<Vec<u8>, NotCapturedReason> {
        if size > MAX_FILE_BYTES {
            return Err(NotCapturedReason::TooLarge);
        }
        if self.kept_bytes + size > MAX_COMMAND_BYTES {
            return Err(NotCapturedReason::LimitReached);
        }
        let file = open().map_err(|_| NotCapturedReason::Unreadable)?;
        let mut bytes = Vec::new();
        let mut limited = File::from(file).take(MAX_FILE_BYTES + 1);
        limited.read_to_end(&mut bytes).map_err(|_| NotCapturedReason::Unreadable)?;
        match bytes.len() as u64 > MAX_FILE_BYTES {
            true => Err(NotCapturedReason::TooLarge),
            false => Ok(bytes),
        }
    }

    fn is_kept(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| {
            path.strip_prefix(folder).is_ok_and(|relative| {
                !relative.components().any(|part| is_skipped(part.as_os_str()))
            })
        })
    }

    fn is_full(&self) -> bool {
        self.captured.len() >= MAX_FILES
    }

    /// Records once that the command changes more files than are kept.
    fn write_limit_record(&mut self, path: &Path) {
        if !self.is_limit_recorded {
            self.is_limit_recorded = true;
            let state = CapturedState::NotCaptured(NotCapturedReason::LimitReached);
            self.write_record(&CapturedFile { path: path.to_owned(), state }, &[]);
        }
    }

    /// Appends a record. After an error, such as a full disk, nothing more is kept, because records
    /// after half a record could not be read.
    fn write_record(&mut self, captured: &CapturedFile, content: &[u8]) {
        let header = serde_json::to_vec(captured).unwrap_or_default();
        let length = u32::try_from(header.len()).unwrap_or_default();
        let record = [&length.to_le_bytes()[..], &header, content].concat();
        if self.output.write_all(&record).is_err() {
            self.is_broken = true;
        }
    }
}

fn is_skipped(name: &OsStr) -> bool {
    SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped)
}

/// Opens a folder without following a link.
fn open_folder(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn read_flags() -> OFlags {
    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW
}

/// Reads the next record. Returns `None` at the end, also in the middle of a record.
pub(crate) fn read_record(file: &mut impl Read) -> io::Result<Option<(CapturedFile, Vec<u8>)>> {
    let mut length = [0; 4];
    if !read_whole(file, &mut length)? {
        return Ok(None);
    }
    let mut header = vec![0; u32::from_le_bytes(length) as usize];
    if !read_whole(file, &mut header)? {
        return Ok(None);
    }
    let captured: CapturedFile = serde_json::from_slice(&header)?;
    let mut content = match captured.state {
        CapturedState::File { bytes, .. } => vec![0; usize::try_from(bytes).unwrap_or_default()],
        CapturedState::Absent | CapturedState::NotCaptured(_) => Vec::new(),
    };
    Ok(read_whole(file, &mut content)?.then_some((captured, content)))
}

/// Fills the buffer. Returns false if the file ends before.
fn read_whole(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
