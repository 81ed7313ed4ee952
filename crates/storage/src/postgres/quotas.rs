//! Limits of tenants, and what their sessions use on all nodes.
//!
//! Each node has a row for each tenant and day, with all that it has used: writing it twice changes
//! nothing. The sum over nodes is a few seconds old, so limits are exceeded by what is used meanwhile.

use super::claim_registry::TenantId;
use super::nodes::PostgresNode;
use crate::StorageError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use windlass_protocol::Cost;

/// Limits of a tenant. An absent one does not limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantLimits {
    /// Sessions that are open at once, on all nodes.
    pub open_sessions: Option<u64>,
    /// Requests to models.
    pub steps_per_day: Option<u64>,
    pub tokens_per_day: Option<u64>,
    pub cost_per_day: Option<Cost>,
    pub cost_per_month: Option<Cost>,
}

/// Usage of models by sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    pub steps: u64,
    pub tokens: u64,
    pub cost: Cost,
}

/// Usage of a tenant on the nodes besides this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherUsage {
    /// On the day that was asked for.
    pub day: UsageCounts,
    /// In the month of that day.
    pub month_cost: Cost,
    pub open_sessions: u64,
}

/// A day, counted from 1970-01-01 in UTC.
pub type UtcDay = u32;

impl AddAssign for UsageCounts {
    fn add_assign(&mut self, other: UsageCounts) {
        self.steps += other.steps;
        self.tokens += other.tokens;
        self.cost += other.cost;
    }
}

const SAVE_QUERY: &str = "
    INSERT INTO usage (tenant, day, node, steps, tokens, cost_micros)
    SELECT tenant, date '1970-01-01' + day, $1, steps, tokens, cost
    FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[])
      AS used (tenant, day, steps, tokens, cost)
    ON CONFLICT (tenant, day, node) DO UPDATE SET steps = excluded.steps,
      tokens = excluded.tokens, cost_micros = excluded.cost_micros";

const USAGE_QUERY: &str = "
    SELECT tenant, coalesce(sum(steps) FILTER (WHERE day = today), 0)::bigint,
      coalesce(sum(tokens) FILTER (WHERE day = today), 0)::bigint,
      coalesce(sum(cost_micros) FILTER (WHERE day = today), 0)::bigint, sum(cost_micros)::bigint
    FROM usage, (SELECT date '1970-01-01' + $2::int AS today) AS date
    WHERE node <> $1 AND day >= date_trunc('month', today) AND day <= today
    GROUP BY tenant";

const OPEN_QUERY: &str = "
    SELECT tenant, count(*) FROM session
    WHERE node IS NOT NULL AND node <> $1 AND parent IS NULL GROUP BY tenant";

impl PostgresNode {
    /// Stores all that this node has used on some days.
    pub async fn save_usage(
        &self,
        usage: &[(TenantId, UtcDay, UsageCounts)],
    ) -> Result<(), StorageError> {
        if usage.is_empty() {
            return Ok(());
        }
        let column = |value: fn(&UsageCounts) -> u64| -> Vec<i64> {
            usage.iter().map(|(.., counts)| value(counts) as i64).collect()
        };
        let tenants: Vec<uuid::Uuid> = usage.iter().map(|(tenant, ..)| tenant.0).collect();
        let days: Vec<i32> = usage.iter().map(|(_, day, _)| *day as i32).collect();
        let query = || {
            sqlx::query(SAVE_QUERY)
                .bind(self.state.id)
                .bind(&tenants)
                .bind(&days)
                .bind(column(|counts| counts.steps))
                .bind(column(|counts| counts.tokens))
                .bind(column(|counts| counts.cost.0))
        };
        self.state.database.fetch_with_retries(query).await?;
        Ok(())
    }

    /// Returns what the other nodes use, by tenant.
    pub async fn usage_of_others(
        &self,
        day: UtcDay,
    ) -> Result<BTreeMap<TenantId, OtherUsage>, StorageError> {
        let database = &self.state.database;
        let mut all: BTreeMap<TenantId, OtherUsage> = BTreeMap::new();
        let query = || sqlx::query(USAGE_QUERY).bind(self.state.id).bind(day as i32);
        let number = |row: &PgRow, column: usize| row.try_get::<i64, _>(column).map(|n| n as u64);
        for row in database.fetch_with_retries(query).await? {
            let usage = all.entry(TenantId(row.try_get(0)?)).or_default();
            let cost = Cost(number(&row, 3)?);
            usage.day = UsageCounts { steps: number(&row, 1)?, tokens: number(&row, 2)?, cost };
            usage.month_cost = Cost(number(&row, 4)?);
        }
        for row in
            database.fetch_with_retries(|| sqlx::query(OPEN_QUERY).bind(self.state.id)).await?
        {
            let usage = all.entry(TenantId(row.try_get(0)?)).or_default();
            usage.open_sessions = number(&row, 1)?;
        }
        Ok(all)
    }
}
