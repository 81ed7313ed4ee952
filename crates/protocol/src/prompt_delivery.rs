//! Delivery of a prompt to a working model: in the current turn or after it. Also the parts by which
//! front ends recognize the prompt of `/init`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start of the prompt of `/init`. Front ends show `/init` in its place.
pub const INIT_PROMPT_START: &str = "Look at this project and write AGENTS.md at its root:";
/// Separates the prompt of `/init` from the user's additions to it.
pub const INIT_ADDITION: &str = "\n\nBesides: ";

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
