//! The screenshots of the book, rendered from real runs of the binary.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

const IMAGES_FOLDER: &str = "docs/book/src/images";
/// Keeps the repository and the book small.
const MAX_IMAGE_BYTES: u64 = 60_000;

/// Renders all screenshots again, with the font of `fonts-dejavu-core`.
pub(crate) fn render_screenshots(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join(IMAGES_FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {IMAGES_FOLDER}"))?;
    let status = Command::new("cargo")
        .args(["test", "-p", "windlass-cli", "--test", "terminal", "--locked", "--"])
        .args(["--ignored", "shots_of", "--test-threads=2"])
        .env("WINDLASS_SHOTS", &folder)
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "some screenshots could not be rendered");
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.metadata()?.len() > MAX_IMAGE_BYTES {
            faults
                .push(format!("{} is larger than {MAX_IMAGE_BYTES} bytes", entry.path().display()));
        }
    }
    Ok(faults)
}
