//! Going on: what a session does first when it is opened and something was under way.

use super::turn::Stage;
use super::{Effect, Out, Session};
use windlass_protocol::{Fact, Fault, Finish, Purpose, Usage};

impl Session {
    /// Goes on from wherever the log ends.
    pub(super) fn resume(&mut self, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return self.start_next(out) };
        if turn.step_open {
            let (turn, step) = (turn.number, turn.steps);
            let (finish, usage, cost) = (Finish::Lost, Usage::default(), None);
            self.decide(Fact::StepEnded { turn, step, finish, usage, cost }, out);
            return self.resume(out);
        }
        let number = turn.number;
        for call in turn.open_mut() {
            // What may have changed something is not run again; what only looked is.
            if call.attempts > 0 && !call.read_only {
                call.stage = Stage::Checked;
                let (accesses, changes) = (call.accesses.clone(), call.changing.concat());
                let (turn, call) = (number, call.id);
                out.0.push(Effect::Reconcile { turn, call, accesses, changes });
            } else if let Some(outcome) = call.refusal.clone() {
                call.stage = Stage::Done(outcome);
            }
        }
        if turn.interrupted {
            return self.abandon(out);
        }
        let unsettled = !turn.open().is_empty();
        if let Some(what) = self.over().filter(|_| unsettled) {
            if let Some(turn) = &mut self.turn {
                turn.expired = Some(what);
            }
            return self.abandon(out);
        }
        self.arm(out);
        let Some(turn) = &self.turn else { return };
        if turn.calls.is_empty() {
            // Between two steps, or behind the last one.
            return match turn.finish.clone() {
                Some(Finish::Failed { fault: Fault::Overflow { .. } }) => self.overflowed(out),
                Some(_) if turn.failures == 0 && turn.purpose == Purpose::Summary => {
                    self.go_on(out);
                }
                Some(finish) if turn.failures == 0 => self.conclude(finish, out),
                // It was waiting to try again, perhaps because it was told to: it still does.
                Some(_) => {
                    let (turn, step, after_ms) = (turn.number, turn.steps, turn.wait_ms);
                    out.0.push(Effect::Wake { turn, step, after_ms });
                }
                None => self.go_on(out),
            };
        }
        self.launch(out);
    }
}
