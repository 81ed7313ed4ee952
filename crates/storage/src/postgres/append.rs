//! The append: one statement that writes facts if the claim still counts, and nothing otherwise.
//!
//! The row of the session is the guard: its epoch, node and head must be those of the writer. If the
//! answer to the statement is lost, the row tells whether the facts were written.

use super::PostgresLog;
use super::claims::{ClaimedSession, WriterState, claimed_session};
use super::connection_errors::ConnectionRetry;
use super::counters::count;
use super::database::PgQuery;
use super::nodes::NodeState;
use crate::fact_rows::{
    FACT_FORMAT_VERSION, FactToInsert, encode_facts, is_progress, moves_to_front, referenced_blobs,
};
use crate::session_rows::stored_cost;
use crate::{SessionClaim, StorageError};
use sqlx::Row;
use std::borrow::Cow;
use std::cmp::Ordering;
use tokio::time::Instant;
use uuid::Uuid;
use windlass_protocol::{BlobRef, Fact, FactOrigin, LogSeq, RecordCheck, UnixMillis};

/// Writes facts after the head of a session. `synchronous_commit` is set for this transaction only:
/// a commit that is flushed also flushes those before it that were not.
const APPEND_QUERY: &str = "
    WITH writer AS (
      UPDATE session SET head = $5 + cardinality($7::text[]), head_check = $13,
        attempts = CASE WHEN $25 THEN 0 ELSE attempts END,
        used = CASE WHEN $14 THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
               ELSE used END,
        fact_format = greatest(fact_format, $15::smallint), workspace = $16, title = $17,
        changed_at = $18, last_turn_end = $19, cost_micros = $20, parent = $21, forked_from = $22
      WHERE tenant = $1 AND id = $2 AND epoch = $3 AND node = $4 AND head = $5
        AND set_config('synchronous_commit', $6, true) IS NOT NULL
      RETURNING 1),
    written AS (
      INSERT INTO event
        (tenant, session, seq, epoch, at, kind, format, body, blob, origin, \"check\")
      SELECT $1, $2, $5 + fact.number, $3, fact.at, fact.kind, $15, fact.body, fact.blob,
        fact.origin, fact.\"check\"
      FROM writer, unnest($7::text[], $8::bigint[], $9::text[], $10::text[], $11::text[],
        $12::bytea[]) WITH ORDINALITY
        AS fact (kind, at, body, blob, origin, \"check\", number)),
    used_blobs AS (
      INSERT INTO blob_use (tenant, blob, session)
      SELECT DISTINCT $1::uuid, name, $2::uuid FROM writer, unnest($23::text[]) AS name
      ON CONFLICT DO NOTHING),
    done AS (
      DELETE FROM inbox USING writer WHERE tenant = $1 AND session = $2 AND op = ANY ($24::uuid[]))
    SELECT count(*) FROM writer";

/// Reads the row of a session for its writer. It is an update, so that it waits for a statement that
/// still has the row, and its commit is flushed like that of the append.
const LOOKUP_QUERY: &str = "
    UPDATE session SET head = head
    WHERE tenant = $1 AND id = $2 AND set_config('synchronous_commit', $3, true) IS NOT NULL
    RETURNING epoch, node, head, head_check";

/// Facts to be appended, with the row that the session has afterwards.
struct AppendBatch<'a> {
    claimed: &'a ClaimedSession,
    epoch: i64,
    /// The head before the append.
    expected: LogSeq,
    facts: &'a [FactToInsert<'a>],
    checks: Vec<&'a [u8]>,
    next: &'a WriterState,
    last_turn_end: Option<String>,
    blobs: Vec<&'a str>,
    ops: Vec<Uuid>,
}

/// The state of an append that may have been written.
enum AppendState {
    Written,
    NotWritten,
}

impl PostgresLog {
    pub(super) async fn append_facts<'a>(
        &self,
        claim: &SessionClaim,
        expected: LogSeq,
        facts: impl Iterator<Item = (UnixMillis, Option<&'a FactOrigin>, &'a Fact)> + Send,
    ) -> Result<LogSeq, StorageError> {
        let session = claim.session;
        let claimed = claimed_session(claim).filter(|claimed| {
            claimed.tenant == self.tenant && claimed.node.id == self.node.state.id
        });
        let claimed = claimed.ok_or(StorageError::Fenced { session })?;
        let mut ops = Vec::new();
        let facts = facts.inspect(|(_, origin, _)| {
            ops.extend(origin.map(|origin| origin.op.0));
        });
        let facts = encode_facts(self, facts).await?;
        let mut next = claimed.writer_state();
        if next.summary.fact_count != expected {
            return Err(StorageError::Fenced { session });
        }
        let mut checks: Vec<RecordCheck> = Vec::with_capacity(facts.len());
        for (seq, fact) in (expected + 1..).zip(&facts) {
            next.summary.push(seq, fact.at, fact.fact);
            next.head_check = fact.check(&next.head_check, claim, seq);
            checks.push(next.head_check);
        }
        ops.dedup();
        let last_turn_end = next.summary.last_turn_end.as_ref();
        let batch = AppendBatch {
            claimed,
            epoch: claim.epoch as i64,
            expected,
            facts: &facts,
            checks: checks.iter().map(RecordCheck::as_bytes).collect(),
            last_turn_end: last_turn_end.map(serde_json::to_string).transpose()?,
            blobs: batch_blobs(&facts),
            next: &next,
            ops,
        };
        self.write_batch(&batch).await?;
        let head = next.summary.fact_count;
        claimed.set_writer_state(next);
        Ok(head)
    }

    /// Executes the append until it is known to be written, or to be refused.
    async fn write_batch(&self, batch: &AppendBatch<'_>) -> Result<(), StorageError> {
        let NodeState { database, counters, .. } = &*self.node.state;
        let times = match batch.sync_mode() {
            "on" => &counters.flushed_appends,
            _ => &counters.other_appends,
        };
        let start = Instant::now();
        let mut retry = ConnectionRetry::new();
        let mut is_answer_lost = false;
        loop {
            let written = match database.fetch_all(batch.append_query()).await {
                Ok(rows) => {
                    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
                    row.try_get::<i64, _>(0)? > 0
                }
                Err(error) => {
                    retry.wait_after(error).await?;
                    is_answer_lost = true;
                    false
                }
            };
            if written {
                times.add(start.elapsed());
                return Ok(());
            }
            match self.look_up_batch(batch, &mut retry).await {
                Ok(_) if !is_answer_lost => return Err(batch.fenced()),
                Ok(AppendState::Written) => {
                    let session = batch.session();
                    tracing::info!(%session, "an append without an answer was written");
                    count(&counters.lost_answers_written);
                    times.add(start.elapsed());
                    return Ok(());
                }
                Ok(AppendState::NotWritten) => count(&counters.lost_answers_repeated),
                Err(error) => {
                    match error {
                        StorageError::Fenced { .. } => count(&counters.fenced_appends),
                        StorageError::FactsGone { .. } => count(&counters.shortened_logs),
                        _ => {}
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Finds out whether an append was written that may have been.
    async fn look_up_batch(
        &self,
        batch: &AppendBatch<'_>,
        retry: &mut ConnectionRetry,
    ) -> Result<AppendState, StorageError> {
        let rows = loop {
            match self.node.state.database.fetch_all(batch.lookup_query()).await {
                Ok(rows) => break rows,
                Err(error) => retry.wait_after(error).await?,
            }
        };
        // Without a row, the session was deleted.
        let Some(row) = rows.first() else { return Err(batch.fenced()) };
        let (epoch, node): (i64, Option<Uuid>) = (row.try_get(0)?, row.try_get(1)?);
        let (head, check): (i64, Option<Vec<u8>>) = (row.try_get(2)?, row.try_get(3)?);
        if epoch != batch.epoch || node != Some(self.node.state.id) {
            return Err(batch.fenced());
        }
        let head = head as LogSeq;
        if head == batch.next.summary.fact_count
            && check.as_deref() == Some(batch.next.head_check.as_bytes())
        {
            return Ok(AppendState::Written);
        }
        match head.cmp(&batch.expected) {
            Ordering::Less => {
                let (session, expected) = (batch.session(), batch.expected);
                Err(StorageError::FactsGone { session, head, expected })
            }
            Ordering::Equal => Ok(AppendState::NotWritten),
            Ordering::Greater => Err(batch.fenced()),
        }
    }
}

impl AppendBatch<'_> {
    fn session(&self) -> windlass_protocol::SessionId {
        self.next.summary.session
    }

    fn fenced(&self) -> StorageError {
        StorageError::Fenced { session: self.session() }
    }

    /// Returns the value of `synchronous_commit`.
    fn sync_mode(&self) -> &'static str {
        if self.facts.iter().any(|fact| fact.fact.needs_disk_sync()) { "on" } else { "off" }
    }

    fn append_query(&self) -> PgQuery<'_> {
        let summary = &self.next.summary;
        let column = |value: fn(&FactToInsert<'_>) -> i64| -> Vec<i64> {
            self.facts.iter().map(value).collect()
        };
        let kinds: Vec<&str> = self.facts.iter().map(|fact| fact.fact.kind()).collect();
        let bodies: Vec<Option<&str>> =
            self.facts.iter().map(|fact| fact.body.as_deref()).collect();
        let blobs: Vec<Option<&str>> =
            self.facts.iter().map(|fact| fact.blob.as_ref().map(BlobRef::as_str)).collect();
        let origins: Vec<Option<&str>> =
            self.facts.iter().map(|fact| fact.origin.as_deref()).collect();
        sqlx::query(APPEND_QUERY)
            .bind(self.claimed.tenant.0)
            .bind(summary.session.0)
            .bind(self.epoch)
            .bind(self.claimed.node.id)
            .bind(self.expected as i64)
            .bind(self.sync_mode())
            .bind(kinds)
            .bind(column(|fact| fact.at.0 as i64))
            .bind(bodies)
            .bind(blobs)
            .bind(origins)
            .bind(self.checks.as_slice())
            .bind(self.next.head_check.as_bytes())
            .bind(self.facts.iter().any(|fact| moves_to_front(fact.fact)))
            .bind(FACT_FORMAT_VERSION as i16)
            .bind(without_nul(&summary.workspace))
            .bind(without_nul(&summary.title))
            .bind(summary.changed_at.0 as i64)
            .bind(self.last_turn_end.as_deref())
            .bind(stored_cost(summary))
            .bind(summary.parent.map(|parent| parent.0))
            .bind(summary.forked_from.map(|source| source.0))
            .bind(self.blobs.as_slice())
            .bind(self.ops.as_slice())
            .bind(self.facts.iter().any(|fact| is_progress(fact.fact)))
    }

    fn lookup_query(&self) -> PgQuery<'_> {
        sqlx::query(LOOKUP_QUERY)
            .bind(self.claimed.tenant.0)
            .bind(self.next.summary.session.0)
            .bind(self.sync_mode())
    }
}

/// Returns the blobs that facts are stored in or refer to.
fn batch_blobs<'a>(facts: &'a [FactToInsert<'a>]) -> Vec<&'a str> {
    let blobs = facts.iter().flat_map(|fact| referenced_blobs(fact.fact).chain(&fact.blob));
    blobs.map(BlobRef::as_str).collect()
}

/// Replaces the character U+0000, which the text of PostgreSQL cannot contain. Facts contain it only
/// as an escape sequence.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}
