//! File state that a session keeps beyond its log: copies for undoing changes, the bytes last shown
//! to the model (to compute differences), and file stats (to notice changes on disk).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{
    BlobRef, FileChange, FileHistory, FileVersion, SeenFileDigest, UnixMillis,
};
use windlass_storage::Log;
use windlass_toolkit::{CallFailure, FileContent, FileStat, PendingFileChange, SeenFile};

/// Stores the copies needed to undo a batch of changes, and returns each `FileChange` to record.
pub(crate) async fn store_changes(
    log: &dyn Log,
    batch: Vec<PendingFileChange>,
) -> Result<Vec<FileChange>, CallFailure> {
    let mut changes = Vec::with_capacity(batch.len());
    for PendingFileChange { path, before, after } in batch {
        let before = match before {
            Some(content) => Some(store_version(log, content, None).await?),
            None => None,
        };
        let base = before.as_ref().map(|version| &version.blob);
        let after = match after {
            Some(content) => Some(store_version(log, content, base).await?),
            None => None,
        };
        changes.push(FileChange { path, before, after });
    }
    Ok(changes)
}

async fn store_version(
    log: &dyn Log,
    content: FileContent,
    base: Option<&BlobRef>,
) -> Result<FileVersion, CallFailure> {
    let blob = log.put_copy(content.bytes.to_vec(), base).await;
    let blob = blob.map_err(|error| CallFailure::new(error.to_string()))?;
    Ok(FileVersion { blob, unix_mode: content.mode })
}

pub(crate) async fn read_version(log: &dyn Log, copy: &BlobRef) -> Result<Vec<u8>, CallFailure> {
    log.get_copy(copy).await.map_err(|error| CallFailure::new(error.to_string()))
}

/// Maximum bytes in `cached_bytes`. They only serve to show differences; the digest that matters is
/// in the log.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// Maximum number of watched files: those seen most recently.
const MAX_WATCHED_FILES: usize = 50;

/// Maximum number of changed files named in a notice.
const MAX_NAMED_FILES: usize = 20;

/// State of a file on disk when it was last seen.
#[derive(Clone, Copy, Debug)]
enum SeenFileState {
    /// The `FileStat` at that time.
    Stat(Option<FileStat>),
    /// After a resume: unchanged since the last fact of the log.
    UnchangedSince(Duration),
}

/// Digests, stats and cached bytes of the files that a session last saw.
#[derive(Default)]
pub(crate) struct FileTracker {
    last_seen: BTreeMap<String, BlobRef>,
    /// Files that commands of the session have changed since they were last seen.
    changed_by_command: BTreeSet<String>,
    /// A `SeenFileState` for each file seen last, most recent at the end.
    marks: VecDeque<(String, SeenFileState)>,
    /// File contents by digest, oldest first.
    cached_bytes: VecDeque<(BlobRef, Arc<[u8]>)>,
    cached_size: usize,
    /// Files with instructions that a call of this step shows, so that no other call shows them,
    /// too.
    claimed_instructions: BTreeSet<String>,
}

impl FileTracker {
    /// Restores the tracker from a log whose last fact has the time `last_fact_at`.
    pub(crate) fn new(files: &FileHistory, last_fact_at: UnixMillis) -> FileTracker {
        let last_seen = files.seen_digests().clone();
        let mark = SeenFileState::UnchangedSince(Duration::from_millis(last_fact_at.0));
        let marks =
            last_seen.keys().take(MAX_WATCHED_FILES).map(|path| (path.clone(), mark)).collect();
        FileTracker { last_seen, marks, ..FileTracker::default() }
    }

    /// Records the files that a settled call showed to the model.
    pub(crate) fn record_seen(
        &mut self,
        seen_files: &[SeenFileDigest],
        stat: impl Fn(&str) -> Option<FileStat>,
    ) {
        for SeenFileDigest { path, digest } in seen_files {
            self.changed_by_command.remove(path);
            self.last_seen.insert(path.clone(), digest.clone());
            self.marks.retain(|(marked, _)| marked != path);
            self.marks.push_back((path.clone(), SeenFileState::Stat(stat(path))));
            if self.marks.len() > MAX_WATCHED_FILES {
                self.marks.pop_front();
            }
        }
    }

    /// Returns true if the model has not seen the instructions in a file, and no other call of
    /// this step shows them.
    pub(crate) fn claim_instructions(&mut self, path: &str) -> bool {
        !self.last_seen.contains_key(path) && self.claimed_instructions.insert(path.to_owned())
    }

    /// Ends the claims of a step: what its calls showed is in `last_seen` by now.
    pub(crate) fn end_instruction_claims(&mut self) {
        self.claimed_instructions.clear();
    }

    /// Records that a command of the session has changed files.
    pub(crate) fn mark_changed_by_command(&mut self, changes: &[FileChange]) {
        let known = changes.iter().filter(|change| self.last_seen.contains_key(&change.path));
        self.changed_by_command.extend(known.map(|change| change.path.clone()));
    }

    /// Describes files that changed on disk since they were last seen or last reported. It is only
    /// a hint: tools that change a file check the content digest.
    pub(crate) fn describe_changed_files(
        &mut self,
        stat: impl Fn(&str) -> Option<FileStat>,
    ) -> Option<String> {
        let (mut changed, mut by_command) = (Vec::new(), Vec::new());
        for (path, mark) in &mut self.marks {
            // A tool that looks for a deleted file finds out itself.
            let Some(current) = stat(path) else { continue };
            let has_changed = match mark {
                SeenFileState::Stat(last) => *last != Some(current),
                SeenFileState::UnchangedSince(time) => current.modified > *time,
            };
            *mark = SeenFileState::Stat(Some(current));
            match (has_changed, self.changed_by_command.contains(path)) {
                (true, true) => by_command.push(path.as_str()),
                (true, false) => changed.push(path.as_str()),
                (false, _) => {}
            }
        }
        let changes = [
            ("Changed by your own commands since you last read them", by_command),
            (
                "Changed on disk since you last read them (by a formatter, the user or another \
                 program)",
                changed,
            ),
        ];
        let texts: Vec<String> = changes
            .into_iter()
            .filter(|(_, paths)| !paths.is_empty())
            .map(|(description, paths)| format!("{description}: {}.", list_paths(paths)))
            .collect();
        (!texts.is_empty()).then(|| {
            format!("{} Read them again before you rely on their content.", texts.join(" "))
        })
    }

    /// Removes the files that the log no longer counts as seen: after a rewind, or instructions
    /// that may have left the model's context.
    pub(crate) fn retain_known(&mut self, files: &FileHistory) {
        self.last_seen.retain(|path, _| files.seen_digests().contains_key(path));
        self.marks.retain(|(path, _)| files.seen_digests().contains_key(path));
    }

    pub(crate) fn last_seen(&self, path: &str) -> Option<SeenFile> {
        let digest = self.last_seen.get(path)?.clone();
        let bytes = self.cached_bytes.iter().rev().find(|(cached, _)| *cached == digest);
        let bytes = bytes.map(|(_, bytes)| Arc::clone(bytes));
        let is_changed_by_command = self.changed_by_command.contains(path);
        Some(SeenFile { digest, bytes, is_changed_by_command })
    }

    /// Caches the contents that a call shows. They count as seen once the call settles: see
    /// `record_seen`.
    pub(crate) fn cache_file(&mut self, path: &str, bytes: &Arc<[u8]>) -> SeenFileDigest {
        let digest = BlobRef::for_bytes(bytes);
        if !self.cached_bytes.iter().any(|(cached, _)| *cached == digest) {
            self.cached_size += bytes.len();
            self.cached_bytes.push_back((digest.clone(), Arc::clone(bytes)));
        }
        while self.cached_size > MAX_CACHED_BYTES
            && let Some((_, oldest)) = self.cached_bytes.pop_front()
        {
            self.cached_size -= oldest.len();
        }
        SeenFileDigest { path: path.to_owned(), digest }
    }
}

fn list_paths(mut paths: Vec<&str>) -> String {
    let more = paths.len().saturating_sub(MAX_NAMED_FILES);
    paths.truncate(MAX_NAMED_FILES);
    paths.sort_unstable();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    paths.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_kept_and_the_oldest_bytes_are_evicted() {
        let mut tracker = FileTracker::default();
        let large = |fill: u8| -> Arc<[u8]> { vec![fill; MAX_CACHED_BYTES / 2 - 1].into() };
        for (path, fill) in [("a", 1), ("b", 2), ("c", 3)] {
            let seen_file = tracker.cache_file(path, &large(fill));
            assert_eq!(tracker.last_seen(path), None, "its call has not settled");
            tracker.record_seen(&[seen_file], |_| None);
        }
        let is_cached = |path| tracker.last_seen(path).unwrap().bytes.is_some();
        assert_eq!(["a", "b", "c"].map(is_cached), [false, true, true]);
        assert_eq!(tracker.last_seen("a").unwrap().digest, BlobRef::for_bytes(&large(1)));
    }

    fn seen_file(path: &str) -> SeenFileDigest {
        SeenFileDigest { path: path.to_owned(), digest: BlobRef::for_bytes(b"") }
    }

    fn at(seconds: u64) -> Option<FileStat> {
        Some(FileStat { modified: Duration::from_secs(seconds), size: 1 })
    }

    #[test]
    fn every_change_of_a_file_is_described_once() {
        let mut tracker = FileTracker::default();
        tracker.record_seen(&[seen_file("a"), seen_file("b"), seen_file("gone")], |_| at(1));
        let describe = |tracker: &mut FileTracker, a: u64, b: u64| {
            let text = tracker.describe_changed_files(|path| match path {
                "a" => at(a),
                "b" => at(b),
                _ => None,
            });
            ["program): a.", "program): b.", "program): a, b."]
                .into_iter()
                .find(|words| text.as_ref().is_some_and(|text| text.contains(words)))
        };
        assert_eq!(describe(&mut tracker, 1, 1), None);
        assert_eq!(describe(&mut tracker, 2, 1), Some("program): a."));
        assert_eq!(describe(&mut tracker, 2, 1), None, "a change is described once");
        assert_eq!(
            describe(&mut tracker, 3, 0),
            Some("program): a, b."),
            "an older time is a change, too"
        );
        tracker.record_seen(&[seen_file("b")], |_| at(9));
        assert_eq!(describe(&mut tracker, 3, 9), None, "the session's own change is known");
    }

    #[test]
    fn the_newest_files_are_watched_and_a_limited_number_is_named() {
        let mut tracker = FileTracker::default();
        for n in 0..200 {
            tracker.record_seen(&[seen_file(&format!("{n:03}"))], |_| at(1));
        }
        let stat_count = std::cell::Cell::new(0);
        let text = tracker.describe_changed_files(|path| {
            stat_count.set(stat_count.get() + 1);
            if path == "199" { at(1) } else { at(2) }
        });
        let text = text.unwrap();
        assert_eq!(stat_count.get(), MAX_WATCHED_FILES);
        assert!(text.contains(": 150, 151, ") && text.contains("169 and 29 more."), "{text}");
    }
}
