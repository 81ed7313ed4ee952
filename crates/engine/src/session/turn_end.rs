//! The end of a turn whose model is done: first its goal is checked, then hooks are asked whether it
//! may end. Both can continue it, within the limits of the turn.

use super::active_turn::ActiveTurn;
use super::{EffectList, Session, SessionEffect};
use serde_json::json;
use windlass_protocol::{
    CallAuthor, CallId, Fact, HookPoint, HookVerdict, TurnEndReason, TurnGoal,
};
use windlass_toolkit::HookRun;

/// Maximum number of times that hooks continue a turn.
const MAX_CONTINUATIONS: u32 = 20;

/// Maximum number of checks of a goal in one turn.
const MAX_GOAL_CHECKS: u32 = 50;

/// Returns true for the points at which hooks may continue a turn.
pub(super) fn is_turn_end_point(point: HookPoint) -> bool {
    matches!(point, HookPoint::TurnEnd | HookPoint::SubagentEnd)
}

impl ActiveTurn {
    /// Returns the exit code of the command that checked the goal, if the last calls were such a
    /// check; the code is `None` if the command did not run to its end.
    pub(super) fn goal_check_result(&self) -> Option<Option<i64>> {
        let check = self.calls.first().filter(|call| call.author == CallAuthor::User);
        check.filter(|_| self.has_prompt).map(|check| check.exit_code)
    }
}

impl Session {
    /// Ends the turn as completed, unless its goal is not reached or a hook continues it.
    pub(super) fn complete_turn(&mut self, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        match &turn.goal {
            Some(TurnGoal::Command { command }) => {
                let arguments = json!({"command": command, "description": "Checks the goal"});
                self.check_goal(arguments.to_string(), out);
            }
            Some(TurnGoal::Judged { .. }) | None => self.review_turn_end(out),
        }
    }

    /// Runs the command of the goal, as a call of the user in this turn.
    fn check_goal(&mut self, arguments: String, out: &mut EffectList) {
        let tool = "bash".to_owned();
        let description = self.config.call_describer.describe(&tool, &arguments);
        let fact = Fact::ToolCalled {
            call: CallId(self.input_id),
            provider_call_id: format!("call_{}", self.input_id.simple()),
            tool,
            arguments,
            author: CallAuthor::User,
            description,
            repair: Vec::new(),
            provider_signature: None,
        };
        self.emit(fact, out);
        self.start_calls(out);
    }

    /// Continues the turn if the command of the goal failed.
    pub(super) fn on_goal_checked(&mut self, exit_code: Option<i64>, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        if exit_code == Some(0) {
            return self.review_turn_end(out);
        }
        if turn.goal_checks >= MAX_GOAL_CHECKS {
            let limit = format!("the limit of {MAX_GOAL_CHECKS} checks of the goal");
            return self.end_turn(TurnEndReason::LimitReached { limit }, out);
        }
        let note = "The goal is not reached: the command above must succeed. Continue.";
        self.emit(Fact::context_note(note), out);
        self.ask_model(out);
    }

    /// Asks the hooks whether the turn may end, if there are some.
    fn review_turn_end(&mut self, out: &mut EffectList) {
        let Some(turn) = &mut self.turn else { return };
        let condition = match &turn.goal {
            Some(TurnGoal::Judged { condition }) => Some(condition.clone()),
            Some(TurnGoal::Command { .. }) | None => None,
        };
        if !self.config.has_turn_end_hooks && condition.is_none() {
            return self.end_turn(TurnEndReason::Completed, out);
        }
        turn.end_under_review = true;
        let (turn, continuations) = (turn.number, turn.continuations);
        out.0.push(SessionEffect::ReviewTurnEnd { turn, continuations, condition });
    }

    /// Ends or continues the turn after its review. Only a denial continues it: a hook that failed
    /// has no reason to give.
    pub(super) fn on_turn_end_reviewed(
        &mut self,
        turn: u32,
        hook_runs: Vec<HookRun>,
        out: &mut EffectList,
    ) {
        let reason = hook_runs.iter().find_map(|hook_run| match &hook_run.verdict {
            HookVerdict::Refused { reason } => {
                Some(format!("`{}` asks you to continue: {reason}", hook_run.hook))
            }
            HookVerdict::Passed
            | HookVerdict::Rewrote
            | HookVerdict::Asks { .. }
            | HookVerdict::Failed { .. } => None,
        });
        self.record_hook_runs(None, hook_runs, out);
        let is_reviewed = |open: &&mut ActiveTurn| open.number == turn && open.end_under_review;
        let Some(turn) = self.turn.as_mut().filter(is_reviewed) else { return };
        turn.end_under_review = false;
        match reason {
            Some(reason) if turn.continuations <= MAX_CONTINUATIONS => {
                self.emit(Fact::context_note(&reason), out);
                self.ask_model(out);
            }
            Some(_) => {
                let limit = format!("the limit of {MAX_CONTINUATIONS} continuations by hooks");
                self.end_turn(TurnEndReason::LimitReached { limit }, out);
            }
            None => self.end_turn(TurnEndReason::Completed, out),
        }
    }
}
