//! PostgreSQL backend for a fleet: the log of all tenants in one database, written by many nodes.
//!
//! A session is written by the node that its row names, under the epoch that its row has. Both are
//! conditions of the one statement that appends facts, so a writer that was replaced writes nothing,
//! however late it comes. A commit is flushed only if one of its facts needs a disk sync.
//!
//! Statements depend on no state of a connection, so PgBouncer in transaction mode may be in between
//! (`database`). Start reading at [`PostgresDatabase::join`] and `append`.

mod append;
mod audit;
mod blobs;
mod claim_registry;
mod claims;
mod connection_errors;
mod connection_pool;
mod counters;
mod database;
mod delete;
mod fleet_status;
mod migrations;
mod nodes;
mod object_storage;
mod provider_keys;
mod quotas;
mod read;
mod team;

pub use audit::UserAnswer;
pub use claim_registry::TenantId;
pub use claims::{DueSession, InboxOp, NodeEndpoint, SessionFolder};
pub use counters::{NodeCounters, NodeCounts, TIME_BOUNDS, TimeCounts};
pub use database::{PoolState, PostgresDatabase};
pub use fleet_status::{Backlog, FleetStatus, NodeStatus, Replication, SessionCounts};
pub use nodes::{NodeRegistration, PostgresNode, SweepReport};
pub use object_storage::ObjectStorage;
pub use provider_keys::ProviderKeyRow;
pub use quotas::{OtherUsage, TenantLimits, UsageCounts, UtcDay};
pub use team::{
    NewUserToken, TeamChange, TenantCounts, TenantRow, UserRow, UserTokenRow, ValidToken,
};

use crate::{Log, PageLimit, ReleaseState, SessionClaim, SessionFilter, StorageError};
use async_trait::async_trait;
use windlass_protocol::{
    BlobRef, Fact, FactRecord, LogPosition, LogSeq, SessionId, SessionSummary, UnixMillis,
};

/// The log of one tenant, written by one node. There is no way to read another tenant through it.
pub struct PostgresLog {
    node: PostgresNode,
    tenant: TenantId,
}

impl PostgresNode {
    /// Returns the log of a tenant.
    pub fn log(&self, tenant: TenantId) -> PostgresLog {
        PostgresLog { node: self.clone(), tenant }
    }
}

#[async_trait]
impl Log for PostgresLog {
    async fn claim(&self, session: SessionId) -> Result<SessionClaim, StorageError> {
        self.claim_session(session).await
    }

    async fn release(&self, claim: SessionClaim, state: ReleaseState) -> Result<(), StorageError> {
        self.release_session(claim, state).await
    }

    async fn append(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        at: UnixMillis,
        facts: &[Fact],
    ) -> Result<LogSeq, StorageError> {
        self.append_facts(claim, expected, facts.iter().map(|fact| (at, None, fact))).await
    }

    async fn append_records(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        records: &[FactRecord],
    ) -> Result<LogSeq, StorageError> {
        let facts = records.iter().map(|record| (record.at, record.origin.as_ref(), &record.fact));
        self.append_facts(claim, expected, facts).await
    }

    async fn read_page(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: PageLimit,
    ) -> Result<Vec<FactRecord>, StorageError> {
        Ok(self.read_fact_page(session, after, limit).await?.records)
    }

    async fn resume_position(
        &self,
        session: SessionId,
        position: LogPosition,
    ) -> Result<LogPosition, StorageError> {
        self.find_resume_position(session, position).await
    }

    async fn read_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.last_turn_facts(session, limit).await
    }

    async fn search(
        &self,
        session: SessionId,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        self.search_facts(session, words, limit).await
    }

    async fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionSummary>, StorageError> {
        self.list_sessions(filter).await
    }

    async fn delete(&self, session: SessionId) -> Result<(), StorageError> {
        self.delete_session(session).await
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, StorageError> {
        self.store_blob(bytes).await
    }

    async fn find_blob(&self, prefix: &str) -> Result<Option<BlobRef>, StorageError> {
        self.find_blob_by_prefix(prefix).await
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, StorageError> {
        self.load_blob(blob).await
    }

    async fn put_copy(
        &self,
        bytes: Vec<u8>,
        _similar: Option<&BlobRef>,
    ) -> Result<BlobRef, StorageError> {
        self.store_copy(bytes).await
    }

    async fn get_copy(&self, copy: &BlobRef) -> Result<Vec<u8>, StorageError> {
        self.load_copy(copy).await
    }
}
