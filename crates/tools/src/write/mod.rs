//! `write`: a file's whole content, replaced at once.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{Access, Display, Output};
use windlass_sandbox::{Entry, World};
use windlass_toolkit::tool::blocking;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct Write;

/// What it is called with.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace. Folders are made as needed.
    file_path: String,
    /// Its whole new content.
    content: String,
}

#[async_trait]
impl Tool for Write {
    type Input = Input;

    fn name(&self) -> &str {
        "write"
    }

    fn key(&self) -> &str {
        "edit"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![Access::Edit { path: input.file_path.clone() }]
    }

    async fn preview(&self, input: &Input, world: &Arc<World>) -> Option<String> {
        let input = input.clone();
        let diff = blocking(world, move |world| {
            let before = current(world, &input.file_path)?;
            Ok(diff(&input, &before))
        });
        diff.await.ok()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        if cx.cancel.is_cancelled() {
            return Err(Failure::new("interrupted before anything was written"));
        }
        cx.blocking(move |world| {
            let before = current(world, &input.file_path)?;
            if before == Before::Whole(input.content.clone().into_bytes()) {
                let text = format!("{} already has this content; nothing changed", input.file_path);
                return Err(Failure::new(text));
            }
            world.write(&input.file_path, input.content.as_bytes())?;
            let done = if before == Before::Nothing { "Created" } else { "Replaced" };
            let lines = match input.content.lines().count() {
                1 => "1 line".to_owned(),
                count => format!("{count} lines"),
            };
            Ok(Output {
                title: input.file_path.clone(),
                text: format!("{done} {} ({lines}).", input.file_path),
                display: Display::Diff { unified: diff(&input, &before) },
                ..Output::default()
            })
        })
        .await
    }
}

/// How much of a file is looked at to show what changes, and for how long.
const LONGEST: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(500);

/// What stands at the path before the write.
#[derive(PartialEq)]
enum Before {
    Nothing,
    Whole(Vec<u8>),
    /// More than is looked at.
    Long,
}

fn current(world: &World, path: &str) -> Result<Before, Failure> {
    match world.read(path) {
        Ok(Entry::File(file)) => {
            let mut bytes = Vec::new();
            let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
            read.map_err(|error| Failure::new(format!("{path} could not be read: {error}")))?;
            Ok(if bytes.len() as u64 > LONGEST { Before::Long } else { Before::Whole(bytes) })
        }
        Ok(Entry::Folder(_)) => Err(Failure::new(format!("{path} is a folder"))),
        Err(windlass_sandbox::Error::Missing { .. }) => Ok(Before::Nothing),
        Err(error) => Err(error.into()),
    }
}

fn diff(input: &Input, before: &Before) -> String {
    let before = match before {
        Before::Nothing => "".into(),
        Before::Whole(bytes) => String::from_utf8_lossy(bytes),
        Before::Long => {
            let lines = input.content.lines().count();
            return format!(
                "{}: a file of more than {LONGEST} bytes is replaced by {lines} lines",
                input.file_path
            );
        }
    };
    let mut config = TextDiff::configure();
    config.timeout(PATIENCE);
    let diff = config.diff_lines(before.as_ref(), &input.content);
    let (old, new) = (format!("a/{}", input.file_path), format!("b/{}", input.file_path));
    diff.unified_diff().header(&old, &new).to_string()
}

#[cfg(test)]
mod tests;
