//! Parses the components of a plugin: skills, commands, agents, servers, hooks, tools. An unusable
//! component is reported and does not affect the others.
//!
//! This module reads texts and starts no process. File names in a manifest cannot lead out of the
//! plugin, because they are only names in [`PluginContents`].

use super::contents::PluginContents;
use super::manifest::{
    COMMON_KEYS, PluginManifest, PluginManifestFormat, WINDLASS_KEY, parse_object,
};
use super::mcp_servers::PluginMcpServer;
use super::plugin_folders::PluginDirs;
use crate::agents::check_plugin_agent;
use crate::config::file_parser::ConfigLayer;
use crate::config::hook_config::{HookCommand, HookConfig, parse_hook_entry, parse_hook_point};
use crate::custom_commands::template::{CustomCommand, parse_command};
use crate::custom_tools::file_role::{ToolFileKind, ToolFileRole, classify_file};
use crate::front_matter::{self, FrontMatter};
use crate::skills::skill_file::{SkillFile, parse_skill};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use windlass_protocol::ClaudeToolNames;

/// Limits the components of each kind.
const MAX_COMPONENTS: usize = 100;

/// The parsed components of a plugin.
#[derive(Clone, Debug, Default)]
pub struct PluginComponents {
    /// Skills, by their own names.
    pub skills: Vec<SkillFile>,
    /// Commands, with the plugin's name as prefix.
    pub commands: Vec<CustomCommand>,
    /// Agents, with the plugin's name as prefix.
    pub(crate) agents: Vec<PluginAgent>,
    /// Servers, with the plugin's name as prefix.
    pub(crate) servers: Vec<PluginMcpServer>,
    /// Hooks, with the plugin's name as prefix.
    pub hooks: Vec<HookConfig>,
    /// Files in the `tools` folder.
    pub tools: Vec<PluginTool>,
    /// Unusable components, with the reason.
    pub(crate) faults: Vec<String>,
}

impl PluginComponents {
    /// Describes the number of components of each kind.
    pub fn describe_counts(&self) -> String {
        let counts = [
            (self.servers.len(), "server"),
            (self.hooks.len(), "hook"),
            (self.tools.len(), "tool"),
            (self.skills.len(), "skill"),
            (self.commands.len(), "command"),
            (self.agents.len(), "agent"),
        ];
        let describe_count = |(count, kind): (usize, &str)| match count {
            0 => None,
            1 => Some(format!("1 {kind}")),
            count => Some(format!("{count} {kind}s")),
        };
        let counts: Vec<String> = counts.into_iter().filter_map(describe_count).collect();
        if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") }
    }

    /// Returns the names of its servers.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|plugin_server| plugin_server.name.as_str())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PluginAgent {
    pub(crate) name: String,
    pub(crate) front_matter: FrontMatter,
    pub(crate) path: PathBuf,
}

/// A custom tool file of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginTool {
    /// The prefix of the names of its tools.
    pub prefix: String,
    /// The file name relative to the plugin's folder.
    pub file: String,
    /// `true` if the file needs an interpreter.
    pub is_script: bool,
}

/// Reads all components, with the paths they will have in the store.
pub(super) fn read_components(
    contents: &PluginContents,
    manifest: &PluginManifest,
    plugin_dirs: &PluginDirs,
    claude_tools: &ClaudeToolNames,
) -> PluginComponents {
    let mut reader = PluginComponentReader {
        contents,
        manifest,
        plugin_dirs,
        claude_tools,
        components: PluginComponents::default(),
    };
    match manifest.format {
        PluginManifestFormat::AgentPlugins => reader.read_agent_format(),
        PluginManifestFormat::Claude => reader.read_claude_format(),
    }
    reader.components
}

struct PluginComponentReader<'a> {
    contents: &'a PluginContents,
    manifest: &'a PluginManifest,
    plugin_dirs: &'a PluginDirs,
    claude_tools: &'a ClaudeToolNames,
    components: PluginComponents,
}

impl PluginComponentReader<'_> {
    fn read_agent_format(&mut self) {
        self.read_skills("skills/");
        self.read_servers_file("mcp.json");
        self.read_commands(&format!("{WINDLASS_KEY}/commands/"));
        self.read_agents(&format!("{WINDLASS_KEY}/agents/"));
        self.read_hooks_file(&format!("{WINDLASS_KEY}/hooks.json"));
        self.read_tools(&format!("{WINDLASS_KEY}/tools/"));
        let servers = self.manifest.access.servers.keys();
        let missing = servers
            .filter(|name| !self.components.servers.iter().any(|it| it.name_in_plugin == **name));
        let missing = missing.map(|name| {
            format!("plugin.json: requests access for the server `{name}`, which is not used")
        });
        self.components.faults.extend(missing.collect::<Vec<_>>());
    }

    fn read_claude_format(&mut self) {
        for name in self.component_paths("skills", "skills") {
            if self.contents.contains(&format!("{name}/SKILL.md")) {
                self.read_skill(&format!("{name}/SKILL.md"));
            } else {
                self.read_skills(&format!("{name}/"));
            }
        }
        for name in self.component_paths("commands", "commands") {
            match self.contents.contains(&name) {
                true => self.read_command(&name, file_stem(&name)),
                false => self.read_commands(&format!("{name}/")),
            }
        }
        for name in self.component_paths("agents", "agents") {
            match self.contents.contains(&name) {
                true => self.read_agent(&name, file_stem(&name)),
                false => self.read_agents(&format!("{name}/")),
            }
        }
        for name in self.component_paths("hooks", "hooks/hooks.json") {
            self.read_hooks_file(&name);
        }
        for name in self.component_paths("mcpServers", ".mcp.json") {
            self.read_servers_file(&name);
        }
        if let Some(Value::Object(hooks)) = self.manifest.raw.get("hooks").cloned() {
            self.add_hooks(hooks, ".claude-plugin/plugin.json");
        }
        if let Some(Value::Object(servers)) = self.manifest.raw.get("mcpServers").cloned() {
            self.add_servers(servers, ".claude-plugin/plugin.json");
        }
        const COMPONENT_KEYS: [&str; 5] = ["commands", "agents", "skills", "hooks", "mcpServers"];
        let unknown_keys = self.manifest.raw.keys().map(String::as_str);
        let unknown_keys =
            unknown_keys.filter(|key| !COMMON_KEYS.contains(key) && !COMPONENT_KEYS.contains(key));
        let unknown_keys = unknown_keys.map(|key| format!("unknown key `{key}` in the manifest"));
        self.components.faults.extend(unknown_keys.collect::<Vec<_>>());
        for folder in ["output-styles/", "monitors/", "themes/", "bin/"] {
            if self.contents.files_beneath(folder).next().is_some() {
                self.components.faults.push(format!("{folder} is not supported"));
            }
        }
        if self.contents.contains(".lsp.json") {
            self.components.faults.push(".lsp.json is not supported".to_owned());
        }
    }

    /// Returns the default location of a component, if it exists, and those that Claude's manifest
    /// names under `key`.
    fn component_paths(&mut self, key: &str, default_path: &str) -> Vec<String> {
        let folder = format!("{default_path}/");
        let exists = self.contents.contains(default_path)
            || self.contents.files_beneath(&folder).next().is_some();
        let mut paths: Vec<String> = exists.then(|| default_path.to_owned()).into_iter().collect();
        let configured: Vec<Value> = match self.manifest.raw.get(key) {
            None | Some(Value::Object(_)) => Vec::new(),
            Some(Value::Array(names)) => names.clone(),
            Some(value) => vec![value.clone()],
        };
        for name in configured.into_iter().take(MAX_COMPONENTS) {
            let Some(name) = name.as_str() else {
                self.components
                    .faults
                    .push(format!("`{key}` in the manifest must be a list of paths"));
                continue;
            };
            let path = name.strip_prefix("./").unwrap_or(name).trim_end_matches('/');
            let is_found = self.contents.contains(path)
                || self.contents.files_beneath(&format!("{path}/")).next().is_some();
            match is_found {
                true if paths.iter().any(|existing| existing == path) => {}
                true => paths.push(path.to_owned()),
                false => self.add_fault(name, "not found in the plugin"),
            }
        }
        paths
    }

    fn add_fault(&mut self, location: &str, reason: &str) {
        self.components.faults.push(format!("{location}: {reason}"));
    }

    /// Reads a document and expands `${PLUGIN_ROOT}` and `${PLUGIN_DATA}` where its format allows
    /// them.
    fn read_document(&self, name: &str) -> Result<String, String> {
        let text = self.contents.read_text(name).unwrap_or(Ok(""))?;
        Ok(match (self.manifest.format, name.starts_with("skills/")) {
            (PluginManifestFormat::AgentPlugins, true) => text.to_owned(),
            (PluginManifestFormat::AgentPlugins | PluginManifestFormat::Claude, _) => {
                self.plugin_dirs.expand_dirs(text)
            }
        })
    }

    fn read_skills(&mut self, folder: &str) {
        let files = self.contents.files_beneath(folder).map(|(name, _)| name);
        let files = files.filter(|name| {
            name.strip_suffix("/SKILL.md").is_some_and(|skill| !skill.contains('/'))
        });
        let files: Vec<String> = files.map(|name| format!("{folder}{name}")).collect();
        for file in self.limit_components(folder, files) {
            self.read_skill(&file);
        }
    }

    fn read_skill(&mut self, file: &str) {
        let path = self.plugin_dirs.root.join(file);
        let text = self.read_document(file);
        match text.and_then(|text| parse_skill(&path, &text).map_err(|(_, reason)| reason)) {
            Ok(skill)
                if self.components.skills.iter().any(|existing| existing.name == skill.name) =>
            {
                self.add_fault(file, "duplicate skill name");
            }
            Ok(skill) => self.components.skills.push(skill),
            Err(reason) => self.add_fault(file, &reason),
        }
    }

    /// Lists the documents of a folder and its subfolders, with names derived from their paths.
    fn list_documents(&mut self, folder: &str) -> Vec<(String, String)> {
        let files = self.contents.files_beneath(folder).map(|(name, _)| name);
        let files = files.filter(|name| name.ends_with(".md") && *name != "README.md");
        let files: Vec<String> = files.map(str::to_owned).collect();
        let name = |file: &String| file.trim_end_matches(".md").replace('/', "-");
        let files = self.limit_components(folder, files);
        files.into_iter().map(|file| (format!("{folder}{file}"), name(&file))).collect()
    }

    fn read_commands(&mut self, folder: &str) {
        for (file, name) in self.list_documents(folder) {
            self.read_command(&file, &name);
        }
    }

    fn read_command(&mut self, file: &str, name: &str) {
        let name = format!("{}-{name}", self.manifest.name);
        let path = self.plugin_dirs.root.join(format!("{name}.md"));
        let text = self.read_document(file);
        match text.and_then(|text| parse_command(&path, &text).map_err(|(_, reason)| reason)) {
            Ok(command)
                if self
                    .components
                    .commands
                    .iter()
                    .any(|existing| existing.name == command.name) =>
            {
                self.add_fault(file, "duplicate command name");
            }
            Ok(command) => self.components.commands.push(command),
            Err(reason) => self.add_fault(file, &reason),
        }
    }

    fn read_agents(&mut self, folder: &str) {
        for (file, name) in self.list_documents(folder) {
            self.read_agent(&file, &name);
        }
    }

    fn read_agent(&mut self, file: &str, name: &str) {
        let text = self.read_document(file);
        let front = text.and_then(|text| {
            front_matter::parse_front_matter(&text)
                .map_err(|error| format!("line {}: {}", error.line, error.message))
        });
        let mut front = match front {
            Ok(front) => front,
            Err(reason) => return self.add_fault(file, &reason),
        };
        if self.manifest.format == PluginManifestFormat::Claude {
            let unknown_tools = convert_claude_agent(&mut front.settings, self.claude_tools);
            if !unknown_tools.is_empty() {
                let unknown_tools = unknown_tools.join(", ");
                self.add_fault(
                    file,
                    &format!("the agent does not get unknown tools: {unknown_tools}"),
                );
            }
        }
        let name = format!("{}-{name}", self.manifest.name);
        let path = self.plugin_dirs.root.join(file);
        let agent = PluginAgent { name, front_matter: front, path };
        match check_plugin_agent(&agent.name, agent.front_matter.clone()) {
            Some(reason) => self.add_fault(file, &reason),
            None if self.components.agents.iter().any(|existing| existing.name == agent.name) => {
                self.add_fault(file, "duplicate agent name");
            }
            None => self.components.agents.push(agent),
        }
    }

    fn read_servers_file(&mut self, file: &str) {
        let Some(text) = self.contents.read_text(file) else { return };
        match text.and_then(parse_object) {
            Err(reason) => self.add_fault(file, &reason),
            Ok(mut object) => match (object.remove("mcpServers"), self.manifest.format) {
                (Some(Value::Object(servers)), _) => self.add_servers(servers, file),
                (None, PluginManifestFormat::Claude) => self.add_servers(object, file),
                (Some(_) | None, _) => self.add_fault(file, "missing `mcpServers`"),
            },
        }
    }

    fn add_servers(&mut self, servers: Map<String, Value>, file: &str) {
        if servers.len() > MAX_COMPONENTS {
            return self.add_fault(file, &format!("more than {MAX_COMPONENTS} servers"));
        }
        for (name, value) in servers {
            let location = format!("{file}: the server `{name}`");
            match PluginMcpServer::read(&name, &value, self.manifest, self.plugin_dirs) {
                Err(reason) => self.add_fault(&location, &reason),
                Ok(plugin_server)
                    if self
                        .components
                        .servers
                        .iter()
                        .any(|existing| existing.name == plugin_server.name) =>
                {
                    self.add_fault(&location, "duplicate server name");
                }
                Ok(plugin_server) => self.components.servers.push(plugin_server),
            }
        }
    }

    fn read_hooks_file(&mut self, file: &str) {
        let Some(text) = self.contents.read_text(file) else { return };
        let hooks =
            text.and_then(parse_object).and_then(|mut object| match object.remove("hooks") {
                Some(Value::Object(hooks)) => Ok(hooks),
                Some(_) | None => Err("missing `hooks`".to_owned()),
            });
        match hooks {
            Ok(hooks) => self.add_hooks(hooks, file),
            Err(reason) => self.add_fault(file, &reason),
        }
    }

    fn add_hooks(&mut self, hooks: Map<String, Value>, file: &str) {
        for (name, entries) in hooks {
            let location = format!("{file}: {name}");
            let point = match parse_hook_point(&name) {
                Ok(point) => point,
                Err(reason) => {
                    self.add_fault(&location, &reason);
                    continue;
                }
            };
            let Value::Array(entries) = entries else {
                self.add_fault(&location, "must be a list of hooks");
                continue;
            };
            for entry in entries {
                match parse_hook_entry(entry, point, ConfigLayer::Plugin) {
                    Err(reason) => self.add_fault(&location, &reason),
                    Ok(parsed) => parsed.into_iter().for_each(|hook| self.add_hook(hook)),
                }
            }
        }
    }

    fn add_hook(&mut self, mut hook: HookConfig) {
        if self.components.hooks.len() >= MAX_COMPONENTS {
            return self.add_fault("hooks", &format!("more than {MAX_COMPONENTS} hooks"));
        }
        let (plugin, count) = (&self.manifest.name, self.components.hooks.len() + 1);
        hook.name = match hook.name.as_str() {
            "" => format!("{plugin}-{}-{count}", hook.point),
            name => format!("{plugin}-{name}"),
        };
        if let HookCommand::Argv(words) = &mut hook.command {
            words.iter_mut().for_each(|word| *word = self.plugin_dirs.expand_dirs(word));
        }
        hook.plugin = Some(self.plugin_dirs.clone());
        self.components.hooks.push(hook);
    }

    fn read_tools(&mut self, folder: &str) {
        let files = self.contents.files_beneath(folder);
        let files = files.filter(|(name, _)| !name.contains('/'));
        let files: Vec<(String, ToolFileKind)> =
            files.map(|(name, plugin_file)| (name.to_owned(), plugin_file.kind)).collect();
        for (file, kind) in self.limit_components(folder, files) {
            let path = format!("{folder}{file}");
            match classify_file(&file, kind) {
                ToolFileRole::Support => {}
                ToolFileRole::NotRunnable => self.add_fault(&path, "not executable, so not a tool"),
                ToolFileRole::Tool { prefix, is_script } => {
                    self.components.tools.push(PluginTool { prefix, file: path, is_script });
                }
            }
        }
    }

    fn limit_components<T>(&mut self, folder: &str, mut files: Vec<T>) -> Vec<T> {
        if files.len() > MAX_COMPONENTS {
            self.add_fault(
                folder,
                &format!("only the first {MAX_COMPONENTS} of {} are used", files.len()),
            );
            files.truncate(MAX_COMPONENTS);
        }
        files
    }
}

fn file_stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_suffix(".md").unwrap_or(file)
}

/// Converts one of Claude's agents: it becomes a subagent with only the tools it lists. Returns the
/// unknown tools.
fn convert_claude_agent(
    settings: &mut Map<String, Value>,
    claude_tools: &ClaudeToolNames,
) -> Vec<String> {
    let names: Option<Vec<String>> = match settings.shift_remove("tools") {
        None | Some(Value::Null) => None,
        Some(Value::Array(names)) => {
            Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(other) => {
            let names = other.as_str().unwrap_or_default().split(',');
            Some(names.map(|name| name.trim().to_owned()).collect())
        }
    };
    let mut unknown_tools = Vec::new();
    if let Some(names) = names.filter(|names| !names.iter().any(|name| name == "*")) {
        let mut tools = Map::new();
        tools.insert("*".to_owned(), false.into());
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let base_name = name.split('(').next().unwrap_or(&name);
            match claude_tools.tools_for(base_name).as_slice() {
                [] => unknown_tools.push(name),
                names => tools.extend(names.iter().map(|name| ((*name).to_owned(), true.into()))),
            }
        }
        settings.insert("tools".to_owned(), Value::Object(tools));
    }
    // Claude's model names are not ours; without a `model` the agent uses the session's.
    settings.retain(|key, value| {
        matches!(key.as_str(), "description" | "tools" | "name")
            || key == "model" && value.as_str().is_some_and(|model| model.contains('/'))
    });
    settings.insert("mode".to_owned(), json!("subagent"));
    unknown_tools
}
