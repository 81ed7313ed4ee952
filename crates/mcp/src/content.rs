//! What a server's answer is here: text for the model, pictures beside it, everything else kept and
//! named.

use crate::call::told;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use windlass_protocol::{Attachment, Output};
use windlass_toolkit::{Caller, Failure};

/// So many pictures and documents are taken.
const ATTACHMENTS: usize = 16;
/// So large may each be.
const LARGEST: usize = 10 << 20;
/// So much of a structured answer is kept for programs.
const STRUCTURED: usize = 16 << 10;
/// What a model can be shown.
const SHOWN: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

/// The output of a call, or the failure that the server says it was.
pub(crate) async fn output(
    tool: &str,
    result: CallToolResult,
    caller: &dyn Caller,
) -> Result<Output, Failure> {
    let mut taken = Taken::default();
    for block in result.content {
        taken.take(block, caller).await;
    }
    let mut output = Output { title: tool.to_owned(), ..Output::default() };
    if let Some(structured) = result.structured_content {
        if taken.pieces.is_empty() && taken.attachments.is_empty() {
            taken.pieces.push(structured.to_string());
        }
        if structured.to_string().len() <= STRUCTURED {
            output.metadata.insert("structured".into(), structured);
        }
    }
    output.text = taken.pieces.join("\n\n");
    if result.is_error == Some(true) {
        let text = if output.text.is_empty() { "the call failed".into() } else { output.text };
        return Err(Failure::new(text));
    }
    output.attachments = taken.attachments;
    if output.text.is_empty() && output.attachments.is_empty() {
        output.text = "(no output)".into();
    }
    Ok(output)
}

/// The output of a resource that was read.
pub(crate) async fn resource(
    title: &str,
    contents: Vec<ResourceContents>,
    caller: &dyn Caller,
) -> Output {
    let mut taken = Taken::default();
    for piece in contents {
        taken.embedded(piece, caller).await;
    }
    let text = taken.pieces.join("\n\n");
    let text = if text.is_empty() { "(nothing)".into() } else { text };
    let attachments = taken.attachments;
    Output { title: title.to_owned(), text, attachments, ..Output::default() }
}

#[derive(Default)]
struct Taken {
    pieces: Vec<String>,
    attachments: Vec<Attachment>,
    kept: usize,
}

impl Taken {
    async fn take(&mut self, block: ContentBlock, caller: &dyn Caller) {
        match block {
            ContentBlock::Text(text) => self.pieces.push(text.text),
            ContentBlock::Image(image) => {
                self.keep("image", &image.mime_type, &image.data, caller).await;
            }
            ContentBlock::Audio(audio) => {
                self.keep("audio", &audio.mime_type, &audio.data, caller).await;
            }
            ContentBlock::Resource(resource) => self.embedded(resource.resource, caller).await,
            ContentBlock::ResourceLink(link) => {
                let name = link.title.as_deref().unwrap_or(&link.name);
                self.pieces.push(format!("[resource {}: {}]", told(name), told(&link.uri)));
            }
            _ => self.pieces.push("[something that is not known here]".into()),
        }
    }

    async fn embedded(&mut self, resource: ResourceContents, caller: &dyn Caller) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                let fence = fence(&text);
                self.pieces.push(format!("{}\n{fence}\n{text}\n{fence}", told(&uri)));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.unwrap_or_else(|| "application/octet-stream".into());
                self.keep(&uri, &mime, &blob, caller).await;
            }
            _ => self.pieces.push("[something that is not known here]".into()),
        }
    }

    /// Keeps bytes: what a model can be shown beside the text, the rest to be read on demand.
    async fn keep(&mut self, what: &str, mime: &str, data: &str, caller: &dyn Caller) {
        let (what, mime) = (told(what), told(mime));
        let too_large = data.len() / 4 * 3 > LARGEST;
        let bytes = if too_large { None } else { STANDARD.decode(data.trim()).ok() };
        let Some(bytes) = bytes else {
            let why = if too_large { "too large to be taken" } else { "not readable" };
            return self.pieces.push(format!("[{what} {mime}: {why}]"));
        };
        self.kept += 1;
        if self.kept > ATTACHMENTS {
            return self.pieces.push(format!("[{what} {mime}: one of too many, left out]"));
        }
        let size = bytes.len().div_ceil(1_000);
        match caller.keep(bytes).await {
            Err(error) => self.pieces.push(format!("[{what} {mime}, {size} kB: {error}]")),
            Ok(blob) if SHOWN.contains(&mime.as_str()) => {
                let end = mime.rsplit('/').next().unwrap_or_default();
                let name = format!("{}.{end}", self.kept);
                self.pieces.push(format!("[{what} {mime}, {size} kB: shown as {name}]"));
                self.attachments.push(Attachment { name, mime, blob });
            }
            Ok(blob) => {
                self.pieces
                    .push(format!("[{what} {mime}, {size} kB: read blob:{}]", blob.as_str()));
            }
        }
    }
}

/// A fence that the text itself does not hold.
fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) && fence.len() < 64 {
        fence.push('`');
    }
    fence
}

/// A definition or its arguments, as a person reads them.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
