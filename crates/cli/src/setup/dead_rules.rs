//! Finds permission rules of the config that never decide anything.

use super::LoadedProject;
use crate::terminal::output;
use windlass_permission::{DeadRule, PERMISSION_KEYS, PermissionRules, RuleSurroundings};
use windlass_project::{Config, ConfigLayer, ConfigOrigin};

/// A [`DeadRule`] with its place in a config.
pub(crate) struct ConfigDeadRule {
    pub(crate) origin: Option<ConfigOrigin>,
    pub(crate) rule: DeadRule,
}

impl std::fmt::Display for ConfigDeadRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.rule),
            None => write!(f, "{}", self.rule),
        }
    }
}

impl LoadedProject {
    /// Returns the rules of the config that never decide anything. Rules that do not parse are
    /// reported by `build_policy`.
    pub(crate) fn dead_rules(&self) -> Vec<ConfigDeadRule> {
        let config = &self.config;
        let parsed = config.permissions.iter().filter_map(|permission| {
            Some((permission, PermissionRules::parse(&permission.rules).ok()?))
        });
        let parsed: Vec<_> = parsed.collect();
        if parsed.is_empty() {
            return Vec::new();
        }
        let built_in = windlass_tools::permission_keys();
        let mut dead_rules = Vec::new();
        for (index, (permission, rules)) in parsed.iter().enumerate() {
            let others = parsed.iter().enumerate().filter(|(other, _)| *other != index);
            let other_rules = others.map(|(_, (permission, rules))| {
                let origin = config.permission_origin(permission, "");
                let file = origin.and_then(|origin| origin.file);
                (file.map_or_else(String::new, |file| file.display().to_string()), rules)
            });
            let is_restricting = match permission.layer {
                ConfigLayer::User | ConfigLayer::Flag => false,
                ConfigLayer::Managed | ConfigLayer::Plugin | ConfigLayer::Project => true,
            };
            let find_key = |tool: &str| built_in.get(tool).cloned();
            let advice = |key: &str| self.unknown_key_advice(key, built_in.keys());
            let surroundings = RuleSurroundings {
                other_rules: other_rules.collect(),
                is_restricting,
                built_in_tool_key: &find_key,
                unknown_key_advice: &advice,
            };
            dead_rules.extend(rules.dead_rules(&surroundings).into_iter().map(|rule| {
                let origin = config.permission_origin(permission, &rule.pointer);
                ConfigDeadRule { origin, rule }
            }));
        }
        dead_rules
    }

    /// Returns the rules of an agent that never decide anything. An `allow`, which grants nothing
    /// there, is not reported: agents of other programs have many.
    pub(crate) fn dead_agent_rules(&self, rules: &PermissionRules) -> Vec<DeadRule> {
        let built_in = windlass_tools::permission_keys();
        rules.dead_rules(&RuleSurroundings {
            other_rules: Vec::new(),
            is_restricting: false,
            built_in_tool_key: &|tool| built_in.get(tool).cloned(),
            unknown_key_advice: &|key| self.unknown_key_advice(key, built_in.keys()),
        })
    }

    /// Returns advice about a key that no access and no tool has. A custom tool, a plugin or an MCP
    /// server may define any tool that begins with its name.
    fn unknown_key_advice<'a>(
        &self,
        key: &str,
        built_in_tools: impl Iterator<Item = &'a String>,
    ) -> Option<String> {
        let Config { servers, plugins, .. } = &self.config;
        let has_prefix = |prefix: &str| key == prefix || key.starts_with(&format!("{prefix}_"));
        let is_external = !plugins.is_empty()
            || servers.keys().any(|server| has_prefix(&server.replace(['.', '-', ' '], "_")))
            || servers.keys().any(|server| has_prefix(server))
            || self
                .find_tool_files()
                .all
                .iter()
                .any(|file| super::custom_tools::is_plugin(file) || has_prefix(&file.prefix));
        if is_external {
            return None;
        }
        let names: Vec<&str> =
            PERMISSION_KEYS.into_iter().chain(built_in_tools.map(String::as_str)).collect();
        let suggestion = output::did_you_mean(key, &names);
        Some(format!("{suggestion}Name a permission key or a tool, or remove this rule"))
    }
}
