//! Agent definitions of the engine: name, prompt, restrictions and model, and how an `AgentDefinition`
//! applies to a session.

use crate::model_handle::NamedModel;
use std::sync::Arc;
use windlass_protocol::{AgentRole, DEFAULT_AGENT, ModelOptions};
use windlass_toolkit::{AgentRestrictions, ToolRuntime};

/// An agent: its prompt, role, restrictions and optional own model.
#[derive(Clone)]
pub struct AgentDefinition {
    /// Name that users and `task` calls select the agent by.
    pub name: String,
    /// Tells the calling model when to use this agent.
    pub description: String,
    /// Says if the user, a `task` call or both may start the agent.
    pub role: AgentRole,
    /// Text added to `EngineSettings::system_prompt`, which every model gets.
    pub prompt: Arc<str>,
    /// True if `prompt` takes the place of the instructions in `EngineSettings::system_prompt`.
    pub replaces_prompt: bool,
    /// The most requests of a turn, if the agent has a limit of its own.
    pub max_steps: Option<u32>,
    /// Restrictions that an agent adds to those of the session that starts it.
    pub restrictions: AgentRestrictions,
    /// The agent's own model and its `provider/model` name, if configured.
    pub model: Option<NamedModel>,
    /// Models that take over for the rest of a turn if `model` fails.
    pub fallback_models: Vec<NamedModel>,
    /// Options that override those of the model, whichever it is.
    pub options: ModelOptions,
}

/// The origin of a session: the user, or a tool call that runs a subagent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionOrigin {
    User,
    Call,
}

/// Returns the `ToolRuntime` of a session that runs this agent. With `SessionOrigin::Call` it is
/// never more permissive than `runtime`, and the mode is also capped at the caller's current mode,
/// even if the session changes its mode later. `excluded_tools` are kept from subagents.
pub(crate) fn restrict(
    runtime: &Arc<ToolRuntime>,
    agent: &AgentDefinition,
    started_by: SessionOrigin,
    excluded_tools: &[String],
) -> Arc<ToolRuntime> {
    match started_by {
        SessionOrigin::User => Arc::new(runtime.restricted_to(&agent.restrictions)),
        SessionOrigin::Call => {
            let mut restricted =
                runtime.restricted_to_subagent(&agent.restrictions, excluded_tools);
            restricted.policy = restricted.policy.with_max_mode(runtime.policy.mode());
            Arc::new(restricted)
        }
    }
}

/// Returns the built-in `DEFAULT_AGENT`: used when none is selected and the configuration defines
/// none by that name.
pub(crate) fn default_agent() -> Arc<AgentDefinition> {
    Arc::new(AgentDefinition {
        name: DEFAULT_AGENT.to_owned(),
        description: String::new(),
        role: AgentRole::Primary,
        prompt: "".into(),
        replaces_prompt: false,
        max_steps: None,
        restrictions: AgentRestrictions::default(),
        model: None,
        fallback_models: Vec::new(),
        options: ModelOptions::default(),
    })
}
