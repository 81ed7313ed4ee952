//! Handles attachments of a prompt, and session exports.

use super::config_and_engines::{HostState, to_fault};
use crate::redact::redact_known;
use crate::setup::LoadedProject;
use crate::{attachments, html_export, session_lookup};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Write;
use std::path::Path;
use windlass_protocol::frontend_messages::{ExportFormat, HostResponse, ImageSize};
use windlass_protocol::{Attachment, BlobRef, Fault, SessionId};
use windlass_tools::read::{detect_mime, make_thumbnail};

/// Maximum number of export files with the same name, told apart by a number.
const MAX_NUMBERED_NAMES: u32 = 99;
/// Longest side of a thumbnail, in pixels.
const MAX_THUMBNAIL_PIXELS: u32 = 512;
/// Limit for the part of an export file name that comes from the title.
const MAX_NAME_CHARS: usize = 40;

fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl HostState {
    /// Stores pasted bytes (`base64`) as a blob.
    pub(super) async fn put_blob(&self, name: String, bytes: &str) -> Result<HostResponse, Fault> {
        let bytes = STANDARD.decode(bytes).map_err(|_| config_fault("invalid base64"))?;
        self.store_bytes(name, bytes).await
    }

    /// Stores a file that the user names as a blob; a path may begin with `~/`.
    pub(super) async fn attach_file(&self, path: &str) -> Result<HostResponse, Fault> {
        let full_path = match path.strip_prefix("~/") {
            Some(relative) => self.setup.dirs.home.join(relative),
            None => self.setup.root.join(path),
        };
        let bytes = LoadedProject::read_file(
            &full_path.display().to_string(),
            attachments::MAX_ATTACHMENT_BYTES,
        )
        .map_err(|error| to_fault(&error))?;
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.store_bytes(name, bytes).await
    }

    async fn store_bytes(&self, name: String, bytes: Vec<u8>) -> Result<HostResponse, Fault> {
        if bytes.len() as u64 > attachments::MAX_ATTACHMENT_BYTES {
            return Err(config_fault(format!(
                "{name} is larger than {} MB",
                attachments::MAX_ATTACHMENT_BYTES >> 20
            )));
        }
        let Some(mime) = detect_mime(&bytes) else {
            return Err(config_fault(format!(
                "{name} is neither an image (PNG, JPEG, GIF, WebP) nor a PDF. Name text files in \
                 the prompt instead; the model can read them"
            )));
        };
        let blob = self.inspect_engine().await?.put_blob(bytes).await?;
        Ok(HostResponse::BlobStored {
            attachment: Attachment { name, mime_type: mime.to_owned(), blob },
        })
    }

    /// Returns the bytes of a blob as `base64`.
    pub(super) async fn get_blob(&self, blob: &BlobRef) -> Result<HostResponse, Fault> {
        let bytes = self.inspect_engine().await?.get_blob(blob).await?;
        Ok(HostResponse::Bytes { bytes: STANDARD.encode(bytes) })
    }

    /// Returns a thumbnail of a stored image. Decoding takes time, so it runs on a blocking thread.
    pub(super) async fn thumbnail(
        &self,
        blob: &BlobRef,
        (width, height): (u32, u32),
    ) -> Result<HostResponse, Fault> {
        let bytes = self.inspect_engine().await?.get_blob(blob).await?;
        let byte_count = bytes.len() as u64;
        let (width, height) = (width.min(MAX_THUMBNAIL_PIXELS), height.min(MAX_THUMBNAIL_PIXELS));
        let decoded =
            tokio::task::spawn_blocking(move || make_thumbnail(&bytes, width, height)).await;
        let crashed = |_| config_fault("cannot decode the image");
        let thumbnail = decoded.map_err(crashed)?.map_err(config_fault)?;
        let original_size = ImageSize {
            width: thumbnail.original_size.0,
            height: thumbnail.original_size.1,
            bytes: byte_count,
        };
        Ok(HostResponse::Thumbnail {
            width: thumbnail.width,
            bytes: STANDARD.encode(thumbnail.pixels),
            original_size,
        })
    }

    /// Exports a session to a new file in the current folder.
    pub(super) async fn export_session(
        &self,
        session: SessionId,
        format: ExportFormat,
    ) -> Result<HostResponse, Fault> {
        let engine = self.inspect_engine().await?;
        self.setup.register_keys();
        let write = async || -> anyhow::Result<String> {
            let transcript = session_lookup::load_transcript(&engine, session).await?;
            let extension = match format {
                ExportFormat::Html => "html",
                ExportFormat::Jsonl => "jsonl",
            };
            let (name, file) =
                create_numbered_file(&export_file_name(&transcript.title, session), extension)?;
            let mut file = std::io::BufWriter::new(file);
            match format {
                ExportFormat::Html => {
                    let page = html_export::render_page(&transcript);
                    file.write_all(redact_known(&page).as_bytes())?
                }
                ExportFormat::Jsonl => {
                    let redact = |text: &str| redact_known(text).into_owned();
                    let mut write = |line: &str| writeln!(file, "{line}");
                    engine.export(session, &redact, &mut write).await?;
                }
            }
            file.flush()?;
            Ok(name)
        };
        Ok(HostResponse::Path { path: write().await.map_err(|error| to_fault(&error))? })
    }
}

/// Creates a file with an unused name such as `stem-2.html`, and returns both.
fn create_numbered_file(stem: &str, extension: &str) -> anyhow::Result<(String, std::fs::File)> {
    let names = (1..=MAX_NUMBERED_NAMES).map(|number| match number {
        1 => format!("{stem}.{extension}"),
        _ => format!("{stem}-{number}.{extension}"),
    });
    let mut last_error = None;
    for name in names {
        match LoadedProject::create_private_file(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if LoadedProject::path_exists(Path::new(&name)) => last_error = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last_error.unwrap_or_else(|| anyhow::anyhow!("no unused file name found")))
}

/// Returns the file name for an export: the title, reduced to characters that are valid on every
/// system.
fn export_file_name(title: &str, session: SessionId) -> String {
    let mut name = String::new();
    for character in title.to_lowercase().chars() {
        if name.len() >= MAX_NAME_CHARS {
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
    fn an_export_is_named_after_the_title_or_the_session() {
        let session: SessionId = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
        for (title, name) in [
            ("Fix the parser", "windlass-fix-the-parser"),
            ("../../etc/passwd\n", "windlass-etc-passwd"),
            ("  Ünïcode & more!!", "windlass-n-code-more"),
            ("名前", "windlass-0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a"),
        ] {
            assert_eq!(export_file_name(title, session), name);
        }
        assert!(export_file_name(&"long words ".repeat(30), session).len() <= 9 + MAX_NAME_CHARS);
    }
}
