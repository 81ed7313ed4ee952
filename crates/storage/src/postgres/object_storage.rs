//! An object store such as S3, for the blobs that are large.
//!
//! The database has a row for each object, and is the only one to say which objects exist. An object
//! is never overwritten: its key has a random part.

use crate::StorageError;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
};
use std::sync::Arc;
use std::time::Duration;
use url::Url;
use uuid::Uuid;
use windlass_protocol::BlobRef;

/// Attempts after the first one.
const MAX_RETRIES: usize = 2;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A bucket, or a part of one. Clones are the same connections.
#[derive(Clone)]
pub struct ObjectStorage {
    store: Arc<dyn ObjectStore>,
    prefix: String,
}

impl ObjectStorage {
    /// Returns the objects below a URL such as `s3://bucket/prefix`. The address, region and
    /// credentials are in `variables`, which are named like those of AWS. A request may take
    /// `timeout`. No connection is made yet.
    pub fn open(
        url: &str,
        variables: &[(&str, String)],
        timeout: Duration,
    ) -> Result<ObjectStorage, StorageError> {
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: MAX_RETRIES,
            retry_timeout: timeout,
        };
        let mut builder = AmazonS3Builder::new();
        let mut client =
            ClientOptions::new().with_timeout(timeout).with_connect_timeout(CONNECT_TIMEOUT);
        for (name, value) in variables {
            match name.to_ascii_lowercase().parse().map_err(object_error)? {
                AmazonS3ConfigKey::Client(key) => client = client.with_config(key, value),
                key => builder = builder.with_config(key, value),
            }
        }
        let store = builder
            .with_url(url)
            .with_client_options(client)
            .with_retry(retry)
            .with_checksum_algorithm(Checksum::SHA256)
            .build()
            .map_err(object_error)?;
        let prefix = Url::parse(url).map(|url| url.path().trim_matches('/').to_owned());
        Ok(ObjectStorage { store: Arc::new(store), prefix: prefix.unwrap_or_default() })
    }

    /// Returns the beginning of the keys of objects with the bytes of a blob.
    pub(super) fn key_prefix(&self, tenant: Uuid, blob: &BlobRef) -> String {
        let name = blob.as_str();
        let folder = name.get(..2).unwrap_or_default();
        let key = format!("{tenant}/{folder}/{name}-");
        if self.prefix.is_empty() { key } else { format!("{}/{key}", self.prefix) }
    }

    pub(super) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        let stored = self.store.put(&Path::from(key), PutPayload::from(bytes)).await;
        stored.map(drop).map_err(object_error)
    }

    /// Returns an object of at most `max_bytes`; none if it is missing or larger.
    pub(super) async fn get(
        &self,
        key: &str,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let read = async {
            let object = self.store.get(&Path::from(key)).await?;
            match object.meta.size <= max_bytes as u64 {
                true => object.bytes().await.map(Some),
                false => Ok(None),
            }
        };
        match read.await {
            Ok(bytes) => Ok(bytes.map(Vec::from)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(object_error(error)),
        }
    }

    pub(super) async fn exists(&self, key: &str) -> Result<bool, StorageError> {
        match self.store.head(&Path::from(key)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(object_error(error)),
        }
    }

    /// Removes an object, if it exists.
    pub(super) async fn remove(&self, key: &str) -> Result<(), StorageError> {
        match self.store.delete(&Path::from(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(object_error(error)),
        }
    }
}

fn object_error(error: object_store::Error) -> StorageError {
    StorageError::ObjectStore { source: Box::new(error) }
}
