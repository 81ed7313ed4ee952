//! Lists the tools and prompts of a server, page by page. The amount it accepts is bounded, and a
//! list that never ends is abandoned.

use crate::client::connection::McpConnection;
use crate::client::request::{McpRequestError, McpRequestOptions};
use crate::client::sanitize_server_text::clean_server_text;
use crate::config::{PinnedToolDefinition, PromptSummary};
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListToolsRequest, PaginatedRequestParams, Prompt,
    ServerResult, Tool,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use windlass_toolkit::registry::untrusted_schema;

/// Further tools of a server are skipped.
const MAX_TOOLS: usize = 1_000;
/// Bounds a list that never ends.
const MAX_PAGES: usize = 100;
/// Limits all tool definitions of a server together.
const MAX_DEFINITION_BYTES: usize = 4 << 20;
/// Further prompts of a server are skipped.
const MAX_PROMPTS: usize = 200;
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of `list_tools`: the tools, and notes on those that were skipped.
#[derive(Default)]
pub(crate) struct ListedTools {
    pub(crate) tools: BTreeMap<String, PinnedToolDefinition>,
    pub(crate) skipped: Vec<String>,
}

/// Reads all pages of `tools/list`.
pub(crate) async fn list_tools(connection: &McpConnection) -> Result<ListedTools, McpRequestError> {
    let mut listed = ListedTools::default();
    let mut bytes = 0;
    let mut pages = PageCursor::default();
    while let Some(params) = pages.next_request() {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let ServerResult::ListToolsResult(page) =
            connection.send_request(request, &McpRequestOptions::unattended(PAGE_TIMEOUT)).await?
        else {
            return Err(McpRequestError::InvalidAnswer);
        };
        for tool in page.tools {
            let definition = pinned_definition(&tool);
            bytes += definition.to_string().len();
            if listed.tools.len() >= MAX_TOOLS || bytes > MAX_DEFINITION_BYTES {
                listed.skipped.push("it lists too many tools; the rest is skipped".into());
                return Ok(listed);
            }
            let name = tool.name.into_owned();
            let digest = untrusted_schema::definition_digest(&definition);
            listed.tools.insert(name.clone(), PinnedToolDefinition { name, digest, definition });
        }
        pages.advance(page.next_cursor);
    }
    Ok(listed)
}

/// Reads all pages of `prompts/list`.
pub(crate) async fn list_prompts(
    connection: &McpConnection,
) -> Result<Vec<PromptSummary>, McpRequestError> {
    let mut prompts = Vec::new();
    let mut pages = PageCursor::default();
    while let Some(params) = pages.next_request() {
        let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
        let result =
            connection.send_request(request, &McpRequestOptions::unattended(PAGE_TIMEOUT)).await?;
        let ServerResult::ListPromptsResult(page) = result else {
            return Err(McpRequestError::InvalidAnswer);
        };
        prompts.extend(page.prompts.iter().map(summarize_prompt).take(MAX_PROMPTS - prompts.len()));
        if prompts.len() >= MAX_PROMPTS {
            break;
        }
        pages.advance(page.next_cursor);
    }
    Ok(prompts)
}

fn summarize_prompt(prompt: &Prompt) -> PromptSummary {
    let arguments = prompt.arguments.iter().flatten().take(32);
    let arguments = arguments.map(|argument| {
        let marker = if argument.required == Some(true) { "*" } else { "" };
        format!("{}{marker}", clean_server_text(&argument.name))
    });
    let description = prompt.description.as_deref().or(prompt.title.as_deref());
    PromptSummary {
        name: prompt.name.chars().take(200).collect(),
        description: clean_server_text(description.unwrap_or_default()),
        arguments: arguments.collect(),
    }
}

/// The cursor of a paginated list. A cursor that repeats ends the list.
#[derive(Default)]
pub(crate) struct PageCursor {
    seen: HashSet<String>,
    count: usize,
    next: Option<String>,
    done: bool,
}

impl PageCursor {
    /// Returns the parameters for the next page, if there is one.
    pub(crate) fn next_request(&mut self) -> Option<PaginatedRequestParams> {
        if self.done || self.count >= MAX_PAGES {
            return None;
        }
        self.count += 1;
        Some(PaginatedRequestParams::default().with_cursor(self.next.take()))
    }

    /// Takes the `next_cursor` of the page just read.
    pub(crate) fn advance(&mut self, next: Option<String>) {
        match next {
            Some(next) if self.seen.insert(next.clone()) => self.next = Some(next),
            Some(_) | None => self.done = true,
        }
    }
}

/// Returns the part of a tool that is pinned: everything that the model sees or that determines the
/// effect of a call.
fn pinned_definition(tool: &Tool) -> Value {
    let mut definition = Map::new();
    definition.insert("name".into(), json!(tool.name));
    if let Some(title) = &tool.title {
        definition.insert("title".into(), json!(title));
    }
    if let Some(description) = &tool.description {
        definition.insert("description".into(), json!(description));
    }
    definition.insert("inputSchema".into(), Value::Object((*tool.input_schema).clone()));
    if let Some(annotations) = &tool.annotations {
        definition.insert("annotations".into(), json!(annotations));
    }
    Value::Object(definition)
}
