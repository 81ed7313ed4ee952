//! Resolves paths of a sandboxed process: reads them from its memory and resolves them in its view
//! of the file system.
//!
//! A sandboxed process has a different root, `/proc` and perhaps `/tmp` than Windlass. So the
//! resolution starts at the root of that process. The fast way is one `openat2` call. Where it
//! leads through `/proc`, whose links depend on the process that reads them, the module resolves
//! component by component.

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The longest path that the kernel accepts.
const MAX_PATH_BYTES: usize = 4096;

/// The number of symbolic links that the kernel follows.
const MAX_SYMLINKS: usize = 40;

/// Limits of the scan of a folder before it is moved: the number of names, and the depth.
const MAX_SCANNED_NAMES: usize = 2_000;
const MAX_SCAN_DEPTH: usize = 16;

/// Decision of the `any_beneath` callback about one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkDecision {
    /// The scan has found a match and stops.
    Match,
    /// No entry beneath this one matters.
    SkipSubtree,
    Descend,
}

/// Treatment of a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinalSymlinkMode {
    Follow,
    Keep,
}

/// A path of a sandboxed process, pinned to the folder that contains its last component. The folder
/// stays the same whatever happens to the names on the way to it.
#[derive(Debug)]
pub(super) struct AnchoredPath {
    pub folder: OwnedFd,
    /// The last component, or `.` for the folder itself.
    pub name: OsString,
    /// The resolved path, in the process's view.
    pub path: PathBuf,
}

/// The file that a path argument leads to.
#[derive(Debug)]
pub(super) enum ResolvedTarget {
    Path(AnchoredPath),
    /// A file that the process has open, with its path if it has one.
    Descriptor {
        file: OwnedFd,
        path: Option<PathBuf>,
    },
}

impl ResolvedTarget {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            ResolvedTarget::Path(anchored) => Some(&anchored.path),
            ResolvedTarget::Descriptor { path, .. } => path.as_deref(),
        }
    }
}

/// State of a sandboxed process that its calls depend on, from `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallerStatus {
    pub umask: u32,
    /// The number of seccomp filters of the process.
    pub filters: u32,
    pub parent: u32,
    /// The pid of the process that the calling thread belongs to.
    pub thread_group: u32,
}

/// A sandboxed process that the kernel suspends until its call is answered.
pub(super) struct SyscallCaller {
    pid: u32,
    root: OwnedFd,
}

impl SyscallCaller {
    pub(super) fn new(pid: u32) -> io::Result<SyscallCaller> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?;
        Ok(SyscallCaller { pid, root })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads the status of the process.
    pub(super) fn status(&self) -> io::Result<CallerStatus> {
        process_status(self.pid)
    }

    /// Opens a file that the process has open, as a reference to it and not for reading or writing.
    pub(super) fn open_descriptor(&self, fd: i32) -> io::Result<ResolvedTarget> {
        let path = format!("/proc/{}/fd/{fd}", self.pid);
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        // A file that was removed has no name that could be protected.
        let is_removed = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0);
        let path = fd_path(&file).ok().filter(|path| path.is_absolute() && !is_removed);
        Ok(ResolvedTarget::Descriptor { file, path })
    }

    /// Copies a descriptor of the process, such as a socket, which has no path to open it again.
    pub(super) fn copy_descriptor(&self, status: &CallerStatus, fd: i32) -> Result<OwnedFd, Errno> {
        let pid = i32::try_from(status.thread_group).ok().and_then(Pid::from_raw);
        let pidfd = rustix::process::pidfd_open(pid.ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
        rustix::process::pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty())
    }

    /// Returns the largest file that the process may write, if there is a limit.
    pub(super) fn max_file_bytes(&self) -> Option<u64> {
        #[allow(clippy::disallowed_methods, reason = "inspects a process for the sandbox itself")]
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.pid)).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max file size"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Opens the file that a path argument leads to, as far as that does not touch it.
    pub(super) fn anchor(
        &self,
        absolute: &Path,
        final_symlink: FinalSymlinkMode,
    ) -> io::Result<Option<ResolvedTarget>> {
        // `link/` and `link/.` name the folder that the link leads to.
        let spelled = absolute.as_os_str().as_bytes();
        let final_symlink = match spelled.ends_with(b"/") || spelled.ends_with(b"/.") {
            true => FinalSymlinkMode::Follow,
            false => final_symlink,
        };
        if let Some(anchored) = self.anchor_fast(absolute, final_symlink) {
            return Ok(Some(ResolvedTarget::Path(anchored)));
        }
        let resolved = match self.resolve_by_component(absolute, final_symlink)? {
            Some(ComponentWalk::Path(resolved)) => resolved,
            Some(ComponentWalk::Descriptor(fd)) => return self.open_descriptor(fd).map(Some),
            None => return Ok(None),
        };
        // The path has no links left. If one appears now, the call fails instead of following it.
        let (parent, name) = match (resolved.parent(), resolved.file_name()) {
            (Some(parent), Some(name)) => (parent, name.to_owned()),
            _ => (Path::new("/"), OsString::from(".")),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let folder = rustix::fs::openat2(
            &self.root,
            relative_to_root(parent),
            flags,
            Mode::empty(),
            resolve,
        )?;
        Ok(Some(ResolvedTarget::Path(AnchoredPath { folder, name, path: resolved })))
    }

    /// Reads a null-terminated string from the memory of the process.
    pub(super) fn read_c_string(&self, address: u64) -> io::Result<Vec<u8>> {
        let mut text = self.read_memory(address, MAX_PATH_BYTES)?;
        let end = text.iter().position(|byte| *byte == 0).ok_or(io::ErrorKind::InvalidFilename)?;
        text.truncate(end);
        Ok(text)
    }

    /// Reads up to `length` bytes from the memory of the process, fewer where the mapping ends.
    pub(super) fn read_memory(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0_u8; length];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
        let pid = libc::pid_t::try_from(self.pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        #[allow(
            unsafe_code,
            reason = "there is no safe call to read the memory of another process"
        )]
        // SAFETY: the kernel writes no more than the size of `bytes`. It checks the other address,
        // and we never use it.
        let count = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Returns the file or folder behind a descriptor of the process, or `None` for other
    /// descriptors.
    pub(super) fn descriptor_path(&self, fd: i32) -> io::Result<Option<PathBuf>> {
        let path = read_link(&format!("/proc/{}/fd/{fd}", self.pid))?;
        Ok(path.is_absolute().then_some(path))
    }

    /// Returns the absolute path as spelled, or `None` if its folder descriptor has no path.
    pub(super) fn absolute_path(
        &self,
        folder: Option<i32>,
        path: &[u8],
    ) -> io::Result<Option<PathBuf>> {
        let path = Path::new(OsStr::from_bytes(path));
        Ok(match (path.is_absolute(), folder) {
            (true, _) => Some(path.to_owned()),
            (false, None) => Some(read_link(&format!("/proc/{}/cwd", self.pid))?.join(path)),
            (false, Some(fd)) => self.descriptor_path(fd)?.map(|folder| folder.join(path)),
        })
    }

    /// Returns true for a folder, in the process's view.
    pub(super) fn is_folder(&self, path: &Path) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, relative_to_root(path), flags, Mode::empty()).is_ok()
    }

    /// Returns true for a symbolic link, in the process's view.
    pub(super) fn is_link(&self, path: &Path) -> bool {
        rustix::fs::readlinkat(&self.root, relative_to_root(path), Vec::new()).is_ok()
    }

    /// Returns true if the callback finds a match beneath a folder, or if the scan is incomplete.
    /// The callback gets each path relative to the folder, and true for symbolic links.
    pub(super) fn any_beneath(
        &self,
        path: &Path,
        decide: impl Fn(&Path, bool) -> WalkDecision,
    ) -> bool {
        let mut folders = vec![(PathBuf::new(), 0)];
        let mut remaining = MAX_SCANNED_NAMES;
        while let Some((parent, depth)) = folders.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let absolute = path.join(&parent);
            let opened =
                rustix::fs::openat(&self.root, relative_to_root(&absolute), flags, Mode::empty());
            let Ok(entries) = opened.and_then(Dir::new) else { return true };
            for entry in entries {
                let Ok(entry) = entry else { return true };
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                let Some(rest) = remaining.checked_sub(1) else { return true };
                remaining = rest;
                let name = parent.join(name);
                let kind = entry.file_type();
                let is_unknown = kind == FileType::Unknown;
                let is_link =
                    kind == FileType::Symlink || is_unknown && self.is_link(&path.join(&name));
                match decide(&name, is_link) {
                    WalkDecision::Match => return true,
                    WalkDecision::SkipSubtree => continue,
                    WalkDecision::Descend => {}
                }
                let is_folder = kind == FileType::Directory;
                if is_folder || is_unknown && self.is_folder(&path.join(&name)) {
                    if depth == MAX_SCAN_DEPTH {
                        return true;
                    }
                    folders.push((name, depth + 1));
                }
            }
        }
        false
    }

    /// Anchors a path if every folder on the way exists and none is in `/proc`.
    fn anchor_fast(&self, path: &Path, final_symlink: FinalSymlinkMode) -> Option<AnchoredPath> {
        let mut path = path.to_owned();
        for _ in 0..MAX_SYMLINKS {
            let Some(Component::Normal(name)) = path.components().next_back() else { return None };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let parent = relative_to_root(path.parent()?);
            let resolve = ResolveFlags::IN_ROOT;
            let folder =
                rustix::fs::openat2(&self.root, parent, flags, Mode::empty(), resolve).ok()?;
            let real = fd_path(&folder).ok()?;
            if real.starts_with("/proc") || !real.is_absolute() {
                return None;
            }
            let target = match final_symlink {
                FinalSymlinkMode::Keep => None,
                FinalSymlinkMode::Follow => rustix::fs::readlinkat(&folder, name, []).ok(),
            };
            match target {
                Some(target) => path = real.join(OsString::from_vec(target.into_bytes())),
                None => {
                    let name = name.to_owned();
                    let path = real.join(&name);
                    return Some(AnchoredPath { folder, name, path });
                }
            }
        }
        None
    }

    /// Resolves a path component by component, also through `/proc`.
    fn resolve_by_component(
        &self,
        path: &Path,
        final_symlink: FinalSymlinkMode,
    ) -> io::Result<Option<ComponentWalk>> {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let mut remaining: Vec<OsString> = reversed_components(path).collect();
        let mut resolved = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = remaining.pop() {
            if part == ".." {
                resolved.pop();
                continue;
            }
            let in_proc = resolved.strip_prefix("/proc").ok().map(Path::to_owned);
            let target = match in_proc.as_deref().and_then(Path::to_str) {
                Some("") if part == "self" || part == "thread-self" => None,
                Some("self" | "thread-self") if part == "cwd" => {
                    Some(read_link(&format!("/proc/{}/cwd", self.pid))?)
                }
                Some("self" | "thread-self") if part == "root" => Some(PathBuf::from("/")),
                Some("self" | "thread-self") if part == "task" => return Err(denied()),
                Some("self/fd" | "thread-self/fd") => {
                    let fd = part.to_str().and_then(|part| part.parse().ok());
                    let fd = fd.ok_or_else(denied)?;
                    if remaining.is_empty() {
                        return Ok(Some(ComponentWalk::Descriptor(fd)));
                    }
                    match self.descriptor_path(fd)? {
                        Some(target) => Some(target),
                        None => return Ok(None),
                    }
                }
                // Another process: its pid differs between the sandbox and outside.
                Some(other) if other.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let link_names = ["cwd", "root", "fd", "task", "exe", "map_files"];
                    match !other.is_empty() && link_names.iter().any(|name| part == *name) {
                        true => return Err(denied()),
                        false => None,
                    }
                }
                Some(_) => None,
                None if remaining.is_empty() && final_symlink == FinalSymlinkMode::Keep => None,
                None => match rustix::fs::readlinkat(
                    &self.root,
                    relative_to_root(&resolved.join(&part)),
                    [],
                ) {
                    Ok(target) => Some(PathBuf::from(OsString::from_vec(target.into_bytes()))),
                    Err(_) => None,
                },
            };
            let Some(target) = target else {
                resolved.push(part);
                continue;
            };
            links += 1;
            if links > MAX_SYMLINKS {
                return Err(denied());
            }
            if target.is_absolute() {
                resolved = PathBuf::from("/");
            }
            remaining.extend(reversed_components(&target));
        }
        Ok(Some(ComponentWalk::Path(resolved)))
    }
}

/// Result of `resolve_by_component`: a path without links, or a descriptor of the process.
enum ComponentWalk {
    Path(PathBuf),
    Descriptor(i32),
}

/// Reads the status of a process.
pub(super) fn process_status(pid: u32) -> io::Result<CallerStatus> {
    #[allow(clippy::disallowed_methods, reason = "inspects a process for the sandbox itself")]
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim())
    };
    let parse = |name: &str, radix| {
        let value = field(name).and_then(|value| u32::from_str_radix(value, radix).ok());
        value.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    Ok(CallerStatus {
        umask: parse("Umask", 8)?,
        filters: parse("Seccomp_filters", 10)?,
        parent: parse("PPid", 10)?,
        thread_group: parse("Tgid", 10)?,
    })
}

/// Returns the components of a path, last first, without `.` and the root.
fn reversed_components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

/// Returns an absolute path relative to its root.
fn relative_to_root(path: &Path) -> &Path {
    let path = path.strip_prefix("/").unwrap_or(path);
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the path that the kernel reports for an open file, from `/proc/self/fd`.
fn fd_path(file: impl AsFd) -> io::Result<PathBuf> {
    Ok(read_link(&format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))?)
}

fn read_link(path: &str) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlink(path, Vec::with_capacity(256))?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}
