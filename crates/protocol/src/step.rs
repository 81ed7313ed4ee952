//! Purpose, finish reason, usage and cost of a step, and the end of a turn.

use crate::fault::Fault;
use crate::ids_and_timestamps::{CallId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool call that started a subagent session (`SubagentStarted`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentCall {
    /// Session that made the call.
    pub session: SessionId,
    /// ID of the call in `session`.
    pub call: CallId,
}

/// Purpose of a model request (`StepStarted`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepPurpose {
    /// Continues the conversation.
    #[default]
    Answer,
    /// Summarizes the conversation.
    Summary,
}

impl StepPurpose {
    pub(crate) fn is_answer(&self) -> bool {
        *self == StepPurpose::Answer
    }
}

/// Purpose of a model request apart from the conversation (`SideRequestEnded`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideRequestPurpose {
    /// Writes a title for the session.
    Title,
    /// Decides about something, such as whether a goal is reached.
    Judge,
}

/// An amount of money, in millionths of a US dollar.
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

/// Reason why a model response ended (`StepEnded`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished its answer.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The model reached its output limit; calls that were cut off are not in the log.
    Length,
    /// The provider withheld the rest.
    ContentFiltered,
    /// The user stopped the response (`SessionOp::Interrupt`).
    Interrupted,
    /// The request failed.
    Failed {
        /// Cause of the failure.
        fault: Fault,
    },
    /// The process died during the response; its content so far is unknown.
    ProcessDied,
}

/// Tokens used by one step or by several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Part of `input` that the provider read from its cache.
    #[serde(default)]
    pub cache_reads: u64,
    /// Part of `input` that the provider wrote to its cache.
    #[serde(default)]
    pub cache_writes: u64,
    /// Part of `output` that is reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: TokenUsage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_reads = self.cache_reads.saturating_add(other.cache_reads);
        self.cache_writes = self.cache_writes.saturating_add(other.cache_writes);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// Reason why a turn ended (`TurnEnded`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TurnEndReason {
    /// The model finished its work.
    Completed,
    /// The user denied a call, or no user was present to approve it.
    Denied,
    /// The user stopped the turn (`SessionOp::Interrupt`).
    Interrupted,
    /// The model kept repeating the same action, and the user did not let it continue.
    LoopDetected {
        /// The repeated action.
        repeated_action: String,
    },
    /// The turn reached a limit.
    LimitReached {
        /// Name of the limit.
        limit: String,
    },
    /// The turn could not continue.
    Failed {
        /// Cause of the failure.
        fault: Fault,
    },
}
