//! Tests of helpers that answer, fail, crash, hang, flood and do not read their input.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files and run programs directly")]

use super::*;
use std::time::Instant;

const HELPER_TIMEOUT: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn run_script(
    script: &str,
    input: &[u8],
    max_bytes: usize,
    time_limit: Duration,
) -> Result<String, String> {
    let output = run_with_input(shell(script), &[], input, max_bytes, time_limit);
    output.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn input_is_delivered_completely_and_output_returned() {
    let large = vec![b'x'; 1 << 20];
    let back =
        run_with_input(shell("exec /bin/cat"), &[], &large, 2 << 20, HELPER_TIMEOUT).unwrap();
    assert!(back == large, "{} bytes came back", back.len());
    assert_eq!(run_script("/bin/cat; echo end", b"", 100, HELPER_TIMEOUT).unwrap(), "end\n");
}

#[test]
fn a_helper_has_no_environment() {
    let mut command = Command::new("/usr/bin/env");
    command.env("WINDLASS_TEST_KEY", "sk-secret");
    assert_eq!(run_with_input(command, &[], b"", 1000, HELPER_TIMEOUT).unwrap(), b"");
}

#[test]
fn the_output_of_a_failed_helper_is_the_error() {
    let error = run_script("echo 'it is not a PDF'; exit 1", b"", 100, HELPER_TIMEOUT).unwrap_err();
    assert_eq!(error, "it is not a PDF");
}

#[test]
fn a_crash_is_explained() {
    for script in ["kill -SEGV $$", "kill -KILL $$", "exit 101", "echo half; kill -ABRT $$"] {
        let error = run_script(script, b"input", 100, HELPER_TIMEOUT).unwrap_err();
        assert!(error.contains("damaged"), "{script}: {error}");
    }
}

#[test]
fn a_helper_that_hangs_is_killed_and_reaped() {
    let time_limit = Duration::from_millis(300);
    for script in [
        "exec /bin/sleep 60",
        "exec /bin/sleep 60 >&-",
        "echo half; exec /bin/sleep 60",
        "trap '' TERM INT HUP; while :; do :; done",
    ] {
        let start = Instant::now();
        // More input than a pipe holds, which the helper does not read.
        let error = run_script(script, &vec![0; 1 << 20], 100, time_limit).unwrap_err();
        assert!(error.contains("timed out"), "{script}: {error}");
        assert!(
            start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(10)),
            "{script}"
        );
    }
}

#[test]
fn nothing_is_left_of_a_killed_helper() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let script = format!("echo $$ > {}; exec /bin/sleep 60", file.display());
    run_script(&script, b"", 100, Duration::from_millis(500)).unwrap_err();
    let id = std::fs::read_to_string(file).unwrap();
    let alive = Command::new("/bin/sh").args(["-c", &format!("kill -0 {id}")]).output().unwrap();
    assert!(!alive.status.success(), "the process or a zombie of it still exists");
}

#[test]
fn a_flood_of_output_is_cut() {
    let start = Instant::now();
    let text = run_script("while :; do echo flood; done", b"", 1000, HELPER_TIMEOUT).unwrap();
    assert_eq!(text.len(), 1000);
    assert!(start.elapsed() < windlass_testkit::time_limits::limit(HELPER_TIMEOUT));
}

#[test]
fn a_helper_that_does_not_read_its_input_may_answer() {
    let large = vec![0; 1 << 20];
    assert_eq!(run_script("exec <&-; echo done", &large, 100, HELPER_TIMEOUT).unwrap(), "done\n");
}

#[test]
fn a_helper_that_cannot_be_started_is_an_error() {
    let error =
        run_with_input(Command::new("/nowhere/at/all"), &[], b"", 10, HELPER_TIMEOUT).unwrap_err();
    assert!(matches!(error, Error::HelperFailed { .. }), "{error}");
}
