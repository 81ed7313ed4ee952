//! The answers of users to questions, in the order they were given: an audit log that the logs of
//! sessions are anyway.

use super::database::PostgresDatabase;
use crate::StorageError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use windlass_protocol::{Fact, FactOrigin, SessionId, UnixMillis};

/// The answer of a user, with its question.
#[derive(Clone, Debug, PartialEq)]
pub struct UserAnswer {
    pub tenant: String,
    pub session: SessionId,
    pub title: String,
    pub at: UnixMillis,
    /// The client that answered; `None` if an earlier answer covers the call.
    pub origin: Option<FactOrigin>,
    /// `PermissionAnswered` or `QuestionAnswered`; `None` if this version cannot read it.
    pub answer: Option<Fact>,
    /// `PermissionAsked` or `QuestionAsked`.
    pub question: Option<Fact>,
}

const ANSWERS_QUERY: &str = "
    SELECT tenant.name, answered.session, session.title, answered.at, answered.origin,
      answered.body, asked.body
    FROM event AS answered
      JOIN tenant ON tenant.id = answered.tenant
      JOIN session ON session.tenant = answered.tenant AND session.id = answered.session
      LEFT JOIN LATERAL (
        SELECT event.body FROM event
        WHERE event.tenant = answered.tenant AND event.session = answered.session
          AND event.seq < answered.seq AND event.kind IN ('permission_asked', 'question_asked')
          AND event.body LIKE '%' || (answered.body::json ->> 'call') || '%'
        ORDER BY event.seq DESC LIMIT 1) AS asked ON true
    WHERE answered.kind IN ('permission_answered', 'question_answered') AND answered.at >= $1
      AND ($2::text IS NULL OR tenant.name = $2)
    ORDER BY answered.at DESC LIMIT $3";

impl PostgresDatabase {
    /// Returns the answers of users since a time, the latest first.
    pub async fn user_answers(
        &self,
        since: UnixMillis,
        tenant: Option<&str>,
        limit: u32,
    ) -> Result<Vec<UserAnswer>, StorageError> {
        let query =
            || sqlx::query(ANSWERS_QUERY).bind(since.0 as i64).bind(tenant).bind(i64::from(limit));
        let answer = |row: &PgRow| {
            let fact = |body: Option<String>| serde_json::from_str(&body?).ok();
            let origin: Option<String> = row.try_get(4)?;
            Ok(UserAnswer {
                tenant: row.try_get(0)?,
                session: SessionId(row.try_get(1)?),
                title: row.try_get(2)?,
                at: UnixMillis(row.try_get::<i64, _>(3)? as u64),
                origin: origin.and_then(|origin| serde_json::from_str(&origin).ok()),
                answer: fact(row.try_get(5)?),
                question: fact(row.try_get(6)?),
            })
        };
        let rows = self.fetch_with_retries(query).await?;
        Ok(rows.iter().map(answer).collect::<Result<_, sqlx::Error>>()?)
    }
}
