//! Rows of facts: the transaction that inserts them, with their blobs and their session's row.

use crate::session_rows::SessionRow;
use crate::statement_batch::StatementBatch;
use crate::{SessionClaim, StorageError};
use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use std::fmt;
use windlass_protocol::{
    BlobRef, CallOutcome, Fact, FactOrigin, FinishReason, LogSeq, RecordCheck, SessionId,
    UnixMillis,
};

/// The version of a stored fact's JSON.
pub(crate) const FACT_FORMAT_VERSION: i64 = 1;

/// A fact with longer JSON is stored as a blob, so that rows stay small.
pub(crate) const MAX_ROW_BYTES: usize = 64 * 1024;

/// Returns the blobs that a fact refers to.
pub(crate) fn referenced_blobs(fact: &Fact) -> impl Iterator<Item = &BlobRef> {
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

/// The columns of a fact besides its text, as its check covers them.
pub(crate) struct FactHeader<'a> {
    pub(crate) session: SessionId,
    pub(crate) seq: LogSeq,
    pub(crate) epoch: i64,
    pub(crate) at: UnixMillis,
    pub(crate) kind: &'a str,
    pub(crate) format: i64,
    pub(crate) has_blob: bool,
    pub(crate) origin: Option<&'a str>,
}

impl fmt::Display for FactHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FactHeader { session, seq, epoch, at, kind, format, has_blob, origin } = self;
        write!(f, "{session} {seq} {epoch} {} {kind} {format} {has_blob}", at.0)?;
        // Most facts have none.
        origin.map_or(Ok(()), |origin| write!(f, " {origin}"))
    }
}

/// An encoded fact to be inserted.
pub(crate) struct FactToInsert<'a> {
    pub(crate) at: UnixMillis,
    /// The `FactOrigin` as JSON.
    pub(crate) origin: Option<String>,
    pub(crate) fact: &'a Fact,
    pub(crate) body: Option<String>,
    pub(crate) blob: Option<BlobRef>,
}

impl FactToInsert<'_> {
    /// Returns the check of this fact after a fact with the check `previous`.
    pub(crate) fn check(
        &self,
        previous: &RecordCheck,
        claim: &SessionClaim,
        seq: LogSeq,
    ) -> RecordCheck {
        let header = FactHeader {
            session: claim.session,
            seq,
            epoch: claim.epoch as i64,
            at: self.at,
            kind: self.fact.kind(),
            format: FACT_FORMAT_VERSION,
            has_blob: self.body.is_none(),
            origin: self.origin.as_deref(),
        };
        let text = match (&self.body, &self.blob) {
            (Some(body), _) => body.as_str(),
            (None, Some(blob)) => blob.as_str(),
            (None, None) => "",
        };
        previous.next(&[header.to_string().as_bytes(), text.as_bytes()])
    }
}

/// Encodes facts for rows, and stores those that are too large as blobs.
pub(crate) async fn encode_facts<'a>(
    store: &impl FactStore,
    facts: impl Iterator<Item = (UnixMillis, Option<&'a FactOrigin>, &'a Fact)> + Send,
) -> Result<Vec<FactToInsert<'a>>, StorageError> {
    let mut rows = Vec::new();
    for (at, origin, fact) in facts {
        let json = serde_json::to_string(fact)?;
        let (body, blob) = match json.len() <= MAX_ROW_BYTES {
            true => (Some(json), None),
            false => (None, Some(store.store_fact(json.into_bytes()).await?)),
        };
        let origin = origin.map(serde_json::to_string).transpose()?;
        rows.push(FactToInsert { at, origin, fact, body, blob });
    }
    Ok(rows)
}

/// Stores facts that are too large for a row.
#[async_trait]
pub(crate) trait FactStore: Sync {
    /// Stores the JSON of a fact as a blob. It is on the disk when this returns.
    async fn store_fact(&self, json: Vec<u8>) -> Result<BlobRef, StorageError>;
}

/// Appends facts in one transaction: all or none, and only if no other process has written or
/// claimed the session since `row` was loaded.
pub(crate) async fn insert_facts(
    connection: &mut SqliteConnection,
    claim: &SessionClaim,
    mut row: SessionRow,
    facts: &[FactToInsert<'_>],
) -> Result<LogSeq, StorageError> {
    let (session, expected) = (claim.session, row.summary.fact_count);
    let mut checks = Vec::with_capacity(facts.len());
    let mut check = row.last_check();
    for (seq, stored) in (expected + 1..).zip(facts) {
        row.summary.push(seq, stored.at, stored.fact);
        check = stored.check(&check, claim, seq);
        checks.push(check);
    }
    row.head_check = Some(check.as_bytes().to_vec());
    if facts.iter().any(|stored| moves_to_front(stored.fact)) {
        let clock: Vec<i64> = sqlx::query_scalar(
            "PRAGMA synchronous = NORMAL; UPDATE log SET clock = clock + 1 RETURNING clock",
        )
        .fetch_all(&mut *connection)
        .await?;
        row.used = clock.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    }
    let mut batch = StatementBatch::default();
    batch.push(match facts.iter().any(|stored| stored.fact.needs_disk_sync()) {
        true => "PRAGMA synchronous = FULL",
        false => "PRAGMA synchronous = NORMAL",
    });
    batch.push("BEGIN IMMEDIATE");
    row.save(&mut batch, expected)?;
    let mut changed_rows = 0;
    for ((seq, stored), check) in (expected + 1..).zip(facts).zip(&checks) {
        // If the session's row was not changed, nothing is.
        batch.push(
            "INSERT INTO event
               (session, seq, epoch, at, kind, format, body, blob, \"check\", origin)
             SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE changes() > 0",
        );
        batch.bind(session.0)?;
        batch.bind(seq as i64)?;
        batch.bind(claim.epoch as i64)?;
        batch.bind(stored.at.0 as i64)?;
        batch.bind(stored.fact.kind())?;
        batch.bind(FACT_FORMAT_VERSION)?;
        batch.bind(stored.body.as_deref())?;
        batch.bind(stored.blob.as_ref().map(BlobRef::as_str))?;
        batch.bind(check.as_bytes())?;
        batch.bind(stored.origin.as_deref())?;
        if batch.is_full() {
            changed_rows += batch.execute(connection).await?;
        }
    }
    let blobs: Vec<&BlobRef> =
        facts.iter().flat_map(|stored| referenced_blobs(stored.fact).chain(&stored.blob)).collect();
    for blob in blobs {
        batch.push(
            "INSERT OR IGNORE INTO blob_use (blob, session)
             SELECT ?, id FROM session WHERE id = ? AND epoch = ? AND head = ?",
        );
        batch.bind(blob.as_str())?;
        batch.bind(session.0)?;
        batch.bind(row.epoch)?;
        batch.bind(row.summary.fact_count as i64)?;
        if batch.is_full() {
            changed_rows += batch.execute(connection).await?;
        }
    }
    batch.push("COMMIT");
    changed_rows += batch.execute(connection).await?;
    match changed_rows {
        0 => Err(StorageError::Fenced { session }),
        _ => Ok(row.summary.fact_count),
    }
}

/// Returns true for facts that show that a session goes on. Those that every opening of a session
/// under way writes do not.
pub(crate) fn is_progress(fact: &Fact) -> bool {
    match fact {
        Fact::StepEnded { finish_reason, .. } => *finish_reason != FinishReason::ProcessDied,
        Fact::CallSettled { outcome, .. } => *outcome != CallOutcome::ResultUnknown,
        Fact::PromptSubmitted { .. }
        | Fact::PermissionAnswered { .. }
        | Fact::QuestionAnswered { .. }
        | Fact::TurnEnded { .. } => true,
        _ => false,
    }
}

/// Returns true for facts that make their session the last used one.
pub(crate) fn moves_to_front(fact: &Fact) -> bool {
    matches!(fact, Fact::SessionOpened { .. } | Fact::PromptSubmitted { .. })
}
