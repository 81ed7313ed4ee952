//! Agents as the engine knows them: a name, what the model is told, and bounds.

use crate::host::{Asked, Settings};
use crate::session::Limits;
use std::sync::Arc;
use windlass_protocol::event::BUILD;
use windlass_toolkit::{AgentCard, Bounds, Runtime};

/// Tools that a session begun by a call works without, unless its agent names them.
const WITHOUT: &[&str] = &["task", "todowrite", "todoread"];

/// An agent.
#[derive(Clone)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// When to use it, for the model that may put it to work.
    pub description: String,
    /// Who may have it work.
    pub role: Role,
    /// What its model is told besides what every model is told.
    pub prompt: Arc<str>,
    /// What it may do of what whoever puts it to work may do.
    pub bounds: Bounds,
    /// Its own model and that model's name, if it has one.
    pub model: Option<(Asked, Arc<str>)>,
}

/// Who may have an agent work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A person.
    Primary,
    /// A call.
    Subagent,
    /// Both.
    #[default]
    All,
}

impl Role {
    /// True if a call may.
    pub fn is_sub(self) -> bool {
        match self {
            Role::Subagent | Role::All => true,
            Role::Primary => false,
        }
    }

    /// True if a person may.
    pub fn is_primary(self) -> bool {
        match self {
            Role::Primary | Role::All => true,
            Role::Subagent => false,
        }
    }
}

/// Whether a call began the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    ByPerson,
    ByCall,
}

impl Settings {
    /// The agent of this name.
    pub(crate) fn worker(&self, name: &str) -> Option<&Arc<Worker>> {
        self.agents.iter().find(|worker| worker.name == name)
    }

    /// The agents that a call can have at work.
    pub(crate) fn cards(&self) -> Vec<AgentCard> {
        let called = self.agents.iter().filter(|worker| worker.role.is_sub());
        let card = |worker: &Arc<Worker>| AgentCard {
            name: worker.name.clone(),
            description: worker.description.clone(),
        };
        called.map(card).collect()
    }

    /// The settings of a session in which this agent works.
    pub(crate) fn suited(&self, worker: &Worker, limits: Limits) -> Settings {
        let mut suited = Settings { limits, ..self.clone() };
        if !worker.prompt.is_empty() {
            suited.system = format!("{}\n{}", self.system, worker.prompt).into();
        }
        if let Some((asked, name)) = &worker.model {
            (suited.model, suited.model_name) = (Some(asked.clone()), Arc::clone(name));
        }
        suited
    }
}

/// What a session in which this agent works may do: never more than `runtime`. One that a call began
/// is never laxer than whoever made the call is now, whatever becomes of its mode.
pub(crate) fn narrowed(runtime: &Arc<Runtime>, worker: &Worker, begun: Begun) -> Arc<Runtime> {
    match begun {
        Begun::ByPerson => Arc::new(runtime.narrowed(&worker.bounds, &[])),
        Begun::ByCall => {
            let mut narrowed = runtime.narrowed(&worker.bounds, WITHOUT);
            narrowed.policy = narrowed.policy.at_most(runtime.policy.mode());
            Arc::new(narrowed)
        }
    }
}

/// The agent that works where nobody was chosen, where none is known by that name.
pub(crate) fn usual() -> Arc<Worker> {
    Arc::new(Worker {
        name: BUILD.to_owned(),
        description: String::new(),
        role: Role::Primary,
        prompt: "".into(),
        bounds: Bounds::default(),
        model: None,
    })
}
