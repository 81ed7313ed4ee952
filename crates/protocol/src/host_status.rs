//! The status of a host, and the rows that a front end shows of it.

use crate::client_info::ClientInfo;
use crate::permission_mode::PermissionMode;
use crate::report::ReportRowState;
use crate::request_error::AccessRight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
/// A model that the user can choose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelListItem {
    /// Name of the model, as `provider/model`.
    pub name: String,
    /// Size, price and abilities in one line.
    #[serde(default)]
    pub note: String,
    /// True if it is in `tui.favorite_models`.
    #[serde(default)]
    pub is_favorite: bool,
    /// True if a recent session used it.
    #[serde(default)]
    pub is_recent: bool,
}

/// State of a session for the user's own status line command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusLineInput {
    /// Title of the session; empty before the first prompt.
    pub title: String,
    /// Model, as `provider/model`.
    pub model: String,
    /// Agent of the session.
    pub agent: String,
    /// Permission mode.
    pub mode: PermissionMode,
    /// Working folder.
    pub folder: String,
    /// Branch that is checked out, if known.
    #[serde(default)]
    pub branch: Option<String>,
    /// Tokens in the context window of the model.
    pub context_tokens: u64,
    /// Size of that window, if known.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Cost of the session in US dollars.
    pub cost_usd: f64,
    /// Reasoning effort or variant of the model, if one is set.
    #[serde(default)]
    pub effort: Option<String>,
    /// True while a turn is under way.
    pub busy: bool,
}

/// Size of an image, in pixels and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageSize {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// A provider that the user can choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderListItem {
    /// Name of the provider, as in config.
    pub provider: String,
    /// Name of the provider for people, such as `Moonshot AI`.
    #[serde(default)]
    pub display_name: String,
    /// Evidence that the provider is usable: "ANTHROPIC_API_KEY is set", "ollama answers at
    /// 127.0.0.1:11434".
    pub evidence: String,
    /// True if the models are usable as is; false if an API key is missing.
    pub is_ready: bool,
    /// False for a server on this machine, which needs no API key.
    #[serde(default)]
    pub takes_key: bool,
    /// Suitable models, as `provider/model`, best first.
    pub models: Vec<String>,
}

/// State of the host, for [`HostResponse::Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// Version of Windlass.
    pub version: String,
    /// Working folder, as the user writes it.
    pub workspace: String,
    /// Working folder, as sessions record it.
    pub root: String,
    /// Name of the server's machine, if the host is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The front end that asked, as facts name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// Right of the front end; `admin` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<AccessRight>,
    /// Branch that is checked out, if known.
    #[serde(default)]
    pub branch: Option<String>,
    /// Current model, as `provider/model`; absent until the user chooses one on the first run.
    #[serde(default)]
    pub model: Option<String>,
    /// Context window of `model` in tokens, if known.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Reasoning effort or variant of `model`, if one is set.
    #[serde(default)]
    pub effort: Option<String>,
    /// Variants of `model` in the config and the efforts that it supports, for
    /// [`FrontendRequest::SetEffort`].
    #[serde(default)]
    pub efforts: Vec<String>,
    /// Agent of a new session.
    pub agent: String,
    /// Mode of a new session.
    pub mode: PermissionMode,
    /// Most permissive mode that the user can choose.
    pub max_mode: PermissionMode,
    /// Trust state of `root`.
    pub trust: TrustState,
    /// Sandbox for commands: "bubblewrap", "Landlock", or the missing part.
    pub sandbox: String,
    /// Notes that the user should read before starting.
    #[serde(default)]
    pub notes: Vec<String>,
    /// MCP and language servers; `HostMessage::Servers` reports changes.
    #[serde(default)]
    pub servers: Vec<ServerStatus>,
}

/// State of an MCP or language server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// Kind of the server.
    pub kind: ServerKind,
    /// Name of the server, as in config.
    pub name: String,
    /// State of the server.
    pub state: ReportRowState,
}

/// Kind of a [`ServerStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    /// Server of the Model Context Protocol.
    Mcp,
    /// Language server that was started.
    Language,
}

/// Trust state of a folder, for [`HostStatus::trust`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// The user trusts the folder in its current state.
    Trusted,
    /// The folder is not trusted, and the user was not asked yet.
    #[default]
    NotAsked,
    /// The folder was trusted and has changed since.
    ChangedSinceTrust,
    /// The user declined to trust the folder.
    Declined,
}
