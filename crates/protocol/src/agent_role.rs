//! The role of an agent: who may start it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The role of an agent: started by the user, by other agents, or by both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
    /// The user starts the agent.
    Primary,
    /// Another agent starts the agent.
    Subagent,
    /// The user or another agent starts the agent.
    #[default]
    All,
}

impl AgentRole {
    /// Returns the name used in agent files and configs.
    pub fn name(self) -> &'static str {
        match self {
            AgentRole::Primary => "primary",
            AgentRole::Subagent => "subagent",
            AgentRole::All => "all",
        }
    }

    /// Returns true if a `task` call may start the agent.
    pub fn is_subagent(self) -> bool {
        match self {
            AgentRole::Subagent | AgentRole::All => true,
            AgentRole::Primary => false,
        }
    }

    /// Returns true if the user may start the agent.
    pub fn is_primary(self) -> bool {
        match self {
            AgentRole::Primary | AgentRole::All => true,
            AgentRole::Subagent => false,
        }
    }
}
