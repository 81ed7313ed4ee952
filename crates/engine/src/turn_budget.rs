//! The budget that a turn shares with its subagents: requests, tokens, cost and time.
//!
//! `TurnBudget` only decides if a request may start now; the session decides how to react to a
//! refusal. If tokens or cost are limited, only one request of the whole family runs at a time,
//! because the usage of a request is known only when it ends. So a limit is exceeded by one request
//! at most.

use crate::clock_and_ids::{duration_millis, steady_now};
use crate::session::TurnLimits;
use crate::shared_mutex::SharedMutex;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{Cost, Fact, FactRecord, SessionId, TokenUsage, UnixMillis};
use windlass_storage::{Log, StorageError, read_all};

/// Maximum number of subagents that run at once, in all sessions that share a `TurnBudget`.
pub(crate) const MAX_CONCURRENT_SUBAGENTS: usize = 8;

/// Maximum number of subagent sessions that `load_turn_spend` reads.
const MAX_COUNTED_SESSIONS: usize = 1_000;

/// Requests, tokens and cost used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spend {
    steps: u32,
    tokens: u64,
    cost: Cost,
}

impl Spend {
    fn add_usage(&mut self, usage: &TokenUsage, cost: Option<Cost>) {
        self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
        self.cost += cost.unwrap_or_default();
    }
}

/// Limits that sessions share, also those of other processes.
pub trait SharedQuota: Send + Sync {
    /// Counts a request that is about to start. The error names the limit that was reached.
    fn start_request(&self) -> Result<(), String>;

    /// Adds the usage of a finished request.
    fn add_usage(&self, usage: &TokenUsage, cost: Option<Cost>);
}

/// The `TurnLimits` of a turn, and the `Spend` of the turn and its subagents.
pub(crate) struct TurnBudget {
    quota: Option<Arc<dyn SharedQuota>>,
    state: SharedMutex<BudgetState>,
    /// Serializes requests while `tokens` or `cost` is limited: the usage of one must be known
    /// before the next starts.
    request_gate: Arc<Semaphore>,
    subagent_slots: Arc<Semaphore>,
}

#[derive(Clone, Copy)]
struct BudgetState {
    limits: TurnLimits,
    /// `None` before the first turn.
    turn_started: Option<Instant>,
    /// Time that earlier processes worked on the turn.
    earlier: Duration,
    spent: Spend,
}

impl BudgetState {
    fn elapsed_ms(&self) -> u64 {
        let now = steady_now();
        let current = self.turn_started.map(|start| now.saturating_duration_since(start));
        duration_millis(self.earlier + current.unwrap_or_default())
    }
}

/// Permission to make one request; dropped when the usage of the request is known.
pub(crate) type RequestPermit = Option<OwnedSemaphorePermit>;

impl TurnBudget {
    pub(crate) fn new(limits: TurnLimits, quota: Option<Arc<dyn SharedQuota>>) -> TurnBudget {
        let (earlier, spent) = Default::default();
        let state = BudgetState { limits, turn_started: None, earlier, spent };
        TurnBudget {
            quota,
            state: Arc::new(Mutex::new(state)),
            request_gate: Arc::new(Semaphore::new(1)),
            subagent_slots: Arc::new(Semaphore::new(MAX_CONCURRENT_SUBAGENTS)),
        }
    }

    /// Clears the spend at the start of a turn.
    pub(crate) fn reset(&self, limits: TurnLimits) {
        self.resume(limits, Duration::ZERO, Spend::default());
    }

    /// Restores the spend of a turn that a previous process started: see `load_turn_spend`.
    pub(crate) fn resume(&self, limits: TurnLimits, earlier: Duration, spent: Spend) {
        let turn_started = Some(steady_now());
        *lock(&self.state) = BudgetState { limits, turn_started, earlier, spent };
    }

    /// Waits until a request may start; the error names the limit that was reached.
    pub(crate) async fn acquire_request(&self) -> Result<RequestPermit, String> {
        let limits = lock(&self.state).limits;
        let permit = match limits.tokens.is_some() || limits.cost.is_some() {
            // `acquire_owned` cannot fail: the semaphore is never closed.
            true => Arc::clone(&self.request_gate).acquire_owned().await.ok(),
            false => None,
        };
        let mut state = lock(&self.state);
        match self.limit_reached(&state) {
            Some(limit) => Err(limit),
            None => {
                if let Some(quota) = &self.quota {
                    quota.start_request()?;
                }
                state.spent.steps += 1;
                Ok(permit)
            }
        }
    }

    fn limit_reached(&self, state: &BudgetState) -> Option<String> {
        let spent = &state.spent;
        let TurnLimits { steps, tokens, cost, time_ms, .. } = state.limits;
        let scope = "per turn (including subagents)";
        if spent.steps >= steps {
            return Some(format!("the limit of {steps} requests {scope}"));
        }
        if let Some(max) = tokens.filter(|max| spent.tokens >= *max) {
            return Some(format!("the limit of {max} tokens {scope}"));
        }
        if let Some(Cost(max)) = cost.filter(|max| spent.cost >= *max) {
            let dollars = max as f64 / 1e6;
            return Some(format!("the limit of ${dollars:.2} {scope}"));
        }
        let reached = time_ms.filter(|max| state.elapsed_ms() >= *max);
        reached.map(|max| format!("the limit of {} s per turn", max.div_ceil(1000)))
    }

    /// Adds the `TokenUsage` of a finished request.
    pub(crate) fn spend(&self, usage: &TokenUsage, cost: Option<Cost>) {
        lock(&self.state).spent.add_usage(usage, cost);
        if let Some(quota) = &self.quota {
            quota.add_usage(usage, cost);
        }
    }

    /// Returns the limits that remain for a subagent: never more than its parent has.
    pub(crate) fn remaining(&self) -> TurnLimits {
        let state = *lock(&self.state);
        let (spent, elapsed) = (state.spent, state.elapsed_ms());
        let limits = state.limits;
        TurnLimits {
            steps: limits.steps.saturating_sub(spent.steps),
            tokens: limits.tokens.map(|max| max.saturating_sub(spent.tokens)),
            cost: limits.cost.map(|Cost(max)| Cost(max.saturating_sub(spent.cost.0))),
            time_ms: limits.time_ms.map(|max| max.saturating_sub(elapsed)),
            ..limits
        }
    }

    /// Reserves one of the `MAX_CONCURRENT_SUBAGENTS` slots, or returns `None` if all are taken.
    pub(crate) fn acquire_subagent_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.subagent_slots).try_acquire_owned().ok()
    }
}

/// Reads from the logs how long the current turn has run, and the `Spend` of the turn and its
/// subagents.
pub(crate) async fn load_turn_spend(
    log: &dyn Log,
    records: &[FactRecord],
) -> Result<Option<(Duration, Spend)>, StorageError> {
    let is_start = |record: &FactRecord| matches!(record.fact, Fact::TurnStarted { .. });
    let Some(start) = records.iter().rposition(is_start) else { return Ok(None) };
    let turn = records.get(start..).unwrap_or_default();
    let Some(since) = turn.first().map(|record| record.at) else { return Ok(None) };
    let mut spent = Spend::default();
    let mut sessions: Vec<SessionId> = Vec::new();
    add_records(turn, since, &mut spent, &mut sessions);
    let mut next = 0;
    while let Some(session) = sessions.get(next).copied().filter(|_| next < MAX_COUNTED_SESSIONS) {
        next += 1;
        add_records(&read_all(log, session, 0).await?, since, &mut spent, &mut sessions);
    }
    let last = turn.last().map_or(since, |record| record.at);
    Ok(Some((Duration::from_millis(last.0.saturating_sub(since.0)), spent)))
}

fn add_records(
    records: &[FactRecord],
    since: UnixMillis,
    spent: &mut Spend,
    sessions: &mut Vec<SessionId>,
) {
    for record in records.iter().filter(|record| record.at >= since) {
        if let Fact::StepEnded { usage, cost, .. } | Fact::SideRequestEnded { usage, cost, .. } =
            &record.fact
        {
            spent.steps += 1;
            spent.add_usage(usage, *cost);
        }
        if let Fact::SubagentStarted { session, .. } = &record.fact
            && !sessions.contains(session)
        {
            sessions.push(*session);
        }
    }
}
