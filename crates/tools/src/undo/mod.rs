//! `undo`: takes back what a session changed in files, and nothing else.
//!
//! A person asks for it; the session names the changes, as its log has them. What somebody else
//! has changed since stays: [`merge`] takes the session's changes out from around it. Taking an
//! undo back is the same thing, so there is no redo of its own.

mod lines;
mod merge;

use crate::file::{diff, put_back};
use async_trait::async_trait;
use merge::{Step, Taken, take_back};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_lsp::Code;
use windlass_protocol::files::{LEFT, UNDO};
use windlass_protocol::text::counted;
use windlass_protocol::{Access, Change, Display, Output, Version, View};
use windlass_sandbox::{Content, Rewrite};
use windlass_toolkit::{Cx, Definition, Ends, Failure, Scene, Tool};

/// The tool.
#[derive(Default)]
pub struct Undo {
    pub(crate) code: Option<Code>,
}

#[async_trait]
impl Tool for Undo {
    type Input = windlass_protocol::Undo;

    fn name(&self) -> &str {
        UNDO
    }

    fn key(&self) -> &str {
        "edit"
    }

    /// Only a person takes something back.
    fn offered(&self, _scene: &Scene) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<windlass_protocol::Undo>(include_str!("description.md"))
    }

    fn access(&self, input: &Self::Input) -> Vec<Access> {
        let paths: BTreeSet<&String> = input.changes.iter().map(|change| &change.path).collect();
        paths.into_iter().map(|path| Access::Edit { path: path.clone() }).collect()
    }

    async fn preview(&self, input: &Self::Input, cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        let work = Work::out(input, cx).await?;
        Ok(Some(work.diff + &work.notes.concat()))
    }

    async fn run(&self, input: Self::Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Work { rewrites, diff, notes, left } = Work::out(&input, cx).await?;
        let paths: Vec<&str> = rewrites.iter().map(|rewrite| rewrite.path.as_str()).collect();
        let done = match paths.as_slice() {
            [] if !left.is_empty() => {
                return Err(Failure::new(format!("Nothing was changed.\n{}", notes.concat())));
            }
            [] => "The files are already as they were before.\n".to_owned(),
            paths => format!("Put back {}: {}.\n", counted(paths.len(), "file"), paths.join(", ")),
        };
        if !rewrites.is_empty() {
            // The model is told that they changed, not what they hold: it has to look again.
            put_back(self.code.as_ref(), cx, rewrites).await?;
        }
        let display = Display::Diff { unified: diff };
        let (title, text) = (done.trim().to_owned(), done + &notes.concat());
        let metadata = [(LEFT.to_owned(), left.into())].into_iter().collect();
        Ok(Output { title, text, display, metadata, ..Output::default() })
    }
}

/// What taking back comes to.
#[derive(Default)]
struct Work {
    rewrites: Vec<Rewrite>,
    diff: String,
    /// What a person has to know, a line each.
    notes: Vec<String>,
    /// The files that are left as they are.
    left: Vec<String>,
}

impl Work {
    async fn out(input: &windlass_protocol::Undo, cx: &Cx<'_>) -> Result<Work, Failure> {
        let mut files: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
        for change in &input.changes {
            let changes = files.entry(&change.path).or_default();
            // Most changes go on from where the last one ended: then only the ends matter.
            match changes.last_mut().filter(|last| copy(&last.after) == copy(&change.before)) {
                Some(last) => last.after.clone_from(&change.after),
                None => changes.push(change.clone()),
            }
        }
        let mut work = Work::default();
        for (path, changes) in files {
            match versions(&changes, cx).await {
                Ok(steps) => {
                    let mode = changes.first().and_then(|change| change.before.as_ref()?.mode);
                    work.add(path.to_owned(), steps, (mode, input.view), cx).await?;
                }
                Err(failure) => work.leave(path, &failure.text),
            }
        }
        Ok(work)
    }

    fn leave(&mut self, path: &str, why: &str) {
        self.notes.push(format!("{path} was left as it is: {why}\n"));
        self.left.push(path.to_owned());
    }

    async fn add(
        &mut self,
        path: String,
        steps: Vec<Ends>,
        (mode, view): (Option<u32>, View),
        cx: &Cx<'_>,
    ) -> Result<(), Failure> {
        let name = path.clone();
        let oldest = steps.first().and_then(|[before, _]| before.clone());
        let (now, taken) = cx
            .blocking(move |world| {
                let now = world.load(&name)?;
                let bytes = now.as_ref().map(|content| &*content.bytes);
                let steps: Vec<Step<'_>> = steps
                    .iter()
                    .map(|[before, after]| Step {
                        before: before.as_deref(),
                        after: after.as_deref(),
                    })
                    .collect();
                let taken = take_back(bytes, &steps);
                Ok((now, taken))
            })
            .await?;
        let after = match taken {
            Taken::Unchanged => return Ok(()),
            Taken::Content(after) => after.map(Arc::from),
            Taken::Conflict { .. } if view == View::Made => {
                self.notes
                    .push(format!("{path} was changed by somebody else in the same places\n"));
                oldest
            }
            Taken::Conflict { content, places, left } => {
                let places = counted(places, "place");
                let more = match left {
                    0 => String::new(),
                    left => {
                        format!("; {} to it could not be taken back", counted(left, "older change"))
                    }
                };
                self.notes.push(format!(
                    "{path} was changed by somebody else in the same {places}; both versions are \
                     marked there. Choose between them{more}\n"
                ));
                Some(content.into())
            }
            Taken::Stuck { why } => {
                self.leave(&path, &why);
                return Ok(());
            }
        };
        // The mode of a file that is there may have been changed by somebody else.
        let mode = mode.filter(|_| now.is_none());
        let before = now.map(|Content { bytes, .. }| bytes);
        let sides = (before.clone(), after.clone(), path.clone());
        let shown = cx.blocking(move |_| {
            let (now, back, path) = sides;
            let [now, back] = [&now, &back].map(|side| side.as_deref().unwrap_or_default());
            Ok(match view {
                View::Back => diff(&path, now, back),
                View::Made => diff(&path, back, now),
            })
        });
        self.diff.push_str(&shown.await?.text());
        self.rewrites.push(Rewrite { path, before, after, mode });
        Ok(())
    }
}

fn copy(version: &Option<Version>) -> Option<&windlass_protocol::BlobRef> {
    version.as_ref().map(|version| &version.copy)
}

async fn versions(changes: &[Change], cx: &Cx<'_>) -> Result<Vec<Ends>, Failure> {
    let mut steps = Vec::with_capacity(changes.len());
    for change in changes {
        steps.push(cx.caller.versions(change).await?);
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
