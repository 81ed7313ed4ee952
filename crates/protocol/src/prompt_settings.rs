//! Settings of one prompt, which apply to the turn that processes it.

use crate::step::Cost;
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
    /// Returns the calls of one source in words, for example ``the custom command `/fix` allows
    /// only: Read``; `None` if `limits` has none of this source. The limits of one source add to
    /// each other, so they are one sentence.
    pub fn describe(limits: &[AllowedCalls], source: AllowedCallsSource) -> Option<String> {
        let (mut names, mut tools) = (Vec::new(), Vec::new());
        for limit in limits.iter().filter(|limit| limit.source == source) {
            let name = match source {
                AllowedCallsSource::Command => format!("`/{}`", limit.name),
                AllowedCallsSource::Skill => limit.name.clone(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
            for tool in &limit.tools {
                if !tools.contains(&tool.as_str()) {
                    tools.push(tool);
                }
            }
        }
        let kind = match source {
            AllowedCallsSource::Command => "custom command",
            AllowedCallsSource::Skill => "skill",
        };
        let (plural, verb) = if names.len() > 1 { ("s", "allow") } else { ("", "allows") };
        let (names, tools) = (names.join(", "), tools.join(", "));
        (!names.is_empty()).then(|| format!("the {kind}{plural} {names} {verb} only: {tools}"))
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
    /// Model of the turn, `provider/model`, that the command names. If the session does not know it,
    /// its own model answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Limits of the turn.
    #[serde(default, skip_serializing_if = "PromptLimits::is_none")]
    pub limits: PromptLimits,
    /// JSON Schema that the answer must match, for models with structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
}

/// Limits of the turn of a prompt. They apply in addition to those of the session, and the lower
/// limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptLimits {
    /// Maximum number of model requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Maximum duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Maximum number of tokens, including those of subagents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum cost, including that of subagents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl PromptLimits {
    /// Returns the lower one of each limit.
    #[must_use]
    pub fn lower_of(self, other: PromptLimits) -> PromptLimits {
        fn lower<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
            one.into_iter().chain(two).min()
        }
        PromptLimits {
            steps: lower(self.steps, other.steps),
            time_ms: lower(self.time_ms, other.time_ms),
            tokens: lower(self.tokens, other.tokens),
            cost: lower(self.cost, other.cost),
        }
    }

    fn is_none(&self) -> bool {
        *self == PromptLimits::default()
    }
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
    /// Returns true if the settings limit the turn or its answer, so that it must be a turn of its
    /// own.
    pub fn limits_turn(&self) -> bool {
        !self.limits.is_none() || self.answer_schema.is_some()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_one_source_are_one_sentence() {
        let limit = |source, name: &str, tools: &[&str]| AllowedCalls {
            source,
            name: name.to_owned(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            rules: Map::new(),
        };
        let limits = [
            limit(AllowedCallsSource::Skill, "notes", &["Read", "Bash(mkdir:*)"]),
            limit(AllowedCallsSource::Skill, "deploy", &["Read", "Edit"]),
            limit(AllowedCallsSource::Command, "fix", &["Read"]),
        ];
        assert_eq!(
            AllowedCalls::describe(&limits, AllowedCallsSource::Skill).unwrap(),
            "the skills notes, deploy allow only: Read, Bash(mkdir:*), Edit"
        );
        assert_eq!(
            AllowedCalls::describe(&limits, AllowedCallsSource::Command).unwrap(),
            "the custom command `/fix` allows only: Read"
        );
        assert_eq!(AllowedCalls::describe(&limits[..2], AllowedCallsSource::Command), None);
    }
}
