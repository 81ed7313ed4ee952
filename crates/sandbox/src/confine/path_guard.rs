//! Performs every call by which a sandboxed command creates, changes or removes a path, after
//! checking the path.
//!
//! Mounts can only cover existing paths, but a git hook or an editor's settings do harm by being
//! created. So the kernel suspends the system calls that create, rename or open paths for writing,
//! and the process that started the command answers them here: it refuses protected paths, and
//! makes the other calls itself ([`super::perform_syscall`]).
//!
//! The calls never continue in the process. The kernel would read the path again after the answer,
//! and a program with several threads could have changed it by then. Here, a path is read once and
//! resolved to an open folder, the check applies to that folder, and the call uses it. All commands
//! of a session are answered by one thread, so no rename comes between the check and the call. If
//! the answering process is gone, the calls fail.
//!
//! Only the setup of bubblewrap continues: it is our program and not the command's, and it needs
//! its namespace. The number of seccomp filters tells them apart, which a process can only
//! increase.

#![allow(clippy::disallowed_methods, reason = "inspects paths for the sandbox itself")]

use super::change_capture::ChangeCapture;
use super::hard_links::HardLinks;
use super::path_policy::{PathPolicy, SyscallTarget};
use super::perform_syscall::{self, ReducedRights};
use super::resolve_path::{
    CallerStatus, FinalSymlinkMode, ResolvedTarget, SyscallCaller, process_status,
};
use super::seccomp_listener::SeccompListener;
use super::syscall_request::{SyscallPath, SyscallRequest};
use super::terminals::{self, Terminal};
use super::{SandboxBackend, SandboxProfile, normalize_path};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Enables the notify filter and the `PathGuard`.
pub(super) const PATH_GUARD_ENABLED: bool = true;

/// Limits for one run of `answer_pending`: the number of calls, and the time. The answering process
/// has other work, and enough sandboxed processes could keep it here forever.
const MAX_CALLS_PER_TURN: usize = 32;
const MAX_TURN_TIME: Duration = Duration::from_millis(5);

/// Resolutions of one call, which is resolved again if a link takes the place of its last
/// component.
const MAX_RESOLUTIONS: usize = 4;

/// Opens of named pipes that wait for a reader. Further ones fail.
const MAX_WAITING_OPENS: usize = 64;

/// Receives and answers the suspended system calls of one command. Wait until its descriptor is
/// readable, then call [`PathGuard::answer_pending`].
#[derive(Debug)]
pub struct PathGuard {
    listener: SeccompListener,
    policy: PathPolicy,
    /// The number of filters of the supervisor, which every process of the command has as well.
    inherited_filters: u32,
    /// Set once the command itself runs. Until then, bubblewrap prepares its sandbox.
    command_runs: bool,
    waiting_opens: Vec<WaitingOpen>,
    hard_links: HardLinks,
    change_capture: Option<ChangeCapture>,
}

/// A call that opens a named pipe for writing, which has no reader yet.
#[derive(Debug)]
struct WaitingOpen {
    id: u64,
    target: ResolvedTarget,
    flags: i32,
}

/// Result of [`PathGuard::answer_pending`].
#[derive(Debug, Default)]
pub struct PathGuardReport {
    /// No process is left that could make calls, so the `PathGuard` can be dropped.
    pub closed: bool,
    /// Paths whose system calls were refused.
    pub refused_paths: Vec<PathBuf>,
}

enum SyscallVerdict {
    /// The kernel makes the call. Only for bubblewrap.
    Continue,
    Done,
    Opened {
        file: OwnedFd,
        close_on_exec: bool,
    },
    Failed(Errno),
    /// The answer follows when a reader opens the pipe.
    Wait(WaitingOpen),
    Refuse {
        name: PathBuf,
        error: i32,
    },
}

impl PathGuard {
    pub(super) fn new(listener: OwnedFd, profile: &SandboxProfile) -> PathGuard {
        PathGuard {
            listener: SeccompListener::new(listener),
            policy: PathPolicy::new(profile),
            inherited_filters: process_status(std::process::id()).unwrap_or_default().filters,
            command_runs: profile.backend == SandboxBackend::Landlock,
            waiting_opens: Vec::new(),
            hard_links: HardLinks::default(),
            change_capture: None,
        }
    }

    /// Keeps the files that the command changes as they were before.
    pub(crate) fn capture_changes(&mut self, change_capture: ChangeCapture) {
        self.change_capture = Some(change_capture);
    }

    /// Returns true if a call waits for something that does not make the descriptor readable. Then
    /// call [`PathGuard::answer_pending`] from time to time.
    pub fn has_waiting_opens(&self) -> bool {
        !self.waiting_opens.is_empty()
    }

    /// Answers the pending calls, up to the limits of one run. Does not block.
    pub fn answer_pending(&mut self) -> io::Result<PathGuardReport> {
        let mut report = PathGuardReport::default();
        let start = Instant::now();
        self.retry_waiting_opens()?;
        for _ in 0..MAX_CALLS_PER_TURN {
            if start.elapsed() > MAX_TURN_TIME {
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
                report.closed = polled.revents().intersects(PollFlags::HUP | PollFlags::ERR);
                return Ok(report);
            }
            let Some(call) = self.listener.receive()? else { continue };
            if let SyscallVerdict::Refuse { name, .. } = self.answer(&call)? {
                report.refused_paths.push(name);
            }
        }
        Ok(report)
    }

    fn answer(&mut self, call: &libc::seccomp_notif) -> io::Result<SyscallVerdict> {
        let verdict = self.handle_call(call);
        let errno = |error: Errno| -error.raw_os_error();
        let (error, flags) = match &verdict {
            SyscallVerdict::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            SyscallVerdict::Done => (0, 0),
            SyscallVerdict::Failed(error) => (errno(*error), 0),
            SyscallVerdict::Refuse { error, .. } => (-error, 0),
            SyscallVerdict::Opened { file, close_on_exec } => {
                match self.listener.send_file(call.id, file, *close_on_exec)? {
                    Ok(()) => return Ok(verdict),
                    Err(error) => (errno(error), 0),
                }
            }
            SyscallVerdict::Wait(_) => {
                let SyscallVerdict::Wait(waiting) = verdict else { return Ok(verdict) };
                self.waiting_opens.push(waiting);
                return Ok(SyscallVerdict::Done);
            }
        };
        self.listener.send_reply(libc::seccomp_notif_resp { id: call.id, val: 0, error, flags })?;
        Ok(verdict)
    }

    /// Opens named pipes that have got a reader in the meantime.
    fn retry_waiting_opens(&mut self) -> io::Result<()> {
        let waiting_opens = std::mem::take(&mut self.waiting_opens);
        for waiting in waiting_opens {
            if !self.listener.is_still_waiting(waiting.id) {
                continue;
            }
            let Ok(_rights) = ReducedRights::enter() else { continue };
            let status = CallerStatus::default();
            let close_on_exec = waiting.flags & libc::O_CLOEXEC != 0;
            let opened = perform_syscall::open(&waiting.target, waiting.flags, 0, &status);
            let error = match opened {
                Err(Errno::NXIO) => {
                    self.waiting_opens.push(waiting);
                    continue;
                }
                Ok(file) => match self.listener.send_file(waiting.id, &file, close_on_exec)? {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let error = -error.raw_os_error();
            let reply = libc::seccomp_notif_resp { id: waiting.id, val: 0, error, flags: 0 };
            self.listener.send_reply(reply)?;
        }
        Ok(())
    }

    fn handle_call(&mut self, call: &libc::seccomp_notif) -> SyscallVerdict {
        let Ok(_rights) = ReducedRights::enter() else {
            return SyscallVerdict::Failed(Errno::ACCESS);
        };
        for _ in 0..MAX_RESOLUTIONS {
            match self.try_call(call) {
                Ok(Err(Errno::LOOP)) => {}
                Ok(Ok(verdict)) => return verdict,
                Ok(Err(error)) => return SyscallVerdict::Failed(error),
                // A call that cannot be inspected is refused.
                Err(error) => {
                    let error = Errno::from_io_error(&error).unwrap_or(Errno::ACCESS);
                    return SyscallVerdict::Failed(error);
                }
            }
        }
        SyscallVerdict::Failed(Errno::LOOP)
    }

    /// Checks a call and makes it. The inner error is the result of the call.
    fn try_call(
        &mut self,
        call: &libc::seccomp_notif,
    ) -> io::Result<Result<SyscallVerdict, Errno>> {
        let process = SyscallCaller::new(call.pid)?;
        let status = process.status()?;
        if !self.command_runs {
            if status.filters == self.inherited_filters + 1 {
                return Ok(Ok(SyscallVerdict::Continue));
            }
            self.command_runs = true;
        }
        let Some(request) = SyscallRequest::decode(call.data.nr, &call.data.args) else {
            return Ok(Err(Errno::NOSYS));
        };
        let (from, to) = request.paths();
        let resolve = |path: Option<SyscallPath>| match path {
            Some(path) => resolve_target(&process, &path).map(Some),
            None => Ok(None),
        };
        let (from, to) = (resolve(from)?, resolve(to)?);
        // The memory that was read belongs to the process and not to another one with its pid.
        if !self.listener.is_still_waiting(call.id) {
            return Ok(Err(Errno::SRCH));
        }
        if let Some((name, error)) =
            self.policy.check(&process, &request, from.as_ref(), to.as_ref())
        {
            return Ok(Ok(SyscallVerdict::Refuse { name, error }));
        }
        Ok(self.perform(&process, &status, call.id, &request, from, to))
    }

    /// Makes a call that was checked.
    fn perform(
        &mut self,
        process: &SyscallCaller,
        status: &CallerStatus,
        id: u64,
        request: &SyscallRequest,
        from: Option<SyscallTarget>,
        to: Option<SyscallTarget>,
    ) -> Result<SyscallVerdict, Errno> {
        let to_path = |target: Option<SyscallTarget>| match target.map(|target| target.target) {
            Some(ResolvedTarget::Path(path)) => Ok(path),
            Some(ResolvedTarget::Descriptor { .. }) => Err(Errno::EXIST),
            None => Err(Errno::NOENT),
        };
        if let Some(capture) = &mut self.change_capture {
            capture.capture_call(request, from.as_ref(), to.as_ref());
        }
        match *request {
            SyscallRequest::Open { path, flags, mode } => {
                let target = to.ok_or(Errno::NOENT)?.target;
                return self.open(process, status, (id, path, target), flags, mode);
            }
            SyscallRequest::MakeFolder { mode, .. } => {
                perform_syscall::make_folder(&to_path(to)?, mode, status)?
            }
            SyscallRequest::MakeNode { mode, device, .. } => {
                perform_syscall::make_node(&to_path(to)?, mode, device, status)?
            }
            SyscallRequest::Remove { flags, .. } => {
                let path = to_path(to)?;
                self.hard_links.forget_name(&path);
                perform_syscall::remove(&path, flags)?
            }
            SyscallRequest::Rename { flags, .. } => {
                perform_syscall::rename(&to_path(from)?, &to_path(to)?, flags)?
            }
            SyscallRequest::Link { from: SyscallPath { final_symlink, .. }, .. } => {
                let from = from.ok_or(Errno::NOENT)?.target;
                let is_descriptor = matches!(from, ResolvedTarget::Descriptor { .. });
                if is_descriptor && final_symlink == FinalSymlinkMode::Keep {
                    return Err(Errno::XDEV);
                }
                let to = to_path(to)?;
                perform_syscall::link(&from, &to)?;
                self.hard_links.remember_link(&to);
            }
            SyscallRequest::Symlink { target_address, .. } => {
                let text = process.read_c_string(target_address).map_err(|_| Errno::FAULT)?;
                perform_syscall::symlink(&text, &to_path(to)?)?
            }
            SyscallRequest::Truncate { length, .. } => {
                let target = to.ok_or(Errno::NOENT)?.target;
                if process.max_file_bytes().is_some_and(|max| length > max) {
                    return Err(Errno::FBIG);
                }
                self.hard_links.break_link(&target)?;
                perform_syscall::truncate(&target, length)?
            }
            SyscallRequest::SetMode { path, .. }
            | SyscallRequest::SetOwner { path, .. }
            | SyscallRequest::SetTimes { path, .. }
            | SyscallRequest::SetAttribute { path, .. }
            | SyscallRequest::RemoveAttribute { path, .. } => {
                let target = to.ok_or(Errno::NOENT)?.target;
                self.hard_links.break_link(&target)?;
                set_metadata(process, request, &path, &target)?
            }
            SyscallRequest::Bind { fd, address, length } => {
                return bind_socket(process, status, (fd, address, length));
            }
        }
        Ok(SyscallVerdict::Done)
    }

    /// Opens a file for the process.
    fn open(
        &mut self,
        process: &SyscallCaller,
        status: &CallerStatus,
        (id, path, target): (u64, SyscallPath, ResolvedTarget),
        flags: i32,
        mode: u32,
    ) -> Result<SyscallVerdict, Errno> {
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        let opened = |file| SyscallVerdict::Opened { file, close_on_exec };
        let keeps_link = path.final_symlink == FinalSymlinkMode::Keep;
        // A verdict and not an error: `ELOOP` as an error would lead to another resolution.
        let link_error = if flags & libc::O_EXCL != 0 { Errno::EXIST } else { Errno::LOOP };
        let ResolvedTarget::Path(anchored) = &target else {
            return match keeps_link {
                true => Ok(SyscallVerdict::Failed(link_error)),
                false => perform_syscall::open(&target, flags, mode, status).map(opened),
            };
        };
        let Ok(stat) = perform_syscall::stat(&target) else {
            return perform_syscall::open(&target, flags, mode, status).map(opened);
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink && keeps_link {
            return Ok(SyscallVerdict::Failed(link_error));
        }
        // Files of `/proc` act on the process that opens them.
        if anchored.path.starts_with("/proc") {
            return Err(Errno::ACCESS);
        }
        if kind == FileType::CharacterDevice
            && let Some(terminal) = Terminal::from_device(stat.st_rdev)
        {
            match terminal {
                Terminal::Controlling => {
                    let file = terminals::controlling_terminal(process.pid())?;
                    let target = ResolvedTarget::Descriptor { file, path: None };
                    return perform_syscall::open(&target, flags, mode, status).map(opened);
                }
                Terminal::Slave(number)
                    if self.policy.shares_terminals()
                        && !terminals::is_own_terminal(process.pid(), number) =>
                {
                    return Err(Errno::ACCESS);
                }
                Terminal::Slave(_) => {}
            }
        }
        let is_write = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
        if kind == FileType::RegularFile && is_write && stat.st_nlink > 1 {
            self.hard_links.break_link(&target)?;
        }
        match perform_syscall::open(&target, flags, mode, status) {
            Err(Errno::NXIO) if kind == FileType::Fifo && flags & libc::O_NONBLOCK == 0 => {
                if self.waiting_opens.len() >= MAX_WAITING_OPENS {
                    return Err(Errno::NFILE);
                }
                Ok(SyscallVerdict::Wait(WaitingOpen { id, target, flags }))
            }
            result => result.map(opened),
        }
    }
}

impl AsFd for PathGuard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Binds a socket, except a Unix socket. The sockets of a `socketpair` have no name and need none.
fn bind_socket(
    process: &SyscallCaller,
    status: &CallerStatus,
    (fd, address, length): (i32, u64, usize),
) -> Result<SyscallVerdict, Errno> {
    let length = length.min(std::mem::size_of::<libc::sockaddr_storage>());
    let address = process.read_memory(address, length).map_err(|_| Errno::FAULT)?;
    let family = address.first_chunk().copied().map(u16::from_ne_bytes);
    if family.is_none_or(|family| i32::from(family) == libc::AF_UNIX) {
        let name = PathBuf::from("a socket");
        return Ok(SyscallVerdict::Refuse { name, error: libc::EPERM });
    }
    let socket = process.copy_descriptor(status, fd)?;
    perform_syscall::bind(&socket, &address).map(|()| SyscallVerdict::Done)
}

/// Changes the metadata of a file.
fn set_metadata(
    process: &SyscallCaller,
    request: &SyscallRequest,
    path: &SyscallPath,
    target: &ResolvedTarget,
) -> Result<(), Errno> {
    let file = perform_syscall::open_for_metadata(target)?;
    let stat = rustix::fs::fstat(&file)?;
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    if is_link && path.final_symlink == FinalSymlinkMode::Follow {
        return Err(Errno::LOOP);
    }
    let read_name = |address| process.read_c_string(address).map_err(|_| Errno::FAULT);
    match *request {
        SyscallRequest::SetMode { .. } if is_link => Err(Errno::OPNOTSUPP),
        SyscallRequest::SetMode { mode, .. } => perform_syscall::set_mode(&file, mode),
        SyscallRequest::SetOwner { user, group, .. } => {
            perform_syscall::set_owner(&file, user, group)
        }
        SyscallRequest::SetTimes { times, .. } => {
            let times = perform_syscall::read_times(process, times)?;
            perform_syscall::set_times(&file, &times, is_link)
        }
        SyscallRequest::SetAttribute { .. } | SyscallRequest::RemoveAttribute { .. } if is_link => {
            Err(Errno::PERM)
        }
        SyscallRequest::SetAttribute { name, value, size, flags, .. } => {
            let value = perform_syscall::read_attribute(process, value, size)?;
            perform_syscall::set_attribute(&file, (&read_name(name)?, &value), flags)
        }
        SyscallRequest::RemoveAttribute { name, .. } => {
            perform_syscall::remove_attribute(&file, &read_name(name)?)
        }
        SyscallRequest::Open { .. }
        | SyscallRequest::MakeFolder { .. }
        | SyscallRequest::MakeNode { .. }
        | SyscallRequest::Remove { .. }
        | SyscallRequest::Rename { .. }
        | SyscallRequest::Link { .. }
        | SyscallRequest::Symlink { .. }
        | SyscallRequest::Truncate { .. }
        | SyscallRequest::Bind { .. } => Err(Errno::NOSYS),
    }
}

fn resolve_target(process: &SyscallCaller, path: &SyscallPath) -> io::Result<SyscallTarget> {
    let not_found = || io::Error::from_raw_os_error(libc::ENOENT);
    let folder = path.folder_fd.filter(|fd| *fd != libc::AT_FDCWD);
    let text = match path.address {
        0 => Vec::new(),
        address => process.read_c_string(address)?,
    };
    if text.is_empty() {
        let fd = folder.ok_or_else(not_found)?;
        return Ok(SyscallTarget { target: process.open_descriptor(fd)?, as_written: None });
    }
    let absolute = process.absolute_path(folder, &text)?.ok_or_else(not_found)?;
    let target = process.anchor(&absolute, path.final_symlink)?.ok_or_else(not_found)?;
    let as_written = Some(normalize_path(&absolute)).filter(|path| Some(&**path) != target.path());
    Ok(SyscallTarget { target, as_written })
}
