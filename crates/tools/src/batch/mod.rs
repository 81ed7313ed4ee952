//! `batch`: several tool calls in one, permitted as a whole and run in order. Each sub-call passes
//! through the tool pipeline like any other call; this tool only defines the notation.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_toolkit::{CallContext, CallFailure, StepContext, SubCall, Tool, ToolDefinition};

/// The `batch` tool.
pub struct BatchTool;

/// Input of the `batch` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchInput {
    /// The calls, in order.
    #[schemars(length(min = 1, max = 10))]
    tool_calls: Vec<BatchedCall>,
}

/// One call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchedCall {
    /// The tool.
    tool: String,
    /// Its arguments.
    parameters: Map<String, Value>,
}

#[async_trait]
impl Tool for BatchTool {
    type Input = BatchInput;

    fn name(&self) -> &str {
        "batch"
    }

    fn describe_call(&self, input: &BatchInput, _root: &str) -> Option<CallDescription> {
        let count = pluralize(input.tool_calls.len(), "call");
        Some(CallDescription::new("Batch", "running", count))
    }

    fn allows_batching(&self) -> bool {
        false
    }

    /// Returns false: current models make parallel calls themselves. A model that knows this tool
    /// can still call it.
    fn is_listed(&self) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<BatchInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &BatchInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    fn sub_calls(&self, input: &BatchInput) -> Option<Vec<SubCall>> {
        let to_sub_call = |call: &BatchedCall| SubCall {
            tool: call.tool.clone(),
            arguments: Value::Object(call.parameters.clone()).to_string(),
        };
        Some(input.tool_calls.iter().map(to_sub_call).collect())
    }

    async fn run(
        &self,
        _input: BatchInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        Err(CallFailure::new("the calls of a batch run one by one"))
    }
}

#[cfg(test)]
mod tests;
