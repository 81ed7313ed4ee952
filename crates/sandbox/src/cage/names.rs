//! Which names a command may not make or change, and which of them exist.
//!
//! `permission` closes all of `.git`, because no tool has business in there. A command has: `git
//! commit` writes an index, objects and refs. So within `.git` this module opens what git writes
//! while it works, and keeps shut what git runs or believes: everything that is not on the list.
//! Names beneath [`LOOSE`] folders are left alone, because packages bring all kinds of files and
//! nobody works in there; a folder cannot be moved out of one, see [`super::Door`].

#![allow(clippy::disallowed_methods, reason = "looks at names on behalf of the sandbox itself")]

use std::collections::VecDeque;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windlass_permission::protected;

/// Folders that are filled by package managers and compilers.
const LOOSE: [&str; 2] = ["node_modules", "target"];

/// How far names are looked for beneath the top of a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// How deep.
    pub deepest: usize,
    /// How many are looked at.
    pub most: usize,
    /// How long that may take.
    pub longest: Duration,
}

/// Before every command. The door holds what lies deeper.
const SHORT: Bound = Bound { deepest: 3, most: 2_000, longest: Duration::from_secs(1) };

/// Names that are protected in a folder of a certain name only, one for each such folder.
const BENEATH: [&str; 18] = [
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

const GIT: &str = ".git";

/// What git writes while it works, in lower case; a trailing `.lock` is left out.
const OPEN: [&str; 21] = [
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
const OPEN_ENDS: [&str; 3] = ["_head", "_msg", "_editmsg"];
const OPEN_BEGINS: [&str; 5] = ["bisect_", "sharedindex.", "next-index-", "index.", "tmp_"];

/// What git runs or believes. The list is for finding what exists; what is on neither is shut, too.
const SHUT: [&str; 10] = [
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

/// Beneath `objects`: where git looks for more of them.
const ELSEWHERE: [&str; 2] = ["alternates", "http-alternates"];

/// Why a command may not make or change this path of the workspace, if so.
pub(super) fn closed(path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (before, _) = parts.split_at(loose_at(&parts).unwrap_or(parts.len()));
    let git = before.iter().position(|part| part.eq_ignore_ascii_case(GIT));
    let Some((above, within)) = git.and_then(|at| before.split_at_checked(at)) else {
        return protected(&before.join("/"));
    };
    match protected(&above.join("/")) {
        Some(why) => Some(why),
        None if within.split_first().is_none_or(|(_, rest)| shut(rest)) => protected(GIT),
        None => None,
    }
}

/// True if the path is a folder that is filled by others, or lies in one.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no door"))]
pub(super) fn loose(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    loose_at(&parts).is_some()
}

/// True if a link of this name would put a protected name before what it leads to.
pub(super) fn leads(path: &str) -> bool {
    BENEATH.iter().any(|name| closed(&format!("{path}/{name}")).is_some())
}

fn loose_at(parts: &[&str]) -> Option<usize> {
    parts.iter().position(|part| LOOSE.contains(part))
}

/// True if git runs or believes what has this path in its folder, or nobody knows what it is.
fn shut(rest: &[&str]) -> bool {
    let Some((first, beneath)) = rest.split_first() else { return true };
    match first.to_ascii_lowercase().as_str() {
        // A git folder in the git folder. Its name may have several parts, and those may be names
        // that git uses: what could be shut is.
        "modules" | "worktrees" => {
            let within = || beneath.iter().skip(1);
            !within().any(|part| open(part)) || believed(beneath)
        }
        "objects" => alternate(rest),
        _ => !open(first),
    }
}

/// True if one of the parts after the first could be what git runs or believes.
fn believed(parts: &[&str]) -> bool {
    let shut = |part: &str| {
        let part = part.to_ascii_lowercase();
        let part = part.strip_suffix(".lock").unwrap_or(&part);
        part != "modules" && SHUT.contains(&part)
    };
    // Objects have notes about themselves, in a folder of that name.
    let noted = |at: usize| {
        let (above, name) = (at.checked_sub(1).and_then(|at| parts.get(at)), parts.get(at + 1));
        let known = |name: &&str| name.starts_with("commit-graph") || name.starts_with("packs");
        above == Some(&"objects") && parts.get(at) == Some(&"info") && name.is_some_and(known)
    };
    let mut within = parts.iter().enumerate().skip(1);
    within.any(|(at, part)| shut(part) && !noted(at)) || alternate(parts)
}

fn alternate(parts: &[&str]) -> bool {
    parts.windows(3).any(|three| {
        let [objects, info, name] = three else { return false };
        let name = name.to_ascii_lowercase();
        objects.eq_ignore_ascii_case("objects")
            && info.eq_ignore_ascii_case("info")
            && ELSEWHERE.contains(&name.strip_suffix(".lock").unwrap_or(&name))
    })
}

fn open(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".lock").unwrap_or(&name);
    OPEN.contains(&name)
        || OPEN_ENDS.iter().any(|end| name.ends_with(end))
        || OPEN_BEGINS.iter().any(|begin| name.starts_with(begin))
}

/// Protected paths that exist beneath a folder, and where links of such names lead within it: at its
/// top all of them, deeper down as many as a short look finds. A folder of git itself is known by
/// its name.
pub fn guarded(root: &Path) -> Vec<PathBuf> {
    look(root, SHORT).0
}

/// The same as far as one likes to look, and whether that was not far enough.
pub(super) fn look(root: &Path, bound: Bound) -> (Vec<PathBuf>, bool) {
    let (mut found, mut cut) = (Vec::new(), false);
    if root.file_name().is_some_and(|name| name.eq_ignore_ascii_case(GIT)) {
        within_git(root, root, &mut found);
        return (found, cut);
    }
    let start = Instant::now();
    let mut folders = VecDeque::from([(root.to_owned(), String::new(), 1)]);
    let mut left = bound.most;
    while let Some((folder, above, depth)) = folders.pop_front() {
        // Names at the top are all looked at, however many somebody puts beside them.
        let mut all = usize::MAX;
        let listed = entries(&folder, if depth == 1 { &mut all } else { &mut left });
        for entry in listed {
            let Ok(kind) = entry.file_type() else { continue };
            let file_name = entry.file_name();
            let name = file_name.to_string_lossy();
            let path = match above.is_empty() {
                true => name.clone().into_owned(),
                false => format!("{above}/{name}"),
            };
            if kind.is_dir() && name.eq_ignore_ascii_case(GIT) {
                within_git(root, &entry.path(), &mut found);
            } else if closed(&path).is_some() {
                if name.eq_ignore_ascii_case(GIT) {
                    elsewhere(root, &entry.path(), &mut found);
                } else if kind.is_symlink() {
                    found.extend(target(root, &entry.path()));
                }
                if !kind.is_symlink() {
                    found.push(entry.path());
                }
            } else if kind.is_symlink() && leads(&path) {
                let behind = target(root, &entry.path()).into_iter();
                let behind = behind.flat_map(|behind| entries(&behind, &mut left));
                let named = |entry: &DirEntry| {
                    closed(&format!("{path}/{}", entry.file_name().to_string_lossy())).is_some()
                };
                found.extend(behind.filter(named).map(|entry| entry.path()));
            } else if kind.is_dir() && depth < bound.deepest && !LOOSE.contains(&&*name) {
                folders.push_back((entry.path(), path, depth + 1));
            }
        }
        // A busy machine is no reason to see less than a short look does.
        let looked = bound.most - left;
        if left == 0 || looked > SHORT.most && start.elapsed() > bound.longest {
            cut = true;
            break;
        }
    }
    found.sort();
    found.dedup();
    (found, cut)
}

/// Where a link leads, if that is within a folder, and does not hold the link itself. It need not
/// exist: then nobody may make it.
fn target(root: &Path, link: &Path) -> Option<PathBuf> {
    let whole = link.parent()?.join(fs::read_link(link).ok()?);
    let beside = || Some(fs::canonicalize(whole.parent()?).ok()?.join(whole.file_name()?));
    let real = fs::canonicalize(&whole).ok().or_else(beside)?;
    (real.starts_with(root) && !link.starts_with(&real)).then_some(real)
}

/// Where `.git` is a file or a link that says where git's folder is: what git believes there, as
/// far as it lies in the workspace. What lies elsewhere cannot be written anyway, and whatever the
/// file says is only ever compared.
fn elsewhere(root: &Path, git: &Path, found: &mut Vec<PathBuf>) {
    let within = |path: PathBuf| fs::canonicalize(path).ok().filter(|path| path.starts_with(root));
    let named = said(git).and_then(|text| Some(text.strip_prefix("gitdir:")?.trim().to_owned()));
    let folder = named.map_or_else(|| git.to_owned(), |name| git.with_file_name(name));
    let Some(folder) = within(folder).filter(|folder| folder.is_dir() && folder != root) else {
        return;
    };
    within_git(root, &folder, found);
    let common = said(&folder.join("commondir")).map(|text| folder.join(text.trim()));
    if let Some(common) = common.and_then(within).filter(|common| common != root) {
        within_git(root, &common, found);
    }
}

/// The content of a file that should be one short line.
fn said(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok().filter(|it| it.is_file() && it.len() < 4_096)?;
    fs::read_to_string(path).ok()
}

/// What exists of what git runs or believes.
fn within_git(root: &Path, git: &Path, found: &mut Vec<PathBuf>) {
    let here = |folder: &Path, found: &mut Vec<PathBuf>| {
        let shut = SHUT.iter().filter(|name| **name != "modules").map(|name| folder.join(name));
        let info = folder.join("objects/info");
        for path in shut.chain(ELSEWHERE.iter().map(|name| info.join(name))) {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => found.extend(target(root, &path)),
                Ok(_) => found.push(path),
                Err(_) => {}
            }
        }
    };
    here(git, found);
    let mut left = SHORT.most;
    let mut folders = VecDeque::from([(git.join("modules"), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in entries(&folder, &mut left) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            match fs::symlink_metadata(path.join("HEAD")).is_ok() {
                true => {
                    here(&path, found);
                    folders.push_back((path.join("modules"), depth));
                }
                false if depth < SHORT.deepest => folders.push_back((path, depth + 1)),
                false => {}
            }
        }
    }
}

/// What is in a folder, in order, as far as is left to look at.
fn entries(folder: &Path, left: &mut usize) -> Vec<DirEntry> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut entries: Vec<DirEntry> = entries.flatten().take(*left).collect();
    *left -= entries.len();
    entries.sort_by_key(DirEntry::file_name);
    entries
}
