//! Queries for a range of facts, also in a damaged database.

use crate::fact_rows::MAX_ROW_BYTES;
use crate::session_rows::SessionRow;
use crate::{StorageError, stored_facts};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;
use windlass_protocol::{LogPosition, LogSeq, SessionId};

/// Selects the facts from `after` to `wanted`, and returns the last position to expect among them.
pub(crate) async fn select_facts(
    connection: &mut SqliteConnection,
    session: SessionId,
    after: LogSeq,
    wanted: LogSeq,
) -> Result<(LogSeq, Vec<u8>), StorageError> {
    let row = sqlx::query(stored_facts::FACTS_QUERY)
        .bind(session.0)
        .bind(after as i64)
        .bind(i64::try_from(wanted).unwrap_or(i64::MAX))
        .fetch_one(&mut *connection)
        .await?;
    let head = row.try_get::<Option<i64>, _>(0)?.unwrap_or_default() as LogSeq;
    let last = row.try_get::<Option<i64>, _>(1)?.unwrap_or_default() as LogSeq;
    let text: Option<Vec<u8>> = row.try_get(2)?;
    let head = match head == last {
        true => head,
        false => trusted_head(connection, session, last).await?,
    };
    Ok((head.min(wanted), text.unwrap_or_default()))
}

/// Returns the last of the positions after `after` up to `wanted` whose facts together have at most
/// `bytes` bytes, at least the first one. Facts in blobs count as one that just needs no blob.
pub(crate) async fn last_within_bytes(
    connection: &mut SqliteConnection,
    session: SessionId,
    (after, wanted): (LogSeq, LogSeq),
    bytes: usize,
) -> Result<LogSeq, StorageError> {
    let last: Option<i64> = sqlx::query_scalar(
        "SELECT max(seq) FROM (
           SELECT seq, sum(ifnull(octet_length(body), ?4)) OVER (ORDER BY seq) AS bytes
           FROM event WHERE session = ?1 AND seq > ?2 AND seq <= ?3)
         WHERE bytes <= ?5",
    )
    .bind(session.0)
    .bind(after as i64)
    .bind(i64::try_from(wanted).unwrap_or(i64::MAX))
    .bind(MAX_ROW_BYTES as i64)
    .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
    .fetch_one(&mut *connection)
    .await?;
    Ok(last.map_or(0, |last| last as LogSeq).max(after.saturating_add(1)))
}

/// Returns the last position up to `position` that the log and a reader have in common.
pub(crate) async fn find_position(
    connection: &mut SqliteConnection,
    session: SessionId,
    position: LogPosition,
) -> Result<LogPosition, StorageError> {
    let found: Option<(i64, i64)> = sqlx::query_as(
        "SELECT seq, epoch FROM event WHERE session = ?1 AND seq <= ?2 AND epoch <= ?3
         ORDER BY seq DESC LIMIT 1",
    )
    .bind(session.0)
    .bind(i64::try_from(position.seq).unwrap_or(i64::MAX))
    .bind(position.epoch.map_or(i64::MAX, |epoch| i64::try_from(epoch).unwrap_or(i64::MAX)))
    .fetch_optional(connection)
    .await?;
    Ok(stored_facts::common_position(position, found))
}

/// Returns the head from the session's row if the row is intact, otherwise the last position that
/// has a fact.
async fn trusted_head(
    connection: &mut SqliteConnection,
    session: SessionId,
    last: LogSeq,
) -> Result<LogSeq, StorageError> {
    let row = SessionRow::load(connection, session).await?;
    let head = row.filter(SessionRow::is_intact).map(|row| row.summary.fact_count);
    Ok(head.unwrap_or(last))
}

/// Like `select_facts`, for a database with damaged pages: leaves out facts that cannot be read.
pub(crate) async fn select_facts_one_by_one(
    connection: &mut SqliteConnection,
    session: SessionId,
    after: LogSeq,
    wanted: LogSeq,
) -> Result<(LogSeq, Vec<u8>), StorageError> {
    let head = trusted_head(connection, session, 0).await?.min(wanted);
    let mut facts = Vec::new();
    for seq in after..=head {
        let fact: Result<Option<Vec<u8>>, sqlx::Error> =
            sqlx::query_scalar(stored_facts::ONE_FACT_QUERY)
                .bind(session.0)
                .bind(seq as i64)
                .fetch_optional(&mut *connection)
                .await;
        facts.extend(fact.ok().flatten());
    }
    Ok((head, stored_facts::join_facts(&facts)))
}
