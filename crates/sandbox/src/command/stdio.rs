//! Creates the pipes and terminals for `stdin`, `stdout` and `stderr` of commands and processes.

use crate::command::command_types::StdinMode;
use crate::supervisor::messages::StdioLayout;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;

/// Our ends of a command's stdin and output. Neither blocks.
pub(crate) struct JobStdio {
    pub(crate) output: OwnedFd,
    pub(crate) input: Option<OwnedFd>,
}

impl JobStdio {
    /// Opens the streams for `stdin`. Returns our ends, the command's ends, and the `StdioLayout`
    /// for the supervisor.
    pub(crate) fn open(stdin: StdinMode) -> io::Result<(JobStdio, Vec<OwnedFd>, StdioLayout)> {
        match stdin {
            StdinMode::Closed => {
                let (output, child_output) = pipe_with(PipeFlags::CLOEXEC)?;
                fcntl_setfl(&output, OFlags::NONBLOCK)?;
                Ok((JobStdio { output, input: None }, vec![child_output], StdioLayout::NoStdin))
            }
            StdinMode::Pipe => {
                let (output, child_output) = pipe_with(PipeFlags::CLOEXEC)?;
                let (child_input, input) = pipe_with(PipeFlags::CLOEXEC)?;
                fcntl_setfl(&output, OFlags::NONBLOCK)?;
                fcntl_setfl(&input, OFlags::NONBLOCK)?;
                let stdio = JobStdio { output, input: Some(input) };
                Ok((stdio, vec![child_input, child_output], StdioLayout::Pipe))
            }
            StdinMode::Terminal { rows, cols } => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let terminal = openpt(flags)?;
                grantpt(&terminal)?;
                unlockpt(&terminal)?;
                let child_terminal = ioctl_tiocgptpeer(&terminal, flags)?;
                let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
                tcsetwinsize(&child_terminal, size)?;
                fcntl_setfl(&terminal, OFlags::RDWR | OFlags::NONBLOCK)?;
                let input = Some(terminal.try_clone()?);
                let stdio = JobStdio { output: terminal, input };
                Ok((stdio, vec![child_terminal], StdioLayout::Terminal))
            }
        }
    }
}

/// Our ends of the three pipes of a long-running process. None blocks.
pub(crate) struct StdioPipes {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl StdioPipes {
    /// Opens the pipes. Returns our ends and those of the process.
    pub(crate) fn open() -> io::Result<(StdioPipes, Vec<OwnedFd>)> {
        let (child_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        for pipe in [&stdin, &stdout, &stderr] {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok((StdioPipes { stdin, stdout, stderr }, vec![child_stdin, child_stdout, child_stderr]))
    }
}
