//! The Model Context Protocol: tools of external servers as tools in Windlass, and Windlass tools
//! as a server for other programs.
//!
//! The crate reads no files and no environment: its caller supplies what to start or connect to,
//! and stores tokens and pins. It keeps the invariant that server processes start only through the
//! toolkit's `ProcessLauncher`, and that a definition the user has not accepted requires approval.
//! Start reading at [`McpServers`], then [`serve`] for the server side.

mod client;
mod config;
mod connect_http;
mod oauth;
pub mod serve;
mod transport;

pub use client::{McpServerInventory, McpServers, ToolDefinitionChange};
pub use config::{
    McpEndpoint, McpHostCallbacks, McpServerSpec, PinnedServerDefinitions, PinnedToolDefinition,
    PromptSummary, ProtocolRevision,
};
pub use oauth::login::OAuthLogin;
pub use oauth::tokens::{McpAuth, OAuthConfig, TokenStore};
pub use transport::http::{
    AddressPolicy, McpHttpError, classify_error, http_transport, http_transport_within,
};
#[doc(hidden)]
pub use transport::json_lines::decode_server_output;
