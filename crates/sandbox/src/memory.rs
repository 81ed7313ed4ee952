//! Memory that is free goes back to the system.
//!
//! The C library keeps what was freed, apart for each thread that asked, and a session that lasts a
//! day would hold what its busiest moments held, many times over.

use crate::Workspace;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// It costs milliseconds, so it is not done more often.
const BETWEEN: Duration = Duration::from_secs(15);

impl Workspace {
    /// Nobody works here for now: what is free goes back to the system, unless it just did.
    pub fn rest(&self) {
        give_back();
    }
}

fn give_back() {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    // Whoever is at it already does it for all.
    let Ok(mut last) = LAST.try_lock() else { return };
    match *last {
        Some(then) if then.elapsed() < BETWEEN => {}
        // A process that has just begun has nothing to give.
        None => *last = Some(Instant::now()),
        Some(_) => {
            trim();
            *last = Some(Instant::now());
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "only the C library knows what it keeps")]
fn trim() {
    // SAFETY: it takes a number and may be called at any time, by any thread.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
