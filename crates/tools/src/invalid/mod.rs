//! `invalid`: the target of calls that name no tool, or whose arguments are not JSON. It is never
//! offered to a model; the tool pipeline routes such calls here so that they are recorded like any
//! other.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// The `invalid` tool.
pub struct InvalidCallTool;

/// Input of the `invalid` tool: the error of a call.
#[derive(Deserialize, JsonSchema)]
pub struct InvalidCallInput {
    /// The name of the called tool, as spelled.
    tool: String,
    /// The error in the call.
    error: String,
}

#[async_trait]
impl Tool for InvalidCallTool {
    type Input = InvalidCallInput;

    fn name(&self) -> &str {
        windlass_toolkit::pipeline::INVALID_TOOL
    }

    fn describe_call(&self, input: &InvalidCallInput, _root: &str) -> Option<CallDescription> {
        let progress = format!("calling {}", input.tool);
        Some(CallDescription::new(&input.tool, &progress, &input.error))
    }

    fn is_offered(&self, _context: &StepContext) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<InvalidCallInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &InvalidCallInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: InvalidCallInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        Err(CallFailure::new(format!("The call to {} was not run. {}", input.tool, input.error)))
    }
}

#[cfg(test)]
mod tests;
