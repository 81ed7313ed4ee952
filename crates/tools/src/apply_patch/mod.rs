//! `apply_patch`: several files changed by one patch, all of them or none.
//!
//! [`parse`](fn@parse) reads it, [`plan`](fn@plan) decides on what the files hold what becomes of
//! each, before anything is touched; here that becomes one batch of changes. A patch which is cut
//! off, stands in two places or does not fit is refused as a whole.

mod anchor;
mod parse;
mod place;
mod plan;
mod seek;
mod shift;

pub use parse::{Hunk, Line, Section, parse};
pub use place::{Placed, place};
pub(crate) use plan::{Change, Files, paths, plan};

use crate::Senses;
use crate::file::{Standing, carry_out, diff, reviewed, taken_back};
use crate::format::{Draft, groom};

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
#[derive(Default)]
pub struct ApplyPatch {
    pub(crate) senses: Senses,
}

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
        Ok(Some(Work::out(input, cx).await?.groomed(&self.senses, cx).await?.diff))
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let work = Work::out(&input, cx).await?.groomed(&self.senses, cx).await?;
        let Work { rewrites, lines, notes, diff, .. } = work;
        let review = carry_out(&self.senses, cx, rewrites).await?;
        let display = Display::Diff { unified: diff };
        let title = lines.join(", ");
        let text = lines.into_iter().chain(notes).collect::<Vec<_>>().join("\n");
        Ok(reviewed(Output { title, text, display, ..Output::default() }, review))
    }
}

/// What a patch comes to.
#[derive(Default)]
struct Work {
    rewrites: Vec<Rewrite>,
    /// What files that are moved held, by the paths they are moved to.
    origins: BTreeMap<String, Arc<[u8]>>,
    /// What becomes of each file, in words.
    lines: Vec<String>,
    /// What the model should look at again.
    notes: Vec<String>,
    diff: String,
}

/// The files a patch names, as they stand, by their resolved paths.
struct Stand(BTreeMap<String, Standing>);

impl Files for Stand {
    fn bytes(&mut self, path: &str) -> Result<Option<Arc<[u8]>>, Refusal> {
        Ok(self.before(path))
    }
}

impl Stand {
    /// Looks at every file, and spells its path in the sections as it is resolved.
    async fn of(sections: &mut [Section], cx: &Cx<'_>) -> Result<Stand, Failure> {
        let mut stand = BTreeMap::new();
        let mut spellings: BTreeMap<String, String> = BTreeMap::new();
        for spelled in paths(sections) {
            let standing = Standing::of(cx, &spelled).await?;
            if let Some(other) = spellings.insert(standing.path.clone(), spelled.clone()) {
                let words =
                    format!("{other} and {spelled} are one file. Spell its path in one way.");
                return Err(failed(Refusal::new(words)));
            }
            stand.insert(standing.path.clone(), standing);
        }
        let real: BTreeMap<String, String> =
            spellings.into_iter().map(|(real, spelled)| (spelled, real)).collect();
        for path in sections.iter_mut().flat_map(Section::paths_mut) {
            if let Some(real) = real.get(path) {
                real.clone_into(path);
            }
        }
        Ok(Stand(stand))
    }

    /// Refuses what would be lost unseen. A hunk brings its own proof of what stands there. What
    /// is replaced must have been read, and what is deleted, if it was, must be what was read.
    async fn check(&self, sections: &[Section], cx: &Cx<'_>) -> Result<(), Failure> {
        for section in sections {
            let lost = match section {
                Section::Add { path, .. } => Some(path),
                Section::Delete { path } => {
                    Some(path).filter(|path| cx.caller.seen(path).is_some())
                }
                Section::Update { path, to, .. } => to.as_ref().filter(|to| *to != path),
            };
            if let Some(standing) = lost.and_then(|path| self.0.get(path)) {
                standing.check(cx).await?;
            }
        }
        Ok(())
    }

    fn content(&self, path: &str) -> Option<&Content> {
        self.0.get(path)?.content.as_ref()
    }

    fn before(&self, path: &str) -> Option<Arc<[u8]>> {
        self.content(path).map(|content| Arc::clone(&content.bytes))
    }
}

impl Work {
    async fn out(input: &Input, cx: &Cx<'_>) -> Result<Work, Failure> {
        let mut sections = parse(&input.patch_text).map_err(failed)?;
        let mut stand = Stand::of(&mut sections, cx).await?;
        stand.check(&sections, cx).await?;
        let planned = cx.blocking(move |_| {
            let mut work = Work::default();
            for change in plan(&sections, &mut stand).map_err(failed)? {
                work.add(change, &stand);
            }
            Ok(work)
        });
        planned.await
    }

    fn add(&mut self, change: Change, stand: &Stand) {
        match change {
            Change::Create { path, after } => {
                self.lines.push(format!("Added {path}."));
                self.push(stand, path, Some(after), None);
            }
            Change::Overwrite { path, after, keeps } => {
                self.lines.push(format!("Replaced {path}, which was there already."));
                if keeps {
                    self.notes.push(format!(
                        "{path} keeps its encoding and line endings, which differ from what you \
                         wrote."
                    ));
                }
                self.push(stand, path, Some(after), None);
            }
            Change::Delete { path } => {
                self.lines.push(format!("Deleted {path}."));
                self.push(stand, path, None, None);
            }
            Change::Update { path, after, loosely } => {
                self.lines.push(format!("Updated {path}."));
                if loosely {
                    self.warn(&path, stand.before(&path), &after);
                }
                let mode = stand.content(&path).and_then(|content| content.mode);
                self.push(stand, path, Some(after), mode);
            }
            Change::Move { path, to, after, loosely, replaces } => {
                let replacing = if replaces { ", replacing what was there" } else { "" };
                self.lines.push(format!("Moved {path} to {to}{replacing}."));
                if loosely {
                    self.warn(&to, stand.before(&path), &after);
                }
                let mode = stand.content(&path).and_then(|content| content.mode);
                if let Some(before) = stand.before(&path) {
                    self.origins.insert(to.clone(), before);
                }
                self.push(stand, path, None, None);
                self.push(stand, to, Some(after), mode);
            }
        }
    }

    fn warn(&mut self, path: &str, before: Option<Arc<[u8]>>, after: &Arc<[u8]>) {
        let changed = diff(path, &before.unwrap_or_default(), after).text();
        self.notes.push(format!(
            "The patch does not stand in {path} exactly; its place was found by overlooking \
             indentation and punctuation. What changed:\n{}",
            changed.trim_end_matches('\n')
        ));
    }

    fn push(&mut self, stand: &Stand, path: String, after: Option<Arc<[u8]>>, mode: Option<u32>) {
        let before = stand.before(&path);
        let rewrite = Rewrite { path, before, after, mode };
        self.diff.push_str(&shown(&rewrite));
        self.rewrites.push(rewrite);
    }

    /// The same as the project's formatters would have it.
    async fn groomed(mut self, senses: &Senses, cx: &Cx<'_>) -> Result<Work, Failure> {
        let draft = |rewrite: &Rewrite| {
            let origin = self.origins.get(&rewrite.path).or(rewrite.before.as_ref()).cloned();
            Some(Draft { path: rewrite.path.clone(), origin, after: rewrite.after.clone()? })
        };
        let drafts: Vec<Draft> = self.rewrites.iter().filter_map(draft).collect();
        let groomed = groom(senses, cx, drafts).await?;
        let (mut changed, mut same) = (false, Vec::new());
        let written = self.rewrites.iter_mut().filter(|rewrite| rewrite.after.is_some());
        for (rewrite, groomed) in written.zip(groomed) {
            if let Some(after) = groomed.after {
                changed = true;
                if rewrite.before.as_ref() == Some(&after) {
                    same.push(rewrite.path.clone());
                }
                rewrite.after = Some(after);
            }
            self.notes.extend(groomed.note);
        }
        if !changed {
            return Ok(self);
        }
        let mut rewrites = self.rewrites;
        rewrites.retain(|rewrite| !same.contains(&rewrite.path));
        let taken_back: Vec<String> = same.iter().map(|path| taken_back(path)).collect();
        if rewrites.is_empty() {
            return Err(Failure::new(taken_back.join("\n")));
        }
        self.notes.extend(taken_back.into_iter().map(|note| note + "."));
        let shown = cx.blocking(move |_| {
            let shown = rewrites.iter().map(shown).collect();
            Ok((rewrites, shown))
        });
        (self.rewrites, self.diff) = shown.await?;
        Ok(self)
    }
}

/// What becomes of a file, as a person is shown it.
fn shown(Rewrite { path, before, after, .. }: &Rewrite) -> String {
    let empty = <&[u8]>::default();
    let [old, new] = [before, after].map(|side| side.as_deref().unwrap_or(empty));
    diff(path, old, new).text()
}

fn failed(refusal: Refusal) -> Failure {
    Failure::new(format!("Nothing was changed: {refusal}"))
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
