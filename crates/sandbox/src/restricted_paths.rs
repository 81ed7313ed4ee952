//! Index of the workspace's paths that the rules of a policy may keep from commands.
//!
//! The sandbox hides single paths, so it must know which exist before a command starts. Listing the
//! whole workspace each time would make every command as slow as the workspace is large. The index
//! lists it once for each set of rules; later it lists only the folders whose modification time has
//! changed.
#![allow(clippy::disallowed_methods, reason = "lists the workspace for the sandbox itself")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use windlass_permission::PathRules;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::path_escapes::escape_path_lossy;

/// Folders with build output, downloads or git objects. They are not searched: they are large, and
/// users keep no secrets there. A rule can still restrict the folder as a whole.
pub(crate) const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "target", ".git"];

/// Folders that are checked for changes before every command, nearest to the root first.
const MAX_CHECKED_FOLDERS: usize = 5_000;
/// Time after which all folders are checked again, also those beyond `MAX_CHECKED_FOLDERS`.
const FULL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// A folder that changed this recently may change again without a new modification time.
const RECENT_CHANGE_WINDOW: Duration = Duration::from_secs(1);
/// Sets of rules whose paths are remembered. Each agent of a session may have its own.
const MAX_SCANS: usize = 8;

/// The restricted paths of a workspace, for each set of rules.
#[derive(Debug)]
pub(crate) struct RestrictedPathIndex {
    root: PathBuf,
    scans: Mutex<Vec<RestrictedPathScan>>,
}

#[derive(Debug)]
struct RestrictedPathScan {
    rules: PathRules,
    folders: HashMap<PathBuf, Arc<ScannedFolder>>,
    fully_checked_at: Option<Instant>,
}

/// The listing of one folder. Paths are relative to the workspace.
#[derive(Debug)]
struct ScannedFolder {
    modified: Option<SystemTime>,
    subfolders: Vec<PathBuf>,
    restricted: Vec<PathBuf>,
}

impl RestrictedPathIndex {
    pub(crate) fn new(root: &Path) -> RestrictedPathIndex {
        RestrictedPathIndex { root: root.to_owned(), scans: Mutex::default() }
    }

    /// Returns the existing paths that the rules may restrict, relative to the workspace. A folder
    /// stands for everything beneath it.
    pub(crate) fn paths(&self, rules: &PathRules) -> Vec<PathBuf> {
        let mut scans = lock(&self.scans);
        let known = scans.iter().position(|scan| scan.rules == *rules);
        let mut scan = match known {
            Some(index) => scans.remove(index),
            None => RestrictedPathScan {
                rules: rules.clone(),
                folders: HashMap::new(),
                fully_checked_at: None,
            },
        };
        let paths = scan.update(&self.root);
        scans.truncate(MAX_SCANS - 1);
        scans.insert(0, scan);
        paths
    }
}

impl RestrictedPathScan {
    /// Lists new and changed folders, and returns the restricted paths.
    fn update(&mut self, root: &Path) -> Vec<PathBuf> {
        let is_full_check =
            self.fully_checked_at.is_none_or(|at| at.elapsed() > FULL_CHECK_INTERVAL);
        let max_checked = if is_full_check { usize::MAX } else { MAX_CHECKED_FOLDERS };
        let mut previous = std::mem::take(&mut self.folders);
        let mut restricted = Vec::new();
        let mut pending = vec![PathBuf::new()];
        let mut checked = 0;
        while !pending.is_empty() {
            // One level of the tree at a time, so that the limit leaves out the deepest folders.
            for folder in std::mem::take(&mut pending) {
                let known = previous.remove(&folder);
                checked += 1;
                let scanned = match known {
                    Some(known) if checked > max_checked || is_unchanged(root, &folder, &known) => {
                        known
                    }
                    Some(_) | None => Arc::new(self.list_folder(root, &folder)),
                };
                pending.extend(scanned.subfolders.iter().cloned());
                restricted.extend(scanned.restricted.iter().cloned());
                self.folders.insert(folder, scanned);
            }
        }
        if is_full_check {
            self.fully_checked_at = Some(Instant::now());
        }
        restricted.sort();
        restricted
    }

    fn list_folder(&self, root: &Path, folder: &Path) -> ScannedFolder {
        let absolute = root.join(folder);
        // The time precedes the listing, so that a change in between is noticed.
        let modified = fs::symlink_metadata(&absolute).ok().as_ref().and_then(reliable_time);
        let mut scanned =
            ScannedFolder { modified, subfolders: Vec::new(), restricted: Vec::new() };
        let Ok(entries) = fs::read_dir(&absolute) else { return scanned };
        for entry in entries.flatten() {
            let name: OsString = entry.file_name();
            let path = folder.join(&name);
            if self.rules.may_restrict(&escape_path_lossy(path.as_os_str())) {
                scanned.restricted.push(path.clone());
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped) {
                scanned.subfolders.push(path);
            }
        }
        scanned
    }
}

fn is_unchanged(root: &Path, folder: &Path, known: &ScannedFolder) -> bool {
    let metadata = fs::symlink_metadata(root.join(folder)).ok();
    let modified = metadata.and_then(|metadata| metadata.modified().ok());
    known.modified.is_some() && known.modified == modified
}

/// Returns the modification time of a folder, unless it is so recent that the next change may get
/// the same time.
fn reliable_time(metadata: &Metadata) -> Option<SystemTime> {
    let modified = metadata.modified().ok()?;
    let age = SystemTime::now().duration_since(modified).ok()?;
    (age > RECENT_CHANGE_WINDOW).then_some(modified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_permission::PermissionRules;

    fn path_rules(rules: serde_json::Value) -> PathRules {
        PathRules::new(PermissionRules::parse(&rules).unwrap())
    }

    fn names(index: &RestrictedPathIndex, rules: &PathRules) -> Vec<String> {
        let paths = index.paths(rules).into_iter();
        paths.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn secrets_and_paths_of_rules_are_found_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for name in ["a/b/c/d/e/.env", "private/x", "src/main.rs", "node_modules/p/.env", "k.pem"] {
            create(name);
        }
        let index = RestrictedPathIndex::new(folder.path());
        let defaults = path_rules(json!({}));
        assert_eq!(names(&index, &defaults), ["a/b/c/d/e/.env"]);
        let strict = path_rules(json!({"read": {"private/*": "deny"}, "edit": {"*.pem": "ask"}}));
        let found = ["a/b/c/d/e/.env", "k.pem", "private", "private/x"];
        assert_eq!(names(&index, &strict), found);
        create("a/b/.env.local");
        create("new/prod.env");
        fs::remove_file(folder.path().join("a/b/c/d/e/.env")).unwrap();
        assert_eq!(names(&index, &defaults), ["a/b/.env.local", "new/prod.env"]);
        assert_eq!(index.scans.lock().unwrap().len(), 2);
    }

    #[test]
    fn an_unchanged_folder_is_not_listed_again() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join(".env"), "x").unwrap();
        let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
        let set_time = |path: &Path| fs::File::open(path).unwrap().set_modified(an_hour_ago);
        set_time(&inner).unwrap();
        set_time(folder.path()).unwrap();
        let index = RestrictedPathIndex::new(folder.path());
        let rules = path_rules(json!({}));
        assert_eq!(names(&index, &rules), ["a/.env"]);
        let listing =
            |name: &str| Arc::clone(&index.scans.lock().unwrap()[0].folders[Path::new(name)]);
        let (root, before) = (listing(""), listing("a"));
        assert_eq!(names(&index, &rules), ["a/.env"]);
        assert!(Arc::ptr_eq(&root, &listing("")) && Arc::ptr_eq(&before, &listing("a")));
        fs::write(inner.join("prod.env"), "x").unwrap();
        assert_eq!(names(&index, &rules), ["a/.env", "a/prod.env"]);
        assert!(Arc::ptr_eq(&root, &listing("")) && !Arc::ptr_eq(&before, &listing("a")));
    }
}
