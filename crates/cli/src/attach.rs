//! Files that go with a prompt.

use crate::setup::Setup;
use anyhow::bail;
use std::path::Path;
use windlass_engine::Engine;
use windlass_protocol::Attachment;
use windlass_tools::read::mime;

/// No provider takes more.
const LONGEST: u64 = 20 << 20;

/// Reads and keeps the files a person names.
pub(crate) async fn attach(engine: &Engine, paths: &[String]) -> anyhow::Result<Vec<Attachment>> {
    let mut attachments = Vec::new();
    for path in paths {
        let bytes = Setup::file(path, LONGEST)?;
        let Some(mime) = mime(&bytes) else {
            bail!(
                "{path} is neither an image (PNG, JPEG, GIF, WebP) nor a PDF. For text, name the \
                 file in the prompt: the model can read it"
            );
        };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let blob = engine.keep(bytes).await?;
        attachments.push(Attachment { name, mime: mime.to_owned(), blob });
    }
    Ok(attachments)
}
