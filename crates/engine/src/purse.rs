//! The purse: what a turn and all sessions it begins may spend together.
//!
//! It decides nothing but whether a request may be made now; what comes of a no, the session says.
//! Where tokens or money are bounded, one request is under way at a time among all of them, because
//! what a request takes is known only at its end: so the bound is passed by one request at most.

use crate::driver::{Shared, lock};
use crate::session::Limits;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_protocol::{Cost, Fact, Millis, Record, SessionId, Usage};
use windlass_storage::{Error, Log, read_all};

/// How many children are at work at once, in the whole family.
pub(crate) const AT_ONCE: usize = 8;

/// How many sessions are looked at to find out what a turn has spent.
const MOST_SESSIONS: usize = 1_000;

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spending {
    steps: u32,
    tokens: u64,
    cost: Cost,
}

impl Spending {
    fn add(&mut self, usage: &Usage, cost: Option<Cost>) {
        self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
        self.cost += cost.unwrap_or_default();
    }
}

/// What a turn and its children may spend, and have.
pub(crate) struct Purse {
    limits: Limits,
    state: Shared<State>,
    /// Where the end of a request has to be known before the next one.
    gate: Option<Arc<Semaphore>>,
    places: Arc<Semaphore>,
}

#[derive(Clone, Copy, Default)]
struct State {
    since: Millis,
    spent: Spending,
}

/// The right to make one request; given back when what it took is known.
pub(crate) type Entry = Option<OwnedSemaphorePermit>;

impl Purse {
    pub(crate) fn new(limits: Limits) -> Purse {
        let counted = limits.tokens.is_some() || limits.cost.is_some();
        Purse {
            limits,
            state: Shared::default(),
            gate: counted.then(|| Arc::new(Semaphore::new(1))),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// A turn began, and what it may spend is whole again.
    pub(crate) fn fill(&self, since: Millis) {
        *lock(&self.state) = State { since, spent: Spending::default() };
    }

    /// Goes on where the process before this one stopped.
    pub(crate) fn resume(&self, since: Millis, spent: Spending) {
        *lock(&self.state) = State { since, spent };
    }

    /// Waits until a request may be made; an error names the bound that was reached.
    pub(crate) async fn enter(&self, now: impl Fn() -> Millis) -> Result<Entry, String> {
        let entry = match &self.gate {
            // It is never closed.
            Some(gate) => Arc::clone(gate).acquire_owned().await.ok(),
            None => None,
        };
        let mut state = lock(&self.state);
        match self.reached(&state, now()) {
            Some(what) => Err(what),
            None => {
                state.spent.steps += 1;
                Ok(entry)
            }
        }
    }

    fn reached(&self, State { since, spent }: &State, now: Millis) -> Option<String> {
        let Limits { steps, tokens, cost, time_ms, .. } = self.limits;
        let over = "in one turn, its agents' among them";
        if spent.steps >= steps {
            return Some(format!("the limit of {steps} requests {over}"));
        }
        if let Some(most) = tokens.filter(|most| spent.tokens >= *most) {
            return Some(format!("the limit of {most} tokens {over}"));
        }
        if let Some(Cost(most)) = cost.filter(|most| spent.cost >= *most) {
            let dollars = most as f64 / 1e6;
            return Some(format!("the limit of ${dollars:.2} {over}"));
        }
        let late = time_ms.filter(|most| now.0.saturating_sub(since.0) >= *most);
        late.map(|most| format!("the limit of {} s for one turn", most.div_ceil(1000)))
    }

    /// Takes what a request took.
    pub(crate) fn spend(&self, usage: &Usage, cost: Option<Cost>) {
        lock(&self.state).spent.add(usage, cost);
    }

    /// What is left for a child: never more than for whoever begins it.
    pub(crate) fn left(&self, now: Millis) -> Limits {
        let State { since, spent } = *lock(&self.state);
        let passed = now.0.saturating_sub(since.0);
        let limits = self.limits;
        Limits {
            steps: limits.steps.saturating_sub(spent.steps),
            tokens: limits.tokens.map(|most| most.saturating_sub(spent.tokens)),
            cost: limits.cost.map(|Cost(most)| Cost(most.saturating_sub(spent.cost.0))),
            time_ms: limits.time_ms.map(|most| most.saturating_sub(passed)),
            ..limits
        }
    }

    /// A place for a child, if there is one.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }
}

/// Since when the turn under way has been, and what it and its children have spent, as logs tell.
pub(crate) async fn spent(
    log: &dyn Log,
    records: &[Record],
) -> Result<Option<(Millis, Spending)>, Error> {
    let begins = |record: &Record| matches!(record.fact, Fact::TurnStarted { .. });
    let Some(at) = records.iter().rposition(begins) else { return Ok(None) };
    let turn = records.get(at..).unwrap_or_default();
    let Some(since) = turn.first().map(|record| record.at) else { return Ok(None) };
    let mut spending = Spending::default();
    let mut sessions: Vec<SessionId> = Vec::new();
    count(turn, since, &mut spending, &mut sessions);
    let mut next = 0;
    while let Some(session) = sessions.get(next).copied().filter(|_| next < MOST_SESSIONS) {
        next += 1;
        count(&read_all(log, session, 0).await?, since, &mut spending, &mut sessions);
    }
    Ok(Some((since, spending)))
}

fn count(records: &[Record], since: Millis, spent: &mut Spending, sessions: &mut Vec<SessionId>) {
    for record in records.iter().filter(|record| record.at >= since) {
        if let Fact::StepEnded { usage, cost, .. } = &record.fact {
            spent.steps += 1;
            spent.add(usage, *cost);
        }
        if let Fact::Renamed { usage: Some(usage), cost, .. } = &record.fact {
            spent.steps += 1;
            spent.add(usage, *cost);
        }
        if let Fact::Spawned { session, .. } = &record.fact
            && !sessions.contains(session)
        {
            sessions.push(*session);
        }
    }
}
