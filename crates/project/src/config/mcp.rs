//! MCP servers: in our config, in OpenCode's format, and in the `.mcp.json` of a trusted project.
//!
//! A project's server never replaces one of the user's own.

use super::Config;
use super::env::ConfigEnv;
use super::mcp_server_config::{McpServerConfig, name_problem, parse_listed_raw, resolve_server};
use super::schema::{ExternalToolSettings, McpServerSettings};
use crate::config::file_parser::{ConfigLayer, ConfigOrigin, JsonCommentPolicy, ParsedConfig};
use crate::config::json_pointer;
use serde_json::Value;
use std::path::Path;

impl Config {
    /// Applies a server entirely, or reports its fault.
    pub(super) fn apply_mcp_server(
        &mut self,
        layer: ConfigLayer,
        file: &mut ParsedConfig,
        (name, server): (String, McpServerSettings),
        config_env: &dyn ConfigEnv,
    ) {
        let pointer = json_pointer::join("/mcp", &name);
        if file.broken_entries.contains(&pointer) {
            return;
        }
        if let Some(reason) = self.server_name_conflict(layer, &name) {
            return file.add_fault(&pointer, &reason);
        }
        match resolve_server(layer, &name, server, config_env) {
            Err((field, reason)) => file.add_fault(&format!("{pointer}{field}"), &reason),
            Ok(server) => {
                let prefix = format!("mcp.{name}.");
                self.effective_values.retain(|(value_name, ..)| !value_name.starts_with(&prefix));
                if let Some(value) = file.value_at(&pointer).cloned() {
                    self.record_values(&format!("mcp.{name}"), &value, &pointer, file);
                }
                self.servers.insert(name, (server, file.origin_of(&pointer).clone()));
            }
        }
    }

    /// Applies the servers of a trusted project's `.mcp.json`, which lists them for other programs.
    pub(super) fn apply_mcp_list(&mut self, path: &Path, text: &str) {
        let mut file = ParsedConfig::parse_untyped(
            path,
            ConfigLayer::Project,
            text,
            JsonCommentPolicy::Forbidden,
        );
        let listed = file.value_at("/mcpServers").and_then(Value::as_object).cloned();
        for (name, value) in listed.into_iter().flatten() {
            let pointer = json_pointer::join("/mcpServers", &name);
            let is_taken = self.servers.contains_key(&name);
            let reason = match self.server_name_conflict(ConfigLayer::Project, &name) {
                Some(reason) => Some(reason),
                None if is_taken => Some(format!("the config already has a server `{name}`")),
                None => None,
            };
            let server = match reason {
                Some(reason) => Err(reason),
                None => parse_listed_server(&value).and_then(|server| {
                    resolve_server(ConfigLayer::Project, &name, server, &EmptyConfigEnv)
                        .map_err(|(_, reason)| reason)
                }),
            };
            match server {
                Err(reason) => {
                    file.add_fault(&pointer, &format!("{reason}; the server `{name}` is skipped"));
                }
                Ok(server) => {
                    let origin = file.origin_of(&pointer).clone();
                    self.record_values(&format!("mcp.{name}"), &value, &pointer, &file);
                    self.servers.insert(name, (server, origin));
                }
            }
        }
        // Faults in another program's file do not prevent the start.
        let faults = std::mem::take(&mut file.diagnostics).into_iter();
        self.diagnostics.extend(faults.map(|mut fault| {
            fault.fatal = false;
            fault
        }));
    }

    /// Returns the reason why a layer cannot define a server of this name.
    fn server_name_conflict(&self, layer: ConfigLayer, name: &str) -> Option<String> {
        if let Some(reason) = name_problem(name) {
            return Some(reason);
        }
        let is_user_server =
            |(_, origin): &(McpServerConfig, ConfigOrigin)| origin.layer == ConfigLayer::User;
        let is_taken =
            layer == ConfigLayer::Project && self.servers.get(name).is_some_and(is_user_server);
        is_taken.then(|| format!("your own config already has a server `{name}`"))
    }

    /// Applies the `tools` settings. Only the user decides how external tools are presented to the
    /// model.
    pub(super) fn apply_tool_settings(
        &mut self,
        layer: ConfigLayer,
        tools: Option<ExternalToolSettings>,
        file: &mut ParsedConfig,
    ) {
        let Some(tools) = tools else { return };
        if layer == ConfigLayer::Project {
            return file
                .add_fault("/tools", "a project cannot set how tools are presented to the model");
        }
        if let Some(value) = file.value_at("/tools").cloned() {
            self.record_values("tools", &value, "/tools", file);
        }
        self.tools = tools;
    }
}

/// An empty `ConfigEnv`, for projects.
struct EmptyConfigEnv;

impl ConfigEnv for EmptyConfigEnv {
    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn canonical_provider(&self, _provider: &str) -> Option<&'static str> {
        None
    }
}

/// Parses a server of a project's `.mcp.json`, and rejects `${…}`.
fn parse_listed_server(value: &Value) -> Result<McpServerSettings, String> {
    if value.to_string().contains("${") {
        return Err("a project cannot read environment variables (`${…}`)".into());
    }
    parse_listed_raw(value)
}
