//! One run of a formatter: text in, text out, within its limits.
//!
//! The formatter can neither change the project nor reach the network, and it has exited when `run`
//! returns. It is killed if the caller stops waiting.

use std::ffi::OsString;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_sandbox::{
    HostAllowlist, ProcessExit, ProcessSandboxAccess, ProcessSpec, WorkspaceAccess,
};
use windlass_toolkit::ProcessLauncher;

/// Output bytes allowed beyond twice the size of the input.
const EXTRA_OUTPUT_BYTES: usize = 64 << 10;

/// Limits on the `stderr` excerpt: lines, and characters per line.
const MAX_STDERR_LINES: usize = 3;
const MAX_STDERR_LINE_CHARS: usize = 300;

/// A formatter process to start, with its timeout.
pub(super) struct FormatterRunSpec<'a> {
    pub(super) launcher: &'a ProcessLauncher,
    pub(super) process: ProcessSpec,
    pub(super) timeout: Duration,
}

/// Failure of a formatter run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormatterError {
    /// The formatter probably rejected its input.
    Rejected(String),
    /// The formatter did what no formatter does, such as timing out or writing binary data.
    Misbehaved(String),
    NotStarted(String),
}

/// Builds the `ProcessSpec` of a formatter: read access to the project, and nothing else.
pub(super) fn formatter_process(
    name: &str,
    program: std::path::PathBuf,
    folder: std::path::PathBuf,
) -> ProcessSpec {
    ProcessSpec {
        name: format!("format/{name}"),
        program,
        arguments: Vec::new(),
        folder,
        env: Vec::<(OsString, OsString)>::new(),
        sandbox_access: ProcessSandboxAccess {
            workspace: WorkspaceAccess::Read,
            writable_folders: Vec::new(),
            hosts: HostAllowlist::none(),
            sandbox_mode: None,
        },
    }
}

impl FormatterRunSpec<'_> {
    /// Formats a text.
    pub(super) async fn run(self, input: &str) -> Result<String, FormatterError> {
        let FormatterRunSpec { launcher, process, timeout } = self;
        let process_io = launcher.launch(process).await;
        let process_io = process_io.map_err(|failure| FormatterError::NotStarted(failure.text))?;
        let (mut stdin, output, handle) = process_io.split();
        let max_bytes = input.len().saturating_mul(2).saturating_add(EXTRA_OUTPUT_BYTES);
        let exchange = async {
            let write = async {
                // A formatter that does not read all of its input has its reasons; its exit code
                // reports them.
                let _ = stdin.write_all(input.as_bytes()).await;
                let _ = stdin.shutdown().await;
                drop(stdin);
            };
            let mut formatted = Vec::new();
            let mut output = output.take(max_bytes as u64 + 1);
            let ((), read) = tokio::join!(write, output.read_to_end(&mut formatted));
            // A formatter that exceeds the output limit is not waited for.
            let is_within_limit = read.is_ok_and(|read| read <= max_bytes);
            let exit = if is_within_limit { Some(handle.wait_for_exit().await.exit) } else { None };
            exit.map(|exit| (exit, formatted))
        };
        let result = tokio::time::timeout(timeout, exchange).await;
        if !matches!(result, Ok(Some(_))) {
            handle.terminate(Duration::ZERO).await;
        }
        let (exit, formatted) = match result {
            Ok(Some(finished)) => finished,
            Ok(None) => {
                return Err(FormatterError::Misbehaved("wrote far more than it read".to_owned()));
            }
            Err(_) => {
                let limit = timeout.as_secs_f64();
                return Err(FormatterError::Misbehaved(format!("took longer than {limit} s")));
            }
        };
        match exit {
            ProcessExit::Code(0) => check_output(formatted, input),
            // Exit codes of shells and `env` for a missing program.
            ProcessExit::Code(code @ (126 | 127)) => {
                let reason = summarize_stderr(&handle.stderr_tail(), code);
                Err(FormatterError::Misbehaved(format!("could not be run ({reason})")))
            }
            ProcessExit::Code(code) => {
                Err(FormatterError::Rejected(summarize_stderr(&handle.stderr_tail(), code)))
            }
            ProcessExit::Signal(_)
            | ProcessExit::TooManyProcesses(_)
            | ProcessExit::OutOfMemory
            | ProcessExit::DiskFull
            | ProcessExit::SupervisorLost => {
                Err(FormatterError::Misbehaved("was killed before it finished".to_owned()))
            }
        }
    }
}

/// Returns the output if it can be the content of a file.
fn check_output(output: Vec<u8>, input: &str) -> Result<String, FormatterError> {
    if output.is_empty() && !input.trim().is_empty() {
        return Err(FormatterError::Rejected("it returned no output".to_owned()));
    }
    let text = String::from_utf8(output).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| FormatterError::Misbehaved("wrote output that is not text".to_owned()))
}

/// Returns the first lines of `stderr`, or the exit code.
fn summarize_stderr(stderr: &str, code: i32) -> String {
    let lines = stderr.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    let lines: Vec<String> = lines
        .take(MAX_STDERR_LINES)
        .map(|line| line.chars().take(MAX_STDERR_LINE_CHARS).collect())
        .collect();
    if lines.is_empty() { format!("it exited with code {code}") } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_must_be_text_and_may_be_empty_only_for_blank_input() {
        assert_eq!(check_output(Vec::new(), " \n"), Ok(String::new()));
        assert!(matches!(check_output(Vec::new(), "a"), Err(FormatterError::Rejected(_))));
        assert!(matches!(check_output(vec![0xff, b'a'], "a"), Err(FormatterError::Misbehaved(_))));
        assert!(matches!(check_output(b"a\0b".to_vec(), "a"), Err(FormatterError::Misbehaved(_))));
        assert_eq!(check_output("ä\n".into(), "a"), Ok("ä\n".to_owned()));
    }

    #[test]
    fn the_stderr_summary_is_short() {
        let long = format!("\n\n{}\n  b\nc\nd\n", "ä".repeat(1_000));
        let summary = summarize_stderr(&long, 1);
        assert_eq!(summary.lines().count(), 3, "{summary}");
        assert!(summary.chars().count() < 310 && summary.ends_with("\n  b\nc"), "{summary}");
        assert_eq!(summarize_stderr(" \n", 7), "it exited with code 7");
    }
}
