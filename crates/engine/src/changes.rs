//! What a session remembers of files beyond its log: copies that take a change back, the bytes it
//! was shown last, to tell what has become different, and how the files looked from outside, to
//! notice that they have.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{BlobRef, Change, Files, Millis, Sight, Version};
use windlass_storage::Log;
use windlass_toolkit::{Content, Failure, Glance, Pending, Seen};

/// Keeps what is needed to take a batch back, and says what it changes.
pub(crate) async fn keep(log: &dyn Log, batch: Vec<Pending>) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::with_capacity(batch.len());
    for Pending { path, before, after } in batch {
        let before = match before {
            Some(content) => Some(version_of(log, content, None).await?),
            None => None,
        };
        let near = before.as_ref().map(|version| &version.copy);
        let after = match after {
            Some(content) => Some(version_of(log, content, near).await?),
            None => None,
        };
        changes.push(Change { path, before, after });
    }
    Ok(changes)
}

async fn version_of(
    log: &dyn Log,
    content: Content,
    near: Option<&BlobRef>,
) -> Result<Version, Failure> {
    let kept = log.keep_copy(content.bytes.to_vec(), near).await;
    let copy = kept.map_err(|error| Failure::new(error.to_string()))?;
    Ok(Version { copy, mode: content.mode })
}

/// The bytes of a version.
pub(crate) async fn version(log: &dyn Log, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
    log.get_copy(copy).await.map_err(|error| Failure::new(error.to_string()))
}

/// How many bytes of files are kept at hand. They serve to show a difference; what matters is the
/// digest, which the log has.
const AT_HAND: usize = 16 << 20;

/// How many files are watched: those that were seen last.
const WATCHED: usize = 50;

/// How many of them are named when they have changed.
const NAMED: usize = 20;

/// How a file looked from outside when it was seen.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// Like this.
    Like(Option<Glance>),
    /// As it was when the session was last at work.
    AsOf(Duration),
}

/// What a session last saw of files.
#[derive(Default)]
pub(crate) struct Shelf {
    seen: BTreeMap<String, BlobRef>,
    /// How the files looked that were seen last, the latest at the end.
    marks: VecDeque<(String, Mark)>,
    /// Bytes by digest, oldest first.
    bytes: VecDeque<(BlobRef, Arc<[u8]>)>,
    size: usize,
}

impl Shelf {
    /// What a log tells, whose last fact is of that time.
    pub(crate) fn new(files: &Files, last: Millis) -> Shelf {
        let seen = files.seen().clone();
        let mark = Mark::AsOf(Duration::from_millis(last.0));
        let marks = seen.keys().take(WATCHED).map(|path| (path.clone(), mark)).collect();
        Shelf { seen, marks, ..Shelf::default() }
    }

    /// A call has settled: what it showed counts.
    pub(crate) fn record(&mut self, seen: &[Sight], glance: impl Fn(&str) -> Option<Glance>) {
        for Sight { path, digest } in seen {
            self.seen.insert(path.clone(), digest.clone());
            self.marks.retain(|(marked, _)| marked != path);
            self.marks.push_back((path.clone(), Mark::Like(glance(path))));
            if self.marks.len() > WATCHED {
                self.marks.pop_front();
            }
        }
    }

    /// What to tell of files that look different from when they were seen, each time they do. It is
    /// a hint: whoever changes a file is held to what it said by its digest.
    pub(crate) fn changed(&mut self, glance: impl Fn(&str) -> Option<Glance>) -> Option<String> {
        let mut changed = Vec::new();
        for (path, mark) in &mut self.marks {
            // What is gone is found out by whoever looks for it.
            let Some(now) = glance(path) else { continue };
            let differs = match mark {
                Mark::Like(then) => *then != Some(now),
                Mark::AsOf(then) => now.changed > *then,
            };
            *mark = Mark::Like(Some(now));
            if differs {
                changed.push(path.as_str());
            }
        }
        let more = changed.len().saturating_sub(NAMED);
        changed.truncate(NAMED);
        changed.sort_unstable();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!changed.is_empty()).then(|| {
            format!(
                "Changed on disk since you last saw them, by a command or by somebody else: {}{more}. \
                 Read them again before you rely on what you remember.",
                changed.join(", ")
            )
        })
    }

    /// Forgets what the log does not tell any more.
    pub(crate) fn keep(&mut self, files: &Files) {
        self.seen.retain(|path, _| files.seen().contains_key(path));
        self.marks.retain(|(path, _)| files.seen().contains_key(path));
    }

    pub(crate) fn seen(&self, path: &str) -> Option<Seen> {
        let digest = self.seen.get(path)?.clone();
        let bytes = self.bytes.iter().rev().find(|(kept, _)| *kept == digest);
        let bytes = bytes.map(|(_, bytes)| Arc::clone(bytes));
        Some(Seen { digest, bytes })
    }

    /// A call shows a file; that counts once it has settled.
    pub(crate) fn show(&mut self, path: &str, bytes: &Arc<[u8]>) -> Sight {
        let digest = BlobRef::of(bytes);
        if !self.bytes.iter().any(|(kept, _)| *kept == digest) {
            self.size += bytes.len();
            self.bytes.push_back((digest.clone(), Arc::clone(bytes)));
        }
        while self.size > AT_HAND
            && let Some((_, oldest)) = self.bytes.pop_front()
        {
            self.size -= oldest.len();
        }
        Sight { path: path.to_owned(), digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_stay_and_bytes_go_oldest_first() {
        let mut shelf = Shelf::default();
        let large = |fill: u8| -> Arc<[u8]> { vec![fill; AT_HAND / 2 - 1].into() };
        for (path, fill) in [("a", 1), ("b", 2), ("c", 3)] {
            let sight = shelf.show(path, &large(fill));
            assert_eq!(shelf.seen(path), None, "it has not settled");
            shelf.record(&[sight], |_| None);
        }
        let held = |path| shelf.seen(path).unwrap().bytes.is_some();
        assert_eq!(["a", "b", "c"].map(held), [false, true, true]);
        assert_eq!(shelf.seen("a").unwrap().digest, BlobRef::of(&large(1)));
    }

    fn sight(path: &str) -> Sight {
        Sight { path: path.to_owned(), digest: BlobRef::of(b"") }
    }

    fn at(seconds: u64) -> Option<Glance> {
        Some(Glance { changed: Duration::from_secs(seconds), size: 1 })
    }

    #[test]
    fn a_file_that_looks_different_is_told_of_each_time_it_does() {
        let mut shelf = Shelf::default();
        shelf.record(&[sight("a"), sight("b"), sight("gone")], |_| at(1));
        let named = |shelf: &mut Shelf, a: u64, b: u64| {
            let told = shelf.changed(|path| match path {
                "a" => at(a),
                "b" => at(b),
                _ => None,
            });
            ["else: a.", "else: b.", "else: a, b."]
                .into_iter()
                .find(|words| told.as_ref().is_some_and(|told| told.contains(words)))
        };
        assert_eq!(named(&mut shelf, 1, 1), None);
        assert_eq!(named(&mut shelf, 2, 1), Some("else: a."));
        assert_eq!(named(&mut shelf, 2, 1), None, "it is told once");
        assert_eq!(named(&mut shelf, 3, 0), Some("else: a, b."), "an older file is another one");
        shelf.record(&[sight("b")], |_| at(9));
        assert_eq!(named(&mut shelf, 3, 9), None, "what the session left there is known to it");
    }

    #[test]
    fn of_many_files_the_last_are_watched_and_some_are_named() {
        let mut shelf = Shelf::default();
        for n in 0..200 {
            shelf.record(&[sight(&format!("{n:03}"))], |_| at(1));
        }
        let looked = std::cell::Cell::new(0);
        let told = shelf.changed(|path| {
            looked.set(looked.get() + 1);
            if path == "199" { at(1) } else { at(2) }
        });
        let told = told.unwrap();
        assert_eq!(looked.get(), WATCHED);
        assert!(told.contains(": 150, 151, ") && told.contains("169 and 29 more."), "{told}");
    }
}
