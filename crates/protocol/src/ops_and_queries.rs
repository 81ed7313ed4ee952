//! Operations that a front end sends to a session ([`SessionOp`]), and queries about sessions ([`SessionQuery`]).

use crate::call_approval_and_outcome::{Attachment, PermissionAnswer};
use crate::event::{Fact, FactRecord};
use crate::file_history::{DiffDirection, UndoScope};
use crate::ids_and_timestamps::{CallId, LogSeq, PromptId, SessionId, UnixMillis};
use crate::log_text_search::MatchingFact;
use crate::permission_mode::PermissionMode;
use crate::prompt_delivery::PromptDelivery;
use crate::prompt_settings::PromptSettings;
use crate::query_rows::{ContextUsagePart, JobRow, PromptHistoryRow};
use crate::step::{Cost, TurnEndReason};
use crate::transcript::{Transcript, call_title, first_line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An operation on a session, requested by the user or by a program on the user's behalf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum SessionOp {
    /// Submits a prompt (`PromptSubmitted`).
    Prompt {
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
    /// Calls a tool directly, without the model.
    CallTool {
        /// Name of the tool.
        tool: String,
        /// Arguments, as JSON text.
        arguments: String,
    },
    /// Runs a shell command whose output becomes part of the next prompt.
    RunPromptCommand {
        /// The command in shell syntax.
        command: String,
    },
    /// Answers a permission request (`PermissionAsked`).
    AnswerPermission {
        /// Call ID from `PermissionAsked`.
        call: CallId,
        /// Answer of the user.
        answer: PermissionAnswer,
        /// Position of the `PermissionAsked` that the user saw. If the call has asked again since,
        /// the answer is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<LogSeq>,
    },
    /// Answers the questions of a call (`QuestionAsked`).
    AnswerQuestion {
        /// Call ID from `QuestionAsked`.
        call: CallId,
        /// One list per question, with the chosen options or the user's own text.
        answers: Vec<Vec<String>>,
        /// Position of the `QuestionAsked` that the user saw. If the call has asked again since,
        /// the answer is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<LogSeq>,
    },
    /// Summarizes the conversation to free context (`ContextCompacted`).
    Compact,
    /// Switches to another mode (`ModeChanged`).
    SetMode {
        /// The new mode.
        mode: PermissionMode,
    },
    /// Switches to another agent for later turns (`AgentChanged`). It works only between turns.
    SetAgent {
        /// Name of the agent; the user must be able to start it.
        agent: String,
    },
    /// Switches to another model from the next step on (`ModelChanged`).
    SetModel {
        /// The model, as `provider/model`.
        model: String,
        /// Reasoning effort or variant of the model; that of the config if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
    },
    /// Stops the current turn in an orderly way; a second `Interrupt` stops it at once.
    Interrupt {
        /// Number of the turn to stop, so that a late request does not stop the next turn; the
        /// current one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u32>,
    },
    /// Undoes or redoes the session's changes to files. Changes made outside the session stay.
    Undo {
        /// Positions of the facts to undo, as [`QueryReply::Changes`] names them.
        facts: Vec<LogSeq>,
    },
    /// Withdraws a queued prompt. A prompt that the model has already received stays.
    WithdrawPrompt {
        /// Prompt ID from `PromptSubmitted`.
        prompt: PromptId,
    },
    /// Rewinds the session: everything after a position leaves the conversation. It works only
    /// between turns, and only to the beginning of a turn. Files stay as they are; [`SessionOp::Undo`]
    /// restores them.
    Rewind {
        /// Last position that remains, as [`PromptHistoryRow::rewind_to`] names it.
        to: LogSeq,
    },
    /// Stops a background job.
    EndJob {
        /// Number of the job, as [`QueryReply::Jobs`] names it.
        job: u64,
    },
    /// Sets the title of the session (`SessionRenamed`).
    RenameSession {
        /// The new title.
        title: String,
    },
    /// Revokes all approvals that the session and its subagents remember (`ApprovalsRevoked`).
    RevokeApprovals,
}

impl SessionOp {
    /// Returns an `SessionOp::Prompt` without attachments.
    pub fn prompt(text: impl Into<String>) -> SessionOp {
        SessionOp::Prompt {
            text: text.into(),
            attachments: Vec::new(),
            delivery: PromptDelivery::default(),
            settings: Default::default(),
        }
    }

    /// Returns an `SessionOp::Interrupt` of the current turn.
    pub fn interrupt() -> SessionOp {
        SessionOp::Interrupt { turn: None }
    }

    /// Returns the answer to the open permission request of a call.
    pub fn answer_permission(call: CallId, answer: PermissionAnswer) -> SessionOp {
        SessionOp::AnswerPermission { call, answer, asked: None }
    }

    /// Returns the answers to the open questions of a call.
    pub fn answer_question(call: CallId, answers: Vec<Vec<String>>) -> SessionOp {
        SessionOp::AnswerQuestion { call, answers, asked: None }
    }

    /// Returns the `bash` call for a shell command of the user.
    pub fn shell_command(command: &str) -> SessionOp {
        let arguments = serde_json::json!({ "command": command }).to_string();
        SessionOp::CallTool { tool: "bash".to_owned(), arguments }
    }
}

/// A read-only query, answered with a [`QueryReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "query", rename_all = "snake_case")]
pub enum SessionQuery {
    /// Lists all sessions, newest first.
    Sessions {
        /// Only sessions in this folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// Returns the facts of a session.
    Events {
        /// Session ID from `SessionSummary::session`.
        session: SessionId,
        /// Only facts after this position.
        #[serde(default)]
        after: LogSeq,
        /// Maximum number of facts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    },
    /// Lists the prompts of the user, newest first.
    Prompts {
        /// Only this session; if absent, all sessions that the user started in this folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Maximum number of prompts; 200 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    },
    /// Returns the usage of the model's context window.
    Context {
        /// Session ID from `SessionSummary::session`.
        session: SessionId,
    },
    /// Lists the background jobs of a session that is open in this process.
    Jobs {
        /// ID of the open session, from `HostResponse::SessionOpened`.
        session: SessionId,
    },
    /// Returns the [`Transcript`] of a session.
    Transcript {
        /// Session ID from `SessionSummary::session`.
        session: SessionId,
    },
    /// Returns the session's changes to files, or the effect of undoing them, as a diff.
    Changes {
        /// Session ID from `SessionSummary::session`.
        session: SessionId,
        /// Changes to include.
        #[serde(flatten)]
        scope: UndoScope,
        /// Direction of the diff: the changes or their undo.
        #[serde(default)]
        direction: DiffDirection,
    },
    /// Searches sessions for words; the session that changed last comes first.
    SearchSessions {
        /// Words that must all occur in the same text, in any case.
        words: String,
        /// Only sessions in this folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// Finds a text in the visible part of a session, without anything that was `Rewound`.
    FindText {
        /// Session ID from `SessionSummary::session`.
        session: SessionId,
        /// Text to find. Without capitals, the search ignores case.
        text: String,
    },
    /// Lists the tools that a model would receive.
    Tools,
}

/// The answer to a [`SessionQuery`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum QueryReply {
    /// Reply to [`SessionQuery::Sessions`].
    Sessions {
        /// Sessions, newest first.
        sessions: Vec<SessionSummary>,
    },
    /// Reply to [`SessionQuery::Events`].
    Events {
        /// Facts in log order.
        events: Vec<FactRecord>,
    },
    /// Reply to [`SessionQuery::Prompts`].
    Prompts {
        /// Prompts, newest first.
        prompts: Vec<PromptHistoryRow>,
    },
    /// Reply to [`SessionQuery::Context`].
    Context {
        /// Context window of the model in tokens, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
        /// Tokens of the window reserved for the answer. When the parts reach into this reserve,
        /// Windlass compacts the conversation.
        output_reserve: u64,
        /// Approximate composition of the next request, in tokens. No name occurs twice, and empty
        /// parts are left out.
        parts: Vec<ContextUsagePart>,
    },
    /// Reply to [`SessionQuery::Jobs`].
    Jobs {
        /// Jobs, oldest first.
        jobs: Vec<JobRow>,
    },
    /// Reply to [`SessionQuery::Transcript`].
    Transcript {
        /// Fold of the session's log.
        transcript: Box<Transcript>,
    },
    /// Reply to [`SessionQuery::Changes`].
    Changes {
        /// Positions of the facts; empty if there is nothing to undo.
        facts: Vec<LogSeq>,
        /// Unified diff, with remarks.
        diff: String,
    },
    /// Reply to [`SessionQuery::SearchSessions`].
    SearchHits {
        /// One hit per session.
        hits: Vec<SessionSearchHit>,
    },
    /// Reply to [`SessionQuery::FindText`].
    TextMatches {
        /// Matches in session order.
        matches: Vec<MatchingFact>,
        /// Last position that was searched.
        through: LogSeq,
    },
    /// Reply to [`SessionQuery::Tools`].
    Tools {
        /// Tools in the order in which a model receives them.
        tools: Vec<ModelToolDefinition>,
    },
}

/// One row of [`QueryReply::Sessions`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// ID of the session.
    pub session: SessionId,
    /// Title from `SessionRenamed`, or the first line of the first prompt.
    pub title: String,
    /// Folder that the session works in.
    pub workspace: String,
    /// Time of the last change.
    pub changed_at: UnixMillis,
    /// Number of facts in the log.
    pub fact_count: LogSeq,
    /// Reason why the last turn ended (`TurnEnded`); absent while a turn runs or if it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn_end: Option<TurnEndReason>,
    /// Cost of the session, as far as known.
    #[serde(default)]
    pub cost: Cost,
    /// Session that started this one as a subagent (`SessionOpened::parent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Session that this one is a copy of (`SessionForked`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
}

impl SessionSummary {
    /// Returns the summary of a session without facts.
    pub fn new(session: SessionId) -> SessionSummary {
        SessionSummary {
            session,
            title: String::new(),
            workspace: String::new(),
            changed_at: UnixMillis(0),
            fact_count: 0,
            last_turn_end: None,
            cost: Cost::default(),
            parent: None,
            forked_from: None,
        }
    }

    /// Applies the next fact. Fields that both types have agree with [`Transcript::push`].
    pub fn push(&mut self, seq: LogSeq, at: UnixMillis, fact: &Fact) {
        self.fact_count = seq;
        self.changed_at = at;
        match fact {
            Fact::SessionOpened { workspace, parent, .. } => {
                self.workspace.clone_from(workspace);
                self.parent = parent.map(|parent| parent.session);
            }
            Fact::StepEnded { cost: Some(cost), .. } => self.cost += *cost,
            Fact::SessionRenamed { title } => self.title.clone_from(title),
            Fact::SideRequestEnded { cost, .. } => self.cost += cost.unwrap_or_default(),
            Fact::PromptSubmitted { text, .. } if self.title.is_empty() => {
                self.title = first_line(text)
            }
            Fact::ToolCalled { tool, arguments, description, .. } if self.title.is_empty() => {
                self.title = call_title(description, tool, arguments);
            }
            Fact::SessionForked { source_session, .. } => self.forked_from = Some(*source_session),
            Fact::TurnStarted { .. } => self.last_turn_end = None,
            Fact::TurnEnded { end, .. } => self.last_turn_end = Some(end.clone()),
            Fact::SystemPromptSet { .. }
            | Fact::ModeChanged { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::OutputsPruned { .. }
            | Fact::PromptSteered { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::HookRan { .. }
            | Fact::ApprovalsRevoked
            | Fact::ContextCompacted { .. }
            | Fact::Rewound { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::PromptSubmitted { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::StepRetrying { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::ToolCalled { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::CallStarted { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::CallSettled { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
        }
    }
}

/// A session that contains the words of [`SessionQuery::SearchSessions`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSearchHit {
    /// ID of the session.
    pub session: SessionId,
    /// Title of the session.
    pub title: String,
    /// Folder that the session works in.
    pub workspace: String,
    /// Time of the first occurrence in the session.
    pub at: UnixMillis,
    /// Position of the fact that contains the words.
    pub seq: LogSeq,
    /// Kind of that fact, as [`Fact::kind`] returns it.
    pub fact_kind: String,
    /// The words with their surrounding text, on one line.
    pub snippet: String,
}

/// A tool as the model receives it, for [`SessionQuery::Tools`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}
