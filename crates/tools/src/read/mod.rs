//! `read`: shows a page of a text file as numbered lines, a folder as its entries, an image or a
//! document as an attachment, or a stored output.
//!
//! A page is read in constant memory, however long the file or its lines are. A file small enough
//! to be changed is read whole, because its digest shows later whether it has changed since.

mod page;
pub(crate) mod pdf;

use crate::image;
use crate::nearby_instructions::nearby_instructions;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::sync::Arc;
use windlass_lsp::LanguageServers;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{Attachment, BlobRef, CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::{MAX_CHANGED_FILE_BYTES, OpenedPath, WorkingFolder};
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, relative_path,
};

pub use crate::image::{ImageThumbnail, detect_mime, make_thumbnail};

/// The `read` tool.
#[derive(Default)]
pub struct ReadTool {
    pub(crate) language_servers: Option<LanguageServers>,
}

/// Input of the `read` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadInput {
    /// The file.
    file_path: String,
    /// The first line to read, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Number of lines to read; default 2000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

impl ReadInput {
    /// Describes the requested lines; empty if the call does not limit them.
    fn line_range(&self) -> String {
        let first = self.offset.unwrap_or(1).max(1);
        match (self.offset, self.limit) {
            (None, None) => String::new(),
            (Some(_), None) => format!("from line {first}"),
            (_, Some(count)) => {
                format!("lines {first}–{}", first.saturating_add(count).saturating_sub(1))
            }
        }
    }
}

/// Shortest part of a digest that names a stored output.
const MIN_BLOB_NAME_DIGITS: usize = 12;

/// Returns the hex digits of a path of the form `blob:<digits>`; `None` for file paths.
pub(crate) fn parse_blob_path(path: &str) -> Option<&str> {
    let is_hex_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digits = path.strip_prefix("blob:")?;
    let is_name = (MIN_BLOB_NAME_DIGITS..=64).contains(&digits.len());
    (is_name && digits.bytes().all(is_hex_digit)).then_some(digits)
}

/// Returns the stored output with this name.
pub(crate) async fn load_blob(digits: &str, cx: &CallContext<'_>) -> Result<Vec<u8>, CallFailure> {
    let blob = match BlobRef::parse(digits) {
        Some(blob) => Some(blob),
        None => cx.caller.find_blob(digits).await?,
    };
    match blob {
        Some(blob) => cx.caller.get_blob(&blob).await,
        None => Err(CallFailure::new(format!("There is no stored output blob:{digits}."))),
    }
}

/// The content found at a path.
enum ReadTargetContent {
    /// A rendered page of a folder, or of a file too large to be changed.
    Page(ToolOutput),
    WholeFile(Arc<[u8]>),
    Missing,
}

#[async_trait]
impl Tool for ReadTool {
    type Input = ReadInput;

    fn name(&self) -> &str {
        "read"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Read"]
    }

    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        &[("filePath", "file_path")]
    }

    fn describe_call(&self, input: &ReadInput, root: &str) -> Option<CallDescription> {
        let path = relative_path(&input.file_path, root);
        let description = CallDescription::new("Read", "reading", path);
        Some(description.with_note(input.line_range()).covering_arguments())
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<ReadInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut ReadInput, folder: &WorkingFolder) {
        if parse_blob_path(&input.file_path).is_none() {
            input.file_path = folder.resolve(&input.file_path).into_owned();
        }
    }

    fn access(&self, input: &ReadInput) -> Vec<ToolAccess> {
        vec![match parse_blob_path(&input.file_path) {
            Some(_) => ToolAccess::ReadBlob { blob: input.file_path.clone() },
            None => ToolAccess::Read { path: input.file_path.clone() },
        }]
    }

    async fn run(&self, input: ReadInput, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let window = page::LineWindow::new(input.offset, input.limit);
        if let Some(blob) = parse_blob_path(&input.file_path) {
            let bytes = load_blob(blob, cx).await?;
            return Ok(page_output(page::render_text_page(bytes.as_slice(), window)?, "line"));
        }
        let name = input.file_path;
        let (path, target) = cx
            .run_blocking(move |workspace| {
                let path = workspace.resolve_path(&name)?;
                let target = match workspace.read(&name) {
                    Ok(OpenedPath::Folder(names)) => {
                        let page = page::render_folder_page(&names, window)?;
                        ReadTargetContent::Page(page_output(page, "item"))
                    }
                    Ok(OpenedPath::File(file)) => load_file(file, window)?,
                    Err(windlass_sandbox::Error::NotFound { .. }) => ReadTargetContent::Missing,
                    Err(error) => return Err(error.into()),
                };
                Ok((path, target))
            })
            .await?;
        match target {
            ReadTargetContent::Page(output) => Ok(output),
            ReadTargetContent::WholeFile(bytes) => {
                if let Some(language_servers) = &self.language_servers {
                    language_servers.open_for_read(&cx.world, &path);
                }
                let mut output = render_file(&path, bytes, window, cx).await?;
                let length = output.text.len();
                output.text.push_str(&nearby_instructions(&path, length, cx).await?);
                Ok(output)
            }
            ReadTargetContent::Missing => Err(crate::path_not_found(cx, &path).await),
        }
    }
}

/// Returns a page as output, with its size as the title. `noun` is what the page consists of.
fn page_output(page: page::RenderedPage, noun: &str) -> ToolOutput {
    let shown = usize::try_from(page.shown).unwrap_or(usize::MAX);
    let title = if shown == 0 { "empty".to_owned() } else { pluralize(shown, noun) };
    ToolOutput { title, text: page.text, ..ToolOutput::default() }
}

/// Reads a file whole, or only a page of it if it is too large to be changed anyway.
fn load_file(file: File, window: page::LineWindow) -> Result<ReadTargetContent, CallFailure> {
    let read_failed = |error| CallFailure::new(format!("the file could not be read: {error}"));
    if file.metadata().map_err(read_failed)?.len() > MAX_CHANGED_FILE_BYTES {
        let page = page::render_text_page(BufReader::new(file), window)?;
        return Ok(ReadTargetContent::Page(page_output(page, "line")));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(MAX_CHANGED_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(read_failed)?;
    Ok(ReadTargetContent::WholeFile(bytes.into()))
}

/// Renders a whole file for the model, and marks it as seen.
async fn render_file(
    path: &str,
    bytes: Arc<[u8]>,
    window: page::LineWindow,
    cx: &CallContext<'_>,
) -> Result<ToolOutput, CallFailure> {
    let content = Arc::clone(&bytes);
    let output = match image::detect_mime(&bytes) {
        None => {
            let page = cx.run_blocking(move |_| page::render_text_page(&*bytes, window)).await?;
            page_output(page, "line")
        }
        Some("application/pdf") => render_pdf(path, bytes, window, cx).await?,
        Some(_) => {
            let prepared = cx.run_blocking(move |_| {
                image::prepare_image(bytes.to_vec()).map_err(CallFailure::new)
            });
            let image::PreparedImage { mime, bytes, note } = prepared.await?;
            let note = note.map(|note| format!(", {note}")).unwrap_or_default();
            let text = format!("[{path} is shown as {mime}{note}]");
            let attachments = vec![store_attachment(path, mime, bytes, cx).await?];
            ToolOutput { text, attachments, ..ToolOutput::default() }
        }
    };
    cx.caller.mark_seen(path, &content);
    Ok(output)
}

/// Attaches a PDF, or renders its text for a model without `supports_pdfs`.
async fn render_pdf(
    path: &str,
    bytes: Arc<[u8]>,
    window: page::LineWindow,
    cx: &CallContext<'_>,
) -> Result<ToolOutput, CallFailure> {
    if cx.step.supports_pdfs {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            let text =
                format!("{path} is a PDF of {} bytes, too large for any provider", bytes.len());
            return Err(CallFailure::new(text));
        }
        let attachments =
            vec![store_attachment(path, "application/pdf", bytes.to_vec(), cx).await?];
        let text = format!("[{path} is shown as application/pdf]");
        return Ok(ToolOutput { text, attachments, ..ToolOutput::default() });
    }
    let page = cx
        .run_blocking(move |_| {
            let text = pdf::extract_text(bytes.to_vec()).map_err(CallFailure::new)?;
            page::render_text_page(text.as_bytes(), window)
        })
        .await?;
    let text = format!("[text of a PDF, without images and layout]\n{}", page.text);
    Ok(ToolOutput { text, ..page_output(page, "line") })
}

/// The largest document that providers accept.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 20 << 20;

/// Stores an image or document as a blob, to show it to the model as an `Attachment`.
pub(crate) async fn store_attachment(
    path: &str,
    mime: &str,
    bytes: Vec<u8>,
    cx: &CallContext<'_>,
) -> Result<Attachment, CallFailure> {
    let blob = cx.caller.put_blob(bytes).await?;
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    Ok(Attachment { name, mime_type: mime.to_owned(), blob })
}

#[cfg(test)]
mod tests;
