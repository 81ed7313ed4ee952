//! A log with somebody in front of its writes, who hears of each and may let it fail. Tests put
//! one before the real log, to count, to stop at a write, or to be a disk that is full.

use crate::{Claim, Error, Log};
use async_trait::async_trait;
use std::sync::Arc;
use windlass_protocol::{BlobRef, Fact, Millis, Record, Seq, SessionId, SessionSummary};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Facts of a session.
    Facts(SessionId),
    /// A blob.
    Blob,
    /// A copy of a file.
    Copy,
}

/// Whoever stands in front.
pub trait Tap: Send + Sync {
    /// Before a write. If this fails, nothing is written.
    fn before(&self, _write: Writing) -> Result<(), Error> {
        Ok(())
    }

    /// After a write that did not fail. If this fails, nobody hears that it was written.
    fn after(&self, _write: Writing) -> Result<(), Error> {
        Ok(())
    }
}

/// The log behind.
pub struct Tapped<T> {
    log: Arc<dyn Log>,
    tap: T,
}

impl<T: Tap> Tapped<T> {
    /// Puts somebody in front of a log.
    pub fn new(log: Arc<dyn Log>, tap: T) -> Tapped<T> {
        Tapped { log, tap }
    }

    /// Whoever stands in front.
    pub fn tap(&self) -> &T {
        &self.tap
    }

    async fn write<W>(
        &self,
        write: Writing,
        written: impl Future<Output = Result<W, Error>> + Send,
    ) -> Result<W, Error> {
        self.tap.before(write)?;
        let written = written.await?;
        self.tap.after(write)?;
        Ok(written)
    }
}

#[async_trait]
impl<T: Tap> Log for Tapped<T> {
    async fn claim(&self, session: SessionId) -> Result<Claim, Error> {
        self.log.claim(session).await
    }

    async fn append(
        &self,
        claim: &Claim,
        expected: Seq,
        at: Millis,
        facts: &[Fact],
    ) -> Result<Seq, Error> {
        let appended = self.log.append(claim, expected, at, facts);
        self.write(Writing::Facts(claim.session), appended).await
    }

    async fn restore(&self, claim: &Claim, records: &[Record]) -> Result<Seq, Error> {
        self.log.restore(claim, records).await
    }

    async fn read_some(
        &self,
        session: SessionId,
        after: Seq,
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        self.log.read_some(session, after, most).await
    }

    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        self.log.search(session, words, most).await
    }

    async fn landmarks(&self, session: SessionId, most: usize) -> Result<Vec<Record>, Error> {
        self.log.landmarks(session, most).await
    }

    async fn list(&self) -> Result<Vec<SessionSummary>, Error> {
        self.log.list().await
    }

    async fn delete(&self, session: SessionId) -> Result<(), Error> {
        self.log.delete(session).await
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, Error> {
        self.write(Writing::Blob, self.log.put_blob(bytes)).await
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        self.log.get_blob(blob).await
    }

    async fn keep_copy(&self, bytes: Vec<u8>, near: Option<&BlobRef>) -> Result<BlobRef, Error> {
        self.write(Writing::Copy, self.log.keep_copy(bytes, near)).await
    }

    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, Error> {
        self.log.get_copy(copy).await
    }
}
