//! Configuration of a session: turn limits, context window and price of the model, and the loop
//! policy.

use crate::system_prompt::RenderedSystemPrompt;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_llm::catalog::Price;
use windlass_protocol::{CallDescription, Cost, PromptLimits, TokenUsage};
use windlass_toolkit::ToolRuntime;

/// Limits of one turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnLimits {
    /// Maximum model requests (`StepStarted` facts) in one turn.
    pub steps: u32,
    /// Maximum calls in one step; further calls are rejected.
    pub calls_per_step: usize,
    /// Maximum bytes of one answer.
    pub answer_bytes: usize,
    /// Maximum duration of a turn.
    pub time_ms: Option<u64>,
    /// Maximum tokens of a turn, including its subagents.
    pub tokens: Option<u64>,
    /// Maximum cost of a turn, including its subagents.
    pub cost: Option<Cost>,
    /// Number of identical repetitions in a row that count as a loop.
    pub loop_repeats: usize,
}

impl TurnLimits {
    /// Returns these limits, or those of a prompt where they are lower.
    #[must_use]
    pub(crate) fn with_prompt(self, prompt: PromptLimits) -> TurnLimits {
        let own = PromptLimits {
            steps: Some(self.steps),
            time_ms: self.time_ms,
            tokens: self.tokens,
            cost: self.cost,
        };
        let PromptLimits { steps, time_ms, tokens, cost } = own.lower_of(prompt);
        TurnLimits { steps: steps.unwrap_or(self.steps), time_ms, tokens, cost, ..self }
    }
}

impl Default for TurnLimits {
    fn default() -> TurnLimits {
        TurnLimits {
            steps: 5_000,
            calls_per_step: 64,
            answer_bytes: 8 << 20,
            time_ms: None,
            tokens: None,
            cost: None,
            loop_repeats: 3,
        }
    }
}

/// A model of a session: name, limits and price.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionModel {
    /// Model name, `provider/model`.
    pub name: String,
    /// Context window of the model.
    pub window: ContextWindow,
    /// Price of the model.
    pub price: Price,
}

impl SessionModel {
    /// Computes the cost of `usage`, if the price is known.
    pub(crate) fn cost(&self, usage: &TokenUsage) -> Option<Cost> {
        let price = &self.price;
        let (input_price, output_price) = (price.input?, price.output?);
        let uncached =
            usage.input.saturating_sub(usage.cache_reads).saturating_sub(usage.cache_writes);
        // Prices are dollars per million tokens, which equals millionths of a dollar per token.
        let cost = uncached as f64 * input_price
            + usage.cache_reads as f64 * price.cache_read.unwrap_or(input_price)
            + usage.cache_writes as f64 * price.cache_write.unwrap_or(input_price)
            + usage.output as f64 * output_price;
        Some(Cost(cost.round() as u64))
    }
}

/// External configuration of a session. None of it is in the log.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    /// Model name, `provider/model`.
    pub model: String,
    /// Context window of the model.
    pub context_window: ContextWindow,
    /// Price of the model.
    pub price: Price,
    /// Models that take over for the rest of a turn if the ones before them fail.
    pub fallback_models: Vec<SessionModel>,
    /// Models that a prompt can name for its turn.
    pub prompt_models: Vec<SessionModel>,
    /// Model that writes summaries, if it is another one.
    pub small_model: Option<SessionModel>,
    /// Limits of a turn.
    pub limits: TurnLimits,
    /// Reactions to a model that repeats the same calls.
    pub loop_rules: LoopDetectionRules,
    /// System prompt of a new session.
    pub system_prompt: RenderedSystemPrompt,
    /// Describes tool calls for the log.
    pub call_describer: CallDescriber,
    /// True if hooks are asked before a turn ends.
    pub has_turn_end_hooks: bool,
}

/// Function that describes a tool call, from its name and arguments: `Registry::describe_call`.
#[derive(Clone, Default)]
pub struct CallDescriber {
    describe: Option<Arc<DescribeCall>>,
    /// Folder of the workspace.
    root: Arc<str>,
}

type DescribeCall = dyn Fn(&str, &str) -> CallDescription + Send + Sync;

impl CallDescriber {
    /// Returns the describer for the tools of a workspace.
    pub(crate) fn new(runtime: &ToolRuntime) -> CallDescriber {
        let (registry, root) = (runtime.registry.clone(), runtime.workspace.root().to_owned());
        let root: Arc<str> = root.to_string_lossy().into();
        let workspace = Arc::clone(&root);
        CallDescriber {
            root,
            ..CallDescriber::from_fn(move |tool, arguments| {
                registry.describe_call(tool, arguments, &workspace)
            })
        }
    }

    /// Returns a describer that calls a function.
    pub fn from_fn(
        describe: impl Fn(&str, &str) -> CallDescription + Send + Sync + 'static,
    ) -> CallDescriber {
        CallDescriber { describe: Some(Arc::new(describe)), root: Arc::default() }
    }

    pub(super) fn describe(&self, tool: &str, arguments: &str) -> CallDescription {
        self.describe.as_ref().map(|describe| describe(tool, arguments)).unwrap_or_default()
    }

    /// Returns a path as descriptions show it.
    pub(super) fn relative_path<'a>(&self, path: &'a str) -> &'a str {
        windlass_toolkit::relative_path(path, &self.root)
    }
}

impl std::fmt::Debug for CallDescriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallDescriber")
    }
}

/// Context window of a model in tokens, and the part reserved for its answer; 0 means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextWindow {
    /// Total size.
    pub context: u64,
    /// Tokens reserved for the answer.
    pub output: u64,
}

/// Reaction to a model that repeats the same calls: the permission key `doom_loop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopDetectionPolicy {
    /// Continue.
    Allow,
    /// Ask the user.
    #[default]
    Ask,
    /// End the turn.
    Deny,
}

/// Reactions to a model that repeats the same calls, by the tool of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopDetectionRules {
    pub default: LoopDetectionPolicy,
    /// The tools whose reaction differs from `default`.
    pub by_tool: BTreeMap<String, LoopDetectionPolicy>,
}

impl LoopDetectionRules {
    /// Returns the reaction to repeated calls of a tool.
    pub fn policy(&self, tool: &str) -> LoopDetectionPolicy {
        self.by_tool.get(tool).copied().unwrap_or(self.default)
    }
}

impl From<LoopDetectionPolicy> for LoopDetectionRules {
    fn from(default: LoopDetectionPolicy) -> LoopDetectionRules {
        LoopDetectionRules { default, by_tool: BTreeMap::new() }
    }
}
