//! The end of a turn whose model is done: first its goal is checked, then hooks are asked whether it
//! may end. Both can continue it, within the limits of the turn.

use super::active_turn::ActiveTurn;
use super::{EffectList, Session, SessionEffect};
use serde_json::json;
use windlass_protocol::{
    CallAuthor, ContextChange, Fact, Fault, HookVerdict, TurnEndReason, TurnGoal,
};
use windlass_toolkit::HookRun;

/// Maximum number of times that hooks or a judged goal continue a turn.
const MAX_CONTINUATIONS: u32 = 20;

/// Time limit of the command that checks the goal: the longest that `bash` accepts.
const GOAL_TIMEOUT_MS: u64 = 600_000;

/// Maximum number of checks of a goal in one turn.
const MAX_GOAL_CHECKS: u32 = 50;

/// The result of a command that checked the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GoalCheckResult {
    Reached,
    NotReached,
    /// The process died meanwhile.
    Unknown,
    /// The command could not start, or did not end in time.
    NotRun,
}

impl ActiveTurn {
    /// Returns the result of the command that checked the goal, if the last calls were such a check.
    pub(super) fn goal_check_result(&self) -> Option<GoalCheckResult> {
        let check = self.calls.last().filter(|call| call.author == CallAuthor::User);
        check.filter(|_| self.has_prompt).map(|check| match check.exit_code {
            Some(0) => GoalCheckResult::Reached,
            Some(_) => GoalCheckResult::NotReached,
            None if check.result_unknown => GoalCheckResult::Unknown,
            None => GoalCheckResult::NotRun,
        })
    }
}

impl Session {
    /// Ends the turn as completed, unless its goal is not reached or a hook continues it.
    pub(super) fn complete_turn(&mut self, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        match &turn.goal {
            Some(TurnGoal::Command { command }) => {
                let command = command.clone();
                self.check_goal(&command, out);
            }
            Some(TurnGoal::Judged { .. }) | None => self.review_turn_end(out),
        }
    }

    /// Runs the command of the goal, as a call of the user in this turn.
    fn check_goal(&mut self, command: &str, out: &mut EffectList) {
        let arguments = json!({
            "command": command,
            "description": "Checks the goal",
            "timeout": GOAL_TIMEOUT_MS,
        });
        self.call_as_user(self.input_id, "bash".to_owned(), arguments.to_string(), out);
    }

    /// Continues the turn if the command of the goal failed.
    pub(super) fn on_goal_checked(&mut self, result: GoalCheckResult, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        let is_exhausted = turn.goal_checks >= MAX_GOAL_CHECKS;
        match result {
            GoalCheckResult::Reached => self.review_turn_end(out),
            GoalCheckResult::NotRun => {
                let limit = "a check of the goal that could not run to its end".to_owned();
                self.end_turn(TurnEndReason::LimitReached { limit }, out);
            }
            GoalCheckResult::NotReached | GoalCheckResult::Unknown if is_exhausted => {
                let limit = format!("the limit of {MAX_GOAL_CHECKS} checks of the goal");
                self.end_turn(TurnEndReason::LimitReached { limit }, out);
            }
            GoalCheckResult::Unknown => self.complete_turn(out),
            GoalCheckResult::NotReached => {
                let note = "The goal is not reached: the command above must succeed. Continue.";
                self.continue_turn(note.to_owned(), out);
            }
        }
    }

    fn continue_turn(&mut self, text: String, out: &mut EffectList) {
        let change = ContextChange::TurnContinued;
        self.emit(Fact::ContextChanged { text, change }, out);
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
        (hook_runs, goal_failure): (Vec<HookRun>, Option<String>),
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
        let is_exhausted = turn.continuations >= MAX_CONTINUATIONS;
        match (goal_failure, reason) {
            (Some(failure), _) => {
                let message = format!("the goal could not be judged: {failure}");
                self.end_turn(TurnEndReason::Failed { fault: Fault::Config { message } }, out);
            }
            (None, Some(reason)) if !is_exhausted => self.continue_turn(reason, out),
            (None, Some(_)) => {
                let limit = format!("the limit of {MAX_CONTINUATIONS} continuations");
                self.end_turn(TurnEndReason::LimitReached { limit }, out);
            }
            (None, None) => self.end_turn(TurnEndReason::Completed, out),
        }
    }
}
