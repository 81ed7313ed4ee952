//! Whether a walk can go by the ignore files of a folder.
//!
//! The walk opens them through links and reads them to their end, and a repository brings its own:
//! one that leads to a device, waits for a writer or holds gigabytes would keep a walk forever. So
//! each is looked at before the walk comes to it. It does not read them; `ignore` does. Start
//! reading at [`Flaws`].
#![allow(clippy::disallowed_methods, reason = "a walk goes by paths, and so do its ignore files")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// No larger ignore file is read: what is made of one can be a thousand times as large.
const LARGEST: u64 = 256 << 10;

/// No larger file is believed to say where a repository is.
const LONGEST_POINTER: u64 = 4 << 10;

/// How many folders are remembered.
const REMEMBERED: usize = 100;

/// The ignore files that a walk reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Git,
    Ignore,
    Ripgrep,
    Exclude,
}

/// Who has put an ignore file where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Whoever wrote what is in the workspace. Links are not followed, as git does not either.
    Workspace,
    /// The person, more likely than not: it lies above the workspace, and may be a link.
    Person,
}

/// What comes of an ignore file that cannot be gone by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// Its folder is left out.
    LeftOut,
    /// The walk goes by no file of that kind.
    SwitchedOff,
}

/// An ignore file that cannot be gone by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flaw {
    pub(crate) folder: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) effect: Effect,
}

/// What a walk has found of them. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flaws(Arc<Mutex<BTreeSet<Flaw>>>);

impl Flaws {
    /// True if a walk can go into a folder of the workspace. If not, that is remembered.
    pub(crate) fn let_pass(&self, folder: &Path) -> bool {
        let flawed = |kind: &Kind| !kind.is_sound(folder, Whose::Workspace);
        match Kind::ALL.into_iter().find(flawed) {
            Some(kind) => {
                self.remember(folder, kind, Effect::LeftOut);
                false
            }
            None => true,
        }
    }

    /// The kinds that a walk from here can go by: those that are sound here and in every folder
    /// above.
    pub(crate) fn sound_kinds(&self, top: &Path, workspace: &Path) -> Vec<Kind> {
        let sound = |kind: &Kind| {
            let flawed = top.ancestors().find(|folder| {
                let inside = folder.starts_with(workspace);
                let whose = if inside { Whose::Workspace } else { Whose::Person };
                !kind.is_sound(folder, whose)
            });
            if let Some(folder) = flawed {
                self.remember(folder, *kind, Effect::SwitchedOff);
            }
            flawed.is_none()
        };
        Kind::ALL.into_iter().filter(sound).collect()
    }

    fn remember(&self, folder: &Path, kind: Kind, effect: Effect) {
        let mut flaws = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if flaws.len() < REMEMBERED {
            flaws.insert(Flaw { folder: folder.to_owned(), kind, effect });
        }
    }

    pub(crate) fn all(&self) -> Vec<Flaw> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Git, Kind::Ignore, Kind::Ripgrep, Kind::Exclude];

    /// Where it stands in its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Git => ".gitignore",
            Kind::Ignore => ".ignore",
            Kind::Ripgrep => ".rgignore",
            Kind::Exclude => ".git/info/exclude",
        }
    }

    fn is_sound(self, folder: &Path, whose: Whose) -> bool {
        match self {
            Kind::Git | Kind::Ignore | Kind::Ripgrep => {
                is_sound(&folder.join(self.name()), LARGEST, whose)
            }
            Kind::Exclude => is_way_sound(folder, whose),
        }
    }
}

/// True if there is nothing to read, or a plain file that is not too large.
fn is_sound(path: &Path, largest: u64, whose: Whose) -> bool {
    let Ok(data) = path.symlink_metadata() else { return true };
    let data = match (data.is_symlink(), whose) {
        (false, Whose::Workspace | Whose::Person) => data,
        (true, Whose::Workspace) => return false,
        (true, Whose::Person) => match path.metadata() {
            // Files that the system makes up while they are read look empty.
            Ok(data) if data.is_file() && data.len() == 0 => return false,
            Ok(data) => data,
            Err(_) => return true,
        },
    };
    data.is_dir() || data.is_file() && data.len() <= largest
}

/// True if all files on the way to a repository's own list, as the walk goes it, are sound. In a
/// worktree `.git` is a file that names a folder, and a file there names another.
fn is_way_sound(folder: &Path, whose: Whose) -> bool {
    let git = folder.join(".git");
    let Ok(data) = git.metadata() else { return true };
    if !data.is_file() {
        return is_sound(&git.join("info/exclude"), LARGEST, whose);
    }
    if !is_sound(&git, LONGEST_POINTER, whose) {
        return false;
    }
    let Some(line) = first_line(&git) else { return true };
    let Some(private) = line.strip_prefix("gitdir: ").map(Path::new) else { return true };
    let pointer = private.join("commondir");
    if !is_sound(&pointer, LONGEST_POINTER, whose) {
        return false;
    }
    let Some(shared) = first_line(&pointer) else { return true };
    is_sound(&private.join(shared).join("info/exclude"), LARGEST, whose)
}

fn first_line(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?.take(LONGEST_POINTER);
    BufReader::new(file).lines().next()?.ok()
}
