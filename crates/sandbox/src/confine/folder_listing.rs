//! Listings of folders for the search of protected names. The listing of a large folder is
//! remembered until the folder changes, so that the cost of a command does not grow with the number
//! of files.
#![allow(clippy::disallowed_methods, reason = "inspects paths for the sandbox itself")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use windlass_protocol::mutex_lock::lock;

/// Listings with at least this number of entries are remembered.
const MIN_REMEMBERED_ENTRIES: usize = 500;
/// Maximum number of remembered listings.
const MAX_REMEMBERED: usize = 200;
/// A folder that changed this recently may change again without a new modification time.
const RECENT_CHANGE_WINDOW: Duration = Duration::from_secs(1);

/// An entry of a folder.
#[derive(Debug)]
pub(super) struct ListedEntry {
    pub(super) name: OsString,
    pub(super) kind: FileType,
}

impl ListedEntry {
    /// Returns the path of the entry relative to the workspace, given that of its folder.
    pub(super) fn path_in(&self, parent: &str) -> String {
        let name = self.name.to_string_lossy();
        if parent.is_empty() { name.into_owned() } else { format!("{parent}/{name}") }
    }
}

/// The relevant entries of a folder, and the number of all entries.
#[derive(Clone)]
struct RelevantEntries {
    changed: SystemTime,
    relevant: Arc<[ListedEntry]>,
    total: usize,
}

/// Remembered listings by folder and its path in the workspace, which the relevance depends on.
static LISTINGS: Mutex<Option<HashMap<(PathBuf, String), RelevantEntries>>> = Mutex::new(None);

/// Lists the entries of a folder that the search for protected names must look at: folders,
/// symbolic links, and paths that `is_protected` selects. They are in order, and among the first
/// `remaining` entries.
pub(super) fn list_relevant(
    folder: &Path,
    parent: &str,
    remaining: &mut usize,
    is_protected: impl Fn(&str) -> bool,
) -> Arc<[ListedEntry]> {
    // The time precedes the listing, so that a change in between is noticed.
    let changed = fs::symlink_metadata(folder).ok().and_then(|metadata| change_time(&metadata));
    let key = (folder.to_owned(), parent.to_owned());
    let known = lock(&LISTINGS).as_ref().and_then(|listings| listings.get(&key).cloned());
    if let Some(known) = known.filter(|known| Some(known.changed) == changed)
        && known.total <= *remaining
    {
        *remaining -= known.total;
        return known.relevant;
    }
    let Ok(entries) = fs::read_dir(folder) else { return Arc::default() };
    let (mut total, mut relevant) = (0, Vec::new());
    for entry in entries.flatten().take(*remaining) {
        total += 1;
        let Ok(kind) = entry.file_type() else { continue };
        let listed = ListedEntry { name: entry.file_name(), kind };
        if kind.is_dir() || kind.is_symlink() || is_protected(&listed.path_in(parent)) {
            relevant.push(listed);
        }
    }
    relevant.sort_by(|one, other| one.name.cmp(&other.name));
    let relevant: Arc<[ListedEntry]> = relevant.into();
    let is_settled = |changed: &SystemTime| {
        changed.elapsed().is_ok_and(|elapsed| elapsed > RECENT_CHANGE_WINDOW)
    };
    if let Some(changed) = changed.filter(is_settled)
        && total >= MIN_REMEMBERED_ENTRIES
        && total < *remaining
    {
        let mut listings = lock(&LISTINGS);
        let listings = listings.get_or_insert_default();
        if listings.len() >= MAX_REMEMBERED {
            listings.clear();
        }
        let relevant = Arc::clone(&relevant);
        listings.insert(key, RelevantEntries { changed, relevant, total });
    }
    *remaining -= total;
    relevant
}

/// Returns the time at which a file or folder changed. A program cannot set it, unlike the
/// modification time.
#[cfg(unix)]
pub(super) fn change_time(metadata: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let seconds = Duration::from_secs(metadata.ctime().try_into().ok()?);
    let nanos = Duration::from_nanos(metadata.ctime_nsec().try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(seconds + nanos)
}

#[cfg(not(unix))]
pub(super) fn change_time(metadata: &fs::Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::list_relevant;
    use std::fs;

    #[test]
    fn a_large_folder_is_listed_again_only_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..600 {
            fs::write(folder.path().join(format!("file{number}")), "").unwrap();
        }
        fs::write(folder.path().join("secret"), "").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        let checked = std::cell::Cell::new(0);
        let list = |limit: &mut usize| {
            checked.set(0);
            let is_protected = |path: &str| {
                checked.set(checked.get() + 1);
                path.starts_with("secret")
            };
            let entries = list_relevant(folder.path(), "", limit, is_protected);
            entries.iter().map(|entry| entry.path_in("")).collect::<Vec<_>>()
        };
        let mut remaining = 10_000;
        assert_eq!(list(&mut remaining), ["secret"]);
        assert_eq!((checked.get(), remaining), (601, 9_399));
        assert_eq!(list(&mut remaining), ["secret"]);
        assert_eq!((checked.get(), remaining), (0, 8_798), "remembered, and counted all the same");
        fs::write(folder.path().join("secret2"), "").unwrap();
        let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
        fs::File::open(folder.path()).unwrap().set_modified(an_hour_ago).unwrap();
        assert_eq!(list(&mut remaining), ["secret", "secret2"]);
        let mut few = 5;
        list(&mut few);
        assert_eq!(few, 0, "a limit is kept");
    }
}
