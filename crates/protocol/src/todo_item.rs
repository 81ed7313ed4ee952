//! Items of a to-do list, with status and priority.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A to-do item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// Task in a few words.
    pub content: String,
    /// Status.
    pub status: TodoStatus,
    /// Priority.
    pub priority: TodoPriority,
}

/// Status of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the field names are clear, and every byte of a schema costs \
                                model tokens"
)]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

/// Priority of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the field names are clear, and every byte of a schema costs \
                                model tokens"
)]
pub enum TodoPriority {
    High,
    Medium,
    Low,
}

impl TodoStatus {
    /// Returns true while there is work left to do.
    pub fn is_open(self) -> bool {
        match self {
            TodoStatus::Pending | TodoStatus::InProgress => true,
            TodoStatus::Completed | TodoStatus::Cancelled => false,
        }
    }
}

impl fmt::Display for TodoItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[>]",
            TodoStatus::Completed => "[x]",
            TodoStatus::Cancelled => "[-]",
        };
        let priority = match self.priority {
            TodoPriority::High => " (high)",
            TodoPriority::Medium => "",
            TodoPriority::Low => " (low)",
        };
        write!(f, "{mark} {}{priority}", self.content)
    }
}
