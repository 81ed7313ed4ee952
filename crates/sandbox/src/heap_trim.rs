//! Returns freed heap memory to the operating system.
//!
//! The C library keeps freed memory, separately for each thread that allocated it. A session that
//! lasts a day would keep the memory of its busiest moments, many times over.

use crate::Workspace;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Minimum time between two trims, because `malloc_trim` takes milliseconds.
const TRIM_INTERVAL: Duration = Duration::from_secs(15);

impl Workspace {
    /// Returns freed memory to the system, unless that happened within `TRIM_INTERVAL`. Call it
    /// when the session is idle.
    pub fn release_memory(&self) {
        trim_if_due();
    }
}

fn trim_if_due() {
    static LAST_TRIM: Mutex<Option<Instant>> = Mutex::new(None);
    // Another thread is trimming already, and one trim serves the whole process.
    let Ok(mut last) = LAST_TRIM.try_lock() else { return };
    match *last {
        Some(last_trim) if last_trim.elapsed() < TRIM_INTERVAL => {}
        // A process that has just started has nothing to return.
        None => *last = Some(Instant::now()),
        Some(_) => {
            trim_heap();
            *last = Some(Instant::now());
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "malloc_trim has no safe wrapper")]
fn trim_heap() {
    // SAFETY: `malloc_trim` takes a number and may be called at any time, from any thread.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim_heap() {}
