//! Locks on files that several processes share, in the order in which the processes came.
//!
//! SQLite's own lock has no queue: a writer that finds it taken sleeps and tries again, and under
//! load the same writer can lose for longer than any timeout. So a writer locks one of a few files
//! first, and then finds SQLite's lock free or soon free.
//!
//! A file lock alone is not fair either: a process that comes while a lock is handed over takes it,
//! and all that waited get behind it. So a process that has to wait takes a number and waits for the
//! process with the number before it. The numbers are only about order. If one is lost, for example
//! because its process was killed, the locks themselves still admit no more processes than there are
//! files.
#![allow(clippy::disallowed_methods, reason = "opens the lock files of the data folder")]

use crate::{StorageError, data_folder};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time to wait for a lock. It is only reached if another process is stopped or hangs.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(60);

/// The number after which numbers start again, so that the file that counts them stays small.
const MAX_QUEUE_NUMBER: u64 = 1 << 20;

/// Waits for a lock file and locks it. The lock is released when the returned file is dropped.
pub(crate) async fn lock_in_turn(path: &Path) -> Result<File, StorageError> {
    lock_within(&[path.to_owned()], MAX_LOCK_WAIT).await
}

/// Waits for one of several lock files and locks it, so that as many processes as there are files
/// work at the same time.
pub(crate) async fn lock_any_in_turn(paths: &[PathBuf]) -> Result<File, StorageError> {
    lock_within(paths, MAX_LOCK_WAIT).await
}

async fn lock_within(paths: &[PathBuf], max_wait: Duration) -> Result<File, StorageError> {
    let path = paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
    let cannot_lock =
        |error| StorageError::from_io(format!("could not lock {}", path.display()))(error);
    let files: io::Result<Vec<File>> =
        paths.iter().map(|path| data_folder::open_lock_file(path)).collect();
    let mut files = files.map_err(cannot_lock)?;
    let queue = LockQueue { folder: path.with_extension("queue") };
    if queue.is_empty()
        && let Some(file) = try_lock_any(&mut files).map_err(cannot_lock)?
    {
        return Ok(file);
    }
    // A thread of its own, not one of the runtime: the runtime would wait for it at exit.
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let waiter = move || {
        // If the receiver has given up, the file is dropped here, and with it the lock.
        let _ = sender.send(queue.wait(files));
    };
    std::thread::Builder::new().name("lock".into()).spawn(waiter).map_err(cannot_lock)?;
    match tokio::time::timeout(max_wait, receiver).await {
        Ok(Ok(locked)) => locked.map_err(cannot_lock),
        Ok(Err(error)) => Err(cannot_lock(io::Error::other(error))),
        Err(_) => Err(StorageError::LockTimeout {
            path: path.display().to_string(),
            seconds: max_wait.as_secs(),
        }),
    }
}

/// Locks a file that is free, if there is one.
fn try_lock_any(files: &mut Vec<File>) -> io::Result<Option<File>> {
    for index in 0..files.len() {
        match files.get(index).map(File::try_lock) {
            Some(Ok(())) => return Ok(Some(files.swap_remove(index))),
            Some(Err(TryLockError::WouldBlock)) | None => {}
            Some(Err(TryLockError::Error(error))) => return Err(error),
        }
    }
    Ok(None)
}

/// The processes that wait for a lock. Each keeps a file locked whose name is its number.
struct LockQueue {
    folder: PathBuf,
}

impl LockQueue {
    /// The name of the file that every waiting process keeps locked.
    const WAITING_FILE: &str = "waiting";
    /// The name of the file whose length is the last number.
    const NUMBERS_FILE: &str = "numbers";

    /// Returns true if no process waits.
    fn is_empty(&self) -> bool {
        let path = self.folder.join(LockQueue::WAITING_FILE);
        match data_folder::open_existing_lock_file(&path) {
            Ok(waiting) => waiting.try_lock().is_ok(),
            Err(_) => true,
        }
    }

    /// Waits for the processes that came earlier, and locks one of the files.
    fn wait(&self, mut files: Vec<File>) -> io::Result<File> {
        data_folder::create_private_folder(&self.folder)?;
        let waiting = data_folder::open_lock_file(&self.folder.join(LockQueue::WAITING_FILE))?;
        waiting.lock_shared()?;
        let (number, own) = self.take_number()?;
        let previous = self.number_path(number.saturating_sub(1));
        if let Ok(previous) = data_folder::open_existing_lock_file(&previous) {
            previous.lock_shared()?;
        }
        let locked = match try_lock_any(&mut files)? {
            Some(file) => Ok(file),
            None => {
                let file = files.swap_remove(number as usize % files.len().max(1));
                file.lock().map(|()| file)
            }
        };
        // From here on the next process waits for the lock itself, so that it is woken directly.
        data_folder::remove_file_if_exists(&self.number_path(number));
        drop(own);
        locked
    }

    /// Takes the next number and locks its file, before another process can take the one after it.
    fn take_number(&self) -> io::Result<(u64, File)> {
        let path = self.folder.join(LockQueue::NUMBERS_FILE);
        let mut numbers = OpenOptions::new().append(true).create(true).open(path)?;
        numbers.lock()?;
        numbers.write_all(b".")?;
        let number = numbers.stream_position()?;
        let own = data_folder::open_lock_file(&self.number_path(number))?;
        own.lock()?;
        if number > MAX_QUEUE_NUMBER {
            numbers.set_len(0)?;
        }
        Ok((number, own))
    }

    fn number_path(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::lock_within;
    use crate::StorageError;
    use std::fs::File;
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    async fn lock_one(path: &Path, max_wait: Duration) -> Result<File, StorageError> {
        lock_within(&[path.to_owned()], max_wait).await
    }

    #[tokio::test]
    async fn a_lock_is_waited_for_within_a_limit_and_released_by_who_gave_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let holder = lock_one(&path, Duration::from_secs(9)).await.unwrap();
        let late = lock_one(&path, Duration::from_millis(50)).await;
        assert!(matches!(late, Err(StorageError::LockTimeout { .. })), "{late:?}");
        let waiting = lock_one(&path, Duration::from_secs(30));
        let (locked, ()) = tokio::join!(waiting, async { drop(holder) });
        drop(locked.unwrap());
        drop(lock_one(&path, Duration::from_secs(30)).await.unwrap());
    }

    #[tokio::test]
    async fn waiting_tasks_get_the_lock_in_the_order_in_which_they_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let holder = lock_one(&path, Duration::from_secs(9)).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for index in 0..20_u64 {
            let (path, order) = (path.clone(), Arc::clone(&order));
            tasks.spawn(async move {
                let _locked = lock_one(&path, Duration::from_secs(60)).await.unwrap();
                order.lock().unwrap().push(index);
            });
            // Waits until the task keeps its number locked.
            let number = folder.path().join(format!("a.queue/{}", index + 1));
            let is_locked =
                || std::fs::File::open(&number).is_ok_and(|file| file.try_lock().is_err());
            while !is_locked() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        drop(holder);
        tasks.join_all().await;
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        let left = std::fs::read_dir(folder.path().join("a.queue")).unwrap().count();
        assert_eq!(left, 2, "only the two files that every process uses are left");
        // A number whose process is gone stops nobody.
        std::fs::write(folder.path().join("a.queue/21"), "").unwrap();
        let holder = lock_one(&path, Duration::from_secs(9)).await.unwrap();
        let late = lock_one(&path, Duration::from_secs(30));
        let (locked, ()) = tokio::join!(late, async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(holder);
        });
        drop(locked.unwrap());
    }
}
