//! The copies that undo needs: what files held before and after a change, named by their SHA-256.
//!
//! They live in a database of their own beside the log, `copies.db`, which is opened when the
//! first copy is kept or asked for. The log stays small and quick, and opens even when the copies
//! are damaged; pages that pruning frees go back to the disk, which a database must be born for.
//! A copy costs no flush: it is committed before the fact that names it, so it survives whatever
//! kills the process, and a power cut can take only the last ones, which are then reported gone.
//!
//! Copies that build on each other form a chain, and a chain is removed as a whole: the one
//! unused for longest when the store is full, and, when a session is deleted, those that no
//! session names. How a copy is packed is the business of [`pack`](crate::pack).
#![allow(clippy::disallowed_methods, reason = "storage is the door to its own files")]

use crate::Error;
use crate::pack::{self, LARGEST, LONGEST_LINE, Layer, Packed};
use crate::sqlite::{BUSY, lock_opening, migrate};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Connection, Row};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_protocol::BlobRef;

/// Each entry takes the database from format n to n + 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/copies_1.sql")];

/// How much all copies may take up, unless told otherwise.
pub(crate) const CAP: u64 = 512 << 20;

/// A chain whose differences take up this part of the cap is not added to: it could only be
/// removed whole.
const LARGEST_PART: u64 = 8;

/// What a row takes up beside its body, so that many tiny copies count too.
const ROW: usize = 160;

/// A chain nobody names is removed only when it was unused for this many seconds: a younger one
/// may belong to a fact that is about to be appended.
const GRACE: i64 = 3600;

/// A chain used within this many seconds, and last of all, need not be marked as used again.
const FRESH: i64 = 60;

/// How many pages go back to the disk in one transaction, so that other writers get their turn.
const PAGES: u32 = 4096;

/// The store of copies.
pub(crate) struct Copies {
    folder: PathBuf,
    cap: u64,
    /// Missing until it is needed, and after a failure.
    connection: Mutex<Option<SqliteConnection>>,
}

impl Copies {
    pub(crate) fn new(folder: PathBuf, cap: u64) -> Copies {
        Copies { folder, cap, connection: Mutex::new(None) }
    }

    pub(crate) fn set_cap(&mut self, cap: u64) {
        self.cap = cap;
    }

    fn path(&self) -> PathBuf {
        self.folder.join("copies.db")
    }

    async fn connect(&self) -> Result<SqliteConnection, Error> {
        let guard = lock_opening(&self.folder).await?;
        let options = SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true)
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            // A large copy must not leave a large write-ahead log behind.
            .pragma("journal_size_limit", "8388608")
            .busy_timeout(BUSY);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        migrate(&mut connection, MIGRATIONS).await?;
        drop(guard);
        Ok(connection)
    }

    async fn connected<'a>(
        &self,
        slot: &'a mut Option<SqliteConnection>,
    ) -> Result<&'a mut SqliteConnection, Error> {
        let connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(slot.insert(connection))
    }

    /// After a failed write, such as on a full disk, SQLite and sqlx disagree on whether a
    /// transaction is open. The next use opens a new connection, which agrees with both.
    async fn checked<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            Err(Error::Database(source)) => {
                self.connection.lock().await.take();
                let path = self.path().display().to_string();
                Err(Error::Copies { path, source })
            }
            outcome => outcome,
        }
    }

    pub(crate) async fn keep(
        &self,
        bytes: Vec<u8>,
        near: Option<&BlobRef>,
    ) -> Result<BlobRef, Error> {
        let kept = self.try_keep(bytes, near).await;
        self.checked(kept).await
    }

    async fn try_keep(&self, bytes: Vec<u8>, near: Option<&BlobRef>) -> Result<BlobRef, Error> {
        if bytes.len() > LARGEST {
            return Err(Error::CopyTooLarge { size: bytes.len(), largest: LARGEST });
        }
        let bytes: Arc<[u8]> = bytes.into();
        let copy = {
            let bytes = Arc::clone(&bytes);
            compute(move || Ok(BlobRef::of(&bytes))).await?
        };
        if self.refresh(&copy).await? {
            return Ok(copy);
        }
        let mut line = match near {
            Some(near) => self.line(near).await?.into_bases(),
            None => Vec::new(),
        };
        loop {
            let bytes = Arc::clone(&bytes);
            let packed = compute(move || pack::pack(&bytes, &line)).await?;
            match self.write(&copy, &packed).await? {
                Written::Kept => return Ok(copy),
                // Another process needed the room meanwhile. Alone, it needs no base.
                Written::BaseGone => line = Vec::new(),
            }
        }
    }

    /// Whether a copy is kept already. If so, its chain counts as just used.
    async fn refresh(&self, copy: &BlobRef) -> Result<bool, Error> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let row = sqlx::query(
            "SELECT chain.id, chain.used < store.clock OR chain.at < unixepoch() - ?2
             FROM copy JOIN chain ON chain.id = copy.chain JOIN store
             WHERE copy.digest = unhex(?1)",
        )
        .bind(copy.as_str())
        .bind(FRESH)
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Ok(false) };
        let (chain, stale): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        if !stale {
            return Ok(true);
        }
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let still = mark_used(&mut transaction, chain).await?;
        transaction.commit().await?;
        Ok(still)
    }

    /// A copy with all it builds on, the whole copy first. One statement, so that it shows one
    /// moment even while others remove chains.
    async fn line(&self, copy: &BlobRef) -> Result<Line, Error> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let rows = sqlx::query(
            "WITH RECURSIVE line (id, base, depth) AS (
               SELECT rowid, base, 0 FROM copy WHERE digest = unhex(?1)
               UNION ALL
               SELECT copy.rowid, copy.base, depth + 1
               FROM line JOIN copy ON copy.digest = line.base WHERE depth < ?2)
             SELECT copy.rowid, lower(hex(copy.digest)), copy.base IS NULL,
               chain.stored - copy.stored, copy.size, copy.body
             FROM line JOIN copy ON copy.rowid = line.id JOIN chain ON chain.id = copy.chain
             ORDER BY depth DESC",
        )
        .bind(copy.as_str())
        .bind(LONGEST_LINE)
        .fetch_all(&mut *connection)
        .await?;
        let rooted = rows.first().map_or(Ok(true), |row| row.try_get(2))?;
        let taken: i64 = rows.first().map_or(Ok(0), |row| row.try_get(3))?;
        let full = taken > i64::try_from(self.cap / LARGEST_PART).unwrap_or(i64::MAX);
        let layer = |row: SqliteRow| {
            Ok(Layer {
                row: row.try_get(0)?,
                name: row.try_get(1)?,
                size: row.try_get(4)?,
                body: row.try_get(5)?,
            })
        };
        let layers: Result<Vec<Layer>, Error> = rows.into_iter().map(layer).collect();
        Ok(Line { layers: layers?, rooted, full })
    }

    async fn write(&self, copy: &BlobRef, packed: &Packed) -> Result<Written, Error> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let chain = match &packed.base {
            Some(base) => {
                let chain: Option<i64> =
                    sqlx::query_scalar("SELECT chain FROM copy WHERE digest = unhex(?1)")
                        .bind(base)
                        .fetch_optional(&mut *transaction)
                        .await?;
                let Some(chain) = chain else { return Ok(Written::BaseGone) };
                chain
            }
            None => {
                sqlx::query_scalar("INSERT INTO chain DEFAULT VALUES RETURNING id")
                    .fetch_one(&mut *transaction)
                    .await?
            }
        };
        let inserted = sqlx::query(
            "INSERT OR IGNORE INTO copy (digest, chain, base, size, stored, body)
             VALUES (unhex(?1), ?2, unhex(?3), ?4, ?5, ?6)",
        )
        .bind(copy.as_str())
        .bind(chain)
        .bind(packed.base.as_deref())
        .bind(packed.size as i64)
        .bind((packed.body.len() + ROW) as i64)
        .bind(packed.body.as_slice())
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 0 {
            // Another process was quicker.
            return Ok(Written::Kept);
        }
        make_room(&mut transaction, self.cap, chain).await?;
        transaction.commit().await?;
        Ok(Written::Kept)
    }

    pub(crate) async fn get(&self, copy: &BlobRef) -> Result<Vec<u8>, Error> {
        let got = self.try_get(copy).await;
        self.checked(got).await
    }

    async fn try_get(&self, copy: &BlobRef) -> Result<Vec<u8>, Error> {
        let line = self.line(copy).await?;
        let rooted = line.rooted;
        let (layers, plain) = compute(move || {
            let plain = if rooted { pack::unpack(&line.layers) } else { Err(0) };
            Ok((line.layers, plain))
        })
        .await?;
        match plain {
            Ok(plain) => Ok(plain),
            Err(place) => {
                self.forget(layers.get(place..).unwrap_or_default()).await?;
                Err(Error::CopyGone { copy: copy.clone() })
            }
        }
    }

    /// Forgets copies that cannot be read, so that the same bytes can be kept again.
    async fn forget(&self, unreadable: &[Layer]) -> Result<(), Error> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        for layer in unreadable {
            sqlx::query("DELETE FROM copy WHERE rowid = ?1 AND digest = unhex(?2)")
                .bind(layer.row)
                .bind(&layer.name)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    /// Removes the chains in which no copy is used, and gives their room back to the disk.
    pub(crate) async fn prune(&self, used: &HashSet<String>) -> Result<(), Error> {
        if !self.path().exists() {
            return Ok(());
        }
        let pruned = self.try_prune(used).await;
        self.checked(pruned).await
    }

    async fn try_prune(&self, used: &HashSet<String>) -> Result<(), Error> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let rows: Vec<(i64, Option<String>)> = sqlx::query_as(
            "SELECT chain.id, lower(hex(copy.digest))
             FROM chain LEFT JOIN copy ON copy.chain = chain.id
             WHERE chain.at < unixepoch() - ?1",
        )
        .bind(GRACE)
        .fetch_all(&mut *connection)
        .await?;
        let mut needed: HashMap<i64, bool> = HashMap::new();
        for (chain, copy) in rows {
            *needed.entry(chain).or_default() |= copy.is_some_and(|copy| used.contains(&copy));
        }
        for (chain, _) in needed.into_iter().filter(|(_, needed)| !needed) {
            let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
            let removed = sqlx::query("DELETE FROM chain WHERE id = ?1 AND at < unixepoch() - ?2")
                .bind(chain)
                .bind(GRACE)
                .execute(&mut *transaction)
                .await?;
            if removed.rows_affected() > 0 {
                remove_copies(&mut transaction, chain).await?;
            }
            transaction.commit().await?;
        }
        give_back(connection).await
    }
}

/// A copy with all it builds on.
struct Line {
    layers: Vec<Layer>,
    /// Whether it starts with a whole copy.
    rooted: bool,
    /// Whether its chain should not be added to.
    full: bool,
}

impl Line {
    /// The layers a new copy may be a difference to.
    fn into_bases(self) -> Vec<Layer> {
        if self.rooted && !self.full { self.layers } else { Vec::new() }
    }
}

/// What became of a copy that was to be stored.
enum Written {
    Kept,
    /// What it is a difference to is not kept any more.
    BaseGone,
}

/// Makes a chain the one used last. False if it is gone.
async fn mark_used(connection: &mut SqliteConnection, chain: i64) -> Result<bool, Error> {
    let clock: i64 = sqlx::query_scalar("UPDATE store SET clock = clock + 1 RETURNING clock")
        .fetch_one(&mut *connection)
        .await?;
    let marked = sqlx::query("UPDATE chain SET used = ?2, at = unixepoch() WHERE id = ?1")
        .bind(chain)
        .bind(clock)
        .execute(&mut *connection)
        .await?;
    Ok(marked.rows_affected() > 0)
}

/// Removes chains, the one unused for longest first, until the rest fits. One chain stays.
async fn make_room(connection: &mut SqliteConnection, cap: u64, stay: i64) -> Result<(), Error> {
    loop {
        let oldest: Option<i64> = sqlx::query_scalar(
            "SELECT id FROM chain WHERE id <> ?1 AND (SELECT stored FROM store) > ?2
             ORDER BY used LIMIT 1",
        )
        .bind(stay)
        .bind(i64::try_from(cap).unwrap_or(i64::MAX))
        .fetch_optional(&mut *connection)
        .await?;
        let Some(oldest) = oldest else { return Ok(()) };
        sqlx::query("DELETE FROM chain WHERE id = ?1")
            .bind(oldest)
            .execute(&mut *connection)
            .await?;
        remove_copies(connection, oldest).await?;
    }
}

async fn remove_copies(connection: &mut SqliteConnection, chain: i64) -> Result<(), Error> {
    sqlx::query("DELETE FROM copy WHERE chain = ?1").bind(chain).execute(&mut *connection).await?;
    Ok(())
}

/// Cuts free pages off the file. What a full store frees is used again at once, so this is for
/// sessions that were deleted.
async fn give_back(connection: &mut SqliteConnection) -> Result<(), Error> {
    let vacuum = format!("PRAGMA incremental_vacuum({PAGES})");
    let count = "PRAGMA freelist_count";
    let mut free: i64 = sqlx::query_scalar(count).fetch_one(&mut *connection).await?;
    while free > 0 {
        sqlx::raw_sql(sqlx::AssertSqlSafe(vacuum.clone())).execute(&mut *connection).await?;
        let left: i64 = sqlx::query_scalar(count).fetch_one(&mut *connection).await?;
        if left >= free {
            break;
        }
        free = left;
    }
    sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut *connection).await?;
    Ok(())
}

/// Hashing and packing keep a processor busy, which the threads of the runtime are not for.
async fn compute<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let joined = tokio::task::spawn_blocking(job).await;
    joined.map_err(std::io::Error::other).map_err(Error::file("a copy's packing ended early"))?
}
