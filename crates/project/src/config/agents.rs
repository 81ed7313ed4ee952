//! Agents defined in a config, and their model options.
//!
//! An entry is stored as written: the `agents` module, which reads agent files, interprets its
//! keys.

use super::model_options::ModelOptionScope;
use super::{Config, SubagentSettings};
use crate::config::file_parser::{ConfigLayer, ConfigOrigin, ParsedConfig};
use crate::config::json_pointer;
use serde_json::{Map, Value};

/// An entry of `agent` in a config.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentConfigEntry {
    pub(crate) name: String,
    pub(crate) settings: Map<String, Value>,
    pub(crate) origin: ConfigOrigin,
}

impl Config {
    pub(crate) fn agent_entries(
        &self,
        layer: ConfigLayer,
    ) -> impl Iterator<Item = &AgentConfigEntry> {
        self.agents.iter().filter(move |agent| agent.origin.layer == layer)
    }

    pub(super) fn apply_agents(&mut self, layer: ConfigLayer, file: &mut ParsedConfig) {
        let names = file.value_at("/agent").and_then(Value::as_object);
        let names: Vec<String> = names.into_iter().flat_map(Map::keys).cloned().collect();
        for name in names {
            let pointer = json_pointer::join("/agent", &name);
            self.apply_agent_options(layer, (&name, &pointer), file);
            if file.broken_agents.contains(&name) {
                continue;
            }
            let Some(Value::Object(mut settings)) = file.value_at(&pointer).cloned() else {
                continue;
            };
            self.record_values(&format!("agent.{name}"), &settings.clone().into(), &pointer, file);
            settings.shift_remove("options");
            if settings.is_empty() {
                continue;
            }
            let origin = file.origin_of(&pointer).clone();
            // Of two files of a layer, the stronger one defines the agent entirely.
            self.agents.retain(|agent| agent.name != name || agent.origin.layer != layer);
            self.agents.push(AgentConfigEntry { name, settings, origin });
        }
    }

    /// Applies the `subagents` settings.
    pub(super) fn apply_subagents(
        &mut self,
        layer: ConfigLayer,
        subagents: Option<SubagentSettings>,
        file: &mut ParsedConfig,
    ) {
        let Some(subagents) = subagents else { return };
        if layer == ConfigLayer::Project {
            return file.add_fault("/subagents", "a project cannot choose the tools of subagents");
        }
        if let Some(value) = file.value_at("/subagents").cloned() {
            self.record_values("subagents", &value, "/subagents", file);
        }
        self.subagents = subagents;
    }

    /// Applies the `options` of an agent. `options.extra` is reserved for the user: a project's
    /// value would go into requests verbatim, with the user's API key and past every permission.
    fn apply_agent_options(
        &mut self,
        layer: ConfigLayer,
        (name, pointer): (&str, &str),
        file: &mut ParsedConfig,
    ) {
        let extra_pointer = format!("{pointer}/options/extra");
        if layer == ConfigLayer::Project && file.value_at(&extra_pointer).is_some() {
            file.add_fault(&extra_pointer, "a project cannot add fields to model requests");
            file.remove_value(&extra_pointer);
        }
        self.apply_options(ModelOptionScope::Agent(name.to_owned()), pointer, file);
    }
}
