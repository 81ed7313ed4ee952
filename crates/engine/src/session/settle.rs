//! What a running call says: what it is about to change, what it did not, and how it ended.

use super::turn::{Call, Stage};
use super::{Effect, Out, Session};
use windlass_protocol::{CallId, Change, Fact, Outcome, Sight};

impl Session {
    /// Lets a call change files once that is on record. One that was told to stop may not begin.
    pub(super) fn changing(&mut self, turn: u32, id: CallId, changes: Vec<Change>, out: &mut Out) {
        let Some(open) = self.turn.as_mut() else { return };
        let may = open.number == turn && !open.stopping();
        let runs = |call: &mut Call| matches!(&call.stage, Stage::Running(i) if !i.read_only);
        if may && open.call(id).is_some_and(runs) {
            self.decide(Fact::Changing { call: id, changes }, out);
            out.0.push(Effect::Recorded { call: id });
        }
    }

    /// What was put on record last did not happen.
    pub(super) fn unchanged(&mut self, turn: u32, id: CallId, out: &mut Out) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let runs =
            |call: &mut Call| matches!(call.stage, Stage::Running(_)) && !call.changing.is_empty();
        if open.call(id).is_some_and(runs) {
            self.decide(Fact::Unchanged { call: id }, out);
        }
    }

    /// What was found out about a call that was changing files when the process died.
    fn checked(&mut self, id: CallId, outcome: &Outcome, out: &mut Out) {
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(id)) else { return };
        match outcome {
            Outcome::Completed { .. } => {
                let after = |change: &Change| {
                    let digest = change.after.as_ref()?.copy.clone();
                    Some(Sight { path: change.path.clone(), digest })
                };
                call.seen = call.changing.iter().flatten().filter_map(after).collect();
            }
            Outcome::Failed { .. } => {
                for _ in 0..call.changing.len() {
                    self.decide(Fact::Unchanged { call: id }, out);
                }
            }
            Outcome::Denied { .. } | Outcome::Interrupted { .. } | Outcome::Unknown => {}
        }
    }

    pub(super) fn settled(
        &mut self,
        turn: u32,
        id: CallId,
        end: (Outcome, Vec<Sight>),
        out: &mut Out,
    ) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let Some(call) = open.call(id) else { return };
        let (outcome, seen) = end;
        match call.stage {
            Stage::Checked => {
                call.stage = Stage::Done(outcome.clone());
                self.checked(id, &outcome, out);
                self.pump(out);
            }
            Stage::Launched | Stage::Intended(_) | Stage::Running(_) => {
                // What was not given to the model was not seen by it.
                let given = matches!(outcome, Outcome::Completed { .. } | Outcome::Failed { .. });
                call.seen = if given { seen } else { Vec::new() };
                call.stage = Stage::Done(outcome);
                self.pump(out);
            }
            Stage::Away | Stage::Done(_) => {}
        }
    }
}
