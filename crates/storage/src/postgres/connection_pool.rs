//! Connections that statements share, each used by one statement at a time.
//!
//! The pool of `sqlx` asks the server whether a connection is usable each time it gets one back,
//! which doubles the round trips of an append. Here, only a connection that was idle is asked, before
//! its next statement.

use super::claim_registry::lock;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A connection that was idle for longer is tested before its next statement.
const TRUSTED_IDLE_TIME: Duration = Duration::from_secs(5);
/// Limit for the test of a connection.
const TEST_TIMEOUT: Duration = Duration::from_secs(1);
/// A connection that is older is closed, so that all of them follow a change of the server's address.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// A limited number of connections with the same options. Clones are the same pool.
#[derive(Clone)]
pub(super) struct ConnectionPool {
    shared: Arc<SharedConnections>,
    permits: Arc<Semaphore>,
    max_connections: usize,
}

struct SharedConnections {
    options: PgConnectOptions,
    /// The longest time to wait for a connection.
    timeout: Duration,
    /// Connections without a statement. The last one was used last.
    idle: Mutex<Vec<OpenConnection>>,
}

struct OpenConnection {
    connection: PgConnection,
    opened_at: Instant,
    used_at: Instant,
}

/// A connection in use. If it is dropped before its statement has ended, for example because a task
/// was canceled, it is closed: the rest of the statement must not be sent later, and an answer that
/// comes later must not be taken for the answer to another statement.
pub(super) struct BusyConnection {
    open: OpenConnection,
    pool: Arc<SharedConnections>,
    permit: OwnedSemaphorePermit,
}

impl ConnectionPool {
    /// Returns a pool whose connections are made when they are needed.
    pub(super) fn new(
        options: PgConnectOptions,
        max_connections: usize,
        timeout: Duration,
    ) -> ConnectionPool {
        let idle = Mutex::default();
        let shared = Arc::new(SharedConnections { options, timeout, idle });
        let permits = Arc::new(Semaphore::new(max_connections));
        ConnectionPool { shared, permits, max_connections }
    }

    /// Returns a connection that is usable as far as is known.
    pub(super) async fn acquire(&self) -> Result<BusyConnection, sqlx::Error> {
        let acquired = tokio::time::timeout(self.shared.timeout, async {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
            let open = self.shared.take_or_open().await?;
            Ok(BusyConnection { open, pool: Arc::clone(&self.shared), permit })
        });
        acquired.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Returns the number of connections in use and of all that may be, and of those that are idle.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let used = self.max_connections.saturating_sub(self.permits.available_permits());
        (used, self.max_connections, lock(&self.shared.idle).len())
    }

    /// Closes all connections, also those in use when they are returned.
    pub(super) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *lock(&self.shared.idle));
        for open in idle {
            // The server notices a connection that is not closed in order, too.
            let _ = open.connection.close().await;
        }
    }
}

impl SharedConnections {
    async fn take_or_open(&self) -> Result<OpenConnection, sqlx::Error> {
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut open) = idle else { break };
            if open.used_at.elapsed() <= TRUSTED_IDLE_TIME {
                return Ok(open);
            }
            match tokio::time::timeout(TEST_TIMEOUT, open.connection.ping()).await {
                Ok(Ok(())) => return Ok(open),
                // The others were idle for longer.
                Ok(Err(_)) | Err(_) => lock(&self.idle).clear(),
            }
        }
        let connection = self.options.connect().await?;
        let now = Instant::now();
        Ok(OpenConnection { connection, opened_at: now, used_at: now })
    }
}

impl BusyConnection {
    /// Returns the connection for the next statement.
    pub(super) fn get(&mut self) -> &mut PgConnection {
        &mut self.open.connection
    }

    /// Makes the connection available to other statements, after the answer was read.
    pub(super) fn return_to_pool(mut self) {
        let is_closed = self.permit.semaphore().is_closed();
        if self.open.opened_at.elapsed() <= MAX_AGE && !is_closed {
            self.open.used_at = Instant::now();
            lock(&self.pool.idle).push(self.open);
        }
    }
}
