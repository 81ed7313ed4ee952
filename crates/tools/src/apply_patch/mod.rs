//! `apply_patch`: several files changed by one patch, all of them or none.
//!
//! [`parse`](fn@parse) reads it, [`plan`](fn@plan) decides on the text of the files what becomes of
//! each, before anything is touched; here that becomes one batch of changes. A patch which is cut
//! off, stands in two places or does not fit is refused as a whole.

mod nearest;
mod parse;
mod place;
mod plan;
mod seek;

pub use parse::{Hunk, Line, Section, parse};
pub use place::place;
pub(crate) use plan::{Change, Files, paths, plan};

use crate::file::{Standing, carry_out, diff};
use crate::text::Text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use windlass_protocol::{Access, Display, Output};
use windlass_sandbox::{Content, Rewrite};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct ApplyPatch;

/// What it is called with.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    patch_text: String,
}

#[async_trait]
impl Tool for ApplyPatch {
    type Input = Input;

    fn name(&self) -> &str {
        "apply_patch"
    }

    fn key(&self) -> &str {
        "edit"
    }

    fn offered(&self, scene: &Scene) -> bool {
        crate::patches(scene)
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    /// A patch that cannot be read touches nothing.
    fn access(&self, input: &Input) -> Vec<Access> {
        let paths = parse(&input.patch_text).map(|sections| paths(&sections)).unwrap_or_default();
        paths.into_iter().map(|path| Access::Edit { path }).collect()
    }

    async fn preview(&self, input: &Input, cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        Ok(Some(Work::out(input, cx).await?.diff))
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Work { rewrites, lines, diff } = Work::out(&input, cx).await?;
        carry_out(cx, rewrites).await?;
        let display = Display::Diff { unified: diff };
        let title = lines.join(", ");
        Ok(Output { title, text: lines.join("\n"), display, ..Output::default() })
    }
}

/// What a patch comes to.
#[derive(Default)]
struct Work {
    rewrites: Vec<Rewrite>,
    /// What becomes of each file, in words.
    lines: Vec<String>,
    diff: String,
}

/// The files a patch names, as they stand.
struct Stand(BTreeMap<String, Option<Content>>);

impl Files for Stand {
    fn view(&mut self, path: &str) -> Result<Option<String>, Refusal> {
        let Some(content) = self.content(path) else { return Ok(None) };
        match Text::decode(content.bytes.to_vec()) {
            // A patch knows no other line end, and this keeps every byte in its place.
            Ok(text) => Ok(Some(text.view().replace('\r', "\n"))),
            Err(binary) => Err(Refusal::new(format!("{path}: {binary}"))),
        }
    }

    fn holds(&mut self, path: &str) -> Result<bool, Refusal> {
        Ok(self.content(path).is_some())
    }
}

impl Stand {
    fn content(&self, path: &str) -> Option<&Content> {
        self.0.get(path).and_then(Option::as_ref)
    }
}

impl Work {
    async fn out(input: &Input, cx: &Cx<'_>) -> Result<Work, Failure> {
        let failed = |refusal: Refusal| Failure::new(format!("Nothing was changed: {refusal}"));
        let sections = parse(&input.patch_text).map_err(failed)?;
        let mut files = BTreeMap::new();
        for path in paths(&sections) {
            let standing = Standing::of(cx, &path).await?;
            // A hunk brings its own proof of what stands there. What goes as a whole must not go
            // with something the caller has never seen in it.
            let replaced = sections.iter().any(|section| match section {
                Section::Add { path: whole, .. } | Section::Delete { path: whole } => {
                    *whole == path
                }
                Section::Update { to, .. } => to.as_ref() == Some(&path),
            });
            if replaced && cx.caller.seen(&standing.path).is_some() {
                standing.check(cx)?;
            }
            files.insert(path, standing.content);
        }
        let planned = cx.blocking(move |_| {
            let mut stand = Stand(files);
            let changes = plan(&sections, &mut stand).map_err(failed)?;
            let mut work = Work::default();
            for change in changes {
                work.add(change, &stand).map_err(failed)?;
            }
            Ok(work)
        });
        planned.await
    }

    fn add(&mut self, change: Change, stand: &Stand) -> Result<(), Refusal> {
        let new = |content: String| Some(Arc::from(content.into_bytes()));
        match change {
            Change::Create { path, content } => {
                self.lines.push(format!("Added {path}."));
                self.push(path, None, new(content), None);
            }
            Change::Overwrite { path, content } => {
                let before = stand.content(&path).map(|content| Arc::clone(&content.bytes));
                self.lines.push(format!("Replaced {path}, which was there already."));
                self.push(path, before, new(content), None);
            }
            Change::Delete { path } => {
                let before = stand.content(&path).map(|content| Arc::clone(&content.bytes));
                self.lines.push(format!("Deleted {path}."));
                self.push(path, before, None, None);
            }
            Change::Update { path, splices } => {
                let (before, after, mode) = spliced(stand, &path, &splices)?;
                self.lines.push(format!("Updated {path}."));
                self.push(path, Some(before), Some(after), mode);
            }
            Change::Move { path, to, splices, replaces } => {
                let (before, after, mode) = spliced(stand, &path, &splices)?;
                let there = stand.content(&to).map(|content| Arc::clone(&content.bytes));
                let replacing = if replaces { ", replacing what was there" } else { "" };
                self.lines.push(format!("Moved {path} to {to}{replacing}."));
                self.push(path, Some(before), None, None);
                self.push(to, there, Some(after), mode);
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        path: String,
        before: Option<Arc<[u8]>>,
        after: Option<Arc<[u8]>>,
        mode: Option<u32>,
    ) {
        let empty = <&[u8]>::default();
        let sides = [&before, &after].map(|side| side.as_deref().unwrap_or(empty));
        self.diff.push_str(&diff(&path, sides[0], sides[1]));
        self.rewrites.push(Rewrite { path, before, after, mode });
    }
}

/// What a file holds, what it is to hold, and its mode.
type Spliced = (Arc<[u8]>, Arc<[u8]>, Option<u32>);

fn spliced(stand: &Stand, path: &str, splices: &[crate::text::Splice]) -> Result<Spliced, Refusal> {
    let refused = |error: &dyn fmt::Display| Refusal::new(format!("{path}: {error}"));
    let content = stand.content(path).ok_or_else(|| refused(&"it does not exist"))?;
    let text = Text::decode(content.bytes.to_vec()).map_err(|error| refused(&error))?;
    let after = text.splice_lines(splices).map_err(|error| refused(&error))?;
    Ok((Arc::clone(&content.bytes), after.into(), content.mode))
}

/// Why a patch is not applied, in words for the model that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    pub(crate) fn new(text: impl Into<String>) -> Refusal {
        Refusal(text.into())
    }

    /// A refusal about one line of the patch, counted from 1.
    pub(crate) fn at(line: usize, text: impl fmt::Display) -> Refusal {
        Refusal(format!("line {line} of the patch: {text}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests;
