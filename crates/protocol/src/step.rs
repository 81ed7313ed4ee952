//! What a step and a turn come to: what for, why it stopped, what it took.

use crate::fault::Fault;
use crate::id::{CallId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What began a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// A call in this session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To go on with the conversation.
    #[default]
    Answer,
    /// To sum it up.
    Summary,
}

impl Purpose {
    pub(crate) fn is_answer(&self) -> bool {
        *self == Purpose::Answer
    }
}

/// Money, in millionths of a dollar.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Finish {
    /// It had said what it had to say.
    Stop,
    /// It waits for its calls.
    Calls,
    /// It reached its output limit; calls that were cut off are not among the facts.
    Length,
    /// The provider withheld the rest.
    Filtered,
    /// A person stopped it.
    Interrupted,
    /// The request failed.
    Failed {
        /// Why.
        fault: Fault,
    },
    /// The process died while it was answering; what it had said is not known.
    Lost,
}

/// Tokens of one step, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Read by the model, cached ones included.
    pub input: u64,
    /// Written by the model, thoughts included.
    pub output: u64,
    /// Of `input`, those that came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Of `input`, those that the provider put into its cache.
    #[serde(default)]
    pub cache_writes: u64,
    /// Of `output`, thoughts.
    #[serde(default)]
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_writes = self.cache_writes.saturating_add(other.cache_writes);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model was done.
    Done,
    /// Somebody said no, or nobody was there to say yes.
    Denied,
    /// A person stopped it.
    Interrupted,
    /// The model did the same again and again, and nobody wanted that to go on.
    Looped {
        /// What it did.
        what: String,
    },
    /// A bound was reached.
    Limit {
        /// Which.
        what: String,
    },
    /// It could not go on.
    Failed {
        /// Why.
        fault: Fault,
    },
}
