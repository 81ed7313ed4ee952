//! Context changes: what a message to the model changed in its knowledge, as data.

use crate::permission_mode::PermissionMode;
use crate::todo_item::TodoItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of the model's knowledge that a `ContextChanged` message replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ContextChange {
    /// Information that nothing else depends on.
    #[default]
    Note,
    /// The mode of the session.
    Mode {
        /// The mode that was reported to the model.
        mode: PermissionMode,
    },
    /// The goal of the turn, or the calls that a custom command allows in it.
    TurnConditions,
    /// The turn continues, because a hook or its goal requires it.
    TurnContinued,
    /// The environment or the instructions of the system prompt.
    Prompt {
        /// The parts that the message states.
        state: SystemPromptState,
    },
    /// The to-do list.
    Todos {
        /// The list that was reported to the model.
        items: Vec<TodoItem>,
    },
    /// A background job ended.
    JobEnded {
        /// Number of the job.
        job: u64,
    },
}

impl ContextChange {
    pub(crate) fn is_note(&self) -> bool {
        *self == ContextChange::Note
    }
}

/// The environment and the instructions that were reported to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemPromptState {
    /// Lines of the environment, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// SHA-256 digests of the instructions, by path; empty for instructions that no longer apply.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub instructions: BTreeMap<String, String>,
}

impl SystemPromptState {
    /// Applies the parts that a later message states.
    pub fn apply(&mut self, stated: &SystemPromptState) {
        let SystemPromptState { environment, instructions } = stated.clone();
        self.environment.extend(environment);
        self.instructions.extend(instructions);
    }

    /// Returns true if the prompt had neither an environment nor instructions.
    pub fn is_empty(&self) -> bool {
        self.environment.is_empty() && self.instructions.is_empty()
    }
}
