//! `todoread`: returns the todo list as last written.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{CallDescription, OutputDisplay, ToolAccess, ToolOutput};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// The `todoread` tool.
pub struct TodoReadTool;

/// Input of the `todoread` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoReadInput {}

#[async_trait]
impl Tool for TodoReadTool {
    type Input = TodoReadInput;

    fn name(&self) -> &str {
        "todoread"
    }

    fn is_for_subagents(&self) -> bool {
        false
    }

    fn retains_output(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["TodoRead"]
    }

    fn describe_call(&self, _input: &TodoReadInput, _root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Todos", "reading todos", ""))
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        !crate::prefers_patches(context)
    }

    /// Returns false: the output of `todowrite` already shows the list. A model that knows this
    /// tool can still call it.
    fn is_listed(&self) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<TodoReadInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &TodoReadInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        _input: TodoReadInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let items = cx.caller.todos();
        let title = crate::todowrite::describe_progress(&items);
        let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
        let text = match lines.as_slice() {
            [] => "The list is empty.".to_owned(),
            lines => lines.join("\n"),
        };
        Ok(ToolOutput {
            title,
            text,
            display: OutputDisplay::Checklist { items },
            ..ToolOutput::default()
        })
    }
}

#[cfg(test)]
mod tests;
