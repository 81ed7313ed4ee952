//! Reports of a running call: files it is about to change, changes that did not happen, and its
//! outcome.

use super::active_turn::{CallStage, TurnCall};
use super::{EffectList, Session, SessionEffect};
use windlass_protocol::{CallAuthor, CallId, CallOutcome, Fact, FileChange, SeenFileDigest};

impl Session {
    /// Records `FilesChanging` for a call, then lets it proceed. A call of a stopping turn may not
    /// start changes.
    pub(super) fn on_files_changing(
        &mut self,
        (turn, id): (u32, CallId),
        changes: Vec<FileChange>,
        are_made: bool,
        out: &mut EffectList,
    ) {
        let Some(open) = self.turn.as_mut() else { return };
        let may_change = open.number == turn && (are_made || !open.is_stopping());
        let is_writing =
            |call: &mut TurnCall| matches!(&call.stage, CallStage::Running(i) if !i.read_only);
        if may_change && open.open_call_mut(id).is_some_and(is_writing) {
            self.emit(Fact::FilesChanging { call: id, changes }, out);
            out.0.push(SessionEffect::ConfirmRecorded { call: id });
        }
    }

    /// Records that the changes of the last `FilesChanging` did not happen.
    pub(super) fn on_files_unchanged(&mut self, turn: u32, id: CallId, out: &mut EffectList) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let has_changes = |call: &mut TurnCall| {
            matches!(call.stage, CallStage::Running(_)) && !call.recorded_changes.is_empty()
        };
        if open.open_call_mut(id).is_some_and(has_changes) {
            self.emit(Fact::FilesUnchanged { call: id }, out);
        }
    }

    /// Applies the result of `Reconcile` for a call that was changing files when the process died.
    fn on_call_reconciled(&mut self, id: CallId, outcome: &CallOutcome, out: &mut EffectList) {
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(id)) else { return };
        match outcome {
            CallOutcome::Completed { .. } => {
                let new_digest = |change: &FileChange| {
                    let digest = change.after.as_ref()?.blob.clone();
                    Some(SeenFileDigest { path: change.path.clone(), digest })
                };
                call.seen_files =
                    call.recorded_changes.iter().flatten().filter_map(new_digest).collect();
            }
            CallOutcome::Failed { .. } => {
                for _ in 0..call.recorded_changes.len() {
                    self.emit(Fact::FilesUnchanged { call: id }, out);
                }
            }
            CallOutcome::Denied { .. }
            | CallOutcome::Interrupted { .. }
            | CallOutcome::ResultUnknown => {}
        }
    }

    pub(super) fn on_call_settled(
        &mut self,
        turn: u32,
        id: CallId,
        (outcome, seen_files): (CallOutcome, Vec<SeenFileDigest>),
        out: &mut EffectList,
    ) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let Some(call) = open.open_call_mut(id) else { return };
        match call.stage {
            CallStage::Reconciling => {
                call.stage = CallStage::Done(outcome.clone());
                self.on_call_reconciled(id, &outcome, out);
                self.advance_calls(out);
            }
            CallStage::Preparing | CallStage::AwaitingPermission(_) | CallStage::Running(_) => {
                // Output that the model did not get does not count as seen.
                let has_output =
                    matches!(outcome, CallOutcome::Completed { .. } | CallOutcome::Failed { .. });
                call.seen_files = if has_output { seen_files } else { Vec::new() };
                let is_goal_check = call.author == CallAuthor::Goal;
                let outcome = match is_goal_check {
                    true => open.without_repeated_output(outcome),
                    false => outcome,
                };
                if let Some(call) = open.open_call_mut(id) {
                    call.stage = CallStage::Done(outcome);
                }
                self.advance_calls(out);
            }
            CallStage::NotStarted | CallStage::Done(_) => {}
        }
    }
}
