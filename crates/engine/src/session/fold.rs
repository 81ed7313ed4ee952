//! The fold: how a fact changes the state. It is the only way, whether the fact was just decided
//! or read back from a log.

use super::Session;
use super::turn::{Call, Turn};
use windlass_protocol::{Fact, Finish, Outcome};

impl Session {
    /// The fold: the only way a fact changes the state.
    pub(super) fn record(&mut self, fact: &Fact) {
        self.head += 1;
        self.transcript.push(self.head, fact);
        self.files.push(self.head, fact);
        match fact {
            Fact::TurnStarted { turn, prompt } => {
                self.turns = *turn;
                self.turn = Some(Turn::new(*turn, prompt.is_some()));
            }
            Fact::TurnEnded { .. } => self.turn = None,
            Fact::Interrupted { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.interrupted = true;
                }
            }
            Fact::Opened { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::Prompted { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::ContextChanged { .. } => {}
            Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Called { .. } => {
                if let Some(turn) = &mut self.turn {
                    record_step(turn, fact);
                }
            }
            Fact::Asked { call: id, .. }
            | Fact::Answered { call: id, .. }
            | Fact::Started { call: id, .. }
            | Fact::Changing { call: id, .. }
            | Fact::Unchanged { call: id }
            | Fact::Settled { call: id, .. } => {
                let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(*id)) else { return };
                record_call(call, fact);
                if let Fact::Answered { answer, .. } = fact {
                    self.approved.record(call, answer);
                }
            }
        }
    }
}

fn record_step(turn: &mut Turn, fact: &Fact) {
    match fact {
        Fact::StepStarted { step, .. } => {
            (turn.steps, turn.step_open, turn.finish) = (*step, true, None);
            turn.calls.clear();
            turn.draft.clear();
            turn.draft_size = 0;
        }
        Fact::StepEnded { finish, .. } => {
            turn.step_open = false;
            turn.finish = Some(finish.clone()).filter(|finish| *finish != Finish::Lost);
            if !matches!(finish, Finish::Failed { .. } | Finish::Lost) {
                (turn.failures, turn.failing_since) = (0, None);
            }
        }
        Fact::Retrying { attempt, wait_ms, .. } => {
            (turn.failures, turn.wait_ms) = (*attempt, *wait_ms);
        }
        Fact::Called { call, tool, arguments, by, .. } => {
            turn.calls.push(Call::new(*call, tool.clone(), arguments.clone(), *by));
        }
        _ => {}
    }
}

fn record_call(call: &mut Call, fact: &Fact) {
    match fact {
        Fact::Asked { accesses, offer, .. } => {
            (call.asked, call.answer) = (Some(accesses.clone()), None);
            call.offer.clone_from(offer);
        }
        Fact::Answered { answer, .. } => call.answer = Some(answer.clone()),
        Fact::Started { attempt, read_only, accesses, .. } => {
            (call.attempts, call.read_only) = (*attempt, *read_only);
            call.accesses.clone_from(accesses);
        }
        Fact::Changing { changes, .. } => {
            call.changing.push(changes.clone());
        }
        Fact::Unchanged { .. } => drop(call.changing.pop()),
        Fact::Settled { outcome, .. } => {
            call.settled = true;
            call.denied = matches!(outcome, Outcome::Denied { .. });
        }
        _ => {}
    }
}
