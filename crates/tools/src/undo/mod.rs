//! `undo`: takes back what a session changed in files, and nothing else.
//!
//! A person asks for it; the session names the changes, as its log has them. What somebody else
//! has changed since stays: [`merge`] takes the session's changes out from around it. Taking an
//! undo back is the same thing, so there is no redo of its own.

mod lines;
mod merge;

use crate::file::{change, count, diff};
use async_trait::async_trait;
use merge::{Step, Taken, take_back};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::files::UNDO;
use windlass_protocol::{Access, Change, Display, Output, Version, View};
use windlass_sandbox::Rewrite;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct Undo;

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
        let paths: std::collections::BTreeSet<&String> =
            input.changes.iter().map(|change| &change.path).collect();
        paths.into_iter().map(|path| Access::Edit { path: path.clone() }).collect()
    }

    async fn preview(&self, input: &Self::Input, cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        let work = Work::out(input, cx).await?;
        Ok(Some(work.diff + &work.notes.concat()))
    }

    async fn run(&self, input: Self::Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Work { rewrites, diff, notes } = Work::out(&input, cx).await?;
        if rewrites.is_empty() && !notes.is_empty() {
            return Err(Failure::new(format!("Nothing was changed.\n{}", notes.concat())));
        }
        let paths: Vec<&str> = rewrites.iter().map(|rewrite| rewrite.path.as_str()).collect();
        let done = match paths.as_slice() {
            [] => "The files are already as they were before.\n".to_owned(),
            paths => format!("Put back {}: {}.\n", count(paths.len(), "file"), paths.join(", ")),
        };
        // The model is told that they changed, not what they hold: it has to look again.
        change(cx, rewrites).await?;
        let display = Display::Diff { unified: diff };
        let (title, text) = (done.trim().to_owned(), done + &notes.concat());
        Ok(Output { title, text, display, ..Output::default() })
    }
}

/// What taking back comes to.
#[derive(Default)]
struct Work {
    rewrites: Vec<Rewrite>,
    diff: String,
    /// What a person has to know, a line each.
    notes: Vec<String>,
}

/// A version's bytes, where there is a file.
type Bytes = Option<Arc<[u8]>>;

impl Work {
    async fn out(input: &windlass_protocol::Undo, cx: &Cx<'_>) -> Result<Work, Failure> {
        let mut files: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        for change in &input.changes {
            files.entry(&change.path).or_default().push(change);
        }
        let mut work = Work::default();
        for (path, changes) in files {
            let mut steps = Vec::with_capacity(changes.len());
            let mut lost = None;
            for change in &changes {
                match (version(cx, &change.before).await, version(cx, &change.after).await) {
                    (Ok(before), Ok(after)) => steps.push((before, after)),
                    (Err(failure), _) | (_, Err(failure)) => lost = Some(failure),
                }
            }
            if let Some(failure) = lost {
                work.notes.push(format!("{path} was left as it is: {failure}\n"));
                continue;
            }
            let mode = changes.first().and_then(|change| change.before.as_ref()?.mode);
            work.add(path.to_owned(), steps, (mode, input.view), cx).await?;
        }
        Ok(work)
    }

    async fn add(
        &mut self,
        path: String,
        steps: Vec<(Bytes, Bytes)>,
        (mode, view): (Option<u32>, View),
        cx: &Cx<'_>,
    ) -> Result<(), Failure> {
        let name = path.clone();
        let (before, taken) = cx
            .blocking(move |world| {
                let now = world.load(&name)?.map(|content| content.bytes);
                let steps: Vec<Step<'_>> = steps
                    .iter()
                    .map(|(before, after)| Step {
                        before: before.as_deref(),
                        after: after.as_deref(),
                    })
                    .collect();
                let taken = take_back(now.as_deref(), &steps);
                Ok((now, taken))
            })
            .await?;
        let after = match taken {
            Taken::Unchanged => return Ok(()),
            Taken::Content(after) => after.map(Arc::from),
            Taken::Conflict { content, places } => {
                let places = count(places, "place");
                self.notes.push(format!(
                    "{path} was changed by somebody else in the same {places}; both versions are \
                     marked there. Choose between them\n"
                ));
                Some(content.into())
            }
            Taken::Stuck { why } => {
                self.notes.push(format!("{path} was left as it is: {why}\n"));
                return Ok(());
            }
        };
        let empty = <&[u8]>::default();
        let [now, back] = [&before, &after].map(|side: &Bytes| side.as_deref().unwrap_or(empty));
        self.diff.push_str(&match view {
            View::Back => diff(&path, now, back),
            View::Made => diff(&path, back, now),
        });
        self.rewrites.push(Rewrite { path, before, after, mode });
        Ok(())
    }
}

async fn version(cx: &Cx<'_>, version: &Option<Version>) -> Result<Bytes, Failure> {
    match version {
        Some(Version { copy, .. }) => Ok(Some(cx.caller.version(copy).await?.into())),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
