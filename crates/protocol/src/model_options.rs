//! Generation options for a model, as set by the user, the provider and the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Generation options for a model. Unset options are left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelOptions {
    /// Sampling temperature; 0 is the most predictable.
    pub temperature: Option<f64>,
    /// Nucleus sampling: the share of likely tokens to choose from.
    pub top_p: Option<f64>,
    /// The number of likely tokens to choose from.
    pub top_k: Option<u32>,
    /// Maximum number of output tokens per response.
    pub max_output: Option<u64>,
    /// Reasoning effort: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`, as far as
    /// the model supports them.
    pub effort: Option<ReasoningEffort>,
    /// Tool use: allowed, required or forbidden.
    pub tool_choice: Option<ToolChoice>,
    /// Allow several tool calls in one response.
    pub parallel_calls: Option<bool>,
    /// JSON Schema that the answer must match.
    pub answer: Option<Value>,
    /// Other provider options, added to the request unchanged.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// Tool use of a model: allowed, required or forbidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must not call tools.
    None,
    /// The model must call a tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

/// Reasoning effort of a model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// No reasoning.
    None,
    /// Almost no reasoning.
    Minimal,
    /// Little reasoning.
    Low,
    /// Normal reasoning.
    Medium,
    /// Much reasoning.
    High,
    /// Very much reasoning.
    Xhigh,
    /// As much reasoning as the model supports.
    Max,
}

impl ReasoningEffort {
    /// All efforts, lowest first.
    pub const ALL: [ReasoningEffort; 7] = [
        ReasoningEffort::None,
        ReasoningEffort::Minimal,
        ReasoningEffort::Low,
        ReasoningEffort::Medium,
        ReasoningEffort::High,
        ReasoningEffort::Xhigh,
        ReasoningEffort::Max,
    ];

    /// Returns the effort with this name, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<ReasoningEffort> {
        ReasoningEffort::ALL.into_iter().find(|effort| effort.name() == name)
    }

    /// Returns the name of the effort, for example `xhigh`.
    pub fn name(self) -> &'static str {
        match self {
            ReasoningEffort::None => "none",
            ReasoningEffort::Minimal => "minimal",
            ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
            ReasoningEffort::Xhigh => "xhigh",
            ReasoningEffort::Max => "max",
        }
    }

    /// Returns the reasoning budget for models that take a number of tokens instead of a level.
    pub fn token_budget(self) -> u64 {
        match self {
            ReasoningEffort::None => 0,
            ReasoningEffort::Minimal => 1_024,
            ReasoningEffort::Low => 4_096,
            ReasoningEffort::Medium => 8_192,
            ReasoningEffort::High => 16_384,
            ReasoningEffort::Xhigh => 24_576,
            ReasoningEffort::Max => 32_768,
        }
    }

    /// Returns the nearest of the levels that a model supports; the higher one if two are equally
    /// near.
    pub fn nearest(self, supported: &[ReasoningEffort]) -> Option<ReasoningEffort> {
        let distance = |other: &&ReasoningEffort| (self as i8 - **other as i8).abs();
        supported.iter().rev().min_by_key(distance).copied()
    }
}

impl ModelOptions {
    /// Overrides options with those set in `stronger`; `extra` is merged key by key.
    pub fn merge(&mut self, stronger: ModelOptions) {
        let ModelOptions {
            temperature,
            top_p,
            top_k,
            max_output,
            effort,
            tool_choice,
            parallel_calls,
            answer,
            extra,
        } = stronger;
        fn override_with<T>(weaker: &mut Option<T>, stronger: Option<T>) {
            if stronger.is_some() {
                *weaker = stronger;
            }
        }
        override_with(&mut self.temperature, temperature);
        override_with(&mut self.top_p, top_p);
        override_with(&mut self.top_k, top_k);
        override_with(&mut self.max_output, max_output);
        override_with(&mut self.effort, effort);
        override_with(&mut self.tool_choice, tool_choice);
        override_with(&mut self.parallel_calls, parallel_calls);
        override_with(&mut self.answer, answer);
        self.extra.extend(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_layer_overrides_only_the_options_it_sets() {
        let parse = |text: &str| serde_json::from_str::<ModelOptions>(text).unwrap();
        let mut options =
            parse(r#"{"temperature": 0.5, "max_output": 10, "extra": {"a": 1, "b": 1}}"#);
        options.merge(parse(r#"{"max_output": 20, "effort": "low", "extra": {"b": 2}}"#));
        let expected =
            r#"{"temperature": 0.5, "max_output": 20, "effort": "low", "extra": {"a": 1, "b": 2}}"#;
        assert_eq!(options, parse(expected));
    }

    #[test]
    fn an_unsupported_effort_becomes_the_nearest_one() {
        use ReasoningEffort::{High, Low, Max, Medium, Minimal, Xhigh};
        assert_eq!(Max.nearest(&[Low, Medium, High]), Some(High));
        assert_eq!(Minimal.nearest(&[Low, High]), Some(Low));
        assert_eq!(Medium.nearest(&[Low, High]), Some(High));
        assert_eq!(Xhigh.nearest(&[]), None);
    }
}
