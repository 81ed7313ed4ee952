//! Blobs: bytes in files named by their SHA-256, beside the database.
//!
//! A blob is written under a temporary name, flushed and renamed, so that a name never shows half
//! a blob and no fact ever points at one that a power cut can take away. It costs a flush, but
//! only outputs too large for a row become blobs.
#![allow(clippy::disallowed_methods, reason = "storage is the door to its own files")]

use crate::Error;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use windlass_protocol::BlobRef;

/// A folder of blobs.
pub(crate) struct Blobs {
    folder: PathBuf,
    counter: AtomicU64,
}

/// A blob nobody points at is removed only when it is older than this: a younger one may belong
/// to a fact that is about to be appended.
const GRACE: Duration = Duration::from_secs(3600);

impl Blobs {
    pub(crate) fn new(folder: PathBuf) -> Blobs {
        Blobs { folder, counter: AtomicU64::new(0) }
    }

    fn path(&self, blob: &BlobRef) -> PathBuf {
        let (head, tail) = blob.as_str().split_at(2);
        self.folder.join(head).join(tail)
    }

    pub(crate) fn put(&self, bytes: &[u8]) -> Result<BlobRef, Error> {
        let blob = BlobRef::of(bytes);
        let path = self.path(&blob);
        let folder = path.parent().unwrap_or(&self.folder);
        let unique = self.counter.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{}.{unique}.draft", std::process::id()));
        let write = || {
            private_folder(folder)?;
            let mut file = create_private(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)?;
            File::open(folder)?.sync_all()?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| {
            // The draft may not exist; what matters is that it does not stay.
            remove(&draft);
            Error::file("an output could not be stored")(error)
        })?;
        Ok(blob)
    }

    pub(crate) fn get(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        let bytes =
            std::fs::read(self.path(blob)).map_err(|_| Error::BlobLost { blob: blob.clone() })?;
        if BlobRef::of(&bytes) == *blob {
            Ok(bytes)
        } else {
            Err(Error::BlobLost { blob: blob.clone() })
        }
    }

    /// Removes blobs that no fact points at. What cannot be removed now is tried again when the
    /// next session is deleted.
    pub(crate) fn prune(&self, used: &HashSet<String>) {
        for folder in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let (head, tail) = (folder.file_name(), file.file_name());
                let name = format!("{}{}", head.to_string_lossy(), tail.to_string_lossy());
                let modified = file.metadata().and_then(|data| data.modified());
                let age = modified.ok().and_then(|modified| modified.elapsed().ok());
                if age.is_some_and(|age| age > GRACE) && !used.contains(&name) {
                    remove(&file.path());
                }
            }
        }
    }
}

/// Makes a folder that only its owner can look into.
pub(crate) fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens, or makes, a file whose only job is to be locked.
pub(crate) fn lock_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes a file; that it is not there is fine.
pub(crate) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
