//! Checks that a walk can safely read the ignore files of a folder.
//!
//! The walk follows symbolic links to ignore files and reads them completely, and a repository
//! brings its own. One that leads to a device, waits for a writer or contains gigabytes would block
//! a walk forever. So this module checks each file before the walk reaches it. It does not parse
//! them; the `ignore` crate does. Start reading at [`IgnoreFileProblems`].
#![allow(clippy::disallowed_methods, reason = "a walk uses paths, and so do its ignore files")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bounds an ignore file, because the matcher built from one can be a thousand times as large.
const MAX_IGNORE_FILE_BYTES: u64 = 256 << 10;

/// Bounds a file that contains the location of a repository, such as `commondir`.
const MAX_GITDIR_FILE_BYTES: u64 = 4 << 10;

/// Bounds the recorded problems.
const MAX_RECORDED_PROBLEMS: usize = 100;

/// Kind of ignore file that a walk reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IgnoreFileKind {
    GitIgnore,
    DotIgnore,
    RipgrepIgnore,
    GitExclude,
}

/// Origin of an ignore file, which determines how far it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IgnoreFileOrigin {
    /// The authors of the workspace. Symbolic links are not followed, as in git.
    Workspace,
    /// Probably the user: the file lies above the workspace and may be a symbolic link.
    User,
}

/// Consequence of an unusable ignore file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IgnoreFileProblemEffect {
    /// The walk skips `folder`.
    FolderSkipped,
    /// The walk reads no ignore file of this kind.
    KindDisabled,
}

/// An unusable ignore file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IgnoreFileProblem {
    pub(crate) folder: PathBuf,
    pub(crate) kind: IgnoreFileKind,
    pub(crate) effect: IgnoreFileProblemEffect,
}

/// The unusable ignore files that a walk has found. Clones share the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct IgnoreFileProblems(Arc<Mutex<BTreeSet<IgnoreFileProblem>>>);

impl IgnoreFileProblems {
    /// Returns true if a walk can enter a folder of the workspace. Otherwise records the problem.
    pub(crate) fn can_enter(&self, folder: &Path) -> bool {
        let is_unusable =
            |kind: &IgnoreFileKind| !kind.is_usable(folder, IgnoreFileOrigin::Workspace);
        match IgnoreFileKind::ALL.into_iter().find(is_unusable) {
            Some(kind) => {
                self.record(folder, kind, IgnoreFileProblemEffect::FolderSkipped);
                false
            }
            None => true,
        }
    }

    /// Returns the kinds that a walk from `top` can use: those without a problem in this folder and
    /// in every folder above it.
    pub(crate) fn usable_kinds(&self, top: &Path, workspace: &Path) -> Vec<IgnoreFileKind> {
        let is_sound = |kind: &IgnoreFileKind| {
            let unusable = top.ancestors().find(|folder| {
                let is_inside = folder.starts_with(workspace);
                let owner =
                    if is_inside { IgnoreFileOrigin::Workspace } else { IgnoreFileOrigin::User };
                !kind.is_usable(folder, owner)
            });
            if let Some(folder) = unusable {
                self.record(folder, *kind, IgnoreFileProblemEffect::KindDisabled);
            }
            unusable.is_none()
        };
        IgnoreFileKind::ALL.into_iter().filter(is_sound).collect()
    }

    fn record(&self, folder: &Path, kind: IgnoreFileKind, effect: IgnoreFileProblemEffect) {
        let mut problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < MAX_RECORDED_PROBLEMS {
            problems.insert(IgnoreFileProblem { folder: folder.to_owned(), kind, effect });
        }
    }

    pub(crate) fn all(&self) -> Vec<IgnoreFileProblem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl IgnoreFileKind {
    const ALL: [IgnoreFileKind; 4] = [
        IgnoreFileKind::GitIgnore,
        IgnoreFileKind::DotIgnore,
        IgnoreFileKind::RipgrepIgnore,
        IgnoreFileKind::GitExclude,
    ];

    /// Returns the path of the file relative to its folder.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            IgnoreFileKind::GitIgnore => ".gitignore",
            IgnoreFileKind::DotIgnore => ".ignore",
            IgnoreFileKind::RipgrepIgnore => ".rgignore",
            IgnoreFileKind::GitExclude => ".git/info/exclude",
        }
    }

    fn is_usable(self, folder: &Path, owner: IgnoreFileOrigin) -> bool {
        match self {
            IgnoreFileKind::GitIgnore
            | IgnoreFileKind::DotIgnore
            | IgnoreFileKind::RipgrepIgnore => {
                is_usable_file(&folder.join(self.file_name()), MAX_IGNORE_FILE_BYTES, owner)
            }
            IgnoreFileKind::GitExclude => is_exclude_file_usable(folder, owner),
        }
    }
}

/// Returns true if there is nothing to read, or a regular file within the size limit.
fn is_usable_file(path: &Path, max_bytes: u64, owner: IgnoreFileOrigin) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return true };
    let metadata = match (metadata.is_symlink(), owner) {
        (false, IgnoreFileOrigin::Workspace | IgnoreFileOrigin::User) => metadata,
        (true, IgnoreFileOrigin::Workspace) => return false,
        (true, IgnoreFileOrigin::User) => match path.metadata() {
            // Files that the kernel generates on read, as in `/proc`, report a size of 0.
            Ok(metadata) if metadata.is_file() && metadata.len() == 0 => return false,
            Ok(metadata) => metadata,
            Err(_) => return true,
        },
    };
    metadata.is_dir() || metadata.is_file() && metadata.len() <= max_bytes
}

/// Returns true if all files on the way to `info/exclude`, as the walk follows it, are usable. In a
/// worktree `.git` is a file that names a folder, and the `commondir` file there names another.
fn is_exclude_file_usable(folder: &Path, owner: IgnoreFileOrigin) -> bool {
    let git = folder.join(".git");
    let Ok(metadata) = git.metadata() else { return true };
    if !metadata.is_file() {
        return is_usable_file(&git.join("info/exclude"), MAX_IGNORE_FILE_BYTES, owner);
    }
    if !is_usable_file(&git, MAX_GITDIR_FILE_BYTES, owner) {
        return false;
    }
    let Some(line) = first_line(&git) else { return true };
    let Some(git_dir) = line.strip_prefix("gitdir: ").map(Path::new) else { return true };
    let commondir_file = git_dir.join("commondir");
    if !is_usable_file(&commondir_file, MAX_GITDIR_FILE_BYTES, owner) {
        return false;
    }
    let Some(common_dir) = first_line(&commondir_file) else { return true };
    is_usable_file(&git_dir.join(common_dir).join("info/exclude"), MAX_IGNORE_FILE_BYTES, owner)
}

fn first_line(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?.take(MAX_GITDIR_FILE_BYTES);
    BufReader::new(file).lines().next()?.ok()
}
