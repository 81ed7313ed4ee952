//! The event log of sessions and its blobs: the durable memory of a session and its only source of
//! truth.
//!
//! The crate stores facts and returns them; `protocol` defines their meaning. It keeps two
//! invariants: a log has no gaps and one writer (a claim carries an epoch, and an append under an
//! older epoch is refused), and a fact that needs a disk sync is on the disk when `append` returns.
//! Start reading at [`Log`]; [`sqlite`] is the backend for one machine, [`postgres`] the one for a
//! fleet of nodes.

mod blob;
mod data_folder;
mod database_open;
mod delta_compression;
mod error;
mod fact_queries;
mod fact_rows;
mod fault_injection;
mod file_copies;
mod file_lock;
mod head_file;
mod like_pattern;
pub mod postgres;
mod repair;
mod retention;
mod session_rows;
pub mod sqlite;
mod statement_batch;
mod stored_facts;
mod usage_statistics;

pub use error::StorageError;
pub use fault_injection::{HookedLog, LogWriteHook, LogWriteKind};
pub use postgres::PostgresLog;
pub use repair::{RepairReport, repair};
pub use sqlite::SqliteLog;
pub use stored_facts::LogDamage;

use async_trait::async_trait;
use std::any::Any;
use std::fs::File;
use std::path::MAIN_SEPARATOR;
use uuid::Uuid;
use windlass_protocol::{
    BlobRef, Fact, FactRecord, LogPosition, LogSeq, SessionId, SessionSummary, UnixMillis,
};

/// Storage for the logs of sessions. Its design fits a database shared by many machines as well as
/// a file on a laptop: a claim can be a row with a lease, an append one guarded statement.
#[async_trait]
pub trait Log: Send + Sync {
    /// Makes the caller the only writer of a session, new or existing. The previous writer is
    /// fenced out. Fails with [`StorageError::Busy`] if the session is open elsewhere.
    async fn claim(&self, session: SessionId) -> Result<SessionClaim, StorageError>;

    /// Gives up a claim, so that another process can claim the session at once. A claim that is
    /// dropped instead is given up too, but with a fleet that may take seconds.
    async fn release(&self, claim: SessionClaim, _state: ReleaseState) -> Result<(), StorageError> {
        drop(claim);
        Ok(())
    }

    /// Appends facts after position `expected`, all or none, and returns the new last position. If
    /// one of them needs a disk sync, all are on the disk when this returns.
    async fn append(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        at: UnixMillis,
        facts: &[Fact],
    ) -> Result<LogSeq, StorageError>;

    /// Like [`Log::append`], with a time for each fact. The session and positions in the records are
    /// ignored: only their order counts.
    async fn append_records(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        records: &[FactRecord],
    ) -> Result<LogSeq, StorageError>;

    /// Returns the facts after a position, in order and without gaps, at most [`MAX_PAGE_FACTS`]. A
    /// fact that is missing or damaged is replaced by `Fact::FactsLost`.
    async fn read(
        &self,
        session: SessionId,
        after: LogSeq,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.read_page(session, after, PageLimit::facts(MAX_PAGE_FACTS)).await
    }

    /// Like `read`, with a smaller limit. If there are facts, it returns at least one.
    async fn read_page(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: PageLimit,
    ) -> Result<Vec<FactRecord>, StorageError>;

    /// Returns the last position up to `position` at which the log still has the fact that a reader
    /// saw there: `position` itself, or an earlier one if the end of the log was lost since.
    async fn resume_position(
        &self,
        session: SessionId,
        position: LogPosition,
    ) -> Result<LogPosition, StorageError>;

    /// Returns the last facts about prompts and the sequence of turns (prompts, starts and ends of
    /// turns, rewinds), in order, at most `limit`. The cost depends only on the number of facts
    /// returned, not on the length of the log.
    async fn read_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError>;

    /// Returns the first facts of a session whose text may contain all these words, at most
    /// `limit`. The caller must check the results: a match may lie outside the text of a fact.
    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError>;

    /// Lists sessions that have facts, the most recently used first.
    async fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionSummary>, StorageError>;

    /// Deletes a session, its subagent sessions, and all data that only they use.
    async fn delete(&self, session: SessionId) -> Result<(), StorageError>;

    /// Stores bytes outside the log and returns their `BlobRef`. They are on the disk when this
    /// returns.
    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError>;

    /// Finds the blob whose reference begins with these hex digits; `None` if there is no such blob
    /// or more than one.
    async fn find_blob(&self, prefix: &str) -> Result<Option<BlobRef>, StorageError>;

    /// Reads a blob and verifies it against its `BlobRef`.
    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, StorageError>;

    /// Stores the contents of a file, so that a change to it can be undone. Given a `similar` copy,
    /// such as the previous contents, it stores only the difference. The copy survives a crash of
    /// the process when this returns, but older copies are removed in favor of newer ones.
    async fn put_copy(
        &self,
        bytes: Vec<u8>,
        similar: Option<&BlobRef>,
    ) -> Result<BlobRef, StorageError>;

    /// Reads a copy and verifies it against its `BlobRef`.
    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError>;
}

/// The maximum number of facts that one [`Log::read`] returns.
pub const MAX_PAGE_FACTS: usize = 1_000;

/// The maximum size of a page of facts.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    pub facts: usize,
    /// Bytes of the facts as JSON.
    pub bytes: usize,
}

impl PageLimit {
    /// Returns a limit for the number of facts only.
    pub fn facts(facts: usize) -> PageLimit {
        PageLimit { facts, bytes: usize::MAX }
    }
}

/// Selects sessions for [`Log::list`]. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only sessions that work in this folder.
    pub workspace: Option<String>,
    /// With `workspace`: also sessions that work in a subfolder of this one.
    pub checkouts: Option<String>,
    /// True to leave out the sessions of subagents.
    pub is_top_level: bool,
    /// Only sessions that follow this one in the list, for the next page.
    pub after: Option<SessionId>,
    /// Maximum number of sessions.
    pub limit: Option<usize>,
}

impl SessionFilter {
    /// Returns the first characters of the folders in `checkouts`.
    pub(crate) fn checkouts_prefix(&self) -> Option<String> {
        self.checkouts.as_ref().map(|folder| format!("{folder}{MAIN_SEPARATOR}"))
    }
}

/// The state in which a released session waits for its next claim. It matters only in a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseState {
    /// Nothing is under way. The session is claimed again when a user opens it or sends an
    /// operation.
    Idle,
    /// Work is under way that any node may go on with.
    Due,
    /// A question to the user is open. The session is claimed again when its answer arrives.
    Waiting,
    /// Work is under way, but this process could not go on with it. Nodes try again later, and after
    /// several attempts only when a user opens the session. A claim that is dropped without a
    /// release counts as this if there was work to do when the session was claimed.
    Failed,
}

/// The node of a fleet that has a session open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHolder {
    pub node: Uuid,
    /// The address at which other nodes reach it; empty if they do not.
    pub address: String,
}

/// The right to write to a session, until another process claims it.
pub struct SessionClaim {
    pub session: SessionId,
    /// Grows with every claim; only the highest epoch may write.
    pub epoch: u64,
    /// The last `LogSeq` at the time of the claim.
    pub head: LogSeq,
    /// The number of facts at the end of the log that were written and are gone.
    pub lost_facts: u64,
    /// A resource that the backend keeps as long as the claim lives, such as a lock file.
    guard: Option<Box<dyn Any + Send + Sync>>,
}

impl SessionClaim {
    /// Returns the lock file of the session, if the backend uses one.
    fn lock_file(&self) -> Option<&File> {
        self.guard.as_ref()?.downcast_ref()
    }
}

/// Reads all facts of a session after a position, page by page.
pub async fn read_all(
    log: &dyn Log,
    session: SessionId,
    after: LogSeq,
) -> Result<Vec<FactRecord>, StorageError> {
    let mut records = Vec::new();
    let mut last = after;
    loop {
        let page = log.read(session, last).await?;
        let Some(end) = page.last() else { return Ok(records) };
        last = end.seq;
        let has_more = page.len() == MAX_PAGE_FACTS;
        records.extend(page);
        if !has_more {
            return Ok(records);
        }
    }
}
