//! Shared state of the tasks of a session.

use std::sync::{Arc, Mutex};

/// A value that several tasks of a session share; lock it with `windlass_protocol::mutex_lock::lock`.
pub(crate) type SharedMutex<T> = Arc<Mutex<T>>;
