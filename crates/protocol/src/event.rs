//! Session events, the core of the protocol: a log is a list of [`Fact`]s, and a front end also
//! receives [`LiveEvent`](crate::LiveEvent)s.
//!
//! The type decides durability: storage accepts only facts, so a delta cannot be stored by mistake
//! and a fact cannot be forgotten. All matches on `Fact` list every variant without wildcards, so
//! that a new variant must be handled in every fold and every front end.

use crate::call_approval_and_outcome::{
    ApprovalKind, Attachment, CallAuthor, CallOutcome, CallRepair, PermissionAnswer, RequestDanger,
};
use crate::call_description::CallDescription;
use crate::client_info::ClientInfo;
use crate::context_change::{ContextChange, SystemPromptState};
use crate::fault::Fault;
use crate::file_change::{FileChange, SeenFileDigest};
use crate::hook::{HookPoint, HookVerdict};
use crate::ids_and_timestamps::{CallId, LogSeq, OpId, PromptId, SessionId, UnixMillis};
use crate::live_event::LiveEventRecord;
use crate::permission_mode::PermissionMode;
use crate::prompt_delivery::PromptDelivery;
use crate::prompt_settings::PromptSettings;
use crate::requested_access::ToolAccess;
use crate::step::{
    Cost, FinishReason, ParentCall, SideRequestPurpose, StepPurpose, TokenUsage, TurnEndReason,
};
use crate::todo_item::TodoItem;
use crate::user_question::UserQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event of a session that must not be lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    /// The session was created. This is always the first fact of a log.
    SessionOpened {
        /// Folder that the session works in.
        workspace: String,
        /// Version of Windlass that created the session.
        version: String,
        /// Agent that works in the session.
        #[serde(default = "default_agent", skip_serializing_if = "is_default_agent")]
        agent: String,
        /// Tool call that started the session, if it is a subagent session (`SubagentStarted`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentCall>,
    },
    /// The system prompt was set. This happens once, before the first step, and the prompt never
    /// changes, because the provider's cache of a conversation begins with it.
    SystemPromptSet {
        /// Text of the system prompt.
        text: String,
        /// Environment and instructions that the text states.
        #[serde(default, skip_serializing_if = "SystemPromptState::is_empty")]
        state: SystemPromptState,
    },
    /// The session switched to another mode.
    ModeChanged {
        /// The new mode.
        mode: PermissionMode,
    },
    /// The session switched to another agent.
    AgentChanged {
        /// Name of the new agent.
        agent: String,
    },
    /// The user chose another model for the session.
    ModelChanged {
        /// The model, as `provider/model`.
        model: String,
        /// Reasoning effort or variant of the model; that of the config if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
    },
    /// The session got a title.
    SessionRenamed {
        /// The new title.
        title: String,
    },
    /// A request to a model apart from the conversation ended, such as the one for a title.
    SideRequestEnded {
        /// Purpose of the request.
        purpose: SideRequestPurpose,
        /// Model, as `provider/model`.
        model: String,
        /// Tokens used by the request.
        usage: TokenUsage,
        /// Cost of `usage`, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// All facts before this one are copied from the beginning of another session. Queued prompts
    /// and session approvals of that session are not copied.
    SessionForked {
        /// ID of the other session.
        source_session: SessionId,
        /// Last copied position of `source_session`.
        through: LogSeq,
    },
    /// A summary replaced the earlier conversation for the model.
    ContextCompacted {
        /// Last position that the summary covers.
        through: LogSeq,
        /// Text of the summary.
        summary: String,
        /// To-do list that the text states.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        todos: Vec<TodoItem>,
        /// Mode that the text states, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<PermissionMode>,
    },
    /// Outputs of these calls were removed from the model's context; the calls themselves remain.
    OutputsPruned {
        /// IDs of the pruned calls.
        calls: Vec<CallId>,
    },
    /// The session was rewound (`SessionOp::Rewind`): everything after a position leaves the conversation.
    Rewound {
        /// Last position that remains.
        to: LogSeq,
    },
    /// The user submitted a prompt (`SessionOp::Prompt`). It is durable before it is acknowledged.
    PromptSubmitted {
        /// ID of the prompt.
        prompt: PromptId,
        /// Text of the prompt.
        text: String,
        /// Files attached to the prompt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Time of delivery if the model is working: `steer` or `queue`.
        #[serde(default, skip_serializing_if = "PromptDelivery::is_steer")]
        delivery: PromptDelivery,
        /// Settings of the turn that processes the prompt.
        #[serde(default, skip_serializing_if = "PromptSettings::is_default")]
        settings: PromptSettings,
    },
    /// The user withdrew a queued prompt (`SessionOp::WithdrawPrompt`). No turn will process it.
    PromptWithdrawn {
        /// ID from `PromptSubmitted`.
        prompt: PromptId,
    },
    /// A turn started, for a prompt or for a call that the user made (`CallAuthor::User`).
    TurnStarted {
        /// Number of the turn in the session, starting at 1.
        turn: u32,
        /// Prompt that the turn answers; absent if the user made a call directly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptId>,
    },
    /// A queued prompt joined the current turn at this position (`PromptDelivery::Steer`).
    PromptSteered {
        /// Turn number from `TurnStarted`.
        turn: u32,
        /// ID from `PromptSubmitted`.
        prompt: PromptId,
    },
    /// A request was sent to the model.
    StepStarted {
        /// Turn number from `TurnStarted`.
        turn: u32,
        /// Number of the model request in the turn, starting at 1 and including retries.
        step: u32,
        /// Model, as `provider/model`.
        model: String,
        /// Purpose of the request.
        #[serde(default, skip_serializing_if = "StepPurpose::is_answer")]
        purpose: StepPurpose,
    },
    /// The response to a `StepStarted` request ended, successfully or not.
    StepEnded {
        /// Turn number from `TurnStarted`.
        turn: u32,
        /// Step number from `StepStarted`.
        step: u32,
        /// Reason why the response ended.
        finish_reason: FinishReason,
        /// Tokens used by the step.
        usage: TokenUsage,
        /// Cost of `usage`, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// A model request failed and will be retried.
    StepRetrying {
        /// Turn number from `TurnStarted`.
        turn: u32,
        /// Number of the failed step, from `StepStarted`.
        step: u32,
        /// Number of consecutive failed requests.
        attempt: u32,
        /// Cause of the failure.
        fault: Fault,
        /// Delay before the retry, in milliseconds.
        wait_ms: u64,
        /// Model that takes over for the rest of the turn, as `provider/model`, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The user interrupted the turn (`SessionOp::Interrupt`). Running calls are stopped and pending ones
    /// do not start, even after a crash.
    TurnInterrupted {
        /// Turn number from `TurnStarted`.
        turn: u32,
    },
    /// The turn ended.
    TurnEnded {
        /// Turn number from `TurnStarted`.
        turn: u32,
        /// Reason why the turn ended.
        end: TurnEndReason,
    },
    /// The model wrote text.
    ModelText {
        /// The complete text.
        text: String,
        /// Opaque data to send back to the provider with the text, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_signature: Option<String>,
    },
    /// The model produced reasoning.
    ModelReasoning {
        /// The complete reasoning; empty if the provider does not disclose it.
        text: String,
        /// Opaque data to send back to the provider with the reasoning, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_signature: Option<String>,
    },
    /// The model or the user called a tool.
    ToolCalled {
        /// ID of the call.
        call: CallId,
        /// The provider's ID of the call, sent back unchanged.
        provider_call_id: String,
        /// Name of the tool, as the model spelled it.
        tool: String,
        /// Arguments, as the model wrote them.
        arguments: String,
        /// Author of the call.
        author: CallAuthor,
        /// The call in words, from its tool.
        #[serde(default, skip_serializing_if = "CallDescription::is_empty")]
        description: CallDescription,
        /// Changes needed to recognize the model's output as a call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repair: Vec<String>,
        /// Opaque data to send back to the provider with the call, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_signature: Option<String>,
    },
    /// A call requires the user's approval, which `PermissionAnswered` records.
    PermissionAsked {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// Accesses that the call requests.
        accesses: Vec<ToolAccess>,
        /// Reason why approval is required: the most dangerous one that is known.
        reason: String,
        /// Danger of the call.
        #[serde(default, skip_serializing_if = "RequestDanger::is_normal")]
        danger: RequestDanger,
        /// Preview of the call's effect, if the tool provides one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
        /// The calls that the user can approve together with this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_kind: Option<ApprovalKind>,
        /// Repaired form of the call, if it differs from what the model wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repair: Option<CallRepair>,
    },
    /// The user answered the permission request (`SessionOp::AnswerPermission`), or an earlier answer
    /// covers a call without a request. It is durable before it takes effect.
    PermissionAnswered {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// Answer of the user.
        answer: PermissionAnswer,
    },
    /// All approvals that this session remembers are revoked: by the user
    /// (`SessionOp::RevokeApprovals`), or because the session of a subagent is opened again.
    ApprovalsRevoked,
    /// A call is about to run. The fact is durable before the first side effect of the call.
    CallStarted {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// Number of the attempt, starting at 1. Only a read-only call gets a second attempt, after
        /// a crash.
        attempt: u32,
        /// Accesses granted to the call.
        accesses: Vec<ToolAccess>,
        /// True if running the call again changes nothing.
        read_only: bool,
        /// Repaired form of the call, if it differs from what the model wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repair: Option<CallRepair>,
    },
    /// A call asks the user one or more questions, which `QuestionAnswered` answers.
    QuestionAsked {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// Questions to the user.
        questions: Vec<UserQuestion>,
    },
    /// The user answered the questions of a call (`SessionOp::AnswerQuestion`). The answer is durable
    /// before it takes effect.
    QuestionAnswered {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// One list per question, with the chosen options or the user's own text.
        answers: Vec<Vec<String>>,
    },
    /// A call started a subagent session, or resumed one.
    SubagentStarted {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// ID of the subagent session. In the JSON of a [`FactRecord`], `session` is the session that
        /// started it. Older logs have this name here, too.
        #[serde(rename = "subagent", alias = "session")]
        session: SessionId,
        /// Agent that works in the subagent session.
        agent: String,
        /// Last position in the log of the subagent before it started, if it has worked before.
        #[serde(default, skip_serializing_if = "is_zero")]
        after: LogSeq,
    },
    /// A call is about to change files: all of these or none. The fact is in the log before the
    /// first file changes, so that the change can be undone, and a crash recovery can tell if it
    /// happened.
    FilesChanging {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// Change of each file.
        changes: Vec<FileChange>,
    },
    /// The last `FilesChanging` of a call did not happen: all of its files are unchanged.
    FilesUnchanged {
        /// Call ID from `ToolCalled`.
        call: CallId,
    },
    /// A call ended. Every call has exactly one such fact.
    CallSettled {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// Outcome of the call: `completed`, `failed`, `denied`, `interrupted` or `result_unknown`.
        outcome: CallOutcome,
        /// Digests of the files that the call read or wrote.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen_files: Vec<SeenFileDigest>,
    },
    /// A hook ran.
    HookRan {
        /// Call that the hook was about, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Name of the hook.
        hook: String,
        /// Point at which the hook ran.
        point: HookPoint,
        /// Run time of the hook, in milliseconds.
        duration_ms: u64,
        /// Verdict of the hook.
        #[serde(flatten)]
        verdict: HookVerdict,
    },
    /// Windlass added information for the model that is not part of the conversation
    /// (`MessageRole::Context`).
    ContextChanged {
        /// Text for the model.
        text: String,
        /// Change that the text states, as data.
        #[serde(default, skip_serializing_if = "ContextChange::is_note")]
        change: ContextChange,
    },
    /// Facts at this position are missing or damaged. The rest of the session is intact.
    FactsLost {
        /// Number of lost facts.
        count: u64,
        /// Cause of the loss.
        reason: String,
    },
}

/// The agent of a session for which no other agent is chosen.
pub const DEFAULT_AGENT: &str = "build";

fn is_zero(seq: &LogSeq) -> bool {
    *seq == 0
}

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

fn is_default_agent(agent: &str) -> bool {
    agent == DEFAULT_AGENT
}

/// A [`Fact`] with its position in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactRecord {
    /// ID of the session.
    pub session: SessionId,
    /// Position in the log of `session`.
    pub seq: LogSeq,
    /// Epoch of the claim that wrote the fact, for a `LogPosition`; 0 if unknown. It means nothing
    /// outside of the log, so it is not part of the JSON.
    #[serde(skip)]
    pub epoch: u64,
    /// Time of the fact.
    pub at: UnixMillis,
    /// Operation that caused the fact, if it came from a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<FactOrigin>,
    /// The fact itself.
    #[serde(flatten)]
    pub fact: Fact,
}

impl FactRecord {
    /// Returns a record that no operation caused, of an unknown epoch.
    pub fn new(session: SessionId, seq: LogSeq, at: UnixMillis, fact: Fact) -> FactRecord {
        FactRecord { session, seq, epoch: 0, at, origin: None, fact }
    }
}

/// The operation that caused a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactOrigin {
    /// ID of the operation.
    pub op: OpId,
    /// Client that sent it.
    pub client: ClientInfo,
}

/// One line of the event stream: a fact (with `seq`) or a live event (without `seq`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Event {
    /// A stored fact, with `seq`.
    Fact(FactRecord),
    /// A live event without `seq`, sent only to current subscribers.
    Live(LiveEventRecord),
}

/// Returns the JSON Schema of one line of the event stream. The schema is a published interface.
pub fn event_schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(Event);
    schema.insert("title".into(), "Windlass event".into());
    schema
}
