//! `read`: a page of a text file as numbered lines, a folder as its entries, or a stored output.
//!
//! A page is read in constant memory, however long the file or its lines are.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::{BufReader, Read as _};
use windlass_protocol::{Access, BlobRef, Output};
use windlass_sandbox::Entry;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

mod page;

/// The tool.
pub struct Read;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file or folder, relative to the workspace; or `blob:…` for a stored output.
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
        let stored = match stored(&input.file_path) {
            Some(blob) => Some(cx.caller.recall(&blob).await?),
            None => None,
        };
        cx.blocking(move |world| {
            let window = page::Window::new(input.offset, input.limit);
            let text = match stored {
                Some(bytes) => page::of_text(bytes.as_slice(), window)?,
                None => match world.read(&input.file_path)? {
                    Entry::File(file) => page::of_text(BufReader::new(file), window)?,
                    Entry::Folder(names) => page::of_folder(&names, window)?,
                },
            };
            Ok(Output { title: input.file_path, text, ..Output::default() })
        })
        .await
    }
}

/// Reads at most one buffer's worth of bytes, to look at what kind of file it is.
fn peek(source: &mut impl std::io::BufRead) -> Result<&[u8], Failure> {
    source.fill_buf().map_err(|error| Failure::new(format!("it could not be read: {error}")))
}

/// Reads the rest of a source without keeping it, to count its lines.
fn count_lines(source: impl std::io::Read) -> std::io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let (mut lines, mut last, mut source) = (0, b'\n', source.take(u64::MAX));
    loop {
        let read = source.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        last = bytes.last().copied().unwrap_or(last);
    }
    Ok(if last == b'\n' { lines } else { lines + 1 })
}

#[cfg(test)]
mod tests;
