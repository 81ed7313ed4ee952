//! An errand: work that bad input can crash, loop or bloat, done by our own binary once more.
//!
//! A parser that panics or never ends is no danger to a session if it does so in a process of its
//! own. The child gets its input and nothing else: no environment, no file, no terminal. It is not
//! a sandbox by itself; the binary limits itself before it looks at its input (see `errand` in the
//! cli). Whatever happens here, the child has ended and is reaped when [`errand`] returns.

use crate::Error;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The first argument of a process on an errand; the second says which.
pub const ERRAND: &str = "errand";

/// How long one that has said everything may take to end.
const GRACE: Duration = Duration::from_secs(1);
const BLINK: Duration = Duration::from_millis(5);

/// Runs the errand of this name over an input, and returns what it says, up to so many bytes; the
/// rest is cut. It has until the end of the patience. Blocks.
pub fn errand(
    name: &str,
    input: Vec<u8>,
    longest: usize,
    patience: Duration,
) -> Result<Vec<u8>, Error> {
    // A program that is not ours and does not know errands would start itself without end.
    if std::env::args_os().nth(1).is_some_and(|first| first == ERRAND) {
        return Err(Error::NoErrand { source: std::io::ErrorKind::Unsupported.into() });
    }
    let program = program().map_err(|source| Error::NoErrand { source })?;
    #[allow(clippy::disallowed_methods, reason = "processes are started in this crate only")]
    let mut command = Command::new(program);
    command.args([ERRAND, name]);
    #[cfg(unix)]
    command.current_dir("/");
    converse(command, &input, longest, patience)
}

/// The first line of what a program says about its version. It is started in the root folder with
/// nothing but its name, so that no folder and no variable has a say in it. Blocks for a moment.
pub fn version(program: &Path) -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "processes are started in this crate only")]
    let mut command = Command::new(program);
    command.arg("--version");
    #[cfg(unix)]
    command.current_dir("/");
    let said = converse(command, &[], 4 << 10, 2 * GRACE).ok()?;
    let line = String::from_utf8_lossy(&said).lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// What runs now, also where an update has put something else in its place since: a binary that was
/// replaced has no path any more, but this leads to it.
#[cfg(target_os = "linux")]
fn program() -> std::io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// A child that does not outlive its owner.
struct Ward(Child);

impl Ward {
    /// How it ended, if it does soon.
    fn end(&mut self) -> Option<ExitStatus> {
        for _ in 0..GRACE.as_millis() / BLINK.as_millis() {
            match self.0.try_wait() {
                Ok(None) => thread::sleep(BLINK),
                Ok(Some(status)) => return Some(status),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Gives a program its input and takes its output, both at once, so that neither waits for the
/// other.
fn converse(
    mut command: Command,
    input: &[u8],
    longest: usize,
    patience: Duration,
) -> Result<Vec<u8>, Error> {
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let failed = |source| Error::NoErrand { source };
    let mut ward = Ward(command.spawn().map_err(failed)?);
    let (stdin, stdout) = (ward.0.stdin.take(), ward.0.stdout.take());
    let (heard, hear) = mpsc::channel();
    thread::scope(|scope| {
        // Moved in here, so that it is gone before its threads are waited for.
        let mut ward = ward;
        let give = move || {
            // Whoever ends early does not read on; its exit says why.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        };
        let take = move || {
            let mut output = Vec::new();
            let read = stdout.map(|out| out.take(longest as u64).read_to_end(&mut output));
            let _ = heard.send(read.transpose().map(|_| output));
        };
        thread::Builder::new().spawn_scoped(scope, give).map_err(failed)?;
        thread::Builder::new().spawn_scoped(scope, take).map_err(failed)?;
        let slow = Error::Slow { seconds: patience.as_secs() };
        let Ok(output) = hear.recv_timeout(patience) else { return Err(slow) };
        let output = output.map_err(failed)?;
        if output.len() >= longest {
            return Ok(output);
        }
        let Some(status) = ward.end() else { return Err(slow) };
        match status.code() {
            Some(0) => Ok(output),
            Some(1) => {
                Err(Error::Refused { words: String::from_utf8_lossy(&output).trim().to_owned() })
            }
            Some(_) | None => Err(Error::Broke),
        }
    })
}

#[cfg(test)]
mod tests;
