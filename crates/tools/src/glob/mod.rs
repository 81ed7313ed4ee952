//! `glob`: files by their names, newest first.

use crate::paging::{PAGE, Total, footer, remarks, skipped};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use windlass_protocol::{Access, Output};
use windlass_sandbox::{Found, Tree, Wanted};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct Glob;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The glob.
    pattern: String,
    /// The folder to look in; the workspace if not given.
    path: Option<String>,
    /// The first result to show, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
}

impl Input {
    fn folder(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

#[async_trait]
impl Tool for Glob {
    type Input = Input;

    fn name(&self) -> &str {
        "glob"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![Access::Search { path: input.folder().to_owned() }]
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let cancel = cx.cancel.clone();
        cx.blocking(move |world| {
            let skipped = skipped(input.offset)?;
            let tree = world.tree(input.folder())?;
            let files = newest(&tree, &input, &|| cancel.is_cancelled())?;
            if cancel.is_cancelled() {
                return Err(Failure::new("interrupted before all files were seen"));
            }
            let text =
                page(&input, &files, skipped)? + &remarks(&tree.notes(), "folders were left out");
            Ok(Output { title: input.pattern, text, ..Output::default() })
        })
        .await
    }
}

/// A file's age first, so that the newest comes first and files of one age in the order of paths.
type Aged = (Reverse<SystemTime>, String);

fn newest(
    tree: &Tree<'_>,
    input: &Input,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Aged>, Failure> {
    let files = Mutex::new(Vec::new());
    let visit = |found: Found<'_>| {
        // Whatever is gone, or has become a link since the walk passed, is not listed.
        if let Ok(modified) = found.modified() {
            let aged = (Reverse(modified), found.into_path());
            files.lock().unwrap_or_else(PoisonError::into_inner).push(aged);
        }
    };
    let wanted = Wanted { globs: vec![input.pattern.clone()] };
    tree.each(&wanted, stop, &visit)?;
    let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
    files.sort_unstable();
    Ok(files)
}

fn page(input: &Input, files: &[Aged], skipped: usize) -> Result<String, Failure> {
    if files.is_empty() {
        return Ok(format!(
            "No file in {} matches {}. Hidden and ignored files are left out. Try a wider pattern \
             or another path.",
            input.folder(),
            input.pattern
        ));
    }
    let shown: Vec<&str> =
        files.iter().skip(skipped).take(PAGE).map(|(_, path)| path.as_str()).collect();
    let footer = footer(skipped, shown.len(), Total::Exactly(files.len()), ["file", "files"])?;
    Ok(format!("{}\n{footer}", shown.join("\n")).trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests;
