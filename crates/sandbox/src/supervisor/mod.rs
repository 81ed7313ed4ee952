//! The supervisor: a small process of our own that starts commands and ends every process they
//! start.
//!
//! It is our own binary, run as a helper process for as long as a session lasts. It is a child
//! subreaper, so every process that a command starts (in the background, in its own session, or as
//! a daemon) becomes its child when the parent exits. Therefore it knows the processes that still
//! run after a command has exited and can end all of them. It does so when the socket to its owner
//! closes, even if the owner was killed without notice.
//!
//! It has a single thread, so that ordinary code may run between fork and exec, and the
//! parent-death signal of a command means the death of the supervisor. Start reading at
//! [`run_supervisor`].
#![allow(clippy::disallowed_methods, reason = "processes are started and inspected only here")]

pub(crate) mod client;
pub(crate) mod connection;
mod event_loop;
mod job_mark;
pub(crate) mod limits;
pub(crate) mod messages;
mod orphan_guard;
pub(crate) mod process_tree;
mod spawn;

use crate::Error;
use orphan_guard::OrphanGuard;
use rustix::fd::OwnedFd;
use rustix::process::{chdir, getpid, set_child_subreaper, setsid};
use std::io;

/// Helper name of the supervisor, passed after `HELPER_ARGUMENT`.
pub(crate) const SUPERVISOR_HELPER_NAME: &str = "supervisor";

/// Supervises the processes of commands until the socket at standard input closes, then ends all of
/// them.
pub fn run_supervisor() -> Result<(), Error> {
    let supervisor_error = |source| Error::SupervisorFailed { source };
    let (socket, guard) = detach_from_parent().map_err(supervisor_error)?;
    event_loop::Supervisor::new(socket, guard).run().map_err(supervisor_error)
}

/// Drops everything inherited from the owner except the socket, and starts the `OrphanGuard`.
fn detach_from_parent() -> io::Result<(OwnedFd, OrphanGuard)> {
    rustix::net::sockopt::socket_type(rustix::stdio::stdin())?;
    close_inherited_fds()?;
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    // Fails only if this process already leads a group, which no caller arranges.
    let _ = setsid();
    chdir("/")?;
    rustix::thread::set_name(c"windlass-super")?;
    install_signal_handlers();
    // The guard must not keep the socket open, which tells the owner that the supervisor is alive.
    let guard = OrphanGuard::start(&socket)?;
    set_child_subreaper(Some(getpid()))?;
    raise_priority();
    Ok((socket, guard))
}

/// Closes inherited file descriptors: one that our parent opened without `CLOEXEC` must not reach a
/// command.
fn close_inherited_fds() -> io::Result<()> {
    let fds: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in fds {
        #[allow(
            unsafe_code,
            reason = "only the raw call closes descriptors that this process did not open"
        )]
        // SAFETY: this runs first, so no descriptor above 2 has an owner in this process. The
        // descriptor that listed them is already closed, and closing it again fails.
        unsafe {
            libc::close(fd);
        }
    }
    Ok(())
}

/// Keeps the supervisor alive when a terminal or the user signals all our processes: it ends only
/// when its owner does. Commands do not inherit a handler, unlike an ignored signal. The handler
/// for `SIGCHLD` also wakes the loop.
fn install_signal_handlers() {
    extern "C" fn ignore_signal(_: libc::c_int) {}
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGCHLD,
    ] {
        #[allow(unsafe_code, reason = "rustix has no call to set signal handlers")]
        // SAFETY: the handler does nothing, which is safe at any moment.
        unsafe {
            libc::signal(signal, ignore_signal as *const () as libc::sighandler_t);
        }
    }
}

/// Schedules the supervisor before its commands, so that thousands of them cannot keep it from
/// killing them. Only root may do so; for other users the kernel limits the number of processes.
/// Commands do not inherit the priority.
fn raise_priority() {
    #[allow(unsafe_code, reason = "rustix has no call to set the scheduling policy")]
    // SAFETY: the struct consists of plain integers, for which zero is a valid value, and lives
    // during the call.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 1;
        libc::sched_setscheduler(
            0,
            libc::SCHED_RR | libc::SCHED_RESET_ON_FORK,
            &raw const parameters,
        );
    }
}
