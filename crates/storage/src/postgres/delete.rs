//! Deletion of sessions, and of everything that only they use.

use super::PostgresLog;
use super::connection_errors::ConnectionRetry;
use crate::{SessionHolder, StorageError};
use sqlx::Row;
use std::collections::HashSet;
use uuid::Uuid;
use windlass_protocol::SessionId;

/// Locks a session and its descendants against claims, and sessions without facts, which no list
/// shows.
const LOCK_QUERY: &str = "
    WITH RECURSIVE family (id) AS (
      SELECT session.id FROM session WHERE session.tenant = $1 AND session.id = $2
      UNION
      SELECT session.id FROM session JOIN family ON session.parent = family.id
      WHERE session.tenant = $1)
    SELECT session.id, session.head > 0, session.id IN (SELECT family.id FROM family)
    FROM session
    WHERE session.tenant = $1 AND (session.id IN (SELECT family.id FROM family)
      OR (session.used = 0 AND session.head = 0 AND NOT EXISTS (
        SELECT 1 FROM inbox WHERE inbox.tenant = $1 AND inbox.session = session.id)))
    ORDER BY session.id FOR UPDATE OF session";

/// Selects the nodes that have these sessions open. A statement of its own, because the one that
/// waited for the locks may see nodes as they were before.
const HOLDERS_QUERY: &str = "
    SELECT session.id, node.id, node.address
    FROM session JOIN node ON node.id = session.node AND node.lease > now()
    WHERE session.tenant = $1 AND session.id = ANY ($2::uuid[])";

/// The statements that delete sessions. The row of a session comes last: it is what a claim needs.
const DELETE_QUERIES: [&str; 4] = [
    "DELETE FROM event WHERE tenant = $1 AND session = ANY ($2::uuid[])",
    "DELETE FROM blob_use WHERE tenant = $1 AND session = ANY ($2::uuid[])",
    "DELETE FROM inbox WHERE tenant = $1 AND session = ANY ($2::uuid[])",
    "DELETE FROM session WHERE tenant = $1 AND id = ANY ($2::uuid[])",
];

/// The result of an attempt to delete a session.
enum Deletion {
    Done,
    NotFound,
    Busy(SessionId, SessionHolder),
}

impl PostgresLog {
    pub(super) async fn delete_session(&self, session: SessionId) -> Result<(), StorageError> {
        self.node.state.release_dropped_claims().await?;
        let mut retry = ConnectionRetry::new();
        let mut is_answer_lost = false;
        loop {
            match self.try_delete(session).await {
                Ok(Deletion::Done) => break,
                Ok(Deletion::NotFound) if is_answer_lost => break,
                Ok(Deletion::NotFound) => {
                    self.prune_unused_blobs().await;
                    return Err(StorageError::SessionNotFound { session });
                }
                Ok(Deletion::Busy(session, holder)) => {
                    return Err(StorageError::Busy { session, holder: Some(holder) });
                }
                Err(error) => {
                    retry.wait_after(error).await?;
                    is_answer_lost = true;
                }
            }
        }
        self.prune_unused_blobs().await;
        Ok(())
    }

    /// Removes blobs that no session uses. The next deletion tries again if it fails.
    async fn prune_unused_blobs(&self) {
        if let Err(error) = self.prune_blobs().await {
            tracing::warn!(%error, "unused outputs were not removed");
        }
    }

    async fn try_delete(&self, session: SessionId) -> Result<Deletion, sqlx::Error> {
        let mut transaction = self.node.state.database.begin().await?;
        let query = sqlx::query(LOCK_QUERY).bind(self.tenant.0).bind(session.0);
        let (mut sessions, mut family, mut exists) = (Vec::new(), HashSet::new(), false);
        for row in transaction.fetch_all(query).await? {
            let (id, has_facts): (Uuid, bool) = (row.try_get(0)?, row.try_get(1)?);
            if row.try_get(2)? {
                family.insert(id);
            }
            exists |= id == session.0 && has_facts;
            sessions.push(id);
        }
        let query = sqlx::query(HOLDERS_QUERY).bind(self.tenant.0).bind(sessions.as_slice());
        for row in transaction.fetch_all(query).await? {
            let id: Uuid = row.try_get(0)?;
            if family.contains(&id) {
                let holder = SessionHolder { node: row.try_get(1)?, address: row.try_get(2)? };
                return Ok(Deletion::Busy(SessionId(id), holder));
            }
            sessions.retain(|session| *session != id);
        }
        for statement in DELETE_QUERIES {
            let query = sqlx::query(statement).bind(self.tenant.0).bind(sessions.as_slice());
            transaction.fetch_all(query).await?;
        }
        transaction.commit().await?;
        Ok(if exists { Deletion::Done } else { Deletion::NotFound })
    }
}
