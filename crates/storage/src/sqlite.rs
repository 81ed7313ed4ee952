//! SQLite backend for one machine: a database in WAL mode, blobs in files, and file copies in a
//! second database next to it.
//!
//! A commit costs no disk flush unless one of its facts needs a disk sync; then `synchronous` is
//! `FULL` for that one commit, which flushes the write-ahead log and everything before it. Several
//! processes share the database; writers queue at a lock file ([`file_lock`](crate::file_lock)).
//!
//! A data folder that cannot be written is opened for reading only.

use crate::blob::BlobStore;
use crate::database_open::{self, BUSY_TIMEOUT, open_database};
use crate::fact_queries::{
    find_position, last_within_bytes, select_facts, select_facts_one_by_one,
};
use crate::fact_rows::{FactStore, encode_facts, insert_facts};
use crate::file_copies::{self, FileCopyStore};
use crate::file_lock::lock_any_in_turn;
use crate::like_pattern::like_pattern;
use crate::session_rows::SessionRow;
use crate::stored_facts::{self, FactPage};
use crate::{
    Log, MAX_PAGE_FACTS, PageLimit, SessionClaim, SessionFilter, StorageError, data_folder,
    head_file,
};
use async_trait::async_trait;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};
use windlass_protocol::{
    BlobRef, Fact, FactOrigin, FactRecord, LogPosition, LogSeq, SessionId, SessionSummary,
    UnixMillis,
};

/// The first database format that this build reads; formats 1 to 7 belong to unreleased builds.
pub(crate) const FIRST_FORMAT: i64 = 8;

/// Each entry takes the database to the next format; the first one from an empty database to
/// `FIRST_FORMAT`.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("migrations/log_8.sql")];

/// The title of a session whose row is damaged.
const DAMAGED_TITLE: &str = "(damaged: run `windlass doctor --repair`)";

/// A `Log` in a folder: a database, its blobs and its file copies.
pub struct SqliteLog {
    pub(crate) options: SqliteConnectOptions,
    pub(crate) connection: Mutex<SqliteConnection>,
    pub(crate) blobs: Arc<BlobStore>,
    pub(crate) copies: FileCopyStore,
    pub(crate) folder: PathBuf,
    is_read_only: bool,
}

impl SqliteLog {
    /// Opens the log in a folder and creates both if needed.
    pub async fn open(folder: &Path) -> Result<SqliteLog, StorageError> {
        let created = data_folder::create_private_folder(folder)
            .and_then(|()| data_folder::create_private_folder(&folder.join("locks")));
        if let Err(error) = created {
            let what = format!("could not create {}", folder.display());
            return Err(StorageError::from_io(what)(error));
        }
        data_folder::make_folder_private(folder);
        let path = folder.join("windlass.db");
        let options =
            database_open::connect_options(&path).foreign_keys(true).busy_timeout(BUSY_TIMEOUT);
        let is_read_only = !data_folder::is_writable(folder);
        let (options, connection) = match is_read_only {
            false => {
                data_folder::check_not_emptied(folder, &path)?;
                let options = options
                    .create_if_missing(true)
                    .synchronous(SqliteSynchronous::Normal)
                    // On macOS a plain flush stops at the drive's cache; `fullfsync` flushes that.
                    .pragma("fullfsync", "ON")
                    // Deleted text must not remain in free pages.
                    .pragma("secure_delete", "ON");
                let opened = open_database(&options, FIRST_FORMAT, MIGRATIONS).await;
                let mut connection = opened.map_err(|error| error.in_database(&path))?;
                check_not_cut(&mut connection, &path).await?;
                (options, connection)
            }
            true => {
                let opened = open_read_only(options, &path).await;
                opened.map_err(|error| error.in_database(&path))?
            }
        };
        let blobs = Arc::new(BlobStore::new(folder.join("blobs")));
        let copies = FileCopyStore::new(folder.to_owned(), file_copies::DEFAULT_MAX_COPIES_BYTES);
        let (connection, folder) = (Mutex::new(connection), folder.to_owned());
        Ok(SqliteLog { options, connection, blobs, copies, folder, is_read_only })
    }

    /// Returns true if the data folder cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Sets the limit for the size of all copies together, in bytes.
    pub fn with_max_copies_bytes(mut self, bytes: u64) -> SqliteLog {
        self.copies.set_max_bytes(bytes);
        self
    }

    /// Returns the version of the linked SQLite.
    pub async fn sqlite_version(&self) -> Result<String, StorageError> {
        let mut connection = self.connection.lock().await;
        Ok(sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *connection).await?)
    }

    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&BlobStore) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let blobs = Arc::clone(&self.blobs);
        let result = tokio::task::spawn_blocking(move || job(&blobs)).await;
        result
            .map_err(std::io::Error::other)
            .map_err(StorageError::from_io("a file operation was interrupted"))?
    }

    /// Waits until few other processes write, and returns the connection with the lock. The lock
    /// comes first: a task that waits for it must not hold the connection.
    pub(crate) async fn begin_write(
        &self,
    ) -> Result<(MutexGuard<'_, SqliteConnection>, File), StorageError> {
        let turn = lock_any_in_turn(&write_locks(&self.folder)).await?;
        Ok((self.connection.lock().await, turn))
    }

    pub(crate) fn session_lock(&self, session: SessionId) -> PathBuf {
        self.folder.join("locks").join(session.to_string())
    }

    /// Replaces the connection after a database error. After a failed write, such as on a full
    /// disk, SQLite and sqlx disagree on whether a transaction is open.
    async fn reconnect_on_error<T>(
        &self,
        connection: &mut SqliteConnection,
        result: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if let Err(StorageError::Database(_)) = &result {
            *connection = SqliteConnection::connect_with(&self.options).await?;
        }
        result
    }

    /// Reads the facts after a position, at most `limit`, and finds damage.
    pub(crate) async fn read_fact_page(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: PageLimit,
    ) -> Result<FactPage, StorageError> {
        let mut connection = self.connection.lock().await;
        let wanted = after.saturating_add(limit.facts.min(MAX_PAGE_FACTS) as LogSeq);
        let wanted = match limit.bytes {
            usize::MAX => wanted,
            bytes => {
                let range = (after, wanted);
                match last_within_bytes(&mut connection, session, range, bytes).await {
                    // Damaged pages are read fact by fact below.
                    Err(error) if error.is_corruption() => wanted,
                    last => last?.min(wanted),
                }
            }
        };
        let selected = select_facts(&mut connection, session, after, wanted).await;
        let (through, text) = match selected {
            Err(error) if error.is_corruption() => {
                select_facts_one_by_one(&mut connection, session, after, wanted).await?
            }
            selected => selected?,
        };
        drop(connection);
        let page = self
            .run_blocking(move |blobs| {
                stored_facts::decode_page(session, (after, through), &text, limit.bytes, blobs)
            })
            .await?;
        self.restore_first_fact(session, page).await
    }

    /// Replaces a lost first fact by what the session's row says.
    async fn restore_first_fact(
        &self,
        session: SessionId,
        mut page: FactPage,
    ) -> Result<FactPage, StorageError> {
        if page.lacks_first_fact() {
            let mut connection = self.connection.lock().await;
            if let Some(row) = SessionRow::load(&mut connection, session).await? {
                page.restore_first_fact(row.summary);
            }
        }
        Ok(page)
    }

    /// Appends facts after a position, all or none.
    async fn append_facts<'a>(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        facts: impl Iterator<Item = (UnixMillis, Option<&'a FactOrigin>, &'a Fact)> + Send,
    ) -> Result<LogSeq, StorageError> {
        let rows = encode_facts(self, facts).await?;
        let row = self.load_own_row(claim, expected).await?;
        let (mut connection, _turn) = self.begin_write().await?;
        let written = insert_facts(&mut connection, claim, row, &rows).await;
        let head = self.reconnect_on_error(&mut connection, written).await?;
        if let Some(lock) = claim.lock_file() {
            head_file::write(lock, head);
        }
        Ok(head)
    }

    /// Loads the row of a session that this process has claimed. No other process changes it, and
    /// `insert_facts` fails if one does.
    async fn load_own_row(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
    ) -> Result<SessionRow, StorageError> {
        let session = claim.session;
        let row = SessionRow::load(&mut *self.connection.lock().await, session).await?;
        let is_writer = |row: &SessionRow| {
            row.epoch == claim.epoch as i64 && row.summary.fact_count == expected
        };
        let row = row.filter(is_writer).ok_or(StorageError::Fenced { session })?;
        if row.is_intact() { Ok(row) } else { Err(StorageError::SessionDamaged { session }) }
    }
}

#[async_trait]
impl FactStore for SqliteLog {
    async fn store_fact(&self, json: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.put_blob(json).await
    }
}

#[async_trait]
impl Log for SqliteLog {
    async fn claim(&self, session: SessionId) -> Result<SessionClaim, StorageError> {
        let lock = data_folder::open_lock_file(&self.session_lock(session))
            .map_err(StorageError::from_io("could not open the session's lock file"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(StorageError::Busy { session, holder: None });
            }
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(StorageError::from_io("could not lock the session")(error));
            }
        }
        let (mut connection, _turn) = self.begin_write().await?;
        let claimed = claim_session(&mut connection, session).await;
        let row = self.reconnect_on_error(&mut connection, claimed).await?;
        let head = row.summary.fact_count;
        let noted = head_file::read(&lock).unwrap_or_default();
        Ok(SessionClaim {
            session,
            epoch: row.epoch as u64,
            head,
            lost_facts: noted.saturating_sub(head),
            guard: Some(Box::new(lock)),
        })
    }

    async fn append(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        at: UnixMillis,
        facts: &[Fact],
    ) -> Result<LogSeq, StorageError> {
        self.append_facts(claim, expected, facts.iter().map(|fact| (at, None, fact))).await
    }

    async fn append_records(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        records: &[FactRecord],
    ) -> Result<LogSeq, StorageError> {
        let facts = records.iter().map(|record| (record.at, record.origin.as_ref(), &record.fact));
        self.append_facts(claim, expected, facts).await
    }

    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let mut query = sqlx::QueryBuilder::new(stored_facts::SEARCH_QUERY);
        query.push_bind(session.0);
        for word in words {
            query.push(" AND body LIKE ").push_bind(like_pattern(word)?).push(" ESCAPE '\\'");
        }
        query.push(" ORDER BY seq LIMIT ").push_bind(limit as i64);
        let mut connection = self.connection.lock().await;
        let facts: Vec<Vec<u8>> = query.build_query_scalar().fetch_all(&mut *connection).await?;
        drop(connection);
        stored_facts::decode_facts(session, &stored_facts::join_facts(&facts), &*self.blobs)
    }

    async fn read_page(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: PageLimit,
    ) -> Result<Vec<FactRecord>, StorageError> {
        Ok(self.read_fact_page(session, after, limit).await?.records)
    }

    async fn resume_position(
        &self,
        session: SessionId,
        position: LogPosition,
    ) -> Result<LogPosition, StorageError> {
        let mut connection = self.connection.lock().await;
        let found = find_position(&mut connection, session, position).await;
        match found {
            // Reading replaces the damaged facts.
            Err(error) if error.is_corruption() => Ok(position),
            found => found,
        }
    }

    async fn read_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let mut connection = self.connection.lock().await;
        let text: Option<Vec<u8>> = sqlx::query_scalar(stored_facts::TURN_FACTS_QUERY)
            .bind(session.0)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_one(&mut *connection)
            .await?;
        drop(connection);
        let text = text.unwrap_or_default();
        self.run_blocking(move |blobs| stored_facts::decode_facts(session, &text, blobs)).await
    }

    async fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionSummary>, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows = SessionRow::load_filtered(&mut connection, filter).await?;
        drop(connection);
        let summary = |row: SessionRow| match row.is_intact() {
            true => row.summary,
            false => SessionSummary { title: DAMAGED_TITLE.to_owned(), ..row.summary },
        };
        Ok(rows.into_iter().map(summary).collect())
    }

    async fn delete(&self, session: SessionId) -> Result<(), StorageError> {
        let exists = self.delete_rows(session).await?;
        self.remove_unused_files().await?;
        if exists { Ok(()) } else { Err(StorageError::SessionNotFound { session }) }
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.run_blocking(move |blobs| blobs.put(&bytes)).await
    }

    async fn find_blob(&self, prefix: &str) -> Result<Option<BlobRef>, StorageError> {
        let prefix = prefix.to_owned();
        self.run_blocking(move |blobs| Ok(blobs.find(&prefix))).await
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, StorageError> {
        let blob = blob.clone();
        self.run_blocking(move |blobs| blobs.get(&blob)).await
    }

    async fn put_copy(
        &self,
        bytes: Vec<u8>,
        similar: Option<&BlobRef>,
    ) -> Result<BlobRef, StorageError> {
        self.copies.put(bytes, similar).await
    }

    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError> {
        self.copies.get(copy).await
    }
}

/// Fails if the file of a database is shorter than the database.
async fn check_not_cut(connection: &mut SqliteConnection, path: &Path) -> Result<(), StorageError> {
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await?;
    let size: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut *connection).await?;
    // Pages may still be in the write-ahead log only.
    let wal = path.with_file_name("windlass.db-wal");
    let stored = data_folder::file_bytes(path) + data_folder::file_bytes(&wal);
    if stored >= (pages as u64).saturating_mul(size as u64) {
        return Ok(());
    }
    let (path, reason) = (path.display().to_string(), "its end is missing".to_owned());
    Err(StorageError::DatabaseDamaged { path, reason })
}

/// Opens the database in a folder that cannot be written.
async fn open_read_only(
    options: SqliteConnectOptions,
    database: &Path,
) -> Result<(SqliteConnectOptions, SqliteConnection), StorageError> {
    let has_wal = data_folder::file_bytes(&database.with_file_name("windlass.db-wal")) > 0;
    // Without a write-ahead log, SQLite needs no files beside the database.
    let options = options.read_only(true).immutable(!has_wal);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let found = database_open::check_format(&mut connection, FIRST_FORMAT, MIGRATIONS).await?;
    // It cannot be migrated here.
    let first = FIRST_FORMAT + MIGRATIONS.len() as i64 - 1;
    if found < first {
        return Err(StorageError::TooOld { found, first });
    }
    Ok((options, connection))
}

/// Returns the lock files of which a writer holds one. While one writer executes its statements, the
/// others get ready: a thread that is woken on a busy machine takes longer than the statements.
pub(crate) fn write_locks(folder: &Path) -> Vec<PathBuf> {
    const MAX_WRITERS: usize = 4;
    (0..MAX_WRITERS).map(|index| folder.join(format!("write-{index}.lock"))).collect()
}

/// Makes the caller the writer of a session: raises its epoch. The epoch is a time, not a count: a
/// claim that is lost with the facts written under it must not be repeated by the next one.
async fn claim_session(
    connection: &mut SqliteConnection,
    session: SessionId,
) -> Result<SessionRow, StorageError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(
        "INSERT INTO session (id, epoch) VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER))
         ON CONFLICT (id) DO UPDATE SET epoch = max(epoch + 1, excluded.epoch)",
    )
    .bind(session.0)
    .execute(&mut *transaction)
    .await?;
    let row = SessionRow::load(&mut transaction, session).await?;
    transaction.commit().await?;
    let row = row.ok_or(sqlx::Error::RowNotFound)?;
    if row.is_intact() { Ok(row) } else { Err(StorageError::SessionDamaged { session }) }
}
