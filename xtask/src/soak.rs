//! The long tests: the same properties as on every change, tried far more often.

use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// What is tried, and which tests try it.
const TRIALS: &[(&str, &str)] = &[
    (
        "sessions that are interleaved, killed and lose nothing",
        "test(interleav) | test(crash) | test(kill) | test(swapped) | test(ever_lost)",
    ),
    (
        "a disk that is full or fails, at any write",
        "test(a_disk_that) | test(full_or_failing_disk)",
    ),
    (
        "1,000,000 command lines, each as bash itself passes it",
        "package(windlass-permission) & test(what_is_plain_is_what_bash_passes)",
    ),
    (
        "processes that a command leaves behind",
        "test(nothing_outlives_a_session_that_is_killed) | (package(windlass-sandbox) & binary(jobs))",
    ),
    (
        "half an hour of sessions at work in one process, which does not grow by it",
        "package(windlass-cli) & binary(soak)",
    ),
];

/// How often things are tried, by what the tests read.
const COUNTS: &[(&str, &str)] = &[
    ("PROPTEST_CASES", "20000"),
    ("WINDLASS_KILLS", "500"),
    ("WINDLASS_SOAK", "1"),
    ("WINDLASS_SOAK_MINUTES", "30"),
    ("WINDLASS_DIFFERENTIAL", "1000000"),
];

/// Runs them, one trial after the other, and says what each gave. What a test prints is part of it.
pub(crate) fn run(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (what, tests) in TRIALS {
        println!("soak: {what}");
        let status = Command::new("cargo")
            .args(["nextest", "run", "--workspace", "--profile", "soak"])
            .args(["--success-output", "immediate", "-E", tests])
            .envs(COUNTS.iter().copied())
            .current_dir(root)
            .status()
            .context("cargo nextest could not be started")?;
        let gave = if status.success() { "held" } else { "FOUND SOMETHING" };
        println!("soak: {what}: {gave}");
        if !status.success() {
            faults.push(format!("the soak found something in: {what}"));
        }
    }
    Ok(faults)
}
