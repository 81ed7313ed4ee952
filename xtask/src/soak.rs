//! Long tests: the tests of every change, repeated far more often, and tests of speed.

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Test runs: a description, and the nextest filter of the tests.
const TEST_RUNS: &[(&str, &str)] = &[
    (
        "interleaved and killed sessions, which lose nothing",
        "test(interleav) | test(crash) | test(kill) | test(swapped) | test(ever_lost)",
    ),
    ("a full or failing disk, at every write", "test(a_disk_that) | test(full_or_failing_disk)"),
    (
        "1,000,000 command lines, parsed like bash does",
        "package(windlass-permission) & test(unambiguous_words_are_what_bash_passes)",
    ),
    (
        "paths that change while they are checked",
        "package(windlass-sandbox) & test(a_path_changed_during_the_check)",
    ),
    (
        "processes that a command leaves behind",
        "test(nothing_outlives_a_session_that_is_killed) | (package(windlass-sandbox) & binary(jobs))",
    ),
    (
        "half an hour of sessions in one process, without growing memory",
        "package(windlass-cli) & binary(soak)",
    ),
    (
        "clients of a server that is cut off and killed, and half an hour of fifty sessions in it",
        "package(windlass-cli) & binary(server) & !test(speed)",
    ),
];

/// Tests that measure time or assert time limits.
const TIMED_RUN: (&str, &str) = (
    "time limits, with nothing else running",
    "((binary(terminal) | binary(server)) & test(speed)) | binary(servers) | package(windlass-plugin) \
     | (package(windlass-sandbox) & binary(jobs)) | (package(windlass-engine) & kind(test)) \
     | (package(windlass-tools) & (binary(web) | binary(formatters)))",
);

/// Real plugins and skills of other authors. They need a package registry, so they are ignored.
const PACKAGE_RUN: (&str, &str) =
    ("real plugins and skills from npm and PyPI", "package(windlass-cli) & binary(real_packages)");

/// Nodes that are killed for five minutes. They need PostgreSQL, so they are ignored.
const FLEET_RUN: (&str, &str) = (
    "a fleet whose nodes and databases are killed, connections to its database that are cut at every \
     byte, and a thousand sessions at work",
    "(package(windlass-cli) & binary(fleet)) | (package(windlass-storage) & binary(postgres))",
);

/// The benchmark that compares edits with a bare language client. It needs the servers that
/// `.ci/run` installs (`WINDLASS_LANGUAGE_SERVERS`).
const EDIT_BENCHMARK: &str = "edits with language servers, compared with a bare client";

/// Environment variables that set how often tests repeat.
const REPEAT_VARIABLES: &[(&str, &str)] = &[
    ("PROPTEST_CASES", "20000"),
    ("WINDLASS_KILLS", "500"),
    ("WINDLASS_SOAK", "1"),
    ("WINDLASS_SOAK_MINUTES", "30"),
    ("WINDLASS_DIFFERENTIAL", "1000000"),
    ("WINDLASS_RACES", "10000000"),
];

/// Runs `TEST_RUNS` and the benchmark one after the other. Prints the result of each, and the output of its tests.
pub(crate) fn run(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let next_release = build_next_release(root)?;
    for (description, filter) in TEST_RUNS.iter().chain([&TIMED_RUN, &FLEET_RUN, &PACKAGE_RUN]) {
        let arguments: &[&str] = match [TIMED_RUN.1, FLEET_RUN.1, PACKAGE_RUN.1].contains(filter) {
            true => &["--run-ignored", "all"],
            false => &[],
        };
        let mut command = Command::new("cargo");
        command
            .args(["nextest", "run", "--workspace", "--profile", "soak", "--no-fail-fast"])
            // The time limits of the soak are strict, so nothing else runs.
            .args(["--test-threads", "1"])
            .args(["--success-output", "immediate", "-E", filter])
            .args(arguments)
            .envs(REPEAT_VARIABLES.iter().copied())
            .env("WINDLASS_NEXT_RELEASE", &next_release);
        faults.extend(run_command(root, description, &mut command)?);
    }
    if std::env::var_os("WINDLASS_LANGUAGE_SERVERS").is_some() {
        let mut command = Command::new("cargo");
        command.args(["bench", "--workspace", "--bench", "edit", "--", "--check"]);
        faults.extend(run_command(root, EDIT_BENCHMARK, &mut command)?);
    } else {
        println!("soak: {EDIT_BENCHMARK}: skipped, WINDLASS_LANGUAGE_SERVERS is not set");
    }
    Ok(faults)
}

/// Builds this release with the next format of facts, for the test of nodes of two releases.
fn build_next_release(root: &Path) -> anyhow::Result<PathBuf> {
    const FORMAT: &str = "FACT_FORMAT_VERSION: i64 = ";
    let folder = root.join("target/next-release");
    let source = folder.join("source");
    if source.exists() {
        std::fs::remove_dir_all(&source)?;
    }
    let run = |command: &mut Command| -> anyhow::Result<()> {
        anyhow::ensure!(command.status()?.success(), "{command:?} has failed");
        Ok(())
    };
    run(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(root).arg(&source))?;
    let file = source.join("crates/storage/src/fact_rows.rs");
    let text = std::fs::read_to_string(&file)?;
    let (before, after) = text.split_once(FORMAT).context("the format of facts is not found")?;
    let (number, after) = after.split_once(';').context("the format of facts is not found")?;
    let next = number.parse::<i64>()? + 1;
    std::fs::write(&file, format!("{before}{FORMAT}{next};{after}"))?;
    println!("soak: building the next release");
    let mut build = Command::new("cargo");
    build.args(["build", "--package", "windlass-cli"]).current_dir(&source);
    run(build.env("CARGO_TARGET_DIR", folder.join("target")))?;
    Ok(folder.join("target/debug/windlass"))
}

fn run_command(
    root: &Path,
    description: &str,
    command: &mut Command,
) -> anyhow::Result<Option<String>> {
    println!("soak: {description}");
    let status = command.current_dir(root).status().context("cannot start cargo")?;
    let result = if status.success() { "passed" } else { "FAILED" };
    println!("soak: {description}: {result}");
    Ok((!status.success()).then(|| format!("soak failed: {description}")))
}
