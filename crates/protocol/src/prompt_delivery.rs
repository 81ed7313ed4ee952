//! Delivery of a prompt to a working model: in the current turn or after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time at which a working model receives a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptDelivery {
    /// Before the next model request of the current turn.
    #[default]
    Steer,
    /// After the current turn ends.
    Queue,
}

impl PromptDelivery {
    pub(crate) fn is_steer(&self) -> bool {
        *self == PromptDelivery::Steer
    }
}
