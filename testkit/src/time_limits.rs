//! Time limits for tests that do not depend on the load of the machine.

use std::time::Duration;

/// The factor by which limits are relaxed outside the soak. Large enough for a machine with ten
/// times more work than cores, small enough to catch a call that waits for a timeout of its own.
const RELAXATION: u32 = 15;

/// Returns the time that an operation may take: exactly `strict` in the soak (`WINDLASS_SOAK`),
/// which runs its tests alone, and many times that elsewhere, so that only a hang fails the test.
pub fn limit(strict: Duration) -> Duration {
    if std::env::var_os("WINDLASS_SOAK").is_some() { strict } else { strict * RELAXATION }
}

/// Runs a future on a runtime of its own, and panics if it takes longer than `timeout`.
pub fn block_on<T>(
    mut runtime: tokio::runtime::Builder,
    timeout: Duration,
    work: impl Future<Output = T>,
) -> T {
    let runtime = runtime.enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(timeout, work).await };
    runtime.block_on(limited).expect("the test must end in time")
}
