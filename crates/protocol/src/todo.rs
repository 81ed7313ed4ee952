//! A list of what is still to be done, as a model keeps it for itself and a person follows it.

use crate::call::Outcome;
use crate::message::Part;
use crate::transcript::Transcript;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where an output keeps the list, among its facts for programs.
pub const TODOS: &str = "todos";

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What, in a few words.
    pub content: String,
    /// Its status.
    pub status: Status,
    /// Its priority.
    pub priority: Priority,
}

/// How far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it, and a model pays for every byte of a schema")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it, and a model pays for every byte of a schema")]
pub enum Priority {
    High,
    Medium,
    Low,
}

impl Status {
    /// True while there is something left to do.
    pub fn is_open(self) -> bool {
        match self {
            Status::Pending | Status::InProgress => true,
            Status::Completed | Status::Cancelled => false,
        }
    }
}

impl fmt::Display for Todo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            Status::Pending => "[ ]",
            Status::InProgress => "[>]",
            Status::Completed => "[x]",
            Status::Cancelled => "[-]",
        };
        let priority = match self.priority {
            Priority::High => " (high)",
            Priority::Medium => "",
            Priority::Low => " (low)",
        };
        write!(f, "{mark} {}{priority}", self.content)
    }
}

/// The list that an outcome tells of, if it tells of one.
pub fn told(outcome: &Outcome) -> Option<Vec<Todo>> {
    match outcome {
        Outcome::Completed { output } => {
            serde_json::from_value(output.metadata.get(TODOS)?.clone()).ok()
        }
        Outcome::Failed { .. }
        | Outcome::Denied { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unknown => None,
    }
}

impl Transcript {
    /// The list as it stands: the last one that was written.
    pub fn todos(&self) -> Vec<Todo> {
        let parts = self.messages.iter().rev().flat_map(|message| message.parts.iter().rev());
        let mut lists = parts.filter_map(|part| match part {
            Part::Call(call) => call.outcome.as_ref().and_then(told),
            Part::Text { .. } | Part::Reasoning { .. } | Part::File(_) => None,
        });
        lists.next().unwrap_or_default()
    }
}
