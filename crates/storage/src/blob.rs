//! Blob store: bytes in files named by their SHA-256, next to the database.
//!
//! A blob is written under a temporary name, flushed and renamed, so that a name never refers to a
//! partial blob and no fact ever refers to a blob that a power cut can remove. This costs a flush,
//! but only outputs too large for a row become blobs.
#![allow(clippy::disallowed_methods, reason = "the storage crate opens its own files directly")]

use crate::StorageError;
use crate::data_folder::{create_private_file, create_private_folder, remove_file_if_exists};
use crate::stored_facts::FactBlobs;
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use windlass_protocol::BlobRef;

/// A folder of blobs, each in a file `ab/cdef…` named by its `BlobRef`.
pub(crate) struct BlobStore {
    folder: PathBuf,
    counter: AtomicU64,
}

/// The minimum age at which an unreferenced blob is removed: a younger one may belong to a fact
/// that is about to be appended.
const PRUNE_MIN_AGE: Duration = Duration::from_secs(60);

impl BlobStore {
    pub(crate) fn new(folder: PathBuf) -> BlobStore {
        BlobStore { folder, counter: AtomicU64::new(0) }
    }

    fn path(&self, blob: &BlobRef) -> PathBuf {
        let (head, tail) = blob.as_str().split_at(2);
        self.folder.join(head).join(tail)
    }

    pub(crate) fn put(&self, bytes: &[u8]) -> Result<BlobRef, StorageError> {
        let blob = BlobRef::for_bytes(bytes);
        let path = self.path(&blob);
        let folder = path.parent().unwrap_or(&self.folder);
        let unique = self.counter.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{}.{unique}.draft", std::process::id()));
        let write = || {
            create_private_folder(folder)?;
            let mut file = create_private_file(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)?;
            File::open(folder)?.sync_all()?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| {
            // The draft may not exist; it only must not remain.
            remove_file_if_exists(&draft);
            StorageError::from_io("could not save an output")(error)
        })?;
        Ok(blob)
    }

    /// Finds the only blob whose name begins with these hex digits.
    pub(crate) fn find(&self, prefix: &str) -> Option<BlobRef> {
        let (head, rest) = prefix.split_at_checked(2)?;
        let is_hex = prefix.bytes().all(|byte| byte.is_ascii_hexdigit());
        let files = std::fs::read_dir(self.folder.join(head)).ok().filter(|_| is_hex)?.flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let mut found = names.filter(|name| name.starts_with(rest));
        let name = found.next()?;
        found.next().is_none().then(|| BlobRef::parse(&format!("{head}{name}")))?
    }

    pub(crate) fn get(&self, blob: &BlobRef) -> Result<Vec<u8>, StorageError> {
        let bytes = std::fs::read(self.path(blob))
            .map_err(|_| StorageError::BlobLost { blob: blob.clone() })?;
        if BlobRef::for_bytes(&bytes) == *blob {
            Ok(bytes)
        } else {
            Err(StorageError::BlobLost { blob: blob.clone() })
        }
    }

    /// Removes blobs that no fact refers to. If a removal fails, the next deletion of a session
    /// retries it.
    pub(crate) fn prune(&self, used: &HashSet<String>) {
        for (name, path, metadata) in self.files() {
            let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > PRUNE_MIN_AGE) && !used.contains(&name) {
                remove_file_if_exists(&path);
            }
        }
    }

    /// Returns the size of all blobs.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.files().map(|(_, _, metadata)| metadata.len()).sum()
    }

    /// Lists the blobs with their names.
    fn files(&self) -> impl Iterator<Item = (String, PathBuf, Metadata)> {
        let folders = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        folders.flat_map(|folder| {
            let head = folder.file_name();
            let files = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
            files.filter_map(move |file| {
                let tail = file.file_name();
                let name = format!("{}{}", head.to_string_lossy(), tail.to_string_lossy());
                Some((name, file.path(), file.metadata().ok()?))
            })
        })
    }
}

impl FactBlobs for BlobStore {
    fn blob_bytes(&self, blob: &BlobRef) -> Option<usize> {
        let metadata = std::fs::metadata(self.path(blob)).ok()?;
        usize::try_from(metadata.len()).ok()
    }

    fn read_blob(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        self.get(blob).ok()
    }
}
