//! Blobs of a tenant: bytes in rows named by their SHA-256, compressed.
//!
//! The bytes of a large blob are in the object store, if there is one. Facts are always in the
//! database, so that a log can be read without the object store.
//!
//! A blob is stored before the fact that names it. Blobs that no session uses are removed when
//! sessions are deleted, once they are old enough that no append can be about to name them.

use super::PostgresLog;
use super::object_storage::ObjectStorage;
use crate::StorageError;
use crate::fact_rows::FactStore;
use crate::stored_facts::FactBlobs;
use async_trait::async_trait;
use sqlx::Row;
use std::collections::BTreeMap;
use windlass_protocol::BlobRef;

/// The largest blob. PostgreSQL sends a value in one message, and keeps it in memory as a whole.
const MAX_BLOB_BYTES: usize = 64 << 20;

/// A smaller blob is in the database.
const MIN_OBJECT_BYTES: usize = 256 << 10;

/// Maximum size of a compressed blob: zstd adds little to bytes that it cannot compress.
const MAX_OBJECT_BYTES: usize = MAX_BLOB_BYTES + (1 << 20);

/// Attempts to read an object with the right bytes.
const MAX_READS: usize = 2;

/// The level of zstd at which compressing costs less than sending.
const COMPRESSION_LEVEL: i32 = 1;

/// Blobs that are removed with one statement, or objects one after the other.
const PRUNE_BATCH_ROWS: i64 = 500;

/// Sets the time of a blob to now, so that it is not removed, and returns the object with its bytes.
const REFRESH_QUERY: &str =
    "UPDATE blob SET at = now() WHERE tenant = $1 AND name = $2 RETURNING object";

/// Returns a new key for an object. The object is removed later unless its blob is stored in time.
const RESERVE_QUERY: &str = "
    INSERT INTO object_removal (tenant, key, at)
    VALUES ($1, $2 || gen_random_uuid(), now() + interval '1 hour') RETURNING key";

/// Stores the row of a blob whose object was reserved and stored, in place of $5, an object that is
/// lost. Another node may have stored the blob meanwhile: then its object stays, and this one is
/// removed.
const OBJECT_BLOB_QUERY: &str = "
    WITH reserved AS (
      SELECT 1 FROM object_removal WHERE tenant = $1 AND key = $4 AND at > now() FOR UPDATE),
    stored AS (
      INSERT INTO blob (tenant, name, size, object) SELECT $1, $2, $3, $4 FROM reserved
      ON CONFLICT (tenant, name) DO UPDATE
      SET size = excluded.size, object = excluded.object, at = now() WHERE blob.object = $5
      RETURNING 1)
    DELETE FROM object_removal USING stored WHERE tenant = $1 AND key = $4";

/// Removes blobs that no session uses and that were stored more than an hour ago.
const PRUNE_QUERY: &str = "
    WITH unused AS (
      SELECT blob.name FROM blob
      WHERE blob.tenant = $1 AND blob.at < now() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM blob_use
          WHERE blob_use.tenant = $1 AND blob_use.blob = blob.name)
      LIMIT $2 FOR UPDATE SKIP LOCKED),
    removed AS (
      DELETE FROM blob USING unused
      WHERE blob.tenant = $1 AND blob.name = unused.name RETURNING blob.object),
    removal AS (
      INSERT INTO object_removal (tenant, key, at)
      SELECT $1, object, now() FROM removed WHERE object IS NOT NULL ON CONFLICT DO NOTHING)
    SELECT 1 FROM removed";

/// The blobs of a page of facts.
#[derive(Default)]
pub(super) struct LoadedBlobs {
    /// The bytes by name; those that are damaged are missing.
    blobs: BTreeMap<String, Vec<u8>>,
}

impl FactBlobs for LoadedBlobs {
    fn blob_bytes(&self, blob: &BlobRef) -> Option<usize> {
        self.blobs.get(blob.as_str()).map(Vec::len)
    }

    fn read_blob(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        self.blobs.get(blob.as_str()).cloned()
    }
}

impl PostgresLog {
    pub(super) async fn store_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.store_bytes(bytes, "on").await
    }

    /// Stores bytes in the object store if they are large, else in the database.
    async fn store_bytes(
        &self,
        bytes: Vec<u8>,
        sync_mode: &'static str,
    ) -> Result<BlobRef, StorageError> {
        match &self.node.state.database.objects {
            Some(objects) if bytes.len() >= MIN_OBJECT_BYTES => {
                self.store_object(objects, bytes).await
            }
            _ => self.store_row(bytes, sync_mode).await,
        }
    }

    async fn store_object(
        &self,
        objects: &ObjectStorage,
        bytes: Vec<u8>,
    ) -> Result<BlobRef, StorageError> {
        let database = &self.node.state.database;
        let size = bytes.len() as i64;
        let (blob, body) = compress(bytes).await?;
        let refresh = || sqlx::query(REFRESH_QUERY).bind(self.tenant.0).bind(blob.as_str());
        let rows = database.fetch_with_retries(refresh).await?;
        let stored = rows.first().map(|row| row.try_get::<Option<String>, _>(0)).transpose()?;
        let lost = match stored {
            Some(None) => return Ok(blob),
            Some(Some(key)) if objects.exists(&key).await? => return Ok(blob),
            Some(lost) => lost,
            None => None,
        };
        let prefix = objects.key_prefix(self.tenant.0, &blob);
        let reserve = || sqlx::query(RESERVE_QUERY).bind(self.tenant.0).bind(&prefix);
        let rows = database.fetch_with_retries(reserve).await?;
        let key: String = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
        objects.put(&key, body).await?;
        let store = || {
            sqlx::query(OBJECT_BLOB_QUERY)
                .bind(self.tenant.0)
                .bind(blob.as_str())
                .bind(size)
                .bind(&key)
                .bind(&lost)
        };
        database.fetch_with_retries(store).await?;
        match database.fetch_with_retries(refresh).await?.is_empty() {
            true => Err(StorageError::BlobLost { blob }),
            false => Ok(blob),
        }
    }

    async fn store_row(
        &self,
        bytes: Vec<u8>,
        sync_mode: &'static str,
    ) -> Result<BlobRef, StorageError> {
        let size = bytes.len() as i64;
        let (blob, body) = compress(bytes).await?;
        // Storing it again repairs it, and makes it young. One that is young and intact is not written
        // again.
        let query = || {
            sqlx::query(
                "INSERT INTO blob (tenant, name, size, body) SELECT $1, $2, $3, $4
                 WHERE set_config('synchronous_commit', $5, true) IS NOT NULL
                 ON CONFLICT (tenant, name) DO UPDATE
                 SET size = excluded.size, body = excluded.body, at = now()
                 WHERE blob.at < now() - interval '10 minutes'
                   OR blob.body IS DISTINCT FROM excluded.body",
            )
            .bind(self.tenant.0)
            .bind(blob.as_str())
            .bind(size)
            .bind(body.as_slice())
            .bind(sync_mode)
        };
        self.node.state.database.fetch_with_retries(query).await?;
        Ok(blob)
    }

    /// Stores the contents of a file as a blob: they are kept as long as the session that names them,
    /// and every node can undo the change. The fact that names it is written later, so it is not
    /// flushed for itself.
    pub(super) async fn store_copy(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.store_bytes(bytes, "off").await.map_err(|error| match error {
            StorageError::BlobTooLarge { size, largest } => {
                StorageError::CopyTooLarge { size, largest }
            }
            error => error,
        })
    }

    pub(super) async fn load_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError> {
        self.load_blob(copy).await.map_err(|error| match error {
            StorageError::BlobLost { blob } => StorageError::CopyGone { copy: blob },
            error => error,
        })
    }

    pub(super) async fn find_blob_by_prefix(
        &self,
        prefix: &str,
    ) -> Result<Option<BlobRef>, StorageError> {
        let is_hex = prefix.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || prefix.len() < 2 {
            return Ok(None);
        }
        let query = || {
            sqlx::query("SELECT name FROM blob WHERE tenant = $1 AND name LIKE $2 || '%' LIMIT 2")
                .bind(self.tenant.0)
                .bind(prefix)
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        let [row] = rows.as_slice() else { return Ok(None) };
        Ok(BlobRef::parse(row.try_get(0)?))
    }

    pub(super) async fn load_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, StorageError> {
        let mut loaded = self.load_blobs(vec![blob.as_str().to_owned()]).await?;
        let bytes = loaded.blobs.remove(blob.as_str());
        bytes.ok_or_else(|| StorageError::BlobLost { blob: blob.clone() })
    }

    /// Loads blobs, without those that are missing or damaged.
    pub(super) async fn load_blobs(&self, names: Vec<String>) -> Result<LoadedBlobs, StorageError> {
        if names.is_empty() {
            return Ok(LoadedBlobs::default());
        }
        let query = || {
            sqlx::query(
                "SELECT name, size, body, object FROM blob
                 WHERE tenant = $1 AND name = ANY ($2::text[])",
            )
            .bind(self.tenant.0)
            .bind(&names)
        };
        let mut loaded = LoadedBlobs::default();
        for row in self.node.state.database.fetch_with_retries(query).await? {
            let (name, size): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            let bytes = match row.try_get::<Option<Vec<u8>>, _>(2)? {
                Some(body) => decompress(body, (&name, size)).await?,
                None => self.load_object(row.try_get(3)?, (&name, size)).await?,
            };
            loaded.blobs.extend(bytes.map(|bytes| (name, bytes)));
        }
        Ok(loaded)
    }

    /// Loads a blob from the object store; none if it is missing or damaged.
    async fn load_object(
        &self,
        key: Option<String>,
        (name, size): (&str, i64),
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let (Some(key), Some(blob)) = (key, BlobRef::parse(name)) else { return Ok(None) };
        let Some(objects) = &self.node.state.database.objects else {
            return Err(StorageError::NoObjectStore { blob });
        };
        for _ in 0..MAX_READS {
            let Some(body) = objects.get(&key, MAX_OBJECT_BYTES).await? else { return Ok(None) };
            let bytes = decompress(body, (name, size)).await?;
            if bytes.is_some() {
                return Ok(bytes);
            }
            tracing::warn!(%key, "the object store returned other bytes than were stored");
        }
        Ok(None)
    }

    /// Removes blobs that no session uses and that were stored more than an hour ago.
    pub(super) async fn prune_blobs(&self) -> Result<(), StorageError> {
        loop {
            let query = || sqlx::query(PRUNE_QUERY).bind(self.tenant.0).bind(PRUNE_BATCH_ROWS);
            let removed = self.node.state.database.fetch_with_retries(query).await?.len();
            if (removed as i64) < PRUNE_BATCH_ROWS {
                return self.remove_objects().await;
            }
        }
    }

    /// Removes the objects that no blob needs.
    async fn remove_objects(&self) -> Result<(), StorageError> {
        let database = &self.node.state.database;
        let Some(objects) = &database.objects else { return Ok(()) };
        loop {
            let query = || {
                sqlx::query(
                    "SELECT key FROM object_removal WHERE tenant = $1 AND at <= now() LIMIT $2",
                )
                .bind(self.tenant.0)
                .bind(PRUNE_BATCH_ROWS)
            };
            let rows = database.fetch_with_retries(query).await?;
            let keys: Vec<String> =
                rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            for key in &keys {
                objects.remove(key).await?;
            }
            let query = || {
                sqlx::query("DELETE FROM object_removal WHERE tenant = $1 AND key = ANY ($2)")
                    .bind(self.tenant.0)
                    .bind(&keys)
            };
            database.fetch_with_retries(query).await?;
            if (keys.len() as i64) < PRUNE_BATCH_ROWS {
                return Ok(());
            }
        }
    }
}

#[async_trait]
impl FactStore for PostgresLog {
    async fn store_fact(&self, json: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.store_row(json, "on").await
    }
}

/// Compresses the bytes of a blob.
async fn compress(bytes: Vec<u8>) -> Result<(BlobRef, Vec<u8>), StorageError> {
    let size = bytes.len();
    if size > MAX_BLOB_BYTES {
        return Err(StorageError::BlobTooLarge { size, largest: MAX_BLOB_BYTES });
    }
    let compress = move || {
        let blob = BlobRef::for_bytes(&bytes);
        zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).map(|body| (blob, body))
    };
    run_blocking(compress).await?.map_err(StorageError::from_io("could not compress an output"))
}

/// Returns the bytes of a blob; none if they are damaged.
async fn decompress(
    body: Vec<u8>,
    (name, size): (&str, i64),
) -> Result<Option<Vec<u8>>, StorageError> {
    let name = name.to_owned();
    let decompress = move || {
        let size = usize::try_from(size).ok().filter(|size| *size <= MAX_BLOB_BYTES)?;
        let bytes = zstd::bulk::decompress(&body, size).ok()?;
        (BlobRef::for_bytes(&bytes).as_str() == name).then_some(bytes)
    };
    run_blocking(decompress).await
}

/// Runs a job on a thread that may block.
pub(super) async fn run_blocking<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StorageError> {
    let result = tokio::task::spawn_blocking(job).await;
    result
        .map_err(std::io::Error::other)
        .map_err(StorageError::from_io("work on stored facts was interrupted"))
}
