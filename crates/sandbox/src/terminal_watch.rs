//! A process that restores the terminal if Windlass is killed.
//!
//! After `SIGKILL` no code of Windlass runs. A shell outside of it reads from a pipe whether the
//! terminal is in use; when the pipe closes and it was, the shell writes the sequences that Windlass
//! itself writes on exit. A shell rather than Windlass itself, so that `pkill windlass` spares it,
//! and because it takes less memory.
#![allow(
    clippy::disallowed_methods,
    reason = "the sandbox crate is the only one that starts processes"
)]

use std::io::{Error, ErrorKind};
use std::process::{ChildStdin, Command, Stdio};

/// The line settings are restored only if no one did it before: interactive shells do, and then use
/// settings of their own, with `isig`.
const WATCH_SCRIPT: &str = r#"trap '' HUP INT QUIT TERM TSTP TTIN TTOU
last=off
while read -r state; do last=$state; done
[ "$last" = on ] || exit 0
printf '%b' "$1"
exec 3<&1
case $(stty -a <&3) in *-isig*) stty $2 <&3 ;; esac
"#;

/// Starts the process. It writes `sequences` to the terminal and switches on `line_settings`, names
/// that `stty` knows, when the returned pipe closes after the line `on` and no line `off`.
pub fn watch_terminal(sequences: &str, line_settings: &str) -> std::io::Result<ChildStdin> {
    if cfg!(not(unix)) {
        return Err(Error::from(ErrorKind::Unsupported));
    }
    let escaped: String = sequences.bytes().map(|byte| format!("\\0{byte:03o}")).collect();
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut command = Command::new("sh");
    command.args(["-c", WATCH_SCRIPT, "terminal-watch", &escaped, line_settings]);
    command.env_clear().env("PATH", path).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(Stdio::null());
    #[cfg(unix)]
    // With a process group of its own, it survives a signal to the group of Windlass.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // It ends when the pipe closes, after Windlass itself, so it is never reaped here.
    let mut child = command.spawn()?;
    child.stdin.take().ok_or_else(|| Error::from(ErrorKind::BrokenPipe))
}
