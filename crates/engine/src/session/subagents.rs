//! Subagents: sessions started by a call. `SubagentStarted` is recorded before they run, and they
//! share the budget of the turn.

use super::active_turn::{CallStage, TurnCall};
use super::{EffectList, Session, SessionEffect, SubagentStart};
use windlass_protocol::{Fact, FinishReason, TokenUsage, TurnEndReason};

impl Session {
    /// Records the subagent session of a call, then starts it. A call that had started one before a
    /// crash resumes that one.
    pub(super) fn on_subagent_requested(
        &mut self,
        turn: u32,
        subagent: SubagentStart,
        out: &mut EffectList,
    ) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let may_start = !open.interrupted;
        let is_running =
            |call: &&mut TurnCall| matches!(call.stage, CallStage::Running(_)) && may_start;
        let Some(call) = open.open_call_mut(subagent.call).filter(is_running) else { return };
        let earlier = call.subagent;
        let SubagentStart { call, session, agent, after } = subagent;
        if earlier.is_none() {
            self.emit(Fact::SubagentStarted { call, session, agent, after }, out);
        }
        let (session, resumed) = (earlier.unwrap_or(session), earlier.is_some());
        // The subagent works for the same turn, so the same limit applies to its calls.
        let allowed_calls = self.turn.as_ref().map(|turn| turn.allowed_calls.clone());
        let allowed_calls = allowed_calls.unwrap_or_default();
        out.0.push(SessionEffect::StartSubagent { call, session, resumed, allowed_calls });
    }

    /// Ends a turn whose shared `TurnBudget` is used up.
    pub(super) fn budget_exhausted(
        &mut self,
        turn: u32,
        step: u32,
        limit: String,
        out: &mut EffectList,
    ) {
        let is_current = |open: &&super::ActiveTurn| open.number == turn && open.steps == step;
        let Some(open) = self.turn.as_ref().filter(is_current) else { return };
        if !open.step_open {
            return;
        }
        let (finish_reason, usage, cost) = (FinishReason::Interrupted, TokenUsage::default(), None);
        self.emit(Fact::StepEnded { turn, step, finish_reason, usage, cost }, out);
        self.end_turn(TurnEndReason::LimitReached { limit }, out);
    }
}
