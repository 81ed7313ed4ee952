//! The event log and its blobs: what a session remembers, and the only thing it trusts.
//!
//! It stores facts and gives them back; what they mean is `protocol`'s business. It keeps two
//! invariants: a log has no gaps and one writer (a claim carries an epoch, and an append under an
//! older epoch is refused), and a fact that needs a barrier is on the disk when `append` returns.
//! Start reading at [`Log`]; [`sqlite`] is the backend of one machine.

mod blob;
mod copies;
mod error;
mod pack;
mod page;
pub mod sqlite;
mod tapped;

pub use error::Error;
pub use sqlite::Sqlite;
pub use tapped::{Tap, Tapped, Writing};

use async_trait::async_trait;
use std::any::Any;
use windlass_protocol::{BlobRef, Fact, Millis, Record, Seq, SessionId, SessionSummary};

/// A place that keeps sessions. Made so that a database shared by many machines fits as well as a
/// file on a laptop: a claim can be a row with a lease, an append one guarded statement.
#[async_trait]
pub trait Log: Send + Sync {
    /// Becomes the one writer of a session, new or old. Whoever wrote before is fenced out.
    async fn claim(&self, session: SessionId) -> Result<Claim, Error>;

    /// Adds facts behind position `expected`, all or none, and returns the new last position.
    /// If one of them needs a barrier, all are on the disk when this returns.
    async fn append(
        &self,
        claim: &Claim,
        expected: Seq,
        at: Millis,
        facts: &[Fact],
    ) -> Result<Seq, Error>;

    /// Writes a log that was written before, elsewhere or under another name, all of it or nothing,
    /// each fact with its own time. The claimed session must have no facts. The records' own
    /// session and positions are not looked at: their order counts.
    async fn restore(&self, claim: &Claim, records: &[Record]) -> Result<Seq, Error>;

    /// The facts after a position, in order, at most [`PAGE`] of them.
    async fn read(&self, session: SessionId, after: Seq) -> Result<Vec<Record>, Error> {
        self.read_some(session, after, PAGE).await
    }

    /// The same, and at most so many.
    async fn read_some(
        &self,
        session: SessionId,
        after: Seq,
        most: usize,
    ) -> Result<Vec<Record>, Error>;

    /// The last facts that say what was asked and how turns follow each other (prompts, beginnings and
    /// ends of turns, steps back), in order, at most so many. However long the log is, it costs no
    /// more than what it gives.
    async fn landmarks(&self, session: SessionId, most: usize) -> Result<Vec<Record>, Error>;

    /// The first facts of a session whose texts may hold all these words, at most `most`. Whoever
    /// asks looks closer: what is found may hold them elsewhere than in its text.
    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        most: usize,
    ) -> Result<Vec<Record>, Error>;

    /// All sessions that have facts, the one changed last first.
    async fn list(&self) -> Result<Vec<SessionSummary>, Error>;

    /// Removes a session, those that it began, and whatever only they needed.
    async fn delete(&self, session: SessionId) -> Result<(), Error>;

    /// Keeps bytes outside the log. They are on the disk when this returns.
    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, Error>;

    /// Gives them back, checked against their name.
    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, Error>;

    /// Keeps what a file held, so that a change to it can be taken back. It costs least when a
    /// similar copy is `near`, such as what the file held before. It survives the process when
    /// this returns, but older copies make room for newer ones.
    async fn keep_copy(&self, bytes: Vec<u8>, near: Option<&BlobRef>) -> Result<BlobRef, Error>;

    /// Gives a copy back, checked against its name.
    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, Error>;
}

/// How many facts one [`Log::read`] gives at most.
pub const PAGE: usize = 1_000;

/// The right to write to a session, until somebody else claims it.
pub struct Claim {
    /// The session.
    pub session: SessionId,
    /// Grows with every claim; the highest one may write.
    pub epoch: u64,
    /// The last position when it was claimed.
    pub head: Seq,
    /// What the backend holds on to for as long as the claim lives.
    _hold: Option<Box<dyn Any + Send + Sync>>,
}

/// The whole log of a session, page by page.
pub async fn read_all(log: &dyn Log, session: SessionId, after: Seq) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    let mut last = after;
    loop {
        let page = log.read(session, last).await?;
        let Some(end) = page.last() else { return Ok(records) };
        last = end.seq;
        let more = page.len() == PAGE;
        records.extend(page);
        if !more {
            return Ok(records);
        }
    }
}
