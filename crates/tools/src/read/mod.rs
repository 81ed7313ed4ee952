//! `read`: a page of a text file as numbered lines, a folder as its entries, a picture or document
//! to look at, or a stored output.
//!
//! A page is read in constant memory, however long the file or its lines are. A file that could be
//! changed is read whole, because its digest tells later whether somebody else has changed it.

use crate::picture;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::sync::Arc;
use windlass_lsp::Code;
use windlass_protocol::{Access, Attachment, BlobRef, Output};
use windlass_sandbox::{Entry, LARGEST};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

mod nearby;
mod page;
pub(crate) mod pdf;

pub use crate::picture::{Thumbnail, mime, thumbnail};

/// The tool.
#[derive(Default)]
pub struct Read {
    pub(crate) code: Option<Code>,
}

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file.
    file_path: String,
    /// The first line to read, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read; 2000 if not given.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// What the path means.
fn stored(path: &str) -> Option<BlobRef> {
    path.strip_prefix("blob:").and_then(BlobRef::parse)
}

/// What stands at the path.
enum Found {
    /// A page of it.
    Page(String),
    /// A file, whole.
    Whole(Arc<[u8]>),
    Nothing,
}

#[async_trait]
impl Tool for Read {
    type Input = Input;

    fn name(&self) -> &str {
        "read"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![match stored(&input.file_path) {
            Some(_) => Access::Recall { blob: input.file_path.clone() },
            None => Access::Read { path: input.file_path.clone() },
        }]
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let window = page::Window::new(input.offset, input.limit);
        let title = input.file_path.clone();
        if let Some(blob) = stored(&input.file_path) {
            let bytes = cx.caller.recall(&blob).await?;
            let text = page::of_text(bytes.as_slice(), window)?;
            return Ok(Output { title, text, ..Output::default() });
        }
        let name = input.file_path;
        let (path, found) = cx
            .blocking(move |world| {
                let path = world.locate(&name)?;
                let found = match world.read(&name) {
                    Ok(Entry::Folder(names)) => Found::Page(page::of_folder(&names, window)?),
                    Ok(Entry::File(file)) => look(file, window)?,
                    Err(windlass_sandbox::Error::Missing { .. }) => Found::Nothing,
                    Err(error) => return Err(error.into()),
                };
                Ok((path, found))
            })
            .await?;
        match found {
            Found::Page(text) => Ok(Output { title, text, ..Output::default() }),
            Found::Whole(bytes) => {
                if let Some(code) = &self.code {
                    code.warm(&cx.world, &path);
                }
                let mut output = whole(&path, bytes, window, cx).await?;
                let length = output.text.len();
                output.text.push_str(&nearby::instructions(&path, length, cx).await?);
                Ok(Output { title, ..output })
            }
            Found::Nothing => Err(crate::missing(cx, &path).await),
        }
    }
}

/// Reads a file whole, or only a page of it if it is too large to be changed anyway.
fn look(file: File, window: page::Window) -> Result<Found, Failure> {
    let broken = |error| Failure::new(format!("it could not be read: {error}"));
    let large = file.metadata().map_err(broken)?.len() > LARGEST;
    if large {
        return Ok(Found::Page(page::of_text(BufReader::new(file), window)?));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(broken)?;
    Ok(Found::Whole(bytes.into()))
}

/// What a model is shown of a whole file.
async fn whole(
    path: &str,
    bytes: Arc<[u8]>,
    window: page::Window,
    cx: &Cx<'_>,
) -> Result<Output, Failure> {
    let shown = Arc::clone(&bytes);
    let output = match picture::mime(&bytes) {
        None => {
            let text = cx.blocking(move |_| page::of_text(&*bytes, window)).await?;
            Output { text, ..Output::default() }
        }
        Some("application/pdf") => document(path, bytes, window, cx).await?,
        Some(_) => {
            let fitted = cx.blocking(move |_| picture::fit(bytes.to_vec()).map_err(Failure::new));
            let picture::Picture { mime, bytes, note } = fitted.await?;
            let note = note.map(|note| format!(", {note}")).unwrap_or_default();
            let text = format!("[{path} is shown as {mime}{note}]");
            let attachments = vec![attach(path, mime, bytes, cx).await?];
            Output { text, attachments, ..Output::default() }
        }
    };
    cx.caller.show(path, &shown);
    Ok(output)
}

/// A document to look at, or its text for a model that cannot.
async fn document(
    path: &str,
    bytes: Arc<[u8]>,
    window: page::Window,
    cx: &Cx<'_>,
) -> Result<Output, Failure> {
    if cx.scene.pdfs {
        if bytes.len() > LARGEST_DOCUMENT {
            let text = format!("{path} is a PDF of {} bytes; no provider takes it", bytes.len());
            return Err(Failure::new(text));
        }
        let attachments = vec![attach(path, "application/pdf", bytes.to_vec(), cx).await?];
        let text = format!("[{path} is shown as application/pdf]");
        return Ok(Output { text, attachments, ..Output::default() });
    }
    let text = cx
        .blocking(move |_| {
            let text = pdf::text(bytes.to_vec()).map_err(Failure::new)?;
            page::of_text(text.as_bytes(), window)
        })
        .await?;
    let text = format!("[the text of a PDF, without its pictures and layout]\n{text}");
    Ok(Output { text, ..Output::default() })
}

/// What providers take in one file.
pub(crate) const LARGEST_DOCUMENT: usize = 20 << 20;

/// Keeps what is shown to a model besides words.
pub(crate) async fn attach(
    path: &str,
    mime: &str,
    bytes: Vec<u8>,
    cx: &Cx<'_>,
) -> Result<Attachment, Failure> {
    let blob = cx.caller.keep(bytes).await?;
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    Ok(Attachment { name, mime: mime.to_owned(), blob })
}

#[cfg(test)]
mod tests;
