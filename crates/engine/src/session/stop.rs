//! Stopping: what a turn does when a person wants it to end.

use super::turn::{Stage, Turn};
use super::{Effect, Out, Session};
use windlass_protocol::{Fact, Finish, Outcome, Usage};

impl Session {
    pub(super) fn interrupt(&mut self, out: &mut Out) {
        let Some(turn) = &self.turn else { return };
        if turn.interrupted {
            return self.abandon(out);
        }
        let (number, speaking) = (turn.number, turn.step_open);
        if speaking {
            out.0.push(Effect::CancelModel);
        }
        self.decide(Fact::Interrupted { turn: number }, out);
        if speaking {
            return self.step_ended(Finish::Interrupted, Usage::default(), out);
        }
        self.stop_calls(&self.never_ran(), out);
    }

    /// What becomes of a call that did not start because its turn was stopped.
    pub(super) fn never_ran(&self) -> Outcome {
        let limit = self.turn.as_ref().and_then(|turn| turn.expired.as_ref());
        let text = match limit {
            Some(what) => format!("Not run: the turn has reached {what}."),
            None => "Interrupted before it ran; nothing was done.".to_owned(),
        };
        Outcome::Interrupted { text }
    }

    /// Stops what runs, and gives what does not this outcome.
    pub(super) fn stop_calls(&mut self, outcome: &Outcome, out: &mut Out) {
        self.turn_back(outcome, out);
        for call in self.turn.iter_mut().flat_map(Turn::open_mut) {
            match call.stage {
                Stage::Running(_) => out.0.push(Effect::CancelTool { call: call.id }),
                // Started before a crash, and not again since: what it gave is lost.
                Stage::Launched | Stage::Intended(_) if call.attempts > 0 => {
                    out.0.push(Effect::CancelTool { call: call.id });
                    call.stage = Stage::Done(Outcome::Unknown);
                }
                // What became of it is found out soon, and then it settles.
                Stage::Checked => {}
                Stage::Away | Stage::Launched | Stage::Intended(_) | Stage::Done(_) => {}
            }
        }
        self.pump(out);
    }

    /// Ends an interrupted turn without waiting for what still runs.
    pub(super) fn abandon(&mut self, out: &mut Out) {
        let never_ran = self.never_ran();
        for call in self.turn.iter_mut().flat_map(Turn::open_mut) {
            if !matches!(call.stage, Stage::Checked | Stage::Done(_)) {
                call.stage = Stage::Done(if call.attempts > 0 {
                    Outcome::Unknown
                } else {
                    never_ran.clone()
                });
            }
        }
        self.pump(out);
    }

    /// Gives every call that has never been started this outcome.
    pub(super) fn turn_back(&mut self, outcome: &Outcome, out: &mut Out) {
        for call in self.turn.iter_mut().flat_map(Turn::open_mut) {
            let waits = matches!(call.stage, Stage::Away | Stage::Launched | Stage::Intended(_));
            let refused = call.answer.as_ref().is_some_and(|answer| !answer.is_yes());
            if waits && call.attempts == 0 && !refused {
                out.0.push(Effect::CancelTool { call: call.id });
                call.stage = Stage::Done(outcome.clone());
            }
        }
    }
}
