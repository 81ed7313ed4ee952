//! Fault injection for tests: a log with a hook around its writes. Tests wrap the real log to count
//! writes, to stop at one, or to simulate a full disk.

use crate::{Log, PageLimit, ReleaseState, SessionClaim, SessionFilter, StorageError};
use async_trait::async_trait;
use std::sync::Arc;
use windlass_protocol::{
    BlobRef, Fact, FactRecord, LogPosition, LogSeq, SessionId, SessionSummary, UnixMillis,
};

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWriteKind {
    /// Facts appended to a session.
    Facts(SessionId),
    Blob,
    /// A copy of a file.
    Copy,
}

/// A hook around the writes of a log.
pub trait LogWriteHook: Send + Sync {
    /// Runs before a write. If it fails, nothing is written.
    fn before_write(&self, _write: LogWriteKind) -> Result<(), StorageError> {
        Ok(())
    }

    /// Runs after a successful write. If it fails, the caller gets the error although the data is
    /// written.
    fn after_write(&self, _write: LogWriteKind) -> Result<(), StorageError> {
        Ok(())
    }

    /// Runs before a session is released.
    fn before_release(&self, _session: SessionId, _state: ReleaseState) {}
}

/// A `Log` that calls a `LogWriteHook` around its writes.
pub struct HookedLog<T> {
    log: Arc<dyn Log>,
    hook: T,
}

impl<T: LogWriteHook> HookedLog<T> {
    /// Wraps a log with a hook.
    pub fn new(log: Arc<dyn Log>, hook: T) -> HookedLog<T> {
        HookedLog { log, hook }
    }

    /// Returns the hook.
    pub fn hook(&self) -> &T {
        &self.hook
    }

    async fn write_with_hook<W>(
        &self,
        write: LogWriteKind,
        operation: impl Future<Output = Result<W, StorageError>> + Send,
    ) -> Result<W, StorageError> {
        self.hook.before_write(write)?;
        let output = operation.await?;
        self.hook.after_write(write)?;
        Ok(output)
    }
}

#[async_trait]
impl<T: LogWriteHook> Log for HookedLog<T> {
    async fn claim(&self, session: SessionId) -> Result<SessionClaim, StorageError> {
        self.log.claim(session).await
    }

    async fn release(&self, claim: SessionClaim, state: ReleaseState) -> Result<(), StorageError> {
        self.hook.before_release(claim.session, state);
        self.log.release(claim, state).await
    }

    async fn append(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        at: UnixMillis,
        facts: &[Fact],
    ) -> Result<LogSeq, StorageError> {
        let append = self.log.append(claim, expected, at, facts);
        self.write_with_hook(LogWriteKind::Facts(claim.session), append).await
    }

    async fn append_records(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        records: &[FactRecord],
    ) -> Result<LogSeq, StorageError> {
        let append = self.log.append_records(claim, expected, records);
        self.write_with_hook(LogWriteKind::Facts(claim.session), append).await
    }

    async fn read_page(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: PageLimit,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.log.read_page(session, after, limit).await
    }

    async fn resume_position(
        &self,
        session: SessionId,
        position: LogPosition,
    ) -> Result<LogPosition, StorageError> {
        self.log.resume_position(session, position).await
    }

    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.log.search(session, words, limit).await
    }

    async fn read_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.log.read_turn_facts(session, limit).await
    }

    async fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionSummary>, StorageError> {
        self.log.list(filter).await
    }

    async fn delete(&self, session: SessionId) -> Result<(), StorageError> {
        self.log.delete(session).await
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.write_with_hook(LogWriteKind::Blob, self.log.put_blob(bytes)).await
    }

    async fn find_blob(&self, prefix: &str) -> Result<Option<BlobRef>, StorageError> {
        self.log.find_blob(prefix).await
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, StorageError> {
        self.log.get_blob(blob).await
    }

    async fn put_copy(
        &self,
        bytes: Vec<u8>,
        similar: Option<&BlobRef>,
    ) -> Result<BlobRef, StorageError> {
        self.write_with_hook(LogWriteKind::Copy, self.log.put_copy(bytes, similar)).await
    }

    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError> {
        self.log.get_copy(copy).await
    }
}
