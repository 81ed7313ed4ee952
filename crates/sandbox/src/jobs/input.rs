//! The two ends of what a command reads and says.

use crate::command::Stdin;
use crate::keeper::wire::Input;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;

/// Our ends. Neither ever blocks.
pub(super) struct Source {
    pub(super) reading: OwnedFd,
    pub(super) writing: Option<OwnedFd>,
}

impl Source {
    /// Our ends, the command's, and what the keeper is told they are.
    pub(super) fn open(stdin: Stdin) -> io::Result<(Source, Vec<OwnedFd>, Input)> {
        match stdin {
            Stdin::Closed => {
                let (reading, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
                fcntl_setfl(&reading, OFlags::NONBLOCK)?;
                Ok((Source { reading, writing: None }, vec![theirs], Input::Nothing))
            }
            Stdin::Pipe => {
                let (reading, output) = pipe_with(PipeFlags::CLOEXEC)?;
                let (input, writing) = pipe_with(PipeFlags::CLOEXEC)?;
                fcntl_setfl(&reading, OFlags::NONBLOCK)?;
                fcntl_setfl(&writing, OFlags::NONBLOCK)?;
                let ours = Source { reading, writing: Some(writing) };
                Ok((ours, vec![input, output], Input::Pipe))
            }
            Stdin::Terminal { rows, cols } => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let reading = openpt(flags)?;
                grantpt(&reading)?;
                unlockpt(&reading)?;
                let theirs = ioctl_tiocgptpeer(&reading, flags)?;
                let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
                tcsetwinsize(&theirs, size)?;
                fcntl_setfl(&reading, OFlags::RDWR | OFlags::NONBLOCK)?;
                let writing = Some(reading.try_clone()?);
                Ok((Source { reading, writing }, vec![theirs], Input::Terminal))
            }
        }
    }
}

/// Our ends of the three pipes of a program that is kept. None ever blocks.
pub(super) struct Three {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) complaints: OwnedFd,
}

impl Three {
    /// Our ends and the program's.
    pub(super) fn open() -> io::Result<(Three, Vec<OwnedFd>)> {
        let (stdin, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (output, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (complaints, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        for ours in [&input, &output, &complaints] {
            fcntl_setfl(ours, OFlags::NONBLOCK)?;
        }
        Ok((Three { input, output, complaints }, vec![stdin, stdout, stderr]))
    }
}
