//! The vocabulary of Windlass: the types that make up a session, and the fold that gives an event
//! log its meaning.
//!
//! The crate consists of data and one fold; it opens no file, reads no clock and starts nothing. It
//! keeps the invariant that the type decides durability: a [`Fact`] is stored, a [`LiveEvent`]
//! never is. Start reading at [`event`], which is the published interface, then [`transcript`],
//! which defines the meaning of a log.

mod agent_role;
pub mod call_approval_and_outcome;
mod call_description;
mod claude_tool_names;
mod client_info;
mod context_change;
pub mod display_text;
pub mod event;
mod event_cursor;
mod fact_properties;
pub mod fault;
mod file_change;
pub mod file_history;
pub mod frontend_messages;
mod frontend_request_types;
pub mod hook;
mod host_status;
pub mod ids_and_timestamps;
pub mod live_event;
pub mod log_text_search;
pub mod message;
pub mod message_list;
pub mod model_options;
pub mod mutex_lock;
mod op_request;
pub mod ops_and_queries;
pub mod path_escapes;
pub mod permission_mode;
mod prompt_delivery;
pub mod prompt_mentions;
mod prompt_settings;
pub mod query_rows;
pub mod record_check;
pub mod report;
mod request_error;
pub mod requested_access;
pub mod session_stream;
pub mod step;
mod todo_item;
pub mod todo_list;
pub mod transcript;
pub mod trust_review;
pub mod user_question;

pub use agent_role::AgentRole;
pub use call_approval_and_outcome::{
    ApprovalKind, ApprovalScope, Attachment, BlobRef, CallAuthor, CallOutcome, CallRepair,
    NO_USER_DENIAL_TEXT, OutputDisplay, PermissionAnswer, ProjectApproval, RequestDanger,
    ToolOutput, USER_DENIAL_TEXT,
};
pub use call_description::CallDescription;
pub use claude_tool_names::{ClaudeToolName, ClaudeToolNames};
pub use client_info::{ClientInfo, ClientKind};
pub use context_change::{ContextChange, SystemPromptState};
pub use event::{DEFAULT_AGENT, Event, Fact, FactOrigin, FactRecord};
pub use event_cursor::{EventCursor, InvalidCursor, LogPosition, MAX_CURSOR_BYTES};
pub use fault::{Fault, RetryState};
pub use file_change::{FileChange, FileVersion, SeenFileDigest};
pub use file_history::{ChangedFiles, DiffDirection, FileHistory, UndoArguments, UndoScope};
pub use hook::{HookPoint, HookVerdict};
pub use ids_and_timestamps::{CallId, LogSeq, OpId, PromptId, SessionId, UnixMillis};
pub use live_event::{
    LiveEvent, LiveEventRecord, ModelStreamKind, PartialCallProgress, StreamedText,
};
pub use log_text_search::{LogTextFinder, MatchingFact, SearchPattern};
pub use message::{Message, MessagePart, MessageRole, ToolCallPart};
pub use message_list::Messages;
pub use model_options::{ModelOptions, ReasoningEffort, ToolChoice};
pub use op_request::{OpError, OpRequest, OpResult};
pub use ops_and_queries::{
    ModelToolDefinition, QueryReply, SessionOp, SessionQuery, SessionSearchHit, SessionSummary,
};
pub use permission_mode::PermissionMode;
pub use prompt_delivery::{
    INIT_ADDITION, INIT_PROMPT_START, PromptDelivery, REVIEW_PROMPT_START, REVIEW_TARGET_END,
    command_of_prompt,
};
pub use prompt_settings::{
    ALLOWED_CALLS_KEY, AllowedCalls, AllowedCallsSource, PromptCommand, PromptLimits,
    PromptSettings, TurnGoal,
};
pub use query_rows::{ContextUsagePart, JobRow, PromptHistoryRow};
pub use record_check::RecordCheck;
pub use request_error::{AccessRight, RequestError};
pub use requested_access::ToolAccess;
pub use step::{
    Cost, FinishReason, ParentCall, SideRequestPurpose, StepPurpose, TokenUsage, TurnEndReason,
};
pub use todo_list::TodoItem;
pub use transcript::{ModelChoice, Transcript};
pub use trust_review::{TrustDecision, TrustReview};
pub use user_question::{QuestionOption, UserQuestion};
