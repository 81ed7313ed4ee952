//! The fold: how a fact changes the state. It is the only way, whether the fact was just decided
//! or read back from a log.

use super::approve::Approved;
use super::turn::{Call, Turn};
use super::{Session, hooked, steer};
use windlass_protocol::{Fact, Fault, Finish, Outcome, Purpose};

impl Session {
    /// The fold: the only way a fact changes the state.
    pub(super) fn record(&mut self, fact: &Fact) {
        self.head += 1;
        self.transcript.push(self.head, fact);
        self.files.push(self.head, fact);
        self.gauge.record(fact, &self.transcript);
        self.outline_fact(fact);
        self.track.push(self.head, fact);
        match fact {
            Fact::TurnStarted { turn, prompt } => {
                self.turns = *turn;
                self.turn = Some(Turn::new(*turn, prompt.is_some(), self.now));
            }
            Fact::TurnEnded { .. } => self.turn = None,
            // What was allowed there was allowed to another session, perhaps by another person.
            Fact::Forked { .. } => self.approved = Approved::default(),
            Fact::Interrupted { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.interrupted = true;
                }
            }
            // Some of what the model was told may be out of its sight.
            Fact::Compacted { .. } => self.told = None,
            Fact::Reverted { .. } => {
                self.told = None;
                self.mode_untold = self.forgot_mode();
            }
            Fact::ModeChanged { .. } => self.mode_untold = true,
            Fact::Renamed { .. } => self.named = true,
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::Pruned { .. }
            | Fact::Steered { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::Reasoned { .. }
            | Fact::Hooked { call: None, .. } => {}
            Fact::ContextChanged { text } => {
                let told = self.transcript.mode.is_some_and(|mode| steer::sentence(mode) == text);
                self.mode_untold &= !told;
            }
            Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Said { .. }
            | Fact::Retrying { .. }
            | Fact::Called { .. } => {
                if let Some(turn) = &mut self.turn {
                    record_step(turn, fact);
                }
            }
            Fact::Asked { call: id, .. }
            | Fact::Answered { call: id, .. }
            | Fact::Started { call: id, .. }
            | Fact::Spawned { call: id, .. }
            | Fact::Changing { call: id, .. }
            | Fact::Unchanged { call: id }
            | Fact::Inquired { call: id, .. }
            | Fact::Replied { call: id, .. }
            | Fact::Hooked { call: Some(id), .. }
            | Fact::Settled { call: id, .. } => {
                let settles = matches!(fact, Fact::Settled { .. });
                let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(*id)) else { return };
                record_call(call, fact);
                if let Fact::Answered { answer, .. } = fact {
                    self.approved.record(call, answer);
                    if answer.is_yes() && call.asked.is_some() {
                        self.forgive(*id);
                    }
                }
                if let Some(turn) = self.turn.as_mut().filter(|_| settles) {
                    turn.settle(*id);
                }
            }
        }
    }
}

fn record_step(turn: &mut Turn, fact: &Fact) {
    match fact {
        Fact::StepStarted { step, purpose, .. } => {
            (turn.steps, turn.step_open, turn.finish) = (*step, true, None);
            (turn.purpose, turn.spoke) = (*purpose, false);
            (turn.settled, turn.calls) = (0, Vec::new());
            turn.draft.clear();
            turn.draft_size = 0;
        }
        Fact::StepEnded { finish, usage, cost, .. } => {
            turn.step_open = false;
            turn.tokens = turn.tokens.saturating_add(usage.input).saturating_add(usage.output);
            turn.cost += cost.unwrap_or_default();
            turn.finish = Some(finish.clone()).filter(|finish| *finish != Finish::Lost);
            let refused = matches!(finish, Finish::Failed { fault: Fault::Overflow { .. } });
            if refused || !matches!(finish, Finish::Failed { .. } | Finish::Lost) {
                (turn.failures, turn.failing_since) = (0, None);
            }
            let ended = matches!(finish, Finish::Stop | Finish::Calls);
            if ended && turn.purpose == Purpose::Answer {
                turn.empty = if turn.spoke { 0 } else { turn.empty + 1 };
            }
        }
        Fact::Said { text, .. } => turn.spoke |= !text.trim().is_empty(),
        Fact::Retrying { attempt, wait_ms, .. } => {
            (turn.failures, turn.wait_ms) = (*attempt, *wait_ms);
        }
        Fact::Called { call, tool, arguments, by, .. } => {
            turn.spoke = true;
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
        Fact::Spawned { session, .. } => call.child = Some(*session),
        Fact::Changing { changes, .. } => {
            call.changing.push(changes.clone());
        }
        Fact::Unchanged { .. } => drop(call.changing.pop()),
        Fact::Inquired { .. } | Fact::Replied { .. } => call.inquest.record(fact),
        Fact::Hooked { hook, point, verdict, .. } => hooked::record(call, (hook, *point), verdict),
        Fact::Settled { outcome, .. } => call.denied = matches!(outcome, Outcome::Denied { .. }),
        _ => {}
    }
}
