//! The fold: applies a `Fact` to the `Session`. State changes in no other way, for facts just
//! decided and for facts read back from a log.

use super::active_turn::{ActiveTurn, TurnCall};
use super::approvals::SessionApprovals;
use super::{Session, hook_results};
use std::sync::Arc;
use windlass_protocol::{
    ALLOWED_CALLS_KEY, AllowedCalls, CallAuthor, CallId, CallOutcome, ContextChange, Fact, Fault,
    FinishReason, PromptId, PromptSettings, StepPurpose,
};

impl Session {
    /// Applies a fact to the state; the only way in which a fact changes it.
    pub(super) fn apply_fact(&mut self, fact: &Fact) {
        self.head += 1;
        self.transcript.push(self.head, fact);
        self.files.push(self.head, fact);
        self.token_estimator.apply_fact(fact, &self.transcript);
        self.update_outline(fact);
        self.rewind_points.push(self.head, fact);
        match fact {
            Fact::TurnStarted { turn, prompt } => {
                self.turn_count = *turn;
                self.turn = Some(ActiveTurn::new(*turn, prompt.is_some(), self.now));
                self.take_prompt_settings(*prompt);
            }
            Fact::PromptSteered { prompt, .. } => self.take_prompt_settings(Some(*prompt)),
            Fact::PromptSubmitted { prompt, settings, .. } => {
                if *settings != PromptSettings::default() {
                    self.queued_settings.insert(*prompt, settings.clone());
                }
            }
            Fact::PromptWithdrawn { prompt } => drop(self.queued_settings.remove(prompt)),
            Fact::TurnEnded { .. } => self.turn = None,
            // The approvals were given to another session, perhaps by another user.
            Fact::SessionForked { .. } | Fact::ApprovalsRevoked => {
                self.approvals = SessionApprovals::default();
            }
            Fact::TurnInterrupted { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.interrupted = true;
                }
            }
            // Parts of the announced prompt state may no longer be in the context.
            Fact::ContextCompacted { .. } => {
                self.prompt_state = None;
                if let Some(turn) = &mut self.turn {
                    turn.summary_failed = false;
                    turn.check_output.clear();
                }
            }
            Fact::OutputsPruned { .. } => {
                self.turn.iter_mut().for_each(|turn| turn.check_output.clear());
            }
            Fact::Rewound { to } => {
                self.prompt_state = None;
                self.context_changes.retain(|seq, _| seq <= to);
                self.mode_notice_due = self.is_mode_forgotten();
            }
            Fact::ModeChanged { .. } => self.mode_notice_due = true,
            Fact::SessionRenamed { .. } => self.has_title = true,
            Fact::SessionOpened { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::ModelReasoning { .. }
            | Fact::FactsLost { .. }
            | Fact::HookRan { call: None, .. } => {}
            Fact::SystemPromptSet { state, .. } => self.initial_prompt_state = state.clone(),
            Fact::ContextChanged { change, .. } => match change {
                ContextChange::Mode { mode } => {
                    self.mode_notice_due &= self.transcript.mode != Some(*mode);
                    self.context_changes.insert(self.head, change.clone());
                }
                ContextChange::Prompt { .. } | ContextChange::Todos { .. } => {
                    self.context_changes.insert(self.head, change.clone());
                }
                ContextChange::TurnContinued => {
                    if let Some(turn) = &mut self.turn {
                        turn.continuations += 1;
                        turn.idle_continuations += 1;
                    }
                }
                ContextChange::TurnConditions => {
                    self.turn.iter_mut().for_each(|turn| turn.conditions_notice_due = false);
                }
                ContextChange::Note | ContextChange::JobEnded { .. } => {}
            },
            Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::ModelText { .. }
            | Fact::StepRetrying { .. }
            | Fact::ToolCalled { .. } => {
                if let Some(turn) = &mut self.turn {
                    if matches!(fact, Fact::StepStarted { .. }) {
                        turn.step_seq = Some(self.head);
                    }
                    apply_step_fact(turn, fact);
                }
            }
            Fact::PermissionAsked { call: id, .. }
            | Fact::PermissionAnswered { call: id, .. }
            | Fact::CallStarted { call: id, .. }
            | Fact::SubagentStarted { call: id, .. }
            | Fact::FilesChanging { call: id, .. }
            | Fact::FilesUnchanged { call: id }
            | Fact::QuestionAsked { call: id, .. }
            | Fact::QuestionAnswered { call: id, .. }
            | Fact::HookRan { call: Some(id), .. }
            | Fact::CallSettled { call: id, .. } => self.apply_call_fact(*id, fact),
        }
    }

    /// Applies a fact about a call of the turn.
    fn apply_call_fact(&mut self, id: CallId, fact: &Fact) {
        let is_settled = matches!(fact, Fact::CallSettled { .. });
        self.note_answer(id, fact);
        let head = self.head;
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(id)) else {
            return;
        };
        update_call(call, fact);
        if matches!(fact, Fact::PermissionAsked { .. } | Fact::QuestionAsked { .. }) {
            call.asked_seq = Some(head);
        }
        let (author, skill_calls) = (call.author, skill_calls(fact));
        if let Fact::PermissionAnswered { answer, .. } = fact {
            self.approvals.record_answer(call, answer);
            if answer.is_yes() && call.asked_accesses.is_some() {
                self.reset_loop_detection(id);
            }
        }
        if let Some(turn) = &mut self.turn {
            // The changes of a subagent are in its own log.
            let is_change =
                matches!(fact, Fact::FilesChanging { .. } | Fact::SubagentStarted { .. });
            turn.has_new_changes |= author == CallAuthor::Model && is_change;
            if is_settled {
                let is_new = |calls: &AllowedCalls| !turn.allowed_calls.contains(calls);
                let skill_calls = skill_calls.filter(is_new);
                turn.allowed_calls.extend(skill_calls);
                turn.mark_settled(id);
            }
            if author == CallAuthor::Goal {
                turn.apply_check_result(fact);
            }
        }
    }

    /// Applies the settings of a prompt to the turn that processes it.
    fn take_prompt_settings(&mut self, prompt: Option<PromptId>) {
        let settings = prompt.and_then(|prompt| self.queued_settings.remove(&prompt));
        let (Some(settings), Some(turn)) = (settings, &mut self.turn) else { return };
        let PromptSettings { allowed_calls, goal, model, limits, answer_schema, command: _ } =
            settings;
        turn.allowed_calls.extend(allowed_calls);
        turn.limits = turn.limits.lower_of(limits);
        if answer_schema.is_some() {
            turn.answer_schema = answer_schema.map(Arc::new);
        }
        if model.is_some() {
            (turn.prompt_model, turn.fallback_model) = (model, None);
        }
        if goal.is_some() {
            // The checks of an earlier goal do not count for this one.
            turn.goal = goal;
            turn.check_output.clear();
            (turn.goal_checks, turn.repeated_checks, turn.idle_continuations) = (0, 0, 0);
        }
        turn.conditions_notice_due = true;
    }
}

/// Returns the `AllowedCalls` of the skill that a call loaded, if the skill names some. The tool
/// pipeline leaves the key to the tool `skill`.
fn skill_calls(fact: &Fact) -> Option<AllowedCalls> {
    match fact {
        Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } => {
            serde_json::from_value(output.metadata.get(ALLOWED_CALLS_KEY)?.clone()).ok()
        }
        _ => None,
    }
}

fn apply_step_fact(turn: &mut ActiveTurn, fact: &Fact) {
    match fact {
        Fact::StepStarted { step, purpose, model, .. } => {
            if turn.step_model != *model {
                turn.step_model.clone_from(model);
                (turn.failures, turn.failing_since) = (0, None);
            }
            (turn.steps, turn.step_open, turn.last_finish) = (*step, true, None);
            (turn.purpose, turn.had_output) = (*purpose, false);
            (turn.settled_calls, turn.calls) = (0, Vec::new());
            turn.output_blocks.clear();
            turn.partial_calls.clear();
            turn.output_bytes = 0;
        }
        Fact::StepEnded { finish_reason, usage, cost, .. } => {
            turn.step_open = false;
            turn.tokens = turn.tokens.saturating_add(usage.input).saturating_add(usage.output);
            turn.cost += cost.unwrap_or_default();
            turn.last_finish =
                Some(finish_reason.clone()).filter(|reason| *reason != FinishReason::ProcessDied);
            let is_overflow = matches!(
                finish_reason,
                FinishReason::Failed { fault: Fault::ContextOverflow { .. } }
            );
            let has_failed =
                matches!(finish_reason, FinishReason::Failed { .. } | FinishReason::ProcessDied);
            turn.summary_failed |=
                turn.purpose == StepPurpose::Summary && *finish_reason != FinishReason::ProcessDied;
            if is_overflow || !has_failed {
                (turn.failures, turn.failing_since) = (0, None);
            }
            let is_answer = matches!(finish_reason, FinishReason::Stop | FinishReason::ToolCalls);
            if is_answer && turn.purpose == StepPurpose::Answer {
                turn.empty_answers = if turn.had_output { 0 } else { turn.empty_answers + 1 };
            }
        }
        Fact::ModelText { text, .. } => turn.had_output |= !text.trim().is_empty(),
        Fact::StepRetrying { attempt, wait_ms, model, .. } => {
            (turn.failures, turn.wait_ms) = (*attempt, *wait_ms);
            turn.fallback_model = model.clone().or(turn.fallback_model.take());
        }
        Fact::ToolCalled { call, tool, arguments, author, description, .. } => {
            turn.had_output = true;
            match author {
                CallAuthor::Goal => turn.goal_checks += 1,
                CallAuthor::Model => turn.idle_continuations = 0,
                CallAuthor::User | CallAuthor::Command => {}
            }
            let (tool, arguments) = (tool.clone(), arguments.clone());
            turn.calls.push(TurnCall::new(*call, tool, arguments, *author, description.clone()));
        }
        _ => {}
    }
}

fn update_call(call: &mut TurnCall, fact: &Fact) {
    match fact {
        Fact::PermissionAsked { accesses, approval_kind, preview, .. } => {
            call.asked_with_preview = preview.is_some();
            (call.asked_accesses, call.answer) = (Some(accesses.clone()), None);
            call.approval_kind.clone_from(approval_kind);
        }
        Fact::PermissionAnswered { answer, .. } => call.answer = Some(answer.clone()),
        Fact::CallStarted { attempt, read_only, accesses, .. } => {
            (call.attempts, call.read_only) = (*attempt, *read_only);
            call.accesses.clone_from(accesses);
        }
        Fact::SubagentStarted { session, .. } => call.subagent = Some(*session),
        Fact::FilesChanging { changes, .. } => {
            call.recorded_changes.push(changes.clone());
        }
        Fact::FilesUnchanged { .. } => drop(call.recorded_changes.pop()),
        Fact::QuestionAsked { .. } | Fact::QuestionAnswered { .. } => {
            call.question_state.apply_fact(fact)
        }
        Fact::HookRan { hook, point, verdict, .. } => {
            hook_results::apply_hook_verdict(call, (hook, *point), verdict)
        }
        Fact::CallSettled { outcome, .. } => {
            call.denied = matches!(outcome, CallOutcome::Denied { .. });
            call.result_unknown = *outcome == CallOutcome::ResultUnknown;
            if let CallOutcome::Completed { output } = outcome {
                call.exit_code = output.exit_code();
            }
        }
        _ => {}
    }
}
