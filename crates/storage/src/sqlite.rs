//! The backend of one machine: SQLite in WAL mode, blobs in files and copies in a second database
//! beside it.
//!
//! A commit costs no disk flush unless a fact in it needs a barrier; then `synchronous` is `FULL`
//! for that one commit, which flushes the write-ahead log and with it everything before. Several
//! processes share the database: writers queue behind `BEGIN IMMEDIATE` and a busy timeout, and
//! opening (switching to WAL, migrating) happens under a file lock.

use crate::blob::{self, Blobs};
use crate::copies::{self, Copies};
use crate::{Claim, Error, Log, PAGE, page};
use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Row};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use uuid::Uuid;
use windlass_protocol::{
    BlobRef, Cost, Fact, Millis, Outcome, Record, Seq, SessionId, SessionSummary, TurnEnd,
};

/// Each entry takes the database from format n to n + 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
];

/// The version of a stored fact's JSON.
pub(crate) const FACT_FORMAT: i64 = 1;

/// A fact whose JSON is longer than this is kept as a blob, so that rows stay small.
const LARGEST_ROW: usize = 64 * 1024;

/// How long a writer waits for another process to finish its transaction.
pub(crate) const BUSY: Duration = Duration::from_secs(30);

/// A folder with a database, its blobs and its copies.
pub struct Sqlite {
    options: SqliteConnectOptions,
    connection: Mutex<SqliteConnection>,
    blobs: Arc<Blobs>,
    copies: Copies,
    locks: PathBuf,
}

impl Sqlite {
    /// Opens the log in a folder, making both as needed.
    pub async fn open(folder: &Path) -> Result<Sqlite, Error> {
        let locks = folder.join("locks");
        let made = blob::private_folder(folder).and_then(|()| blob::private_folder(&locks));
        made.map_err(Error::file(format!("{} could not be made", folder.display())))?;
        let guard = lock_opening(folder).await?;
        let options = SqliteConnectOptions::new()
            .filename(folder.join("windlass.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            // Where a plain flush stops at the drive's cache (macOS), ask for more.
            .pragma("fullfsync", "ON")
            .busy_timeout(BUSY);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        migrate(&mut connection, MIGRATIONS).await?;
        drop(guard);
        let blobs = Arc::new(Blobs::new(folder.join("blobs")));
        let copies = Copies::new(folder.to_owned(), copies::CAP);
        Ok(Sqlite { options, connection: Mutex::new(connection), blobs, copies, locks })
    }

    /// Sets how many bytes all copies together may take up.
    pub fn with_copies_cap(mut self, bytes: u64) -> Sqlite {
        self.copies.set_cap(bytes);
        self
    }

    /// The version of SQLite that is linked in.
    pub async fn version(&self) -> Result<String, Error> {
        let mut connection = self.connection.lock().await;
        Ok(sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *connection).await?)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Blobs) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let blobs = Arc::clone(&self.blobs);
        let joined = tokio::task::spawn_blocking(move || job(&blobs)).await;
        joined.map_err(std::io::Error::other).map_err(Error::file("a file job ended early"))?
    }

    /// Reads facts with one of the queries of [`page`].
    async fn page(
        &self,
        query: &'static str,
        session: SessionId,
        after: i64,
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        let mut connection = self.connection.lock().await;
        let page: Option<String> = sqlx::query_scalar(query)
            .bind(session.0)
            .bind(after)
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_one(&mut *connection)
            .await?;
        drop(connection);
        let Some(page) = page else { return Ok(Vec::new()) };
        self.blocking(move |blobs| page::read(session, &page, blobs)).await
    }

    /// Adds facts behind a position, all or none.
    async fn write<'a>(
        &self,
        claim: &Claim,
        expected: Seq,
        facts: impl Iterator<Item = (Millis, &'a Fact)> + Send,
    ) -> Result<Seq, Error> {
        let mut rows = Vec::new();
        for (at, fact) in facts {
            let (body, blob) = self.encode(fact).await?;
            rows.push(StoredFact { at, fact, body, blob });
        }
        let mut connection = self.connection.lock().await;
        let written = write(&mut connection, claim, expected, &rows).await;
        if let Err(Error::Database(_)) = &written {
            // After a failed write, such as on a full disk, SQLite and sqlx disagree on whether a
            // transaction is open. A new connection agrees with both.
            *connection = SqliteConnection::connect_with(&self.options).await?;
        }
        written
    }

    /// A session and all those that it began, or that they began.
    async fn family(&self, session: SessionId) -> Result<Vec<SessionId>, Error> {
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

    /// Sessions that were claimed and ended before they began. Nobody knows them.
    async fn unbegun(&self) -> Result<Vec<SessionId>, Error> {
        let mut connection = self.connection.lock().await;
        let rows: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM session WHERE head = 0")
            .fetch_all(&mut *connection)
            .await?;
        Ok(rows.into_iter().map(SessionId).collect())
    }

    /// A fact as a row: its JSON, or the blob that holds it.
    async fn encode(&self, fact: &Fact) -> Result<(Option<String>, Option<BlobRef>), Error> {
        let json = serde_json::to_string(fact)?;
        if json.len() <= LARGEST_ROW {
            return Ok((Some(json), None));
        }
        Ok((None, Some(self.put_blob(json.into_bytes()).await?)))
    }
}

/// Waits for the right to open a database of a folder: switching one to WAL or migrating it must
/// not happen twice at once.
pub(crate) async fn lock_opening(folder: &Path) -> Result<File, Error> {
    let lock = folder.join("open.lock");
    let locked = tokio::task::spawn_blocking(move || {
        blob::lock_file(&lock).and_then(|file| file.lock().map(|()| file))
    });
    locked
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(Error::file("the database's lock file could not be taken"))
}

/// Takes a database to the newest format.
pub(crate) async fn migrate(
    connection: &mut SqliteConnection,
    migrations: &[&'static str],
) -> Result<(), Error> {
    let known = migrations.len() as i64;
    let found: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
    if found > known {
        return Err(Error::TooNew { found, known });
    }
    for (format, migration) in (1_i64..).zip(migrations) {
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

/// The blobs a fact points at.
fn blobs_of(fact: &Fact) -> impl Iterator<Item = &BlobRef> {
    let (full, attachments, changes) = match fact {
        Fact::Settled { outcome: Outcome::Completed { output }, .. } => {
            (output.full.as_ref(), output.attachments.as_slice(), &[][..])
        }
        Fact::Prompted { attachments, .. } => (None, attachments.as_slice(), &[][..]),
        Fact::Changing { changes, .. } => (None, &[][..], changes.as_slice()),
        _ => (None, &[][..], &[][..]),
    };
    let versions = changes.iter().flat_map(|change| change.before.iter().chain(&change.after));
    full.into_iter()
        .chain(attachments.iter().map(|file| &file.blob))
        .chain(versions.map(|version| &version.copy))
}

/// A fact on its way into the database.
struct StoredFact<'a> {
    at: Millis,
    fact: &'a Fact,
    body: Option<String>,
    blob: Option<BlobRef>,
}

/// One append: all facts or none, and only if nobody else has written or claimed since.
async fn write(
    connection: &mut SqliteConnection,
    claim: &Claim,
    expected: Seq,
    facts: &[StoredFact<'_>],
) -> Result<Seq, Error> {
    let session = claim.session;
    let barrier = facts.iter().any(|stored| stored.fact.needs_barrier());
    let flush = if barrier { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
    sqlx::raw_sql(flush).execute(&mut *connection).await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let row = sqlx::query(
        "SELECT workspace, title, changed, ended, cost, parent FROM session
         WHERE id = ?1 AND epoch = ?2 AND head = ?3",
    )
    .bind(session.0)
    .bind(claim.epoch as i64)
    .bind(expected as i64)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else { return Err(Error::Fenced { session }) };
    let mut summary = SessionSummary {
        session,
        workspace: row.try_get(0)?,
        title: row.try_get(1)?,
        changed: Millis(row.try_get::<i64, _>(2)? as u64),
        length: expected,
        end: decode_end(row.try_get(3)?),
        cost: Cost(row.try_get::<i64, _>(4)? as u64),
        parent: row.try_get::<Option<Uuid>, _>(5)?.map(SessionId),
    };
    for (seq, stored) in (expected + 1..).zip(facts) {
        summary.push(seq, stored.at, stored.fact);
        sqlx::query(
            "INSERT INTO event (session, seq, epoch, at, kind, format, body, blob)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .bind(session.0)
        .bind(seq as i64)
        .bind(claim.epoch as i64)
        .bind(stored.at.0 as i64)
        .bind(stored.fact.kind())
        .bind(FACT_FORMAT)
        .bind(&stored.body)
        .bind(stored.blob.as_ref().map(BlobRef::as_str))
        .execute(&mut *transaction)
        .await?;
        for used in blobs_of(stored.fact).chain(&stored.blob) {
            sqlx::query("INSERT OR IGNORE INTO blob_use (blob, session) VALUES (?1, ?2)")
                .bind(used.as_str())
                .bind(session.0)
                .execute(&mut *transaction)
                .await?;
        }
    }
    sqlx::query(
        "UPDATE session SET head = ?2, workspace = ?3, title = ?4, changed = ?5, ended = ?6,
         cost = ?7, parent = ?8 WHERE id = ?1",
    )
    .bind(session.0)
    .bind(summary.length as i64)
    .bind(summary.workspace)
    .bind(summary.title)
    .bind(summary.changed.0 as i64)
    .bind(summary.end.as_ref().map(serde_json::to_string).transpose()?)
    .bind(i64::try_from(summary.cost.0).unwrap_or(i64::MAX))
    .bind(summary.parent.map(|parent| parent.0))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(summary.length)
}

#[async_trait]
impl Log for Sqlite {
    async fn claim(&self, session: SessionId) -> Result<Claim, Error> {
        let lock = blob::lock_file(&self.locks.join(session.to_string()))
            .map_err(Error::file("the session's lock file could not be opened"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(Error::Busy { session }),
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(Error::file("the session could not be locked")(error));
            }
        }
        let mut connection = self.connection.lock().await;
        // The row comes before it is committed; only behind the last one is it known that it was.
        let rows = sqlx::query(
            "INSERT INTO session (id, epoch) VALUES (?1, 1)
             ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1 RETURNING epoch, head",
        )
        .bind(session.0)
        .fetch_all(&mut *connection)
        .await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let (epoch, head): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let hold: Box<dyn std::any::Any + Send + Sync> = Box::new(lock);
        Ok(Claim { session, epoch: epoch as u64, head: head as Seq, _hold: Some(hold) })
    }

    async fn append(
        &self,
        claim: &Claim,
        expected: Seq,
        at: Millis,
        facts: &[Fact],
    ) -> Result<Seq, Error> {
        self.write(claim, expected, facts.iter().map(|fact| (at, fact))).await
    }

    async fn restore(&self, claim: &Claim, records: &[Record]) -> Result<Seq, Error> {
        self.write(claim, 0, records.iter().map(|record| (record.at, &record.fact))).await
    }

    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        let mut query = sqlx::QueryBuilder::new(
            "SELECT seq, at, body FROM event
             WHERE kind IN ('prompted', 'said', 'renamed', 'called', 'settled') AND session = ",
        );
        query.push_bind(session.0);
        for word in words {
            query.push(" AND body LIKE ").push_bind(pattern(word)?).push(" ESCAPE '~'");
        }
        query.push(" ORDER BY seq LIMIT ").push_bind(most as i64);
        let mut connection = self.connection.lock().await;
        let rows = query.build().fetch_all(&mut *connection).await?;
        drop(connection);
        let record = |row: &sqlx::sqlite::SqliteRow| {
            let seq = row.try_get::<i64, _>(0)? as Seq;
            let at = Millis(row.try_get::<i64, _>(1)? as u64);
            let body: String = row.try_get(2)?;
            let fact = serde_json::from_str(&body).map_err(|error| {
                let reason = error.to_string();
                Error::Unreadable { session, seq, reason }
            })?;
            Ok(Record { session, seq, at, fact })
        };
        rows.iter().map(record).collect()
    }

    async fn read_some(
        &self,
        session: SessionId,
        after: Seq,
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        self.page(page::AFTER, session, after as i64, most.min(PAGE)).await
    }

    async fn landmarks(&self, session: SessionId, most: usize) -> Result<Vec<Record>, Error> {
        self.page(page::LANDMARKS, session, 0, most).await
    }

    async fn list(&self) -> Result<Vec<SessionSummary>, Error> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query(
            "SELECT id, workspace, title, changed, head, ended, cost, parent FROM session
             WHERE head > 0 ORDER BY changed DESC, id DESC",
        )
        .fetch_all(&mut *connection)
        .await?;
        let summary = |row: &sqlx::sqlite::SqliteRow| {
            Ok(SessionSummary {
                session: SessionId(row.try_get::<Uuid, _>(0)?),
                workspace: row.try_get(1)?,
                title: row.try_get(2)?,
                changed: Millis(row.try_get::<i64, _>(3)? as u64),
                length: row.try_get::<i64, _>(4)? as Seq,
                end: decode_end(row.try_get(5)?),
                cost: Cost(row.try_get::<i64, _>(6)? as u64),
                parent: row.try_get::<Option<Uuid>, _>(7)?.map(SessionId),
            })
        };
        rows.iter().map(summary).collect()
    }

    async fn delete(&self, session: SessionId) -> Result<(), Error> {
        // Whoever deletes a session must be its writer, so that none is deleted under way.
        let mut claims = Vec::new();
        for session in self.family(session).await? {
            claims.push(self.claim(session).await?);
        }
        for session in self.unbegun().await? {
            // One that is about to begin is held.
            claims.extend(self.claim(session).await.ok().filter(|claim| claim.head == 0));
        }
        let known = claims.iter().any(|claim| claim.session == session && claim.head > 0);
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
        // The session is gone. Copies that cannot be removed now are tried again when the next
        // one is deleted.
        let _ = self.copies.prune(&used).await;
        self.blocking(move |blobs| {
            blobs.prune(&used);
            Ok(())
        })
        .await?;
        for claim in claims {
            blob::remove(&self.locks.join(claim.session.to_string()));
        }
        if known { Ok(()) } else { Err(Error::NoSession { session }) }
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, Error> {
        self.blocking(move |blobs| blobs.put(&bytes)).await
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        let blob = blob.clone();
        self.blocking(move |blobs| blobs.get(&blob)).await
    }

    async fn keep_copy(&self, bytes: Vec<u8>, near: Option<&BlobRef>) -> Result<BlobRef, Error> {
        self.copies.keep(bytes, near).await
    }

    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, Error> {
        self.copies.get(copy).await
    }
}

/// What finds a word in the JSON of a fact.
fn pattern(word: &str) -> Result<String, Error> {
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

/// How a session's last turn ended; a text nobody can read counts as none.
fn decode_end(text: Option<String>) -> Option<TurnEnd> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}
