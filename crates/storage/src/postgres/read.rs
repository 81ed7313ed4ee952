//! Reading: pages of facts, facts about turns, search, and lists of sessions.

use super::PostgresLog;
use super::append::without_nul;
use super::blobs::run_blocking;
use super::claims::{decode_summary, session_columns};
use crate::like_pattern::like_pattern;
use crate::stored_facts::{self, FactPage};
use crate::{MAX_PAGE_FACTS, PageLimit, SessionFilter, StorageError};
use sqlx::Row;
use windlass_protocol::{FactRecord, LogPosition, LogSeq, SessionId, SessionSummary};

/// The columns of a fact as one text, in the format of `stored_facts`.
macro_rules! fact_text {
    () => {
        "concat_ws(chr(31), event.seq, event.epoch, event.at, event.kind, event.format, \
         encode(event.\"check\", 'hex'), coalesce(event.blob, ''), coalesce(event.origin, ''), \
         event.body)"
    };
}

/// Selects the facts after position $3 up to $4 as one text, as long as they have at most $5 bytes,
/// at least the first one. Also the one before, because its check is part of the next one; the
/// session's head; the last position of the page; and the blobs that contain facts.
const PAGE_QUERY: &str = concat!(
    "WITH fact AS (
       SELECT event.seq, ",
    fact_text!(),
    " AS text, CASE WHEN event.body IS NULL THEN event.blob END AS blob,
         sum(CASE WHEN event.seq <= $3 THEN 0
           ELSE coalesce(octet_length(event.body), blob.size, 0) END)
           OVER (ORDER BY event.seq) AS bytes
       FROM event LEFT JOIN blob
         ON event.body IS NULL AND blob.tenant = event.tenant AND blob.name = event.blob
       WHERE event.tenant = $1 AND event.session = $2 AND event.seq BETWEEN $3 AND $4)
     SELECT (SELECT head FROM session WHERE tenant = $1 AND id = $2),
       max(seq), string_agg(text, chr(30) ORDER BY seq),
       array_agg(blob) FILTER (WHERE blob IS NOT NULL)
     FROM fact WHERE seq <= $3 + 1 OR bytes <= $5"
);

/// Selects the last $3 facts about prompts and turns, and the blobs that contain them.
const TURN_FACTS_QUERY: &str = concat!(
    "SELECT ",
    fact_text!(),
    ", CASE WHEN event.body IS NULL THEN event.blob END FROM event
     WHERE kind IN ('prompt_submitted', 'turn_started', 'turn_ended', 'rewound')
       AND tenant = $1 AND session = $2 ORDER BY seq DESC LIMIT $3"
);

/// Selects the first $4 facts whose JSON matches all patterns.
const SEARCH_QUERY: &str = concat!(
    "SELECT ",
    fact_text!(),
    ", CASE WHEN event.body IS NULL THEN event.blob END FROM event
     WHERE kind IN ('prompt_submitted', 'model_text', 'session_renamed', 'tool_called', \
     'call_settled')
       AND tenant = $1 AND session = $2 AND body ILIKE ALL ($3::text[]) ORDER BY seq LIMIT $4"
);

/// Selects sessions, the last used first.
const LIST_QUERY: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM session WHERE tenant = $1 AND head > 0 AND ($2::text IS NULL OR workspace = $2
         OR coalesce(starts_with(workspace, $6), false))
       AND (NOT $3 OR parent IS NULL)
       AND ($4::uuid IS NULL OR (used, id) < (
         SELECT used, id FROM session WHERE tenant = $1 AND id = $4))
     ORDER BY used DESC, id DESC LIMIT $5"
);

impl PostgresLog {
    pub(super) async fn read_fact_page(
        &self,
        session: SessionId,
        after: LogSeq,
        limit: PageLimit,
    ) -> Result<FactPage, StorageError> {
        let wanted = after.saturating_add(limit.facts.min(MAX_PAGE_FACTS) as LogSeq);
        let query = || {
            sqlx::query(PAGE_QUERY)
                .bind(self.tenant.0)
                .bind(session.0)
                .bind(clamp(after))
                .bind(clamp(wanted))
                .bind(i64::try_from(limit.bytes).unwrap_or(i64::MAX))
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let head = row.try_get::<Option<i64>, _>(0)?.unwrap_or_default() as LogSeq;
        let last = row.try_get::<Option<i64>, _>(1)?.unwrap_or_default() as LogSeq;
        let text = row.try_get::<Option<String>, _>(2)?.unwrap_or_default();
        let blobs: Option<Vec<String>> = row.try_get(3)?;
        let blobs = self.load_blobs(blobs.unwrap_or_default()).await?;
        let through = match limit.bytes {
            usize::MAX => head.min(wanted),
            _ => head.min(wanted).min(last.max(after.saturating_add(1))),
        };
        let range = (after, through);
        let decode =
            move || stored_facts::decode_page(session, range, text.as_bytes(), limit.bytes, &blobs);
        let mut page = run_blocking(decode).await??;
        if page.lacks_first_fact()
            && let Some(summary) = self.load_summary(session).await?
        {
            page.restore_first_fact(summary);
        }
        Ok(page)
    }

    async fn load_summary(
        &self,
        session: SessionId,
    ) -> Result<Option<SessionSummary>, StorageError> {
        const QUERY: &str =
            concat!("SELECT ", session_columns!(), " FROM session WHERE tenant = $1 AND id = $2");
        let query = || sqlx::query(QUERY).bind(self.tenant.0).bind(session.0);
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        Ok(rows.first().map(decode_summary).transpose()?)
    }

    pub(super) async fn last_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let query = || {
            sqlx::query(TURN_FACTS_QUERY)
                .bind(self.tenant.0)
                .bind(session.0)
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        self.decode_fact_rows(session, rows).await
    }

    pub(super) async fn search_facts(
        &self,
        session: SessionId,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let patterns: Vec<String> =
            words.iter().map(|word| like_pattern(word)).collect::<Result<_, _>>()?;
        let query = || {
            sqlx::query(SEARCH_QUERY)
                .bind(self.tenant.0)
                .bind(session.0)
                .bind(&patterns)
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        self.decode_fact_rows(session, rows).await
    }

    /// Decodes rows of one fact each, with the blob that contains it.
    async fn decode_fact_rows(
        &self,
        session: SessionId,
        rows: Vec<sqlx::postgres::PgRow>,
    ) -> Result<Vec<FactRecord>, StorageError> {
        let (mut facts, mut blobs) = (Vec::new(), Vec::new());
        for row in rows {
            facts.push(row.try_get::<String, _>(0)?.into_bytes());
            blobs.extend(row.try_get::<Option<String>, _>(1)?);
        }
        let blobs = self.load_blobs(blobs).await?;
        let decode =
            move || stored_facts::decode_facts(session, &stored_facts::join_facts(&facts), &blobs);
        run_blocking(decode).await?
    }

    pub(super) async fn find_resume_position(
        &self,
        session: SessionId,
        position: LogPosition,
    ) -> Result<LogPosition, StorageError> {
        let query = || {
            sqlx::query(
                "SELECT seq, epoch FROM event
                 WHERE tenant = $1 AND session = $2 AND seq <= $3 AND epoch <= $4
                 ORDER BY seq DESC LIMIT 1",
            )
            .bind(self.tenant.0)
            .bind(session.0)
            .bind(clamp(position.seq))
            .bind(position.epoch.map_or(i64::MAX, clamp))
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        let found = match rows.first() {
            Some(row) => Some((row.try_get(0)?, row.try_get(1)?)),
            None => None,
        };
        Ok(stored_facts::common_position(position, found))
    }

    pub(super) async fn list_sessions(
        &self,
        filter: &SessionFilter,
    ) -> Result<Vec<SessionSummary>, StorageError> {
        let workspace = filter.workspace.as_deref().map(without_nul);
        let query = || {
            sqlx::query(LIST_QUERY)
                .bind(self.tenant.0)
                .bind(workspace.as_deref())
                .bind(filter.is_top_level)
                .bind(filter.after.map(|after| after.0))
                .bind(filter.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)))
                .bind(filter.checkouts_prefix())
        };
        let rows = self.node.state.database.fetch_with_retries(query).await?;
        Ok(rows.iter().map(decode_summary).collect::<Result<_, _>>()?)
    }
}

fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
