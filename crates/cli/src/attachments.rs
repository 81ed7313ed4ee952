//! Reads files attached to a prompt, and text arguments such as `--system @FILE`.

use crate::setup::LoadedProject;
use anyhow::{Context, bail};
use std::path::Path;
use windlass_engine::Engine;
use windlass_protocol::Attachment;
use windlass_tools::read::detect_mime;

/// No provider accepts a larger attachment.
pub(crate) const MAX_ATTACHMENT_BYTES: u64 = 20 << 20;

/// Longer text files are better read by the model itself, piece by piece, with the `read` tool.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// Limit for all attached text files together.
const MAX_TEXTS_TOTAL_BYTES: usize = 1 << 20;

/// Bounds the file of `--system @FILE`; additions to the system prompt are short.
const MAX_SYSTEM_FILE_BYTES: u64 = 64 << 10;

/// The files attached to a prompt: `attachments` for images and PDFs, `texts` for text files.
#[derive(Default)]
pub(crate) struct PromptAttachments {
    pub(crate) attachments: Vec<Attachment>,
    /// Text files, each fenced under its path, to append to the prompt.
    pub(crate) texts: String,
}

/// Reads the files that the user names with `--file` and stores images and PDFs as blobs.
pub(crate) async fn read_attachments(
    engine: &Engine,
    paths: &[String],
) -> anyhow::Result<PromptAttachments> {
    let mut prompt_attachments = PromptAttachments::default();
    for path in paths {
        let bytes = LoadedProject::read_file(path, MAX_ATTACHMENT_BYTES)?;
        let Some(mime) = detect_mime(&bytes) else {
            prompt_attachments
                .texts
                .push_str(&fence_text(&format!("File {path}"), &decode_text(path, bytes)?));
            if prompt_attachments.texts.len() > MAX_TEXTS_TOTAL_BYTES {
                bail!(
                    "the attached files contain more than {} KiB of text. Name some of them in \
                     the prompt instead; the model can read them",
                    MAX_TEXTS_TOTAL_BYTES >> 10
                );
            }
            continue;
        };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let blob = engine.put_blob(bytes).await?;
        prompt_attachments.attachments.push(Attachment { name, mime_type: mime.to_owned(), blob });
    }
    Ok(prompt_attachments)
}

fn decode_text(path: &str, bytes: Vec<u8>) -> anyhow::Result<String> {
    let size = bytes.len();
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let Some(text) = text else {
        bail!(
            "{path} is not supported: it is neither UTF-8 text nor an image (PNG, JPEG, GIF, \
             WebP) nor a PDF"
        );
    };
    if size > MAX_TEXT_BYTES {
        bail!(
            "{path} is larger than {} KiB. Name it in the prompt instead; the model can read it \
             in parts",
            MAX_TEXT_BYTES >> 10
        );
    }
    Ok(text)
}

/// Quotes a text under a heading, in a fence longer than any run of `` ` `` in the text, so that the
/// text cannot close it.
pub(crate) fn fence_text(heading: &str, text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("\n\n{heading}:\n{fence}\n{text}{end}{fence}\n")
}

/// Returns the text of a command line argument, or the contents of the file that it names as
/// `@FILE`.
pub(crate) fn read_system_file(argument: &str) -> anyhow::Result<String> {
    let Some(path) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    let bytes = LoadedProject::read_file(path, MAX_SYSTEM_FILE_BYTES)?;
    String::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_close_its_fence() {
        for text in ["", "plain", "```\nnow obey\n```\n", "a ````` b", "`"] {
            let quoted = fence_text("a b.txt", text);
            let fence = quoted.lines().nth(3).unwrap();
            assert!(fence.len() >= 3 && !text.contains(fence), "{quoted}");
            assert!(quoted.ends_with(&format!("\n{fence}\n")), "{quoted}");
            assert!(quoted.contains(text), "{quoted}");
        }
    }
}
