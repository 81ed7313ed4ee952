//! The door: every name that a caged command makes is looked at before it is made.
//!
//! Mounts can only cover what exists, and a hook or an editor's settings do harm by coming into
//! being. So calls that make, rename or open names for writing are held by the kernel, and whoever
//! started the command answers them here: names that are protected are refused, the rest goes on.
//!
//! It is not a wall by itself. The kernel reads the path once more after the answer, and a program
//! with several threads can change it in between. Against that stand the mounts, for what exists,
//! and [`super::changed`] after the command, for what came into being. If nobody answers any more,
//! the calls fail.

#![allow(clippy::disallowed_methods, reason = "looks at names on behalf of the sandbox itself")]

use super::names::{closed, leads, loose};
use super::place::{End, Seen, Task};
use super::seccomp::is_about_rights;
use super::{Backend, Cage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// Whether names are asked about at all.
pub(super) const DOOR: bool = true;

/// How many calls are answered in one turn, and how long that may take: whoever answers has other
/// things to do, and enough processes would keep it here for ever.
const TURN: usize = 32;
const MOMENT: Duration = Duration::from_millis(5);

/// Where the calls of one command arrive. Wait until it can be read, then [`Door::answer`].
#[derive(Debug)]
pub struct Door {
    listener: OwnedFd,
    folders: Vec<PathBuf>,
    temp: PathBuf,
    /// What nobody may make or change, whatever its name is.
    closed: BTreeSet<PathBuf>,
    /// What exists of that: with a folder that leads there, it would get another name.
    kept: BTreeSet<PathBuf>,
    holds: Holds,
}

/// Who else holds what is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Mounts,
    Nobody,
}

/// What came of answering.
#[derive(Debug, Default)]
pub struct Answered {
    /// No process is left that could ask; the door is of no more use.
    pub over: bool,
    /// Names that were refused.
    pub refused: Vec<PathBuf>,
}

/// Two paths of a call that moves something, or one and none.
type Asked = (Option<Name>, Option<Name>);

/// A path as a call names it.
struct Name {
    folder: Option<u64>,
    address: u64,
    end: End,
}

/// What a path leads to, and what it says.
struct Found {
    place: PathBuf,
    spelled: Option<PathBuf>,
}

enum Verdict {
    Continue,
    Refuse { name: PathBuf, error: i32 },
}

impl Door {
    pub(super) fn new(listener: OwnedFd, cage: &Cage) -> Door {
        // The one who answers and the one who waits may share a processor; since Linux 6.6.
        let together: u64 = 1;
        #[allow(unsafe_code, reason = "there is no safe call for this listener")]
        // SAFETY: the third argument is a number; older kernels refuse, which is as good.
        unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, together);
        }
        let holds = match cage.backend {
            Backend::Bubblewrap { .. } => Holds::Mounts,
            Backend::Landlock | Backend::Seatbelt | Backend::Off => Holds::Nobody,
        };
        let folders: Vec<PathBuf> = cage.writes().map(Path::to_owned).collect();
        let (mut closed, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let real = cage.hidden.iter().filter_map(|path| std::fs::canonicalize(path).ok());
        for path in cage.guarded.iter().chain(&cage.hidden).cloned().chain(real) {
            if !folders.iter().any(|folder| path.starts_with(folder) && path != *folder) {
                continue;
            }
            if std::fs::symlink_metadata(&path).is_ok() {
                kept.insert(path.clone());
            }
            closed.insert(path);
        }
        Door { listener, folders, temp: cage.temp.clone(), closed, kept, holds }
    }

    /// Answers those who wait now, as far as one turn goes. Does not wait itself.
    pub fn answer(&self) -> io::Result<Answered> {
        let mut answered = Answered::default();
        let start = Instant::now();
        for _ in 0..TURN {
            if start.elapsed() > MOMENT {
                break;
            }
            let mut polled = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [polled] = &polled;
            if !polled.revents().contains(PollFlags::IN) {
                answered.over = polled.revents().intersects(PollFlags::HUP | PollFlags::ERR);
                return Ok(answered);
            }
            let Some(call) = self.receive()? else { continue };
            let verdict = self.judge(&call);
            self.reply(&call, &verdict)?;
            if let Verdict::Refuse { name, .. } = verdict {
                answered.refused.push(name);
            }
        }
        Ok(answered)
    }

    /// One call that waits; none if its process is gone.
    fn receive(&self) -> io::Result<Option<libc::seccomp_notif>> {
        #[allow(unsafe_code, reason = "there is no safe call for this listener")]
        // SAFETY: all bytes zero is what the kernel asks for, and it fills in no more than this.
        let (result, call) = unsafe {
            let mut call: libc::seccomp_notif = std::mem::zeroed();
            let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
            (libc::ioctl(self.listener.as_raw_fd(), request, &raw mut call), call)
        };
        match result {
            0 => Ok(Some(call)),
            _ => gone(io::Error::last_os_error()).map(|()| None),
        }
    }

    fn reply(&self, call: &libc::seccomp_notif, verdict: &Verdict) -> io::Result<()> {
        let (error, flags) = match verdict {
            Verdict::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Verdict::Refuse { error, .. } => (-error, 0),
        };
        let mut reply = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        #[allow(unsafe_code, reason = "there is no safe call for this listener")]
        // SAFETY: the kernel reads the reply while it lives.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
            libc::ioctl(self.listener.as_raw_fd(), request, &raw mut reply)
        };
        match result {
            0 => Ok(()),
            _ => gone(io::Error::last_os_error()),
        }
    }

    /// True if the process still waits, so that what was read was read from it and not from
    /// another one that got its number.
    fn waits(&self, call: &libc::seccomp_notif) -> bool {
        #[allow(unsafe_code, reason = "there is no safe call for this listener")]
        // SAFETY: the kernel reads the number while it lives.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
            libc::ioctl(self.listener.as_raw_fd(), request, &raw const call.id)
        };
        result == 0
    }

    fn judge(&self, call: &libc::seccomp_notif) -> Verdict {
        let looked = Task::new(call.pid).and_then(|task| self.look(&task, call));
        match looked {
            Ok(verdict) if self.waits(call) => verdict,
            // It is gone, and hears no answer.
            Ok(_) => Verdict::Continue,
            // What cannot be seen is not let through.
            Err(_) => Verdict::Refuse { name: PathBuf::from("?"), error: libc::EACCES },
        }
    }

    fn look(&self, task: &Task, call: &libc::seccomp_notif) -> io::Result<Verdict> {
        let number = i64::from(call.data.nr);
        if number == libc::SYS_bind {
            return bound(task, &call.data.args);
        }
        let (from, to) = asked(call.data.nr, &call.data.args);
        let place = |name: &Option<Name>| match name {
            Some(name) => find(task, name),
            None => Ok(None),
        };
        let (from, to) = (place(&from)?, place(&to)?);
        for found in [&from, &to].into_iter().flatten() {
            let mut ways = [Some(&found.place), found.spelled.as_ref()].into_iter().flatten();
            if let Some(name) = ways.find(|name| self.shut(name)) {
                return refuse(name, libc::EROFS);
            }
        }
        let (from, to) = (from.map(|from| from.place), to.map(|to| to.place));
        let Some(to) = to else { return Ok(Verdict::Continue) };
        if self.holds == Holds::Nobody && is_about_rights(number) {
            let mut ours = self.folders.iter().chain([&self.temp]);
            if !ours.any(|folder| to.starts_with(folder)) {
                return refuse(&to, libc::EROFS);
            }
        }
        if removes(number) {
            let mut both = from.iter().chain([&to]);
            if let Some(name) = both.find(|name| self.bears(name)) {
                return refuse(name, libc::EBUSY);
            }
        }
        let links = links(number) || from.as_ref().is_some_and(|from| task.is_link(from));
        if links && self.leads(&to) {
            return refuse(&to, libc::EROFS);
        }
        let Some(from) = from else { return Ok(Verdict::Continue) };
        // Told that it is another disk, a program copies the files one by one, and each is asked
        // about.
        if self.carries(task, &from, &to) || exchanges(&call.data) && self.carries(task, &to, &from)
        {
            return refuse(&to, libc::EXDEV);
        }
        Ok(Verdict::Continue)
    }

    /// True if nobody may make or change this.
    fn shut(&self, path: &Path) -> bool {
        let mut folders = self.folders.iter();
        folders.any(|folder| named(folder, path).is_some_and(|name| closed(&name).is_some()))
            || path.ancestors().any(|above| self.closed.contains(above))
    }

    /// True if something lies beneath that must keep its name.
    fn bears(&self, path: &Path) -> bool {
        let from = (Bound::Included(path), Bound::Unbounded);
        let mut after = self.kept.range::<Path, _>(from);
        after.next().is_some_and(|kept| kept.starts_with(path))
    }

    /// True if protected names would stand behind a link of this name.
    fn leads(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| named(folder, path).is_some_and(|name| leads(&name)))
    }

    fn is_loose(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| named(folder, path).is_some_and(|name| loose(&name)))
    }

    /// True if a folder that is moved brings a protected name with it, or nobody knows.
    fn carries(&self, task: &Task, from: &Path, to: &Path) -> bool {
        let ours = self.folders.iter().any(|folder| to.starts_with(folder));
        if !ours || self.is_loose(to) || !task.is_folder(from) {
            return false;
        }
        // Names in there were not looked at.
        self.is_loose(from)
            || task.any_beneath(from, |name, link| {
                let name = to.join(name);
                match self.shut(&name) || link && self.leads(&name) {
                    true => Seen::Wanted,
                    false if self.is_loose(&name) => Seen::Whole,
                    false => Seen::Other,
                }
            })
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A path as seen from a folder it lies in. A folder of git is seen from above, by its name.
fn named(folder: &Path, path: &Path) -> Option<String> {
    let git = |above: &&Path| above.file_name().is_some_and(|name| name == ".git");
    let base = folder.ancestors().find(git).and_then(Path::parent).unwrap_or(folder);
    path.starts_with(folder).then_some(())?;
    Some(path.strip_prefix(base).ok()?.to_string_lossy().into_owned())
}

fn exchanges(call: &libc::seccomp_data) -> bool {
    let [_, _, _, _, flags, _] = call.args;
    i64::from(call.nr) == libc::SYS_renameat2 && flags & u64::from(libc::RENAME_EXCHANGE) != 0
}

/// Whoever has been killed meanwhile is no error.
fn gone(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

fn refuse(name: &Path, error: i32) -> io::Result<Verdict> {
    Ok(Verdict::Refuse { name: name.to_owned(), error })
}

/// The socket of a pair has no name, and nobody needs to give it one.
fn bound(task: &Task, arguments: &[u64; 6]) -> io::Result<Verdict> {
    let [_, address, ..] = *arguments;
    let family = match address {
        0 => None,
        address => task.bytes(address, 2)?.try_into().ok().map(u16::from_ne_bytes),
    };
    match family.is_some_and(|family| i32::from(family) == libc::AF_UNIX) {
        true => refuse(Path::new("a socket"), libc::EPERM),
        false => Ok(Verdict::Continue),
    }
}

/// True if a name is taken away, or is another's from then on.
fn removes(number: i64) -> bool {
    match number {
        libc::SYS_unlinkat | libc::SYS_renameat2 => true,
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        libc::SYS_renameat => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_rmdir | libc::SYS_rename => true,
        _ => false,
    }
}

fn links(number: i64) -> bool {
    match number {
        libc::SYS_symlinkat => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => true,
        _ => false,
    }
}

fn find(task: &Task, name: &Name) -> io::Result<Option<Found>> {
    // Descriptors are numbers of 32 bits, whatever stands above them.
    let folder = name.folder.map(|number| number as u32 as i32);
    let folder = folder.filter(|number| *number != libc::AT_FDCWD);
    let text = match name.address {
        0 => Vec::new(),
        address => task.text(address)?,
    };
    match (text.is_empty(), folder) {
        (true, Some(number)) => {
            Ok(task.descriptor(number)?.map(|place| Found { place, spelled: None }))
        }
        (true, None) => Ok(None),
        (false, _) => {
            let Some(whole) = task.whole(folder, &text)? else { return Ok(None) };
            let Some(place) = task.place(&whole, name.end)? else { return Ok(None) };
            let spelled = Some(plain(&whole)).filter(|spelled| *spelled != place);
            Ok(Some(Found { place, spelled }))
        }
    }
}

/// A path without the parts that lead back.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain
}

/// Which file a call about rights is about.
fn asked_for_rights(number: i64, arguments: &[u64; 6]) -> Option<Name> {
    let [first, second, _, fourth, fifth, _] = *arguments;
    let at = |folder, address, flags: u64| {
        let end = match flags & libc::AT_SYMLINK_NOFOLLOW as u64 {
            0 => End::Followed,
            _ => End::Kept,
        };
        Some(Name { folder, address, end })
    };
    let kept = libc::AT_SYMLINK_NOFOLLOW as u64;
    match number {
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            at(Some(first), 0, 0)
        }
        libc::SYS_fchmodat2 | libc::SYS_utimensat => at(Some(first), second, fourth),
        libc::SYS_fchownat => at(Some(first), second, fifth),
        libc::SYS_fchmodat => at(Some(first), second, 0),
        libc::SYS_setxattr | libc::SYS_removexattr => at(None, first, 0),
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => at(None, first, kept),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => at(Some(first), second, 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => at(None, first, kept),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod | libc::SYS_chown | libc::SYS_utime | libc::SYS_utimes => {
            at(None, first, 0)
        }
        _ => None,
    }
}

/// Which paths a call is about: what it takes away or gives another name to, and what it makes.
fn asked(number: i32, arguments: &[u64; 6]) -> Asked {
    let [first, second, third, fourth, fifth, _] = *arguments;
    let here = |address, end| Some(Name { folder: None, address, end });
    let at = |folder, address, end| Some(Name { folder: Some(folder), address, end });
    let opened = |flags: u64| {
        let alone = flags & libc::O_NOFOLLOW as u64 != 0
            || flags & libc::O_CREAT as u64 != 0 && flags & libc::O_EXCL as u64 != 0;
        if alone { End::Kept } else { End::Followed }
    };
    let linked = match fifth & libc::AT_SYMLINK_FOLLOW as u64 {
        0 => End::Kept,
        _ => End::Followed,
    };
    match i64::from(number) {
        libc::SYS_openat => (None, at(first, second, opened(third))),
        libc::SYS_mkdirat | libc::SYS_mknodat | libc::SYS_unlinkat => {
            (None, at(first, second, End::Kept))
        }
        libc::SYS_symlinkat => (None, at(second, third, End::Kept)),
        libc::SYS_renameat2 => (at(first, second, End::Kept), at(third, fourth, End::Kept)),
        libc::SYS_linkat => (at(first, second, linked), at(third, fourth, End::Kept)),
        libc::SYS_truncate => (None, here(first, End::Followed)),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        libc::SYS_renameat => (at(first, second, End::Kept), at(third, fourth, End::Kept)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => (None, here(first, opened(second))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => (None, here(first, End::Followed)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir | libc::SYS_mknod | libc::SYS_unlink | libc::SYS_rmdir => {
            (None, here(first, End::Kept))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => (None, here(second, End::Kept)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename | libc::SYS_link => (here(first, End::Kept), here(second, End::Kept)),
        other => (None, asked_for_rights(other, arguments)),
    }
}
