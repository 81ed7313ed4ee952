//! `tool_search`: finds external tools by their descriptions, among those that do not fit into
//! the list of tools sent to the model.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::display_text::{pluralize, truncate_chars};
use windlass_protocol::{CallDescription, ModelToolDefinition, ToolAccess, ToolOutput};
use windlass_toolkit::truncate_output::strip_controls;
use windlass_toolkit::{
    CallContext, CallFailure, SearchableSource, StepContext, Tool, ToolDefinition,
    ToolSearchResults,
};

/// Tools shown if the call sets no `limit`.
const DEFAULT_SHOWN_TOOLS: u8 = 5;
/// Limits of a result: bytes of all tools, and characters per description.
const MAX_RESULT_BYTES: usize = 16 * 1024;
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// Limits on the list of tool sources in the tool description: bytes of the list, and characters
/// per source.
const MAX_SOURCE_LIST_BYTES: usize = 700;
const MAX_SOURCE_LINE_CHARS: usize = 100;

/// The `tool_search` tool.
pub struct ToolSearchTool;

/// Input of the `tool_search` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSearchInput {
    /// Purpose or name of the tool.
    query: String,
    /// Tools to show; 5 if not given.
    #[schemars(range(min = 1, max = 10))]
    limit: Option<u8>,
}

#[async_trait]
impl Tool for ToolSearchTool {
    type Input = ToolSearchInput;

    fn name(&self) -> &str {
        "tool_search"
    }

    fn describe_call(&self, input: &ToolSearchInput, _root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Search tools", "searching tools:", &input.query))
    }

    /// Hides the tool if there are no `searchable_sources`: the model then sees every tool.
    fn is_offered(&self, context: &StepContext) -> bool {
        !context.searchable_sources.is_empty()
    }

    async fn describe(&self, context: &StepContext) -> ToolDefinition {
        let mut definition =
            ToolDefinition::for_input::<ToolSearchInput>(include_str!("description.md"));
        definition.description.push_str(&list_sources(&context.searchable_sources));
        definition
    }

    fn access(&self, _input: &ToolSearchInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: ToolSearchInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let limit = input.limit.unwrap_or(DEFAULT_SHOWN_TOOLS);
        let results = cx.find_tools(&input.query, limit.into()).await;
        Ok(ToolOutput {
            title: pluralize(results.tools.len(), "tool"),
            text: render_found_tools(results),
            ..ToolOutput::default()
        })
    }
}

/// Renders the tools that were found for the model.
fn render_found_tools(results: ToolSearchResults) -> String {
    let ToolSearchResults { tools, mut omitted, unavailable } = results;
    let mut text = String::new();
    for tool in &tools {
        let entry = render_tool(tool);
        // The first tool is always shown; a result that is too long is truncated like any other.
        if !text.is_empty() && text.len() + entry.len() > MAX_RESULT_BYTES {
            omitted += 1;
            continue;
        }
        text.push_str(&entry);
    }
    match tools.is_empty() {
        true => {
            text.push_str("No tool matches. Try other words: what it does, or what it is about.\n")
        }
        false => text.push_str("Call one with call_tool {\"name\": …, \"arguments\": {…}}.\n"),
    }
    if omitted > 0 {
        text.push_str(&format!("{omitted} more match; narrow the search or raise `limit`.\n"));
    }
    for source in unavailable {
        let source = truncate_chars(&strip_controls(&source), MAX_DESCRIPTION_CHARS);
        text.push_str(&format!("Not searched, because it is not available: {source}\n"));
    }
    text
}

fn render_tool(tool: &ModelToolDefinition) -> String {
    let description = strip_controls(&tool.description);
    let description: Vec<&str> = description.lines().map(str::trim_end).collect();
    let description = truncate_chars(description.join("\n").trim(), MAX_DESCRIPTION_CHARS);
    format!("{} — {description}\n{}\n\n", tool.name, tool.schema)
}

/// Lists the sources of tools, up to `MAX_SOURCE_LIST_BYTES`. Names of tools take no space that
/// another source needs.
fn list_sources(sources: &[SearchableSource]) -> String {
    let mut list = String::new();
    let mut remaining = sources.len();
    let share = MAX_SOURCE_LIST_BYTES / sources.len().max(1);
    for source in sources {
        let line = format!("\n- {}", source_line(source, share.saturating_sub("\n- ".len())));
        if list.len() + line.len() > MAX_SOURCE_LIST_BYTES {
            break;
        }
        list.push_str(&line);
        remaining -= 1;
    }
    if remaining > 0 {
        list.push_str(&format!("\n({remaining} more are not listed)"));
    }
    list
}

/// Describes a source in a line, with as many names of its tools as fit into `max_bytes`.
fn source_line(source: &SearchableSource, max_bytes: usize) -> String {
    let summary = strip_controls(&source.summary);
    let summary: Vec<&str> = summary.split_whitespace().collect();
    let mut line = truncate_chars(&summary.join(" "), MAX_SOURCE_LINE_CHARS);
    let max_bytes = max_bytes.min(MAX_SOURCE_LINE_CHARS);
    let rest = ", …";
    for (index, name) in source.tool_names.iter().enumerate() {
        let separator = if index == 0 { ": " } else { ", " };
        let is_last = index + 1 == source.tool_names.len();
        let reserve = if is_last { 0 } else { rest.len() };
        if line.len() + separator.len() + name.len() + reserve > max_bytes {
            line.push_str(if index == 0 { "" } else { rest });
            break;
        }
        line.push_str(separator);
        line.push_str(name);
    }
    line
}

#[cfg(test)]
mod tests;
