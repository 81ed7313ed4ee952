//! File copies for undo: the contents of files before and after a change, named by their SHA-256.
//!
//! They live in a separate database next to the log, `copies.db`, which is opened when the first
//! copy is stored or read. This keeps the log small and fast, and the log opens even if the copies
//! are damaged. Pages that pruning frees return to the disk, a setting (`auto_vacuum`) that a
//! database needs from its creation. A copy costs no flush: it is committed before the fact that
//! names it, so it survives any crash of the process, and a power cut can remove only the latest
//! copies, which are then reported as gone.
//!
//! Copies that build on each other form a chain, and a chain is removed as a whole: the least
//! recently used one when the store is full, and, when a session is deleted, those that no session
//! refers to. [`delta`](crate::delta) compresses the copies.
#![allow(clippy::disallowed_methods, reason = "the storage crate opens its own files directly")]

use crate::StorageError;
use crate::database_open::{BUSY_TIMEOUT, connect_options, empty_wal, open_database, vacuum_step};
use crate::delta_compression::{
    self, CompressedFileCopy, DeltaLayer, MAX_CHAIN_LAYERS, MAX_FILE_BYTES,
};
use crate::file_lock::lock_in_turn;
use sqlx::sqlite::{SqliteConnection, SqliteRow, SqliteSynchronous};
use sqlx::{Connection, Row};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_protocol::BlobRef;

/// Each entry migrates the database from format n to n + 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/copies_1.sql")];

/// The default limit for the size of all copies.
pub(crate) const DEFAULT_MAX_COPIES_BYTES: u64 = 512 << 20;

/// A chain whose differences exceed this fraction of the limit (one eighth) gets no further copies,
/// because it can only be removed as a whole.
const CHAIN_CAP_DIVISOR: u64 = 8;

/// The estimated size of a row besides its body, so that many tiny copies count too.
const ROW_OVERHEAD_BYTES: usize = 160;

/// The minimum time without use after which an unreferenced chain is removed: a younger one may
/// belong to a fact that is about to be appended.
const PRUNE_MIN_AGE_SECS: i64 = 3600;

/// A chain that is the most recently used and was used within this time is not marked as used
/// again.
const TOUCH_INTERVAL_SECS: i64 = 60;

/// The store of file copies in `copies.db`.
pub(crate) struct FileCopyStore {
    folder: PathBuf,
    max_bytes: u64,
    /// `None` until the first use, and after a failure.
    connection: Mutex<Option<SqliteConnection>>,
}

impl FileCopyStore {
    pub(crate) fn new(folder: PathBuf, max_bytes: u64) -> FileCopyStore {
        FileCopyStore { folder, max_bytes, connection: Mutex::new(None) }
    }

    pub(crate) fn set_max_bytes(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
    }

    fn path(&self) -> PathBuf {
        self.folder.join("copies.db")
    }

    async fn connect(&self) -> Result<SqliteConnection, StorageError> {
        let options = connect_options(&self.path())
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Normal)
            // A large copy must not leave a large write-ahead log behind.
            .pragma("journal_size_limit", "8388608")
            // Deleted text must not remain in free pages.
            .pragma("secure_delete", "ON")
            .busy_timeout(BUSY_TIMEOUT);
        open_database(&options, 1, MIGRATIONS).await
    }

    /// Waits until no other process writes.
    async fn wait_for_turn(&self) -> Result<std::fs::File, StorageError> {
        lock_in_turn(&self.folder.join("copies.lock")).await
    }

    async fn get_or_connect<'a>(
        &self,
        slot: &'a mut Option<SqliteConnection>,
    ) -> Result<&'a mut SqliteConnection, StorageError> {
        let connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(slot.insert(connection))
    }

    /// Drops the connection after a database error. After a failed write, such as on a full disk,
    /// SQLite and sqlx disagree on whether a transaction is open; the next use opens a new
    /// connection, which avoids that.
    async fn reset_on_error<T>(&self, outcome: Result<T, StorageError>) -> Result<T, StorageError> {
        match outcome {
            Err(StorageError::Database(source)) => {
                self.connection.lock().await.take();
                let path = self.path().display().to_string();
                Err(StorageError::CopyStore { path, source })
            }
            outcome => outcome,
        }
    }

    pub(crate) async fn put(
        &self,
        bytes: Vec<u8>,
        similar: Option<&BlobRef>,
    ) -> Result<BlobRef, StorageError> {
        let result = self.try_put(bytes, similar).await;
        self.reset_on_error(result).await
    }

    async fn try_put(
        &self,
        bytes: Vec<u8>,
        similar: Option<&BlobRef>,
    ) -> Result<BlobRef, StorageError> {
        if bytes.len() > MAX_FILE_BYTES {
            return Err(StorageError::CopyTooLarge { size: bytes.len(), largest: MAX_FILE_BYTES });
        }
        let bytes: Arc<[u8]> = bytes.into();
        let copy = {
            let bytes = Arc::clone(&bytes);
            run_blocking(move || Ok(BlobRef::for_bytes(&bytes))).await?
        };
        if self.touch_if_stored(&copy).await? {
            return Ok(copy);
        }
        let mut bases = match similar {
            Some(similar) => self.load_chain(similar).await?.into_bases(),
            None => Vec::new(),
        };
        loop {
            let bytes = Arc::clone(&bytes);
            let packed = run_blocking(move || delta_compression::pack(&bytes, &bases)).await?;
            match self.insert_copy(&copy, &packed).await? {
                CopyInsertOutcome::Stored => return Ok(copy),
                // Another process removed the base meanwhile. Compressed alone, the copy needs
                // none.
                CopyInsertOutcome::BaseMissing => bases = Vec::new(),
            }
        }
    }

    /// Returns true if the copy is already stored, and marks its chain as used.
    async fn touch_if_stored(&self, copy: &BlobRef) -> Result<bool, StorageError> {
        let mut slot = self.connection.lock().await;
        let connection = self.get_or_connect(&mut slot).await?;
        let row = sqlx::query(
            "SELECT chain.id, chain.used < store.clock OR chain.at < unixepoch() - ?2
             FROM copy JOIN chain ON chain.id = copy.chain JOIN store
             WHERE copy.digest = unhex(?1)",
        )
        .bind(copy.as_str())
        .bind(TOUCH_INTERVAL_SECS)
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Ok(false) };
        let (chain, stale): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        if !stale {
            return Ok(true);
        }
        let _turn = self.wait_for_turn().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let exists = mark_used(&mut transaction, chain).await?;
        transaction.commit().await?;
        Ok(exists)
    }

    /// Loads a copy with everything it builds on, the full copy first. It is one statement, so that
    /// it sees one consistent state while other processes remove chains.
    async fn load_chain(&self, copy: &BlobRef) -> Result<DeltaChain, StorageError> {
        let mut slot = self.connection.lock().await;
        let connection = self.get_or_connect(&mut slot).await?;
        let rows = sqlx::query(
            "WITH RECURSIVE layer (id, base, depth) AS (
               SELECT rowid, base, 0 FROM copy WHERE digest = unhex(?1)
               UNION ALL
               SELECT copy.rowid, copy.base, depth + 1
               FROM layer JOIN copy ON copy.digest = layer.base WHERE depth < ?2)
             SELECT copy.rowid, lower(hex(copy.digest)), copy.base IS NULL,
               chain.stored - copy.stored, copy.size, copy.body
             FROM layer JOIN copy ON copy.rowid = layer.id JOIN chain ON chain.id = copy.chain
             ORDER BY depth DESC",
        )
        .bind(copy.as_str())
        .bind(MAX_CHAIN_LAYERS)
        .fetch_all(&mut *connection)
        .await?;
        let has_full_copy = rows.first().map_or(Ok(true), |row| row.try_get(2))?;
        let delta_bytes: i64 = rows.first().map_or(Ok(0), |row| row.try_get(3))?;
        let is_full =
            delta_bytes > i64::try_from(self.max_bytes / CHAIN_CAP_DIVISOR).unwrap_or(i64::MAX);
        let layer = |row: SqliteRow| {
            Ok(DeltaLayer {
                row_id: row.try_get(0)?,
                digest: row.try_get(1)?,
                size: row.try_get(4)?,
                body: row.try_get(5)?,
            })
        };
        let layers: Result<Vec<DeltaLayer>, StorageError> = rows.into_iter().map(layer).collect();
        Ok(DeltaChain { layers: layers?, has_full_copy, is_full })
    }

    async fn insert_copy(
        &self,
        copy: &BlobRef,
        packed: &CompressedFileCopy,
    ) -> Result<CopyInsertOutcome, StorageError> {
        let mut slot = self.connection.lock().await;
        let connection = self.get_or_connect(&mut slot).await?;
        let _turn = self.wait_for_turn().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let chain = match &packed.base {
            Some(base) => {
                let chain: Option<i64> =
                    sqlx::query_scalar("SELECT chain FROM copy WHERE digest = unhex(?1)")
                        .bind(base)
                        .fetch_optional(&mut *transaction)
                        .await?;
                let Some(chain) = chain else { return Ok(CopyInsertOutcome::BaseMissing) };
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
        .bind((packed.body.len() + ROW_OVERHEAD_BYTES) as i64)
        .bind(packed.body.as_slice())
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 0 {
            // Another process stored the same copy first.
            return Ok(CopyInsertOutcome::Stored);
        }
        evict_chains(&mut transaction, self.max_bytes, chain).await?;
        transaction.commit().await?;
        Ok(CopyInsertOutcome::Stored)
    }

    pub(crate) async fn get(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError> {
        let result = self.try_get(copy).await;
        self.reset_on_error(result).await
    }

    async fn try_get(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError> {
        let chain = self.load_chain(copy).await?;
        let has_full_copy = chain.has_full_copy;
        let (layers, plain) = run_blocking(move || {
            let plain =
                if has_full_copy { delta_compression::unpack(&chain.layers) } else { Err(0) };
            Ok((chain.layers, plain))
        })
        .await?;
        match plain {
            Ok(plain) => Ok(plain),
            Err(first_damaged) => {
                self.delete_unreadable(layers.get(first_damaged..).unwrap_or_default()).await?;
                Err(StorageError::CopyGone { copy: copy.clone() })
            }
        }
    }

    /// Deletes unreadable copies, so that the same bytes can be stored again.
    async fn delete_unreadable(&self, unreadable: &[DeltaLayer]) -> Result<(), StorageError> {
        let mut slot = self.connection.lock().await;
        let connection = self.get_or_connect(&mut slot).await?;
        let _turn = self.wait_for_turn().await?;
        for layer in unreadable {
            sqlx::query("DELETE FROM copy WHERE rowid = ?1 AND digest = unhex(?2)")
                .bind(layer.row_id)
                .bind(&layer.digest)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    /// Writes a copy of the database to a new file.
    pub(crate) async fn backup(&self, target: &std::path::Path) -> Result<(), StorageError> {
        if !self.path().exists() {
            return Ok(());
        }
        let mut slot = self.connection.lock().await;
        let connection = self.get_or_connect(&mut slot).await?;
        let target = target.display().to_string();
        sqlx::query("VACUUM INTO ?1").bind(target).execute(&mut *connection).await?;
        Ok(())
    }

    /// Removes chains without a referenced copy and returns their space to the disk.
    pub(crate) async fn prune(&self, used: &HashSet<String>) -> Result<(), StorageError> {
        if !self.path().exists() {
            return Ok(());
        }
        let result = self.try_prune(used).await;
        self.reset_on_error(result).await
    }

    async fn try_prune(&self, used: &HashSet<String>) -> Result<(), StorageError> {
        let mut slot = self.connection.lock().await;
        let connection = self.get_or_connect(&mut slot).await?;
        let rows: Vec<(i64, Option<String>)> = sqlx::query_as(
            "SELECT chain.id, lower(hex(copy.digest))
             FROM chain LEFT JOIN copy ON copy.chain = chain.id
             WHERE chain.at < unixepoch() - ?1",
        )
        .bind(PRUNE_MIN_AGE_SECS)
        .fetch_all(&mut *connection)
        .await?;
        let mut needed: HashMap<i64, bool> = HashMap::new();
        for (chain, copy) in rows {
            *needed.entry(chain).or_default() |= copy.is_some_and(|copy| used.contains(&copy));
        }
        for (chain, _) in needed.into_iter().filter(|(_, needed)| !needed) {
            let _turn = self.wait_for_turn().await?;
            let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
            let removed = sqlx::query("DELETE FROM chain WHERE id = ?1 AND at < unixepoch() - ?2")
                .bind(chain)
                .bind(PRUNE_MIN_AGE_SECS)
                .execute(&mut *transaction)
                .await?;
            if removed.rows_affected() > 0 {
                remove_copies(&mut transaction, chain).await?;
            }
            transaction.commit().await?;
        }
        loop {
            let _turn = self.wait_for_turn().await?;
            if !vacuum_step(connection).await? {
                return empty_wal(connection).await;
            }
        }
    }
}

/// A copy with everything it builds on.
struct DeltaChain {
    layers: Vec<DeltaLayer>,
    /// True if the first layer is a full copy.
    has_full_copy: bool,
    /// True if the chain should get no further copies.
    is_full: bool,
}

impl DeltaChain {
    /// Returns the layers that a new copy may be a difference to.
    fn into_bases(self) -> Vec<DeltaLayer> {
        if self.has_full_copy && !self.is_full { self.layers } else { Vec::new() }
    }
}

/// The result of `FileCopyStore::insert_copy`.
enum CopyInsertOutcome {
    Stored,
    /// The base of the copy is no longer stored.
    BaseMissing,
}

/// Marks a chain as the most recently used. Returns false if it no longer exists.
async fn mark_used(connection: &mut SqliteConnection, chain: i64) -> Result<bool, StorageError> {
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

/// Removes the least recently used chains until the store is within its limit. The chain
/// `protected` is kept.
async fn evict_chains(
    connection: &mut SqliteConnection,
    max_bytes: u64,
    protected: i64,
) -> Result<(), StorageError> {
    loop {
        let oldest: Option<i64> = sqlx::query_scalar(
            "SELECT id FROM chain WHERE id <> ?1 AND (SELECT stored FROM store) > ?2
             ORDER BY used LIMIT 1",
        )
        .bind(protected)
        .bind(i64::try_from(max_bytes).unwrap_or(i64::MAX))
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

async fn remove_copies(connection: &mut SqliteConnection, chain: i64) -> Result<(), StorageError> {
    sqlx::query("DELETE FROM copy WHERE chain = ?1").bind(chain).execute(&mut *connection).await?;
    Ok(())
}

/// Runs hashing and compression on a blocking thread, because they would occupy the threads of the
/// async runtime.
async fn run_blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    let result = tokio::task::spawn_blocking(job).await;
    result
        .map_err(std::io::Error::other)
        .map_err(StorageError::from_io("the compression of a file copy was interrupted"))?
}
