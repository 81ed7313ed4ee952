//! Interrupting a turn at the user's request: `SessionOp::Interrupt`, and a second one that abandons it.

use super::active_turn::{ActiveTurn, CallStage};
use super::{EffectList, Session, SessionEffect};
use windlass_protocol::{CallOutcome, Fact, FinishReason, TokenUsage};

impl Session {
    pub(super) fn interrupt(&mut self, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        if turn.interrupted {
            return self.abandon_turn(out);
        }
        let (number, step_open) = (turn.number, turn.step_open);
        if step_open {
            out.0.push(SessionEffect::CancelModel);
        }
        self.emit(Fact::TurnInterrupted { turn: number }, out);
        if step_open {
            return self.end_step(FinishReason::Interrupted, TokenUsage::default(), out);
        }
        self.stop_calls(&self.not_run_outcome(), out);
    }

    /// Returns `CallOutcome::Interrupted` for a call that did not start because its turn was stopped.
    pub(super) fn not_run_outcome(&self) -> CallOutcome {
        let limit = self.turn.as_ref().and_then(|turn| turn.limit_reached.as_ref());
        let text = match limit {
            Some(limit) => format!("Not run: the turn reached {limit}."),
            None => "Interrupted before it ran; nothing was done.".to_owned(),
        };
        CallOutcome::Interrupted { text }
    }

    /// Cancels running calls, and settles the calls that have not started with `outcome`.
    pub(super) fn stop_calls(&mut self, outcome: &CallOutcome, out: &mut EffectList) {
        self.reject_unstarted_calls(outcome, out);
        for call in self.turn.iter_mut().flat_map(ActiveTurn::open_calls_mut) {
            match call.stage {
                CallStage::Running(_) => out.0.push(SessionEffect::CancelTool { call: call.id }),
                // Started before a crash and not restarted since: `ResultUnknown`, because its
                // result is lost.
                CallStage::Preparing | CallStage::AwaitingPermission(_) if call.attempts > 0 => {
                    out.0.push(SessionEffect::CancelTool { call: call.id });
                    call.stage = CallStage::Done(CallOutcome::ResultUnknown);
                }
                // It settles by itself once `Reconcile` has determined its outcome.
                CallStage::Reconciling => {}
                CallStage::NotStarted
                | CallStage::Preparing
                | CallStage::AwaitingPermission(_)
                | CallStage::Done(_) => {}
            }
        }
        self.advance_calls(out);
    }

    /// Ends an interrupted turn without waiting for running calls.
    pub(super) fn abandon_turn(&mut self, out: &mut EffectList) {
        let not_run = self.not_run_outcome();
        for call in self.turn.iter_mut().flat_map(ActiveTurn::open_calls_mut) {
            if !matches!(call.stage, CallStage::Reconciling | CallStage::Done(_)) {
                call.stage = CallStage::Done(if call.attempts > 0 {
                    CallOutcome::ResultUnknown
                } else {
                    not_run.clone()
                });
            }
        }
        self.advance_calls(out);
    }

    /// Settles every call that has never started with `outcome`.
    pub(super) fn reject_unstarted_calls(&mut self, outcome: &CallOutcome, out: &mut EffectList) {
        for call in self.turn.iter_mut().flat_map(ActiveTurn::open_calls_mut) {
            let is_unstarted = matches!(
                call.stage,
                CallStage::NotStarted | CallStage::Preparing | CallStage::AwaitingPermission(_)
            );
            let is_denied = call.answer.as_ref().is_some_and(|answer| !answer.is_yes());
            if is_unstarted && call.attempts == 0 && !is_denied {
                out.0.push(SessionEffect::CancelTool { call: call.id });
                call.stage = CallStage::Done(outcome.clone());
            }
        }
    }
}
