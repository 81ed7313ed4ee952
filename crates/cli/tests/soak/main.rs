//! A long day: sessions at work in one process, which must not grow by it.
//!
//! This program plays three parts, told apart by its first argument. As a test it is the model, and
//! looks on. As `soak` it embeds the engine, in a process of its own, so that what is measured is
//! the engine's alone. On an errand it is the keeper of commands. Start reading at [`day::live`].
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod chance;
mod day;
mod gauge;
mod seat;
mod words;
mod yard;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use windlass_testkit::{Model, Script};

const NAME: &str = "sessions_at_work_do_not_grow";

/// What makes this program the one that embeds the engine.
const SOAK: &str = "soak";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["errand", ..] => windlass_sandbox::keeper().unwrap(),
        [SOAK, url, folder] => day::live(url, Path::new(folder)),
        words => test(words),
    }
    ExitCode::SUCCESS
}

/// As much of the usual test program as its callers need.
fn test(words: &[&str]) {
    if words.contains(&"--list") {
        if !words.contains(&"--ignored") {
            println!("{NAME}: test");
        }
        return;
    }
    let mut wanted = words.iter().filter(|word| !word.starts_with("--")).peekable();
    if wanted.peek().is_none() || wanted.any(|word| NAME.contains(word)) {
        look_on();
    }
}

/// Plays the model, and holds what is left behind against nothing.
fn look_on() {
    let folder = tempfile::tempdir().unwrap();
    let temp = folder.path().join("temp");
    std::fs::create_dir(&temp).unwrap();
    let model = Model::start(Script::endless(words::reply()));
    let status = Command::new(std::env::current_exe().unwrap())
        .args([SOAK, &model.url()])
        .arg(folder.path())
        .env("TMPDIR", &temp)
        .status();
    assert!(status.unwrap().success(), "the soak found something");
    let began = Instant::now();
    while let left @ 1.. = std::fs::read_dir(&temp).unwrap().count() {
        assert!(began.elapsed() < Duration::from_secs(20), "{left} temporary folders are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}
