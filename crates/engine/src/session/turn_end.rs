//! The end of a turn whose model is done: first its goal is checked, then hooks are asked whether it
//! may end. Both can continue it, within the limits of the turn.

use super::active_turn::ActiveTurn;
use super::{EffectList, Session, SessionEffect};
use serde_json::json;
use windlass_protocol::{
    AllowedCalls, AllowedCallsSource, CallAuthor, CallOutcome, ContextChange, Fact, Fault,
    HookVerdict, OutputDisplay, TurnEndReason, TurnGoal,
};
use windlass_toolkit::HookRun;

/// Name under which the judgement about a goal is on record.
pub(crate) const GOAL_JUDGE_NAME: &str = "goal";

/// Maximum number of times that hooks or a judged goal continue a turn.
const MAX_CONTINUATIONS: u32 = 20;

/// Time limit of the command that checks the goal: the longest that `bash` accepts.
const GOAL_TIMEOUT_MS: u64 = 600_000;

/// Maximum number of checks of a goal in one turn.
const MAX_GOAL_CHECKS: u32 = 50;

/// Maximum number of checks in a row without progress: no call of the model in between, or the same
/// output without a changed file.
const MAX_IDLE_CHECKS: u32 = 3;

/// Output of a check that printed the same as the one before.
const SAME_OUTPUT_TEXT: &str = "(same output as before)";

/// The end of the notice about a goal.
const GOAL_RULES: &str = "Do not weaken the check. If you cannot reach the goal, say why and make \
                          no more calls; the turn then ends.";

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
        let check = self.calls.last().filter(|call| call.author == CallAuthor::Goal);
        check.map(|check| match check.exit_code {
            Some(0) => GoalCheckResult::Reached,
            Some(_) => GoalCheckResult::NotReached,
            None if check.result_unknown => GoalCheckResult::Unknown,
            None => GoalCheckResult::NotRun,
        })
    }

    /// Describes to the model the goal of the turn and the calls that it may make, if there are
    /// such conditions.
    pub(super) fn describe_conditions(&self) -> Option<String> {
        let goal = self.goal.as_ref().map(|goal| match goal {
            TurnGoal::Command { command } => format!(
                "This turn ends when this command succeeds: `{command}`. You can run it yourself. \
                 {GOAL_RULES}"
            ),
            TurnGoal::Judged { condition } => {
                format!("This turn ends when this condition is met: {condition}\n{GOAL_RULES}")
            }
        });
        let sources = [AllowedCallsSource::Command, AllowedCallsSource::Skill].into_iter();
        let limits = sources.filter_map(|source| {
            let limit = AllowedCalls::describe(&self.allowed_calls, source)?;
            Some(format!(
                "In this turn, {limit}. Besides these and reading the project, every call needs \
                 approval."
            ))
        });
        let lines: Vec<String> = goal.into_iter().chain(limits).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Shortens the output of a check that printed the same as the one before.
    pub(super) fn without_repeated_output(&self, mut outcome: CallOutcome) -> CallOutcome {
        if let CallOutcome::Completed { output } = &mut outcome
            && !self.check_output.is_empty()
            && output.text == self.check_output
        {
            let exit = output.exit_code().map(|code| format!("\n(exit code {code})"));
            output.text = SAME_OUTPUT_TEXT.to_owned() + &exit.unwrap_or_default();
            output.display = OutputDisplay::Terminal { colored_text: None };
            output.full_text = None;
        }
        outcome
    }

    /// Applies the end of a check: counts it, if nothing has changed since the one before.
    pub(super) fn apply_check_result(&mut self, fact: &Fact) {
        let Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } = fact else {
            return;
        };
        let is_same = output.text.starts_with(SAME_OUTPUT_TEXT);
        self.repeated_checks = match is_same && !self.has_new_changes {
            true => self.repeated_checks + 1,
            false => 0,
        };
        self.has_new_changes = false;
        if !is_same {
            self.check_output.clone_from(&output.text);
        }
    }

    /// Returns true if the check that was just made is the last of `MAX_IDLE_CHECKS` without
    /// progress. The model has given up, or waits for something that the turn cannot bring about.
    fn is_stalled(&self) -> bool {
        self.idle_continuations.max(self.repeated_checks) + 1 >= MAX_IDLE_CHECKS
    }
}

/// Returns the end of a turn that makes no progress towards its goal.
fn stalled_turn_end() -> TurnEndReason {
    let limit = format!("the limit of {MAX_IDLE_CHECKS} checks of the goal without progress");
    TurnEndReason::LimitReached { limit }
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

    /// Records the notice about the goal and the allowed calls of the turn's prompts.
    pub(super) fn record_conditions_notice(&mut self, out: &mut EffectList) {
        let due = self.turn.as_ref().filter(|turn| turn.conditions_notice_due);
        if let Some(text) = due.and_then(ActiveTurn::describe_conditions) {
            self.emit(Fact::ContextChanged { text, change: ContextChange::TurnConditions }, out);
        }
    }

    /// Runs the command of the goal, as a call of the user in this turn.
    fn check_goal(&mut self, command: &str, out: &mut EffectList) {
        let arguments = json!({
            "command": command,
            "description": "Checks the goal",
            "timeout": GOAL_TIMEOUT_MS,
        });
        let call = (CallAuthor::Goal, "bash".to_owned(), arguments.to_string());
        self.call_for_user(self.input_id, call, out);
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
            GoalCheckResult::NotReached if turn.is_stalled() => {
                self.end_turn(stalled_turn_end(), out)
            }
            GoalCheckResult::NotReached => {
                let note = "The goal is not reached yet: the command above must succeed. Continue.";
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
        let goal = self.turn.as_ref().and_then(|turn| turn.goal.clone());
        let mut is_goal_missed = false;
        let reason = hook_runs.iter().find_map(|hook_run| match &hook_run.verdict {
            HookVerdict::Refused { reason } => Some(match &goal {
                Some(TurnGoal::Judged { condition }) if hook_run.hook == GOAL_JUDGE_NAME => {
                    is_goal_missed = true;
                    format!(
                        "The goal is not reached yet.\nCondition: {condition}\nMissing: {reason}"
                    )
                }
                _ => format!("`{}` asks you to continue: {reason}", hook_run.hook),
            }),
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
        let is_stalled = is_goal_missed && turn.is_stalled();
        match (goal_failure, reason) {
            (Some(failure), _) => {
                let message = format!("the goal could not be judged: {failure}");
                let fault = Fault::from_provider(None, message);
                self.end_turn(TurnEndReason::Failed { fault }, out);
            }
            (None, Some(_)) if is_stalled => self.end_turn(stalled_turn_end(), out),
            (None, Some(reason)) if !is_exhausted => self.continue_turn(reason, out),
            (None, Some(_)) => {
                let limit = format!("the limit of {MAX_CONTINUATIONS} continuations");
                self.end_turn(TurnEndReason::LimitReached { limit }, out);
            }
            (None, None) => self.end_turn(TurnEndReason::Completed, out),
        }
    }
}
