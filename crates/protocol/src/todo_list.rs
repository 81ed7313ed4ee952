//! The to-do list that the model keeps and the user follows.

use crate::call_approval_and_outcome::CallOutcome;
use crate::message::MessagePart;
pub use crate::todo_item::{TodoItem, TodoPriority, TodoStatus};
use crate::transcript::Transcript;

/// Returns the to-do list that a call wrote, if it did.
pub fn todos_in_outcome(outcome: &CallOutcome) -> Option<&[TodoItem]> {
    match outcome {
        CallOutcome::Completed { output } => output.todos.as_deref(),
        CallOutcome::Failed { .. }
        | CallOutcome::Denied { .. }
        | CallOutcome::Interrupted { .. }
        | CallOutcome::ResultUnknown => None,
    }
}

impl Transcript {
    /// Returns the current to-do list: the one written last.
    pub fn todos(&self) -> Vec<TodoItem> {
        let parts = self.messages.iter().rev().flat_map(|message| message.parts.iter().rev());
        let mut lists = parts.filter_map(|part| match part {
            MessagePart::Call(call) => call.outcome.as_ref().and_then(todos_in_outcome),
            MessagePart::Text { .. } | MessagePart::Reasoning { .. } | MessagePart::File(_) => None,
        });
        lists.next().unwrap_or_default().to_vec()
    }
}
