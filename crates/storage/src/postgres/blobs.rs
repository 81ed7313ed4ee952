//! Blobs of a tenant: bytes in rows named by their SHA-256, compressed.
//!
//! A blob is stored before the fact that names it. Blobs that no session uses are removed when
//! sessions are deleted, once they are old enough that no append can be about to name them.

use super::PostgresLog;
use crate::StorageError;
use crate::stored_facts::FactBlobs;
use sqlx::Row;
use std::collections::BTreeMap;
use windlass_protocol::BlobRef;

/// The largest blob. PostgreSQL sends a value in one message, and keeps it in memory as a whole.
const MAX_BLOB_BYTES: usize = 64 << 20;

/// The level of zstd at which compressing costs less than sending.
const COMPRESSION_LEVEL: i32 = 1;

/// Blobs that are removed with one statement.
const PRUNE_BATCH_ROWS: i64 = 500;

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

    async fn store_bytes(
        &self,
        bytes: Vec<u8>,
        sync_mode: &'static str,
    ) -> Result<BlobRef, StorageError> {
        let size = bytes.len();
        if size > MAX_BLOB_BYTES {
            return Err(StorageError::BlobTooLarge { size, largest: MAX_BLOB_BYTES });
        }
        let compress = move || {
            let blob = BlobRef::for_bytes(&bytes);
            zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).map(|body| (blob, body))
        };
        let (blob, body) = run_blocking(compress)
            .await?
            .map_err(StorageError::from_io("could not compress an output"))?;
        // Storing it again repairs it, and makes it young. One that is young and intact is not written
        // again.
        let query = || {
            sqlx::query(
                "INSERT INTO blob (tenant, name, size, body) SELECT $1, $2, $3, $4
                 WHERE set_config('synchronous_commit', $5, true) IS NOT NULL
                 ON CONFLICT (tenant, name) DO UPDATE
                 SET size = excluded.size, body = excluded.body, at = now()
                 WHERE blob.at < now() - interval '10 minutes' OR blob.body <> excluded.body",
            )
            .bind(self.tenant.0)
            .bind(blob.as_str())
            .bind(size as i64)
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
                "SELECT name, size, body FROM blob WHERE tenant = $1 AND name = ANY ($2::text[])",
            )
            .bind(self.tenant.0)
            .bind(&names)
        };
        let mut rows: Vec<(String, i64, Vec<u8>)> = Vec::new();
        for row in self.node.state.database.fetch_with_retries(query).await? {
            rows.push((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        }
        let unpack = move || {
            let blobs = rows.into_iter().filter_map(|(name, size, body)| {
                let size = usize::try_from(size).ok().filter(|size| *size <= MAX_BLOB_BYTES)?;
                let bytes = zstd::bulk::decompress(&body, size).ok()?;
                (BlobRef::for_bytes(&bytes).as_str() == name).then_some((name, bytes))
            });
            LoadedBlobs { blobs: blobs.collect() }
        };
        run_blocking(unpack).await
    }

    /// Removes blobs that no session uses and that were stored more than an hour ago.
    pub(super) async fn prune_blobs(&self) -> Result<(), StorageError> {
        loop {
            let query = || {
                sqlx::query(
                    "WITH unused AS (
                       SELECT blob.name FROM blob
                       WHERE blob.tenant = $1 AND blob.at < now() - interval '1 hour'
                         AND NOT EXISTS (SELECT 1 FROM blob_use
                           WHERE blob_use.tenant = $1 AND blob_use.blob = blob.name)
                       LIMIT $2 FOR UPDATE SKIP LOCKED)
                     DELETE FROM blob USING unused
                     WHERE blob.tenant = $1 AND blob.name = unused.name RETURNING 1",
                )
                .bind(self.tenant.0)
                .bind(PRUNE_BATCH_ROWS)
            };
            let removed = self.node.state.database.fetch_with_retries(query).await?.len();
            if (removed as i64) < PRUNE_BATCH_ROWS {
                return Ok(());
            }
        }
    }
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
