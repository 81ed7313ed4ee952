//! Agents and commands of scripts in tool folders, which their `config` hooks add.
//!
//! They must be known before the session starts, so such a script is described early. Its
//! description is cached by its digest like that of a tool.

use super::LoadedProject;
use super::custom_tools::{PLUGIN_LOAD_TIMEOUT, ScriptToolContext, ToolDescriptionState};
use crate::commands::import::translate_ordered_rules;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_project::import::OrderedPermissionRule;
use windlass_project::{
    AgentConfigs, CustomCommands, ScriptConfig, ToolDescriptionCache, ToolFile,
};
use windlass_toolkit::{PendingToolSource, ProcessLauncher, Registry};

/// The additions of all scripts.
#[derive(Default)]
pub(crate) struct ScriptConfigs {
    all: Vec<ScriptConfig>,
    /// By display name: the reason why a script could not be described.
    pub(super) failures: BTreeMap<String, String>,
}

impl LoadedProject {
    /// Loads the agents, also those of scripts.
    pub(crate) async fn load_agent_configs(&self) -> anyhow::Result<AgentConfigs> {
        let mut agents = AgentConfigs::load(&self.dirs, &self.config)?;
        agents.add_script_configs(&self.script_configs().await.all);
        Ok(agents)
    }

    /// Loads the custom commands, also those of scripts.
    pub(crate) async fn load_commands(&self) -> anyhow::Result<CustomCommands> {
        let mut commands = CustomCommands::load(&self.dirs, &self.config)?;
        commands.add_script_configs(&self.script_configs().await.all);
        Ok(commands)
    }

    async fn script_configs(&self) -> &ScriptConfigs {
        self.script_configs.get_or_init(|| self.describe_scripts()).await
    }

    /// Returns the additions of scripts from the cached descriptions. Describes the scripts that
    /// have none.
    async fn describe_scripts(&self) -> ScriptConfigs {
        let mut configs = ScriptConfigs::default();
        let files = self.find_tool_files().all;
        let files: Vec<ToolFile> = files.into_iter().filter(may_add_config).collect();
        if files.is_empty() {
            return configs;
        }
        let runtime = match self.build_runtime(self.configured_mode()) {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::debug!(%error, "scripts cannot be described");
                return configs;
            }
        };
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        let scripts = ScriptToolContext::new(self);
        let cache = ToolDescriptionCache::read(&self.dirs);
        let (describing, unused) = (Registry::default(), Registry::default());
        let mut descriptions = BTreeMap::new();
        let mut pending_tools = Vec::new();
        for (index, file) in files.into_iter().enumerate() {
            let display_name = file.display_name.clone();
            let pending_tool = match self.new_undescribed(file, &launcher, &scripts, &unused) {
                Ok(pending_tool) => pending_tool,
                Err(reason) => {
                    configs.failures.insert(display_name, reason.to_string());
                    continue;
                }
            };
            match pending_tool.cached_description(&cache) {
                Some(description) => {
                    descriptions.insert(index, (display_name, description));
                }
                None => {
                    let pending_tool = Arc::new(pending_tool);
                    describing.add_pending(Arc::clone(&pending_tool) as Arc<dyn PendingToolSource>);
                    pending_tools.push((index, display_name, pending_tool));
                }
            }
        }
        describing.wait_for_pending(PLUGIN_LOAD_TIMEOUT).await;
        let mut new_descriptions = Vec::new();
        for (index, display_name, pending_tool) in pending_tools {
            match pending_tool.state() {
                ToolDescriptionState::Described(digest, description) => {
                    new_descriptions.push((pending_tool.cache_key(), digest, description.clone()));
                    descriptions.insert(index, (display_name, description));
                }
                ToolDescriptionState::Failed(reason) => {
                    configs.failures.insert(display_name, reason);
                }
                ToolDescriptionState::Waiting | ToolDescriptionState::Late => {
                    let reason = "it did not describe itself in time";
                    configs.failures.insert(display_name, reason.to_owned());
                }
            }
        }
        self.save_descriptions(new_descriptions);
        for (display_name, description) in descriptions.into_values() {
            // The agents of a script can only restrict.
            let translate = |rules: &[OrderedPermissionRule]| translate_ordered_rules(rules, true);
            let config = ScriptConfig::parse(&display_name, &description, &translate);
            let Some(config) = config else { continue };
            for note in &config.notes {
                self.context.notes.send(&format!("note: {note}"));
            }
            configs.all.push(config);
        }
        configs
    }
}

/// Returns true if a file is a script that may have a `config` hook.
fn may_add_config(file: &ToolFile) -> bool {
    file.is_script
        && file.text().is_none_or(|text| text.contains("config") || ToolFile::is_package(&text))
}
