//! The access log: a line for each request, in the log file of the data folder.

use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::mutex_lock::lock;
use windlass_server::AccessLogEntry;

/// Maximum number of lines a second about requests without a token. The metrics count all of them.
const MAX_UNKNOWN_LINES: u32 = 10;

/// Writes the access log. Every client that reaches the server can cause lines, so those about requests of
/// unknown clients are limited: they must not displace the others from the file.
#[derive(Default)]
pub(super) struct AccessLog {
    unknown: Mutex<LinesOfSecond>,
}

/// The lines about unknown clients in a second.
#[derive(Default)]
struct LinesOfSecond {
    began: Option<Instant>,
    count: u32,
}

impl AccessLog {
    /// Writes a line. It has no query, no body and no token.
    pub(super) fn write(&self, entry: &AccessLogEntry) {
        if entry.client.is_none() && !lock(&self.unknown).count(Instant::now()) {
            return;
        }
        let client = entry.client.as_deref().unwrap_or("-");
        let route = entry.route.unwrap_or("-");
        let (method, status, duration_ms) = (&entry.method, entry.status, entry.duration_ms);
        let error = entry.error.unwrap_or_default();
        tracing::info!(target: "windlass::access", client, %method, route, status, duration_ms, error);
    }
}

impl LinesOfSecond {
    /// Counts a line. Returns false if there are too many in this second.
    fn count(&mut self, now: Instant) -> bool {
        let is_over = |began: Instant| now.duration_since(began) >= Duration::from_secs(1);
        if self.began.is_none_or(is_over) {
            *self = LinesOfSecond { began: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= MAX_UNKNOWN_LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_are_written_about_unknown_clients() {
        let (mut lines, now) = (LinesOfSecond::default(), Instant::now());
        assert_eq!((0..1_000).filter(|_| lines.count(now)).count(), 10);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..1_000).filter(|_| lines.count(later)).count(), 10);
    }
}
