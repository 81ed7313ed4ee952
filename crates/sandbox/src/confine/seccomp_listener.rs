//! The descriptor of a seccomp notify filter: receives suspended system calls and sends answers.

use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Receives the calls that a notify filter suspends.
#[derive(Debug)]
pub(super) struct SeccompListener(OwnedFd);

impl SeccompListener {
    pub(super) fn new(listener: OwnedFd) -> SeccompListener {
        // The answering thread and the waiting thread may share a CPU; since Linux 6.6.
        let sync_wakeup: u64 = 1;
        #[allow(unsafe_code, reason = "there is no safe call for seccomp listeners")]
        // SAFETY: the third argument is a number. Older kernels refuse the call, which does no
        // harm.
        unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync_wakeup);
        }
        SeccompListener(listener)
    }

    /// Receives one pending call, or `None` if its process is gone.
    pub(super) fn receive(&self) -> io::Result<Option<libc::seccomp_notif>> {
        #[allow(unsafe_code, reason = "there is no safe call for seccomp listeners")]
        // SAFETY: the kernel requires a zeroed `seccomp_notif` and fills in no more than its size.
        let (result, call) = unsafe {
            let mut call: libc::seccomp_notif = std::mem::zeroed();
            let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
            (libc::ioctl(self.0.as_raw_fd(), request, &raw mut call), call)
        };
        match result {
            0 => Ok(Some(call)),
            _ => ignore_vanished(io::Error::last_os_error()).map(|()| None),
        }
    }

    pub(super) fn send_reply(&self, mut reply: libc::seccomp_notif_resp) -> io::Result<()> {
        #[allow(unsafe_code, reason = "there is no safe call for seccomp listeners")]
        // SAFETY: the kernel reads `reply` while it is alive.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
            libc::ioctl(self.0.as_raw_fd(), request, &raw mut reply)
        };
        match result {
            0 => Ok(()),
            _ => ignore_vanished(io::Error::last_os_error()),
        }
    }

    /// Gives the process a descriptor for the file, as the result of its call. The inner error is
    /// one for the process, such as too many open files.
    pub(super) fn send_file(
        &self,
        id: u64,
        file: &OwnedFd,
        close_on_exec: bool,
    ) -> io::Result<Result<(), Errno>> {
        let newfd_flags = if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 };
        let srcfd = file.as_raw_fd().cast_unsigned();
        let mut added = libc::seccomp_notif_addfd {
            id,
            flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
            srcfd,
            newfd: 0,
            newfd_flags,
        };
        #[allow(unsafe_code, reason = "there is no safe call for seccomp listeners")]
        // SAFETY: the kernel reads `added` while it is alive, and `file` is open.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_ADDFD;
            libc::ioctl(self.0.as_raw_fd(), request, &raw mut added)
        };
        if result >= 0 {
            return Ok(Ok(()));
        }
        let error = io::Error::last_os_error();
        match Errno::from_io_error(&error) {
            Some(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Ok(Err(error)),
            _ => ignore_vanished(error).map(|()| Ok(())),
        }
    }

    /// Returns true if the process still waits. Then the memory read before was its own, not that
    /// of another process that reused its pid.
    pub(super) fn is_still_waiting(&self, id: u64) -> bool {
        #[allow(unsafe_code, reason = "there is no safe call for seccomp listeners")]
        // SAFETY: the kernel reads `id` while it is alive.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
            libc::ioctl(self.0.as_raw_fd(), request, &raw const id)
        };
        result == 0
    }
}

impl AsFd for SeccompListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ignores the errors that occur when the process was killed meanwhile.
fn ignore_vanished(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}
