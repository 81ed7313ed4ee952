//! After a command: which protected paths are not as they were.
//!
//! The door can be outrun by a program that changes a path after it was looked at. So protected
//! names are noted before a command and compared after it. Nothing is put back: it may be the
//! person who changed it meanwhile, in an editor or with git, and their work is not ours to undo.
//! Whoever reads the result is told.
//!
//! Names deeper down than the look goes, or behind more names than it takes the time for, are not
//! told of. There the door alone stands, and only a program that means to outruns it.

#![allow(clippy::disallowed_methods, reason = "compares files for the sandbox itself")]

use super::names::{Bound, closed, look};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How many names are noted at most.
const MOST: usize = 1_000;

/// How far a command may have put a name that outran the door.
const FAR: Bound = Bound { deepest: 8, most: 20_000, longest: Duration::from_millis(20) };

/// The clock of files runs a little behind.
const BEHIND: Duration = Duration::from_millis(50);

/// Protected names of a workspace as they were.
#[derive(Debug, Default)]
pub struct Snapshot {
    root: PathBuf,
    noted: BTreeMap<PathBuf, Stamp>,
    /// If there was more than was looked at: since when a name that was not noted is a new one.
    since: Option<SystemTime>,
}

/// What tells that something was written or replaced. The time of the last change of any kind
/// cannot be set by whoever makes one.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    folder: bool,
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    changed: (u64, i64, i64),
}

/// Notes the protected names of a workspace.
pub fn snapshot(root: &Path) -> Snapshot {
    let since = SystemTime::now().checked_sub(BEHIND);
    let (paths, cut) = protected(root);
    let noted = paths.into_iter().filter_map(|path| {
        let stamp = stamp(&fs::symlink_metadata(&path).ok()?);
        Some((path, stamp))
    });
    Snapshot { root: root.to_owned(), noted: noted.collect(), since: since.filter(|_| cut) }
}

/// The protected names that are new, gone or changed since.
pub fn changed(before: &Snapshot) -> Vec<PathBuf> {
    let now = snapshot(&before.root);
    let new = now.noted.keys().filter(|path| {
        let late = || before.since.is_none_or(|since| is_later(path, since));
        !before.noted.contains_key(*path) && late()
    });
    let is_as_was = |path: &Path, old: &Stamp| {
        fs::symlink_metadata(path).is_ok_and(|metadata| stamp(&metadata) == *old)
    };
    let other = before.noted.iter().filter(|(path, old)| !is_as_was(path, old));
    let found = new.chain(other.map(|(path, _)| path));
    let found = found.map(|path| path.strip_prefix(&before.root).unwrap_or(path).to_owned());
    let mut found: Vec<PathBuf> = found.collect();
    found.sort();
    // A new folder stands for everything in it.
    let mut told: Vec<PathBuf> = Vec::new();
    for path in found {
        if !told.iter().any(|above| path.starts_with(above)) {
            told.push(path);
        }
    }
    told
}

/// True if it was made or changed since.
fn is_later(path: &Path, since: SystemTime) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    #[cfg(unix)]
    let changed = {
        use std::os::unix::fs::MetadataExt;
        let seconds = Duration::from_secs(metadata.ctime().try_into().unwrap_or_default());
        let rest = Duration::from_nanos(metadata.ctime_nsec().try_into().unwrap_or_default());
        SystemTime::UNIX_EPOCH.checked_add(seconds + rest)
    };
    #[cfg(not(unix))]
    let changed = metadata.modified().ok();
    changed.is_none_or(|changed| changed >= since)
}

fn stamp(metadata: &Metadata) -> Stamp {
    let folder = metadata.is_dir();
    Stamp {
        folder,
        // What is in a folder is noted by itself.
        length: if folder { 0 } else { metadata.len() },
        modified: metadata.modified().ok().filter(|_| !folder),
        #[cfg(unix)]
        changed: {
            use std::os::unix::fs::MetadataExt;
            let time = if folder { (0, 0) } else { (metadata.ctime(), metadata.ctime_nsec()) };
            (metadata.ino(), time.0, time.1)
        },
    }
}

/// Protected names: at the top and in git's folder also links, and what lies in folders of them;
/// and whether there may be more.
fn protected(root: &Path) -> (Vec<PathBuf>, bool) {
    let names = |folder: &Path, above: &str| -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            let path = format!("{above}{}", name.to_string_lossy());
            let git = above.is_empty() && name == ".git";
            !git && closed(&path).is_some()
        });
        paths.map(|entry| entry.path()).collect()
    };
    let (mut found, mut cut) = look(root, FAR);
    found.extend(names(root, ""));
    found.extend(names(&root.join(".git"), ".git/"));
    found.sort();
    found.dedup();
    let mut folders: VecDeque<PathBuf> = found.iter().cloned().collect();
    while let Some(folder) = folders.pop_front() {
        if !fs::symlink_metadata(&folder).is_ok_and(|it| it.is_dir()) {
            continue;
        }
        if found.len() >= MOST {
            cut = true;
            break;
        }
        // Beneath `modules` git works on; what is shut there is known already.
        if folder.file_name().is_some_and(|name| name == "modules") {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(MOST).collect();
        found.extend(paths.iter().cloned());
        folders.extend(paths);
    }
    found.sort();
    found.dedup();
    (found, cut)
}
