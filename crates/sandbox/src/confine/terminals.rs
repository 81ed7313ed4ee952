//! Terminals that a sandboxed process may open.
//!
//! Without a mount namespace, a command sees the terminals of the whole machine. It may open those
//! that it made itself, and the one it runs in, but not the one of the user, where it could read
//! what the user types.

#![allow(clippy::disallowed_methods, reason = "inspects processes for the sandbox itself")]

use super::resolve_path::process_status;
use rustix::fs::{Dev, Mode, OFlags, major, makedev, minor};
use rustix::io::Errno;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Device numbers of `/dev/tty`, and of the first and last group of pseudoterminal slaves.
const CONTROLLING_TERMINAL: (u32, u32) = (5, 0);
const SLAVE_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;
const SLAVES_PER_MAJOR: u32 = 256;

/// Limits the generations of processes between a command and the owner of its terminal.
const MAX_ANCESTORS: usize = 32;

/// A terminal device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terminal {
    /// `/dev/tty`: the controlling terminal of the process that opens it.
    Controlling,
    /// A pseudoterminal slave, by its number.
    Slave(u32),
}

impl Terminal {
    pub(super) fn from_device(device: Dev) -> Option<Terminal> {
        let (major, minor) = (major(device), minor(device));
        if (major, minor) == CONTROLLING_TERMINAL {
            return Some(Terminal::Controlling);
        }
        let group = major.checked_sub(*SLAVE_MAJORS.start())?;
        SLAVE_MAJORS.contains(&major).then(|| Terminal::Slave(group * SLAVES_PER_MAJOR + minor))
    }
}

/// Opens the controlling terminal of a process, as a reference to it. It is found among the
/// standard streams of the process and its ancestors, because a terminal of another mount namespace
/// has no path.
pub(super) fn controlling_terminal(pid: u32) -> Result<OwnedFd, Errno> {
    let device = controlling_device(pid).ok_or(Errno::NXIO)?;
    for pid in sandboxed_ancestors(pid) {
        for stream in 0..=2 {
            let path = format!("/proc/{pid}/fd/{stream}");
            let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            if let Ok(file) = file
                && rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_rdev == device)
            {
                return Ok(file);
            }
        }
    }
    Err(Errno::NXIO)
}

/// Returns true if the process runs in this pseudoterminal, or if it or an ancestor in the sandbox
/// made it.
pub(super) fn is_own_terminal(pid: u32, number: u32) -> bool {
    let own = controlling_device(pid).and_then(Terminal::from_device);
    own == Some(Terminal::Slave(number))
        || sandboxed_ancestors(pid).into_iter().any(|pid| holds_master(pid, number))
}

/// Returns the process and its ancestors up to this process, which started the command.
fn sandboxed_ancestors(pid: u32) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut next = pid;
    while next > 1 && next != std::process::id() && pids.len() < MAX_ANCESTORS {
        pids.push(next);
        let Ok(status) = process_status(next) else { break };
        next = status.parent;
    }
    pids
}

/// Returns true if the process has the master of a pseudoterminal open.
fn holds_master(pid: u32, number: u32) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let is_master = |path: &PathBuf| {
        fs::read_link(path)
            .is_ok_and(|target| target.file_name().is_some_and(|name| name == "ptmx"))
    };
    let mut masters = entries.flatten().filter(|entry| is_master(&entry.path()));
    masters.any(|entry| {
        let path = format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
        let Ok(info) = fs::read_to_string(path) else { return false };
        let index = info.lines().find_map(|line| line.strip_prefix("tty-index:"));
        index.and_then(|index| index.trim().parse().ok()) == Some(number)
    })
}

/// Returns the device of the controlling terminal, from `/proc/PID/stat`.
fn controlling_device(pid: u32) -> Option<Dev> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let number: u32 = fields.split_whitespace().nth(4)?.parse::<i32>().ok()?.cast_unsigned();
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    (number != 0).then(|| makedev(major, minor))
}
