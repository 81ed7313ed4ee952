//! Errors of connections: which of them say nothing about the statement, and how long to try again.

use crate::StorageError;
use std::time::Duration;
use tokio::time::Instant;

/// The time for which a statement is tried again. A fail-over to a standby takes less.
const RETRY_WINDOW: Duration = Duration::from_secs(30);

/// The first pause between two attempts. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The attempts to execute one statement while connections are lost.
pub(super) struct ConnectionRetry {
    start: Instant,
    pause: Duration,
}

impl ConnectionRetry {
    pub(super) fn new() -> ConnectionRetry {
        ConnectionRetry { start: Instant::now(), pause: FIRST_PAUSE }
    }

    /// Waits before the next attempt. Fails if the error is not about the connection, if the
    /// attempts have taken too long, or if the node has stopped using the database.
    pub(super) async fn wait_after(&mut self, error: sqlx::Error) -> Result<(), StorageError> {
        if let sqlx::Error::PoolClosed = error {
            return Err(StorageError::LeaseLost);
        }
        if !is_connection_lost(&error) {
            return Err(error.into());
        }
        if self.start.elapsed() + self.pause > RETRY_WINDOW {
            return Err(StorageError::Unavailable {
                seconds: RETRY_WINDOW.as_secs(),
                source: error,
            });
        }
        tracing::warn!(%error, "the database did not answer a statement, which is tried again");
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Returns true if a statement failed because of the connection or the state of the server, so that
/// it may have been executed, or can be with another connection.
pub(super) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        // A pooler closes connections in the middle of the protocol.
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| is_retried_code(&code)),
        _ => false,
    }
}

/// Returns true for codes (SQLSTATE) of errors that another attempt can succeed after.
fn is_retried_code(code: &str) -> bool {
    // Class 08: connections, also those that a pooler has closed.
    code.starts_with("08")
        || matches!(
            code,
            // A server that shuts down, crashes, starts, or has no connection left.
            "57P01" | "57P02" | "57P03" | "57P05" | "53300"
            // A statement that took too long, waited for a lock too long, or met a deadlock.
            | "57014" | "55P03" | "40001" | "40P01"
            // A standby that is about to become the primary.
            | "25006"
            // A prepared statement from before a migration, or on another connection of a pooler.
            | "0A000" | "26000" | "42P05"
        )
}

#[cfg(test)]
mod tests {
    use super::{is_connection_lost, is_retried_code};

    #[test]
    fn only_errors_of_the_connection_or_the_server_are_retried() {
        assert!(is_connection_lost(&sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())));
        assert!(is_connection_lost(&sqlx::Error::PoolTimedOut));
        assert!(!is_connection_lost(&sqlx::Error::RowNotFound));
        assert!(!is_connection_lost(&sqlx::Error::PoolClosed));
        for code in ["08006", "57P01", "57P03", "25006", "40001"] {
            assert!(is_retried_code(code), "{code}");
        }
        // A full disk, a violated key, a missing table, a wrong password.
        for code in ["53100", "23505", "42P01", "28P01"] {
            assert!(!is_retried_code(code), "{code}");
        }
    }
}
