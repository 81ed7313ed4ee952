//! The limits of a tenant, which its sessions on all nodes share.

use crate::now_millis;
use chrono::{Datelike, NaiveDate};
use std::collections::BTreeMap;
use std::sync::Mutex;
use windlass_engine::SharedQuota;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{Cost, TokenUsage, UnixMillis};
use windlass_storage::postgres::{OtherUsage, TenantId, TenantLimits, UsageCounts, UtcDay};

/// Days from the first day of the common era to 1970-01-01.
const EPOCH_DAYS: i32 = 719_163;

/// The limits of a tenant, and what it has used.
pub(crate) struct TenantQuota {
    pub(crate) tenant: TenantId,
    name: String,
    state: Mutex<QuotaState>,
}

#[derive(Default)]
struct QuotaState {
    limits: TenantLimits,
    /// Usage of this node, by day.
    own: BTreeMap<UtcDay, UsageCounts>,
    /// The days that have changed since they were stored.
    unsaved: Vec<UtcDay>,
    others: OtherUsage,
    /// The day of `others`.
    others_day: UtcDay,
}

/// Returns the day in UTC.
pub(crate) fn today() -> UtcDay {
    u32::try_from(now_millis().0 / UnixMillis::PER_DAY).unwrap_or(u32::MAX)
}

impl TenantQuota {
    pub(crate) fn new(tenant: TenantId, name: &str) -> TenantQuota {
        TenantQuota { tenant, name: name.to_owned(), state: Mutex::default() }
    }

    /// Sets the limits, and what the other nodes have used until a moment ago.
    pub(crate) fn update(&self, limits: TenantLimits, others: OtherUsage, day: UtcDay) {
        let mut state = lock(&self.state);
        (state.limits, state.others, state.others_day) = (limits, others, day);
    }

    /// Takes what is to be stored: the days that have changed, with all that was used.
    pub(crate) fn take_unsaved(&self) -> Vec<(TenantId, UtcDay, UsageCounts)> {
        let mut state = lock(&self.state);
        let days = std::mem::take(&mut state.unsaved);
        let used = |day: UtcDay| Some((self.tenant, day, *state.own.get(&day)?));
        days.into_iter().filter_map(used).collect()
    }

    /// Notes that days could not be stored.
    pub(crate) fn put_back(&self, days: impl Iterator<Item = UtcDay>) {
        lock(&self.state).unsaved.extend(days);
    }

    /// Returns the limit of open sessions if it is reached, with those that this node has open.
    pub(crate) fn session_limit_reached(&self, own: usize) -> Option<u64> {
        let state = lock(&self.state);
        let max = state.limits.open_sessions?;
        (own as u64 + state.others.open_sessions >= max).then_some(max)
    }
}

impl QuotaState {
    fn change(&mut self, change: impl FnOnce(&mut UsageCounts)) {
        let day = today();
        change(self.own.entry(day).or_default());
        if !self.unsaved.contains(&day) {
            self.unsaved.push(day);
        }
    }

    /// Returns what all nodes have used on a day, and the cost of its month.
    fn used(&self, day: UtcDay) -> (UsageCounts, Cost) {
        let mut used = self.own.get(&day).copied().unwrap_or_default();
        let month_of = |day: UtcDay| {
            let days = i32::try_from(day).ok().and_then(|day| day.checked_add(EPOCH_DAYS));
            let date = days.and_then(NaiveDate::from_num_days_from_ce_opt);
            date.map(|date| (date.year(), date.month()))
        };
        let month = month_of(day);
        let mut month_cost = Cost::default();
        for (_, counts) in self.own.iter().filter(|(own, _)| month_of(**own) == month) {
            month_cost += counts.cost;
        }
        if self.others_day == day {
            used += self.others.day;
        }
        if month_of(self.others_day) == month {
            month_cost += self.others.month_cost;
        }
        (used, month_cost)
    }
}

impl SharedQuota for TenantQuota {
    fn start_request(&self) -> Result<(), String> {
        let mut state = lock(&self.state);
        let limits = state.limits;
        let (used, month_cost) = state.used(today());
        let reached = |used: u64, max: Option<u64>| max.filter(|max| used >= *max);
        let dollars = |Cost(micros): Cost| format!("${:.2}", micros as f64 / 1e6);
        let is_spent = |used: Cost, max: Option<Cost>| max.filter(|max| used >= *max);
        let limit = if let Some(max) = reached(used.steps, limits.steps_per_day) {
            Some(format!("{max} requests per day"))
        } else if let Some(max) = reached(used.tokens, limits.tokens_per_day) {
            Some(format!("{max} tokens per day"))
        } else if let Some(max) = is_spent(used.cost, limits.cost_per_day) {
            Some(format!("{} per day", dollars(max)))
        } else {
            let max = is_spent(month_cost, limits.cost_per_month);
            max.map(|max| format!("{} per month", dollars(max)))
        };
        if let Some(limit) = limit {
            return Err(format!("the limit of {limit} of the tenant {}", self.name));
        }
        state.change(|counts| counts.steps += 1);
        Ok(())
    }

    fn add_usage(&self, usage: &TokenUsage, cost: Option<Cost>) {
        lock(&self.state).change(|counts| {
            counts.tokens = counts.tokens.saturating_add(usage.input).saturating_add(usage.output);
            counts.cost += cost.unwrap_or_default();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{TenantQuota, today};
    use windlass_engine::SharedQuota;
    use windlass_protocol::{Cost, TokenUsage};
    use windlass_storage::postgres::{OtherUsage, TenantId, TenantLimits, UsageCounts};

    fn quota(limits: TenantLimits, others: OtherUsage) -> TenantQuota {
        let quota = TenantQuota::new(TenantId(uuid::Uuid::nil()), "red");
        quota.update(limits, others, today());
        quota
    }

    #[test]
    fn requests_of_all_nodes_count_against_the_limit_of_a_day() {
        let limits = TenantLimits { steps_per_day: Some(5), ..TenantLimits::default() };
        let day = UsageCounts { steps: 3, ..UsageCounts::default() };
        let quota = quota(limits, OtherUsage { day, ..OtherUsage::default() });
        assert!(quota.start_request().is_ok());
        assert!(quota.start_request().is_ok());
        let reached = quota.start_request().unwrap_err();
        assert_eq!(reached, "the limit of 5 requests per day of the tenant red");
        // What the others used yesterday does not count today.
        quota.update(limits, OtherUsage { day, ..OtherUsage::default() }, today() - 1);
        assert!(quota.start_request().is_ok());
    }

    #[test]
    fn tokens_and_cost_are_limited_once_they_are_known() {
        let usage = TokenUsage { input: 60, output: 40, ..TokenUsage::default() };
        for (limits, message) in [
            (
                TenantLimits { tokens_per_day: Some(100), ..TenantLimits::default() },
                "the limit of 100 tokens per day of the tenant red",
            ),
            (
                TenantLimits { cost_per_day: Some(Cost(1_500_000)), ..TenantLimits::default() },
                "the limit of $1.50 per day of the tenant red",
            ),
            (
                TenantLimits { cost_per_month: Some(Cost(1_500_000)), ..TenantLimits::default() },
                "the limit of $1.50 per month of the tenant red",
            ),
        ] {
            let quota = quota(limits, OtherUsage::default());
            assert!(quota.start_request().is_ok());
            assert!(quota.start_request().is_ok(), "its usage is not known yet");
            quota.add_usage(&usage, Some(Cost(1_500_000)));
            assert_eq!(quota.start_request().unwrap_err(), message);
        }
    }

    #[test]
    fn what_is_stored_is_all_that_the_node_has_used() {
        let quota = quota(TenantLimits::default(), OtherUsage::default());
        let steps = |quota: &TenantQuota| {
            let unsaved = quota.take_unsaved();
            unsaved.iter().map(|(_, day, counts)| (*day, counts.steps)).collect::<Vec<_>>()
        };
        quota.start_request().unwrap();
        quota.start_request().unwrap();
        assert_eq!(steps(&quota), [(today(), 2)]);
        assert!(steps(&quota).is_empty());
        quota.start_request().unwrap();
        assert_eq!(steps(&quota), [(today(), 3)]);
        quota.put_back([today()].into_iter());
        assert_eq!(steps(&quota), [(today(), 3)]);
    }

    #[test]
    fn open_sessions_of_all_nodes_count() {
        let limits = TenantLimits { open_sessions: Some(3), ..TenantLimits::default() };
        let quota = quota(limits, OtherUsage { open_sessions: 2, ..OtherUsage::default() });
        assert_eq!(quota.session_limit_reached(0), None);
        assert_eq!(quota.session_limit_reached(1), Some(3));
    }
}
