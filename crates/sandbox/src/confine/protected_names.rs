//! Names that a command may neither create nor change, and the search for those that exist.
//!
//! `permission` protects all of `.git`, because no tool has to write there. A command does: `git
//! commit` writes an index, objects and refs. So within `.git` this module allows the names that
//! git writes during normal work, and protects the files that git executes or trusts: everything
//! that is not on the list. Names beneath [`GENERATED_FOLDERS`] are not protected, because packages
//! contain all kinds of files and users do not work there. No folder can be moved out of a
//! generated folder, see [`super::PathGuard`].

#![allow(clippy::disallowed_methods, reason = "inspects paths for the sandbox itself")]

use super::folder_listing;
use std::collections::VecDeque;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windlass_permission::protected;

/// Folders that package managers and compilers fill.
const GENERATED_FOLDERS: [&str; 2] = ["node_modules", "target"];

/// Limits of a scan for protected paths below the top level of a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProtectedScanLimits {
    pub max_depth: usize,
    pub max_entries: usize,
    pub max_time: Duration,
}

/// Limits of the scan before every command. The `PathGuard` protects paths beyond them.
const QUICK_SCAN_LIMITS: ProtectedScanLimits =
    ProtectedScanLimits { max_depth: 3, max_entries: 2_000, max_time: Duration::from_secs(1) };

/// Names that are protected only in a folder of a certain name, one for each such folder.
const NESTED_PROTECTED_NAMES: [&str; 18] = [
    "git",
    "hooks",
    "config",
    "config.json",
    "releases",
    "credentials",
    "settings.xml",
    "gradle.properties",
    "nuget",
    "auth.json",
    "windlass",
    "share/windlass",
    "roaming/windlass",
    "code",
    "powershell",
    "launchagents",
    "startup",
    "programs/startup",
];

const GIT_FOLDER: &str = ".git";

/// Names that git writes during normal work, in lower case and without a trailing `.lock`.
const GIT_WRITABLE_NAMES: [&str; 21] = [
    "head",
    "index",
    "objects",
    "refs",
    "logs",
    "packed-refs",
    "packed-refs.new",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "rr-cache",
    "shallow",
    "auto_merge",
    "merge_mode",
    "merge_rr",
    "merge_autostash",
    "gc.pid",
    "gc.log",
    "lfs",
    "addp-hunk-edit.diff",
    "reftable",
];
const GIT_WRITABLE_SUFFIXES: [&str; 3] = ["_head", "_msg", "_editmsg"];
const GIT_WRITABLE_PREFIXES: [&str; 5] =
    ["bisect_", "sharedindex.", "next-index-", "index.", "tmp_"];

/// Names that git executes or trusts. The list serves to find existing ones; names on neither list
/// are protected, too.
const GIT_PROTECTED_NAMES: [&str; 10] = [
    "config",
    "config.worktree",
    "hooks",
    "info",
    "commondir",
    "gitdir",
    "remotes",
    "branches",
    "worktrees",
    "modules",
];

/// Files beneath `objects/info` that lead git to further object stores.
const GIT_ALTERNATES_FILES: [&str; 2] = ["alternates", "http-alternates"];

/// Returns the reason for which a command may not create or change this path of the workspace, if
/// any.
pub(super) fn write_block_reason(path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (checked, _) = parts.split_at(find_generated_folder(&parts).unwrap_or(parts.len()));
    let git = checked.iter().position(|part| part.eq_ignore_ascii_case(GIT_FOLDER));
    let Some((parent, inside)) = git.and_then(|index| checked.split_at_checked(index)) else {
        return protected(&checked.join("/"));
    };
    match protected(&parent.join("/")) {
        Some(reason) => Some(reason),
        None if inside.split_first().is_none_or(|(_, rest)| is_git_protected(rest)) => {
            protected(GIT_FOLDER)
        }
        None => None,
    }
}

/// Returns true if the path is a generated folder or lies in one.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only the Linux path guard uses it")
)]
pub(super) fn is_generated(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    find_generated_folder(&parts).is_some()
}

/// Returns true if a symbolic link of this name would give its target's entries a protected name.
pub(super) fn is_protected_parent(path: &str) -> bool {
    NESTED_PROTECTED_NAMES
        .iter()
        .any(|name| write_block_reason(&format!("{path}/{name}")).is_some())
}

fn find_generated_folder(parts: &[&str]) -> Option<usize> {
    parts.iter().position(|part| GENERATED_FOLDERS.contains(part))
}

/// Returns true if git executes or trusts this path of its folder, or if the path is unknown.
fn is_git_protected(rest: &[&str]) -> bool {
    let Some((first, beneath)) = rest.split_first() else { return true };
    match first.to_ascii_lowercase().as_str() {
        // A git folder inside the git folder. Its name may have several components, which may equal
        // names that git uses. Every path that could be protected is.
        "modules" | "worktrees" => {
            let inner = || beneath.iter().skip(1);
            !inner().any(|part| is_git_writable(part)) || has_git_protected_part(beneath)
        }
        "objects" => has_alternates_file(rest),
        _ => !is_git_writable(first),
    }
}

/// Returns true if a component after the first could be a name that git executes or trusts.
fn has_git_protected_part(parts: &[&str]) -> bool {
    let is_protected = |part: &str| {
        let part = part.to_ascii_lowercase();
        let part = part.strip_suffix(".lock").unwrap_or(&part);
        part != "modules" && GIT_PROTECTED_NAMES.contains(&part)
    };
    // Git stores data about objects (`commit-graph`, `packs`) in `objects/info`.
    let is_object_info = |index: usize| {
        let parent = index.checked_sub(1).and_then(|index| parts.get(index));
        let name = parts.get(index + 1);
        let is_known = |name: &&str| name.starts_with("commit-graph") || name.starts_with("packs");
        parent == Some(&"objects")
            && parts.get(index) == Some(&"info")
            && name.is_some_and(is_known)
    };
    let mut components = parts.iter().enumerate().skip(1);
    components.any(|(index, part)| is_protected(part) && !is_object_info(index))
        || has_alternates_file(parts)
}

fn has_alternates_file(parts: &[&str]) -> bool {
    parts.windows(3).any(|window| {
        let [objects, info, name] = window else { return false };
        let name = name.to_ascii_lowercase();
        objects.eq_ignore_ascii_case("objects")
            && info.eq_ignore_ascii_case("info")
            && GIT_ALTERNATES_FILES.contains(&name.strip_suffix(".lock").unwrap_or(&name))
    })
}

fn is_git_writable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".lock").unwrap_or(&name);
    GIT_WRITABLE_NAMES.contains(&name)
        || GIT_WRITABLE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        || GIT_WRITABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the existing protected paths beneath a folder, and the targets within it of symbolic
/// links with protected names. The top level is complete; below it, the scan stops at
/// `QUICK_SCAN_LIMITS`. Recognizes a `.git` folder by its name.
pub fn protected_paths(root: &Path) -> Vec<PathBuf> {
    scan_protected(root, QUICK_SCAN_LIMITS).0
}

/// Like `protected_paths`, within the given limits. Also returns true if the scan hit them.
pub(super) fn scan_protected(root: &Path, limits: ProtectedScanLimits) -> (Vec<PathBuf>, bool) {
    let mut paths = Vec::new();
    let mut is_truncated = false;
    if root.file_name().is_some_and(|name| name.eq_ignore_ascii_case(GIT_FOLDER)) {
        scan_git_folder(root, root, &mut paths);
        return (paths, is_truncated);
    }
    let start = Instant::now();
    let mut folders = VecDeque::from([(root.to_owned(), String::new(), 1)]);
    let mut remaining = limits.max_entries;
    while let Some((folder, parent, depth)) = folders.pop_front() {
        // The top level is scanned completely, so that additional files cannot hide a protected
        // name.
        let mut unlimited = usize::MAX;
        let limit = if depth == 1 { &mut unlimited } else { &mut remaining };
        let is_protected = |path: &str| write_block_reason(path).is_some();
        let entries = folder_listing::list_relevant(&folder, &parent, limit, is_protected);
        for entry in entries.iter() {
            let kind = entry.kind;
            let name = entry.name.to_string_lossy();
            let path = entry.path_in(&parent);
            let full_path = || folder.join(&entry.name);
            if kind.is_dir() && name.eq_ignore_ascii_case(GIT_FOLDER) {
                scan_git_folder(root, &full_path(), &mut paths);
            } else if write_block_reason(&path).is_some() {
                if name.eq_ignore_ascii_case(GIT_FOLDER) {
                    scan_linked_git_folder(root, &full_path(), &mut paths);
                } else if kind.is_symlink() {
                    paths.extend(link_target(root, &full_path()));
                }
                if !kind.is_symlink() {
                    paths.push(full_path());
                }
            } else if kind.is_symlink() && is_protected_parent(&path) {
                let linked = link_target(root, &full_path()).into_iter();
                let linked = linked.flat_map(|linked| list_entries(&linked, &mut remaining));
                let is_protected = |entry: &DirEntry| {
                    write_block_reason(&format!("{path}/{}", entry.file_name().to_string_lossy()))
                        .is_some()
                };
                paths.extend(linked.filter(is_protected).map(|entry| entry.path()));
            } else if kind.is_dir()
                && depth < limits.max_depth
                && !GENERATED_FOLDERS.contains(&&*name)
            {
                folders.push_back((full_path(), path, depth + 1));
            }
        }
        // On a busy machine the scan still covers at least as many entries as the quick scan.
        let scanned = limits.max_entries - remaining;
        if remaining == 0
            || scanned > QUICK_SCAN_LIMITS.max_entries && start.elapsed() > limits.max_time
        {
            is_truncated = true;
            break;
        }
    }
    paths.sort();
    paths.dedup();
    (paths, is_truncated)
}

/// Returns the target of a symbolic link if it is within `root` and does not contain the link
/// itself. The target need not exist; then it must not be created.
fn link_target(root: &Path, link: &Path) -> Option<PathBuf> {
    let target = link.parent()?.join(fs::read_link(link).ok()?);
    let missing_target =
        || Some(fs::canonicalize(target.parent()?).ok()?.join(target.file_name()?));
    let resolved = fs::canonicalize(&target).ok().or_else(missing_target)?;
    (resolved.starts_with(root) && !link.starts_with(&resolved)).then_some(resolved)
}

/// Scans the git folder that a `.git` file or link points to, as far as it lies in the workspace. A
/// git folder elsewhere is not writable anyway, and the content of the file is only compared.
fn scan_linked_git_folder(root: &Path, git: &Path, paths: &mut Vec<PathBuf>) {
    let in_workspace =
        |path: PathBuf| fs::canonicalize(path).ok().filter(|path| path.starts_with(root));
    let gitdir =
        read_short_file(git).and_then(|text| Some(text.strip_prefix("gitdir:")?.trim().to_owned()));
    let folder = gitdir.map_or_else(|| git.to_owned(), |name| git.with_file_name(name));
    let Some(folder) = in_workspace(folder).filter(|folder| folder.is_dir() && folder != root)
    else {
        return;
    };
    scan_git_folder(root, &folder, paths);
    let common = read_short_file(&folder.join("commondir")).map(|text| folder.join(text.trim()));
    if let Some(common) = common.and_then(in_workspace).filter(|common| common != root) {
        scan_git_folder(root, &common, paths);
    }
}

/// Reads a file that should contain one short line, such as `commondir`.
pub(super) fn read_short_file(path: &Path) -> Option<String> {
    fs::symlink_metadata(path)
        .ok()
        .filter(|metadata| metadata.is_file() && metadata.len() < 4_096)?;
    fs::read_to_string(path).ok()
}

/// Collects the existing paths of a git folder that git executes or trusts.
fn scan_git_folder(root: &Path, git: &Path, paths: &mut Vec<PathBuf>) {
    let scan_one = |folder: &Path, paths: &mut Vec<PathBuf>| {
        let names = GIT_PROTECTED_NAMES
            .iter()
            .filter(|name| **name != "modules")
            .map(|name| folder.join(name));
        let info = folder.join("objects/info");
        for path in names.chain(GIT_ALTERNATES_FILES.iter().map(|name| info.join(name))) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => paths.extend(link_target(root, &path)),
                Ok(_) => paths.push(path),
                Err(_) => {}
            }
        }
    };
    scan_one(git, paths);
    let mut remaining = QUICK_SCAN_LIMITS.max_entries;
    let mut folders = VecDeque::from([(git.join("modules"), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in list_entries(&folder, &mut remaining) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            match fs::symlink_metadata(path.join("HEAD")).is_ok() {
                true => {
                    scan_one(&path, paths);
                    folders.push_back((path.join("modules"), depth));
                }
                false if depth < QUICK_SCAN_LIMITS.max_depth => {
                    folders.push_back((path, depth + 1))
                }
                false => {}
            }
        }
    }
}

/// Lists the entries of a folder in order, up to the remaining number.
fn list_entries(folder: &Path, remaining: &mut usize) -> Vec<DirEntry> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut entries: Vec<DirEntry> = entries.flatten().take(*remaining).collect();
    *remaining -= entries.len();
    entries.sort_by_key(DirEntry::file_name);
    entries
}
