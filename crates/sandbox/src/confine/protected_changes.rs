//! Detects protected paths that changed during a command.
//!
//! The `PathGuard` keeps a command from changing them. This module is the second look: it records
//! the protected paths before a command and compares them after it. It restores nothing: the user
//! may have changed a path meanwhile, in an editor or with git, and that work must not be undone.
//! The result of the command reports the changes. Paths beyond the depth, number or time limits of
//! the scan are not reported.

#![allow(clippy::disallowed_methods, reason = "compares files for the sandbox itself")]

use super::folder_listing::change_time;
use super::protected_names::{ProtectedScanLimits, scan_protected, write_block_reason};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Limits the recorded paths.
const MAX_TRACKED_PATHS: usize = 1_000;

/// Limits of the scan for paths that were created during a command.
const DEEP_SCAN_LIMITS: ProtectedScanLimits =
    ProtectedScanLimits { max_depth: 8, max_entries: 20_000, max_time: Duration::from_millis(20) };

/// The list of steps of a rebase, in a git folder.
const REBASE_TODO: &str = "rebase-merge/git-rebase-todo";
/// Largest list that is read.
const MAX_TODO_BYTES: u64 = 1 << 20;

/// File timestamps lag slightly behind the system clock.
const FILE_CLOCK_LAG: Duration = Duration::from_millis(50);

/// The protected paths of a workspace before a command, with their stamps.
#[derive(Debug, Default)]
pub struct ProtectedPathsSnapshot {
    root: PathBuf,
    stamps: BTreeMap<PathBuf, FileStamp>,
    /// Set if the scan hit its limits. A path without a stamp then counts as new only if it changed
    /// after this time.
    incomplete_since: Option<SystemTime>,
}

/// Metadata that reveals that a file was written or replaced. It includes the ctime, which the
/// program that makes a change cannot set.
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    is_folder: bool,
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode_and_ctime: (u64, i64, i64),
}

/// Records the protected paths of a workspace, for [`changed_since`].
pub fn snapshot_protected(root: &Path) -> ProtectedPathsSnapshot {
    let since = SystemTime::now().checked_sub(FILE_CLOCK_LAG);
    let (paths, is_truncated) = list_protected(root);
    let stamps = paths.into_iter().filter_map(|path| {
        let stamp = file_stamp(&fs::symlink_metadata(&path).ok()?);
        Some((path, stamp))
    });
    ProtectedPathsSnapshot {
        root: root.to_owned(),
        stamps: stamps.collect(),
        incomplete_since: since.filter(|_| is_truncated),
    }
}

/// Returns the protected paths that were created, removed or changed since the snapshot, relative
/// to the workspace, and their state now.
pub fn changed_since(before: &ProtectedPathsSnapshot) -> (Vec<PathBuf>, ProtectedPathsSnapshot) {
    let now = snapshot_protected(&before.root);
    let created = now.stamps.keys().filter(|path| {
        let is_late = || before.incomplete_since.is_none_or(|since| is_newer_than(path, since));
        !before.stamps.contains_key(*path) && is_late()
    });
    let is_unchanged = |path: &Path, stamp: &FileStamp| {
        fs::symlink_metadata(path).is_ok_and(|metadata| file_stamp(&metadata) == *stamp)
    };
    let changed = before.stamps.iter().filter(|(path, stamp)| !is_unchanged(path, stamp));
    let paths = created.chain(changed.map(|(path, _)| path));
    let paths = paths.map(|path| path.strip_prefix(&before.root).unwrap_or(path).to_owned());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    // A new folder represents everything in it.
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !outermost.iter().any(|parent| path.starts_with(parent)) {
            outermost.push(path);
        }
    }
    (outermost, now)
}

/// Returns true if the path was created or changed since the given time.
fn is_newer_than(path: &Path, since: SystemTime) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let changed = change_time(&metadata);
    changed.is_none_or(|changed| changed >= since)
}

fn file_stamp(metadata: &Metadata) -> FileStamp {
    let is_folder = metadata.is_dir();
    FileStamp {
        is_folder,
        // The content of a folder has stamps of its own.
        length: if is_folder { 0 } else { metadata.len() },
        modified: metadata.modified().ok().filter(|_| !is_folder),
        #[cfg(unix)]
        inode_and_ctime: {
            use std::os::unix::fs::MetadataExt;
            let time = if is_folder { (0, 0) } else { (metadata.ctime(), metadata.ctime_nsec()) };
            (metadata.ino(), time.0, time.1)
        },
    }
}

/// Returns true if git would run commands from this list of a rebase. A command may begin a rebase,
/// but what the user's `git rebase --continue` runs outside the sandbox must be reported.
fn runs_commands(todo_list: &Path) -> bool {
    let is_readable = fs::symlink_metadata(todo_list)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() < MAX_TODO_BYTES);
    let text = if is_readable { fs::read(todo_list).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&text);
    let mut commands = text.lines().map(|line| line.split_whitespace().next());
    commands.any(|word| matches!(word, Some("exec" | "x")))
}

/// Returns the protected paths, and true if there may be more. Includes symbolic links at the top
/// level and in `.git`, and the content of protected folders.
fn list_protected(root: &Path) -> (Vec<PathBuf>, bool) {
    let protected_in = |folder: &Path, prefix: &str| -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            let path = format!("{prefix}{}", name.to_string_lossy());
            let is_git = prefix.is_empty() && name == ".git";
            !is_git && write_block_reason(&path).is_some()
        });
        paths.map(|entry| entry.path()).collect()
    };
    let (mut protected, mut is_truncated) = scan_protected(root, DEEP_SCAN_LIMITS);
    protected.extend(protected_in(root, ""));
    protected.extend(protected_in(&root.join(".git"), ".git/"));
    let git_folders = protected.iter().filter(|path| path.ends_with("config"));
    let todo_lists = git_folders.map(|config| config.with_file_name(REBASE_TODO));
    let todo_lists: Vec<PathBuf> = todo_lists.filter(|path| runs_commands(path)).collect();
    protected.extend(todo_lists);
    protected.sort();
    protected.dedup();
    let mut folders: VecDeque<PathBuf> = protected.iter().cloned().collect();
    while let Some(folder) = folders.pop_front() {
        if !fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_dir()) {
            continue;
        }
        if protected.len() >= MAX_TRACKED_PATHS {
            is_truncated = true;
            break;
        }
        // Git writes beneath `modules`; the protected paths there are known already.
        if folder.file_name().is_some_and(|name| name == "modules") {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let paths: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).take(MAX_TRACKED_PATHS).collect();
        protected.extend(paths.iter().cloned());
        folders.extend(paths);
    }
    protected.sort();
    protected.dedup();
    (protected, is_truncated)
}
