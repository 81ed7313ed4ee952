//! Implementations of the `windlass` subcommands, one module each.

pub(crate) mod agent;
pub(crate) mod attach;
pub(crate) mod auth;
pub(crate) mod doctor;
pub(crate) mod fleet;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod mcp_serve;
pub(crate) mod model_selection;
pub(crate) mod models;
pub(crate) mod permission;
pub(crate) mod permission_rehearsal;
pub(crate) mod plugin;
mod plugin_fetch;
mod plugin_marketplace;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod serve;
mod server_connection;
pub(crate) mod session;
pub(crate) mod stats;
pub(crate) mod trust;
