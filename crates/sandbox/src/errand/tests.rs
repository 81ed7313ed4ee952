//! Errands that answer, refuse, crash, hang, flood and do not listen.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test arranges the world from outside")]

use super::*;
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn said(script: &str, input: &[u8], longest: usize, patience: Duration) -> Result<String, String> {
    let output = converse(shell(script), input, longest, patience);
    output.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn it_gets_its_input_to_the_end_and_its_output_comes_back() {
    let large = vec![b'x'; 1 << 20];
    let back = converse(shell("exec /bin/cat"), &large, 2 << 20, PATIENCE).unwrap();
    assert!(back == large, "{} bytes came back", back.len());
    assert_eq!(said("/bin/cat; echo end", b"", 100, PATIENCE).unwrap(), "end\n");
}

#[test]
fn it_has_no_environment() {
    let mut command = Command::new("/usr/bin/env");
    command.env("WINDLASS_TEST_KEY", "sk-secret");
    assert_eq!(converse(command, b"", 1000, PATIENCE).unwrap(), b"");
}

#[test]
fn it_says_itself_why_it_refuses() {
    let words = said("echo 'it is not a PDF'; exit 1", b"", 100, PATIENCE).unwrap_err();
    assert_eq!(words, "it is not a PDF");
}

#[test]
fn a_crash_is_told_in_words() {
    for script in ["kill -SEGV $$", "kill -KILL $$", "exit 101", "echo half; kill -ABRT $$"] {
        let words = said(script, b"input", 100, PATIENCE).unwrap_err();
        assert!(words.contains("damaged"), "{script}: {words}");
    }
}

#[test]
fn one_that_hangs_is_killed_and_reaped() {
    let soon = Duration::from_millis(300);
    for script in [
        "exec /bin/sleep 60",
        "exec /bin/sleep 60 >&-",
        "echo half; exec /bin/sleep 60",
        "trap '' TERM INT HUP; while :; do :; done",
    ] {
        let start = Instant::now();
        // More than a pipe holds, which nobody reads.
        let words = said(script, &vec![0; 1 << 20], 100, soon).unwrap_err();
        assert!(words.contains("stopped"), "{script}: {words}");
        assert!(start.elapsed() < Duration::from_secs(10), "{script}");
    }
}

#[test]
fn nothing_is_left_of_one_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let script = format!("echo $$ > {}; exec /bin/sleep 60", file.display());
    said(&script, b"", 100, Duration::from_millis(500)).unwrap_err();
    let id = std::fs::read_to_string(file).unwrap();
    let alive = Command::new("/bin/sh").args(["-c", &format!("kill -0 {id}")]).output().unwrap();
    assert!(!alive.status.success(), "neither a process nor a zombie");
}

#[test]
fn a_flood_is_cut() {
    let start = Instant::now();
    let text = said("while :; do echo flood; done", b"", 1000, PATIENCE).unwrap();
    assert_eq!(text.len(), 1000);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn one_that_does_not_listen_may_answer() {
    let large = vec![0; 1 << 20];
    assert_eq!(said("exec <&-; echo done", &large, 100, PATIENCE).unwrap(), "done\n");
}

#[test]
fn what_cannot_be_started_says_so() {
    let error = converse(Command::new("/nowhere/at/all"), b"", 10, PATIENCE).unwrap_err();
    assert!(matches!(error, Error::NoErrand { .. }), "{error}");
}
