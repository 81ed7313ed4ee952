//! The schema of the PostgreSQL database: its versions and the monthly partitions of the log.
//!
//! A migration only adds, and a later release removes what no version needs any more, so that nodes
//! of two releases work on one database while a fleet is upgraded.

use super::connection_errors::ConnectionRetry;
use super::database::{PgQuery, PostgresDatabase, StatementTransaction};
use crate::StorageError;
use sqlx::Row;

/// A step to the next version of the schema.
struct SchemaMigration {
    sql: &'static str,
    /// The oldest version of the schema whose builds can work with this one.
    compatible_with: i64,
}

/// The steps from an empty database, the first one to version 1.
const MIGRATIONS: &[SchemaMigration] =
    &[SchemaMigration { sql: include_str!("../migrations/postgres_1.sql"), compatible_with: 1 }];

/// The number of the advisory lock under which the schema is changed: "windlass" as ASCII.
const SCHEMA_LOCK: i64 = 0x7769_6e64_6c61_7373;

/// Nodes wait for a change of the schema, so the change must not wait for long itself. It may work
/// for longer than other statements.
const SCHEMA_TIMEOUTS: &str = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = 0";

/// The months for which partitions exist: this one and those that follow.
const PARTITION_MONTHS: i32 = 3;

/// The names and bounds of the partitions of the next $1 months. An id of version 7 begins with the
/// milliseconds since 1970 in 48 bits.
const PARTITIONS_QUERY: &str = "
    SELECT 'event_' || to_char(month, 'YYYY_MM') AS name,
           rpad(lpad(to_hex((extract(epoch FROM month) * 1000)::bigint), 12, '0'), 32, '0'),
           rpad(lpad(to_hex((extract(epoch FROM month + interval '1 month') * 1000)::bigint), 12,
             '0'), 32, '0')
    FROM generate_series(0, $1 - 1) AS number,
         LATERAL (SELECT date_trunc('month', now() AT TIME ZONE 'UTC')
           + make_interval(months => number) AS month) AS start
    WHERE to_regclass('event_' || to_char(month, 'YYYY_MM')) IS NULL";

/// The versions that a database states about its schema.
struct SchemaVersion {
    found: i64,
    compatible_with: i64,
}

impl PostgresDatabase {
    /// Creates the tables of the newest version, and the partitions of the next months. Several
    /// processes may do so at the same time.
    pub async fn migrate(&self) -> Result<(), StorageError> {
        let mut retry = ConnectionRetry::new();
        loop {
            match self.try_migrate().await {
                Ok(found) => {
                    found?;
                    return self.create_partitions().await;
                }
                Err(error) => retry.wait_after(error).await?,
            }
        }
    }

    async fn try_migrate(&self) -> Result<Result<(), StorageError>, sqlx::Error> {
        let mut transaction = self.begin_schema_change().await?;
        transaction
            .execute_script(
                "CREATE TABLE IF NOT EXISTS schema_version (
                   version bigint NOT NULL, compatible_with bigint NOT NULL)",
            )
            .await?;
        let query = sqlx::query("SELECT version, compatible_with FROM schema_version");
        let version = SchemaVersion::from_rows(transaction.fetch_all(query).await?)?;
        let known = MIGRATIONS.len() as i64;
        if version.compatible_with > known {
            return Ok(Err(StorageError::TooNew { found: version.found, known }));
        }
        for (number, migration) in (1..).zip(MIGRATIONS).filter(|(n, _)| *n > version.found) {
            transaction.execute_script(migration.sql).await?;
            transaction.execute_script("DELETE FROM schema_version").await?;
            let query = sqlx::query("INSERT INTO schema_version VALUES ($1, $2)");
            transaction.fetch_all(query.bind(number).bind(migration.compatible_with)).await?;
        }
        transaction.commit().await?;
        Ok(Ok(()))
    }

    /// Fails if this version cannot work with the schema of the database.
    pub async fn check_schema(&self) -> Result<(), StorageError> {
        let needed = MIGRATIONS.len() as i64;
        let query = || sqlx::query("SELECT version, compatible_with FROM schema_version");
        let rows = match self.fetch_with_retries(query).await {
            Err(StorageError::Database(error)) if is_undefined_table(&error) => Vec::new(),
            rows => rows?,
        };
        let SchemaVersion { found, compatible_with } = SchemaVersion::from_rows(rows)?;
        if compatible_with > needed {
            return Err(StorageError::TooNew { found, known: needed });
        }
        match found < needed {
            true => Err(StorageError::NotMigrated { found, needed }),
            false => Ok(()),
        }
    }

    /// Creates the partitions of the log for this month and the next ones, if they do not exist.
    /// The ids of sessions begin with a time, so the events of a session are in the partition of
    /// the month in which it began.
    pub async fn create_partitions(&self) -> Result<(), StorageError> {
        let missing = || sqlx::query(PARTITIONS_QUERY).bind(PARTITION_MONTHS);
        if self.fetch_with_retries(missing).await?.is_empty() {
            return Ok(());
        }
        let mut retry = ConnectionRetry::new();
        loop {
            match self.try_create_partitions(missing()).await {
                Ok(()) => return Ok(()),
                Err(error) => retry.wait_after(error).await?,
            }
        }
    }

    async fn try_create_partitions(&self, missing: PgQuery<'_>) -> Result<(), sqlx::Error> {
        let mut transaction = self.begin_schema_change().await?;
        for row in transaction.fetch_all(missing).await? {
            let (name, lower, upper): (String, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            // Events of that month may be in the default partition already, if no node created
            // the partition in time. They stay there.
            let query = "SELECT EXISTS (SELECT 1 FROM event_rest
                           WHERE session >= $1::uuid AND session < $2::uuid)";
            let query = sqlx::query(query).bind(&lower).bind(&upper);
            let rows = transaction.fetch_all(query).await?;
            let has_events = rows.first().map(|row| row.try_get::<bool, _>(0)).transpose()?;
            if has_events == Some(true) {
                tracing::warn!(name, "a partition is not created, because its events exist");
                continue;
            }
            // The values come from the statement above.
            let create = format!(
                "CREATE TABLE IF NOT EXISTS {name} PARTITION OF event
                 FOR VALUES FROM ('{lower}') TO ('{upper}')"
            );
            transaction.execute_statement(create).await?;
        }
        transaction.commit().await
    }

    /// Begins a transaction that no other process changes the schema in.
    async fn begin_schema_change(&self) -> Result<StatementTransaction, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let lock = sqlx::query("SELECT 1 FROM (SELECT pg_advisory_xact_lock($1)) AS lock");
        transaction.fetch_all(lock.bind(SCHEMA_LOCK)).await?;
        transaction.execute_script(SCHEMA_TIMEOUTS).await?;
        Ok(transaction)
    }
}

impl SchemaVersion {
    fn from_rows(rows: Vec<sqlx::postgres::PgRow>) -> Result<SchemaVersion, sqlx::Error> {
        let Some(row) = rows.first() else {
            return Ok(SchemaVersion { found: 0, compatible_with: 0 });
        };
        Ok(SchemaVersion { found: row.try_get(0)?, compatible_with: row.try_get(1)? })
    }
}

fn is_undefined_table(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code == "42P01")
}
