//! Reports about the state of this installation: MCP servers, permissions, language servers,
//! plugins and usage. The panels of the terminal UI and the commands of the command line show the
//! same data.

pub(crate) mod language_servers;
pub(crate) mod mcp_servers;
pub(crate) mod permissions;
pub(crate) mod plugins;
pub(crate) mod process_state;
pub(crate) mod statistics;
