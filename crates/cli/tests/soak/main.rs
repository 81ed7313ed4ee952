//! A soak test: sessions at work for a long time in one process, which must not leak resources.
//!
//! This program has three roles, which its first argument selects. As a test it is the scripted
//! model and starts the second role. As `soak` it runs the engine in its own process, so that only
//! the engine is measured. As `helper` it is the supervisor of commands. Start reading at
//! [`soak_phases::run`].
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod random;
mod resource_usage;
mod scripted_model;
mod simulated_user;
mod soak_phases;
mod support;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use windlass_testkit::{ModelScript, ScriptedModel};

const NAME: &str = "sessions_at_work_do_not_leak_resources";

/// The argument for the role that runs the engine.
const SOAK: &str = "soak";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["helper", ..] => windlass_sandbox::run_supervisor().unwrap(),
        [SOAK, url, folder] => soak_phases::run(url, Path::new(folder)),
        words => run_as_test(words),
    }
    ExitCode::SUCCESS
}

/// Implements the arguments of a test program that nextest uses.
fn run_as_test(words: &[&str]) {
    if words.contains(&"--list") {
        if !words.contains(&"--ignored") {
            println!("{NAME}: test");
        }
        return;
    }
    let mut wanted = words.iter().filter(|word| !word.starts_with("--")).peekable();
    if wanted.peek().is_none() || wanted.any(|word| NAME.contains(word)) {
        run_soak();
    }
}

/// Serves the model, runs the engine in a child process, and checks that no temporary folder is
/// left.
fn run_soak() {
    let folder = tempfile::tempdir().unwrap();
    let temp = folder.path().join("temp");
    std::fs::create_dir(&temp).unwrap();
    let model = ScriptedModel::start(ModelScript::endless(scripted_model::scripted_model()));
    let status = Command::new(std::env::current_exe().unwrap())
        .args([SOAK, &model.url()])
        .arg(folder.path())
        .env("TMPDIR", &temp)
        .status();
    assert!(status.unwrap().success(), "the soak test failed");
    let start = Instant::now();
    while let left @ 1.. = std::fs::read_dir(&temp).unwrap().count() {
        assert!(start.elapsed() < Duration::from_secs(20), "{left} temporary folders are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}
