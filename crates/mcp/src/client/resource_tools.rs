//! Tools for the resources of servers: two tools that serve all servers. A permission rule for a
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

/// The kind of list that a server is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResourceListKind {
    /// Concrete resources.
    Resources,
    /// URI templates for resources.
    Templates,
}

/// The `list_mcp_resources` tool.
pub(crate) struct ListResourcesTool {
    pub(crate) servers: ResourceServers,
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

/// Returns the permission key of a server's resources.
fn permission_key(server: &str) -> String {
    untrusted_schema::tool_name(server, "resources")
}

/// Returns the access to the resources of a server; none if there is no such server, because then
/// `find_server` says so.
fn server_access(servers: &ResourceServers, name: &str) -> Vec<ToolAccess> {
    let named = servers.iter().filter(|server| server.name() == name);
    named.map(|server| ToolAccess::UseTool { tool: permission_key(server.name()) }).collect()
}

fn server_names(servers: &ResourceServers) -> String {
    servers.iter().map(|server| server.name()).collect::<Vec<_>>().join(", ")
}

fn find_server<'a>(
    servers: &'a ResourceServers,
    name: &str,
) -> Result<&'a Arc<McpServer>, CallFailure> {
    servers.iter().find(|server| server.name() == name).ok_or_else(|| {
        CallFailure::new(format!(
            "There is no server `{}`; there are: {}.",
            clean_server_text(name),
            server_names(servers)
        ))
    })
}

#[async_trait]
impl Tool for ListResourcesTool {
    type Input = ListResourcesInput;

    fn name(&self) -> &str {
        "list_mcp_resources"
    }

    fn allows_batching(&self) -> bool {
        false
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        let servers = server_names(&self.servers);
        ToolDefinition::for_input::<ListResourcesInput>(&format!(
            "Lists the resources of MCP servers, and templates of their URIs. Servers with \
             resources: {servers}."
        ))
    }

    /// Requires permission for one server. A list of several has those that the rules allow.
    fn access(&self, input: &ListResourcesInput) -> Vec<ToolAccess> {
        match (&input.server, &*self.servers) {
            (Some(server), _) => server_access(&self.servers, server),
            (None, [server]) => server_access(&self.servers, server.name()),
            (None, _) => Vec::new(),
        }
    }

    async fn run(
        &self,
        input: ListResourcesInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let servers = match &input.server {
            Some(name) => vec![find_server(&self.servers, name)?],
            None => self.servers.iter().collect(),
        };
        // `access` required permission for a single server.
        let is_permitted = servers.len() == 1;
        let mut lines = Vec::new();
        for server in servers {
            lines.push(format!("{}:", server.name()));
            let key = permission_key(server.name());
            // A rule does not lift the limit of a skill or command.
            let answer =
                cx.world.answer_by_rules(&key, &[]).filter(|allowed| !(*allowed && cx.is_limited));
            match answer {
                _ if is_permitted => lines.extend(list_resources_and_templates(server, cx).await),
                Some(true) => lines.extend(list_resources_and_templates(server, cx).await),
                Some(false) => lines.push("  (a rule denies it)".into()),
                None => lines.push("  (needs approval; list it by its name)".into()),
            }
        }
        Ok(ToolOutput { text: lines.join("\n"), ..ToolOutput::default() })
    }
}

/// Returns the lines of a server in the list: its resources and URI templates.
async fn list_resources_and_templates(
    server: &Arc<McpServer>,
    cx: &CallContext<'_>,
) -> Vec<String> {
    let mut lines = match list_resource_lines(server, ResourceListKind::Resources, cx).await {
        Ok(lines) => lines,
        Err(failure) => return vec![format!("  (not listed: {failure})")],
    };
    // A server need not know this request.
    let templates = list_resource_lines(server, ResourceListKind::Templates, cx).await;
    lines.extend(templates.unwrap_or_default());
    if lines.is_empty() {
        lines.push("  (none)".into());
    }
    lines
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
                    resource_line(&resource.uri, "", &resource.name, &resource.description)
                }));
                page.next_cursor
            }
            ServerResult::ListResourceTemplatesResult(page) => {
                let templates = page.resource_templates.iter();
                lines.extend(templates.map(|resource| {
                    let uri = &resource.uri_template;
                    resource_line(uri, " (template)", &resource.name, &resource.description)
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

fn resource_line(uri: &str, note: &str, name: &str, description: &Option<String>) -> String {
    let first = description.as_deref().and_then(|text| text.lines().next()).unwrap_or(name);
    format!("  {}{note} — {}", clean_server_text(uri), clean_server_text(first))
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
        server_access(&self.servers, &input.server)
    }

    async fn run(
        &self,
        input: ReadResourceInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let server = find_server(&self.servers, &input.server)?;
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
