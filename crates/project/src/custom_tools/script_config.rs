//! Agents and commands that a script adds with the `config` hook of OpenCode's plugins.
//!
//! They never replace an agent or a command of another origin. Settings that could widen access,
//! such as servers, providers and permissions, are not taken.

use crate::agents::check_plugin_agent;
use crate::custom_commands::template::{CustomCommand, parse_command};
use crate::front_matter::FrontMatter;
use crate::opencode_permission_rules::{
    ConvertedPermissionRules, OrderedPermissionRule, translate_rules,
};
use crate::plugins::PluginAgent;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use windlass_protocol::display_text::to_one_line;

const MAX_AGENTS: usize = 100;
const MAX_COMMANDS: usize = 200;
/// Limits the settings and the prompt of an agent.
const MAX_AGENT_BYTES: usize = 256 << 10;

/// Settings of an agent that are taken. A `model` is not: it would send the project to a provider
/// that the user did not choose for it.
const AGENT_KEYS: [&str; 8] =
    ["description", "mode", "temperature", "tools", "permission", "prompt", "steps", "maxSteps"];
/// Settings of a command that become front matter.
const COMMAND_KEYS: [&str; 2] = ["description", "agent"];

/// Translates rules in which the last match counts, and which can only restrict.
pub type TranslateOrderedRules = dyn Fn(&[OrderedPermissionRule]) -> ConvertedPermissionRules;

/// The agents and commands that a script adds.
#[derive(Clone, Debug, Default)]
pub struct ScriptConfig {
    pub(crate) agents: Vec<PluginAgent>,
    pub(crate) commands: Vec<CustomCommand>,
    /// The script that adds them, as it is shown to the user.
    pub(crate) source: PathBuf,
    /// Messages for the user about what is not taken.
    pub notes: Vec<String>,
}

impl ScriptConfig {
    /// Parses the part of a script's description that comes from its `config` hook. `None` if it
    /// adds nothing. `translate` translates rules in which the last match counts.
    pub fn parse(
        display_name: &str,
        description: &Value,
        translate: &TranslateOrderedRules,
    ) -> Option<ScriptConfig> {
        let config = description.get("config")?.as_object()?;
        let source = PathBuf::from(display_name);
        let mut result = ScriptConfig { source, ..ScriptConfig::default() };
        let entries = |key: &str| config.get(key).and_then(Value::as_object).into_iter().flatten();
        for (name, agent) in entries("agent").take(MAX_AGENTS) {
            if let Err(reason) = result.add_agent(display_name, (name, agent), translate) {
                result.note(display_name, format!("the agent `{name}` is skipped: {reason}"));
            }
        }
        for (name, command) in entries("command").take(MAX_COMMANDS) {
            if let Err(reason) = result.add_command(name, command) {
                result.note(display_name, format!("the command `{name}` is skipped: {reason}"));
            }
        }
        let ignored = config.get("ignored").and_then(Value::as_array).into_iter().flatten();
        let ignored: Vec<&str> = ignored.filter_map(Value::as_str).collect();
        if !ignored.is_empty() {
            let keys = ignored.join(", ");
            let note = format!("it changes {keys} in the config, which only you can do; ignored");
            result.note(display_name, note);
        }
        Some(result)
    }

    fn note(&mut self, display_name: &str, text: String) {
        self.notes.push(to_one_line(&format!("{display_name}: {text}")));
    }

    fn add_agent(
        &mut self,
        source: &str,
        (name, agent): (&str, &Value),
        translate: &TranslateOrderedRules,
    ) -> Result<(), String> {
        let settings = agent.as_object().ok_or("it is not an object")?;
        if settings.get("disable") == Some(&Value::Bool(true)) {
            return Err("a script cannot disable an agent".to_owned());
        }
        let mut settings: Map<String, Value> = settings.clone();
        settings.retain(|key, value| AGENT_KEYS.contains(&key.as_str()) && !value.is_null());
        if settings.get("description").is_none_or(|text| text.as_str() == Some("")) {
            settings.insert("description".to_owned(), format!("An agent of {source}.").into());
        }
        let size: usize = settings.values().map(|value| value.to_string().len()).sum();
        if size > MAX_AGENT_BYTES {
            return Err(format!("it is larger than {} kB", MAX_AGENT_BYTES >> 10));
        }
        let name = to_name(name);
        if let Some(rules) = settings.get_mut("permission") {
            *rules = self.translate_agent_rules((source, &name), rules, translate)?;
        }
        let front_matter = FrontMatter { settings, body: String::new() };
        if let Some(reason) = check_plugin_agent(&name, front_matter.clone()) {
            return Err(reason);
        }
        self.agents.push(PluginAgent { name, front_matter, path: self.source.clone() });
        Ok(())
    }

    /// Translates the rules of an agent, which can only restrict. An `allow` that grants nothing
    /// here is not reported.
    fn translate_agent_rules(
        &mut self,
        (source, agent): (&str, &str),
        rules: &Value,
        translate: &TranslateOrderedRules,
    ) -> Result<Value, String> {
        let translated = translate_rules(rules, translate);
        let translated = translated.ok_or("its `permission` is not an object")?;
        if let Some((key, pattern)) = translated.invalid.first() {
            let reason = "is not `allow`, `ask` or `deny`";
            return Err(format!("its `permission` for `{key}` `{pattern}` {reason}"));
        }
        let lost = translated.unsupported.iter().filter(|(_, level, _)| level != "allow");
        for ((key, pattern), level, reason) in lost {
            let rule = format!("{level} `{key}` `{pattern}`");
            self.note(source, format!("the agent `{agent}`: {rule} is left out: {reason}"));
        }
        Ok(translated.rules.into())
    }

    fn add_command(&mut self, name: &str, command: &Value) -> Result<(), String> {
        let template = command.get("template").and_then(Value::as_str);
        let template = template.ok_or("it has no `template`")?;
        let front = COMMAND_KEYS.iter().filter_map(|key| {
            let text = command.get(key)?.as_str()?;
            Some(format!("{key}: {}\n", Value::from(to_one_line(text))))
        });
        let front: String = front.collect();
        let file = format!("{}.md", to_name(name));
        let text = format!("---\n{front}---\n\n{template}\n");
        let parsed = parse_command(Path::new(&file), &text).map_err(|(_, reason)| reason)?;
        self.commands.push(parsed);
        Ok(())
    }
}

/// Replaces what a name cannot contain: `Sisyphus - ultraworker` becomes `Sisyphus-ultraworker`.
fn to_name(name: &str) -> String {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let parts = name.split(|c: char| !is_name_char(c)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AgentConfigs;
    use crate::custom_commands::CustomCommands;
    use serde_json::json;
    use windlass_protocol::AgentRole;

    fn keep_rules(rules: &[OrderedPermissionRule]) -> ConvertedPermissionRules {
        let keep = |OrderedPermissionRule { key, pattern, level }| (key, pattern, level.into());
        let rules = rules.iter().cloned().map(keep).collect();
        ConvertedPermissionRules { rules, dropped: Vec::new() }
    }

    #[test]
    fn rules_that_cannot_be_translated_are_reported() {
        let description = json!({"config": {"agent": {
            "a": {"permission": {"edit": "deny", "list": "deny", "glob": "allow"}},
            "b": {"permission": {"edit": "never"}}, "c": {"permission": 7},
        }}});
        let config = ScriptConfig::parse("tools/a.mjs", &description, &keep_rules).unwrap();
        let names: Vec<&str> = config.agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["a"], "an agent without its restrictions does not run");
        let notes = config.notes.join("\n");
        for part in [
            "the agent `a`: deny `list` `*` is left out: covered by `read` rules",
            "`b` is skipped: its `permission` for `edit` `*` is not `allow`, `ask` or `deny`",
            "`c` is skipped: its `permission` is not an object",
        ] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        assert!(!notes.contains("glob"), "an `allow` would grant nothing: {notes}");
    }

    #[test]
    fn agents_and_commands_are_taken_and_settings_that_widen_are_not() {
        let description = json!({"tools": [], "config": {
            "agent": {
                "Deep Worker (x)": {"mode": "subagent", "prompt": "Work.", "model": "a/b",
                    "color": "red", "permission": {"edit": "deny"}, "tools": {"bash": false}},
                "plan": {"description": "Mine.", "prompt": "No plan."},
                "gone": {"disable": true}, "wrong": {"mode": "boss"}, "text": "x",
            },
            "command": {
                "a:b": {"template": "Do $1: now", "description": "Does: \"it\"\n---\nx", "agent": "plan"},
                "empty": {"description": "x"},
            },
            "ignored": ["mcp", "permission"],
        }});
        let config = ScriptConfig::parse("tools/a.mjs", &description, &keep_rules).unwrap();
        let mut agents = AgentConfigs::default();
        agents.add_script_configs(std::slice::from_ref(&config));
        let agent = agents.find("Deep-Worker-x").unwrap();
        assert_eq!((agent.role, &*agent.prompt), (AgentRole::Subagent, "Work."));
        assert_eq!(agent.description, "An agent of tools/a.mjs.");
        assert_eq!(agent.model, None, "the user did not choose it");
        assert_eq!(agent.permissions, [json!({"edit": "deny"})]);
        let mut commands = CustomCommands::default();
        commands.add_script_configs(std::slice::from_ref(&config));
        assert_eq!(commands.all.len(), 1);
        let command = commands.find("a-b").unwrap();
        assert_eq!(command.template.trim(), "Do $1: now");
        assert_eq!(command.description, "Does: \"it\"⏎---⏎x");
        let notes = config.notes.join("\n");
        for part in ["`gone`", "`wrong`", "`text`", "`empty`", "mcp, permission in the config"] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        // A name that exists, from anywhere, stays as it is.
        agents.add_script_configs(std::slice::from_ref(&config));
        assert!(agents.diagnostics.iter().any(|it| it.message.contains("already exists")));
        assert!(ScriptConfig::parse("x", &json!({"tools": []}), &keep_rules).is_none());
    }
}
