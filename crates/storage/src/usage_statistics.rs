//! Usage statistics over all sessions: one query that returns a few fields of each request, call
//! and prompt, folded in Rust.
//!
//! SQLite returns one row per session, because each row is a message between two threads. It skips
//! sessions that have not changed in the period by their own row.

use crate::{SqliteLog, StorageError};
use sqlx::Row;
use std::collections::BTreeSet;
use windlass_protocol::report::{UsageStatistics, UsageTotals};
use windlass_protocol::{Cost, TokenUsage, UnixMillis};

/// Separates facts; `FIELD_SEPARATOR` separates their fields. `->` returns JSON, in which neither
/// occurs.
const FACT_SEPARATOR: char = '\u{1e}';
const FIELD_SEPARATOR: char = '\u{1f}';

/// Selects for each session its folder, if it is a subagent's, and its facts about usage: kind,
/// time, a name and the numbers. Large facts are stored as blobs and have no `body`;
/// a damaged one counts as empty.
const USAGE_QUERY: &str = "
    SELECT session.workspace, session.parent IS NOT NULL, CAST(group_concat(
        concat_ws(char(31), kind, at,
            CASE kind WHEN 'tool_called' THEN ifnull(body -> '$.tool', '\"(large call)\"')
                      ELSE ifnull(body -> '$.model', '\"\"') END,
            ifnull(body -> '$.usage', ''), ifnull(body -> '$.cost', '')),
        char(30) ORDER BY seq) AS BLOB)
    FROM session JOIN (
        SELECT session, seq, at, kind, iif(json_valid(body), body, NULL) AS body FROM event
    ) AS event ON event.session = session.id
    WHERE session.changed_at >= ?1
      AND kind IN ('step_started', 'step_ended', 'side_request_ended', 'tool_called',
                   'prompt_submitted', 'session_forked')
    GROUP BY session.id";

impl SqliteLog {
    /// Returns the usage since a time. `day_of` names the day of a time, as `YYYY-MM-DD`.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub async fn usage_statistics(
        &self,
        since: UnixMillis,
        day_of: impl Fn(UnixMillis) -> String,
    ) -> Result<UsageStatistics, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query(USAGE_QUERY)
            .bind(i64::try_from(since.0).unwrap_or(i64::MAX))
            .fetch_all(&mut *connection)
            .await?;
        drop(connection);
        let mut statistics = UsageStatistics::default();
        for row in rows {
            let folder: String = row.try_get(0)?;
            let is_subagent: bool = row.try_get(1)?;
            let facts: Vec<u8> = row.try_get(2)?;
            let facts = String::from_utf8_lossy(&facts);
            let session = SessionUsage { folder: &folder, is_subagent, since };
            session.add_to(&mut statistics, &facts, &day_of);
        }
        Ok(statistics)
    }
}

/// The session of the facts that are added up.
struct SessionUsage<'a> {
    folder: &'a str,
    is_subagent: bool,
    since: UnixMillis,
}

/// The fields of a fact from `USAGE_QUERY`.
struct UsageFact<'a> {
    kind: &'a str,
    at: UnixMillis,
    name: String,
    usage: TokenUsage,
    cost: Cost,
}

impl<'a> UsageFact<'a> {
    fn parse(text: &'a str) -> Option<UsageFact<'a>> {
        let mut fields = text.split(FIELD_SEPARATOR);
        let (kind, at) = (fields.next()?, fields.next()?.parse().ok()?);
        let name = serde_json::from_str(fields.next()?).unwrap_or_default();
        let usage = serde_json::from_str(fields.next()?).unwrap_or_default();
        let cost = serde_json::from_str(fields.next()?).unwrap_or_default();
        Some(UsageFact { kind, at: UnixMillis(at), name, usage, cost })
    }
}

impl SessionUsage<'_> {
    fn add_to(
        &self,
        statistics: &mut UsageStatistics,
        facts: &str,
        day_of: &impl Fn(UnixMillis) -> String,
    ) {
        let facts: Vec<UsageFact<'_>> =
            facts.split(FACT_SEPARATOR).filter_map(UsageFact::parse).collect();
        // Facts before a fork are copies of another session's.
        let copied = facts.iter().rposition(|fact| fact.kind == "session_forked");
        let mut active_days = BTreeSet::new();
        let mut used_models = BTreeSet::new();
        let mut model = String::new();
        for fact in facts.into_iter().skip(copied.map_or(0, |index| index + 1)) {
            if fact.kind == "step_started" {
                model = fact.name;
                continue;
            }
            if fact.at < self.since {
                continue;
            }
            let day = day_of(fact.at);
            let mut change = UsageTotals::default();
            let mut used_model = None;
            match fact.kind {
                "step_ended" | "side_request_ended" => {
                    (change.requests, change.usage, change.cost) = (1, fact.usage, fact.cost);
                    used_model = Some(match fact.kind {
                        "step_ended" => model.clone(),
                        _ => fact.name,
                    });
                }
                "tool_called" => {
                    change.tool_calls = 1;
                    *statistics.tools.entry(fact.name).or_default() += 1;
                }
                "prompt_submitted" if !self.is_subagent => change.prompts = 1,
                _ => continue,
            }
            let is_first = active_days.is_empty();
            let is_new_day = active_days.insert(day.clone());
            let count = |is_new: bool| u64::from(is_new && !self.is_subagent);
            let with_sessions = |is_new| UsageTotals { sessions: count(is_new), ..change };
            add_totals(&mut statistics.total, with_sessions(is_first));
            add_totals(
                statistics.folders.entry(self.folder.to_owned()).or_default(),
                with_sessions(is_first),
            );
            add_totals(statistics.days.entry(day).or_default(), with_sessions(is_new_day));
            if let Some(used_model) = used_model {
                let is_new = used_models.insert(used_model.clone());
                add_totals(statistics.models.entry(used_model).or_default(), with_sessions(is_new));
            }
        }
    }
}

fn add_totals(totals: &mut UsageTotals, change: UsageTotals) {
    totals.sessions += change.sessions;
    totals.prompts += change.prompts;
    totals.requests += change.requests;
    totals.tool_calls += change.tool_calls;
    totals.usage += change.usage;
    totals.cost += change.cost;
}
