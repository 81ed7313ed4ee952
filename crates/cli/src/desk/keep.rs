//! What goes with a prompt, and what a session is written into.

use super::house::{House, fault};
use crate::setup::Setup;
use crate::{attach, session, share};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Write;
use std::path::Path;
use windlass_protocol::wire::{Answered, Form, PictureSize};
use windlass_protocol::{Attachment, BlobRef, Fault, SessionId};
use windlass_tools::read::{mime, thumbnail};

/// So many files of one name are told apart by a number.
const MOST_NAMES: u32 = 99;
/// The longest side of a small copy of a picture, in pixels.
const LARGEST_THUMBNAIL: u32 = 512;
/// How much of a title stands in a file's name.
const LONGEST_NAME: usize = 40;

fn refused(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl House {
    /// Keeps bytes that a person pasted.
    pub(super) async fn keep(&self, name: String, bytes: &str) -> Result<Answered, Fault> {
        let bytes = STANDARD.decode(bytes).map_err(|_| refused("this is no base64"))?;
        self.keep_bytes(name, bytes).await
    }

    /// Keeps a file that a person named.
    pub(super) async fn keep_file(&self, path: &str) -> Result<Answered, Fault> {
        let whole = match path.strip_prefix("~/") {
            Some(below) => self.setup.places.home.join(below),
            None => self.setup.root.join(path),
        };
        let read = Setup::file(&whole.display().to_string(), attach::LONGEST);
        let bytes = read.map_err(|error| fault(&error))?;
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.keep_bytes(name, bytes).await
    }

    async fn keep_bytes(&self, name: String, bytes: Vec<u8>) -> Result<Answered, Fault> {
        if bytes.len() as u64 > attach::LONGEST {
            return Err(refused(format!("{name} is larger than {} MB", attach::LONGEST >> 20)));
        }
        let Some(mime) = mime(&bytes) else {
            return Err(refused(format!(
                "{name} is neither an image (PNG, JPEG, GIF, WebP) nor a PDF. Name a text in the \
                 prompt instead: the model can read it"
            )));
        };
        let blob = self.bare().await?.keep(bytes).await?;
        Ok(Answered::Kept { attachment: Attachment { name, mime: mime.to_owned(), blob } })
    }

    /// Gives back bytes.
    pub(super) async fn recall(&self, blob: &BlobRef) -> Result<Answered, Fault> {
        let bytes = self.bare().await?.recall(blob).await?;
        Ok(Answered::Bytes { bytes: STANDARD.encode(bytes) })
    }

    /// A small copy of a picture that was kept. Decoding takes time, so it is done beside the loop.
    pub(super) async fn thumbnail(
        &self,
        blob: &BlobRef,
        (width, height): (u32, u32),
    ) -> Result<Answered, Fault> {
        let bytes = self.bare().await?.recall(blob).await?;
        let (size, weight) =
            ((width.min(LARGEST_THUMBNAIL), height.min(LARGEST_THUMBNAIL)), bytes.len() as u64);
        let decoded = tokio::task::spawn_blocking(move || thumbnail(&bytes, size.0, size.1)).await;
        let broken = |_| refused("the picture cannot be decoded");
        let small = decoded.map_err(broken)?.map_err(refused)?;
        let bytes = STANDARD.encode(small.pixels);
        let of = PictureSize { width: small.of.0, height: small.of.1, bytes: weight };
        Ok(Answered::Pixels { width: small.width, bytes, of })
    }

    /// Writes a session into a new file of the folder we are in.
    pub(super) async fn export(&self, session: SessionId, form: Form) -> Result<Answered, Fault> {
        let engine = self.bare().await?;
        let write = async || -> anyhow::Result<String> {
            let transcript = session::transcript(&engine, session).await?;
            let ending = match form {
                Form::Page => "html",
                Form::Log => "jsonl",
            };
            let (name, file) = new_file(&file_name(&transcript.title, session), ending)?;
            let mut file = std::io::BufWriter::new(file);
            match form {
                Form::Page => file.write_all(share::page(&transcript).as_bytes())?,
                Form::Log => {
                    engine.export(session, &mut |line| writeln!(file, "{line}")).await?;
                }
            }
            file.flush()?;
            Ok(name)
        };
        Ok(Answered::Path { path: write().await.map_err(|error| fault(&error))? })
    }
}

/// A file that is not there yet, and its name.
fn new_file(stem: &str, ending: &str) -> anyhow::Result<(String, std::fs::File)> {
    let names = (1..=MOST_NAMES).map(|number| match number {
        1 => format!("{stem}.{ending}"),
        _ => format!("{stem}-{number}.{ending}"),
    });
    let mut last = None;
    for name in names {
        match Setup::new_file(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if Setup::is_there(Path::new(&name)) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("no name is free")))
}

/// What a session's file is called: after its title, as far as any system takes that for a name.
fn file_name(title: &str, session: SessionId) -> String {
    let mut name = String::new();
    for character in title.to_lowercase().chars() {
        if name.len() >= LONGEST_NAME {
            break;
        }
        match character.is_ascii_alphanumeric() {
            true => name.push(character),
            false if name.ends_with('-') || name.is_empty() => {}
            false => name.push('-'),
        }
    }
    match name.trim_end_matches('-') {
        "" => format!("windlass-{session}"),
        name => format!("windlass-{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_after_the_title_or_else_the_session() {
        let session: SessionId = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
        for (title, name) in [
            ("Fix the parser", "windlass-fix-the-parser"),
            ("../../etc/passwd\n", "windlass-etc-passwd"),
            ("  Ünïcode & more!!", "windlass-n-code-more"),
            ("名前", "windlass-0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a"),
        ] {
            assert_eq!(file_name(title, session), name);
        }
        assert!(file_name(&"long words ".repeat(30), session).len() <= 9 + LONGEST_NAME);
    }
}
