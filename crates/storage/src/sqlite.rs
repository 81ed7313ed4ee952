//! SQLite backend for one machine: a database in WAL mode, blobs in files, and file copies in a
//! second database next to it.
//!
//! A commit costs no disk flush unless one of its facts needs a disk sync; then `synchronous` is
//! `FULL` for that one commit, which flushes the write-ahead log and everything before it. Several
//! processes share the database: writers queue through `BEGIN IMMEDIATE` and a busy timeout, and
//! opening (switching to WAL, migrating) happens under a file lock.

use crate::blob::{self, BlobStore};
use crate::database_open::{BUSY_TIMEOUT, lock_for_open, migrate};
use crate::fact_rows::{FactToInsert, decode_turn_end, insert_facts};
use crate::file_copies::{self, FileCopyStore};
use crate::{Log, MAX_PAGE_FACTS, SessionClaim, StorageError, log_page_decoder};
use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Row};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;
use uuid::Uuid;
use windlass_protocol::{
    BlobRef, Cost, Fact, FactRecord, LogSeq, SessionId, SessionSummary, UnixMillis,
};

/// The first database format that this build reads; formats 1 to 3 belong to unreleased builds.
const FIRST_FORMAT: i64 = 4;

/// Each entry takes the database to the next format, from an empty one to `FIRST_FORMAT`.
const MIGRATIONS: &[&str] = &[include_str!("migrations/log_4.sql")];

/// A fact with longer JSON is stored as a blob, so that rows stay small.
const MAX_ROW_BYTES: usize = 64 * 1024;

/// A `Log` in a folder: a database, its blobs and its file copies.
pub struct SqliteLog {
    options: SqliteConnectOptions,
    connection: Mutex<SqliteConnection>,
    blobs: Arc<BlobStore>,
    copies: FileCopyStore,
    locks_folder: PathBuf,
}

impl SqliteLog {
    /// Opens the log in a folder and creates both if needed.
    pub async fn open(folder: &Path) -> Result<SqliteLog, StorageError> {
        let locks_folder = folder.join("locks");
        let created = blob::create_private_folder(folder)
            .and_then(|()| blob::create_private_folder(&locks_folder));
        created.map_err(StorageError::from_io(format!("could not create {}", folder.display())))?;
        let guard = lock_for_open(folder).await?;
        let options = SqliteConnectOptions::new()
            .filename(folder.join("windlass.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            // On macOS a plain flush stops at the drive's cache; `fullfsync` flushes that too.
            .pragma("fullfsync", "ON")
            .busy_timeout(BUSY_TIMEOUT);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        migrate(&mut connection, FIRST_FORMAT, MIGRATIONS).await?;
        drop(guard);
        let blobs = Arc::new(BlobStore::new(folder.join("blobs")));
        let copies = FileCopyStore::new(folder.to_owned(), file_copies::DEFAULT_MAX_COPIES_BYTES);
        Ok(SqliteLog { options, connection: Mutex::new(connection), blobs, copies, locks_folder })
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

    async fn run_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&BlobStore) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let blobs = Arc::clone(&self.blobs);
        let result = tokio::task::spawn_blocking(move || job(&blobs)).await;
        result
            .map_err(std::io::Error::other)
            .map_err(StorageError::from_io("a file operation was interrupted"))?
    }

    /// Reads facts with one of the queries in [`row_page`].
    async fn read_page(
        &self,
        query: &'static str,
        session: SessionId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let mut connection = self.connection.lock().await;
        let page: Option<String> = sqlx::query_scalar(query)
            .bind(session.0)
            .bind(after)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_one(&mut *connection)
            .await?;
        drop(connection);
        let Some(page) = page else { return Ok(Vec::new()) };
        self.run_blocking(move |blobs| log_page_decoder::parse_page(session, &page, blobs)).await
    }

    /// Appends facts after a position, all or none.
    async fn append_facts<'a>(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        facts: impl Iterator<Item = (UnixMillis, &'a Fact)> + Send,
    ) -> Result<LogSeq, StorageError> {
        let mut rows = Vec::new();
        for (at, fact) in facts {
            let (body, blob) = self.encode_fact(fact).await?;
            rows.push(FactToInsert { at, fact, body, blob });
        }
        let mut connection = self.connection.lock().await;
        let written = insert_facts(&mut connection, claim, expected, &rows).await;
        if let Err(StorageError::Database(_)) = &written {
            // After a failed write, such as on a full disk, SQLite and sqlx disagree on whether a
            // transaction is open. A new connection avoids that.
            *connection = SqliteConnection::connect_with(&self.options).await?;
        }
        written
    }

    /// Returns a session and all its descendants, by the column `parent`.
    async fn session_tree(&self, session: SessionId) -> Result<Vec<SessionId>, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows: Vec<Uuid> = sqlx::query_scalar(
            "WITH RECURSIVE family (id) AS (
               VALUES (?1) UNION SELECT session.id FROM session JOIN family
               ON session.parent = family.id)
             SELECT id FROM family",
        )
        .bind(session.0)
        .fetch_all(&mut *connection)
        .await?;
        Ok(rows.into_iter().map(SessionId).collect())
    }

    /// Returns sessions that were claimed but never got a fact. They appear in no list.
    async fn empty_sessions(&self) -> Result<Vec<SessionId>, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM session WHERE head = 0")
            .fetch_all(&mut *connection)
            .await?;
        Ok(rows.into_iter().map(SessionId).collect())
    }

    /// Encodes a fact for a row: its JSON, or the blob that contains it.
    async fn encode_fact(
        &self,
        fact: &Fact,
    ) -> Result<(Option<String>, Option<BlobRef>), StorageError> {
        let json = serde_json::to_string(fact)?;
        if json.len() <= MAX_ROW_BYTES {
            return Ok((Some(json), None));
        }
        Ok((None, Some(self.put_blob(json.into_bytes()).await?)))
    }
}

#[async_trait]
impl Log for SqliteLog {
    async fn claim(&self, session: SessionId) -> Result<SessionClaim, StorageError> {
        let lock = blob::open_lock_file(&self.locks_folder.join(session.to_string()))
            .map_err(StorageError::from_io("could not open the session's lock file"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(StorageError::Busy { session }),
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(StorageError::from_io("could not lock the session")(error));
            }
        }
        let mut connection = self.connection.lock().await;
        // SQLite returns the row before the commit; only the end of the result confirms the commit,
        // so fetch all rows.
        let rows = sqlx::query(
            "INSERT INTO session (id, epoch) VALUES (?1, 1)
             ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1 RETURNING epoch, head",
        )
        .bind(session.0)
        .fetch_all(&mut *connection)
        .await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let (epoch, head): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let guard: Box<dyn std::any::Any + Send + Sync> = Box::new(lock);
        Ok(SessionClaim { session, epoch: epoch as u64, head: head as LogSeq, _guard: Some(guard) })
    }

    async fn append(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        at: UnixMillis,
        facts: &[Fact],
    ) -> Result<LogSeq, StorageError> {
        self.append_facts(claim, expected, facts.iter().map(|fact| (at, fact))).await
    }

    async fn restore(
        &self,
        claim: &SessionClaim,
        records: &[FactRecord],
    ) -> Result<LogSeq, StorageError> {
        self.append_facts(claim, 0, records.iter().map(|record| (record.at, &record.fact))).await
    }

    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let mut query = sqlx::QueryBuilder::new(
            "SELECT seq, at, body FROM event
             WHERE kind IN ('prompt_submitted', 'model_text', 'session_renamed', 'tool_called', 'call_settled') AND session = ",
        );
        query.push_bind(session.0);
        for word in words {
            query.push(" AND body LIKE ").push_bind(like_pattern(word)?).push(" ESCAPE '~'");
        }
        query.push(" ORDER BY seq LIMIT ").push_bind(limit as i64);
        let mut connection = self.connection.lock().await;
        let rows = query.build().fetch_all(&mut *connection).await?;
        drop(connection);
        let parse_row = |row: &sqlx::sqlite::SqliteRow| {
            let seq = row.try_get::<i64, _>(0)? as LogSeq;
            let at = UnixMillis(row.try_get::<i64, _>(1)? as u64);
            let body: String = row.try_get(2)?;
            let fact = serde_json::from_str(&body).map_err(|error| {
                let reason = error.to_string();
                StorageError::Unreadable { session, seq, reason }
            })?;
            Ok(FactRecord { session, seq, at, fact })
        };
        rows.iter().map(parse_row).collect()
    }

    async fn read_limited(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.read_page(
            log_page_decoder::FACTS_AFTER_QUERY,
            session,
            after as i64,
            limit.min(MAX_PAGE_FACTS),
        )
        .await
    }

    async fn read_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.read_page(log_page_decoder::TURN_FACTS_QUERY, session, 0, limit).await
    }

    async fn list(&self) -> Result<Vec<SessionSummary>, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query(
            "SELECT id, workspace, title, changed_at, head, last_turn_end, cost_micros, parent
             FROM session WHERE head > 0 ORDER BY changed_at DESC, id DESC",
        )
        .fetch_all(&mut *connection)
        .await?;
        let summary = |row: &sqlx::sqlite::SqliteRow| {
            Ok(SessionSummary {
                session: SessionId(row.try_get::<Uuid, _>(0)?),
                workspace: row.try_get(1)?,
                title: row.try_get(2)?,
                changed_at: UnixMillis(row.try_get::<i64, _>(3)? as u64),
                fact_count: row.try_get::<i64, _>(4)? as LogSeq,
                last_turn_end: decode_turn_end(row.try_get(5)?),
                cost: Cost(row.try_get::<i64, _>(6)? as u64),
                parent: row.try_get::<Option<Uuid>, _>(7)?.map(SessionId),
            })
        };
        rows.iter().map(summary).collect()
    }

    async fn delete(&self, session: SessionId) -> Result<(), StorageError> {
        // The caller must become the writer of every session it deletes, so that none is deleted
        // while in use.
        let mut claims = Vec::new();
        for session in self.session_tree(session).await? {
            claims.push(self.claim(session).await?);
        }
        for session in self.empty_sessions().await? {
            // A session that is about to start has a claim, so this attempt fails and the session
            // stays.
            claims.extend(self.claim(session).await.ok().filter(|claim| claim.head == 0));
        }
        let exists = claims.iter().any(|claim| claim.session == session && claim.head > 0);
        let mut connection = self.connection.lock().await;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for claim in &claims {
            for statement in [
                "DELETE FROM event WHERE session = ?1",
                "DELETE FROM blob_use WHERE session = ?1",
                "DELETE FROM session WHERE id = ?1",
            ] {
                sqlx::query(statement).bind(claim.session.0).execute(&mut *transaction).await?;
            }
        }
        transaction.commit().await?;
        let used: HashSet<String> = sqlx::query_scalar("SELECT DISTINCT blob FROM blob_use")
            .fetch_all(&mut *connection)
            .await?
            .into_iter()
            .collect();
        drop(connection);
        // The session is already deleted. If removing copies fails, the next deletion retries it.
        let _ = self.copies.prune(&used).await;
        self.run_blocking(move |blobs| {
            blobs.prune(&used);
            Ok(())
        })
        .await?;
        for claim in claims {
            blob::remove_file_if_exists(&self.locks_folder.join(claim.session.to_string()));
        }
        if exists { Ok(()) } else { Err(StorageError::SessionNotFound { session }) }
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.run_blocking(move |blobs| blobs.put(&bytes)).await
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

/// Returns the `LIKE` pattern that finds a word in the JSON of a fact.
fn like_pattern(word: &str) -> Result<String, StorageError> {
    let json = serde_json::to_string(word)?;
    let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
    let mut pattern = String::from("%");
    for character in inner.chars() {
        if matches!(character, '%' | '_' | '~') {
            pattern.push('~');
        }
        pattern.push(character);
    }
    pattern.push('%');
    Ok(pattern)
}
