//! Starting a command: in its cage, in a session of its own, with nothing but what it was given.

use super::MARK;
use super::family;
use super::wire::{Input, Limits, Start};
use crate::cage::Inside;
use rustix::fd::OwnedFd;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, ioctl_tiocsctty,
    set_parent_process_death_signal, setrlimit, setsid,
};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts a command that may have so many files open. What stood in the way is told in words.
pub(super) fn spawn(
    start: &Start,
    descriptors: Vec<OwnedFd>,
    files: Rlimit,
) -> Result<(Pid, Inside), String> {
    let mut command = Command::new(OsString::from(&start.program));
    command.args(start.arguments.iter().map(OsString::from)).env_clear();
    for (name, value) in &start.environment {
        command.env(OsString::from(name), OsString::from(value));
    }
    let keeper = getpid();
    command.env(MARK, format!("{}.{}", keeper.as_raw_pid(), start.job));
    let folder = OsString::from(&start.folder);
    if !std::path::Path::new(&folder).is_dir() {
        return Err(format!("the folder {} is not there", folder.display()));
    }
    command.current_dir(folder);
    connect(&mut command, start.input, descriptors).map_err(|error| error.to_string())?;
    let input = start.input;
    let mut limits = limits(start.limits);
    limits.push((Resource::Nofile, files));
    let prepare = move || -> io::Result<()> {
        setsid()?;
        if input == Input::Terminal {
            ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the keeper died before that, the signal will never come.
        if getppid() != Some(keeper) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        for (resource, limit) in &limits {
            setrlimit(*resource, *limit)?;
        }
        Ok(())
    };
    #[allow(unsafe_code, reason = "std asks for it: what runs before exec must suit a fork")]
    // SAFETY: the keeper has one thread, so no lock is held by another; these are bare calls to the
    // system that allocate nothing.
    unsafe {
        command.pre_exec(prepare);
    }
    // Last, because nothing that was added later would be sure to run.
    let entered = start.cage.enter(&mut command).map_err(|error| error.to_string())?;
    let mut child = command.spawn().map_err(|error| explain(&error, start))?;
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or("it has no number")?;
    match entered.inside() {
        Ok(inside) => Ok((pid, inside)),
        // Without anybody to ask it would wait for ever.
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error.to_string())
        }
    }
}

fn connect(command: &mut Command, input: Input, descriptors: Vec<OwnedFd>) -> io::Result<()> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(io::Error::from(io::ErrorKind::InvalidInput));
    if matches!(input, Input::Pipe | Input::Three) {
        command.stdin(next()?);
    }
    let output = next()?;
    match input {
        Input::Pipe => {}
        Input::Nothing => {
            command.stdin(Stdio::null());
        }
        Input::Terminal => {
            command.stdin(output.try_clone()?);
        }
        Input::Three => {
            command.stdout(output).stderr(next()?);
            return Ok(());
        }
    }
    // One pipe for both keeps the order in which things were said.
    command.stdout(output.try_clone()?).stderr(output);
    Ok(())
}

/// The system's own bounds, for what it can count. Its count of processes is of a whole user, so
/// the bound leaves room for everybody else's; for root it does not count at all, and the keeper
/// does.
fn limits(limits: Limits) -> Vec<(Resource, Rlimit)> {
    let processes = family::total().saturating_add(2 * limits.processes);
    [(Resource::Fsize, limits.file), (Resource::Core, 0), (Resource::Nproc, processes as u64)]
        .into_iter()
        .map(|(resource, most)| {
            let most = getrlimit(resource).maximum.map_or(most, |maximum| most.min(maximum));
            (resource, Rlimit { current: Some(most), maximum: Some(most) })
        })
        .collect()
}

fn explain(error: &io::Error, start: &Start) -> String {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            "it is too long for the system. Write it to a file and run that".to_owned()
        }
        io::ErrorKind::NotFound if start.input == Input::Three => {
            let program = OsString::from(&start.program);
            format!("{} is not there, or what its first line names is not", program.display())
        }
        io::ErrorKind::NotFound => "the shell is not there".to_owned(),
        _ => error.to_string(),
    }
}
