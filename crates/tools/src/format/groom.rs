//! All files of a call, groomed side by side before any of them is written.

use super::{Formats, Made};
use crate::Senses;
use crate::file::{Difference, diff};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::text::counted;
use windlass_sandbox::World;
use windlass_toolkit::{Cx, Failure};

/// How many files are formatted at a time, and how long all of them may take.
const ABREAST: usize = 4;
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest difference that is told of one file, and of all.
const LONGEST: usize = 4 << 10;
const LONGEST_IN_ALL: usize = 16 << 10;

/// A file that is to be written.
pub(crate) struct Draft {
    pub(crate) path: String,
    /// What it held before, wherever that stood; nothing if it is new.
    pub(crate) origin: Option<Arc<[u8]>>,
    pub(crate) after: Arc<[u8]>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groomed {
    /// What is written in place of what was wanted.
    pub(crate) after: Option<Arc<[u8]>>,
    /// What is told of it.
    pub(crate) note: Option<String>,
}

/// What the project's formatters make of files, one for each draft. Nothing is written.
pub(crate) async fn groom(
    senses: &Senses,
    cx: &Cx<'_>,
    drafts: Vec<Draft>,
) -> Result<Vec<Groomed>, Failure> {
    let Some(formats) = &senses.formats else {
        return Ok(vec![Groomed::default(); drafts.len()]);
    };
    let made = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            return Err(Failure::new("interrupted before anything was written"));
        }
        made = all(formats, &cx.world, &drafts) => made,
    };
    if made.iter().all(|made| *made == Made::Nothing) {
        return Ok(vec![Groomed::default(); drafts.len()]);
    }
    cx.blocking(move |_| Ok(told(drafts, made))).await
}

async fn all(formats: &Formats, world: &Arc<World>, drafts: &[Draft]) -> Vec<Made> {
    let deadline = Instant::now() + PATIENCE;
    let mut each = Vec::with_capacity(drafts.len());
    for draft in drafts {
        each.push(one(formats, world, draft, deadline));
    }
    futures_util::stream::iter(each).buffered(ABREAST).collect().await
}

async fn one(formats: &Formats, world: &Arc<World>, draft: &Draft, deadline: Instant) -> Made {
    let Draft { path, origin, after } = draft;
    let grooming = formats.groomed(world, path, origin.as_deref(), after);
    tokio::time::timeout_at(deadline, grooming).await.unwrap_or_else(|_| {
        let limit = PATIENCE.as_secs();
        Made::Left(format!("{path} is not formatted: {limit} s for all files were over."))
    })
}

/// What is told of the formatters' work.
fn told(drafts: Vec<Draft>, made: Vec<Made>) -> Vec<Groomed> {
    let mut rest = LONGEST_IN_ALL;
    let each = drafts.into_iter().zip(made).map(|(Draft { path, after, .. }, made)| match made {
        Made::Nothing => Groomed::default(),
        Made::Left(note) => Groomed { after: None, note: Some(note) },
        Made::Other { by, bytes } => {
            let note = match diff(&path, &after, &bytes) {
                Difference::Whole(text) if text.len() <= LONGEST.min(rest) => {
                    rest -= text.len();
                    let text = text.trim_end_matches('\n');
                    format!("Formatted by {by}; what it changed:\n{text}")
                }
                Difference::Whole(text) => {
                    let changed = |line: &&str| line.starts_with(['+', '-']);
                    // Two lines of the head begin in the same way.
                    let lines = text.lines().filter(changed).count().saturating_sub(2);
                    let lines = counted(lines, "line");
                    format!("{by} formatted {path}, {lines}; read it before you change it again.")
                }
                Difference::Unshown(_) => {
                    format!("{by} formatted {path}; read it before you change it again.")
                }
            };
            Groomed { after: Some(bytes), note: Some(note) }
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(lines: usize) -> (Draft, Made) {
        let text = |indent: &str| -> Arc<[u8]> {
            (0..lines).map(|n| format!("{indent}{n}\n")).collect::<String>().into_bytes().into()
        };
        let draft = Draft { path: "a.rs".into(), origin: None, after: text("") };
        (draft, Made::Other { by: "fmt".into(), bytes: text("    ") })
    }

    #[test]
    fn a_difference_is_shown_as_long_as_it_is_short() {
        let (draft, made) = other(2);
        let [Groomed { after, note }] = told(vec![draft], vec![made]).try_into().unwrap();
        assert_eq!(after.as_deref(), Some(b"    0\n    1\n".as_slice()));
        let note = note.unwrap();
        assert!(note.starts_with("Formatted by fmt; what it changed:\n--- a/a.rs\n"), "{note}");
        let (draft, made) = other(1_000);
        let [Groomed { after, note }] = told(vec![draft], vec![made]).try_into().unwrap();
        assert!(after.is_some());
        let expected = "fmt formatted a.rs, 2000 lines; read it before you change it again.";
        assert_eq!(note.unwrap(), expected);
    }

    #[test]
    fn many_files_do_not_say_more_than_fits() {
        let (drafts, made) = (0..100).map(|_| other(100)).unzip();
        let told = told(drafts, made);
        let all: usize = told.iter().map(|each| each.note.as_ref().unwrap().len()).sum();
        assert!(all < LONGEST_IN_ALL + 100 * 100, "{all}");
        assert!(told.iter().all(|each| each.after.is_some()));
    }
}
