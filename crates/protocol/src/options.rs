//! How a model is to answer: what a person, a provider and a model have to say about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a model is to answer. What is not said is left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// How freely it chooses its words; 0 is the most predictable.
    pub temperature: Option<f64>,
    /// The share of likely words it chooses from.
    pub top_p: Option<f64>,
    /// How many tokens it may write at once.
    pub max_output: Option<u64>,
    /// How hard it thinks: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`, as far as
    /// the model knows them.
    pub effort: Option<Effort>,
    /// Whether it may, must or must not call tools.
    pub tool_choice: Option<Choice>,
    /// Whether it may make several calls at once.
    pub parallel_calls: Option<bool>,
    /// The JSON Schema its answer has to fit.
    pub answer: Option<Value>,
    /// Whatever else the provider knows, added to the request as it is.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// Whether a model may call tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// As it likes.
    Auto,
    /// It may not.
    None,
    /// It has to call one.
    Required,
    /// It has to call this one.
    Tool(String),
}

/// How hard a model thinks.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all.
    None,
    /// Hardly.
    Minimal,
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as it can.
    Max,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Effort; 7] = [
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::Xhigh,
        Effort::Max,
    ];

    /// The effort of a name.
    pub fn named(name: &str) -> Option<Effort> {
        Effort::ALL.into_iter().find(|effort| effort.name() == name)
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }

    /// For models that are told a number of tokens instead.
    pub fn budget(self) -> u64 {
        match self {
            Effort::None => 0,
            Effort::Minimal => 1_024,
            Effort::Low => 4_096,
            Effort::Medium => 8_192,
            Effort::High => 16_384,
            Effort::Xhigh => 24_576,
            Effort::Max => 32_768,
        }
    }

    /// The nearest of the levels a model knows; the higher one of two that are equally near.
    pub fn nearest(self, known: &[Effort]) -> Option<Effort> {
        let distance = |other: &&Effort| (self as i8 - **other as i8).abs();
        known.iter().rev().min_by_key(distance).copied()
    }
}

impl Options {
    /// Takes over what a stronger layer says; `extra` is merged key by key.
    pub fn merge(&mut self, stronger: Options) {
        let Options {
            temperature,
            top_p,
            max_output,
            effort,
            tool_choice,
            parallel_calls,
            answer,
            extra,
        } = stronger;
        fn over<T>(weaker: &mut Option<T>, stronger: Option<T>) {
            if stronger.is_some() {
                *weaker = stronger;
            }
        }
        over(&mut self.temperature, temperature);
        over(&mut self.top_p, top_p);
        over(&mut self.max_output, max_output);
        over(&mut self.effort, effort);
        over(&mut self.tool_choice, tool_choice);
        over(&mut self.parallel_calls, parallel_calls);
        over(&mut self.answer, answer);
        self.extra.extend(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_layer_says_only_what_it_says() {
        let read = |text: &str| serde_json::from_str::<Options>(text).unwrap();
        let mut options =
            read(r#"{"temperature": 0.5, "max_output": 10, "extra": {"a": 1, "b": 1}}"#);
        options.merge(read(r#"{"max_output": 20, "effort": "low", "extra": {"b": 2}}"#));
        let expected =
            r#"{"temperature": 0.5, "max_output": 20, "effort": "low", "extra": {"a": 1, "b": 2}}"#;
        assert_eq!(options, read(expected));
    }

    #[test]
    fn an_effort_a_model_does_not_know_becomes_its_neighbour() {
        use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
        assert_eq!(Max.nearest(&[Low, Medium, High]), Some(High));
        assert_eq!(Minimal.nearest(&[Low, High]), Some(Low));
        assert_eq!(Medium.nearest(&[Low, High]), Some(High));
        assert_eq!(Xhigh.nearest(&[]), None);
    }
}
