//! Inputs and effects of a session, as plain data: `SessionInput` and `SessionEffect`.

use super::{ContextWindow, SessionModel};
use crate::system_prompt::RenderedSystemPrompt;
use std::sync::Arc;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_llm::catalog::Price;
use windlass_protocol::{
    AllowedCalls, Attachment, CallAuthor, CallId, CallOutcome, ContextChange, Cost, Fact,
    FileChange, LiveEvent, LogSeq, Messages, OpError, PermissionAnswer, ProjectApproval,
    PromptDelivery, PromptSettings, SeenFileDigest, SessionId, SessionOp, SideRequestPurpose,
    StepPurpose, TokenUsage, ToolAccess, TurnEndReason, UnixMillis, UserQuestion,
};
use windlass_toolkit::{CallIntent, HookRun, QuestionEffect};

/// Time and unique id of an input. The driver stamps every input, so that `Session` needs neither a
/// clock nor a random source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputTimeAndId {
    /// Time of the input.
    pub at: UnixMillis,
    /// A new UUIDv7.
    pub id: Uuid,
}

impl InputTimeAndId {
    /// Returns unpredictable bits: the last bits of the id, which do not depend on the time.
    pub(super) fn random_bits(self) -> u64 {
        self.id.as_u64_pair().1 & (u64::MAX >> 16)
    }
}

/// A prompt of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmittedPrompt {
    /// Text of the prompt.
    pub text: String,
    /// Files attached to the prompt.
    pub attachments: Vec<Attachment>,
    /// Delivery to the model: `Steer` or queued.
    pub delivery: PromptDelivery,
    /// Settings of the turn that processes it.
    pub settings: PromptSettings,
}

/// An event that a session reacts to. Results of effects carry their turn, so that a late result
/// for an ended turn has no effect.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionInput {
    /// A request from the user, or from a program on the user's behalf.
    Op(SessionOp),
    /// The session was opened; work that was under way resumes.
    Resume,
    /// A `ModelEvent` of the request under way.
    Model {
        /// Turn of the request.
        turn: u32,
        /// Step of the request.
        step: u32,
        /// The model's event.
        event: ModelEvent,
    },
    /// A call has been parsed and declares its `CallIntent`.
    PermissionRequested {
        /// Turn of the call.
        turn: u32,
        /// The declaring call.
        call: CallId,
        /// Accesses and other properties of the call.
        intent: CallIntent,
    },
    /// The preview that `RequestPreview` asked for, for the permission request.
    PreviewReady {
        /// Turn of the call.
        turn: u32,
        /// The previewed call.
        call: CallId,
        /// Effects of the call, if the tool supports previews.
        preview: Option<String>,
    },
    /// A call did not make the changes it last announced with `FilesChanging`.
    FilesUnchanged {
        /// Turn of the call.
        turn: u32,
        /// The call that announced them.
        call: CallId,
    },
    /// A call ended.
    CallSettled {
        /// Turn of the call.
        turn: u32,
        /// The ended call.
        call: CallId,
        /// Result of the call.
        outcome: CallOutcome,
        /// Digests of the files that the call read or wrote.
        seen_files: Vec<SeenFileDigest>,
    },
    /// A call is about to change files or has changed them, and waits until that is recorded.
    FilesChanging {
        /// Turn of the call.
        turn: u32,
        /// The call that waits for `ConfirmRecorded`.
        call: CallId,
        /// Version of each file before and after.
        changes: Vec<FileChange>,
        /// The changes are made already, so that they cannot be refused.
        are_made: bool,
    },
    /// A call asks the user questions, and waits for the answers.
    QuestionAsked {
        /// Turn of the call.
        turn: u32,
        /// The call that waits for `SendAnswers`.
        call: CallId,
        /// Questions to show to the user.
        questions: Vec<UserQuestion>,
        /// Effect of the answer on the session.
        effect: QuestionEffect,
    },
    /// A call requests a subagent session, and waits until `SubagentStarted` is recorded.
    SubagentRequested {
        /// Turn of the call.
        turn: u32,
        /// The call, session and agent.
        subagent: SubagentStart,
    },
    /// The model was not called, because the shared `TurnBudget` is used up.
    BudgetExhausted {
        /// Turn of the request.
        turn: u32,
        /// Step of the request.
        step: u32,
        /// Description of the limit reached.
        limit: String,
    },
    /// The model changes from the next step on.
    ModelChanged {
        /// Name of the new model, `provider/model`.
        model: String,
        /// Context window of the new model.
        window: ContextWindow,
        /// Price of the new model.
        price: Price,
        /// Name and effort, if an operation of the user chose the model.
        choice: Option<(String, Option<String>)>,
    },
    /// Prompts after this one can name this model for their turn.
    ModelOffered {
        /// The model.
        model: SessionModel,
    },
    /// The user switched to another agent, between turns.
    AgentChanged {
        /// Name of the agent.
        agent: String,
        /// Its model.
        model: SessionModel,
        /// Models that take over from it.
        fallback_models: Vec<SessionModel>,
        /// Maximum model requests in one turn.
        max_steps: u32,
        /// Its system prompt. The model gets the difference from what it was told.
        system_prompt: Box<RenderedSystemPrompt>,
    },
    /// Information for the model about an external event; becomes a `ContextChanged` fact.
    Notice {
        /// Text for the model.
        text: String,
        /// Change that the text states.
        change: ContextChange,
    },
    /// Hooks have run.
    HooksRan {
        /// Call that the hooks ran for, if any.
        call: Option<CallId>,
        /// Result of each hook.
        hook_runs: Vec<HookRun>,
    },
    /// Hooks accepted the system prompt.
    SystemPromptReviewed {
        /// System prompt as revised by the hooks.
        text: Arc<str>,
        /// Result of each hook.
        hook_runs: Vec<HookRun>,
    },
    /// The answers of the hooks at the end of a turn.
    TurnEndReviewed {
        /// The turn.
        turn: u32,
        /// Result of each hook.
        hook_runs: Vec<HookRun>,
        /// The reason why the goal of the turn could not be judged.
        goal_failure: Option<String>,
    },
    /// A user prompt that the hooks accepted.
    PromptAccepted {
        /// Prompt as revised by the hooks.
        prompt: SubmittedPrompt,
        /// Result of each hook.
        hook_runs: Vec<HookRun>,
        /// Context that the hooks add for the model.
        context: Vec<String>,
    },
    /// A user prompt that does not reach the model.
    PromptRejected {
        /// Text recorded instead of the prompt.
        text: String,
        /// End of the turn that the prompt would have started.
        end: TurnEndReason,
        /// Result of each hook.
        hook_runs: Vec<HookRun>,
    },
    /// The delay of a `RetryAfter` has passed.
    RetryTimer {
        /// Turn that waits.
        turn: u32,
        /// Failed step.
        step: u32,
    },
    /// The time limit of a turn may have been reached.
    TurnTimeout {
        /// Turn of the timer.
        turn: u32,
    },
    /// The model generated a title.
    TitleFound {
        /// The generated title.
        title: String,
    },
    /// A request to a model apart from the conversation ended.
    SideRequestEnded {
        /// Purpose of the request.
        purpose: SideRequestPurpose,
        /// Model name, `provider/model`.
        model: String,
        /// Usage of the request.
        usage: TokenUsage,
        /// Cost of `usage`, if known.
        cost: Option<Cost>,
    },
}

impl SessionInput {
    /// Returns a notice that nothing else depends on.
    pub fn note(text: String) -> SessionInput {
        SessionInput::Notice { text, change: ContextChange::Note }
    }
}

/// A subagent session that a call starts or resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentStart {
    /// The call that starts it.
    pub call: CallId,
    /// Id of the subagent session.
    pub session: SessionId,
    /// Name of the agent to run.
    pub agent: String,
    /// Last position of its log, if it has worked before.
    pub after: LogSeq,
}

/// An action for the driver. Effects run in order, and an append is written before later effects
/// run.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEffect {
    /// Append facts to the log, all or none.
    Append(Vec<Fact>),
    /// Send a live event to the watchers.
    Emit(LiveEvent),
    /// Call the model; its events return as `SessionInput::Model`.
    CallModel {
        /// Turn of the request.
        turn: u32,
        /// Step of the request.
        step: u32,
        /// Name of the model, `provider/model`.
        model: String,
        /// Purpose of the request. A summary needs no tools; its instruction is appended to the
        /// messages.
        purpose: StepPurpose,
        /// System prompt of the session.
        system_prompt: Arc<str>,
        /// Conversation to send.
        messages: Messages,
    },
    /// Cancel the model request.
    CancelModel,
    /// Run a call through the tool pipeline; its end returns as `CallSettled`.
    CallTool {
        /// Turn of the call.
        turn: u32,
        /// Id of the call.
        call: CallId,
        /// Tool name as written by the caller.
        tool: String,
        /// Arguments as written by the caller.
        arguments: String,
        /// Author of the call.
        author: CallAuthor,
        /// Calls that the skills and commands of the turn allow.
        allowed_calls: Vec<AllowedCalls>,
    },
    /// Ask the hooks at the end of a turn whether it may end; their answers return as
    /// `TurnEndReviewed`.
    ReviewTurnEnd {
        /// The turn.
        turn: u32,
        /// Number of times that the turn has been continued.
        continuations: u32,
        /// Condition for a model to judge.
        condition: Option<String>,
    },
    /// Let a call make its announced changes, since `FilesChanging` is now recorded.
    ConfirmRecorded {
        /// The waiting call.
        call: CallId,
    },
    /// Start the subagent session of a call, since `SubagentStarted` is now recorded.
    StartSubagent {
        /// The call that requested it.
        call: CallId,
        /// Id of the subagent session.
        session: SessionId,
        /// The call had started this session before a crash.
        resumed: bool,
        /// Calls that the turn allows, for the subagent as well.
        allowed_calls: Vec<AllowedCalls>,
    },
    /// Determine the outcome of a call that may have been changing files when the process died;
    /// returns as `CallSettled`.
    Reconcile {
        /// Turn of the call.
        turn: u32,
        /// The interrupted call.
        call: CallId,
        /// Accesses of the call.
        accesses: Vec<ToolAccess>,
        /// Changes that the call had recorded.
        changes: Vec<FileChange>,
    },
    /// Answer the operation that is the current input. It is the last effect of the input, so the
    /// facts of the operation are written before.
    AnswerOp {
        /// The reason why it was refused, if it was.
        result: Result<(), OpError>,
    },
    /// Cancel a call.
    CancelTool {
        /// Call to cancel.
        call: CallId,
    },
    /// Request a `PreviewReady` from a call, for a permission request.
    RequestPreview {
        /// Call to preview.
        call: CallId,
    },
    /// Permit or deny a call that has declared its intent.
    SendPermission {
        /// The waiting call.
        call: CallId,
        /// Answer to the permission request.
        answer: PermissionAnswer,
    },
    /// Send the user's answers to a call; empty if the user declines to answer.
    SendAnswers {
        /// The asking call.
        call: CallId,
        /// One list per question.
        answers: Vec<Vec<String>>,
    },
    /// Save approvals for the whole project.
    SaveApprovals {
        /// Approvals to save.
        approvals: Vec<ProjectApproval>,
    },
    /// End a background job.
    EndJob {
        /// Number of the job.
        job: u64,
    },
    /// Send `RetryTimer` after a delay.
    RetryAfter {
        /// Turn that waits.
        turn: u32,
        /// Failed step.
        step: u32,
        /// Delay in milliseconds.
        after_ms: u64,
    },
    /// Send `TurnTimeout` when the time limit of a turn may be reached.
    StartTurnTimer {
        /// Turn of the timer.
        turn: u32,
        /// Delay in milliseconds.
        after_ms: u64,
    },
}
