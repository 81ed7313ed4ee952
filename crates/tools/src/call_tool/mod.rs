//! `call_tool`: an alternative notation for calling a tool that `tool_search` found. It never runs:
//! the tool pipeline replaces it with the call it names before hooks, permission rules and the log
//! see it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::{ToolAccess, ToolOutput};
use windlass_toolkit::{CallContext, CallFailure, StepContext, SubCall, Tool, ToolDefinition};

/// The `call_tool` tool.
pub struct CallTool;

/// Input of the `call_tool` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallToolInput {
    /// The tool.
    name: String,
    /// Its arguments.
    arguments: Map<String, Value>,
}

#[async_trait]
impl Tool for CallTool {
    type Input = CallToolInput;

    fn name(&self) -> &str {
        "call_tool"
    }

    /// Hides the tool if there are no `searchable_sources`: the model then sees every tool and
    /// calls it by name.
    fn is_offered(&self, context: &StepContext) -> bool {
        !context.searchable_sources.is_empty()
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<CallToolInput>(include_str!("description.md"))
    }

    fn alias_of(&self, input: &CallToolInput) -> Option<SubCall> {
        let arguments = Value::Object(input.arguments.clone()).to_string();
        Some(SubCall { tool: input.name.clone(), arguments })
    }

    fn access(&self, _input: &CallToolInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        _input: CallToolInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        Err(CallFailure::new("call_tool calls another tool, but this call was not understood"))
    }
}

#[cfg(test)]
mod tests;
