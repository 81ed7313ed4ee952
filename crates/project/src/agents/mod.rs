//! Agent definitions: built in, or from Markdown files and config entries of the user, of plugins
//! and of a trusted project.
//!
//! A file is `NAME.md`: settings in its front matter, and the system prompt below. A config has the
//! same settings under the agent's name. Only the rules of the user's own agents can allow what
//! would be asked about. A project's file with the name of another agent only adds restrictions to that agent.

mod definition;

pub use definition::{AgentConfig, AgentPromptMode};
pub(crate) use definition::{check_agent_file, check_plugin_agent};

use crate::config::file_parser::{self, ConfigDiagnostic, ConfigLayer, ConfigOrigin};
use crate::config::{AgentConfigEntry, Config};
use crate::custom_tools::ScriptConfig;
use crate::front_matter::{self, FrontMatter};
use crate::plugins::PluginAgent;
use crate::{Dirs, ProjectError};
use definition::{
    MAX_AGENT_BYTES, ParsedAgent, is_user_layer, parse_named_agent, unknown_key_message,
};
use serde_json::Map;
use std::path::{Path, PathBuf};
use windlass_protocol::event::DEFAULT_AGENT;
use windlass_protocol::{AgentRole, PermissionMode};

const MAX_AGENTS_PER_FOLDER: usize = 100;
/// The folder of agents, in the config folder and in `.windlass`.
const AGENTS_FOLDER: &str = "agents";

/// A built-in agent: name, description, role, least restrictive mode, prompt.
type BuiltInAgent = (&'static str, &'static str, AgentRole, Option<PermissionMode>, &'static str);
const BUILT_IN_AGENTS: &[BuiltInAgent] = &[
    (DEFAULT_AGENT, "Works on the project with all tools.", AgentRole::Primary, None, ""),
    (
        "plan",
        "Explores the project and writes a plan; changes nothing.",
        AgentRole::Primary,
        Some(PermissionMode::Plan),
        include_str!("plan.md"),
    ),
    (
        "general",
        "Does a task of several steps as a whole, with all tools: changes, tests, research.",
        AgentRole::Subagent,
        None,
        include_str!("general.md"),
    ),
    (
        "explore",
        "Searches and reads the project to answer a question; changes nothing. Say how thorough to be.",
        AgentRole::Subagent,
        Some(PermissionMode::Plan),
        include_str!("explore.md"),
    ),
];

/// Tools that an agent which changes nothing is not offered.
const EDIT_TOOLS: [&str; 3] = ["edit", "write", "apply_patch"];

fn without_edit_tools() -> Vec<(String, bool)> {
    EDIT_TOOLS.iter().map(|tool| ((*tool).to_owned(), false)).collect()
}

/// All usable agents, and diagnostics about the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentConfigs {
    /// Sorted by name, with `DEFAULT_AGENT` first.
    pub all: Vec<AgentConfig>,
    pub diagnostics: Vec<ConfigDiagnostic>,
}

impl AgentConfigs {
    /// Loads `BUILT_IN_AGENTS`, those of the user and of plugins and, if the folder is trusted,
    /// those of the project.
    pub fn load(dirs: &Dirs, config: &Config) -> Result<AgentConfigs, ProjectError> {
        let user_files =
            file_parser::read_documents(&dirs.config.join(AGENTS_FOLDER), MAX_AGENTS_PER_FOLDER)?
                .into_iter();
        let mut files: Vec<_> =
            user_files.map(|(path, text)| (ConfigLayer::User, path, text)).collect();
        let folder = format!(".windlass/{AGENTS_FOLDER}/");
        files.extend(
            config.documents(&folder).map(|(path, text)| (ConfigLayer::Project, path, text)),
        );
        let config_entries =
            [ConfigLayer::User, ConfigLayer::Project].map(|layer| config.agent_entries(layer));
        let plugins = config.plugins.iter().flat_map(|plugin| &plugin.components.agents);
        Ok(AgentConfigs::merge(config_entries.into_iter().flatten(), files, plugins))
    }

    /// Returns `ConfigDiagnostic`s for the agents of a config alone.
    pub(crate) fn config_diagnostics(config: &Config, layer: ConfigLayer) -> Vec<ConfigDiagnostic> {
        AgentConfigs::merge(config.agent_entries(layer), Vec::new(), []).diagnostics
    }

    /// Returns the agent of this name.
    pub fn find(&self, name: &str) -> Option<&AgentConfig> {
        self.all.iter().find(|agent| agent.name == name)
    }

    /// Adds the agents of scripts, which never replace another agent.
    pub fn add_script_configs(&mut self, configs: &[ScriptConfig]) {
        let agents = configs.iter().flat_map(|config| &config.agents);
        agents.for_each(|agent| self.add_plugin_agent(agent));
        self.sort();
    }

    fn sort(&mut self) {
        self.all.sort_by(|a, b| {
            (a.name != DEFAULT_AGENT, &a.name).cmp(&(b.name != DEFAULT_AGENT, &b.name))
        });
    }

    /// Merges agents: the user's own before those of plugins, and those before the project's.
    /// Within a layer, a file wins over a config entry of the same name.
    fn merge<'a>(
        entries: impl IntoIterator<Item = &'a AgentConfigEntry>,
        files: Vec<(ConfigLayer, PathBuf, String)>,
        plugins: impl IntoIterator<Item = &'a PluginAgent>,
    ) -> AgentConfigs {
        let to_config = |(name, description, role, max_mode, prompt): &BuiltInAgent| AgentConfig {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            role: *role,
            model: None,
            fallback_models: Vec::new(),
            temperature: None,
            variant: None,
            options: Map::new(),
            max_steps: None,
            tools: match (role, max_mode) {
                (AgentRole::Subagent, Some(PermissionMode::Plan)) => without_edit_tools(),
                _ => Vec::new(),
            },
            permissions: Vec::new(),
            max_mode: *max_mode,
            prompt: prompt.trim().to_owned(),
            prompt_mode: AgentPromptMode::default(),
            origin: None,
        };
        let all = BUILT_IN_AGENTS.iter().map(to_config).collect();
        let mut configs = AgentConfigs { all, diagnostics: Vec::new() };
        let entries: Vec<&AgentConfigEntry> = entries.into_iter().collect();
        let mut plugins = plugins.into_iter();
        for layer in [ConfigLayer::User, ConfigLayer::Project] {
            if layer == ConfigLayer::Project {
                plugins.by_ref().for_each(|plugin_agent| configs.add_plugin_agent(plugin_agent));
            }
            let layer_files: Vec<_> =
                files.iter().filter(|(file_layer, ..)| *file_layer == layer).collect();
            for agent in entries.iter().filter(|agent| agent.origin.layer == layer) {
                match layer_files.iter().find(|(_, path, _)| agent_name(path) == agent.name) {
                    Some((_, path, _)) => {
                        let (name, file) = (&agent.name, path.display());
                        let message = format!("{file} already defines `{name}`; ignored");
                        configs.add_diagnostic(&agent.origin, message);
                    }
                    None => configs.add_config_entry(agent),
                }
            }
            for (_, path, text) in layer_files {
                configs.add_file(layer, path, text);
            }
        }
        configs.sort();
        configs
    }

    fn add_diagnostic(&mut self, origin: &ConfigOrigin, message: String) {
        self.diagnostics.push(ConfigDiagnostic { origin: origin.clone(), message, fatal: false });
    }

    fn add_file(&mut self, layer: ConfigLayer, path: &Path, text: &str) {
        let mut origin = ConfigOrigin { layer, file: Some(path.to_owned()), line: 1, column: 1 };
        if text.len() > MAX_AGENT_BYTES {
            let message = format!("larger than {} kB; the agent is skipped", MAX_AGENT_BYTES >> 10);
            return self.add_diagnostic(&origin, message);
        }
        match front_matter::parse_front_matter(text) {
            Ok(front) => self.add_parsed(agent_name(path), front, origin),
            Err(error) => {
                let message = format!("{}; the agent is skipped", error.message);
                origin.line = error.line;
                self.add_diagnostic(&origin, message);
            }
        }
    }

    /// Adds an agent of a plugin. It never replaces another agent.
    fn add_plugin_agent(&mut self, plugin_agent: &PluginAgent) {
        let file = Some(plugin_agent.path.clone());
        let origin = ConfigOrigin { layer: ConfigLayer::Plugin, file, line: 1, column: 1 };
        match self.find(&plugin_agent.name) {
            None => self.add_parsed(&plugin_agent.name, plugin_agent.front_matter.clone(), origin),
            Some(_) => {
                let message = format!(
                    "an agent named `{}` already exists; this one is skipped",
                    plugin_agent.name
                );
                self.add_diagnostic(&origin, message);
            }
        }
    }

    fn add_config_entry(&mut self, agent: &AgentConfigEntry) {
        let front = FrontMatter { settings: agent.settings.clone(), body: String::new() };
        self.add_parsed(&agent.name, front, agent.origin.clone());
    }

    fn add_parsed(&mut self, name: &str, front: FrontMatter, origin: ConfigOrigin) {
        let mut parsed = match parse_named_agent(name, front) {
            Ok(parsed) => parsed,
            Err(message) => {
                return self.add_diagnostic(&origin, format!("{message}; the agent is skipped"));
            }
        };
        for key in &parsed.unknown_keys {
            self.add_diagnostic(&origin, unknown_key_message(key));
        }
        // A project's value would go into requests as it is, with the user's API key.
        if !is_user_layer(origin.layer) && parsed.agent.options.shift_remove("extra").is_some() {
            let message =
                "only your own agents can add fields to model requests; `extra` is ignored";
            self.add_diagnostic(&origin, message.to_owned());
        }
        self.insert(origin, parsed);
    }

    /// Inserts an agent. One of the user's own replaces one of `BUILT_IN_AGENTS`.
    fn insert(&mut self, origin: ConfigOrigin, parsed: ParsedAgent) {
        let ParsedAgent { mut agent, disabled, .. } = parsed;
        let layer = origin.layer;
        agent.origin = Some(origin.clone());
        let index = self.all.iter().position(|existing| existing.name == agent.name);
        if disabled {
            match index {
                Some(_) if agent.name == DEFAULT_AGENT => {
                    self.add_diagnostic(
                        &origin,
                        format!("the agent `{DEFAULT_AGENT}` cannot be disabled"),
                    );
                }
                Some(index) => drop(self.all.remove(index)),
                None => {}
            }
            return;
        }
        match index.and_then(|index| self.all.get_mut(index)) {
            None => self.all.push(agent),
            Some(existing) if layer != ConfigLayer::Project => *existing = agent,
            Some(existing) => {
                let denied_tools = agent.tools.into_iter().filter(|(_, enabled)| !enabled);
                agent.tools = existing.tools.iter().cloned().chain(denied_tools).collect();
                agent.permissions.splice(0..0, existing.permissions.iter().cloned());
                agent.max_mode = existing.max_mode;
                agent.role = existing.role;
                agent.prompt_mode = AgentPromptMode::Append;
                agent.max_steps = [agent.max_steps, existing.max_steps].into_iter().flatten().min();
                if existing.origin.is_some() {
                    agent.model = existing.model.clone();
                    agent.fallback_models.clone_from(&existing.fallback_models);
                    agent.temperature = existing.temperature;
                    agent.variant = existing.variant.clone();
                    agent.options = existing.options.clone();
                }
                *existing = agent;
            }
        }
    }
}

/// Returns `true` for the name of a built-in agent.
pub(crate) fn is_built_in(name: &str) -> bool {
    BUILT_IN_AGENTS.iter().any(|(built_in, ..)| *built_in == name)
}

/// Returns the agent name of a file: its name without `.md`.
fn agent_name(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
