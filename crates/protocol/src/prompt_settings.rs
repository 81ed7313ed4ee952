//! Settings of one prompt, which apply to the turn that processes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Key in `ToolOutput::metadata` under which the tool `skill` returns the [`AllowedCalls`] of the
/// skill that it loaded.
pub const ALLOWED_CALLS_KEY: &str = "allowed_calls";

/// Calls that a skill or a custom command may make. While it is in effect, until the end of the
/// turn, every other call that does more than read the project requires approval. It permits
/// nothing: the calls that it names are still subject to the usual rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedCalls {
    /// The skill or command, for example `the skill pdf`.
    pub source: String,
    /// The calls, as `permission` rules.
    pub rules: Map<String, Value>,
}

/// Settings of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptSettings {
    /// Custom command that the prompt comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<PromptCommand>,
    /// Calls that the command names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_calls: Option<AllowedCalls>,
    /// Condition for the end of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<TurnGoal>,
}

/// The custom command that a prompt comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptCommand {
    /// Name of the command.
    pub name: String,
    /// Its arguments, as written.
    pub arguments: String,
}

impl PromptSettings {
    pub(crate) fn is_default(&self) -> bool {
        *self == PromptSettings::default()
    }
}

/// The goal of a turn: the model continues until it is reached, or until a limit of the turn is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnGoal {
    /// A command that must succeed. It runs like a command of the user.
    Command {
        /// The command in shell syntax.
        command: String,
    },
    /// A condition that a model judges from the conversation.
    Judged {
        /// The condition.
        condition: String,
    },
}
