//! Claims of sessions by a node, their release, and the operations that wait for the next claim.
//!
//! A claim writes the node and a higher epoch into the row of the session, in one statement that
//! has no effect while another node with a valid lease has the session.

use super::PostgresLog;
use super::claim_registry::{ClaimKey, DroppedClaim, TenantId, lock};
use super::counters::count;
use super::database::PgQuery;
use super::nodes::{NodeState, PostgresNode};
use crate::fact_rows::FACT_FORMAT_VERSION;
use crate::{ReleaseState, SessionClaim, SessionHolder, StorageError};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;
use windlass_protocol::{Cost, LogSeq, OpId, RecordCheck, SessionId, SessionSummary, UnixMillis};

/// The columns of a session that its writer needs, in the order that `WriterState` decodes.
macro_rules! session_columns {
    () => {
        "session.id, session.epoch, session.head, session.head_check, session.workspace, \
         session.title, session.changed_at, session.last_turn_end, session.cost_micros, \
         session.parent, session.forked_from"
    };
}
pub(super) use session_columns;

/// Attempts to claim a session whose holder disappears between two statements.
const MAX_CLAIM_ATTEMPTS: usize = 5;

/// Due sessions that are looked at for each one that is to be claimed, because other nodes claim
/// the same ones.
const CANDIDATES_PER_CLAIM: usize = 4;

/// The state of a session as its writer knows it: the summary, folded from the facts, and the check
/// of the last fact.
#[derive(Clone)]
pub(super) struct WriterState {
    pub(super) summary: SessionSummary,
    pub(super) head_check: RecordCheck,
}

/// A claimed session, as long as its `SessionClaim` lives. It is released when it is dropped, with
/// the next statement about claims.
pub(super) struct ClaimedSession {
    pub(super) node: Arc<NodeState>,
    pub(super) tenant: TenantId,
    state: Mutex<WriterState>,
    epoch: i64,
    /// The state that the session was released with, if it was.
    release_state: Mutex<Option<ReleaseState>>,
    /// Keeps other tasks of this process from claiming the session.
    reservation: ClaimReservation,
}

/// A folder of sessions that a node can run.
#[derive(Clone, Debug)]
pub struct SessionFolder {
    pub tenant: TenantId,
    pub folder: String,
    /// `folder` has the first characters of several folders.
    pub is_prefix: bool,
}

/// A due session that this node has claimed.
pub struct DueSession {
    pub tenant: TenantId,
    pub claim: SessionClaim,
}

/// An operation that is stored for the next node that claims the session. Appending a fact with its
/// id in the origin removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxOp {
    pub op: OpId,
    /// The operation as JSON, with its client.
    pub body: String,
}

/// A node of the fleet, and the token that other nodes use for requests to it.
pub struct NodeEndpoint {
    pub holder: SessionHolder,
    pub token: String,
}

/// An entry of the registry that ends with this value.
struct ClaimReservation {
    node: Arc<NodeState>,
    key: ClaimKey,
    /// True while the answer to the claim is not known.
    is_uncertain: bool,
}

impl ClaimReservation {
    fn new(node: &Arc<NodeState>, key: ClaimKey) -> Option<ClaimReservation> {
        let reservation = || ClaimReservation { node: Arc::clone(node), key, is_uncertain: false };
        node.registry.insert(key).then(reservation)
    }

    /// Makes a claim from the row that the database returned.
    fn into_claim(self, row: &PgRow) -> Result<SessionClaim, StorageError> {
        let state = WriterState::decode(row)?;
        let (session, head) = (state.summary.session, state.summary.fact_count);
        let epoch: i64 = row.try_get(1)?;
        let claimed = ClaimedSession {
            node: Arc::clone(&self.node),
            tenant: self.key.tenant,
            state: Mutex::new(state),
            epoch,
            release_state: Mutex::default(),
            reservation: self,
        };
        let guard: Box<dyn std::any::Any + Send + Sync> = Box::new(claimed);
        Ok(SessionClaim { session, epoch: epoch as u64, head, lost_facts: 0, guard: Some(guard) })
    }
}

impl Drop for ClaimReservation {
    fn drop(&mut self) {
        if self.is_uncertain {
            self.node.registry.add_dropped(DroppedClaim::new(self.key, None, None));
        }
        self.node.registry.remove(self.key);
    }
}

impl Drop for ClaimedSession {
    fn drop(&mut self) {
        let state = *lock(&self.release_state);
        let claim = DroppedClaim::new(self.reservation.key, Some(self.epoch), state);
        self.node.registry.add_dropped(claim);
    }
}

impl WriterState {
    fn decode(row: &PgRow) -> Result<WriterState, sqlx::Error> {
        let summary = decode_summary(row)?;
        let head_check: Option<Vec<u8>> = row.try_get(3)?;
        let head_check = head_check.as_deref().and_then(RecordCheck::from_bytes);
        let head_check = head_check.unwrap_or_else(|| RecordCheck::before_first(summary.session));
        Ok(WriterState { summary, head_check })
    }
}

/// Decodes the columns of `session_columns`.
pub(super) fn decode_summary(row: &PgRow) -> Result<SessionSummary, sqlx::Error> {
    let last_turn_end: Option<String> = row.try_get(7)?;
    Ok(SessionSummary {
        session: SessionId(row.try_get(0)?),
        fact_count: row.try_get::<i64, _>(2)? as LogSeq,
        workspace: row.try_get(4)?,
        title: row.try_get(5)?,
        changed_at: UnixMillis(row.try_get::<i64, _>(6)? as u64),
        // Text that this version cannot read counts as none.
        last_turn_end: last_turn_end.as_deref().and_then(|end| serde_json::from_str(end).ok()),
        cost: Cost(row.try_get::<i64, _>(8)? as u64),
        parent: row.try_get::<Option<Uuid>, _>(9)?.map(SessionId),
        forked_from: row.try_get::<Option<Uuid>, _>(10)?.map(SessionId),
    })
}

impl PostgresLog {
    pub(super) async fn claim_session(
        &self,
        session: SessionId,
    ) -> Result<SessionClaim, StorageError> {
        let node = &self.node.state;
        node.release_dropped_claims().await?;
        let key = ClaimKey { tenant: self.tenant, session };
        let Some(mut reservation) = ClaimReservation::new(node, key) else {
            let holder = Some(SessionHolder { node: node.id, address: node.address.clone() });
            return Err(StorageError::Busy { session, holder });
        };
        for _ in 0..MAX_CLAIM_ATTEMPTS {
            reservation.is_uncertain = true;
            let rows = node.database.fetch_with_retries(|| claim_query(key, node.id)).await?;
            reservation.is_uncertain = false;
            if let Some(row) = rows.first() {
                count(&node.counters.opened_claims);
                return reservation.into_claim(row);
            }
            if let Some(NodeEndpoint { holder, .. }) = self.holder(session).await? {
                return Err(StorageError::Busy { session, holder: Some(holder) });
            }
            if self.is_too_new(session).await? {
                return Err(StorageError::SessionTooNew { session });
            }
        }
        Err(StorageError::Busy { session, holder: None })
    }

    /// Returns true if a newer version has written facts of a session.
    async fn is_too_new(&self, session: SessionId) -> Result<bool, StorageError> {
        let query = || {
            sqlx::query("SELECT 1 FROM session WHERE tenant = $1 AND id = $2 AND fact_format > $3")
                .bind(self.tenant.0)
                .bind(session.0)
                .bind(FACT_FORMAT_VERSION as i16)
        };
        Ok(!self.node.state.database.fetch_with_retries(query).await?.is_empty())
    }

    /// Returns the other node with a valid lease that has a session. Fails if this node has no valid
    /// lease.
    pub async fn holder(&self, session: SessionId) -> Result<Option<NodeEndpoint>, StorageError> {
        let node = &self.node.state;
        let query = || {
            sqlx::query(
                "SELECT holder.id, holder.address, holder.token
                 FROM node LEFT JOIN session ON session.tenant = $2 AND session.id = $3
                   LEFT JOIN node AS holder ON holder.id = session.node
                     AND holder.lease > now() AND holder.id <> $1
                 WHERE node.id = $1 AND node.lease > now()",
            )
            .bind(node.id)
            .bind(self.tenant.0)
            .bind(session.0)
        };
        let rows = node.database.fetch_with_retries(query).await?;
        let row = rows.first().ok_or(StorageError::LeaseLost)?;
        let Some(id) = row.try_get::<Option<Uuid>, _>(0)? else { return Ok(None) };
        let holder = SessionHolder { node: id, address: row.try_get(1)? };
        Ok(Some(NodeEndpoint { holder, token: row.try_get(2)? }))
    }

    /// Gives up a claim. A claim that another node has taken over is not changed.
    pub(super) async fn release_session(
        &self,
        claim: SessionClaim,
        state: ReleaseState,
    ) -> Result<(), StorageError> {
        let Some(claimed) = claimed_session(&claim) else { return Ok(()) };
        *lock(&claimed.release_state) = Some(state);
        drop(claim);
        self.node.state.release_dropped_claims().await
    }

    /// Stores an operation for a session that this node does not have. It is on the disk when this
    /// returns. A session that failed repeatedly is due again, because a user asks for it. An operation that is already stored is not stored again.
    pub async fn enqueue(&self, session: SessionId, op: &InboxOp) -> Result<(), StorageError> {
        let query = || {
            sqlx::query(
                "WITH queued AS (
                   INSERT INTO inbox (tenant, session, op, body)
                   SELECT tenant, id, $3, $4 FROM session WHERE tenant = $1 AND id = $2
                   ON CONFLICT DO NOTHING)
                 UPDATE session SET
                   state = CASE WHEN node IS NULL AND state IN (0, 3, 4) THEN 1 ELSE state END,
                   due = CASE WHEN node IS NULL AND state IN (0, 3, 4) THEN now() ELSE due END,
                   attempts = CASE WHEN state = 4 THEN 0 ELSE attempts END
                 WHERE tenant = $1 AND id = $2
                   AND set_config('synchronous_commit', 'on', true) IS NOT NULL
                 RETURNING 1",
            )
            .bind(self.tenant.0)
            .bind(session.0)
            .bind(op.op.0)
            .bind(&op.body)
        };
        match self.node.state.database.fetch_with_retries(query).await?.is_empty() {
            true => Err(StorageError::SessionNotFound { session }),
            false => Ok(()),
        }
    }

    /// Removes an operation that the session has answered without a fact.
    pub async fn remove_queued(&self, session: SessionId, op: OpId) -> Result<(), StorageError> {
        let query = || {
            sqlx::query("DELETE FROM inbox WHERE tenant = $1 AND session = $2 AND op = $3")
                .bind(self.tenant.0)
                .bind(session.0)
                .bind(op.0)
        };
        self.node.state.database.fetch_with_retries(query).await?;
        Ok(())
    }

    /// Returns the operations that wait for a session, in their order.
    pub async fn queued_ops(&self, session: SessionId) -> Result<Vec<InboxOp>, StorageError> {
        let query = || {
            sqlx::query(
                "SELECT op, body FROM inbox WHERE tenant = $1 AND session = $2 ORDER BY number",
            )
            .bind(self.tenant.0)
            .bind(session.0)
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        let queued =
            rows.iter().map(|row| Ok(InboxOp { op: OpId(row.try_get(0)?), body: row.try_get(1)? }));
        Ok(queued.collect::<Result<_, sqlx::Error>>()?)
    }
}

impl PostgresNode {
    /// Returns the sessions of this node for which operations wait.
    pub async fn sessions_with_queued_ops(
        &self,
    ) -> Result<Vec<(TenantId, SessionId)>, StorageError> {
        let query = || {
            sqlx::query(
                "SELECT DISTINCT inbox.tenant, inbox.session FROM inbox
                   JOIN session ON session.tenant = inbox.tenant AND session.id = inbox.session
                 WHERE session.node = $1",
            )
            .bind(self.state.id)
        };
        let rows = self.state.database.fetch_with_retries(query).await?;
        let key = |row: &PgRow| Ok((TenantId(row.try_get(0)?), SessionId(row.try_get(1)?)));
        Ok(rows.iter().map(key).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Claims sessions that are due in one of these folders, the longest waiting first, at most `limit`. Sessions of subagents are claimed by the node of their parent.
    pub async fn claim_due(
        &self,
        folders: &[SessionFolder],
        limit: usize,
    ) -> Result<Vec<DueSession>, StorageError> {
        let node = &self.state;
        let of_kind = |is_prefix: bool| {
            let folders = folders.iter().filter(move |folder| folder.is_prefix == is_prefix);
            let pairs = folders.map(|folder| (folder.tenant.0, folder.folder.clone()));
            pairs.unzip::<Uuid, String, Vec<Uuid>, Vec<String>>()
        };
        let (exact, prefixes) = (of_kind(false), of_kind(true));
        let candidates = || {
            sqlx::query(
                "SELECT session.tenant, session.id FROM session
                   JOIN tenant ON tenant.id = session.tenant AND NOT tenant.is_disabled
                 WHERE session.state = 1 AND session.due <= now() AND session.fact_format <= $1
                   AND session.parent IS NULL
                   AND ((session.tenant, session.workspace) IN (
                       SELECT * FROM unnest($3::uuid[], $4::text[]))
                     OR EXISTS (SELECT 1 FROM unnest($5::uuid[], $6::text[]) AS begun (tenant, prefix)
                       WHERE begun.tenant = session.tenant
                         AND starts_with(session.workspace, prefix)))
                 ORDER BY session.due LIMIT $2",
            )
            .bind(FACT_FORMAT_VERSION as i16)
            .bind(i64::try_from(limit.saturating_mul(CANDIDATES_PER_CLAIM)).unwrap_or(i64::MAX))
            .bind(&exact.0)
            .bind(&exact.1)
            .bind(&prefixes.0)
            .bind(&prefixes.1)
        };
        let mut reservations = Vec::new();
        for row in node.database.fetch_with_retries(candidates).await? {
            let (tenant, session) = (row.try_get(0)?, row.try_get(1)?);
            let key = ClaimKey { tenant: TenantId(tenant), session: SessionId(session) };
            reservations.extend(ClaimReservation::new(node, key));
        }
        if reservations.is_empty() {
            return Ok(Vec::new());
        }
        let tenants: Vec<Uuid> = reservations.iter().map(|entry| entry.key.tenant.0).collect();
        let sessions: Vec<Uuid> = reservations.iter().map(|entry| entry.key.session.0).collect();
        // A second attempt finds the sessions of the first one under this node.
        let query = || {
            sqlx::query(CLAIM_DUE_QUERY)
                .bind(node.id)
                .bind(&tenants)
                .bind(&sessions)
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        };
        reservations.iter_mut().for_each(|entry| entry.is_uncertain = true);
        let rows = node.database.fetch_with_retries(query).await?;
        reservations.iter_mut().for_each(|entry| entry.is_uncertain = false);
        let mut claimed = Vec::new();
        for row in rows {
            let tenant = TenantId(row.try_get(11)?);
            let key = ClaimKey { tenant, session: SessionId(row.try_get(0)?) };
            let position = reservations.iter().position(|entry| entry.key == key);
            let Some(position) = position else { continue };
            let claim = reservations.swap_remove(position).into_claim(&row)?;
            let waited: Option<f64> = row.try_get(12)?;
            node.counters.due_claims.add(Duration::from_secs_f64(waited.unwrap_or(0.0).max(0.0)));
            claimed.push(DueSession { tenant, claim });
        }
        Ok(claimed)
    }
}

/// Claims due sessions among those that this process has reserved.
const CLAIM_DUE_QUERY: &str = concat!(
    "WITH next AS (
       SELECT session.tenant, session.id FROM session
         JOIN unnest($2::uuid[], $3::uuid[]) AS candidate (tenant, id)
           ON candidate.tenant = session.tenant AND candidate.id = session.id
       WHERE (session.state = 1 OR (session.state = 2 AND session.node = $1))
         AND EXISTS (SELECT 1 FROM node
           WHERE node.id = $1 AND node.lease > now() AND NOT node.is_draining)
       ORDER BY session.due FOR UPDATE OF session SKIP LOCKED LIMIT $4)
     UPDATE session SET node = $1, state = 2, attempts = session.attempts + 1,
       epoch = greatest(session.epoch + 1,
         (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
     FROM next WHERE session.tenant = next.tenant AND session.id = next.id
     RETURNING ",
    session_columns!(),
    ", session.tenant, extract(epoch FROM clock_timestamp() - session.due)::float8"
);

/// Returns the statement that claims a session. A session that has this node already is claimed
/// again: the answer to the first claim was lost.
fn claim_query<'q>(key: ClaimKey, node: Uuid) -> PgQuery<'q> {
    const QUERY: &str = concat!(
        "INSERT INTO session (tenant, id, node, epoch, state, attempts)
         SELECT $1, $2, id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 2, 1
         FROM node WHERE id = $3 AND lease > now()
         ON CONFLICT (tenant, id) DO UPDATE SET node = excluded.node, state = 2,
           due = CASE WHEN session.node IS NOT NULL OR session.state IN (1, 4)
             THEN coalesce(session.due, now()) END,
           attempts = session.attempts + 1, epoch = greatest(session.epoch + 1, excluded.epoch)
         WHERE session.fact_format <= $4 AND (
           session.node IS NULL OR session.node = excluded.node OR NOT EXISTS (
             SELECT 1 FROM node AS holder
             WHERE holder.id = session.node AND holder.lease > now()))
         RETURNING ",
        session_columns!()
    );
    let query = sqlx::query(QUERY).bind(key.tenant.0).bind(key.session.0);
    query.bind(node).bind(FACT_FORMAT_VERSION as i16)
}

/// Returns the claimed session of a claim that a `PostgresLog` made.
pub(super) fn claimed_session(claim: &SessionClaim) -> Option<&ClaimedSession> {
    claim.guard.as_ref()?.downcast_ref()
}

impl ClaimedSession {
    /// Returns what this writer knows of the session.
    pub(super) fn writer_state(&self) -> WriterState {
        lock(&self.state).clone()
    }

    pub(super) fn set_writer_state(&self, state: WriterState) {
        *lock(&self.state) = state;
    }
}
