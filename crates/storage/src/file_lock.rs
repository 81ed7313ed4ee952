//! Locks on files that several processes share, with a queue: the kernel wakes waiting processes
//! one at a time, in the order in which they came.
//!
//! SQLite's own lock has no queue: a writer that finds it taken sleeps and tries again, and under
//! load the same writer can lose for longer than any timeout. So a writer locks a file first, and
//! then finds SQLite's lock free.

use crate::{StorageError, data_folder};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

/// Maximum time to wait for a lock. It is only reached if another process is stopped or hangs.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(60);

/// Waits for a lock file and locks it. The lock is released when the returned file is dropped.
pub(crate) async fn lock_in_turn(path: &Path) -> Result<File, StorageError> {
    lock_within(path, MAX_LOCK_WAIT).await
}

#[allow(clippy::disallowed_methods, reason = "the thread only waits for the lock")]
async fn lock_within(path: &Path, max_wait: Duration) -> Result<File, StorageError> {
    let cannot_lock =
        |error| StorageError::from_io(format!("could not lock {}", path.display()))(error);
    let file = data_folder::open_lock_file(path).map_err(cannot_lock)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(cannot_lock(error)),
    }
    // A thread of its own, not one of the runtime: the runtime would wait for it at exit.
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let waiter = move || {
        let locked = file.lock().map(|()| file);
        // If the receiver has given up, the file is dropped here, and with it the lock.
        let _ = sender.send(locked);
    };
    std::thread::Builder::new().name("lock".into()).spawn(waiter).map_err(cannot_lock)?;
    match tokio::time::timeout(max_wait, receiver).await {
        Ok(Ok(locked)) => locked.map_err(cannot_lock),
        Ok(Err(error)) => Err(cannot_lock(std::io::Error::other(error))),
        Err(_) => Err(StorageError::LockTimeout {
            path: path.display().to_string(),
            seconds: max_wait.as_secs(),
        }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::lock_within;
    use crate::StorageError;
    use std::time::Duration;

    #[tokio::test]
    async fn a_lock_is_waited_for_within_a_limit_and_released_by_who_gave_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let holder = lock_within(&path, Duration::from_secs(9)).await.unwrap();
        let late = lock_within(&path, Duration::from_millis(50)).await;
        assert!(matches!(late, Err(StorageError::LockTimeout { .. })), "{late:?}");
        let waiting = lock_within(&path, Duration::from_secs(30));
        let (locked, ()) = tokio::join!(waiting, async { drop(holder) });
        drop(locked.unwrap());
        drop(lock_within(&path, Duration::from_secs(30)).await.unwrap());
    }
}
