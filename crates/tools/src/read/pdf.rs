//! The text of a PDF, for models that take none.
//!
//! The parser panics, recurses and loops on bad files, so it runs as an errand: see
//! `windlass_sandbox::errand`, and `errand` in the cli for the limits it has there.

use std::time::Duration;

/// The most text that is taken from one PDF, in bytes.
const LONGEST: usize = 8 << 20;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The text of a PDF: plain, a line such as `--- page 2 ---` before each page if there are more
/// than one. Blocks.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, String> {
    let told = windlass_sandbox::errand("pdf", bytes, LONGEST, PATIENCE)
        .map_err(|error| format!("no text could be taken from the PDF: {error}"))?;
    let cut = told.len() >= LONGEST;
    let mut text = String::from_utf8_lossy(&told).into_owned();
    if cut {
        text.push_str("\n--- the rest of the text is left out ---\n");
    }
    Ok(text)
}
