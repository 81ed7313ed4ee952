//! Points in file operations at which a test can inject a failure.

use std::io::Result;

#[cfg(test)]
thread_local! {
    /// The number of points that still succeed; the next one fails. `usize::MAX` is unlimited.
    pub(super) static REMAINING_POINTS: std::cell::Cell<usize> =
        const { std::cell::Cell::new(usize::MAX) };
}

/// Fails once, when no point remains.
#[cfg(test)]
pub(super) fn failpoint() -> Result<()> {
    let remaining = REMAINING_POINTS.get();
    REMAINING_POINTS
        .set(remaining.checked_sub(usize::from(remaining != usize::MAX)).unwrap_or(usize::MAX));
    if remaining == 0 { Err(std::io::Error::from_raw_os_error(28)) } else { Ok(()) }
}

#[cfg(not(test))]
pub(super) fn failpoint() -> Result<()> {
    Ok(())
}
