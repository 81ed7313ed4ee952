//! Rows of what can be asked about a session: its prompts, what fills the window, its jobs.

use crate::call::Attachment;
use crate::event::Seq;
use crate::id::{Millis, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptRow {
    /// The session.
    pub session: SessionId,
    /// Its place in that session's log.
    pub seq: Seq,
    /// When.
    pub at: Millis,
    /// What was asked.
    pub text: String,
    /// The files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The position to step back to so that it was never asked, for [`crate::Op::Back`]; only if one
    /// session was asked about, and absent where a turn did not begin with it or it no longer counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Seq>,
}

/// A part of what a model is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextPart {
    /// What it is: `brief`, `tools`, `summary`, `prompts`, `answers`, `reasoning`, `files`, `notes`
    /// (what it was told besides), or `calls: ` and a tool.
    pub name: String,
    /// How much that is, roughly.
    pub tokens: u64,
}

/// A command in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobRow {
    /// Its number in the session.
    pub id: u64,
    /// What was run.
    pub command: String,
    /// True if something of it still runs.
    pub running: bool,
    /// The code it ended with, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// When it was started.
    pub since: Millis,
    /// The last lines it said: a few where it is told of, as many as one reads where it is asked for.
    #[serde(default)]
    pub tail: String,
}
