//! Types of fields of front-end requests and their answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An API key on its way to the key store. Its `Debug` output hides it, so it cannot be printed by
/// mistake.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProviderKey(pub String);

impl std::fmt::Debug for ProviderKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Format of [`crate::frontend_messages::FrontendRequest::RenderSession`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionExportFormat {
    /// A web page.
    Html,
    /// Markdown.
    Markdown,
    /// The log, one JSON object a line, which can be imported again.
    JsonLines,
}

/// Duration of the choice in [`crate::frontend_messages::FrontendRequest::SetModel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelChoiceScope {
    /// Valid until the front end closes.
    Session,
    /// Saved in the user's config.
    Config,
}

/// Result of [`crate::frontend_messages::FrontendRequest::Login`] and [`crate::frontend_messages::FrontendRequest::AddProvider`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "login", rename_all = "snake_case")]
pub enum LoginResult {
    /// The provider accepts the key, and it is saved.
    Saved,
    /// The key is saved, but could not be checked.
    SavedUnchecked {
        /// Reason why the provider could not be asked.
        reason: String,
    },
    /// The provider rejects the key; nothing is saved.
    Rejected {
        /// Answer of the provider.
        reason: String,
    },
}

/// Maximum number of files that [`ListedItemKind::Files`] returns.
pub const MAX_LISTED_FILES: usize = 100_000;

/// Kind of items that [`crate::frontend_messages::FrontendRequest::List`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedItemKind {
    /// Files of the project that are not ignored, at most [`MAX_LISTED_FILES`]; [`ListRow::name`]
    /// is the path.
    Files,
    /// Models that are usable with the available API keys: favorites, then the most recently used.
    /// The response is [`HostResponse::Models`].
    Models,
    /// Agents that the user can choose.
    Agents,
    /// Agents that the model can start, which the user mentions as `@NAME`.
    Subagents,
    /// Skills that the model can load.
    Skills,
    /// Hooks in effect.
    Hooks,
    /// Settings in effect, each with its value and origin.
    Config,
    /// Custom commands of the user, the project and the plugins.
    Commands,
}

/// An item to choose from (`List`), or a result of a check (`Doctor`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListRow {
    /// Name of the item.
    pub name: String,
    /// One-line description.
    #[serde(default)]
    pub note: String,
    /// Status of the item.
    #[serde(default)]
    pub status: DoctorCheckStatus,
}

/// Result of a check by [`crate::frontend_messages::FrontendRequest::Doctor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctorCheckStatus {
    /// Works as expected.
    #[default]
    Ok,
    /// Works with limitations.
    Degraded,
    /// Missing or broken.
    Broken,
}
