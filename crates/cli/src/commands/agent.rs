//! Builds engine agents from the agent configs, and implements `windlass agent`.

use crate::CliExit;
use crate::commands::model_selection::to_model_options;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use serde_json::json;
use std::sync::Arc;
use windlass_engine::{AgentDefinition, NamedModel};
use windlass_permission::PermissionRules;
use windlass_project::{
    AgentConfig, AgentConfigs, AgentPromptMode, ConfigFlags, ConfigLayer, ConfigOrigin, ModelOption,
};
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::{AgentRole, ModelOptions};
use windlass_toolkit::AgentRestrictions;

impl LoadedProject {
    /// Prints a note about each rule of an agent that has no effect.
    pub(crate) fn note_dead_agent_rules(&self, agents: &AgentConfigs) -> anyhow::Result<()> {
        for agent in agents.all.iter().filter(|agent| agent.origin.is_some()) {
            let origin = describe_origin(agent.origin.as_ref());
            for rules in agent_rules(agent)? {
                for rule in self.dead_agent_rules(&rules) {
                    let note = format!("note: {origin}: agent {}: {rule}", agent.name);
                    output::print_note(&to_one_line(&note));
                }
            }
        }
        Ok(())
    }

    /// Converts the `AgentConfig`s to engine agents. An agent gets a model of its own only if the
    /// engine has one (`model`).
    pub(crate) fn build_agents(
        &self,
        configs: &AgentConfigs,
        answers_prompts: bool,
        chosen_agent: Option<&str>,
        variant: Option<&str>,
    ) -> anyhow::Result<Arc<[Arc<AgentDefinition>]>> {
        // A model given on the command line also applies to the agent given there.
        let is_flag =
            self.config.model.as_ref().is_some_and(|(_, origin)| origin.layer == ConfigLayer::Flag);
        let fixed_agent = chosen_agent.filter(|_| is_flag);
        let mut agents = Vec::new();
        for config in &configs.all {
            let may_have_model = answers_prompts && fixed_agent != Some(config.name.as_str());
            let own_model = may_have_model.then(|| self.agent_model(config)).flatten();
            let fallbacks = config.origin.as_ref().filter(|_| own_model.is_some());
            let fallback_models = fallbacks.map(|origin| {
                let names = config.fallback_models.iter();
                names.filter_map(|name| self.optional_model(name, origin)).collect()
            });
            let fallback_models = fallback_models.unwrap_or_default();
            agents.push(Arc::new(AgentDefinition {
                name: config.name.clone(),
                description: config.description.clone(),
                role: config.role,
                prompt: config.prompt.as_str().into(),
                replaces_prompt: config.prompt_mode == AgentPromptMode::Replace,
                max_steps: config.max_steps,
                restrictions: agent_restrictions(config)?,
                model: own_model,
                fallback_models,
                options: self.agent_options(config, variant),
            }));
        }
        Ok(agents.into())
    }

    /// Returns an agent's own model, if it has one or names a variant. If the model is unavailable,
    /// prints a note; the agent then uses the default model.
    fn agent_model(&self, config: &AgentConfig) -> Option<NamedModel> {
        let default_model = self.config.model.as_ref().map(|(name, origin)| (name, origin));
        let own = config.model.as_ref().zip(config.origin.as_ref());
        let (name, origin) = own.or(default_model.filter(|_| config.variant.is_some()))?;
        let chosen = self.choose_named_model(name, origin, config.variant.as_deref());
        match chosen.and_then(|choice| choice.into_client()) {
            Ok(model) => Some((model, Arc::from(name.as_str()))),
            Err(error) => {
                let default_name = default_model.map(|(name, _)| name.as_str());
                let (agent, reason) = (&config.name, crate::error_chain(&error));
                output::print_note(&format!(
                    "note: agent {agent} uses {} instead: {reason}",
                    default_name.unwrap_or_default()
                ));
                None
            }
        }
    }

    /// Returns the options that an agent sets, from the config and from its own definition, without
    /// those that the variant of its model sets, which are stronger. `variant` is the one of the
    /// command line.
    fn agent_options(&self, config: &AgentConfig, variant: Option<&str>) -> ModelOptions {
        let mut options = self.config.agent_options(&config.name);
        options.extend(own_options(config));
        let default_model = self.config.model.as_ref().map(|(name, _)| name);
        let (name, variant) = match &config.model {
            Some(own) => (Some(own), config.variant.as_deref()),
            None => (default_model, variant.or(config.variant.as_deref())),
        };
        let model = name.and_then(|name| name.split_once('/'));
        if let (Some((provider, model)), Some(variant)) = (model, variant) {
            let provider = crate::commands::auth::canonical_name(provider);
            let set = self.config.variant_options(provider, model, variant);
            options.retain(|option| !set.iter().any(|stronger| stronger.name == option.name));
        }
        to_model_options(&options).unwrap_or_else(|error| {
            let (agent, reason) = (&config.name, crate::error_chain(&error));
            output::print_note(&format!(
                "note: the options of agent {agent} are ignored: {reason}"
            ));
            ModelOptions::default()
        })
    }
}

/// Removes the agents whose rules are invalid, and prints a note about each agent that cannot be
/// used.
pub(crate) fn with_valid_rules(mut agents: AgentConfigs) -> AgentConfigs {
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
    agents
}

/// Returns the options in an agent's own definition; the last of a name counts.
fn own_options(config: &AgentConfig) -> Vec<ModelOption> {
    let Some(origin) = &config.origin else { return Vec::new() };
    let to_option = |name: String, value: &serde_json::Value| ModelOption {
        name,
        value: value.clone(),
        origin: origin.clone(),
    };
    let mut options = Vec::new();
    for (name, value) in &config.options {
        match value.as_object().filter(|_| name == "extra") {
            Some(extra) => options.extend(
                extra.iter().map(|(name, value)| to_option(format!("extra.{name}"), value)),
            ),
            None => options.push(to_option(name.clone(), value)),
        }
    }
    let temperature = config.temperature.map(serde_json::Value::from);
    options.extend(temperature.map(|value| to_option("temperature".to_owned(), &value)));
    options
}

/// Returns the restrictions of an agent. Its rules open something only if it is the user's own.
pub(crate) fn agent_restrictions(
    config: &AgentConfig,
) -> Result<AgentRestrictions, windlass_permission::RuleError> {
    Ok(AgentRestrictions {
        rules: agent_rules(config)?,
        are_user_rules: config.is_user_agent(),
        tools: config.tools.clone(),
        max_mode: config.max_mode,
    })
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
pub(crate) async fn list_agents(as_json: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let agents = with_valid_rules(setup.load_agent_configs().await?);
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
