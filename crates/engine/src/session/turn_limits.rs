//! Limits of a turn: requests, time, tokens and cost.
//!
//! They are checked before each model request and after each answer, so a turn exceeds a budget by
//! one step at max. A timer also checks the time in between.

use super::active_turn::CallStage;
use super::{EffectList, Session, SessionEffect, TurnLimits};
use serde_json::Value;
use std::sync::Arc;
use windlass_protocol::{Cost, FinishReason, TokenUsage, TurnEndReason};

/// Time that canceled calls get to stop after the time limit.
const CALL_STOP_GRACE_MS: u64 = 5_000;

/// Formats a cost in dollars, with at least two decimals.
fn format_dollars(cost: Cost) -> String {
    let cents = format!("{:.2}", cost.0 as f64 / 1e6);
    let exact = format!("{}", cost.0 as f64 / 1e6);
    if exact.len() > cents.len() { exact } else { cents }
}

impl Session {
    /// Returns the limits of the turn: those of the config and of its prompts.
    pub(crate) fn turn_limits(&self) -> TurnLimits {
        let prompt = self.turn.as_ref().map(|turn| turn.limits).unwrap_or_default();
        self.config.limits.with_prompt(prompt)
    }

    /// Returns the JSON Schema that the answer of the turn must match, if its prompt names one.
    pub(crate) fn answer_schema(&self) -> Option<Arc<Value>> {
        self.turn.as_ref()?.answer_schema.clone()
    }

    /// Returns the limit that the turn has reached, if any; the request limit is checked in
    /// `ask_model`.
    pub(super) fn limit_reached(&self) -> Option<String> {
        let turn = self.turn.as_ref().filter(|turn| turn.has_prompt)?;
        let limits = self.turn_limits();
        if let Some(max) = limits.tokens.filter(|max| turn.tokens >= *max) {
            return Some(format!("the limit of {max} tokens per turn"));
        }
        if let Some(max) = limits.cost.filter(|max| turn.cost >= *max) {
            return Some(format!("the limit of ${} per turn", format_dollars(max)));
        }
        let max = limits.time_ms.filter(|_| self.time_left() == Some(0))?;
        Some(format!("the limit of {} s per turn", max as f64 / 1e3))
    }

    /// Returns the time left for the turn in milliseconds, or `None` without a time limit.
    fn time_left(&self) -> Option<u64> {
        let turn = self.turn.as_ref().filter(|turn| turn.has_prompt)?;
        let elapsed = self.now.0.saturating_sub(turn.started_at.0);
        Some(self.turn_limits().time_ms?.saturating_sub(elapsed))
    }

    /// Requests a `TurnTimeout` for the end of the turn's time.
    pub(super) fn start_turn_timer(&self, out: &mut EffectList) {
        if let (Some(turn), Some(after_ms)) = (&self.turn, self.time_left()) {
            out.0.push(SessionEffect::StartTurnTimer { turn: turn.number, after_ms });
        }
    }

    /// Shifts `started_at`, so that the time in which no process ran the turn does not count.
    pub(super) fn skip_downtime(&mut self, now: windlass_protocol::UnixMillis) {
        let downtime = now.0.saturating_sub(self.now.0);
        if let Some(turn) = &mut self.turn {
            turn.started_at.0 = turn.started_at.0.saturating_add(downtime);
        }
    }

    pub(super) fn turn_timed_out(&mut self, turn: u32, out: &mut EffectList) {
        let Some(open) = self.turn.as_ref().filter(|open| open.number == turn) else { return };
        if open.limit_reached.is_some() {
            return self.abandon_turn(out);
        }
        match self.limit_reached() {
            Some(_) if open.interrupted => {}
            Some(limit) => self.stop_at_limit(limit, out),
            None => self.start_turn_timer(out),
        }
    }

    /// Stops a turn that has reached a limit. Running calls are canceled, other calls do not start.
    pub(super) fn stop_at_limit(&mut self, limit: String, out: &mut EffectList) {
        let Some(turn) = &mut self.turn else { return };
        turn.limit_reached = Some(limit);
        if turn.step_open {
            out.0.push(SessionEffect::CancelModel);
            return self.end_step(FinishReason::Interrupted, TokenUsage::default(), out);
        }
        let number = turn.number;
        let is_running = |stage: &CallStage| matches!(stage, CallStage::Running(_));
        if turn.open_calls().iter().any(|call| is_running(&call.stage)) {
            out.0
                .push(SessionEffect::StartTurnTimer { turn: number, after_ms: CALL_STOP_GRACE_MS });
        }
        self.stop_calls(&self.not_run_outcome(), out);
    }

    /// Returns the `TurnEndReason` of a turn that reached a limit.
    pub(super) fn limit_turn_end(&self) -> Option<TurnEndReason> {
        let limit = self.turn.as_ref()?.limit_reached.clone()?;
        Some(TurnEndReason::LimitReached { limit })
    }
}
