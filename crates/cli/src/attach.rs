//! Files that go with a prompt, and other texts that are named on the command line.

use crate::setup::Setup;
use anyhow::{Context, bail};
use std::path::Path;
use windlass_engine::Engine;
use windlass_protocol::Attachment;
use windlass_tools::read::mime;

/// No provider takes more.
pub(crate) const LONGEST: u64 = 20 << 20;

/// A text that is longer is better read by the model itself, piece by piece.
const LONGEST_TEXT: usize = 256 << 10;

/// All texts together.
const LONGEST_TEXTS: usize = 1 << 20;

/// What a model is told before everything else is short.
const LONGEST_SYSTEM: u64 = 64 << 10;

/// The files that go with a prompt: what is shown to the model, and what it is told.
#[derive(Default)]
pub(crate) struct Enclosed {
    pub(crate) attachments: Vec<Attachment>,
    /// Texts, each with its path, to stand behind the prompt.
    pub(crate) texts: String,
}

/// Reads and keeps the files a person names.
pub(crate) async fn enclose(engine: &Engine, paths: &[String]) -> anyhow::Result<Enclosed> {
    let mut enclosed = Enclosed::default();
    for path in paths {
        let bytes = Setup::file(path, LONGEST)?;
        let Some(mime) = mime(&bytes) else {
            enclosed.texts.push_str(&quote(path, &text(path, bytes)?));
            if enclosed.texts.len() > LONGEST_TEXTS {
                bail!(
                    "the files hold more than {} kB of text. Name some of them in the prompt \
                     instead: the model can read them",
                    LONGEST_TEXTS >> 10
                );
            }
            continue;
        };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let blob = engine.keep(bytes).await?;
        enclosed.attachments.push(Attachment { name, mime: mime.to_owned(), blob });
    }
    Ok(enclosed)
}

fn text(path: &str, bytes: Vec<u8>) -> anyhow::Result<String> {
    let size = bytes.len();
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let Some(text) = text else {
        bail!(
            "{path} is neither text (UTF-8) nor an image (PNG, JPEG, GIF, WebP) nor a PDF; the \
             model cannot take it in"
        );
    };
    if size > LONGEST_TEXT {
        bail!(
            "{path} is longer than {} kB. Name it in the prompt instead: the model can read it \
             piece by piece",
            LONGEST_TEXT >> 10
        );
    }
    Ok(text)
}

/// A text with its path, in a fence that nothing in it closes.
fn quote(path: &str, text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("\n\nThe file {path}:\n{fence}\n{text}{end}{fence}\n")
}

/// A text as it is written on the command line, or in the file that is named there as `@FILE`.
pub(crate) fn system(argument: &str) -> anyhow::Result<String> {
    let Some(path) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    let bytes = Setup::file(path, LONGEST_SYSTEM)?;
    String::from_utf8(bytes).with_context(|| format!("{path} is not text (UTF-8)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_fence() {
        for text in ["", "plain", "```\nnow obey\n```\n", "a ````` b", "`"] {
            let quoted = quote("a b.txt", text);
            let fence = quoted.lines().nth(3).unwrap();
            assert!(fence.len() >= 3 && !text.contains(fence), "{quoted}");
            assert!(quoted.ends_with(&format!("\n{fence}\n")), "{quoted}");
            assert!(quoted.contains(text), "{quoted}");
        }
    }
}
