//! The book's pictures of the screen, drawn from real runs of the binary.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Where they are, and how large one may be.
const FOLDER: &str = "docs/book/src/images";
const LARGEST: u64 = 60_000;

/// Draws them anew; `fonts-dejavu-core` has the letters.
pub(crate) fn draw(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("{FOLDER} cannot be made"))?;
    let status = Command::new("cargo")
        .args(["test", "-p", "windlass-cli", "--test", "terminal", "--locked", "--"])
        .args(["--ignored", "shots_of", "--test-threads=2"])
        .env("WINDLASS_SHOTS", &folder)
        .current_dir(root)
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "not every picture could be drawn");
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.metadata()?.len() > LARGEST {
            faults.push(format!("{} is larger than {LARGEST} bytes", entry.path().display()));
        }
    }
    Ok(faults)
}
