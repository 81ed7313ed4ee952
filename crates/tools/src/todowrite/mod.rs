//! `todowrite`: replaces the todo list. It accesses nothing: the list is part of the conversation,
//! and the user watches it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_protocol::{CallDescription, OutputDisplay, TodoItem, ToolAccess, ToolOutput};
use windlass_toolkit::truncate_output::strip_controls;
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// Items in a list.
const MAX_TODOS: usize = 100;

/// Characters per item.
const MAX_TODO_CHARS: usize = 500;

/// Bytes of the whole list: it must fit into the log together with its result.
const MAX_LIST_BYTES: usize = 40_000;

/// The `todowrite` tool.
pub struct TodoWriteTool;

/// Input of the `todowrite` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TodoWriteInput {
    /// The whole list, in order.
    todos: Vec<TodoItem>,
}

#[async_trait]
impl Tool for TodoWriteTool {
    type Input = TodoWriteInput;

    fn name(&self) -> &str {
        "todowrite"
    }

    fn is_for_subagents(&self) -> bool {
        false
    }

    fn retains_output(&self) -> bool {
        true
    }

    fn ignores_unknown_fields(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["TodoWrite"]
    }

    fn describe_call(&self, _input: &TodoWriteInput, _root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Todos", "updating todos", ""))
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        !crate::prefers_patches(context)
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<TodoWriteInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &TodoWriteInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: TodoWriteInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let mut todos = input.todos;
        if todos.len() > MAX_TODOS {
            let text =
                format!("a list can contain at most {MAX_TODOS} items; merge or drop some of them");
            return Err(CallFailure::new(text));
        }
        for (index, todo) in todos.iter_mut().enumerate() {
            todo.content =
                strip_controls(&todo.content).split_whitespace().collect::<Vec<_>>().join(" ");
            let number = index + 1;
            if todo.content.is_empty() {
                return Err(CallFailure::new(format!("item {number} is empty; say what to do")));
            }
            if todo.content.chars().count() > MAX_TODO_CHARS {
                let text =
                    format!("item {number} is longer than {MAX_TODO_CHARS} characters; shorten it");
                return Err(CallFailure::new(text));
            }
        }
        let list = json!(todos);
        if list.to_string().len() > MAX_LIST_BYTES {
            return Err(CallFailure::new(
                "the list is too long to save; shorten it or drop some items",
            ));
        }
        let title = describe_progress(&todos);
        let metadata = [("todos".to_owned(), list)].into_iter().collect();
        let text = format!("List saved: {title}.");
        let display = OutputDisplay::Checklist { items: todos.clone() };
        let todos = Some(todos);
        Ok(ToolOutput { title, text, display, metadata, todos, ..ToolOutput::default() })
    }
}

/// Summarizes the progress of a list in a few words.
pub(crate) fn describe_progress(todos: &[TodoItem]) -> String {
    match todos.iter().filter(|todo| todo.status.is_open()).count() {
        0 if todos.is_empty() => "nothing to do".to_owned(),
        0 => "nothing left to do".to_owned(),
        open => format!("{open} of {} left to do", todos.len()),
    }
}

#[cfg(test)]
mod tests;
