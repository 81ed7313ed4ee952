//! What a patch does to files, decided as a whole before anything is touched.

use super::place::{Placed, place};
use super::{Hunk, Refusal, Section};
use crate::text::Text;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// What a plan must know about the files. Their paths are resolved: two that differ are two files.
pub(crate) trait Files {
    /// What a file holds; nothing where no file is. A folder is refused.
    fn bytes(&mut self, path: &str) -> Result<Option<Arc<[u8]>>, Refusal>;
}

/// What becomes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A file where none is.
    Create { path: String, after: Arc<[u8]> },
    /// A file in place of another, which holds something else.
    Overwrite {
        path: String,
        after: Arc<[u8]>,
        /// Whether it is stored otherwise than the patch has it, as the file was.
        keeps: bool,
    },
    /// A file that is there goes.
    Delete { path: String },
    /// Parts of a file change.
    Update {
        path: String,
        after: Arc<[u8]>,
        /// See [`Placed::loosely`].
        loosely: bool,
    },
    /// A file goes elsewhere, and perhaps parts of it change.
    Move {
        path: String,
        to: String,
        after: Arc<[u8]>,
        loosely: bool,
        /// Whether a file stands at the target, which is lost.
        replaces: bool,
    },
}

/// Every path a patch names, sources and targets, each once: what needs permission.
pub(crate) fn paths(sections: &[Section]) -> Vec<String> {
    let mut seen = HashSet::new();
    let paths = sections.iter().flat_map(Section::paths);
    paths.filter(|path| seen.insert(*path)).cloned().collect()
}

/// Decides what a patch does, or refuses all of it.
pub(crate) fn plan(sections: &[Section], files: &mut impl Files) -> Result<Vec<Change>, Refusal> {
    let aims = gather(sections)?;
    check_targets(&aims)?;
    check_folders(&aims)?;
    let mut changes = Vec::new();
    for aim in aims {
        changes.extend(decide(aim, files)?);
    }
    if changes.is_empty() {
        let words =
            "the files already read as the patch wants them. Go on, or read them to be sure.";
        return Err(Refusal::new(words));
    }
    Ok(changes)
}

/// All that a patch says about one path.
struct Aim<'a> {
    path: &'a str,
    what: What<'a>,
}

enum What<'a> {
    Add {
        content: &'a str,
        /// Whether a section before deletes what stands there.
        deleted: bool,
    },
    Delete,
    Update {
        to: Option<&'a str>,
        sections: Vec<&'a [Hunk]>,
    },
}

/// Brings the sections for one path together, in the order in which paths are first named.
fn gather(sections: &[Section]) -> Result<Vec<Aim<'_>>, Refusal> {
    let mut aims: Vec<Aim<'_>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for section in sections {
        let (path, what) = match section {
            Section::Add { path, content } => (path, What::Add { content, deleted: false }),
            Section::Delete { path } => (path, What::Delete),
            Section::Update { path, to, hunks } => {
                let to = to.as_deref().filter(|to| to != path);
                if to.is_none() && hunks.is_empty() {
                    let words = format!("{path} is moved to where it is. Leave the section out.");
                    return Err(Refusal::new(words));
                }
                (path, What::Update { to, sections: vec![hunks] })
            }
        };
        match known.entry(path) {
            Entry::Vacant(entry) => {
                entry.insert(aims.len());
                aims.push(Aim { path, what });
            }
            Entry::Occupied(entry) => {
                if let Some(aim) = aims.get_mut(*entry.get()) {
                    join(aim, what)?;
                }
            }
        }
    }
    Ok(aims)
}

/// Adds what a later section says about the same path.
fn join<'a>(aim: &mut Aim<'a>, what: What<'a>) -> Result<(), Refusal> {
    let path = aim.path;
    let trouble = match (&mut aim.what, what) {
        (aim @ What::Delete, What::Add { content, .. }) => {
            *aim = What::Add { content, deleted: true };
            return Ok(());
        }
        (What::Update { to, sections }, What::Update { to: also_to, sections: more }) => {
            if let (Some(to), Some(also_to)) = (&*to, also_to)
                && *to != also_to
            {
                let words = format!("{path} is moved both to {to} and to {also_to}. Choose one.");
                return Err(Refusal::new(words));
            }
            *to = to.or(also_to);
            sections.extend(more);
            return Ok(());
        }
        (What::Add { .. }, What::Add { .. }) => {
            "added twice. Keep the section that has its whole content"
        }
        (What::Add { .. }, What::Update { .. }) | (What::Update { .. }, What::Add { .. }) => {
            "both added and updated. Write its whole content in \"*** Add File:\", or only update it"
        }
        (What::Add { .. }, What::Delete) => "added and then deleted. Leave one of the two out",
        (What::Delete, What::Delete) => "deleted twice. Leave one of the sections out",
        (What::Delete, What::Update { .. }) | (What::Update { .. }, What::Delete) => {
            "both updated and deleted. Leave one of the two out"
        }
    };
    Err(Refusal::new(format!("{path} is {trouble}.")))
}

/// A target is named once, and by nothing else.
fn check_targets(aims: &[Aim<'_>]) -> Result<(), Refusal> {
    let mut taken: HashMap<&str, &str> = aims.iter().map(|aim| (aim.path, "")).collect();
    for aim in aims {
        let What::Update { to: Some(to), .. } = aim.what else { continue };
        match taken.insert(to, aim.path) {
            None => {}
            Some("") => {
                return Err(Refusal::new(format!(
                    "{} is moved to {to}, which has a section of its own. A move replaces what \
                     stands at its target: leave that section out, or send it as a second patch.",
                    aim.path
                )));
            }
            Some(other) => {
                let (path, words) = (aim.path, "are both moved to");
                return Err(Refusal::new(format!("{other} and {path} {words} {to}. Choose one.")));
            }
        }
    }
    Ok(())
}

/// No path is a folder of another.
fn check_folders(aims: &[Aim<'_>]) -> Result<(), Refusal> {
    let mut keys: Vec<(Vec<&str>, &str)> = Vec::new();
    for aim in aims {
        let to = match aim.what {
            What::Update { to, .. } => to,
            What::Add { .. } | What::Delete => None,
        };
        let named = std::iter::once(aim.path).chain(to);
        keys.extend(named.map(|path| (path.split('/').collect(), path)));
    }
    // What lies in a folder comes right after it.
    keys.sort();
    for ((folder, path), (inner, within)) in keys.iter().zip(keys.iter().skip(1)) {
        if inner.len() > folder.len() && inner.starts_with(folder) {
            return Err(Refusal::new(format!(
                "{path} cannot be a file and the folder of {within} at once. Send two patches, the \
                 one that makes room first."
            )));
        }
    }
    Ok(())
}

fn decide(aim: Aim<'_>, files: &mut impl Files) -> Result<Option<Change>, Refusal> {
    let path = aim.path.to_owned();
    let before = files.bytes(&path)?;
    let change = match aim.what {
        What::Add { deleted: true, .. } if before.is_none() => return Err(gone(&path, "deleted")),
        What::Add { content, .. } => match before {
            None => Change::Create { path, after: content.as_bytes().into() },
            Some(before) => {
                let after = rewritten(&before, content);
                if after == before {
                    return Ok(None);
                }
                let keeps = *after != *content.as_bytes();
                Change::Overwrite { path, after, keeps }
            }
        },
        What::Delete => match before {
            None => return Err(gone(&path, "deleted")),
            Some(_) => Change::Delete { path },
        },
        What::Update { to, sections } => {
            let moves = sections.iter().all(|hunks| hunks.is_empty());
            let before = match before {
                Some(before) => before,
                None if moves => return Err(gone(&path, "moved")),
                None => {
                    return Err(Refusal::new(format!(
                        "{path} does not exist, so it cannot be updated. Look for where it is, or \
                         use \"*** Add File: {path}\" to make it."
                    )));
                }
            };
            // What only moves may be no text.
            let (after, loosely) = match moves {
                true => (Arc::clone(&before), false),
                false => updated(&path, &before, &sections)?,
            };
            match to {
                Some(to) => {
                    let replaces = files.bytes(to)?.is_some();
                    Change::Move { path, to: to.to_owned(), after, loosely, replaces }
                }
                None if after == before => return Ok(None),
                None => Change::Update { path, after, loosely },
            }
        }
    };
    Ok(Some(change))
}

/// A whole new content, stored as the file was if that can be.
fn rewritten(before: &Arc<[u8]>, content: &str) -> Arc<[u8]> {
    let text = Text::decode(before.to_vec()).ok();
    let after = text.and_then(|text| text.rewrite(content).ok());
    after.map_or_else(|| content.as_bytes().into(), Arc::from)
}

/// What a file holds after the hunks, and whether they stood there only loosely.
fn updated(
    path: &str,
    before: &Arc<[u8]>,
    sections: &[&[Hunk]],
) -> Result<(Arc<[u8]>, bool), Refusal> {
    let refused = |error: &dyn fmt::Display| Refusal::new(format!("{path}: {error}"));
    let text = Text::decode(before.to_vec()).map_err(|error| refused(&error))?;
    // A patch knows no other line end, and this keeps every byte in its place.
    let view = text.view().replace('\r', "\n");
    let Placed { splices, loosely } = place(path, &view, sections)?;
    let after = text.splice_lines(&splices).map_err(|error| refused(&error))?;
    Ok((after.into(), loosely))
}

fn gone(path: &str, done: &str) -> Refusal {
    let words = format!("{path} does not exist, so it cannot be {done}. Look for where it is.");
    Refusal::new(words)
}
