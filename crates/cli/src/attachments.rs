//! Reads files attached to a prompt or mentioned in it, and text arguments such as `--system @FILE`.

use crate::setup::LoadedProject;
use anyhow::{Context, bail};
use std::path::Path;
use windlass_engine::Engine;
use windlass_llm::catalog::Model;
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::prompt_mentions::{mentions, trim_mention};
use windlass_protocol::{Attachment, CallOutcome, ToolOutput};
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

/// Reads the files that the user names with `--file`, and passes images and PDFs to `store`.
pub(crate) async fn read_attachments(
    store: impl AsyncFn(String, Vec<u8>) -> anyhow::Result<Attachment>,
    paths: &[String],
) -> anyhow::Result<PromptAttachments> {
    let mut prompt_attachments = PromptAttachments::default();
    for path in paths {
        let bytes = LoadedProject::read_file(path, MAX_ATTACHMENT_BYTES)?;
        if detect_mime(&bytes).is_none() {
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
        }
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        prompt_attachments.attachments.push(store(name, bytes).await?);
    }
    Ok(prompt_attachments)
}

/// Stores an image or a PDF.
pub(crate) async fn store_attachment(
    engine: &Engine,
    name: String,
    bytes: Vec<u8>,
) -> anyhow::Result<Attachment> {
    let mime_type = detect_mime(&bytes).unwrap_or("application/octet-stream").to_owned();
    let blob = engine.put_blob(bytes).await?;
    Ok(Attachment { name, mime_type, blob })
}

/// More mentions in one prompt are not attached; the model can read them.
const MAX_MENTIONS: usize = 20;

/// The longest part of a reason that a warning shows.
const MAX_REASON_CHARS: usize = 200;

/// The contents of the files and folders that a prompt mentions.
#[derive(Debug, Default)]
pub(crate) struct MentionedFiles {
    pub(crate) attachments: Vec<Attachment>,
    /// Mentioned files that cannot be attached, and why.
    pub(crate) warnings: Vec<String>,
}

/// Reads the files and folders that a prompt mentions as `@PATH`, with the tool `read` and its
/// limits. A file that needs approval is not attached, and a mention that is not a file is text.
async fn read_mentions(engine: &Engine, text: &str) -> anyhow::Result<MentionedFiles> {
    let (mut found, mut text_bytes) = (MentionedFiles::default(), 0);
    for mention in mentions(text).into_iter().take(MAX_MENTIONS) {
        let trimmed = trim_mention(mention);
        let mut outcome = read_mention(engine, mention).await;
        let mut name = mention;
        if matches!(outcome, CallOutcome::Failed { .. }) && trimmed != mention {
            (outcome, name) = (read_mention(engine, trimmed).await, trimmed);
        }
        match outcome {
            CallOutcome::Completed { output } if !output.attachments.is_empty() => {
                let named = |file| Attachment { name: name.to_owned(), ..file };
                found.attachments.extend(output.attachments.into_iter().map(named));
            }
            CallOutcome::Completed { output: ToolOutput { text: content, .. } } => {
                text_bytes += content.len();
                if text_bytes > MAX_TEXTS_TOTAL_BYTES {
                    found.warnings.push(format!("@{name} is not attached: too much text."));
                    continue;
                }
                let content = fence_text(&format!("Content of {name}"), &content);
                let blob = engine.put_blob(content.trim_start().as_bytes().to_vec()).await?;
                let (name, mime_type) = (name.to_owned(), "text/plain".to_owned());
                found.attachments.push(Attachment { name, mime_type, blob });
            }
            CallOutcome::Denied { text: reason } => {
                let reason = truncate_chars(reason.trim(), MAX_REASON_CHARS);
                found.warnings.push(format!("@{name} is not attached: {reason}"));
            }
            // Not every word after an `@` is a file.
            CallOutcome::Failed { .. }
            | CallOutcome::Interrupted { .. }
            | CallOutcome::ResultUnknown => {}
        }
    }
    Ok(found)
}

/// Reads the files that a prompt mentions, and warns about attachments that the model does not get:
/// the mentioned files, and those `attached` otherwise.
pub(crate) async fn prepare_prompt(
    engine: &Engine,
    text: &str,
    attached: &[Attachment],
    model: Option<(&str, &Model)>,
) -> anyhow::Result<MentionedFiles> {
    let mut found = read_mentions(engine, text).await?;
    if let Some(model) = model {
        let all: Vec<Attachment> = attached.iter().chain(&found.attachments).cloned().collect();
        found.warnings.extend(unsupported_attachments(model, &all));
    }
    Ok(found)
}

async fn read_mention(engine: &Engine, path: &str) -> CallOutcome {
    engine.call_read_only("read", serde_json::json!({ "filePath": path }).to_string()).await
}

/// Returns a warning for each attachment that a model does not get.
fn unsupported_attachments(
    (name, model): (&str, &Model),
    attachments: &[Attachment],
) -> Vec<String> {
    let kind = |file: &Attachment| match file.mime_type.as_str() {
        mime if mime.starts_with("image/") => (!model.images).then_some(("images", "images")),
        "application/pdf" => (!model.pdfs).then_some(("PDF files", "pdfs")),
        _ => None,
    };
    let warning = |file: &Attachment| {
        let (kind, setting) = kind(file)?;
        let name_of_file = &file.name;
        Some(format!(
            "{name} is not known to accept {kind}: {name_of_file} would not be sent. If it does, \
             set \"{setting}\": true for it in your config."
        ))
    };
    attachments.iter().filter_map(warning).collect()
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
