//! Resuming a session that was opened with work under way: `SessionInput::Resume`.

use super::active_turn::CallStage;
use super::{EffectList, Session, SessionEffect};
use windlass_protocol::{Fact, Fault, FinishReason, StepPurpose, TokenUsage};

impl Session {
    /// Continues from the end of the log.
    pub(super) fn resume(&mut self, out: &mut EffectList) {
        // A revocation reaches only subagents that run, so approvals last no longer than that.
        if self.transcript.parent.is_some() && !self.approvals.is_empty() {
            self.emit(Fact::ApprovalsRevoked, out);
        }
        let Some(turn) = &mut self.turn else { return self.start_next_turn(out) };
        if turn.step_open {
            let (turn, step) = (turn.number, turn.steps);
            let (finish_reason, usage, cost) =
                (FinishReason::ProcessDied, TokenUsage::default(), None);
            self.emit(Fact::StepEnded { turn, step, finish_reason, usage, cost }, out);
            return self.resume(out);
        }
        let number = turn.number;
        for call in turn.open_calls_mut() {
            // A call that may have changed something is not repeated but checked (`Reconcile`); a
            // read-only call is repeated.
            if call.attempts > 0 && !call.read_only {
                call.stage = CallStage::Reconciling;
                let (accesses, changes) = (call.accesses.clone(), call.recorded_changes.concat());
                let (turn, call) = (number, call.id);
                out.0.push(SessionEffect::Reconcile { turn, call, accesses, changes });
            } else if let Some(outcome) = call.hook_refusal.clone() {
                call.stage = CallStage::Done(outcome);
            }
        }
        if turn.interrupted {
            return self.abandon_turn(out);
        }
        let has_open_calls = !turn.open_calls().is_empty();
        if let Some(limit) = self.limit_reached().filter(|_| has_open_calls) {
            if let Some(turn) = &mut self.turn {
                turn.limit_reached = Some(limit);
            }
            return self.abandon_turn(out);
        }
        self.start_turn_timer(out);
        let Some(turn) = &self.turn else { return };
        if turn.calls.is_empty() {
            // The process died between two steps, or after the last one.
            return match turn.last_finish.clone() {
                Some(FinishReason::Failed { fault: Fault::ContextOverflow { .. } }) => {
                    self.on_context_overflow(out)
                }
                Some(_) if turn.failures == 0 && turn.purpose == StepPurpose::Summary => {
                    self.retry_step(out);
                }
                Some(finish) if turn.failures == 0 => self.conclude_turn(finish, out),
                // The turn was waiting to retry, perhaps because the provider asked for it, so it
                // still waits.
                Some(_) => {
                    let (turn, step, after_ms) = (turn.number, turn.steps, turn.wait_ms);
                    out.0.push(SessionEffect::RetryAfter { turn, step, after_ms });
                }
                None => self.retry_step(out),
            };
        }
        self.start_calls(out);
    }
}
