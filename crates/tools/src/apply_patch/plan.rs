//! What a patch does to files, decided as a whole before anything is touched.

use super::place::place;
use super::{Hunk, Refusal, Section};
use crate::text::Splice;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What a plan must know about the files.
pub(crate) trait Files {
    /// A file's text with all line ends as LF; nothing where no file is. A folder is refused, and
    /// so is what is no text.
    fn view(&mut self, path: &str) -> Result<Option<String>, Refusal>;

    /// Whether a file stands there, of whatever kind. A folder is refused.
    fn holds(&mut self, path: &str) -> Result<bool, Refusal>;
}

/// What becomes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A file where none is.
    Create { path: String, content: String },
    /// A file in place of another.
    Overwrite { path: String, content: String },
    /// A file that is there goes.
    Delete { path: String },
    /// Parts of a file change. There is at least one splice.
    Update { path: String, splices: Vec<Splice> },
    /// A file goes elsewhere, and perhaps parts of it change.
    Move {
        path: String,
        to: String,
        splices: Vec<Splice>,
        /// Whether a file stands at the target, which is lost.
        replaces: bool,
    },
}

/// Every path a patch names, sources and targets, each once: what needs permission.
pub(crate) fn paths(sections: &[Section]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for section in sections {
        let (path, to) = match section {
            Section::Add { path, .. } | Section::Delete { path } => (path, None),
            Section::Update { path, to, .. } => (path, to.as_ref()),
        };
        paths.extend(std::iter::once(path).chain(to).filter(|path| seen.insert(*path)).cloned());
    }
    paths
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
        let words = "nothing would change: the files already read as the patch wants them.";
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
    let mut known: HashMap<String, usize> = HashMap::new();
    for section in sections {
        let (path, what) = match section {
            Section::Add { path, content } => (path, What::Add { content, deleted: false }),
            Section::Delete { path } => (path, What::Delete),
            Section::Update { path, to, hunks } => {
                let to = to.as_deref().filter(|to| key(to) != key(path));
                if to.is_none() && hunks.is_empty() {
                    let words = format!("{path} is moved to where it is. Leave the section out.");
                    return Err(Refusal::new(words));
                }
                (path, What::Update { to, sections: vec![hunks] })
            }
        };
        match known.entry(key(path)) {
            Entry::Vacant(entry) => {
                entry.insert(aims.len());
                aims.push(Aim { path, what });
            }
            Entry::Occupied(entry) => {
                if let Some(aim) = aims.get_mut(*entry.get()) {
                    join(aim, path, what)?;
                }
            }
        }
    }
    Ok(aims)
}

/// Adds what a later section says about the same path.
fn join<'a>(aim: &mut Aim<'a>, path: &'a str, what: What<'a>) -> Result<(), Refusal> {
    let first = aim.path;
    if first != path {
        let words = format!("{first} and {path} are one file. Spell its path in one way.");
        return Err(Refusal::new(words));
    }
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
    let mut taken: HashMap<String, &str> = aims.iter().map(|aim| (key(aim.path), "")).collect();
    for aim in aims {
        let What::Update { to: Some(to), .. } = aim.what else { continue };
        match taken.insert(key(to), aim.path) {
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
    let mut keys: Vec<(Vec<String>, &str)> = Vec::new();
    for aim in aims {
        let to = match aim.what {
            What::Update { to, .. } => to,
            What::Add { .. } | What::Delete => None,
        };
        let named = std::iter::once(aim.path).chain(to);
        keys.extend(named.map(|path| (parts(path), path)));
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
    let change = match aim.what {
        What::Add { content, deleted } => {
            if deleted {
                must_hold(&path, "deleted", files)?;
            }
            let content = content.to_owned();
            match files.holds(&path)? {
                true => Change::Overwrite { path, content },
                false => Change::Create { path, content },
            }
        }
        What::Delete => {
            must_hold(&path, "deleted", files)?;
            Change::Delete { path }
        }
        What::Update { to, sections } => {
            let splices = if sections.iter().all(|hunks| hunks.is_empty()) {
                must_hold(&path, "moved", files)?;
                Vec::new()
            } else {
                let Some(view) = files.view(&path)? else {
                    return Err(Refusal::new(format!(
                        "{path} does not exist, so it cannot be updated. Look for where it is, or \
                         use \"*** Add File: {path}\" to make it."
                    )));
                };
                place(&path, &view, &sections)?
            };
            match to {
                Some(to) => {
                    let replaces = files.holds(to)?;
                    Change::Move { path, to: to.to_owned(), splices, replaces }
                }
                None if splices.is_empty() => return Ok(None),
                None => Change::Update { path, splices },
            }
        }
    };
    Ok(Some(change))
}

fn must_hold(path: &str, done: &str, files: &mut impl Files) -> Result<(), Refusal> {
    if files.holds(path)? {
        return Ok(());
    }
    let words = format!("{path} does not exist, so it cannot be {done}. Look for where it is.");
    Err(Refusal::new(words))
}

/// What tells whether two spellings mean one file. It only serves to compare: a link may stand in
/// the way.
fn key(path: &str) -> String {
    parts(path).join("/")
}

fn parts(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    if path.starts_with('/') {
        parts.push(String::new());
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| last != ".." && !last.is_empty()) => {
                parts.pop();
            }
            part => parts.push(part.to_owned()),
        }
    }
    parts
}
