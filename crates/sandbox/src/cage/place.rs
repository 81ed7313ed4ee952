//! Where a path of a caged process leads: read from its memory, resolved as it sees the disk.
//!
//! A caged process has another root, another `/proc` and perhaps another `/tmp` than we have. So
//! the way is walked from its own root. The quick way is one call of the kernel; where that leads
//! through `/proc`, whose links mean whoever looks at them, it is walked part by part.

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The longest path that the kernel takes.
const LONGEST: usize = 4096;

/// As many links as the kernel follows.
const LINKS: usize = 40;

/// How many names of a folder are looked at before it moves, and how deep.
const MOST: usize = 2_000;
const DEEPEST: usize = 16;

/// What a name in a folder is to whoever looks for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// What is looked for.
    Wanted,
    /// Nothing beneath it matters.
    Whole,
    Other,
}

/// What happens to a link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Followed,
    Kept,
}

/// A process in a cage, held by the kernel until it is answered.
pub(super) struct Task {
    pid: u32,
    root: OwnedFd,
}

impl Task {
    pub(super) fn new(pid: u32) -> io::Result<Task> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?;
        Ok(Task { pid, root })
    }

    /// The text at an address of its memory.
    pub(super) fn text(&self, address: u64) -> io::Result<Vec<u8>> {
        let mut text = self.bytes(address, LONGEST)?;
        let end = text.iter().position(|byte| *byte == 0).ok_or(io::ErrorKind::InvalidFilename)?;
        text.truncate(end);
        Ok(text)
    }

    /// As many bytes of its memory, or fewer where it ends.
    pub(super) fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut text = vec![0_u8; length];
        let ours = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
        let theirs = libc::iovec { iov_base: address as *mut _, iov_len: text.len() };
        let pid = libc::pid_t::try_from(self.pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        #[allow(unsafe_code, reason = "there is no safe call to read another process")]
        // SAFETY: the kernel writes at most as much as our buffer holds; the other address is
        // checked by the kernel and never used by us.
        let read = unsafe { libc::process_vm_readv(pid, &ours, 1, &theirs, 1, 0) };
        let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
        text.truncate(read);
        Ok(text)
    }

    /// The file or folder behind one of its descriptors; none if that is no file.
    pub(super) fn descriptor(&self, number: i32) -> io::Result<Option<PathBuf>> {
        let path = read_link(&format!("/proc/{}/fd/{number}", self.pid))?;
        Ok(path.is_absolute().then_some(path))
    }

    /// The whole of a path as it is spelled; none if it begins at no folder.
    pub(super) fn whole(&self, folder: Option<i32>, path: &[u8]) -> io::Result<Option<PathBuf>> {
        let path = Path::new(OsStr::from_bytes(path));
        Ok(match (path.is_absolute(), folder) {
            (true, _) => Some(path.to_owned()),
            (false, None) => Some(read_link(&format!("/proc/{}/cwd", self.pid))?.join(path)),
            (false, Some(number)) => self.descriptor(number)?.map(|folder| folder.join(path)),
        })
    }

    /// Where a whole path leads, in its own view; none if it leads to no file at all.
    pub(super) fn place(&self, whole: &Path, end: End) -> io::Result<Option<PathBuf>> {
        match self.quick(whole, end) {
            Some(place) => Ok(Some(place)),
            None => self.walk(whole, end),
        }
    }

    /// True if this is a folder, in its own view.
    pub(super) fn is_folder(&self, path: &Path) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, beneath(path), flags, Mode::empty()).is_ok()
    }

    /// True if this is a link, in its own view.
    pub(super) fn is_link(&self, path: &Path) -> bool {
        rustix::fs::readlinkat(&self.root, beneath(path), Vec::new()).is_ok()
    }

    /// True if something is wanted beneath a folder, or not everything could be looked at. Names
    /// are told as seen from the folder, and whether they are links.
    pub(super) fn any_beneath(&self, path: &Path, see: impl Fn(&Path, bool) -> Seen) -> bool {
        let mut folders = vec![(PathBuf::new(), 0)];
        let mut left = MOST;
        while let Some((above, depth)) = folders.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let whole = path.join(&above);
            let opened = rustix::fs::openat(&self.root, beneath(&whole), flags, Mode::empty());
            let Ok(entries) = opened.and_then(Dir::new) else { return true };
            for entry in entries {
                let Ok(entry) = entry else { return true };
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                let Some(fewer) = left.checked_sub(1) else { return true };
                left = fewer;
                let name = above.join(name);
                let kind = entry.file_type();
                let unknown = kind == FileType::Unknown;
                let link = kind == FileType::Symlink || unknown && self.is_link(&path.join(&name));
                match see(&name, link) {
                    Seen::Wanted => return true,
                    Seen::Whole => continue,
                    Seen::Other => {}
                }
                let folder = kind == FileType::Directory;
                if folder || unknown && self.is_folder(&path.join(&name)) {
                    if depth == DEEPEST {
                        return true;
                    }
                    folders.push((name, depth + 1));
                }
            }
        }
        false
    }

    /// Where a path leads if every folder on its way exists and none is in `/proc`.
    fn quick(&self, path: &Path, end: End) -> Option<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            let Some(Component::Normal(name)) = path.components().next_back() else { return None };
            let ends_in_folder = path.as_os_str().as_bytes().ends_with(b"/");
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = beneath(path.parent()?);
            let way = ResolveFlags::IN_ROOT;
            let above = rustix::fs::openat2(&self.root, above, flags, Mode::empty(), way).ok()?;
            let real = name_of(&above).ok()?;
            if real.starts_with("/proc") || !real.is_absolute() {
                return None;
            }
            let here = real.join(name);
            if end == End::Kept && !ends_in_folder {
                return Some(here);
            }
            match rustix::fs::readlinkat(&above, name, Vec::new()) {
                Ok(target) => path = real.join(OsString::from_vec(target.into_bytes())),
                Err(_) => return Some(here),
            }
        }
        None
    }

    /// Where a path leads, part by part.
    fn walk(&self, path: &Path, end: End) -> io::Result<Option<PathBuf>> {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let mut left: Vec<OsString> = parts(path).collect();
        let mut here = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            let within = here.strip_prefix("/proc").ok().map(Path::to_owned);
            let target = match within.as_deref().and_then(Path::to_str) {
                Some("") if part == "self" || part == "thread-self" => None,
                Some("self" | "thread-self") if part == "cwd" => {
                    Some(read_link(&format!("/proc/{}/cwd", self.pid))?)
                }
                Some("self" | "thread-self") if part == "root" => Some(PathBuf::from("/")),
                Some("self" | "thread-self") if part == "task" => return Err(refused()),
                Some("self/fd" | "thread-self/fd") => {
                    let number = part.to_str().and_then(|part| part.parse().ok());
                    match self.descriptor(number.ok_or_else(refused)?)? {
                        Some(target) => Some(target),
                        None => return Ok(None),
                    }
                }
                // Another process: its numbers mean something else out here.
                Some(other) if other.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let leads = ["cwd", "root", "fd", "task", "exe", "map_files"];
                    match !other.is_empty() && leads.iter().any(|name| part == *name) {
                        true => return Err(refused()),
                        false => None,
                    }
                }
                Some(_) => None,
                None if left.is_empty() && end == End::Kept => None,
                None => match rustix::fs::readlinkat(&self.root, beneath(&here.join(&part)), []) {
                    Ok(target) => Some(PathBuf::from(OsString::from_vec(target.into_bytes()))),
                    Err(_) => None,
                },
            };
            let Some(target) = target else {
                here.push(part);
                continue;
            };
            links += 1;
            if links > LINKS {
                return Err(refused());
            }
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            left.extend(parts(&target));
        }
        Ok(Some(here))
    }
}

/// The parts of a path, last first, without those that say nothing.
fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

/// A whole path as seen from the root it begins at.
fn beneath(path: &Path) -> &Path {
    let path = path.strip_prefix("/").unwrap_or(path);
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// What the kernel calls an open file.
fn name_of(file: impl AsFd) -> io::Result<PathBuf> {
    Ok(read_link(&format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))?)
}

fn read_link(path: &str) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlink(path, Vec::with_capacity(256))?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}
