//! The state of the terminal input: whether there is something to read.
#![allow(clippy::disallowed_methods, reason = "it looks at the terminal")]

/// The state of the terminal input, as `poll` reports it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StdinState {
    Idle,
    Readable,
    /// The terminal is gone; no input will follow.
    Closed,
}

impl StdinState {
    /// Returns the state without waiting.
    #[cfg(unix)]
    pub(super) fn poll_stdin() -> StdinState {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let stdin = std::io::stdin();
        let mut poll_fds = [PollFd::new(&stdin, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: 0 };
        if rustix::event::poll(&mut poll_fds, Some(&timeout)).is_err() {
            return StdinState::Idle;
        }
        let ready = poll_fds[0].revents();
        if ready.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            StdinState::Closed
        } else if ready.contains(PollFlags::IN) {
            StdinState::Readable
        } else {
            StdinState::Idle
        }
    }

    #[cfg(not(unix))]
    pub(super) fn poll_stdin() -> StdinState {
        StdinState::Idle
    }
}
