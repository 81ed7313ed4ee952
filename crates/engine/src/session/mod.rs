//! The session state machine: takes inputs and returns effects, without I/O, clock or randomness.
//!
//! Every relevant decision becomes a fact, and `Session::apply_fact` is the only way in which a
//! fact changes the state, whether it was just decided or read back from a log. So a crash only
//! means a shorter log, and [`SessionInput::Resume`] continues from its end.

mod active_turn;
mod apply_fact;
mod approvals;
mod call_changes_and_outcome;
mod compaction;
mod config;
mod context_usage;
mod hook_results;
mod inputs_and_effects;
mod interrupt;
mod loop_detection;
mod model_output;
mod ops;
mod partial_calls;
mod preserved_summary_state;
mod resume;
pub(crate) mod rewind;
mod steering;
mod step_model;
mod subagents;
mod system_prompt_updates;
mod token_estimate;
mod tool_calls;
mod turn_end;
mod turn_limits;
mod user_questions;

pub use config::{
    CallDescriber, ContextWindow, LoopDetectionPolicy, LoopDetectionRules, SessionConfig,
    SessionModel, TurnLimits,
};
pub use inputs_and_effects::{
    InputTimeAndId, SessionEffect, SessionInput, SubagentStart, SubmittedPrompt,
};

use active_turn::ActiveTurn;
use approvals::SessionApprovals;
use compaction::CompactionResult;
use preserved_summary_state::SummaryTodosAndJobs;
use rewind::RewindPoints;
use std::collections::BTreeMap;
use token_estimate::TokenEstimator;
pub(crate) use token_estimate::estimate_tokens;
pub(crate) use turn_end::GOAL_JUDGE_NAME;
use uuid::Uuid;
use windlass_protocol::{
    CallId, ContextChange, Fact, FactRecord, FileHistory, LogSeq, ModelChoice, OpId,
    PromptDelivery, PromptId, PromptSettings, StepPurpose, SystemPromptState, Transcript,
    TurnEndReason, UnixMillis,
};

/// State of a session: the fold of its log, and the work in progress.
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    /// The first fact, held back until another fact is written.
    pending_opening: Vec<Fact>,
    head: LogSeq,
    /// Time of the last recorded fact or the last input.
    now: UnixMillis,
    transcript: Transcript,
    turn_count: u32,
    turn: Option<ActiveTurn>,
    approvals: SessionApprovals,
    /// Notices for the model, recorded before the next request.
    pending_notices: Vec<(String, ContextChange)>,
    /// Environment and instructions that the model has been told; computed by `read_prompt_state`
    /// when needed.
    prompt_state: Option<SystemPromptState>,
    /// State from `SystemPromptSet`.
    initial_prompt_state: SystemPromptState,
    /// Changes from `ContextChanged` that something depends on, by position.
    context_changes: BTreeMap<LogSeq, ContextChange>,
    files: FileHistory,
    /// The log contains `SessionRenamed`, from the user or from a generated title.
    has_title: bool,
    /// The model has not been told about the last `ModeChanged`.
    mode_notice_due: bool,
    token_estimator: TokenEstimator,
    summary_outline: SummaryTodosAndJobs,
    rewind_points: RewindPoints,
    /// The settings of prompts that no turn has processed yet.
    queued_settings: BTreeMap<PromptId, PromptSettings>,
    /// Id of the current input, for a call that the session itself makes.
    input_id: Uuid,
    /// Positions of the last answers to questions of calls.
    answer_positions: BTreeMap<CallId, LogSeq>,
    /// Operations whose facts were read from the log, and their last positions.
    recorded_ops: Vec<(OpId, LogSeq)>,
}

/// Effects of the current input. Consecutive facts share one `Append`.
#[derive(Default)]
struct EffectList(Vec<SessionEffect>);

impl EffectList {
    fn push_fact(&mut self, fact: Fact) {
        match self.0.last_mut() {
            Some(SessionEffect::Append(facts)) => facts.push(fact),
            Some(_) | None => self.0.push(SessionEffect::Append(vec![fact])),
        }
    }
}

impl Session {
    /// Creates a session without facts. `opening` is written with the first other fact.
    pub fn new(opening: Fact, config: SessionConfig) -> Session {
        Session::empty(vec![opening], config)
    }

    /// Records the model that the user chose, right after the opening.
    #[must_use]
    pub fn with_model_choice(mut self, choice: Option<ModelChoice>) -> Session {
        let fact = |ModelChoice { model, effort, .. }| Fact::ModelChanged { model, effort };
        self.pending_opening.extend(choice.map(fact));
        self
    }

    fn empty(opening: Vec<Fact>, config: SessionConfig) -> Session {
        Session {
            config,
            pending_opening: opening,
            head: 0,
            transcript: Transcript::default(),
            turn_count: 0,
            turn: None,
            approvals: SessionApprovals::default(),
            pending_notices: Vec::new(),
            prompt_state: None,
            initial_prompt_state: SystemPromptState::default(),
            context_changes: BTreeMap::new(),
            now: UnixMillis(0),
            files: FileHistory::default(),
            has_title: false,
            mode_notice_due: false,
            token_estimator: TokenEstimator::default(),
            summary_outline: SummaryTodosAndJobs::default(),
            rewind_points: RewindPoints::default(),
            queued_settings: BTreeMap::new(),
            input_id: Uuid::nil(),
            answer_positions: BTreeMap::new(),
            recorded_ops: Vec::new(),
        }
    }

    /// Rebuilds a session from its log.
    pub fn replay<'a>(
        log: impl IntoIterator<Item = &'a FactRecord>,
        config: SessionConfig,
    ) -> Session {
        let mut session = Session::empty(Vec::new(), config);
        session.apply_records(log);
        session
    }

    /// Returns the time of the last recorded fact or the last input.
    pub fn now(&self) -> UnixMillis {
        self.now
    }

    /// Sets the configuration of the agent that the log ends with; no fact depends on it.
    pub(crate) fn set_config(&mut self, config: SessionConfig) {
        self.config = config;
    }

    /// Applies further records of the log.
    pub(crate) fn apply_records<'a>(&mut self, log: impl IntoIterator<Item = &'a FactRecord>) {
        for record in log {
            self.now = record.at;
            self.apply_fact(&record.fact);
            // A prompt that a hook refused leaves only the run of the hook.
            let is_hook_run = matches!(record.fact, Fact::HookRan { .. });
            if let Some(origin) = record.origin.as_ref().filter(|_| !is_hook_run) {
                self.add_recorded_op(origin.op, record.seq);
            }
        }
    }

    /// Returns the transcript, as folded from the log.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the `FileHistory`, as folded from the log.
    pub fn files(&self) -> &FileHistory {
        &self.files
    }

    /// Returns the last position of the log.
    pub fn head(&self) -> LogSeq {
        self.head
    }

    /// Returns true if a turn is under way.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Returns the number of the turn under way, if a prompt started it.
    pub(crate) fn prompt_turn(&self) -> Option<u32> {
        self.turn.as_ref().filter(|turn| turn.has_prompt).map(|turn| turn.number)
    }

    /// Returns true if a prompt started the current turn.
    pub(crate) fn is_prompt_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.has_prompt)
    }

    /// Applies an input, and returns the effects for the driver to perform.
    pub fn apply(&mut self, stamp: InputTimeAndId, input: SessionInput) -> Vec<SessionEffect> {
        let mut out = EffectList::default();
        if input == SessionInput::Resume {
            self.skip_downtime(stamp.at);
        }
        (self.now, self.input_id) = (stamp.at, stamp.id);
        match input {
            SessionInput::Op(op) => {
                let result = self.on_op(stamp, op, &mut out);
                out.0.push(SessionEffect::AnswerOp { result });
            }
            SessionInput::Resume => self.resume(&mut out),
            SessionInput::Model { turn, step, event } => {
                let is_current =
                    |t: &ActiveTurn| t.number == turn && t.steps == step && t.step_open;
                if self.turn.as_ref().is_some_and(is_current) {
                    self.on_model_event(stamp, event, &mut out);
                }
            }
            SessionInput::PermissionRequested { turn, call, intent } => {
                self.on_permission_requested(turn, call, intent, &mut out)
            }
            SessionInput::PreviewReady { turn, call, preview } => {
                self.on_preview_ready(turn, call, preview, &mut out)
            }
            SessionInput::FilesUnchanged { turn, call } => {
                self.on_files_unchanged(turn, call, &mut out)
            }
            SessionInput::CallSettled { turn, call, outcome, seen_files } => {
                self.on_call_settled(turn, call, (outcome, seen_files), &mut out);
            }
            SessionInput::FilesChanging { turn, call, changes, are_made } => {
                self.on_files_changing((turn, call), changes, are_made, &mut out);
            }
            SessionInput::QuestionAsked { turn, call, questions, effect } => {
                self.on_question_asked((turn, call), questions, effect, &mut out);
            }
            SessionInput::SubagentRequested { turn, subagent } => {
                self.on_subagent_requested(turn, subagent, &mut out)
            }
            SessionInput::BudgetExhausted { turn, step, limit } => {
                self.budget_exhausted(turn, step, limit, &mut out)
            }
            SessionInput::ModelChanged { model, window, price, choice } => {
                if let Some((model, effort)) = choice {
                    self.emit(Fact::ModelChanged { model, effort }, &mut out);
                    out.0.push(SessionEffect::AnswerOp { result: Ok(()) });
                }
                if model != self.config.model {
                    self.config.fallback_models.clear();
                }
                (self.config.model, self.config.context_window, self.config.price) =
                    (model, window, price);
            }
            SessionInput::ModelOffered { model } => {
                self.config.prompt_models.retain(|other| other.name != model.name);
                self.config.prompt_models.push(model);
            }
            SessionInput::AgentChanged {
                agent,
                model,
                fallback_models,
                max_steps,
                system_prompt,
            } => {
                let SessionModel { name, window, price } = model;
                (self.config.model, self.config.context_window, self.config.price) =
                    (name, window, price);
                self.config.fallback_models = fallback_models;
                self.config.limits.steps = max_steps;
                self.config.system_prompt = *system_prompt;
                self.emit(Fact::AgentChanged { agent }, &mut out);
                out.0.push(SessionEffect::AnswerOp { result: Ok(()) });
            }
            SessionInput::Notice { text, change } => self.add_notices([(text, change)], &mut out),
            SessionInput::HooksRan { call, hook_runs } => {
                self.record_hook_runs(call, hook_runs, &mut out)
            }
            SessionInput::SystemPromptReviewed { text, hook_runs } => {
                self.record_hook_runs(None, hook_runs, &mut out);
                self.config.system_prompt.replace_text(text);
            }
            SessionInput::PromptAccepted { prompt, hook_runs, context } => {
                self.record_hook_runs(None, hook_runs, &mut out);
                let notices = context.into_iter().map(|text| (text, ContextChange::Note));
                self.add_notices(notices, &mut out);
                self.submit_prompt(stamp, prompt, &mut out);
                out.0.push(SessionEffect::AnswerOp { result: Ok(()) });
            }
            SessionInput::TurnEndReviewed { turn, hook_runs, goal_failure } => {
                self.on_turn_end_reviewed(turn, (hook_runs, goal_failure), &mut out)
            }
            SessionInput::PromptRejected { text, end, hook_runs } => {
                self.record_hook_runs(None, hook_runs, &mut out);
                let result = self.reject_prompt(stamp, text, end, &mut out);
                out.0.push(SessionEffect::AnswerOp { result });
            }
            SessionInput::RetryTimer { turn, step } => {
                let is_waiting =
                    |t: &ActiveTurn| t.number == turn && t.steps == step && !t.step_open;
                if self.turn.as_ref().is_some_and(|t| is_waiting(t) && t.failures > 0) {
                    self.retry_step(&mut out);
                }
            }
            SessionInput::TurnTimeout { turn } => self.turn_timed_out(turn, &mut out),
            SessionInput::TitleFound { title } => self.on_title_found(title, &mut out),
            SessionInput::SideRequestEnded { purpose, model, usage, cost } => {
                self.emit(Fact::SideRequestEnded { purpose, model, usage, cost }, &mut out)
            }
        }
        out.0
    }

    fn submit_prompt(
        &mut self,
        stamp: InputTimeAndId,
        prompt: SubmittedPrompt,
        out: &mut EffectList,
    ) {
        let SubmittedPrompt { text, attachments, mut delivery, settings } = prompt;
        if settings.limits_turn() {
            // They must not end the turn of another prompt.
            delivery = PromptDelivery::Queue;
        }
        let prompt = PromptId(stamp.id);
        let fact = Fact::PromptSubmitted { prompt, text, attachments, delivery, settings };
        self.emit(fact, out);
        self.start_next_turn(out);
    }

    /// Starts the next turn if `queued_prompts` is not empty and no turn is under way.
    fn start_next_turn(&mut self, out: &mut EffectList) {
        if self.turn.is_some() {
            return;
        }
        let Some(prompt) = self.transcript.queued_prompts.first().map(|prompt| prompt.id) else {
            return;
        };
        let turn = self.turn_count + 1;
        self.emit(Fact::TurnStarted { turn, prompt: Some(prompt) }, out);
        self.ask_model(out);
        if self.turn_count == turn {
            self.start_turn_timer(out);
        }
    }

    /// Repeats the last request, for an answer or a summary.
    fn retry_step(&mut self, out: &mut EffectList) {
        match self.turn.as_ref().map(|turn| turn.has_prompt) {
            Some(true) => self.ask_model(out),
            Some(false) => self.continue_compaction(out),
            None => {}
        }
    }

    /// Requests the next answer, or first a summary if the conversation does not fit.
    fn ask_model(&mut self, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        let max_steps = self.turn_limits().steps;
        let step_limit = || format!("the limit of {max_steps} requests per turn");
        let limit = (turn.steps >= max_steps).then(step_limit).or_else(|| self.limit_reached());
        if let Some(limit) = limit {
            return self.end_turn(TurnEndReason::LimitReached { limit }, out);
        }
        // A request that was lost with the process is repeated unchanged.
        let is_repeated = turn.steps > 0 && turn.last_finish.is_none();
        self.record_system_prompt(out);
        if !is_repeated {
            self.apply_steering_prompts(out);
            self.record_mode_notice(out);
            self.record_conditions_notice(out);
        }
        self.record_prompt_update(out);
        self.record_todo_notice(out);
        self.record_notices(out);
        match self.ensure_room(out) {
            CompactionResult::NotNeeded => {
                let messages = self.transcript.model_messages();
                let model = self.answer_model().name;
                self.start_step(StepPurpose::Answer, model, messages, out);
            }
            CompactionResult::Running => {}
            CompactionResult::Impossible => self.end_with_overflow(out),
        }
    }

    /// Records `SystemPromptSet` once per session.
    fn record_system_prompt(&mut self, out: &mut EffectList) {
        let text = self.config.system_prompt.text().to_string();
        if self.transcript.system_prompt.is_none() && !text.is_empty() {
            let state = self.config.system_prompt.parts().state();
            self.emit(Fact::SystemPromptSet { text, state }, out);
        }
    }

    /// Records the `pending_notices`, so that the model reads them next.
    fn record_notices(&mut self, out: &mut EffectList) {
        for (text, change) in std::mem::take(&mut self.pending_notices) {
            self.emit(Fact::ContextChanged { text, change }, out);
        }
    }

    fn end_turn(&mut self, end: TurnEndReason, out: &mut EffectList) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.number) else { return };
        self.emit(Fact::TurnEnded { turn, end }, out);
        self.record_notices(out);
        self.start_next_turn(out);
    }

    /// Applies a fact to the state, and adds it to the log.
    fn emit(&mut self, fact: Fact, out: &mut EffectList) {
        for opening in std::mem::take(&mut self.pending_opening) {
            self.apply_fact(&opening);
            out.push_fact(opening);
        }
        self.apply_fact(&fact);
        out.push_fact(fact);
    }
}

#[cfg(test)]
mod tests;
