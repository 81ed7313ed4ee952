//! Delivery of a prompt to a working model: in the current turn or after it. Also the parts by which
//! front ends recognize the prompts of `/init` and `/review`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start of the prompt of `/init`. Front ends show `/init` in its place.
pub const INIT_PROMPT_START: &str = "Look at this project and write AGENTS.md at its root:";
/// Separates the prompt of `/init` from the user's additions to it.
pub const INIT_ADDITION: &str = "\n\nBesides: ";

/// Start of the prompt of `/review` without a target.
pub const REVIEW_PROMPT_START: &str =
    "Review the uncommitted changes of this repository: `git status --short`, `git diff HEAD`";
/// Follows the target, a branch or commit, in the prompt of `/review`.
pub const REVIEW_TARGET_END: &str =
    ". If that is a branch or a commit, look at what it adds: `git diff $(git merge-base HEAD";

/// Returns the command that sent a prompt of Windlass, with its arguments. Front ends show it in
/// place of the prompt.
pub fn command_of_prompt(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix(INIT_PROMPT_START) {
        let (_, addition) = rest.split_once(INIT_ADDITION).unwrap_or_default();
        return Some(format!("/init {addition}").trim_end().to_owned());
    }
    if text.starts_with(REVIEW_PROMPT_START) {
        return Some("/review".to_owned());
    }
    let (target, _) = text.strip_prefix("Review ")?.split_once(REVIEW_TARGET_END)?;
    Some(format!("/review {target}"))
}

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
