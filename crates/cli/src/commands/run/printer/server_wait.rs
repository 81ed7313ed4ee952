//! A run in a server that cannot be reached for a while.

use super::TurnPrinter;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::{Fault, TurnEndReason};

/// Limit for the server to come back.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The connection of a run to its server.
pub(super) struct ServerWait {
    began: Instant,
    lost_at: Option<Instant>,
}

impl ServerWait {
    pub(super) fn new() -> ServerWait {
        ServerWait { began: Instant::now(), lost_at: None }
    }

    /// Returns true while there is no connection.
    pub(super) fn is_lost(&self) -> bool {
        self.lost_at.is_some()
    }

    /// Returns what the run waits for, while there is no connection.
    pub(super) fn activity(&self) -> Option<&'static str> {
        self.lost_at.map(|_| "waiting for the server")
    }
}

impl TurnPrinter {
    pub(super) fn on_disconnected(&mut self, reason: &str) {
        self.server.lost_at = Some(Instant::now());
        self.progress.write_status(&format!(
            "\nThe connection to the server was lost ({reason}). Waiting for it. Ctrl+C ends this \
             command; the turn resumes when the server starts again"
        ));
    }

    pub(super) fn on_reconnected(&mut self) {
        self.server.lost_at = None;
        self.progress.write_status("Connected to the server again.");
    }

    /// Returns the end of a run that has waited for the server for too long. Its time limit, which the
    /// server applies otherwise, counts here, too.
    pub(super) fn end_without_server(&mut self) -> Result<Option<TurnEndReason>, Fault> {
        let Some(lost_at) = self.server.lost_at else { return Ok(None) };
        let limit = self.options.limits.time_ms.map(Duration::from_millis);
        if limit.is_some_and(|limit| self.server.began.elapsed() >= limit) {
            self.is_left_running = true;
            let limit = "the time limit, while the server was away".to_owned();
            return Ok(Some(TurnEndReason::LimitReached { limit }));
        }
        if lost_at.elapsed() < MAX_WAIT {
            return Ok(None);
        }
        let message = format!(
            "the server has not come back for {} minutes; the turn resumes when it starts again",
            MAX_WAIT.as_secs() / 60
        );
        Err(Fault::Network { message })
    }
}
