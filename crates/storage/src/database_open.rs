//! Opening of a database shared by several processes: its lock, busy timeout and migrations.
use crate::StorageError;
use crate::file_lock::lock_in_turn;
use sqlx::Connection;
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use std::path::Path;
use std::time::Duration;

/// The time that SQLite waits for another process. Writers queue at a lock file before they reach
/// SQLite, so only a checkpoint or a foreign program makes it wait.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest path of a database: SQLite allows 512 bytes, with the suffix `-journal`.
const MAX_PATH_BYTES: usize = 500;

/// The pages returned to the disk per transaction, so that other writers get their turn.
const VACUUM_BATCH_PAGES: u32 = 4096;

/// Returns the options of every connection to a database. Another program may have changed the file,
/// so its schema is not trusted and its cells are checked.
pub(crate) fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
}

/// Opens a database in WAL mode, creates it if needed, and migrates it to the newest format.
///
/// Two processes must not switch it to WAL or migrate it at the same time, so that happens under a
/// lock. A database that needs neither is opened without the lock.
pub(crate) async fn open_database(
    options: &SqliteConnectOptions,
    first_format: i64,
    migrations: &[&'static str],
) -> Result<SqliteConnection, StorageError> {
    let path = options.get_filename();
    check_path_length(path)?;
    let mut connection = SqliteConnection::connect_with(options).await?;
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await?;
    let format = check_format(&mut connection, first_format, migrations).await?;
    if mode == "wal" && format == newest_format(first_format, migrations) {
        return Ok(connection);
    }
    connection.close().await?;
    let guard = lock_in_turn(&path.with_file_name("open.lock")).await?;
    let options = options
        .clone()
        // Deleted pages can only be returned to the disk if a database is created with this.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    migrate(&mut connection, first_format, migrations).await?;
    drop(guard);
    Ok(connection)
}

fn check_path_length(path: &Path) -> Result<(), StorageError> {
    let length = path.as_os_str().len();
    if length <= MAX_PATH_BYTES {
        return Ok(());
    }
    let reason = format!("its path has {length} bytes, and the limit is {MAX_PATH_BYTES}");
    let error = std::io::Error::new(std::io::ErrorKind::InvalidFilename, reason);
    Err(StorageError::from_io(format!("cannot open {}", path.display()))(error))
}

/// Migrates a database to the newest format.
async fn migrate(
    connection: &mut SqliteConnection,
    first_format: i64,
    migrations: &[&'static str],
) -> Result<(), StorageError> {
    let found = check_format(connection, first_format, migrations).await?;
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

/// Returns the format of a database; 0 means that it is empty. Fails if this version cannot read it.
pub(crate) async fn check_format(
    connection: &mut SqliteConnection,
    first_format: i64,
    migrations: &[&'static str],
) -> Result<i64, StorageError> {
    let known = newest_format(first_format, migrations);
    let found: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
    if found > known {
        return Err(StorageError::TooNew { found, known });
    }
    if found > 0 && found < first_format {
        return Err(StorageError::TooOld { found, first: first_format });
    }
    Ok(found)
}

fn newest_format(first_format: i64, migrations: &[&'static str]) -> i64 {
    first_format + migrations.len() as i64 - 1
}

/// Returns some free pages to the disk. Returns true if there are more.
pub(crate) async fn vacuum_step(connection: &mut SqliteConnection) -> Result<bool, StorageError> {
    let count_query = "PRAGMA freelist_count";
    let free: i64 = sqlx::query_scalar(count_query).fetch_one(&mut *connection).await?;
    let vacuum = format!("PRAGMA incremental_vacuum({VACUUM_BATCH_PAGES})");
    sqlx::raw_sql(sqlx::AssertSqlSafe(vacuum)).execute(&mut *connection).await?;
    let remaining: i64 = sqlx::query_scalar(count_query).fetch_one(&mut *connection).await?;
    Ok(0 < remaining && remaining < free)
}

/// Empties the write-ahead log, which may contain deleted text. If another process is reading it,
/// that happens later.
pub(crate) async fn empty_wal(connection: &mut SqliteConnection) -> Result<(), StorageError> {
    sqlx::raw_sql("PRAGMA busy_timeout = 1000").execute(&mut *connection).await?;
    let emptied = sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *connection).await;
    let timeout = format!("PRAGMA busy_timeout = {}", BUSY_TIMEOUT.as_millis());
    sqlx::raw_sql(sqlx::AssertSqlSafe(timeout)).execute(&mut *connection).await?;
    emptied?;
    Ok(())
}
