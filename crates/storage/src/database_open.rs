//! Opening of a database shared by several processes: its lock, busy timeout and migrations.

use crate::{StorageError, blob};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The time that a writer waits for another process to finish its transaction.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for the lock to open a database in a folder: two processes must not switch it to WAL or
/// migrate it at the same time.
pub(crate) async fn lock_for_open(folder: &Path) -> Result<File, StorageError> {
    let lock = folder.join("open.lock");
    let locked = tokio::task::spawn_blocking(move || {
        blob::open_lock_file(&lock).and_then(|file| file.lock().map(|()| file))
    });
    locked
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(StorageError::from_io("could not acquire the database lock"))
}

/// Migrates a database to the newest format.
pub(crate) async fn migrate(
    connection: &mut SqliteConnection,
    first_format: i64,
    migrations: &[&'static str],
) -> Result<(), StorageError> {
    let known = first_format + migrations.len() as i64 - 1;
    let found: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
    if found > known {
        return Err(StorageError::TooNew { found, known });
    }
    if found > 0 && found < first_format {
        return Err(StorageError::TooOld { found, first: first_format });
    }
    for (format, migration) in (first_format..).zip(migrations) {
        if format <= found {
            continue;
        }
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
        let stamp = sqlx::AssertSqlSafe(format!("PRAGMA user_version = {format}"));
        sqlx::raw_sql(stamp).execute(&mut *transaction).await?;
        transaction.commit().await?;
    }
    Ok(())
}
