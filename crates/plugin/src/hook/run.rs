//! Runs a command hook once: writes the payload to its stdin and reads its stdout, with limits on
//! output and time.

use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use windlass_sandbox::{ProcessExit, ProcessSpec, ProcessStdin, ProcessStdout};
use windlass_toolkit::{HookError, ProcessLauncher};

/// Bounds the output of a hook in bytes.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Starts a command, sends the payload and returns its output if it exits with code 0.
pub(super) async fn run_hook(
    launcher: &ProcessLauncher,
    process: ProcessSpec,
    payload: &Value,
    time_limit: Duration,
) -> Result<String, HookError> {
    let exchange = async {
        let process_io = launcher.launch(process).await;
        let process_io = process_io.map_err(|failure| HookError::failed(failure.text))?;
        let (input, output, handle) = process_io.split();
        let wait_for_end = async {
            let report = handle.wait_for_exit().await;
            // Processes left behind keep stdout open; end them, their output does not count.
            handle.terminate(Duration::ZERO).await;
            Ok(report)
        };
        let send_payload = async {
            write_payload(input, payload).await;
            Ok(())
        };
        let ((), stdout, report) =
            tokio::try_join!(send_payload, read_output(output), wait_for_end)?;
        match report.exit {
            ProcessExit::Code(0) => String::from_utf8(stdout)
                .map_err(|_| HookError::failed("its output is not UTF-8 text")),
            ProcessExit::Code(2) => Err(HookError::denied(match handle.stderr_tail() {
                stderr if stderr.is_empty() => "no reason given".to_owned(),
                stderr => stderr,
            })),
            ProcessExit::Code(_)
            | ProcessExit::Signal(_)
            | ProcessExit::TooManyProcesses(_)
            | ProcessExit::OutOfMemory
            | ProcessExit::DiskFull
            | ProcessExit::SupervisorLost => {
                let summary = handle.exit_summary().unwrap_or_else(|| "it was stopped".to_owned());
                Err(HookError::failed(summary))
            }
        }
    };
    match timeout(time_limit, exchange).await {
        Ok(result) => result,
        Err(_) => {
            let ms = time_limit.as_millis();
            Err(HookError::failed(format!("it did not answer within {ms} ms")))
        }
    }
}

/// Writes the payload to stdin. Errors are ignored: a command that does not read has exited or soon
/// will.
async fn write_payload(mut input: ProcessStdin, payload: &Value) {
    let line = format!("{payload}\n");
    let _ = input.write_all(line.as_bytes()).await;
}

/// Reads the output to its end; fails if it exceeds `MAX_OUTPUT_BYTES`.
async fn read_output(output: ProcessStdout) -> Result<Vec<u8>, HookError> {
    let mut stdout = Vec::new();
    let max_bytes = MAX_OUTPUT_BYTES as u64 + 1;
    let result = output.take(max_bytes).read_to_end(&mut stdout).await;
    result.map_err(|error| HookError::failed(format!("could not read its output: {error}")))?;
    if stdout.len() > MAX_OUTPUT_BYTES {
        let max_kib = MAX_OUTPUT_BYTES >> 10;
        return Err(HookError::failed(format!("it wrote more than {max_kib} KiB")));
    }
    Ok(stdout)
}
