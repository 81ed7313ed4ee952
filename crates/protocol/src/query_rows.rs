//! Rows of query replies about a session: prompts, parts of the context window, jobs.

use crate::call_approval_and_outcome::Attachment;
use crate::ids_and_timestamps::{LogSeq, SessionId, UnixMillis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prompt of the user, for `QueryReply::Prompts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptHistoryRow {
    /// ID of the session.
    pub session: SessionId,
    /// Position in the log of `session`.
    pub seq: LogSeq,
    /// Time of the prompt.
    pub at: UnixMillis,
    /// Text of the prompt.
    pub text: String,
    /// Files attached to the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Position for [`crate::Op::Rewind`] that removes this prompt. It is set only if the query
    /// names one session, and absent if no turn started with the prompt or the prompt was rewound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind_to: Option<LogSeq>,
}

/// A part of the context that the model receives, for `QueryReply::Context`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextUsagePart {
    /// Name of the part: `brief`, `tools`, `summary`, `prompts`, `answers`, `reasoning`, `files`,
    /// `notes` (information besides the conversation), or `calls: ` and a tool.
    pub name: String,
    /// Approximate size in tokens.
    pub tokens: u64,
}

/// A background job, for `QueryReply::Jobs` and `JobUpdate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobRow {
    /// Number of the job in the session.
    pub id: u64,
    /// Command line of the job.
    pub command: String,
    /// True while any process of the job is running.
    pub running: bool,
    /// Exit code, if the job ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Start time of the job.
    pub started_at: UnixMillis,
    /// Last lines of the output: a few in a `JobUpdate` event, a longer tail in the reply to
    /// `SessionQuery::Jobs`.
    #[serde(default)]
    pub output_tail: String,
}
