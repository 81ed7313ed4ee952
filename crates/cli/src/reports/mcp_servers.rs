//! The report about MCP servers.

use super::process_state::{describe_state, log_lines, state_reason};
use crate::commands::mcp::token_store;
use crate::setup::LoadedProject;
use serde_json::{Value, json};
use windlass_project::{ApiKeyStore, ConfigOrigin, McpServerConfig, McpTransport, ServerLogs};
use windlass_protocol::display_text::{pluralize, to_one_line, truncate_chars};
use windlass_protocol::report::{ReportAction, ReportRow, ReportRowState};
use windlass_toolkit::process_health::ProcessHealthState;
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::truncate_output::strip_controls;

/// Limit for the description of a tool in a list.
const MAX_DESCRIPTION_CHARS: usize = 72;

/// A configured MCP server and what is known about it without a connection.
pub(crate) struct McpServerInfo<'a> {
    server: &'a McpServerConfig,
    origin: &'a ConfigOrigin,
    is_logged_in: bool,
    state: Option<ProcessHealthState>,
}

/// Returns the configured servers. Starts none.
pub(crate) fn collect_servers(setup: &LoadedProject) -> anyhow::Result<Vec<McpServerInfo<'_>>> {
    let keys = ApiKeyStore::open(&setup.dirs).list()?;
    let states = setup.running_mcp_servers().map(|servers| servers.states()).unwrap_or_default();
    let servers = setup.config.servers.values().map(|(server, origin)| {
        let key = format!("{}{}", token_store::KEY_NAME_PREFIX, server.name);
        let state = states.iter().find(|(name, _)| *name == server.name);
        McpServerInfo {
            server,
            origin,
            is_logged_in: keys.iter().any(|(known, _)| *known == key),
            state: state.map(|(_, state)| state.clone()),
        }
    });
    Ok(servers.collect())
}

impl McpServerInfo<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.server.name
    }

    /// Describes the server on one line after its name, as `windlass mcp list` prints it.
    pub(crate) fn describe(&self) -> String {
        let state = match (&self.server.transport, self.server.enabled) {
            (_, false) => "off, ",
            (McpTransport::Http { .. }, true) if self.is_logged_in => "logged in, ",
            (McpTransport::Http { .. } | McpTransport::Stdio { .. }, true) => "",
        };
        format!("{}  ({state}{})", self.transport(), self.origin)
    }

    pub(crate) fn to_json(&self) -> Value {
        let transport = match &self.server.transport {
            McpTransport::Stdio { command, .. } => json!({"command": command}),
            McpTransport::Http { url, .. } => json!({"url": url}),
        };
        json!({"name": self.server.name, "enabled": self.server.enabled, "transport": transport,
               "logged_in": self.is_logged_in, "from": self.origin.to_string()})
    }

    /// Describes the `McpTransport` on one line, without the values of its environment.
    fn transport(&self) -> String {
        match &self.server.transport {
            McpTransport::Stdio { command, .. } => command.join(" "),
            McpTransport::Http { url, .. } => url.clone(),
        }
    }

    fn to_row(&self, setup: &LoadedProject) -> ReportRow {
        let name = &self.server.name;
        let (state, state_name) = match self.server.enabled {
            true => describe_state(self.state.as_ref()),
            false => (ReportRowState::Off, "off"),
        };
        let definitions = setup.server_definitions(name);
        let tools = definitions.as_ref().map(|definitions| &definitions.tools);
        let tool_count = tools.map(|tools| pluralize(tools.len(), "tool")).unwrap_or_default();
        let mut details = vec![
            format!("State: {state_name}"),
            format!("Connects to: {}", self.transport()),
            format!("Set in: {}", self.origin),
        ];
        if let Some(reason) = state_reason(self.state.as_ref()) {
            details.insert(1, format!("Reason: {}", to_one_line(reason)));
        }
        if self.is_logged_in {
            details.push("Logged in".to_owned());
        }
        details.push(String::new());
        match tools {
            None => details.push("Tools: not known until the first connection".to_owned()),
            Some(tools) if tools.is_empty() => details.push("Tools: none".to_owned()),
            Some(tools) => {
                details.push("Tools:".to_owned());
                details.extend(tools.iter().map(|tool| {
                    let text = tool.definition.get("description").and_then(Value::as_str);
                    let text = strip_controls(&to_one_line(text.unwrap_or_default()));
                    let text = truncate_chars(&text, MAX_DESCRIPTION_CHARS);
                    let name = untrusted_schema::tool_name(name, &tool.name);
                    format!("  {name}  {text}").trim_end().to_owned()
                }));
            }
        }
        details.extend(log_lines(&ServerLogs::new(&setup.dirs, "mcp"), name));
        let can_restart = self.server.enabled && self.state.is_some();
        ReportRow {
            id: name.clone(),
            name: name.clone(),
            note: self.transport(),
            columns: vec![tool_count, state_name.to_owned()],
            state: Some(state),
            details: details.join("\n"),
            actions: can_restart.then_some(ReportAction::Restart).into_iter().collect(),
            ..ReportRow::default()
        }
    }
}

/// Returns the rows of the report.
pub(crate) fn report_rows(setup: &LoadedProject) -> anyhow::Result<Vec<ReportRow>> {
    Ok(collect_servers(setup)?.iter().map(|server| server.to_row(setup)).collect())
}
