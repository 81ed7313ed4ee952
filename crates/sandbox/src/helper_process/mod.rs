//! Runs risky work in a helper process: a second instance of our own binary, for input that can
//! crash a parser, loop or exhaust memory.
//!
//! A parser that panics or never ends does no harm to a session if it runs in its own process. The
//! child gets its input and nothing else: no environment, no file, no terminal. This is no sandbox
//! by itself; the binary limits itself before it reads its input (see `helper_process` in the cli).
//! In any case, the child has ended and is reaped when [`run_helper`] returns.

use crate::Error;
use crate::command::environment::{CommandEnvironmentOptions, GitHookMode, command_environment};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;
use windlass_protocol::mutex_lock::lock;

/// The first argument of a helper process; the second selects its task.
pub const HELPER_ARGUMENT: &str = "helper";

/// Time for a helper process to exit after it has closed its output.
const EXIT_GRACE: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Limits the helper processes that run at the same time, because each may use a gigabyte.
const MAX_RUNNING_HELPERS: usize = 4;

static RUNNING_HELPERS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// The right to run one of `MAX_RUNNING_HELPERS`.
struct HelperSlot;

impl HelperSlot {
    /// Waits until fewer helpers run. Each ends within its time limit.
    fn wait() -> HelperSlot {
        let (running, freed) = &RUNNING_HELPERS;
        let running = freed.wait_while(lock(running), |running| *running >= MAX_RUNNING_HELPERS);
        *running.unwrap_or_else(PoisonError::into_inner) += 1;
        HelperSlot
    }
}

impl Drop for HelperSlot {
    fn drop(&mut self) {
        let (running, freed) = &RUNNING_HELPERS;
        *lock(running) -= 1;
        freed.notify_one();
    }
}

/// Runs the helper task `name` on an input and returns its output, truncated to `max_bytes`
/// bytes. The task must end within `time_limit`. Blocks.
pub fn run_helper(
    name: &str,
    input: Vec<u8>,
    max_bytes: usize,
    time_limit: Duration,
) -> Result<Vec<u8>, Error> {
    // A binary without support for helper tasks would start itself endlessly.
    if std::env::args_os().nth(1).is_some_and(|first| first == HELPER_ARGUMENT) {
        return Err(Error::HelperFailed { source: std::io::ErrorKind::Unsupported.into() });
    }
    let program = own_executable().map_err(|source| Error::HelperFailed { source })?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the sandbox crate is the only one that starts processes"
    )]
    let mut command = Command::new(program);
    command.args([HELPER_ARGUMENT, name]);
    #[cfg(unix)]
    command.current_dir("/");
    let _slot = HelperSlot::wait();
    run_with_input(command, &[], &input, max_bytes, time_limit)
}

/// Returns the first line that a program prints for `--version`. It runs in the root folder without
/// environment variables, so that no folder and no variable influences it. Blocks for a moment.
pub fn program_version(program: &Path) -> Option<String> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the sandbox crate is the only one that starts processes"
    )]
    let mut command = Command::new(program);
    command.arg("--version");
    #[cfg(unix)]
    command.current_dir("/");
    let output = run_with_input(command, &[], &[], 4 << 10, 2 * EXIT_GRACE).ok()?;
    let line = String::from_utf8_lossy(&output).lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// Returns what `git status --porcelain` prints for a folder, at most `max_bytes` of it, or `None` if
/// it takes longer than `time_limit`. Git runs with the variables of a command, so that it starts no
/// program that the repository names. Blocks.
pub fn git_status(
    folder: &Path,
    home: &Path,
    max_bytes: usize,
    time_limit: Duration,
) -> Option<Vec<u8>> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the sandbox crate is the only one that starts processes"
    )]
    let mut command = Command::new("git");
    command.args(["status", "--porcelain"]).current_dir(folder);
    let options = CommandEnvironmentOptions { has_terminal: false, git_hooks: GitHookMode::Skip };
    let mut variables = command_environment([("HOME".into(), home.into())], &options);
    variables.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
    run_with_input(command, &variables, &[], max_bytes, time_limit).ok()
}

/// Returns the path of the running binary, even if an update has replaced it: a replaced binary has
/// no path any more, but `/proc/self/exe` leads to it.
#[cfg(target_os = "linux")]
fn own_executable() -> std::io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn own_executable() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// A child process that is killed and reaped on drop.
struct HelperChild(Child);

impl HelperChild {
    /// Returns the exit status if the child ends within `EXIT_GRACE`.
    fn wait_briefly(&mut self) -> Option<ExitStatus> {
        for _ in 0..EXIT_GRACE.as_millis() / POLL_INTERVAL.as_millis() {
            match self.0.try_wait() {
                Ok(None) => thread::sleep(POLL_INTERVAL),
                Ok(Some(status)) => return Some(status),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for HelperChild {
    fn drop(&mut self) {
        // `kill` and `wait` fail only if the child has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes the input of a program and reads its output concurrently, so that neither blocks the
/// other.
fn run_with_input(
    mut command: Command,
    variables: &[(OsString, OsString)],
    input: &[u8],
    max_bytes: usize,
    time_limit: Duration,
) -> Result<Vec<u8>, Error> {
    command.env_clear().envs(variables.iter().cloned());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let helper_error = |source| Error::HelperFailed { source };
    let mut child = HelperChild(command.spawn().map_err(helper_error)?);
    let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // Moved into the scope, so that it is dropped before the scope joins its threads.
        let mut child = child;
        let write_input = move || {
            // A child that ends early does not read the rest; its exit status gives the reason.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        };
        let read_output = move || {
            let mut output = Vec::new();
            let result = stdout.map(|out| out.take(max_bytes as u64).read_to_end(&mut output));
            let _ = sender.send(result.transpose().map(|_| output));
        };
        thread::Builder::new().spawn_scoped(scope, write_input).map_err(helper_error)?;
        thread::Builder::new().spawn_scoped(scope, read_output).map_err(helper_error)?;
        let timeout_error = Error::HelperTimeout { seconds: time_limit.as_secs() };
        let Ok(output) = receiver.recv_timeout(time_limit) else { return Err(timeout_error) };
        let output = output.map_err(helper_error)?;
        if output.len() >= max_bytes {
            return Ok(output);
        }
        let Some(status) = child.wait_briefly() else { return Err(timeout_error) };
        match status.code() {
            Some(0) => Ok(output),
            Some(1) => Err(Error::HelperRejected {
                message: String::from_utf8_lossy(&output).trim().to_owned(),
            }),
            Some(_) | None => Err(Error::HelperCrashed),
        }
    })
}

#[cfg(test)]
mod tests;
