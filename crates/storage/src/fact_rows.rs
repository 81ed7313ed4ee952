//! Rows of facts: the transaction that inserts them, with their blobs and their session's summary.

use crate::{SessionClaim, StorageError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row};
use uuid::Uuid;
use windlass_protocol::{
    BlobRef, CallOutcome, Cost, Fact, LogSeq, SessionId, SessionSummary, TurnEndReason, UnixMillis,
};

/// The version of a stored fact's JSON.
pub(crate) const FACT_FORMAT_VERSION: i64 = 1;

/// Returns the blobs that a fact refers to.
fn referenced_blobs(fact: &Fact) -> impl Iterator<Item = &BlobRef> {
    let (full_text, attachments, changes) = match fact {
        Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } => {
            (output.full_text.as_ref(), output.attachments.as_slice(), &[][..])
        }
        Fact::PromptSubmitted { attachments, .. } => (None, attachments.as_slice(), &[][..]),
        Fact::FilesChanging { changes, .. } => (None, &[][..], changes.as_slice()),
        _ => (None, &[][..], &[][..]),
    };
    let versions = changes.iter().flat_map(|change| change.before.iter().chain(&change.after));
    full_text
        .into_iter()
        .chain(attachments.iter().map(|file| &file.blob))
        .chain(versions.map(|version| &version.blob))
}

/// An encoded fact to be inserted.
pub(crate) struct FactToInsert<'a> {
    pub(crate) at: UnixMillis,
    pub(crate) fact: &'a Fact,
    pub(crate) body: Option<String>,
    pub(crate) blob: Option<BlobRef>,
}

/// Appends facts in one transaction: all or none, and only if no other process has written or
/// claimed the session since.
pub(crate) async fn insert_facts(
    connection: &mut SqliteConnection,
    claim: &SessionClaim,
    expected: LogSeq,
    facts: &[FactToInsert<'_>],
) -> Result<LogSeq, StorageError> {
    let session = claim.session;
    let needs_sync = facts.iter().any(|stored| stored.fact.needs_disk_sync());
    let pragma =
        if needs_sync { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
    sqlx::raw_sql(pragma).execute(&mut *connection).await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let row = sqlx::query(
        "SELECT workspace, title, changed_at, last_turn_end, cost_micros, parent FROM session
         WHERE id = ?1 AND epoch = ?2 AND head = ?3",
    )
    .bind(session.0)
    .bind(claim.epoch as i64)
    .bind(expected as i64)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else { return Err(StorageError::Fenced { session }) };
    let mut summary = SessionSummary {
        session,
        workspace: row.try_get(0)?,
        title: row.try_get(1)?,
        changed_at: UnixMillis(row.try_get::<i64, _>(2)? as u64),
        fact_count: expected,
        last_turn_end: decode_turn_end(row.try_get(3)?),
        cost: Cost(row.try_get::<i64, _>(4)? as u64),
        parent: row.try_get::<Option<Uuid>, _>(5)?.map(SessionId),
    };
    for (seq, stored) in (expected + 1..).zip(facts) {
        summary.push(seq, stored.at, stored.fact);
        sqlx::query(
            "INSERT INTO event (session, seq, epoch, at, kind, format, body, blob)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .bind(session.0)
        .bind(seq as i64)
        .bind(claim.epoch as i64)
        .bind(stored.at.0 as i64)
        .bind(stored.fact.kind())
        .bind(FACT_FORMAT_VERSION)
        .bind(&stored.body)
        .bind(stored.blob.as_ref().map(BlobRef::as_str))
        .execute(&mut *transaction)
        .await?;
        for blob in referenced_blobs(stored.fact).chain(&stored.blob) {
            sqlx::query("INSERT OR IGNORE INTO blob_use (blob, session) VALUES (?1, ?2)")
                .bind(blob.as_str())
                .bind(session.0)
                .execute(&mut *transaction)
                .await?;
        }
    }
    sqlx::query(
        "UPDATE session SET head = ?2, workspace = ?3, title = ?4, changed_at = ?5,
         last_turn_end = ?6, cost_micros = ?7, parent = ?8 WHERE id = ?1",
    )
    .bind(session.0)
    .bind(summary.fact_count as i64)
    .bind(summary.workspace)
    .bind(summary.title)
    .bind(summary.changed_at.0 as i64)
    .bind(summary.last_turn_end.as_ref().map(serde_json::to_string).transpose()?)
    .bind(i64::try_from(summary.cost.0).unwrap_or(i64::MAX))
    .bind(summary.parent.map(|parent| parent.0))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(summary.fact_count)
}

/// Decodes the end of a session's last turn. Unreadable text counts as none.
pub(crate) fn decode_turn_end(text: Option<String>) -> Option<TurnEndReason> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}
