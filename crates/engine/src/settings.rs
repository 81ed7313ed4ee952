//! The settings of an engine, and what a session derives from them: its `SessionConfig`, its
//! `StepContext` and the settings for its agent.

use crate::agent_definitions::{self, AgentDefinition};
use crate::attendance::UnattendedPolicy;
use crate::model_handle::{ModelHandle, NamedModel};
use crate::session::{CallDescriber, LoopDetectionRules, SessionConfig, SessionModel, TurnLimits};
use crate::system_prompt::{RenderedSystemPrompt, SystemPromptValues};
use crate::turn_budget::SharedQuota;
use std::pin::Pin;
use std::sync::Arc;
use windlass_protocol::event::DEFAULT_AGENT;
use windlass_protocol::{
    Fault, HookPoint, LogSeq, ModelChoice, ModelOptions, ProjectApproval, SessionId,
};
use windlass_toolkit::{
    AgentSummary, PathInstructions, SkillDefinition, StepContext, ToolRuntime, UserPresence,
};

/// Settings that all sessions of an engine share, apart from the workspace.
#[derive(Clone)]
pub struct EngineSettings {
    /// The model that sessions use, if one is configured.
    pub model: Option<ModelHandle>,
    /// Model name as recorded in the log, `provider/model`.
    pub model_name: Arc<str>,
    /// Models that take over for the rest of a turn if the ones before them fail.
    pub fallback_models: Vec<NamedModel>,
    /// Models that prompts have named for their turns.
    pub(crate) prompt_models: Vec<NamedModel>,
    /// Finds the models that a user or a prompt names.
    pub model_resolver: ModelResolver,
    /// Model for titles, summaries and judgements; `model` if there is none, or if it fails.
    pub small_model: Option<NamedModel>,
    /// System prompt of new sessions.
    pub system_prompt: RenderedSystemPrompt,
    /// Limits of a turn.
    pub limits: TurnLimits,
    /// Reactions to a model that repeats the same calls: allow, ask or deny.
    pub loop_rules: LoopDetectionRules,
    /// The user trusts the project, so the project's own instructions apply.
    pub project_trusted: bool,
    /// Tells if a user can be asked during the sessions.
    pub user: UserPresence,
    /// Treatment of questions while no user watches a session.
    pub unattended: UnattendedPolicy,
    /// Available skills, sorted by name.
    pub skills: Arc<[SkillDefinition]>,
    /// Rules of the project that apply to some files.
    pub path_rules: Arc<[PathInstructions]>,
    /// Called to save each `ProjectApproval` that the user gave for the whole project.
    pub save_approvals: SaveApprovals,
    /// Agents that a session can run.
    pub agents: Arc<[Arc<AgentDefinition>]>,
    /// Tools by name, or by prefix and `*`, that subagents do not have.
    pub subagent_excluded_tools: Arc<[String]>,
    /// Name of the agent that runs in a new session.
    pub default_agent: String,
    /// Options of the agent, which override those of the model, whichever it is.
    pub(crate) agent_options: ModelOptions,
    /// The system prompt without that of an agent; `None` before `for_agent`.
    pub(crate) agent_base_prompt: Option<RenderedSystemPrompt>,
    /// Name of the agent that these settings are for; empty before `for_agent`.
    pub(crate) agent_name: String,
    /// Limits that sessions share with those of other engines.
    pub shared_quota: Option<Arc<dyn SharedQuota>>,
    /// Called when a session has ended, before its claim is released.
    pub before_release: Option<BeforeRelease>,
    /// The folder that contains the checkouts of the project, whose sessions are listed with its own.
    pub checkouts_folder: Option<String>,
    /// Asks the model for a title after the first turn completes. For front ends that stay open and
    /// list sessions; subagent sessions never get a generated title.
    pub titles: TitleGeneration,
}

/// Saves what the next claim of a session needs besides its log, which ends at this position.
pub type BeforeRelease =
    Arc<dyn Fn(SessionId, LogSeq) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The sessions whose model is asked for a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TitleGeneration {
    /// None.
    Off,
    /// Those with a model of a provider, not of this machine.
    HostedModels,
    /// All.
    On,
}

/// Callback that returns a model by its name, `provider/model`, with a reasoning effort or variant.
pub type ModelResolver =
    Arc<dyn Fn(&str, Option<&str>) -> Result<ModelHandle, Fault> + Send + Sync>;

/// Callback that saves an `ProjectApproval` for the project.
pub type SaveApprovals = Arc<dyn Fn(&[ProjectApproval]) + Send + Sync>;

impl EngineSettings {
    /// Returns default settings, with a `SystemPromptValues` that contains only the workspace folder.
    pub fn new(workspace: &str, model: Option<ModelHandle>, model_name: &str) -> EngineSettings {
        let system_prompt =
            SystemPromptValues { folder: workspace.to_owned(), ..SystemPromptValues::default() };
        EngineSettings {
            model,
            model_name: model_name.into(),
            fallback_models: Vec::new(),
            prompt_models: Vec::new(),
            model_resolver: Arc::new(|name: &str, _: Option<&str>| {
                Err(Fault::Config { message: format!("the model {name} is not available") })
            }),
            small_model: None,
            system_prompt: system_prompt.render(),
            limits: TurnLimits::default(),
            loop_rules: LoopDetectionRules::default(),
            project_trusted: false,
            user: UserPresence::default(),
            unattended: UnattendedPolicy::Wait,
            skills: Arc::default(),
            path_rules: Arc::default(),
            save_approvals: Arc::new(|_: &[ProjectApproval]| {}),
            agents: Arc::new([]),
            subagent_excluded_tools: Arc::default(),
            default_agent: DEFAULT_AGENT.to_owned(),
            agent_options: ModelOptions::default(),
            agent_base_prompt: None,
            agent_name: String::new(),
            shared_quota: None,
            before_release: None,
            checkouts_folder: None,
            titles: TitleGeneration::Off,
        }
    }
}

impl EngineSettings {
    pub(crate) fn session_config(&self, runtime: &ToolRuntime) -> SessionConfig {
        let to_session_model = |(handle, name): &NamedModel| handle.session_model(name);
        let model = self.model.as_ref().map(|handle| handle.session_model(&self.model_name));
        let SessionModel { window, price, .. } = model.unwrap_or_default();
        SessionConfig {
            model: self.model_name.to_string(),
            context_window: window,
            price,
            fallback_models: self.fallback_models.iter().map(to_session_model).collect(),
            prompt_models: self.prompt_models.iter().map(to_session_model).collect(),
            small_model: self.small_model.as_ref().map(to_session_model),
            limits: self.limits,
            loop_rules: self.loop_rules.clone(),
            system_prompt: self.system_prompt.clone(),
            call_describer: CallDescriber::new(runtime),
            has_turn_end_hooks: [HookPoint::TurnEnd, HookPoint::SubagentEnd]
                .iter()
                .any(|point| runtime.hooks.iter().any(|hook| hook.applies_to(*point, None))),
        }
    }

    /// Returns the settings with another model for the same and later turns. The fallbacks belong
    /// to the model before it.
    pub(crate) fn with_model(&self, model: ModelHandle, name: Arc<str>) -> EngineSettings {
        let mut settings = self.clone();
        if settings.model_name != name {
            settings.fallback_models.clear();
        }
        (settings.model, settings.model_name) = (Some(model), name);
        settings
    }

    /// Returns the settings with the model that the user chose for the session. If it is not
    /// available, the session has no model, and its next request says why: another provider must
    /// not get the conversation unasked.
    pub(crate) fn with_model_choice(&self, choice: Option<&ModelChoice>) -> EngineSettings {
        let Some(ModelChoice { model, effort, .. }) = choice else { return self.clone() };
        let name: Arc<str> = model.as_str().into();
        match (self.model_resolver)(model, effort.as_deref()) {
            Ok(handle) => self.with_model(handle, name),
            Err(_) => EngineSettings {
                model: None,
                model_name: name,
                fallback_models: Vec::new(),
                ..self.clone()
            },
        }
    }

    /// Returns the settings with the models that another resolver finds under the same names. One
    /// that it does not find stays as it is.
    pub(crate) fn with_resolver(
        &self,
        resolver: &ModelResolver,
        choice: Option<&ModelChoice>,
    ) -> EngineSettings {
        let effort = choice.filter(|choice| *choice.model == *self.model_name);
        let effort = effort.and_then(|choice| choice.effort.as_deref());
        let again = |(handle, name): &NamedModel| {
            (resolver(name, None).unwrap_or_else(|_| handle.clone()), Arc::clone(name))
        };
        EngineSettings {
            model: resolver(&self.model_name, effort).ok().or_else(|| self.model.clone()),
            prompt_models: self.prompt_models.iter().map(again).collect(),
            model_resolver: Arc::clone(resolver),
            ..self.clone()
        }
    }

    /// Returns the reason why there is no model.
    pub(crate) fn missing_model_fault(&self) -> Fault {
        match &*self.model_name {
            "" => Fault::Config { message: "no model is set".to_owned() },
            name => match (self.model_resolver)(name, None) {
                Err(fault) => fault,
                // It became available after the session was opened.
                Ok(_) => Fault::Config { message: format!("choose the model {name} again") },
            },
        }
    }

    /// Returns the settings with a further model that a prompt can name.
    pub(crate) fn with_prompt_model(&self, model: NamedModel) -> EngineSettings {
        let mut settings = self.clone();
        settings.prompt_models.retain(|(_, name)| *name != model.1);
        settings.prompt_models.push(model);
        settings
    }

    /// Returns the settings of a step that this model answers. The options of the agent are about
    /// answers, so the small model does not get them.
    pub(crate) fn for_step_model(self: &Arc<Self>, name: &str) -> Arc<EngineSettings> {
        if &*self.model_name == name {
            return Arc::clone(self);
        }
        let find = |models: &[NamedModel]| models.iter().find(|it| &*it.1 == name).cloned();
        let answering = find(&self.fallback_models).or_else(|| find(&self.prompt_models));
        let agent_options = match answering {
            Some(_) => self.agent_options.clone(),
            None => ModelOptions::default(),
        };
        match answering.or_else(|| find(self.small_model.as_slice())) {
            Some((model, model_name)) => Arc::new(EngineSettings {
                model: Some(model),
                model_name,
                agent_options,
                ..(**self).clone()
            }),
            None => Arc::clone(self),
        }
    }

    /// Returns the models for a request apart from the conversation: the small one first.
    pub(crate) fn side_models(&self) -> Vec<NamedModel> {
        let own = self.model.clone().map(|model| (model, Arc::clone(&self.model_name)));
        let small = self.small_model.clone().filter(|(_, name)| *name != self.model_name);
        small.into_iter().chain(own).collect()
    }

    pub(crate) fn step_context(&self) -> StepContext {
        StepContext {
            model: self.model_name.to_string(),
            supports_pdfs: self.model.as_ref().is_none_or(|handle| handle.model.pdfs),
            trusted: self.project_trusted,
            user: self.user,
            skills: Arc::clone(&self.skills),
            path_rules: Arc::clone(&self.path_rules),
            agent: self.agent_name.clone(),
            agents: self.subagent_summaries(),
            ..StepContext::default()
        }
    }

    /// Returns the agent of this name; `DEFAULT_AGENT` exists even if none is configured.
    pub(crate) fn find_agent(&self, name: &str) -> Result<Arc<AgentDefinition>, Fault> {
        let built_in =
            || (name == DEFAULT_AGENT || name.is_empty()).then(agent_definitions::default_agent);
        self.agent(name).cloned().or_else(built_in).ok_or_else(|| {
            let known: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
            let message = format!("unknown agent `{name}`; available: {}", known.join(", "));
            Fault::Config { message }
        })
    }

    pub(crate) fn agent(&self, name: &str) -> Option<&Arc<AgentDefinition>> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Lists the agents that a `task` call may start.
    pub(crate) fn subagent_summaries(&self) -> Vec<AgentSummary> {
        let subagents = self.agents.iter().filter(|agent| agent.role.is_subagent());
        let summary = |agent: &Arc<AgentDefinition>| AgentSummary {
            name: agent.name.clone(),
            description: agent.description.clone(),
        };
        subagents.map(summary).collect()
    }

    /// Returns the settings of a session that runs this agent: its prompt appended, its model if it
    /// has one, and `limits`.
    pub(crate) fn for_agent(&self, agent: &AgentDefinition, limits: TurnLimits) -> EngineSettings {
        let agent_name = agent.name.clone();
        let steps = agent.max_steps.map_or(limits.steps, |steps| limits.steps.min(steps));
        let limits = TurnLimits { steps, ..limits };
        let mut settings = EngineSettings { limits, agent_name, ..self.clone() };
        // A subagent gets the prompt of its own agent, not that of the agent that starts it.
        let base = self.agent_base_prompt.as_ref().unwrap_or(&self.system_prompt);
        settings.system_prompt = match (agent.prompt.is_empty(), agent.replaces_prompt) {
            (true, _) => base.clone(),
            (false, true) => base.with_instructions(&agent.prompt),
            (false, false) => base.with_appended(&agent.prompt),
        };
        settings.system_prompt.add_agent(&agent.name, &agent.prompt);
        settings.agent_base_prompt = Some(base.clone());
        if let Some((model, name)) = &agent.model {
            (settings.model, settings.model_name) = (Some(model.clone()), Arc::clone(name));
            settings.fallback_models.clone_from(&agent.fallback_models);
        }
        settings.agent_options = agent.options.clone();
        settings
    }
}
