//! A server's tool as a `Tool`. It represents one definition: the current definition of the server
//! must equal the pinned one, or the call requires approval and the preview shows the difference.
//!
//! A server's claim that its tool is harmless is ignored. `idempotentHint` only decides whether a
//! call is repeated, once, after the connection was lost.

use super::McpServer;
use crate::client::result_content::{call_output, to_pretty_json};
use crate::client::sanitize_server_text::clean_server_text;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_protocol::{ToolAccess, ToolOutput};
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, truncate_output,
};

/// The relation of a definition to the pinned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolPinState {
    /// The definition equals the pinned one.
    Unchanged,
    /// The definition differs from the pinned one.
    Changed,
    /// The tool has no `PinnedToolDefinition`.
    New,
}

/// The way in which the model learns about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolVisibility {
    /// Requests include the definition from the start.
    Listed,
    /// The model finds the tool by a search.
    Searchable,
}

/// A tool of an MCP server.
pub(crate) struct McpTool {
    pub(crate) server: Arc<McpServer>,
    pub(crate) name: String,
    /// The name that the server uses (`name` is the local one).
    pub(crate) remote_name: String,
    /// The definition as the model sees it, made by `model_definition`.
    pub(crate) definition: ToolDefinition,
    pub(crate) visibility: ToolVisibility,
    pub(crate) pin_state: ToolPinState,
    /// Digest of `live_definition`.
    pub(crate) digest: String,
    /// The definition that this tool represents.
    pub(crate) live_definition: Value,
    /// The pinned definition, if it differs.
    pub(crate) pinned_definition: Option<Value>,
}

impl McpTool {
    /// Returns the name with the first 16 characters of the digest, which is enough to identify a
    /// definition to the user.
    fn short_digest(&self) -> String {
        let digest: String = self.digest.chars().take(16).collect();
        format!("{}@{digest}", self.name)
    }

    /// Returns true if the server says (`idempotentHint`) that repeating a call has no further
    /// effect.
    fn is_idempotent(&self) -> bool {
        self.live_definition.pointer("/annotations/idempotentHint") == Some(&Value::Bool(true))
    }
}

/// Converts a server's definition into a `ToolDefinition` for the model, or returns why its schema
/// is unusable.
pub(crate) fn model_definition(definition: &Value) -> Result<ToolDefinition, String> {
    let text = |key: &str| definition.get(key).and_then(Value::as_str).map(str::trim);
    let title = text("title").or_else(|| {
        definition.pointer("/annotations/title").and_then(Value::as_str).map(str::trim)
    });
    let title = title.unwrap_or_default();
    let details = text("description").unwrap_or_default();
    let description = match (title.is_empty(), details.is_empty()) {
        (true, _) => details.to_owned(),
        (false, true) => title.to_owned(),
        (false, false) if details.starts_with(title) => details.to_owned(),
        (false, false) => format!("{title}. {details}"),
    };
    let plain = truncate_output::strip_controls(&description);
    let schema =
        untrusted_schema::sanitize_schema(definition.get("inputSchema").unwrap_or(&Value::Null))?;
    Ok(ToolDefinition {
        description: untrusted_schema::truncate_description(&plain).to_owned(),
        schema,
    })
}

/// Returns the diff between two definitions; the whole new one if there was none before.
pub(crate) fn definition_diff(before: Option<&Value>, after: &Value) -> String {
    let after = to_pretty_json(after);
    let Some(before) = before.map(to_pretty_json) else { return after };
    text_diff(&before, &after)
}

/// Returns the changed lines of a text that the user accepts.
pub(crate) fn text_diff(before: &str, after: &str) -> String {
    let difference = similar::TextDiff::from_lines(before, after);
    difference.unified_diff().context_radius(2).to_string().trim_end().to_owned()
}

#[async_trait]
impl Tool for McpTool {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn allows_batching(&self) -> bool {
        false
    }

    fn is_listed(&self) -> bool {
        self.visibility == ToolVisibility::Listed
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        self.definition.clone()
    }

    fn access(&self, _input: &Map<String, Value>) -> Vec<ToolAccess> {
        let mut accesses = vec![ToolAccess::UseTool { tool: self.name.clone() }];
        match self.pin_state {
            ToolPinState::Unchanged => {}
            ToolPinState::Changed | ToolPinState::New => {
                accesses.push(ToolAccess::AcceptDefinition { definition: self.short_digest() })
            }
        }
        accesses
    }

    async fn preview(
        &self,
        input: &Map<String, Value>,
        _cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        let mut text = String::new();
        let server = self.server.name();
        let heading = match (self.pin_state, &self.pinned_definition) {
            (ToolPinState::Unchanged, _) => None,
            (ToolPinState::Changed | ToolPinState::New, Some(_)) => {
                Some(format!("{server} changed the definition of {}:", self.name))
            }
            (ToolPinState::Changed | ToolPinState::New, None) => {
                Some(format!("{server} added {} since you last reviewed its tools:", self.name))
            }
        };
        if let Some(heading) = heading {
            let difference =
                definition_diff(self.pinned_definition.as_ref(), &self.live_definition);
            text.push_str(&format!("{heading}\n{difference}\n\n"));
        }
        Ok(Some(untrusted_schema::call_preview(&text, input)))
    }

    async fn run(
        &self,
        input: Map<String, Value>,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let result = self.server.call_tool(self, input, cx).await?;
        call_output(result, cx.caller).await
    }
}

impl McpTool {
    /// Checks that the server's current definition is the one that the call was approved with.
    pub(crate) fn check_definition(&self, live: Option<&str>) -> Result<(), CallFailure> {
        match live {
            Some(live) if live == self.digest => Ok(()),
            Some(_) => Err(CallFailure::new(format!(
                "{} changed the definition of {} after it was reviewed, so it was not called. \
                 Call it again: the user is asked to approve it then. In a run without a user, \
                 they can run `windlass mcp tools {} --accept`.",
                self.server.name(),
                self.name,
                self.server.name()
            ))),
            None => Err(CallFailure::new(format!(
                "{} no longer has {}. Use another tool.",
                self.server.name(),
                clean_server_text(&self.remote_name)
            ))),
        }
    }

    /// Returns true if a call may be sent once more after its connection was lost.
    pub(crate) fn can_repeat(&self) -> bool {
        self.is_idempotent()
    }
}
