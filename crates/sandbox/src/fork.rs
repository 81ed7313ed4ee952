//! Forks of a process that has a single thread.

use rustix::process::Pid;
use std::io;

/// Forks the process, which must have a single thread. Returns the child in the parent, and `None`
/// in the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    #[allow(unsafe_code, reason = "there is no safe call to fork")]
    // SAFETY: the supervisor has one thread, so the child may use everything it inherits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Exits a forked process without running anything that its parent has registered.
pub(crate) fn exit_process() -> ! {
    #[allow(unsafe_code, reason = "the safe call runs exit handlers of the supervisor")]
    // SAFETY: the call does not return, and this process shares no memory with others.
    unsafe {
        libc::_exit(0)
    }
}
