//! The stop flag of a search.

use std::sync::atomic::{AtomicBool, Ordering};

/// Stop flag shared by all threads of a search.
pub(super) struct GrepStopSignal<'a> {
    stopped: AtomicBool,
    is_canceled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> GrepStopSignal<'a> {
    pub(super) fn new(is_canceled: &'a (dyn Fn() -> bool + Sync)) -> GrepStopSignal<'a> {
        GrepStopSignal { stopped: AtomicBool::new(false), is_canceled }
    }

    /// Tells all threads to stop.
    pub(super) fn set(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if the search must stop. Costs almost nothing.
    pub(super) fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Checks `is_canceled` of the caller, and returns true if the search must stop.
    pub(super) fn poll(&self) -> bool {
        if (self.is_canceled)() {
            self.set();
        }
        self.is_set()
    }
}
