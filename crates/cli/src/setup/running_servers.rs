//! The MCP and language servers that an engine uses, for reports about them and restarts.

use super::LoadedProject;
use std::sync::Mutex;
use windlass_lsp::LanguageServers;
use windlass_mcp::McpServers;
use windlass_protocol::mutex_lock::lock;

/// Handles of the servers that the engine of a project uses; empty before an engine is built.
#[derive(Default)]
pub(super) struct RunningServers {
    mcp: Mutex<Option<McpServers>>,
    language: Mutex<Option<LanguageServers>>,
}

impl LoadedProject {
    /// Remembers the MCP servers of the engine under construction.
    pub(super) fn set_running_mcp_servers(&self, servers: McpServers) {
        *lock(&self.running_servers.mcp) = Some(servers);
    }

    /// Remembers the language servers of the engine under construction.
    pub(super) fn set_running_language_servers(&self, servers: Option<LanguageServers>) {
        *lock(&self.running_servers.language) = servers;
    }

    /// Takes over the servers of another project state, whose engine this one uses.
    pub(crate) fn adopt_running_servers(&self, other: &LoadedProject) {
        *lock(&self.running_servers.mcp) = other.running_mcp_servers();
        *lock(&self.running_servers.language) = other.running_language_servers();
    }

    /// Returns the MCP servers of the engine, if it is built.
    pub(crate) fn running_mcp_servers(&self) -> Option<McpServers> {
        lock(&self.running_servers.mcp).clone()
    }

    /// Returns the language servers of the engine, if it is built.
    pub(crate) fn running_language_servers(&self) -> Option<LanguageServers> {
        lock(&self.running_servers.language).clone()
    }
}
