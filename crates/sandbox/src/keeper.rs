//! The keeper: a small process of our own that starts commands and lets none of them get away.
//!
//! It is our binary on an errand that lasts as long as a session, named `pawl`. Whatever a command
//! starts, in the background, in a session of its own, as a daemon, becomes its child when nobody
//! else is left to be the parent, because it is a child subreaper. So it knows what still runs
//! after a command has ended, can end all of it, and does so when the socket to its owner closes:
//! also when the owner was killed and could not say a word. It has one thread, so that between
//! fork and exec ordinary code may run and the death of a parent means its own. Start reading at
//! [`watch`].
#![allow(clippy::disallowed_methods, reason = "processes are started and looked at here only")]

pub(crate) mod family;
mod spawn;
mod watch;
pub(crate) mod wire;

use crate::Error;
use rustix::fd::OwnedFd;
use rustix::process::{chdir, getpid, set_child_subreaper, setsid};
use std::io;

/// The name of the errand.
pub(crate) const KEEPER: &str = "keeper";

/// Set for every command, so that what it starts can be told apart wherever it hides.
pub(crate) const MARK: &str = "WINDLASS_JOB";

/// Keeps the processes of commands until the socket that is standard input closes; then none of
/// them is left.
pub fn keeper() -> Result<(), Error> {
    let failed = |source| Error::NoKeeper { source };
    let socket = settle().map_err(failed)?;
    watch::Watch::new(socket).run().map_err(failed)
}

/// Leaves everything of its owner behind but the socket.
fn settle() -> io::Result<OwnedFd> {
    rustix::net::sockopt::socket_type(rustix::stdio::stdin())?;
    close_inherited()?;
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    // Fails only if it leads a group already, which nobody has made it do.
    let _ = setsid();
    chdir("/")?;
    rustix::thread::set_name(c"pawl")?;
    set_child_subreaper(Some(getpid()))?;
    endure();
    stay_ahead();
    Ok(socket)
}

/// A file of somebody who started us without marking it must not reach a command.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in open {
        #[allow(unsafe_code, reason = "only the raw call closes what nobody here has opened")]
        // SAFETY: this runs first, so no descriptor above 2 has an owner in this process. The one
        // that listed them is closed already, and closing it again fails.
        unsafe {
            libc::close(number);
        }
    }
    Ok(())
}

/// Makes it outlive what a terminal or a person sends to everything of ours: it ends when its owner
/// does. A handler, unlike ignoring, is not inherited by commands; the one for children also wakes
/// the loop.
fn endure() {
    extern "C" fn nothing(_: libc::c_int) {}
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGCHLD,
    ] {
        #[allow(unsafe_code, reason = "rustix does not set handlers")]
        // SAFETY: the handler does nothing, which is safe at any moment.
        unsafe {
            libc::signal(signal, nothing as *const () as libc::sighandler_t);
        }
    }
}

/// Makes it run before its commands, however many want to, so that thousands of them cannot keep it
/// from ending them. The system lets only root do so; for others it bounds how many there can be.
/// Commands do not inherit it.
fn stay_ahead() {
    #[allow(unsafe_code, reason = "rustix does not set how a process is scheduled")]
    // SAFETY: the struct is plain numbers, for which zero is a value, and lives during the call.
    unsafe {
        let mut turn: libc::sched_param = std::mem::zeroed();
        turn.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const turn);
    }
}
