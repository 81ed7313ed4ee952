//! Modes: how much is done without asking.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How much is done without asking, from strict to lax. It is enforced by what is granted and by
/// the sandbox, never by what the model is told.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing is changed: files are only read, and commands run where they cannot write.
    Plan,
    /// Every change and every command that is not known to only look is asked about.
    #[default]
    Ask,
    /// What stays in the workspace and the sandbox is done; what would leave them is asked about.
    Auto,
    /// Nothing is asked. The sandbox stays.
    Full,
}

impl Mode {
    /// All of them, from strict to lax.
    pub const ALL: [Mode; 4] = [Mode::Plan, Mode::Ask, Mode::Auto, Mode::Full];

    /// Its name, as config and the command line have it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plan => "plan",
            Mode::Ask => "ask",
            Mode::Auto => "auto",
            Mode::Full => "full",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| format!("there is no mode `{text}`; there is plan, ask, auto and full"))
    }
}
