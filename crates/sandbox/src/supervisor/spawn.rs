//! Spawns a command in its sandbox and its own session, with only the descriptors and environment
//! it was given.

use super::job_mark::JobMark;
use super::limits::JobLimits;
use super::messages::{SpawnRequest, StdioLayout};
use super::process_tree;
use crate::confine::{ReceivedChildDescriptors, SandboxProfile, SessionNamespaces};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, ioctl_tiocsctty,
    set_parent_process_death_signal, setrlimit, setsid,
};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The priority of commands: a third of the processor time of a program with the usual one.
const NICENESS: i32 = 5;
const NICENESS_TEXT: &[u8] = b"5";

/// The sandbox of a command, completed by what its session shares.
pub(super) struct SpawnSandbox {
    pub(super) profile: SandboxProfile,
    pub(super) namespaces: Option<Arc<SessionNamespaces>>,
    /// Environment variables that name the package caches.
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// Spawns a command with `fd_limit` as its limit on open files. The error is a message in words.
pub(super) fn spawn_command(
    request: &SpawnRequest,
    descriptors: Vec<OwnedFd>,
    fd_limit: Rlimit,
    sandbox: SpawnSandbox,
) -> Result<(Pid, ReceivedChildDescriptors), String> {
    let mut command = Command::new(OsString::from(&request.program));
    command.args(request.arguments.iter().map(OsString::from)).env_clear();
    for (name, value) in &request.environment {
        command.env(OsString::from(name), OsString::from(value));
    }
    command.envs(sandbox.variables);
    let supervisor = getpid();
    let mark = JobMark::new(supervisor, request.job);
    let folder = OsString::from(&request.folder);
    if !std::path::Path::new(&folder).is_dir() {
        return Err(format!("the folder {} does not exist", folder.display()));
    }
    command.current_dir(folder);
    connect_stdio(&mut command, request.stdio, descriptors).map_err(|error| error.to_string())?;
    let stdio = request.stdio;
    let mut limits = resource_limits(request.limits);
    limits.push((Resource::Nofile, fd_limit));
    let prepare = move || -> io::Result<()> {
        setsid()?;
        if stdio == StdioLayout::Terminal {
            ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the supervisor died before this point, the signal will never arrive.
        if getppid() != Some(supervisor) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        for (resource, limit) in &limits {
            setrlimit(*resource, *limit)?;
        }
        raise_oom_score();
        lower_priority();
        mark.apply()
    };
    #[allow(
        unsafe_code,
        reason = "`pre_exec` is unsafe: its closure must be safe to run after a fork"
    )]
    // SAFETY: the supervisor has one thread, so no other thread can have a lock; these are plain
    // system calls that allocate nothing.
    unsafe {
        command.pre_exec(prepare);
    }
    // Applied last, because hooks added after it might not run.
    let pending = sandbox
        .profile
        .apply_in_session(&mut command, sandbox.namespaces)
        .map_err(|error| error.to_string())?;
    let mut child = command.spawn().map_err(|error| explain_spawn_error(&error, request))?;
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or("it has no process id")?;
    match pending.finish_entry() {
        Ok(entered) => Ok((pid, entered)),
        // Without a `PathGuard` to answer its calls, the command would wait forever.
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error.to_string())
        }
    }
}

fn connect_stdio(
    command: &mut Command,
    layout: StdioLayout,
    descriptors: Vec<OwnedFd>,
) -> io::Result<()> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(io::Error::from(io::ErrorKind::InvalidInput));
    if matches!(layout, StdioLayout::Pipe | StdioLayout::ThreePipes) {
        command.stdin(next()?);
    }
    let output = next()?;
    match layout {
        StdioLayout::Pipe => {}
        StdioLayout::NoStdin => {
            command.stdin(Stdio::null());
        }
        StdioLayout::Terminal => {
            command.stdin(output.try_clone()?);
        }
        StdioLayout::ThreePipes => {
            command.stdout(output).stderr(next()?);
            return Ok(());
        }
    }
    // A single pipe for both preserves the order of the output.
    command.stdout(output.try_clone()?).stderr(output);
    Ok(())
}

/// Makes the kernel kill the job first if memory runs out. Allocates nothing.
fn raise_oom_score() {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    // It fails only if `/proc` is missing.
    if let Ok(file) = rustix::fs::open(c"/proc/self/oom_score_adj", flags, Mode::empty()) {
        let _ = rustix::io::write(&file, b"500");
    }
}

/// Lets other programs go first if the processors are busy: the user's, and Windlass itself.
/// Allocates nothing.
fn lower_priority() {
    // Both fail only where the system has no priorities. If the kernel groups processes by session,
    // the priority of the group counts.
    let _ = rustix::process::nice(NICENESS);
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(c"/proc/self/autogroup", flags, Mode::empty()) {
        let _ = rustix::io::write(&file, NICENESS_TEXT);
    }
}

/// Returns the kernel's limits for resources it can count. `RLIMIT_NPROC` counts all processes of a
/// user, so the limit leaves room for processes of other programs; it does not apply to root, for
/// which the supervisor counts.
fn resource_limits(limits: JobLimits) -> Vec<(Resource, Rlimit)> {
    let processes = process_tree::system_thread_count().saturating_add(2 * limits.max_processes);
    [
        (Resource::Fsize, limits.max_file_bytes),
        (Resource::Core, 0),
        (Resource::Nproc, processes as u64),
    ]
    .into_iter()
    .map(|(resource, limit)| {
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| limit.min(maximum));
        (resource, Rlimit { current: Some(limit), maximum: Some(limit) })
    })
    .collect()
}

fn explain_spawn_error(error: &io::Error, request: &SpawnRequest) -> String {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            "the command line is too long for the system. Write it to a file and run the file"
                .to_owned()
        }
        io::ErrorKind::NotFound if request.stdio == StdioLayout::ThreePipes => {
            let program = OsString::from(&request.program);
            format!(
                "{} was not found, or the interpreter in its first line was not",
                program.display()
            )
        }
        io::ErrorKind::NotFound => "the shell was not found".to_owned(),
        _ => error.to_string(),
    }
}
