//! Converts a server's result into a `ToolOutput`: text for the model, images as attachments,
//! everything else stored as a blob and named in the text.

use crate::client::sanitize_server_text::clean_server_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use windlass_protocol::{Attachment, ToolOutput};
use windlass_toolkit::{CallFailure, ToolCaller};

/// Limits the images and documents of one result.
const MAX_ATTACHMENTS: usize = 16;
/// Longer names of attachments are cut.
const MAX_NAME_CHARS: usize = 100;
/// Larger attachments are left out.
const MAX_ATTACHMENT_BYTES: usize = 10 << 20;
/// Larger structured results are not added to the metadata.
const MAX_STRUCTURED_BYTES: usize = 16 << 10;
/// Attachment types that a model can view.
const VIEWABLE_MIME_TYPES: [&str; 5] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

/// Converts a `CallToolResult` into a `ToolOutput`, or returns the failure that the server reports.
pub(crate) async fn call_output(
    result: CallToolResult,
    caller: &dyn ToolCaller,
) -> Result<ToolOutput, CallFailure> {
    let mut content = McpResultContent::default();
    for block in result.content {
        content.add_block(block, caller).await;
    }
    let mut output = ToolOutput::default();
    if let Some(structured) = result.structured_content {
        if content.text_parts.is_empty() && content.attachments.is_empty() {
            content.text_parts.push(structured.to_string());
        }
        if structured.to_string().len() <= MAX_STRUCTURED_BYTES {
            output.metadata.insert("structured".into(), structured);
        }
    }
    output.text = content.text_parts.join("\n\n");
    if result.is_error == Some(true) {
        let text = if output.text.is_empty() { "the call failed".into() } else { output.text };
        return Err(CallFailure::new(text));
    }
    output.attachments = content.attachments;
    if output.text.is_empty() && output.attachments.is_empty() {
        output.text = "(no output)".into();
    }
    Ok(output)
}

/// Converts the contents of a resource into a `ToolOutput`.
pub(crate) async fn resource_output(
    contents: Vec<ResourceContents>,
    caller: &dyn ToolCaller,
) -> ToolOutput {
    let mut content = McpResultContent::default();
    for resource in contents {
        content.add_resource(resource, caller).await;
    }
    let text = content.text_parts.join("\n\n");
    let attachments = content.attachments;
    let is_empty = text.is_empty() && attachments.is_empty();
    let text = if is_empty { "(nothing)".into() } else { text };
    ToolOutput { text, attachments, ..ToolOutput::default() }
}

#[derive(Default)]
struct McpResultContent {
    text_parts: Vec<String>,
    attachments: Vec<Attachment>,
    attachment_count: usize,
}

impl McpResultContent {
    async fn add_block(&mut self, block: ContentBlock, caller: &dyn ToolCaller) {
        match block {
            ContentBlock::Text(text) => self.text_parts.push(text.text),
            ContentBlock::Image(image) => {
                self.add_bytes(("image", ""), &image.mime_type, &image.data, caller).await;
            }
            ContentBlock::Audio(audio) => {
                self.add_bytes(("audio", ""), &audio.mime_type, &audio.data, caller).await;
            }
            ContentBlock::Resource(resource) => self.add_resource(resource.resource, caller).await,
            ContentBlock::ResourceLink(link) => {
                let name = link.title.as_deref().unwrap_or(&link.name);
                self.text_parts.push(format!(
                    "[resource {}: {}]",
                    clean_server_text(name),
                    clean_server_text(&link.uri)
                ));
            }
            _ => self.text_parts.push("[unsupported content]".into()),
        }
    }

    async fn add_resource(&mut self, resource: ResourceContents, caller: &dyn ToolCaller) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                let uri = clean_server_text(&uri).replace(['"', '<', '>', '\n'], "_");
                // The text cannot end its own element.
                let text = text.replace("</resource", "< /resource");
                let text = text.trim_end();
                self.text_parts.push(format!("<resource uri=\"{uri}\">\n{text}\n</resource>"));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.unwrap_or_else(|| "application/octet-stream".into());
                self.add_bytes((&uri, &last_segment(&uri)), &mime, &blob, caller).await;
            }
            _ => self.text_parts.push("[unsupported content]".into()),
        }
    }

    /// Stores bytes as a blob: an attachment if the model can view the type, otherwise a reference
    /// that it can read on demand. `name` is the file name; empty if there is none.
    async fn add_bytes(
        &mut self,
        (label, name): (&str, &str),
        mime: &str,
        data: &str,
        caller: &dyn ToolCaller,
    ) {
        let label = clean_server_text(label);
        let mime = clean_server_text(mime);
        let too_large = data.len() / 4 * 3 > MAX_ATTACHMENT_BYTES;
        let bytes = if too_large { None } else { STANDARD.decode(data.trim()).ok() };
        let Some(bytes) = bytes else {
            let reason = if too_large { "too large" } else { "invalid base64" };
            return self.text_parts.push(format!("[{label} {mime}: {reason}]"));
        };
        self.attachment_count += 1;
        if self.attachment_count > MAX_ATTACHMENTS {
            return self
                .text_parts
                .push(format!("[{label} {mime}: omitted, too many attachments]"));
        }
        let size = bytes.len().div_ceil(1_000);
        match caller.put_blob(bytes).await {
            Err(error) => self.text_parts.push(format!("[{label} {mime}, {size} kB: {error}]")),
            Ok(blob) if VIEWABLE_MIME_TYPES.contains(&mime.as_str()) => {
                // The request says if the model cannot view it, so that the text does not.
                let extension = mime.rsplit('/').next().unwrap_or_default();
                let name = match name {
                    "" => format!("{}.{extension}", self.attachment_count),
                    name => name.to_owned(),
                };
                self.attachments.push(Attachment { name, mime_type: mime, blob });
            }
            Ok(blob) => {
                self.text_parts
                    .push(format!("[{label} {mime}, {size} kB: read blob:{}]", blob.as_str()));
            }
        }
    }
}

/// Returns the last segment of a URI's path, as a file name; empty if it is none.
fn last_segment(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let segment = clean_server_text(path.rsplit('/').next().unwrap_or_default());
    let name: String = segment.chars().take(MAX_NAME_CHARS).collect();
    if name.chars().all(|c| matches!(c, '.' | ' ')) { String::new() } else { name }
}

/// Formats JSON for the user to read.
pub(crate) fn to_pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
