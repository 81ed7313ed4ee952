//! Nodes of a fleet: a process with a lease in the database. A node whose lease has run out may not
//! write any more; its sessions become due, and other nodes go on with them.
//!
//! Leases are measured by the clock of the database. A session names its node, and the node has the
//! lease, so that one statement renews the right to any number of sessions.

use super::claim_registry::{ClaimRegistry, DroppedClaim, TenantId};
use super::connection_errors::is_connection_lost;
use super::counters::NodeCounters;
use super::database::PostgresDatabase;
use crate::fact_rows::FACT_FORMAT_VERSION;
use crate::{ReleaseState, StorageError};
use sqlx::Row;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A session that was claimed so often without any progress ends the process that opens it.
const MAX_ATTEMPTS: i32 = 3;

/// The time in which the server executes a claim whose answer this process did not wait for: longer
/// than the server works on a statement.
const LATE_CLAIM_TIME: Duration = Duration::from_secs(15);

/// The data with which a process joins a fleet.
#[derive(Clone)]
pub struct NodeRegistration {
    /// The machine and its start, so that a process that ended there can be recognized.
    pub host: String,
    pub process_id: u32,
    /// The address at which other nodes reach this one; empty if they do not.
    pub address: String,
    /// The token with which other nodes send requests to this one.
    pub token: String,
    pub version: String,
    /// The number of sessions that the node runs at once.
    pub capacity: u32,
    /// The time for which a lease is valid after it was renewed.
    pub lease: Duration,
}

/// The result of [`PostgresNode::sweep`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Sessions that wait for a node now.
    pub due: u64,
    /// Sessions that were claimed several times without any progress. No node claims them as due.
    pub failed: u64,
}

/// A node of a fleet. Clones are the same node.
#[derive(Clone)]
pub struct PostgresNode {
    pub(super) state: Arc<NodeState>,
}

/// The shared state of a node.
pub(super) struct NodeState {
    pub(super) database: PostgresDatabase,
    pub(super) id: Uuid,
    pub(super) address: String,
    host: String,
    pub(super) registry: ClaimRegistry,
    pub(super) counters: NodeCounters,
    lease_seconds: f64,
}

impl PostgresDatabase {
    /// Returns the tenant with a name, and creates it if needed.
    pub async fn tenant(&self, name: &str) -> Result<TenantId, StorageError> {
        let query = || {
            sqlx::query(
                "INSERT INTO tenant (name) VALUES ($1)
                 ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id",
            )
            .bind(name)
        };
        let rows = self.fetch_with_retries(query).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(TenantId(row.try_get(0)?))
    }

    /// Adds this process to the fleet, with a new lease.
    pub async fn join(&self, node: NodeRegistration) -> Result<PostgresNode, StorageError> {
        self.check_schema().await?;
        let lease_seconds = node.lease.as_secs_f64();
        // An answer that is lost leaves a row that runs out.
        let query = || {
            sqlx::query(
                "INSERT INTO node
                   (host, process_id, address, version, fact_format, capacity, lease, token)
                 VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7), $8)
                 RETURNING id",
            )
            .bind(&node.host)
            .bind(i64::from(node.process_id))
            .bind(&node.address)
            .bind(&node.version)
            .bind(FACT_FORMAT_VERSION as i16)
            .bind(i32::try_from(node.capacity).unwrap_or(i32::MAX))
            .bind(lease_seconds)
            .bind(&node.token)
        };
        let rows = self.fetch_with_retries(query).await?;
        let id = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
        let (database, registry) = (self.clone(), ClaimRegistry::default());
        let (address, host) = (node.address, node.host);
        let counters = NodeCounters::default();
        let state = NodeState { database, id, address, host, registry, counters, lease_seconds };
        Ok(PostgresNode { state: Arc::new(state) })
    }
}

impl PostgresNode {
    /// Returns the id of the node.
    pub fn id(&self) -> Uuid {
        self.state.id
    }

    /// Returns the counters of the node.
    pub fn counters(&self) -> &NodeCounters {
        &self.state.counters
    }

    /// Renews the lease, in one attempt that takes at most two seconds. Returns true if the node was
    /// asked to leave. Fails with `LeaseLost` if the lease has run out: it cannot be renewed then,
    /// because other nodes may have the sessions.
    pub async fn renew_lease(&self) -> Result<bool, StorageError> {
        let query = sqlx::query(
            "UPDATE node SET lease = now() + make_interval(secs => $2)
             WHERE id = $1 AND lease > now() RETURNING is_draining",
        );
        let query = query.bind(self.state.id).bind(self.state.lease_seconds);
        let renewed = self.state.database.fetch_for_lease(query).await;
        let renewed = renewed.map_err(|error| match is_connection_lost(&error) {
            true => StorageError::Unavailable { seconds: 2, source: error },
            false => error.into(),
        })?;
        let row = renewed.first().ok_or(StorageError::LeaseLost)?;
        Ok(row.try_get(0)?)
    }

    /// Makes all statements of this process fail with `LeaseLost`, also those that wait for the
    /// database: nothing that depends on them goes on.
    pub fn abandon(&self) {
        self.state.database.abandon();
    }

    /// Stops this node from claiming due sessions.
    pub async fn drain(&self) -> Result<(), StorageError> {
        let query =
            || sqlx::query("UPDATE node SET is_draining = true WHERE id = $1").bind(self.state.id);
        self.state.database.fetch_with_retries(query).await?;
        Ok(())
    }

    /// Ends the lease, and makes the sessions that this node still has due.
    pub async fn leave(&self) -> Result<(), StorageError> {
        let query = || {
            sqlx::query(
                "WITH node_left AS (DELETE FROM node WHERE id = $1)
                 UPDATE session SET node = NULL, due = now(),
                   state = CASE WHEN parent IS NULL THEN 1 ELSE 0 END
                 WHERE node = $1",
            )
            .bind(self.state.id)
        };
        self.state.database.fetch_with_retries(query).await?;
        Ok(())
    }

    /// Ends the leases of nodes on this host whose process does not run any more, so that their
    /// sessions do not wait until the leases run out.
    pub async fn end_leases_of_ended_processes(
        &self,
        is_running: impl Fn(u32) -> bool,
    ) -> Result<(), StorageError> {
        let query = || {
            sqlx::query("SELECT id, process_id FROM node WHERE host = $1 AND id <> $2")
                .bind(&self.state.host)
                .bind(self.state.id)
        };
        let mut ended: Vec<Uuid> = Vec::new();
        for row in self.state.database.fetch_with_retries(query).await? {
            let process: i64 = row.try_get(1)?;
            if !u32::try_from(process).is_ok_and(&is_running) {
                ended.push(row.try_get(0)?);
            }
        }
        if ended.is_empty() {
            return Ok(());
        }
        let query = || {
            sqlx::query("UPDATE node SET lease = now() - interval '3 s' WHERE id = ANY($1)")
                .bind(&ended)
        };
        self.state.database.fetch_with_retries(query).await?;
        Ok(())
    }

    /// Removes nodes whose lease ran out more than two seconds ago, and makes their sessions due,
    /// and idle sessions with queued operations too. Releases the sessions whose claims this process
    /// has dropped. Every node does this from time to time.
    pub async fn sweep(&self) -> Result<SweepReport, StorageError> {
        self.state.release_dropped_claims().await?;
        let query = || {
            sqlx::query(
                "WITH dead AS (
                   DELETE FROM node WHERE lease < now() - interval '2 s' RETURNING id),
                 released AS (
                   UPDATE session SET node = NULL, due = now(),
                     state = CASE WHEN parent IS NOT NULL THEN 0 WHEN attempts >= $1 THEN 4
                       ELSE 1 END
                   FROM dead WHERE session.node = dead.id RETURNING state)
                 SELECT count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 4)
                 FROM released",
            )
            .bind(MAX_ATTEMPTS)
        };
        let rows = self.state.database.fetch_with_retries(query).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let (due, failed): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let query = || {
            // A release that waited for the row of the session may have missed an operation that
            // was queued meanwhile.
            sqlx::query(
                "UPDATE session SET state = 1, due = now()
                 WHERE node IS NULL AND state IN (0, 3) AND (tenant, id) IN (
                   SELECT tenant, session FROM inbox WHERE queued_at < now() - interval '1 s')
                 RETURNING 1",
            )
        };
        let queued = self.state.database.fetch_with_retries(query).await?.len();
        Ok(SweepReport { due: due as u64 + queued as u64, failed: failed as u64 })
    }
}

impl NodeState {
    /// Releases the sessions whose claims were dropped.
    pub(super) async fn release_dropped_claims(&self) -> Result<(), StorageError> {
        let mut batch = self.registry.take_dropped();
        let claims = batch.releasable();
        if claims.is_empty() {
            return Ok(());
        }
        self.release_claims(&claims).await?;
        // The server may execute a claim without an answer after this release.
        batch.retain(|claim| claim.epoch.is_none() && claim.dropped_at.elapsed() < LATE_CLAIM_TIME);
        Ok(())
    }

    /// Releases claims. A session with queued operations is due, whatever its state was.
    async fn release_claims(&self, claims: &[DroppedClaim]) -> Result<(), StorageError> {
        let tenants: Vec<Uuid> = claims.iter().map(|claim| claim.key.tenant.0).collect();
        let sessions: Vec<Uuid> = claims.iter().map(|claim| claim.key.session.0).collect();
        let epochs: Vec<Option<i64>> = claims.iter().map(|claim| claim.epoch).collect();
        let states: Vec<Option<i16>> =
            claims.iter().map(|claim| state_number(claim.state)).collect();
        let query = || {
            sqlx::query(RELEASE_QUERY)
                .bind(self.id)
                .bind(&tenants)
                .bind(&sessions)
                .bind(&epochs)
                .bind(&states)
                .bind(MAX_ATTEMPTS)
        };
        self.database.fetch_with_retries(query).await?;
        Ok(())
    }
}

/// A claim that was dropped has no state: it failed if there was work to do, for which `due`, queued
/// operations and a turn without an end stand.
const RELEASE_QUERY: &str = "
    UPDATE session SET node = NULL,
      attempts = CASE WHEN has_failed THEN greatest(attempts, 1) ELSE 0 END,
      state = CASE WHEN parent IS NOT NULL THEN 0 WHEN has_failed AND attempts >= $6 THEN 4
        WHEN has_failed OR is_queued THEN 1 ELSE coalesce(claim.state, 0) END,
      due = CASE WHEN has_failed THEN now() + make_interval(secs => 5 * greatest(attempts, 1))
        WHEN is_queued OR claim.state = 1 THEN now() END
    FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::smallint[])
        AS claim (tenant, session, epoch, state),
      LATERAL (SELECT tenant, id, due, head > 0 AND last_turn_end IS NULL AS is_at_work
        FROM session WHERE tenant = claim.tenant AND id = claim.session) AS claimed,
      LATERAL (SELECT EXISTS (SELECT 1 FROM inbox
        WHERE inbox.tenant = claim.tenant AND inbox.session = claim.session) AS is_queued) AS queue,
      LATERAL (SELECT coalesce(claim.state = 5,
        claimed.due IS NOT NULL OR is_at_work OR is_queued) AS has_failed) AS failure
    WHERE session.tenant = claim.tenant AND session.id = claim.session
      AND (claim.epoch IS NULL OR session.epoch = claim.epoch)
      AND session.node = $1";

/// Returns the number that stands for a state; `None` for a claim that was not released.
fn state_number(state: Option<ReleaseState>) -> Option<i16> {
    Some(match state? {
        ReleaseState::Idle => 0,
        ReleaseState::Due => 1,
        ReleaseState::Waiting => 3,
        ReleaseState::Failed => 5,
    })
}
