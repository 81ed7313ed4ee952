//! Settings of one prompt, which apply to the turn that processes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Key in `ToolOutput::metadata` under which the tool `skill` returns the [`AllowedCalls`] of the
/// skill that it loaded.
pub const ALLOWED_CALLS_KEY: &str = "allowed_calls";

/// Calls that a skill or a custom command may make. While it is in effect, until the end of the
/// turn, every other call that does more than read the project requires approval. It permits
/// nothing: the calls that it names are still subject to the usual rules. It also applies to the
/// subagents that the turn starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedCalls {
    /// Kind of the file that names the calls.
    pub source: AllowedCallsSource,
    /// Name of the skill or command.
    pub name: String,
    /// The calls as written, such as `Bash(git log:*)`.
    pub tools: Vec<String>,
    /// The calls, as `permission` rules.
    pub rules: Map<String, Value>,
}

/// Kind of the file that names [`AllowedCalls`]. A call must be allowed by a source of each kind in
/// effect: a skill does not widen the limit of a command, but several skills add to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllowedCallsSource {
    /// A custom command.
    Command,
    /// A skill.
    Skill,
}

impl AllowedCalls {
    /// Returns the calls in words, for example ``the custom command `/fix` allows only: Read``.
    pub fn describe(&self) -> String {
        let AllowedCalls { source, name, tools, .. } = self;
        let tools = tools.join(", ");
        match source {
            AllowedCallsSource::Command => {
                format!("the custom command `/{name}` allows only: {tools}")
            }
            AllowedCallsSource::Skill => format!("the skill {name} allows only: {tools}"),
        }
    }
}

/// Settings of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptSettings {
    /// Custom command that the prompt comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<PromptCommand>,
    /// Calls that the command names; for the prompt of a subagent, those of the turn that started
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_calls: Vec<AllowedCalls>,
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
