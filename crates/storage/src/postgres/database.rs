//! Connections to PostgreSQL. Each statement is a transaction of its own, and none depends on the
//! state of a connection: a pooler such as PgBouncer may give each to another one.

use super::connection_errors::{ConnectionRetry, is_connection_lost};
use super::connection_pool::{BusyConnection, ConnectionPool};
use super::object_storage::ObjectStorage;
use crate::StorageError;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Connection};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The longest time to wait for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time that the server works on a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time to wait for the answer to a statement: longer than the server works on it, so
/// that only a connection that is gone reaches it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// The longest time to wait for the answer about a lease.
const LEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// A statement with its arguments.
pub(super) type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

/// The connections of a process to its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolState {
    pub used: usize,
    pub max: usize,
    pub idle: usize,
}

/// A PostgreSQL database that nodes share.
#[derive(Clone)]
pub struct PostgresDatabase {
    pool: ConnectionPool,
    /// Its only connection renews the lease, so that a lease never waits for other statements.
    lease_pool: ConnectionPool,
    /// True once no statement may be executed any more.
    is_abandoned: Arc<watch::Sender<bool>>,
    /// The store of large blobs, if the fleet uses one.
    pub(super) objects: Option<ObjectStorage>,
    /// True if a pooler may give each transaction to another connection of the server, so that
    /// there are no prepared statements.
    is_behind_pooler: bool,
}

impl PostgresDatabase {
    /// Returns a database with a URL such as `postgres://user:password@host/name`. Connections are
    /// made when they are needed. With `?pgbouncer=true`, a PgBouncer in transaction mode may be
    /// between this process and the server; it must ignore the startup parameter
    /// `extra_float_digits`, and limits the time of statements instead of this process.
    pub fn new(url: &str, max_connections: usize) -> Result<PostgresDatabase, StorageError> {
        let (url, is_behind_pooler) = split_pooler_option(url);
        let mut options = PgConnectOptions::from_str(&url)?
            .application_name("windlass")
            .disable_statement_logging();
        if is_behind_pooler {
            options = options.statement_cache_capacity(0);
        } else {
            let timeout = format!("{}s", STATEMENT_TIMEOUT.as_secs());
            options = options.options([
                ("statement_timeout", timeout.as_str()),
                ("idle_in_transaction_session_timeout", timeout.as_str()),
            ]);
        }
        let lease_options = options.clone();
        Ok(PostgresDatabase {
            pool: ConnectionPool::new(options, max_connections, ACQUIRE_TIMEOUT),
            lease_pool: ConnectionPool::new(lease_options, 1, LEASE_TIMEOUT),
            is_abandoned: Arc::default(),
            objects: None,
            is_behind_pooler,
        })
    }

    /// Returns the same database with a store for large blobs.
    #[must_use]
    pub fn with_object_storage(self, objects: Option<ObjectStorage>) -> PostgresDatabase {
        PostgresDatabase { objects, ..self }
    }

    /// Executes a statement and returns its rows. If this fails, the statement may still have been
    /// executed.
    pub(super) async fn fetch_all(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, sqlx::Error> {
        let fetched = self.fetch_within(&self.pool, ANSWER_TIMEOUT, query);
        unless_abandoned(&self.is_abandoned, fetched).await
    }

    /// Makes all statements fail, also those that are under way. One that is under way may still
    /// have been executed.
    pub(super) fn abandon(&self) {
        self.is_abandoned.send_replace(true);
    }

    /// Executes a statement about a lease, with its own connection.
    pub(super) async fn fetch_for_lease(
        &self,
        query: PgQuery<'_>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        self.fetch_within(&self.lease_pool, LEASE_TIMEOUT, query).await
    }

    /// Executes a statement, again after each lost connection, and returns its rows. It must be a
    /// statement that can be executed twice.
    pub(super) async fn fetch_with_retries<'q>(
        &self,
        query: impl Fn() -> PgQuery<'q> + Send,
    ) -> Result<Vec<PgRow>, StorageError> {
        let mut retry = ConnectionRetry::new();
        loop {
            match self.fetch_all(query()).await {
                Ok(rows) => return Ok(rows),
                Err(error) => retry.wait_after(error).await?,
            }
        }
    }

    async fn fetch_within(
        &self,
        pool: &ConnectionPool,
        timeout: Duration,
        query: PgQuery<'_>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut connection = pool.acquire().await?;
        let fetched = async {
            let connection = connection.get();
            if !self.is_behind_pooler {
                return query.fetch_all(connection).await;
            }
            // The unnamed statement is prepared and executed in two messages. A transaction keeps
            // both on one connection of the server.
            let mut transaction = connection.begin().await?;
            let rows = query.persistent(false).fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(rows)
        };
        let fetched = answer_within(timeout, fetched).await;
        let is_usable = match &fetched {
            Ok(_) => true,
            Err(error) => !self.is_behind_pooler && !is_connection_lost(error),
        };
        if is_usable {
            connection.return_to_pool();
        }
        fetched
    }

    /// Begins a transaction of several statements.
    pub(super) async fn begin(&self) -> Result<StatementTransaction, sqlx::Error> {
        let connection = self.pool.acquire().await?;
        let is_persistent = !self.is_behind_pooler;
        let is_abandoned = Arc::clone(&self.is_abandoned);
        let mut transaction = StatementTransaction { connection, is_persistent, is_abandoned };
        let begun = answer_within(ANSWER_TIMEOUT, transaction.execute_script("BEGIN"));
        unless_abandoned(&self.is_abandoned, begun).await?;
        Ok(transaction)
    }

    /// Returns the use of connections, besides that for the lease.
    pub fn pool_state(&self) -> PoolState {
        let (used, max, idle) = self.pool.counts();
        PoolState { used, max, idle }
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
        self.lease_pool.close().await;
    }
}

/// A transaction of several statements. If it is dropped before it is committed, its connection is
/// closed, and the server rolls it back.
pub(super) struct StatementTransaction {
    connection: BusyConnection,
    is_persistent: bool,
    is_abandoned: Arc<watch::Sender<bool>>,
}

impl StatementTransaction {
    pub(super) async fn fetch_all(
        &mut self,
        query: PgQuery<'_>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let query = query.persistent(self.is_persistent);
        let fetched = query.fetch_all(self.connection.get());
        unless_abandoned(&self.is_abandoned, answer_within(ANSWER_TIMEOUT, fetched)).await
    }

    /// Executes statements without arguments.
    pub(super) async fn execute_script(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(self.connection.get()).await?;
        Ok(())
    }

    /// Executes a statement whose names were made by this program.
    pub(super) async fn execute_statement(&mut self, sql: String) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(self.connection.get()).await?;
        Ok(())
    }

    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        answer_within(ANSWER_TIMEOUT, self.execute_script("COMMIT")).await?;
        self.connection.return_to_pool();
        Ok(())
    }
}

/// Returns the result of a statement, or fails once no statement may be executed any more.
async fn unless_abandoned<T>(
    is_abandoned: &watch::Sender<bool>,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let mut is_abandoned = is_abandoned.subscribe();
    tokio::select! {
        biased;
        _ = is_abandoned.wait_for(|is_abandoned| *is_abandoned) => Err(sqlx::Error::PoolClosed),
        result = statement => result,
    }
}

/// Returns the result of a statement, or fails after a time limit.
async fn answer_within<T>(
    limit: Duration,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let timed_out = |_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()));
    tokio::time::timeout(limit, statement).await.unwrap_or_else(timed_out)
}

/// Removes the parameter `pgbouncer` from a URL, and returns whether it was `true`.
fn split_pooler_option(url: &str) -> (String, bool) {
    let Some((base, parameters)) = url.split_once('?') else { return (url.to_owned(), false) };
    let (options, others): (Vec<&str>, Vec<&str>) =
        parameters.split('&').partition(|parameter| parameter.starts_with("pgbouncer="));
    let is_behind_pooler = options.contains(&"pgbouncer=true");
    match others.is_empty() {
        true => (base.to_owned(), is_behind_pooler),
        false => (format!("{base}?{}", others.join("&")), is_behind_pooler),
    }
}

#[cfg(test)]
mod tests {
    use super::split_pooler_option;

    #[test]
    fn the_pooler_option_is_taken_out_of_the_url() {
        for (url, base, is_behind_pooler) in [
            ("postgres://h/d", "postgres://h/d", false),
            ("postgres://h/d?pgbouncer=true", "postgres://h/d", true),
            ("postgres://h/d?a=b&pgbouncer=true&c=d", "postgres://h/d?a=b&c=d", true),
            ("postgres://h/d?pgbouncer=false", "postgres://h/d", false),
            ("postgres://h/d?xpgbouncer=true", "postgres://h/d?xpgbouncer=true", false),
        ] {
            assert_eq!(split_pooler_option(url), (base.to_owned(), is_behind_pooler), "{url}");
        }
    }
}
