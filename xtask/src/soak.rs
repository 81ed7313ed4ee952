//! The long tests: the same properties as on every change, tried far more often.

use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// Runs them; their output is their report.
pub(crate) fn run(root: &Path) -> anyhow::Result<Vec<String>> {
    let status = Command::new("cargo")
        .args(["nextest", "run", "--workspace", "--profile", "soak", "-E"])
        .arg("test(interleav) | test(crash) | test(kill) | test(swapped) | test(ever_lost)")
        .env("PROPTEST_CASES", "20000")
        .env("WINDLASS_KILLS", "500")
        .current_dir(root)
        .status()
        .context("cargo nextest could not be started")?;
    Ok(if status.success() { Vec::new() } else { vec!["the soak found something".into()] })
}
