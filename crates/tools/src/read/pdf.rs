//! Extracts the text of a PDF, for models that do not accept PDFs.
//!
//! The parser panics, recurses and loops on bad files, so it runs in a helper process: see
//! `windlass_sandbox::helper_process`, and `helper_process` in the cli for the limits it has there.

use std::time::Duration;

/// The most text extracted from one PDF, in bytes.
const MAX_TEXT_BYTES: usize = 8 << 20;
const EXTRACTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Extracts the text of a PDF as plain text, with a line such as `--- page 2 ---` before each page
/// if there are several. Blocks.
pub(crate) fn extract_text(bytes: Vec<u8>) -> Result<String, String> {
    let output = windlass_sandbox::run_helper("pdf", bytes, MAX_TEXT_BYTES, EXTRACTION_TIMEOUT)
        .map_err(|error| format!("could not extract text from the PDF: {error}"))?;
    let mut text = String::from_utf8_lossy(&output).into_owned();
    if output.len() >= MAX_TEXT_BYTES {
        text.push_str("\n--- the rest of the text is omitted ---\n");
    }
    Ok(text)
}
