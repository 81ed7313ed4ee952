//! Rows of sessions: the summary of a session, protected by a digest.

use crate::statement_batch::StatementBatch;
use crate::{SessionFilter, StorageError};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;
use windlass_protocol::record_check::digest_parts;
use windlass_protocol::{Cost, LogSeq, RecordCheck, SessionId, SessionSummary, UnixMillis};

/// Selects the columns of `SessionRow`, in its order.
const SELECT: &str = "SELECT id, epoch, head, head_check, used, workspace, title, changed_at,
    last_turn_end, cost_micros, parent, row_check, forked_from FROM session";

/// A row of the table `session`.
pub(crate) struct SessionRow {
    pub(crate) summary: SessionSummary,
    pub(crate) epoch: i64,
    /// The `RecordCheck` of the last fact.
    pub(crate) head_check: Option<Vec<u8>>,
    /// The session's place in the order of use.
    pub(crate) used: i64,
    /// `summary.last_turn_end` as stored.
    last_turn_end: Option<String>,
    row_check: Option<Vec<u8>>,
}

impl SessionRow {
    pub(crate) async fn load(
        connection: &mut SqliteConnection,
        session: SessionId,
    ) -> Result<Option<SessionRow>, StorageError> {
        let query = sqlx::AssertSqlSafe(format!("{SELECT} WHERE id = ?1"));
        let row = sqlx::query(query).bind(session.0).fetch_optional(connection).await?;
        row.as_ref().map(SessionRow::decode).transpose()
    }

    /// Loads all sessions that have facts.
    pub(crate) async fn load_all(
        connection: &mut SqliteConnection,
    ) -> Result<Vec<SessionRow>, StorageError> {
        let query = sqlx::AssertSqlSafe(format!("{SELECT} WHERE head > 0"));
        let rows = sqlx::query(query).fetch_all(connection).await?;
        rows.iter().map(SessionRow::decode).collect()
    }

    /// Loads the sessions that a filter selects, the most recently used first.
    pub(crate) async fn load_filtered(
        connection: &mut SqliteConnection,
        filter: &SessionFilter,
    ) -> Result<Vec<SessionRow>, StorageError> {
        let mut query = sqlx::QueryBuilder::new(SELECT);
        query.push(" WHERE head > 0");
        if let Some(workspace) = &filter.workspace {
            query.push(" AND (workspace = ").push_bind(workspace);
            if let Some(folder) = filter.checkouts_prefix() {
                let length = folder.chars().count() as i64;
                query.push(" OR substr(workspace, 1, ").push_bind(length);
                query.push(") = ").push_bind(folder);
            }
            query.push(")");
        }
        if filter.is_top_level {
            query.push(" AND parent IS NULL");
        }
        if let Some(after) = filter.after {
            query.push(" AND (used, id) < (SELECT used, id FROM session WHERE id = ");
            query.push_bind(after.0).push(")");
        }
        query.push(" ORDER BY used DESC, id DESC LIMIT ");
        query.push_bind(filter.limit.map_or(-1, |limit| limit as i64));
        let rows = query.build().fetch_all(connection).await?;
        rows.iter().map(SessionRow::decode).collect()
    }

    fn decode(row: &SqliteRow) -> Result<SessionRow, StorageError> {
        let last_turn_end: Option<String> = row.try_get(8)?;
        let summary = SessionSummary {
            session: SessionId(row.try_get::<Uuid, _>(0)?),
            workspace: row.try_get(5)?,
            title: row.try_get(6)?,
            changed_at: UnixMillis(row.try_get::<i64, _>(7)? as u64),
            fact_count: row.try_get::<i64, _>(2)? as LogSeq,
            // Text that this version cannot read counts as none.
            last_turn_end: last_turn_end.as_deref().and_then(|end| serde_json::from_str(end).ok()),
            cost: Cost(row.try_get::<i64, _>(9)? as u64),
            parent: row.try_get::<Option<Uuid>, _>(10)?.map(SessionId),
            forked_from: row.try_get::<Option<Uuid>, _>(12)?.map(SessionId),
        };
        Ok(SessionRow {
            summary,
            epoch: row.try_get(1)?,
            head_check: row.try_get(3)?,
            used: row.try_get(4)?,
            last_turn_end,
            row_check: row.try_get(11)?,
        })
    }

    /// Returns true if the row matches its digest. A row without facts has none yet.
    pub(crate) fn is_intact(&self) -> bool {
        match &self.row_check {
            Some(check) => *check == self.digest(self.last_turn_end.as_deref()),
            None => self.summary.fact_count == 0,
        }
    }

    /// Returns the digest of the columns, given the column `last_turn_end`.
    fn digest(&self, last_turn_end: Option<&str>) -> [u8; 8] {
        let summary = &self.summary;
        let parent = summary.parent.map(|parent| parent.0.into_bytes());
        let forked_from = summary.forked_from.map(|source| source.0.into_bytes());
        let (fact_count, used) = (summary.fact_count.to_le_bytes(), self.used.to_le_bytes());
        let (changed_at, cost) =
            (summary.changed_at.0.to_le_bytes(), stored_cost(summary).to_le_bytes());
        let mut parts: Vec<&[u8]> = vec![
            summary.session.0.as_bytes(),
            &fact_count,
            self.head_check.as_deref().unwrap_or_default(),
            &used,
            summary.workspace.as_bytes(),
            summary.title.as_bytes(),
            &changed_at,
            last_turn_end.unwrap_or_default().as_bytes(),
            &cost,
            parent.as_ref().map_or(&[], |parent| parent.as_slice()),
        ];
        // Most sessions are not forks.
        parts.extend(forked_from.as_ref().map(|source| source.as_slice()));
        digest_parts(&parts)
    }

    /// Returns the check of the last fact, or the one before the first.
    pub(crate) fn last_check(&self) -> RecordCheck {
        let check = self.head_check.as_deref().and_then(RecordCheck::from_bytes);
        check.unwrap_or_else(|| RecordCheck::before_first(self.summary.session))
    }

    /// Writes the row, except `epoch`, if the stored one still has this epoch and `head` facts.
    pub(crate) fn save(
        &self,
        batch: &mut StatementBatch,
        head: LogSeq,
    ) -> Result<(), StorageError> {
        let summary = &self.summary;
        let last_turn_end =
            summary.last_turn_end.as_ref().map(serde_json::to_string).transpose()?;
        let digest = self.digest(last_turn_end.as_deref());
        batch.push(
            "UPDATE session SET head = ?, head_check = ?, used = ?, workspace = ?, title = ?,
             changed_at = ?, last_turn_end = ?, cost_micros = ?, parent = ?, forked_from = ?,
             row_check = ? WHERE id = ? AND epoch = ? AND head = ?",
        );
        batch.bind(summary.fact_count as i64)?;
        batch.bind(self.head_check.as_deref())?;
        batch.bind(self.used)?;
        batch.bind(summary.workspace.as_str())?;
        batch.bind(summary.title.as_str())?;
        batch.bind(summary.changed_at.0 as i64)?;
        batch.bind(last_turn_end)?;
        batch.bind(stored_cost(summary))?;
        batch.bind(summary.parent.map(|parent| parent.0))?;
        batch.bind(summary.forked_from.map(|source| source.0))?;
        batch.bind(digest.as_slice())?;
        batch.bind(summary.session.0)?;
        batch.bind(self.epoch)?;
        batch.bind(head as i64)
    }
}

pub(crate) fn stored_cost(summary: &SessionSummary) -> i64 {
    i64::try_from(summary.cost.0).unwrap_or(i64::MAX)
}
