//! Builds engine agents from the agent configs, and implements `windlass agent`.

use crate::CliExit;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use serde_json::json;
use std::sync::Arc;
use windlass_engine::{AgentDefinition, ModelHandle};
use windlass_permission::PermissionRules;
use windlass_project::{AgentConfig, AgentConfigs, ConfigFlags, ConfigLayer, ConfigOrigin};
use windlass_protocol::AgentRole;
use windlass_toolkit::AgentRestrictions;

impl LoadedProject {
    /// Loads the [`AgentConfigs`], and prints a note about each agent that cannot be used.
    pub(crate) fn load_agents(&self) -> anyhow::Result<AgentConfigs> {
        let mut agents = AgentConfigs::load(&self.dirs, &self.config)?;
        for diagnostic in &agents.diagnostics {
            output::print_note(&format!("note: {diagnostic}"));
        }
        agents.all.retain(|agent| match agent_rules(agent) {
            Ok(_) => true,
            Err(error) => {
                let origin = describe_origin(agent.origin.as_ref());
                output::print_note(&format!(
                    "note: {origin}: permission: {error}; the agent is skipped"
                ));
                false
            }
        });
        Ok(agents)
    }

    /// Converts the `AgentConfig`s to engine agents. An agent gets a model of its own only if the
    /// engine has one (`model`).
    pub(crate) fn build_agents(
        &self,
        configs: &AgentConfigs,
        model: Option<&ModelHandle>,
        chosen_agent: Option<&str>,
    ) -> anyhow::Result<Arc<[Arc<AgentDefinition>]>> {
        // A model given on the command line also applies to the agent given there.
        let is_flag =
            self.config.model.as_ref().is_some_and(|(_, origin)| origin.layer == ConfigLayer::Flag);
        let fixed_agent = chosen_agent.filter(|_| is_flag);
        let mut agents = Vec::new();
        for config in &configs.all {
            agents.push(Arc::new(AgentDefinition {
                name: config.name.clone(),
                description: config.description.clone(),
                role: config.role,
                prompt: config.prompt.as_str().into(),
                restrictions: AgentRestrictions {
                    rules: agent_rules(config)?,
                    tools: config.tools.clone(),
                    max_mode: config.max_mode,
                },
                model: model
                    .filter(|_| fixed_agent != Some(config.name.as_str()))
                    .and_then(|model| self.agent_model(config, model)),
            }));
        }
        Ok(agents.into())
    }

    /// Returns an agent's own model, if it has one or sets a temperature. If the model is
    /// unavailable, prints a note; the agent then uses the default model.
    fn agent_model(
        &self,
        config: &AgentConfig,
        default_model: &ModelHandle,
    ) -> Option<(ModelHandle, Arc<str>)> {
        let default_name =
            self.config.model.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
        let mut own_model = None;
        if let (Some(name), Some(origin)) = (&config.model, &config.origin) {
            let chosen = self.choose_named_model(name, origin, None);
            match chosen.and_then(|choice| choice.into_client(None)) {
                Ok(model) => own_model = Some((model, Arc::from(name.as_str()))),
                Err(error) => {
                    let (agent, reason) = (&config.name, crate::error_chain(&error));
                    output::print_note(&format!(
                        "note: agent {agent} uses {default_name} instead: {reason}"
                    ));
                }
            }
        }
        if let Some(temperature) = config.temperature {
            let (model, name) =
                own_model.unwrap_or_else(|| (default_model.clone(), default_name.into()));
            let mut options = (*model.options).clone();
            options.temperature = Some(temperature);
            return Some((ModelHandle { options: Arc::new(options), ..model }, name));
        }
        own_model
    }
}

fn agent_rules(
    config: &AgentConfig,
) -> Result<Vec<PermissionRules>, windlass_permission::RuleError> {
    config.permissions.iter().map(PermissionRules::parse).collect()
}

fn describe_origin(origin: Option<&ConfigOrigin>) -> String {
    origin.map_or_else(|| "built-in".to_owned(), ToString::to_string)
}

/// Checks that the agent `name` exists and that the user can work with it directly.
pub(crate) fn choose_agent(agents: &AgentConfigs, name: &str) -> anyhow::Result<String> {
    let is_selectable = |agent: &&AgentConfig| agent.role != AgentRole::Subagent;
    match agents.find(name) {
        Some(agent) if is_selectable(&agent) => Ok(name.to_owned()),
        Some(_) => {
            bail!(
                "{name} is available only as a subagent. To use it directly, set `mode: all` in \
                 its file"
            )
        }
        None => {
            let names = agents.all.iter().filter(is_selectable).map(|agent| agent.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            bail!("unknown agent `{name}`; available: {names}")
        }
    }
}

/// Runs `windlass agent list`.
pub(crate) fn list_agents(as_json: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let agents = setup.load_agents()?;
    if as_json {
        let row = |agent: &AgentConfig| {
            json!({
                "name": agent.name,
                "description": agent.description,
                "mode": agent.role.name(),
                "model": agent.model,
                "from": describe_origin(agent.origin.as_ref()),
            })
        };
        let rows: Vec<_> = agents.all.iter().map(row).collect();
        output::print_json(&serde_json::to_string_pretty(&rows)?);
        return Ok(CliExit::Done);
    }
    for agent in &agents.all {
        let AgentConfig { name, description, role, .. } = agent;
        let origin = describe_origin(agent.origin.as_ref());
        output::print_line(&format!("{name:<12}  {:<8}  {description}  ({origin})", role.name()));
    }
    Ok(CliExit::Done)
}
