//! Tools for the resources of servers: three tools that serve all servers. A permission rule for a
//! server's tools also covers its resources, under the key `SERVER_resources`.

use crate::client::listing::PageCursor;
use crate::client::request::{McpRequestError, McpRequestOptions};
use crate::client::result_content;
use crate::client::sanitize_server_text::clean_server_text;
use crate::client::server::McpServer;
use async_trait::async_trait;
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{ToolAccess, ToolOutput};
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// Limit for one page or one resource.
const RESOURCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Limits the resources listed for one server.
const MAX_LISTED_RESOURCES: usize = 200;

/// The servers with `has_resources`.
pub(crate) type ResourceServers = Arc<[Arc<McpServer>]>;

/// The kind of list that a `ListResourcesTool` returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceListKind {
    /// Concrete resources.
    Resources,
    /// URI templates for resources.
    Templates,
}

/// The `list_mcp_resources` or `list_mcp_resource_templates` tool.
pub(crate) struct ListResourcesTool {
    pub(crate) servers: ResourceServers,
    pub(crate) kind: ResourceListKind,
}

/// The `read_mcp_resource` tool.
pub(crate) struct ReadResourceTool {
    pub(crate) servers: ResourceServers,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListResourcesInput {
    /// The server; all servers if omitted.
    #[serde(default)]
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadResourceInput {
    /// Name of the server.
    server: String,
    /// The URI, as listed.
    uri: String,
}

fn server_access(server: &str) -> ToolAccess {
    ToolAccess::UseTool { tool: untrusted_schema::tool_name(server, "resources") }
}

fn server_names(servers: &ResourceServers) -> String {
    servers.iter().map(|server| server.name()).collect::<Vec<_>>().join(", ")
}

fn select_servers<'a>(
    servers: &'a ResourceServers,
    name: Option<&str>,
) -> Result<Vec<&'a Arc<McpServer>>, CallFailure> {
    let is_selected = |server: &&Arc<McpServer>| name.is_none_or(|name| server.name() == name);
    let selected: Vec<_> = servers.iter().filter(is_selected).collect();
    if selected.is_empty() {
        return Err(CallFailure::new(format!(
            "No server with that name has resources. Available: {}.",
            server_names(servers)
        )));
    }
    Ok(selected)
}

#[async_trait]
impl Tool for ListResourcesTool {
    type Input = ListResourcesInput;

    fn name(&self) -> &str {
        match self.kind {
            ResourceListKind::Resources => "list_mcp_resources",
            ResourceListKind::Templates => "list_mcp_resource_templates",
        }
    }

    fn allows_batching(&self) -> bool {
        false
    }

    fn is_listed(&self) -> bool {
        self.kind == ResourceListKind::Resources
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        let servers = server_names(&self.servers);
        ToolDefinition::for_input::<ListResourcesInput>(&match self.kind {
            ResourceListKind::Resources => {
                format!(
                    "Lists the resources of MCP servers by URI. Servers with resources: {servers}."
                )
            }
            ResourceListKind::Templates => {
                "Lists the URI templates of MCP servers' resources.".to_owned()
            }
        })
    }

    fn access(&self, input: &ListResourcesInput) -> Vec<ToolAccess> {
        match &input.server {
            Some(server) => vec![server_access(server)],
            None => self.servers.iter().map(|server| server_access(server.name())).collect(),
        }
    }

    async fn run(
        &self,
        input: ListResourcesInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let mut lines = Vec::new();
        for server in select_servers(&self.servers, input.server.as_deref())? {
            lines.push(format!("{}:", server.name()));
            match list_resource_lines(server, self.kind, cx).await {
                Ok(resource_lines) if resource_lines.is_empty() => lines.push("  (none)".into()),
                Ok(resource_lines) => lines.extend(resource_lines),
                Err(failure) => lines.push(format!("  (not listed: {failure})")),
            }
        }
        Ok(ToolOutput { text: lines.join("\n"), ..ToolOutput::default() })
    }
}

async fn list_resource_lines(
    server: &Arc<McpServer>,
    kind: ResourceListKind,
    cx: &CallContext<'_>,
) -> Result<Vec<String>, CallFailure> {
    let connection = server.connect(cx.world.mode(), &cx.cancel).await?;
    let mut lines = Vec::new();
    let mut pages = PageCursor::default();
    while let Some(params) = pages.next_request() {
        let request = match kind {
            ResourceListKind::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params))
            }
            ResourceListKind::Templates => ClientRequest::ListResourceTemplatesRequest(
                ListResourceTemplatesRequest::with_param(params),
            ),
        };
        let result = connection.send_request(request, &request_options(cx, server.name())).await;
        let next = match result.map_err(|error| error.into_failure(server.name()))? {
            ServerResult::ListResourcesResult(page) => {
                lines.extend(page.resources.iter().map(|resource| {
                    resource_line(&resource.uri, &resource.name, &resource.description)
                }));
                page.next_cursor
            }
            ServerResult::ListResourceTemplatesResult(page) => {
                let templates = page.resource_templates.iter();
                lines.extend(templates.map(|resource| {
                    resource_line(&resource.uri_template, &resource.name, &resource.description)
                }));
                page.next_cursor
            }
            _ => return Err(McpRequestError::InvalidAnswer.into_failure(server.name())),
        };
        if lines.len() > MAX_LISTED_RESOURCES {
            lines.truncate(MAX_LISTED_RESOURCES);
            lines.push("  (and more)".into());
            break;
        }
        pages.advance(next);
    }
    Ok(lines)
}

fn resource_line(uri: &str, name: &str, description: &Option<String>) -> String {
    let first = description.as_deref().and_then(|text| text.lines().next()).unwrap_or(name);
    format!("  {} — {}", clean_server_text(uri), clean_server_text(first))
}

fn request_options<'a>(cx: &CallContext<'a>, server: &'a str) -> McpRequestOptions<'a> {
    McpRequestOptions {
        idle_timeout: RESOURCE_TIMEOUT,
        total_timeout: RESOURCE_TIMEOUT,
        cancel: cx.cancel.clone(),
        caller: Some(cx.caller),
        server,
    }
}

#[async_trait]
impl Tool for ReadResourceTool {
    type Input = ReadResourceInput;

    fn name(&self) -> &str {
        "read_mcp_resource"
    }

    fn allows_batching(&self) -> bool {
        false
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<ReadResourceInput>(
            "Reads a resource of an MCP server by its URI.",
        )
    }

    fn access(&self, input: &ReadResourceInput) -> Vec<ToolAccess> {
        vec![server_access(&input.server)]
    }

    async fn run(
        &self,
        input: ReadResourceInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let servers = select_servers(&self.servers, Some(&input.server))?;
        let Some(server) = servers.first() else { return Err(CallFailure::new("unknown server")) };
        let connection = server.connect(cx.world.mode(), &cx.cancel).await?;
        let params = ReadResourceRequestParams::new(input.uri.clone());
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let result = connection.send_request(request, &request_options(cx, server.name())).await;
        match result.map_err(|error| error.into_failure(server.name()))? {
            ServerResult::ReadResourceResult(result) => {
                Ok(result_content::resource_output(result.contents, cx.caller).await)
            }
            _ => Err(McpRequestError::InvalidAnswer.into_failure(server.name())),
        }
    }
}
