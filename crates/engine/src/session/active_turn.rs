//! State of the current turn: its step, its calls and the stage of each call.

use super::partial_calls::PartialCall;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{
    AllowedCalls, ApprovalKind, CallAuthor, CallDescription, CallId, CallOutcome, Cost, Fact,
    FileChange, FinishReason, LogSeq, ModelStreamKind, PermissionAnswer, PromptLimits,
    SeenFileDigest, SessionId, StepPurpose, ToolAccess, TurnGoal, UnixMillis, UserQuestion,
};
use windlass_toolkit::{CallIntent, QuestionEffect};

/// Work on one prompt, one call made by the user, or one compaction.
#[derive(Clone, Debug)]
pub(super) struct ActiveTurn {
    pub(super) number: u32,
    /// False for a turn that no prompt started: a user's call, which involves no model, or a
    /// compaction.
    pub(super) has_prompt: bool,
    /// Number of model requests.
    pub(super) steps: u32,
    /// Log position of the last `StepStarted`.
    pub(super) step_seq: Option<LogSeq>,
    /// True between `StepStarted` and `StepEnded`.
    pub(super) step_open: bool,
    /// Purpose and model of the last request.
    pub(super) purpose: StepPurpose,
    pub(super) step_model: String,
    /// Model that the prompt names for this turn.
    pub(super) prompt_model: Option<String>,
    /// Model that took over for the rest of the turn, from `StepRetrying`.
    pub(super) fallback_model: Option<String>,
    /// The last summary request gave no summary, so the small model is not asked for the next one.
    pub(super) summary_failed: bool,
    /// Last log position that the summary in progress covers.
    pub(super) summary_through: LogSeq,
    /// Start time, shifted by the time in which no process ran the turn.
    pub(super) started_at: UnixMillis,
    /// Total usage and cost of its steps, from `StepEnded`.
    pub(super) tokens: u64,
    pub(super) cost: Cost,
    /// The last answer contained text or calls.
    pub(super) had_output: bool,
    /// Number of empty answers in a row.
    pub(super) empty_answers: u32,
    pub(super) last_finish: Option<FinishReason>,
    /// Number of failed requests in a row, from `StepRetrying`.
    pub(super) failures: u32,
    /// Time of the first of these failures. It is not in the log: after a crash the time restarts,
    /// but the count does not.
    pub(super) failing_since: Option<UnixMillis>,
    /// Delay before the next retry, from `StepRetrying`.
    pub(super) wait_ms: u64,
    /// Calls of the last step.
    pub(super) calls: Vec<TurnCall>,
    /// Number of settled calls. They are the first ones, because calls settle in order.
    pub(super) settled_calls: usize,
    /// Output of the open step so far.
    pub(super) output_blocks: Vec<ModelOutputBlock>,
    pub(super) output_bytes: usize,
    /// Calls of the open step that the model is writing, by `ModelEvent::CallDelta::index`.
    pub(super) partial_calls: BTreeMap<u64, PartialCall>,
    /// The user has interrupted the turn.
    pub(super) interrupted: bool,
    /// The limit that the turn has reached. It is not in the log: after a crash it is detected
    /// again.
    pub(super) limit_reached: Option<String>,
    /// The user approved this call: no call up to it counts as part of a loop.
    pub(super) loop_reset_call: Option<CallId>,
    /// Calls that the turn's prompts and the skills loaded in it allow; empty if none of them names
    /// calls.
    pub(super) allowed_calls: Vec<AllowedCalls>,
    /// Condition for the end of the turn.
    pub(super) goal: Option<TurnGoal>,
    /// Limits that the turn's prompts name.
    pub(super) limits: PromptLimits,
    /// JSON Schema that the answer must match.
    pub(super) answer_schema: Option<Arc<Value>>,
    /// The model has not been told of the goal or the allowed calls of a prompt.
    pub(super) conditions_notice_due: bool,
    /// Number of times that the goal was checked.
    pub(super) goal_checks: u32,
    /// Output of the last command that checked the goal, while the model can still see it.
    pub(super) check_output: String,
    /// Number of checks in a row that had the same output as the one before, with no changed file in
    /// between.
    pub(super) repeated_checks: u32,
    /// A call of the model changed files, or started a subagent, since the last check.
    pub(super) has_new_changes: bool,
    /// Number of times that hooks or its goal continued the turn.
    pub(super) continuations: u32,
    /// Number of continuations since the last call of the model.
    pub(super) idle_continuations: u32,
    /// Hooks are being asked whether the turn may end.
    pub(super) end_under_review: bool,
}

impl ActiveTurn {
    pub(super) fn new(number: u32, has_prompt: bool, started_at: UnixMillis) -> ActiveTurn {
        ActiveTurn {
            number,
            has_prompt,
            steps: 0,
            step_seq: None,
            step_open: false,
            purpose: StepPurpose::Answer,
            step_model: String::new(),
            prompt_model: None,
            fallback_model: None,
            summary_failed: false,
            summary_through: 0,
            started_at,
            tokens: 0,
            cost: Cost::default(),
            had_output: false,
            empty_answers: 0,
            last_finish: None,
            failures: 0,
            failing_since: None,
            wait_ms: 0,
            calls: Vec::new(),
            settled_calls: 0,
            output_blocks: Vec::new(),
            output_bytes: 0,
            partial_calls: BTreeMap::new(),
            interrupted: false,
            limit_reached: None,
            loop_reset_call: None,
            allowed_calls: Vec::new(),
            goal: None,
            limits: PromptLimits::default(),
            answer_schema: None,
            conditions_notice_due: false,
            goal_checks: 0,
            check_output: String::new(),
            repeated_checks: 0,
            has_new_changes: false,
            continuations: 0,
            idle_continuations: 0,
            end_under_review: false,
        }
    }

    /// Returns true if no further work may start in this turn.
    pub(super) fn is_stopping(&self) -> bool {
        self.interrupted || self.limit_reached.is_some()
    }

    /// Removes the `output_blocks` of the open step, and returns their text.
    pub(super) fn take_text(&mut self) -> String {
        let text = |block: ModelOutputBlock| match block {
            ModelOutputBlock::Text { stream: ModelStreamKind::Text, text, .. } => Some(text),
            ModelOutputBlock::Text { stream: ModelStreamKind::Reasoning, .. }
            | ModelOutputBlock::Call(_) => None,
        };
        std::mem::take(&mut self.output_blocks).into_iter().filter_map(text).collect()
    }

    /// Returns the texts that the model has written in the open step.
    pub(super) fn streamed_texts(&self) -> impl Iterator<Item = (ModelStreamKind, &str)> {
        self.output_blocks.iter().filter_map(|block| match block {
            ModelOutputBlock::Text { stream, text, .. } => Some((*stream, text.as_str())),
            ModelOutputBlock::Call(_) => None,
        })
    }

    /// Returns the calls that have not settled.
    pub(super) fn open_calls(&self) -> &[TurnCall] {
        self.calls.get(self.settled_calls..).unwrap_or_default()
    }

    pub(super) fn open_calls_mut(&mut self) -> &mut [TurnCall] {
        self.calls.get_mut(self.settled_calls..).unwrap_or_default()
    }

    pub(super) fn open_call_mut(&mut self, id: CallId) -> Option<&mut TurnCall> {
        self.open_calls_mut().iter_mut().find(|call| call.id == id)
    }

    pub(super) fn mark_settled(&mut self, id: CallId) {
        let Some(index) = self.open_calls().iter().position(|call| call.id == id) else { return };
        if let Some(calls) = self.open_calls_mut().get_mut(..=index) {
            calls.rotate_right(1);
        }
        self.settled_calls += 1;
    }

    /// Returns the first open call that may start now. Calls with a `read_only` intent run in
    /// parallel; a call that changes something runs alone, after all earlier calls and before all
    /// later ones.
    pub(super) fn next_startable_call(&mut self) -> Option<&mut TurnCall> {
        let allows_next = |call: &TurnCall| match &call.stage {
            CallStage::AwaitingPermission(intent) | CallStage::Running(intent) => intent.read_only,
            CallStage::Done(_) => true,
            CallStage::NotStarted | CallStage::Preparing | CallStage::Reconciling => false,
        };
        for (index, call) in self.open_calls_mut().iter_mut().enumerate() {
            match &call.stage {
                CallStage::AwaitingPermission(intent) if call.is_permitted(intent) => {
                    if intent.read_only || index == 0 {
                        return Some(call);
                    }
                }
                CallStage::AwaitingPermission(_) | CallStage::NotStarted | CallStage::Preparing => {
                }
                CallStage::Running(_) | CallStage::Reconciling | CallStage::Done(_) => {}
            }
            if !allows_next(call) {
                return None;
            }
        }
        None
    }
}

/// A block of an answer in progress; recorded by `end_step`.
#[derive(Clone, Debug)]
pub(super) enum ModelOutputBlock {
    Text {
        stream: ModelStreamKind,
        text: String,
        provider_signature: Option<String>,
    },
    /// A call, as the `ToolCalled` fact to record.
    Call(Fact),
}

/// A call of the turn: its state from the log, and its stage in this process.
#[derive(Clone, Debug)]
pub(super) struct TurnCall {
    pub(super) id: CallId,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) author: CallAuthor,
    /// Description of the call by its tool.
    pub(super) description: CallDescription,
    /// Accesses of the last permission request, and its answer.
    pub(super) asked_accesses: Option<Vec<ToolAccess>>,
    pub(super) answer: Option<PermissionAnswer>,
    /// The last permission request showed what the call would do, such as a diff.
    pub(super) asked_with_preview: bool,
    /// Position of the last permission request or question.
    pub(super) asked_seq: Option<LogSeq>,
    /// Command kind offered in the permission request.
    pub(super) approval_kind: Option<ApprovalKind>,
    pub(super) attempts: u32,
    pub(super) read_only: bool,
    /// Accesses from `CallStarted`, and the changes from `FilesChanging`, per batch.
    pub(super) accesses: Vec<ToolAccess>,
    pub(super) recorded_changes: Vec<Vec<FileChange>>,
    /// Subagent session that the call started.
    pub(super) subagent: Option<SessionId>,
    pub(super) approval_state: ApprovalState,
    /// Questions of the call to the user.
    pub(super) question_state: QuestionState,
    pub(super) seen_files: Vec<SeenFileDigest>,
    pub(super) denied: bool,
    /// Exit code of its command, after it has settled.
    pub(super) exit_code: Option<i64>,
    /// It ended as `ResultUnknown`.
    pub(super) result_unknown: bool,
    /// Description of the loop that the call would continue, from `describe_loop`.
    pub(super) detected_loop: Option<String>,
    /// Outcome of the call if a hook refused it: see `apply_hook_verdict`.
    pub(super) hook_refusal: Option<CallOutcome>,
    /// Reason why a hook requires approval of the call.
    pub(super) hook_question: Option<String>,
    pub(super) stage: CallStage,
}

/// State of a call's permission request in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalState {
    NotAsked,
    /// The call was asked for a preview.
    Previewing,
    /// `PermissionAsked` is recorded, and the user may answer.
    Asked,
    /// An earlier approval covers the call, so the user is not asked.
    Covered,
}

/// The last questions of a call, as recorded, and the answers.
#[derive(Clone, Debug, Default)]
pub(super) struct QuestionState {
    pub(super) questions: Vec<UserQuestion>,
    pub(super) answers: Option<Vec<Vec<String>>>,
    /// Effect of the answer, while a call of this process waits for it; `None` otherwise.
    pub(super) effect: Option<QuestionEffect>,
    /// The user answered the question of an earlier process before the call asked it again, so the
    /// effect of the answer was not known.
    pub(super) is_effect_pending: bool,
}

impl QuestionState {
    /// Applies a `QuestionAsked` or `QuestionAnswered` fact.
    pub(super) fn apply_fact(&mut self, fact: &Fact) {
        if let Fact::QuestionAsked { questions, .. } = fact {
            (self.questions, self.answers) = (questions.clone(), None);
        }
        if let Fact::QuestionAnswered { answers, .. } = fact {
            self.answers = Some(answers.clone());
        }
    }
}

/// Stage of a call in this process. It is not in the log: after a crash every call is `NotStarted`
/// again.
#[derive(Clone, Debug)]
pub(super) enum CallStage {
    /// Not sent to the tool pipeline.
    NotStarted,
    /// In the tool pipeline, before its `CallIntent` is known.
    Preparing,
    /// It has declared its intent, and waits for permission.
    AwaitingPermission(CallIntent),
    /// It was permitted, and `CallStarted` is recorded.
    Running(CallIntent),
    /// It was changing files when the process died; the state of the files is being checked.
    Reconciling,
    /// It ended, and waits for earlier calls to settle.
    Done(CallOutcome),
}

impl TurnCall {
    pub(super) fn new(
        id: CallId,
        tool: String,
        arguments: String,
        author: CallAuthor,
        description: CallDescription,
    ) -> TurnCall {
        TurnCall {
            id,
            tool,
            arguments,
            author,
            description,
            asked_accesses: None,
            answer: None,
            asked_with_preview: false,
            asked_seq: None,
            approval_kind: None,
            attempts: 0,
            read_only: false,
            accesses: Vec::new(),
            recorded_changes: Vec::new(),
            subagent: None,
            approval_state: ApprovalState::NotAsked,
            question_state: QuestionState::default(),
            seen_files: Vec::new(),
            denied: false,
            exit_code: None,
            result_unknown: false,
            detected_loop: None,
            hook_refusal: None,
            hook_question: None,
            stage: CallStage::NotStarted,
        }
    }

    /// Returns true if the user denied the call with `reason: None`, which ends the turn.
    pub(super) fn ends_turn(&self) -> bool {
        self.answer == Some(PermissionAnswer::No { reason: None })
    }

    /// Returns true if a looping call was not approved: the user denied it without a reason, no
    /// user was there, or the call failed before the user could be asked.
    pub(super) fn ends_loop(&self) -> bool {
        match &self.answer {
            Some(PermissionAnswer::No { reason: None } | PermissionAnswer::Unavailable { .. }) => {
                true
            }
            Some(_) => false,
            None => self.attempts == 0,
        }
    }

    /// Returns true if the call requires no approval, or has one for exactly this intent, given now
    /// or earlier.
    pub(super) fn is_permitted(&self, intent: &CallIntent) -> bool {
        !self.needs_answer(intent)
            || self.approval_state == ApprovalState::Covered
            || self.matching_answer(intent).is_some_and(PermissionAnswer::is_yes)
    }

    /// Returns true if the call requires an answer. A request once made stays: a rule that was
    /// relaxed later does not answer for the user.
    pub(super) fn needs_answer(&self, intent: &CallIntent) -> bool {
        intent.ask_reason.is_some() || self.asked_accesses.is_some()
    }

    /// Returns the answer given for exactly these accesses, if any.
    pub(super) fn matching_answer(&self, intent: &CallIntent) -> Option<&PermissionAnswer> {
        self.answer.as_ref().filter(|_| self.asked_accesses.as_ref() == Some(&intent.accesses))
    }
}
