//! A mutex lock that ignores poisoning, shared by all crates.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a task panicked while it held the lock: every change under these locks is
/// a single step, so a panic leaves the data consistent.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
