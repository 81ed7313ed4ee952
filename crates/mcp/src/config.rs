//! Configuration of an MCP server before a connection exists: its endpoint, the pins from the last
//! session, and the `McpHostCallbacks` that saves new pins. Plain data.

use crate::oauth::tokens::McpAuth;
use crate::transport::http::AddressPolicy;
use rmcp::model::ProtocolVersion;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use windlass_sandbox::ProcessSpec;
use windlass_toolkit::process_health::HealthChanges;

/// An MCP server as the config describes it.
#[derive(Clone)]
pub struct McpServerSpec {
    /// The server name; `tool_name` puts it in front of each tool name.
    pub name: String,
    pub endpoint: McpEndpoint,
    /// Limit for starting the server, including the first `tools/list`.
    pub start_timeout: Duration,
    /// The protocol revision that the config sets, if any.
    pub revision: Option<ProtocolRevision>,
    /// Digest of the program or address. `pins` count only if their `config_digest` is the same.
    pub digest: String,
    /// The `PinnedServerDefinitions` from the last session.
    pub pins: Option<PinnedServerDefinitions>,
}

/// The way to reach a server.
#[derive(Clone)]
pub enum McpEndpoint {
    /// A program that speaks the protocol over stdin and stdout.
    Stdio(Box<ProcessSpec>),
    /// A server at a URL.
    Http {
        url: String,
        /// Headers of every request; `parse_headers` rejects reserved ones.
        headers: Vec<(String, SecretString)>,
        auth: McpAuth,
        /// True for a server of revision 2024-11-05, whose messages arrive on one event stream.
        /// Otherwise this is found out.
        uses_sse: bool,
        /// Restricts the addresses that `url` may lead to.
        address_policy: AddressPolicy,
    },
}

/// Storage for server pins and log lines, and the way to notify the user.
pub trait McpHostCallbacks: Send + Sync {
    /// Saves the current `PinnedServerDefinitions` of a server.
    fn save_pins(&self, server: &str, pinned: &PinnedServerDefinitions);
    /// Logs a line that only debugging needs.
    fn log_line(&self, server: &str, line: &str);
    /// Shows a message to the user.
    fn notify_user(&self, text: String);
    /// Returns the subscribers to state changes of the servers.
    fn health_changes(&self) -> HealthChanges {
        HealthChanges::default()
    }
}

/// A revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProtocolRevision {
    /// A connection begins with `initialize`.
    #[serde(rename = "2025-11-25")]
    Initialize,
    /// Every request is self-contained; there is no handshake.
    #[serde(rename = "2026-07-28")]
    Discover,
}

impl ProtocolRevision {
    /// Returns the revision with this date, such as `2025-11-25`, if it is known.
    pub fn from_date(date: &str) -> Option<ProtocolRevision> {
        match date {
            "2025-11-25" => Some(ProtocolRevision::Initialize),
            "2026-07-28" => Some(ProtocolRevision::Discover),
            _ => None,
        }
    }

    pub(crate) fn from_version(version: &ProtocolVersion) -> ProtocolRevision {
        if *version == ProtocolVersion::V_2026_07_28 {
            ProtocolRevision::Discover
        } else {
            ProtocolRevision::Initialize
        }
    }
}

/// The pinned state of a server: the definitions that the user accepted, or the first ones the
/// server sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedServerDefinitions {
    /// The `McpServerSpec::digest` of the program or address.
    pub config_digest: String,
    /// The protocol revision that the server speaks.
    pub revision: ProtocolRevision,
    pub tools: Vec<PinnedToolDefinition>,
    #[serde(default)]
    pub prompts: Vec<PromptSummary>,
    #[serde(default)]
    pub has_resources: bool,
    /// The server's instructions for the model; empty if it has none.
    #[serde(default)]
    pub instructions: String,
}

/// A tool definition as the user accepted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedToolDefinition {
    /// The name that the server uses.
    pub name: String,
    /// Digest of `definition`.
    pub digest: String,
    /// The definition: `name`, `title`, `description`, `inputSchema`, `annotations`.
    pub definition: Value,
}

/// A prompt from `prompts/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSummary {
    pub name: String,
    pub description: String,
    /// The argument names; a trailing `*` marks a required one.
    pub arguments: Vec<String>,
}
