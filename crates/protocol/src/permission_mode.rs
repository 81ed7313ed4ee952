//! Permission modes, which set how much Windlass does without approval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Permission mode: how much Windlass does without approval, from strict to permissive. Permissions
/// and the sandbox enforce it, never instructions to the model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Changes nothing: files are only read, and commands run without write access.
    Plan,
    /// Requires approval for every change, and for every command that is not known to be read-only.
    #[default]
    Ask,
    /// Allows everything inside the workspace and the sandbox; requires approval for anything
    /// outside.
    Auto,
    /// Requires no approval. The sandbox stays on.
    Full,
}

impl PermissionMode {
    /// All modes, from strict to permissive.
    pub const ALL: [PermissionMode; 4] =
        [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::Auto, PermissionMode::Full];

    /// Returns the name of the mode, as used in config and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PermissionMode::Plan => "plan",
            PermissionMode::Ask => "ask",
            PermissionMode::Auto => "auto",
            PermissionMode::Full => "full",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PermissionMode {
    type Err = String;

    fn from_str(text: &str) -> Result<PermissionMode, String> {
        let found = PermissionMode::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| format!("unknown mode `{text}`; available: plan, ask, auto and full"))
    }
}
