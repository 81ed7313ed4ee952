//! Metadata of the watched files, and the changes from one walk to the next.

use std::collections::BTreeMap;
use std::sync::Mutex;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::FileStat;

/// Metadata of the watched files at the last walk.
#[derive(Debug, Default)]
pub(crate) struct WatchedFilesSnapshot {
    inner: Mutex<WatchedFilesSnapshotInner>,
}

#[derive(Debug, Default)]
struct WatchedFilesSnapshotInner {
    /// Value of `Workspace::change_counter` at the last walk.
    change_counter: Option<u64>,
    files: Option<BTreeMap<String, FileStat>>,
}

/// Kind of a file change, with the numbers of the protocol's `FileChangeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChangeKind {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl WatchedFilesSnapshot {
    /// Records that a walk starts at this `Workspace::change_counter`; returns false if the last
    /// walk started at the same one.
    pub(super) fn begin_walk(&self, change_counter: u64) -> bool {
        lock(&self.inner).change_counter.replace(change_counter) != Some(change_counter)
    }

    /// Replaces the files with those of a new walk, and returns the changes. The first walk has
    /// none.
    pub(super) fn replace_files(
        &self,
        now: BTreeMap<String, FileStat>,
    ) -> Vec<(String, FileChangeKind)> {
        let before = lock(&self.inner).files.replace(now.clone());
        before.map(|before| changes_between(&before, &now)).unwrap_or_default()
    }
}

/// Returns the changes from one walk to the next.
fn changes_between(
    before: &BTreeMap<String, FileStat>,
    now: &BTreeMap<String, FileStat>,
) -> Vec<(String, FileChangeKind)> {
    let present = now.iter().filter_map(|(path, stat)| match before.get(path) {
        Some(previous) if previous == stat => None,
        Some(_) => Some((path.clone(), FileChangeKind::Changed)),
        None => Some((path.clone(), FileChangeKind::Created)),
    });
    let deleted = before.keys().filter(|path| !now.contains_key(*path));
    present.chain(deleted.map(|path| (path.clone(), FileChangeKind::Deleted))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn changes_are_detected_by_time_and_size() {
        let files = |list: &[(&str, u64, u64)]| -> BTreeMap<String, FileStat> {
            let stat = |(path, modified, size): &(&str, u64, u64)| {
                let modified = Duration::from_secs(*modified);
                ((*path).to_owned(), FileStat { modified, size: *size })
            };
            list.iter().map(stat).collect()
        };
        let before = files(&[("same", 1, 1), ("older", 2, 1), ("longer", 3, 1), ("gone", 1, 1)]);
        let now = files(&[("same", 1, 1), ("older", 1, 1), ("longer", 3, 2), ("made", 1, 1)]);
        let changes = changes_between(&before, &now);
        let kinds: Vec<_> = changes.iter().map(|(path, kind)| (path.as_str(), *kind)).collect();
        let expected = [
            ("longer", FileChangeKind::Changed),
            ("made", FileChangeKind::Created),
            ("older", FileChangeKind::Changed),
            ("gone", FileChangeKind::Deleted),
        ];
        assert_eq!(kinds, expected);
    }
}
