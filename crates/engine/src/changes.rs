//! What a session remembers of files beyond its log: copies that take a change back, and the bytes
//! it was shown last, to tell what has become different.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use windlass_protocol::{BlobRef, Change, Files, Sight, Version};
use windlass_storage::Log;
use windlass_toolkit::{Content, Failure, Pending, Seen};

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

/// What a session last saw of files.
#[derive(Default)]
pub(crate) struct Shelf {
    seen: BTreeMap<String, BlobRef>,
    /// Bytes by digest, oldest first.
    bytes: VecDeque<(BlobRef, Arc<[u8]>)>,
    size: usize,
}

impl Shelf {
    pub(crate) fn new(files: &Files) -> Shelf {
        Shelf { seen: files.seen().clone(), ..Shelf::default() }
    }

    /// A call has settled: what it showed counts.
    pub(crate) fn record(&mut self, seen: &[Sight]) {
        for Sight { path, digest } in seen {
            self.seen.insert(path.clone(), digest.clone());
        }
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
            shelf.record(&[sight]);
        }
        let held = |path| shelf.seen(path).unwrap().bytes.is_some();
        assert_eq!(["a", "b", "c"].map(held), [false, true, true]);
        assert_eq!(shelf.seen("a").unwrap().digest, BlobRef::of(&large(1)));
    }
}
