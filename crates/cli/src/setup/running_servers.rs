//! The MCP and language servers that an engine uses, for reports about them and restarts.

use super::LoadedProject;
use std::sync::Mutex;
use windlass_lsp::LanguageServers;
use windlass_mcp::McpServers;
use windlass_protocol::mutex_lock::lock;
use windlass_toolkit::process_health::HealthChanges;

/// Handles of the servers that the engine of a project uses; empty before an engine is built.
#[derive(Default)]
pub(super) struct RunningServers {
    mcp: Mutex<Option<McpServers>>,
    language: Mutex<Option<LanguageServers>>,
    changes: Mutex<HealthChanges>,
}

impl LoadedProject {
    /// Remembers the MCP servers of the engine under construction.
    pub(super) fn set_running_mcp_servers(&self, servers: McpServers) {
        *lock(&self.running_servers.mcp) = Some(servers);
        self.server_changes().notify();
    }

    /// Remembers the language servers of the engine under construction.
    pub(super) fn set_running_language_servers(&self, servers: Option<LanguageServers>) {
        *lock(&self.running_servers.language) = servers;
        self.server_changes().notify();
    }

    /// Takes over the servers of another project state, whose engine this one uses.
    pub(crate) fn adopt_running_servers(&self, other: &LoadedProject) {
        *lock(&self.running_servers.mcp) = other.running_mcp_servers();
        *lock(&self.running_servers.language) = other.running_language_servers();
        *lock(&self.running_servers.changes) = other.server_changes();
    }

    /// Returns the subscribers to state changes of the servers.
    pub(crate) fn server_changes(&self) -> HealthChanges {
        lock(&self.running_servers.changes).clone()
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
