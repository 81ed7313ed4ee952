//! Handles attachments of a prompt.

use super::workspace_state::{WorkspaceState, to_fault};
use crate::attachments;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windlass_protocol::frontend_messages::{HostResponse, ImageSize};
use windlass_protocol::{Attachment, BlobRef, Fault};
use windlass_tools::read::{detect_mime, make_thumbnail};

/// Longest side of a thumbnail, in pixels.
const MAX_THUMBNAIL_PIXELS: u32 = 512;

fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

impl WorkspaceState {
    /// Stores pasted bytes (`base64`) as a blob.
    pub(crate) async fn put_blob(&self, name: String, bytes: &str) -> Result<HostResponse, Fault> {
        let bytes = STANDARD.decode(bytes).map_err(|_| config_fault("invalid base64"))?;
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

    /// Reads the files that a prompt mentions, and warns about attachments that the model does not
    /// get.
    pub(crate) async fn prepare_prompt(
        &self,
        (text, attached): (&str, &[Attachment]),
        model: Option<&str>,
    ) -> Result<HostResponse, Fault> {
        let engine = self.best_engine().await?;
        let configured = self.setup.config.model.as_ref().map(|(name, _)| name.as_str());
        let name = model.or(configured);
        let model = name.and_then(|name| Some((name, self.setup.find_model(name)?)));
        let model = model.as_ref().map(|(name, model)| (*name, model));
        let found = attachments::prepare_prompt(&engine, text, attached, model).await;
        let attachments::MentionedFiles { attachments, warnings } =
            found.map_err(|error| to_fault(&error))?;
        Ok(HostResponse::PreparedPrompt { attachments, warnings })
    }

    /// Returns the bytes of a blob as `base64`.
    pub(crate) async fn get_blob(&self, blob: &BlobRef) -> Result<HostResponse, Fault> {
        let bytes = self.inspect_engine().await?.get_blob(blob).await?;
        Ok(HostResponse::Bytes { bytes: STANDARD.encode(bytes) })
    }

    /// Returns a thumbnail of a stored image. Decoding takes time, so it runs on a blocking thread.
    pub(crate) async fn thumbnail(
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
}
