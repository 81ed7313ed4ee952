//! Blobs: bytes in files named by their SHA-256, beside the database.
//!
//! A blob is written whole under a temporary name and renamed, so a name never shows half a blob.
//! It is synced at the next barrier, not before: until then no durable fact can point at it.
#![allow(clippy::disallowed_methods, reason = "storage is the door to its own files")]

use crate::Error;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::{File, FileTimes, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use windlass_protocol::BlobRef;

/// A folder of blobs.
pub(crate) struct Blobs {
    folder: PathBuf,
    unsynced: Mutex<Vec<PathBuf>>,
    counter: AtomicU64,
}

/// A blob nobody points at is removed only when it is older than this: a younger one may belong
/// to a fact that is about to be appended.
const GRACE: Duration = Duration::from_secs(3600);

impl Blobs {
    pub(crate) fn new(folder: PathBuf) -> Blobs {
        Blobs { folder, unsynced: Mutex::default(), counter: AtomicU64::new(0) }
    }

    fn path(&self, blob: &BlobRef) -> PathBuf {
        let (head, tail) = blob.as_str().split_at(2);
        self.folder.join(head).join(tail)
    }

    pub(crate) fn put(&self, bytes: &[u8]) -> Result<BlobRef, Error> {
        let blob = BlobRef::of_digest(Sha256::digest(bytes).into());
        let path = self.path(&blob);
        let failed = || Error::file("an output could not be stored");
        if let Ok(kept) = OpenOptions::new().write(true).open(&path) {
            let now = FileTimes::new().set_modified(SystemTime::now());
            kept.set_times(now).map_err(failed())?;
            return Ok(blob);
        }
        let folder = path.parent().unwrap_or(&self.folder);
        private_folder(folder).map_err(failed())?;
        let unique = self.counter.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{}.{unique}.draft", std::process::id()));
        let written = create_private(&draft)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| std::fs::rename(&draft, &path));
        if let Err(error) = written {
            let _ = std::fs::remove_file(&draft);
            return Err(failed()(error));
        }
        self.lock_unsynced().push(path);
        Ok(blob)
    }

    pub(crate) fn get(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        let bytes =
            std::fs::read(self.path(blob)).map_err(|_| Error::BlobLost { blob: blob.clone() })?;
        if BlobRef::of_digest(Sha256::digest(&bytes).into()) == *blob {
            Ok(bytes)
        } else {
            Err(Error::BlobLost { blob: blob.clone() })
        }
    }

    /// Puts on the disk whatever was written since the last barrier.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let paths = std::mem::take(&mut *self.lock_unsynced());
        for path in paths {
            let failed = || Error::file("an output could not be synced to the disk");
            File::open(&path).and_then(|file| file.sync_all()).map_err(failed())?;
            if let Some(folder) = path.parent() {
                File::open(folder).and_then(|file| file.sync_all()).map_err(failed())?;
            }
        }
        Ok(())
    }

    /// Removes blobs that no fact points at.
    pub(crate) fn prune(&self, used: &HashSet<String>) -> Result<(), Error> {
        let failed = || Error::file("stored outputs could not be cleaned up");
        let Ok(folders) = std::fs::read_dir(&self.folder) else { return Ok(()) };
        for folder in folders {
            let folder = folder.map_err(failed())?;
            for file in std::fs::read_dir(folder.path()).map_err(failed())? {
                let file = file.map_err(failed())?;
                let name = format!(
                    "{}{}",
                    folder.file_name().to_string_lossy(),
                    file.file_name().to_string_lossy()
                );
                let modified = file.metadata().and_then(|data| data.modified()).map_err(failed())?;
                let old = modified.elapsed().is_ok_and(|age| age > GRACE);
                if old && !used.contains(&name) {
                    std::fs::remove_file(file.path()).map_err(failed())?;
                }
            }
        }
        Ok(())
    }

    fn lock_unsynced(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.unsynced.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
