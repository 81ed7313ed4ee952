//! Performs system calls on behalf of a sandboxed process, on files that are already opened.
//!
//! The process cannot influence a call any more: every path is an [`AnchoredPath`] or a descriptor
//! of ours, and every other argument was copied from its memory. A symbolic link that appears in
//! place of the last component makes the call fail with `ELOOP`, and the caller resolves again.

use super::resolve_path::{AnchoredPath, CallerStatus, ResolvedTarget, SyscallCaller};
use super::syscall_request::TimesArgument;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use std::cell::Cell;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Flags of an open file that can be changed after it was opened.
const CHANGEABLE_FLAGS: i32 =
    libc::O_APPEND | libc::O_ASYNC | libc::O_DIRECT | libc::O_NOATIME | libc::O_NONBLOCK;

/// The longest name and value of an extended attribute.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Removes the capabilities that this thread has and a sandboxed process lacks, until it is
/// dropped. Without them, root is refused what the process would be refused.
pub(super) struct ReducedRights {
    previous: Option<CapabilitySets>,
}

impl ReducedRights {
    pub(super) fn enter() -> Result<ReducedRights, Errno> {
        let previous = rustix::thread::capabilities(None)?;
        if previous.effective.is_empty() {
            return Ok(ReducedRights { previous: None });
        }
        let reduced = CapabilitySets { effective: CapabilitySet::empty(), ..previous };
        rustix::thread::set_capabilities(None, reduced)?;
        Ok(ReducedRights { previous: Some(previous) })
    }
}

impl Drop for ReducedRights {
    fn drop(&mut self) {
        if let Some(previous) = self.previous {
            // The permitted set still contains them, so the kernel has no reason to refuse.
            let _ = rustix::thread::set_capabilities(None, previous);
        }
    }
}

/// Runs a call with the umask of the process.
fn with_umask<T>(umask: u32, call: impl FnOnce() -> T) -> T {
    thread_local! {
        static HAS_OWN_UMASK: Cell<bool> = const { Cell::new(false) };
    }
    if !HAS_OWN_UMASK.get() {
        #[allow(unsafe_code, reason = "the call is unsafe if descriptors are shared")]
        // SAFETY: the flag does not affect descriptors. It separates the umask and the current
        // folder of this thread from those of other threads.
        let result = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) };
        HAS_OWN_UMASK.set(result.is_ok());
    }
    let previous = rustix::process::umask(Mode::from_bits_truncate(umask));
    let result = call();
    rustix::process::umask(previous);
    result
}

/// Returns the name by which this process reaches one of its open files again.
fn reopen_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Returns metadata of the target itself, not of what a link points to.
pub(super) fn stat(target: &ResolvedTarget) -> Result<Stat, Errno> {
    match target {
        ResolvedTarget::Path(path) => {
            rustix::fs::statat(&path.folder, &path.name, AtFlags::SYMLINK_NOFOLLOW)
        }
        ResolvedTarget::Descriptor { file, .. } => rustix::fs::fstat(file),
    }
}

/// Mode bits that would let other users run a file with the rights of this one. A command cannot set
/// them on files; on a folder, the bit for the group only determines the group of new files.
const SET_ID_BITS: u32 = 0o6000;

/// Opens the target as `open` with these flags would, but never waits: not for the other end of a
/// pipe, and not for the holder of a lease.
pub(super) fn open(
    target: &ResolvedTarget,
    flags: i32,
    mode: u32,
    status: &CallerStatus,
) -> Result<OwnedFd, Errno> {
    let added = libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    let file = match target {
        ResolvedTarget::Path(path) => {
            let flags = to_oflags(flags | added | libc::O_NOFOLLOW);
            with_umask(status.umask, || {
                let mode = Mode::from_raw_mode(mode & !SET_ID_BITS);
                rustix::fs::openat(&path.folder, &path.name, flags, mode)
            })?
        }
        ResolvedTarget::Descriptor { file, .. } => {
            let flags = flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW);
            rustix::fs::open(reopen_path(file), to_oflags(flags | added), Mode::empty())?
        }
    };
    if flags & (libc::O_PATH | libc::O_NONBLOCK) == 0 {
        rustix::fs::fcntl_setfl(&file, to_oflags(flags & CHANGEABLE_FLAGS))?;
    }
    Ok(file)
}

fn to_oflags(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned())
}

pub(super) fn make_folder(
    path: &AnchoredPath,
    mode: u32,
    status: &CallerStatus,
) -> Result<(), Errno> {
    with_umask(status.umask, || {
        rustix::fs::mkdirat(&path.folder, &path.name, Mode::from_raw_mode(mode))
    })
}

pub(super) fn make_node(
    path: &AnchoredPath,
    mode: u32,
    device: u64,
    status: &CallerStatus,
) -> Result<(), Errno> {
    let kind = match mode & libc::S_IFMT {
        0 => FileType::RegularFile,
        _ => FileType::from_raw_mode(mode),
    };
    let mode = Mode::from_raw_mode(mode & !(libc::S_IFMT | SET_ID_BITS));
    with_umask(status.umask, || rustix::fs::mknodat(&path.folder, &path.name, kind, mode, device))
}

pub(super) fn remove(path: &AnchoredPath, flags: i32) -> Result<(), Errno> {
    let flags = AtFlags::from_bits_retain(flags.cast_unsigned());
    rustix::fs::unlinkat(&path.folder, &path.name, flags)
}

pub(super) fn rename(from: &AnchoredPath, to: &AnchoredPath, flags: u32) -> Result<(), Errno> {
    let flags = RenameFlags::from_bits_retain(flags);
    rustix::fs::renameat_with(&from.folder, &from.name, &to.folder, &to.name, flags)
}

pub(super) fn link(from: &ResolvedTarget, to: &AnchoredPath) -> Result<(), Errno> {
    match from {
        ResolvedTarget::Path(from) => {
            rustix::fs::linkat(&from.folder, &from.name, &to.folder, &to.name, AtFlags::empty())
        }
        // A file without a name, made with `O_TMPFILE`.
        ResolvedTarget::Descriptor { file, .. } => rustix::fs::linkat(
            CWD,
            reopen_path(file),
            &to.folder,
            &to.name,
            AtFlags::SYMLINK_FOLLOW,
        ),
    }
}

pub(super) fn symlink(target: &[u8], path: &AnchoredPath) -> Result<(), Errno> {
    rustix::fs::symlinkat(OsStr::from_bytes(target), &path.folder, &path.name)
}

pub(super) fn truncate(target: &ResolvedTarget, length: u64) -> Result<(), Errno> {
    let status = CallerStatus::default();
    let file = open(target, libc::O_WRONLY, 0, &status)?;
    rustix::fs::ftruncate(&file, length)
}

/// Opens the target to change its metadata. A link is opened itself.
pub(super) fn open_for_metadata(target: &ResolvedTarget) -> Result<OwnedFd, Errno> {
    match target {
        ResolvedTarget::Path(path) => {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&path.folder, &path.name, flags, Mode::empty())
        }
        ResolvedTarget::Descriptor { file, .. } => rustix::io::fcntl_dupfd_cloexec(file, 3),
    }
}

pub(super) fn set_mode(file: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let is_folder = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode).is_dir();
    let mode = if is_folder { mode } else { mode & !SET_ID_BITS };
    let mode = Mode::from_raw_mode(mode & 0o7777);
    rustix::fs::chmodat(CWD, reopen_path(file), mode, AtFlags::empty())
}

pub(super) fn set_owner(file: &OwnedFd, user: u32, group: u32) -> Result<(), Errno> {
    let user = (user != u32::MAX).then(|| Uid::from_raw(user));
    let group = (group != u32::MAX).then(|| Gid::from_raw(group));
    rustix::fs::chownat(file, "", user, group, AtFlags::EMPTY_PATH)
}

pub(super) fn set_times(file: &OwnedFd, times: &Timestamps, is_link: bool) -> Result<(), Errno> {
    match is_link {
        true => rustix::fs::utimensat(file, "", times, AtFlags::EMPTY_PATH),
        false => rustix::fs::utimensat(CWD, reopen_path(file), times, AtFlags::empty()),
    }
}

pub(super) fn set_attribute(
    file: &OwnedFd,
    (name, value): (&[u8], &[u8]),
    flags: u32,
) -> Result<(), Errno> {
    let flags = XattrFlags::from_bits_retain(flags);
    rustix::fs::setxattr(reopen_path(file), to_c_string(name)?, value, flags)
}

pub(super) fn remove_attribute(file: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    rustix::fs::removexattr(reopen_path(file), to_c_string(name)?)
}

fn to_c_string(bytes: &[u8]) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

/// Copies the value of an attribute from the memory of the process.
pub(super) fn read_attribute(
    process: &SyscallCaller,
    address: u64,
    size: usize,
) -> Result<Vec<u8>, Errno> {
    match size {
        0 => Ok(Vec::new()),
        size if size > MAX_ATTRIBUTE_BYTES => Err(Errno::TOOBIG),
        size => {
            let value = process.read_memory(address, size).map_err(|_| Errno::FAULT)?;
            if value.len() == size { Ok(value) } else { Err(Errno::FAULT) }
        }
    }
}

/// Copies the times of a call from the memory of the process.
pub(super) fn read_times(
    process: &SyscallCaller,
    times: TimesArgument,
) -> Result<Timestamps, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let (address, words, nanoseconds) = match times {
        TimesArgument::Nanoseconds(address) => (address, 4, 1),
        TimesArgument::Microseconds(address) => (address, 4, 1_000),
        TimesArgument::Seconds(address) => (address, 2, 0),
    };
    if address == 0 {
        return Ok(Timestamps { last_access: now, last_modification: now });
    }
    let bytes = process.read_memory(address, words * 8).map_err(|_| Errno::FAULT)?;
    let numbers: Vec<i64> = bytes
        .chunks_exact(8)
        .filter_map(|bytes| Some(i64::from_ne_bytes(bytes.try_into().ok()?)))
        .collect();
    let time = |seconds: i64, fraction: i64| {
        let is_valid = nanoseconds == 1 || (0..1_000_000).contains(&fraction);
        let fraction = fraction.checked_mul(nanoseconds).filter(|_| is_valid);
        Ok(Timespec { tv_sec: seconds, tv_nsec: fraction.ok_or(Errno::INVAL)? })
    };
    let (last_access, last_modification) = match numbers.as_slice() {
        [access, access_fraction, modified, modified_fraction] => {
            (time(*access, *access_fraction)?, time(*modified, *modified_fraction)?)
        }
        [access, modified] => (time(*access, 0)?, time(*modified, 0)?),
        _ => return Err(Errno::FAULT),
    };
    Ok(Timestamps { last_access, last_modification })
}

/// Binds a socket of the process to an address, which was copied from its memory.
pub(super) fn bind(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    #[allow(unsafe_code, reason = "rustix parses addresses, and this one may be of any family")]
    // SAFETY: the kernel reads `length` bytes of `address`, which is alive during the call.
    let result = unsafe { libc::bind(socket.as_fd().as_raw_fd(), address.as_ptr().cast(), length) };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
