//! What a plugin brings, understood: skills, commands, agents, servers, hooks, tools. What of it cannot be
//! used is told, and costs nothing else.
//!
//! It reads texts and starts nothing. Names of files in a manifest never lead out of the plugin,
//! because they are names in [`Contents`] and nothing else.

use super::Lodging;
use super::contents::Contents;
use super::manifest::{COMMON, Format, Manifest, OURS, parsed};
use super::wired::Wired;
use crate::commands::{self, Command};
use crate::config::{HookCommand, HookSpec, hook_entry, hook_point};
use crate::file::Layer;
use crate::front::{self, Front};
use crate::skills::{self, Skill};
use crate::tools::{Kind, Role, role};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// How many of each a plugin may bring.
const MOST: usize = 100;

/// Claude's names of tools, and ours.
const TOOLS: [(&str, &str); 20] = [
    ("Agent", "task"),
    ("AskUserQuestion", "question"),
    ("Bash", "bash"),
    ("BashOutput", "job"),
    ("Edit", "edit"),
    ("ExitPlanMode", "plan_exit"),
    ("Glob", "glob"),
    ("Grep", "grep"),
    ("KillBash", "job"),
    ("KillShell", "job"),
    ("LS", "glob"),
    ("MultiEdit", "edit"),
    ("Read", "read"),
    ("Skill", "skill"),
    ("Task", "task"),
    ("TodoRead", "todoread"),
    ("TodoWrite", "todowrite"),
    ("WebFetch", "webfetch"),
    ("WebSearch", "websearch"),
    ("Write", "write"),
];

/// What a plugin brings.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Skills, by their own names.
    pub skills: Vec<Skill>,
    /// Commands, named after the plugin.
    pub commands: Vec<Command>,
    /// Agents, named after the plugin.
    pub(crate) agents: Vec<Written>,
    /// Servers, named after the plugin.
    pub(crate) servers: Vec<Wired>,
    /// Hooks, named after the plugin.
    pub hooks: Vec<HookSpec>,
    /// Files that are tools.
    pub tools: Vec<Implement>,
    /// What cannot be used, and why.
    pub(crate) faults: Vec<String>,
}

impl Parts {
    /// How many of each there are.
    pub fn counts(&self) -> String {
        let counts = [
            (self.servers.len(), "server"),
            (self.hooks.len(), "hook"),
            (self.tools.len(), "tool"),
            (self.skills.len(), "skill"),
            (self.commands.len(), "command"),
            (self.agents.len(), "agent"),
        ];
        let several = |(count, kind): (usize, &str)| match count {
            0 => None,
            1 => Some(format!("1 {kind}")),
            count => Some(format!("{count} {kind}s")),
        };
        let counts: Vec<String> = counts.into_iter().filter_map(several).collect();
        if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") }
    }

    /// The names of its servers.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|wired| wired.name.as_str())
    }
}

/// An agent as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) front: Front,
    pub(crate) path: PathBuf,
}

/// A file that is a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implement {
    /// The name its tools begin with.
    pub name: String,
    /// Its file, in the plugin.
    pub file: String,
    /// It needs somebody to run it.
    pub is_script: bool,
}

/// Reads everything, as it will be where it is going to lie.
pub(super) fn read(contents: &Contents, manifest: &Manifest, lodging: &Lodging) -> Parts {
    let mut reader = Reader { contents, manifest, lodging, parts: Parts::default() };
    match manifest.format {
        Format::Agent => reader.read_agent_format(),
        Format::Claude => reader.read_claudes(),
    }
    reader.parts
}

struct Reader<'a> {
    contents: &'a Contents,
    manifest: &'a Manifest,
    lodging: &'a Lodging,
    parts: Parts,
}

impl Reader<'_> {
    fn read_agent_format(&mut self) {
        self.skills_in("skills/");
        self.servers_at("mcp.json");
        self.commands_in(&format!("{OURS}/commands/"));
        self.agents_in(&format!("{OURS}/agents/"));
        self.hooks_at(&format!("{OURS}/hooks.json"));
        self.tools_in(&format!("{OURS}/tools/"));
        let servers = self.manifest.wants.servers.keys();
        let missing = servers.filter(|name| !self.parts.servers.iter().any(|it| it.own == **name));
        let missing = missing.map(|name| {
            format!("plugin.json: it asks for something for the server `{name}`, which is not used")
        });
        self.parts.faults.extend(missing.collect::<Vec<_>>());
    }

    fn read_claudes(&mut self) {
        for name in self.places("skills", "skills") {
            if self.contents.has(&format!("{name}/SKILL.md")) {
                self.skill(&format!("{name}/SKILL.md"));
            } else {
                self.skills_in(&format!("{name}/"));
            }
        }
        for name in self.places("commands", "commands") {
            match self.contents.has(&name) {
                true => self.command(&name, stem(&name)),
                false => self.commands_in(&format!("{name}/")),
            }
        }
        for name in self.places("agents", "agents") {
            match self.contents.has(&name) {
                true => self.agent(&name, stem(&name)),
                false => self.agents_in(&format!("{name}/")),
            }
        }
        for name in self.places("hooks", "hooks/hooks.json") {
            self.hooks_at(&name);
        }
        for name in self.places("mcpServers", ".mcp.json") {
            self.servers_at(&name);
        }
        if let Some(Value::Object(hooks)) = self.manifest.said.get("hooks").cloned() {
            self.hooks(hooks, ".claude-plugin/plugin.json");
        }
        if let Some(Value::Object(servers)) = self.manifest.said.get("mcpServers").cloned() {
            self.servers(servers, ".claude-plugin/plugin.json");
        }
        const PARTS: [&str; 5] = ["commands", "agents", "skills", "hooks", "mcpServers"];
        let strange = self.manifest.said.keys().map(String::as_str);
        let strange = strange.filter(|key| !COMMON.contains(key) && !PARTS.contains(key));
        let strange = strange.map(|key| format!("`{key}` in the manifest is not known here"));
        self.parts.faults.extend(strange.collect::<Vec<_>>());
        for folder in ["output-styles/", "monitors/", "themes/", "bin/"] {
            if self.contents.beneath(folder).next().is_some() {
                self.parts.faults.push(format!("{folder} is not used here"));
            }
        }
        if self.contents.has(".lsp.json") {
            self.parts.faults.push(".lsp.json is not used here".to_owned());
        }
    }

    /// Where Claude's manifest says something is, besides where it usually is.
    fn places(&mut self, key: &str, usual: &str) -> Vec<String> {
        let folder = format!("{usual}/");
        let there = self.contents.has(usual) || self.contents.beneath(&folder).next().is_some();
        let mut places: Vec<String> = there.then(|| usual.to_owned()).into_iter().collect();
        let named: Vec<Value> = match self.manifest.said.get(key) {
            None | Some(Value::Object(_)) => Vec::new(),
            Some(Value::Array(names)) => names.clone(),
            Some(one) => vec![one.clone()],
        };
        for name in named.into_iter().take(MOST) {
            let Some(name) = name.as_str() else {
                self.parts.faults.push(format!("`{key}` in the manifest is no list of paths"));
                continue;
            };
            let short = name.strip_prefix("./").unwrap_or(name).trim_end_matches('/');
            let inside = self.contents.has(short)
                || self.contents.beneath(&format!("{short}/")).next().is_some();
            match inside {
                true if places.iter().any(|place| place == short) => {}
                true => places.push(short.to_owned()),
                false => self.fault(name, "it is not in the plugin"),
            }
        }
        places
    }

    fn fault(&mut self, at: &str, why: &str) {
        self.parts.faults.push(format!("{at}: {why}"));
    }

    /// The text of a document, with what stands for the plugin's folders put in where that is usual.
    fn document(&self, name: &str) -> Result<String, String> {
        let text = self.contents.text(name).unwrap_or(Ok(""))?;
        Ok(match (self.manifest.format, name.starts_with("skills/")) {
            (Format::Agent, true) => text.to_owned(),
            (Format::Agent | Format::Claude, _) => self.lodging.put_in(text),
        })
    }

    fn skills_in(&mut self, folder: &str) {
        let files = self.contents.beneath(folder).map(|(name, _)| name);
        let files = files.filter(|name| {
            name.strip_suffix("/SKILL.md").is_some_and(|skill| !skill.contains('/'))
        });
        let files: Vec<String> = files.map(|name| format!("{folder}{name}")).collect();
        for file in self.bounded(folder, files) {
            self.skill(&file);
        }
    }

    fn skill(&mut self, file: &str) {
        let path = self.lodging.root.join(file);
        let text = self.document(file);
        match text.and_then(|text| skills::read(&path, &text).map_err(|(_, why)| why)) {
            Ok(skill) if self.parts.skills.iter().any(|known| known.name == skill.name) => {
                self.fault(file, "there is another skill of this name");
            }
            Ok(skill) => self.parts.skills.push(skill),
            Err(why) => self.fault(file, &why),
        }
    }

    /// Documents in a folder, and in folders in it, with the names that their places give them.
    fn documents(&mut self, folder: &str) -> Vec<(String, String)> {
        let files = self.contents.beneath(folder).map(|(name, _)| name);
        let files = files.filter(|name| name.ends_with(".md") && *name != "README.md");
        let files: Vec<String> = files.map(str::to_owned).collect();
        let name = |file: &String| file.trim_end_matches(".md").replace('/', "-");
        let files = self.bounded(folder, files);
        files.into_iter().map(|file| (format!("{folder}{file}"), name(&file))).collect()
    }

    fn commands_in(&mut self, folder: &str) {
        for (file, name) in self.documents(folder) {
            self.command(&file, &name);
        }
    }

    fn command(&mut self, file: &str, name: &str) {
        let name = format!("{}-{name}", self.manifest.name);
        let path = self.lodging.root.join(format!("{name}.md"));
        let text = self.document(file);
        match text.and_then(|text| commands::read(&path, &text).map_err(|(_, why)| why)) {
            Ok(command) if self.parts.commands.iter().any(|known| known.name == command.name) => {
                self.fault(file, "there is another command of this name");
            }
            Ok(command) => self.parts.commands.push(command),
            Err(why) => self.fault(file, &why),
        }
    }

    fn agents_in(&mut self, folder: &str) {
        for (file, name) in self.documents(folder) {
            self.agent(&file, &name);
        }
    }

    fn agent(&mut self, file: &str, name: &str) {
        let text = self.document(file);
        let front = text.and_then(|text| {
            front::read(&text).map_err(|unread| format!("line {}: {}", unread.line, unread.message))
        });
        let mut front = match front {
            Ok(front) => front,
            Err(why) => return self.fault(file, &why),
        };
        if self.manifest.format == Format::Claude {
            let unknown = adopt(&mut front.settings);
            if !unknown.is_empty() {
                let unknown = unknown.join(", ");
                self.fault(file, &format!("the agent goes without {unknown}, not known here"));
            }
        }
        let name = format!("{}-{name}", self.manifest.name);
        let path = self.lodging.root.join(file);
        let written = Written { name, front, path };
        match crate::agents::objection(&written) {
            Some(why) => self.fault(file, &why),
            None if self.parts.agents.iter().any(|known| known.name == written.name) => {
                self.fault(file, "there is another agent of this name");
            }
            None => self.parts.agents.push(written),
        }
    }

    fn servers_at(&mut self, file: &str) {
        let Some(text) = self.contents.text(file) else { return };
        match text.and_then(parsed) {
            Err(why) => self.fault(file, &why),
            Ok(mut said) => match (said.remove("mcpServers"), self.manifest.format) {
                (Some(Value::Object(servers)), _) => self.servers(servers, file),
                (None, Format::Claude) => self.servers(said, file),
                (Some(_) | None, _) => self.fault(file, "it has no `mcpServers`"),
            },
        }
    }

    fn servers(&mut self, servers: Map<String, Value>, file: &str) {
        if servers.len() > MOST {
            return self.fault(file, &format!("it has more than {MOST} servers"));
        }
        for (own, value) in servers {
            let at = format!("{file}: the server `{own}`");
            match Wired::read(&own, &value, self.manifest, self.lodging) {
                Err(why) => self.fault(&at, &why),
                Ok(wired) if self.parts.servers.iter().any(|known| known.name == wired.name) => {
                    self.fault(&at, "there is another server of this name");
                }
                Ok(wired) => self.parts.servers.push(wired),
            }
        }
    }

    fn hooks_at(&mut self, file: &str) {
        let Some(text) = self.contents.text(file) else { return };
        let hooks = text.and_then(parsed).and_then(|mut said| match said.remove("hooks") {
            Some(Value::Object(hooks)) => Ok(hooks),
            Some(_) | None => Err("it has no `hooks`".to_owned()),
        });
        match hooks {
            Ok(hooks) => self.hooks(hooks, file),
            Err(why) => self.fault(file, &why),
        }
    }

    fn hooks(&mut self, hooks: Map<String, Value>, file: &str) {
        for (name, entries) in hooks {
            let at = format!("{file}: {name}");
            let point = match hook_point(&name) {
                Ok(point) => point,
                Err(why) => {
                    self.fault(&at, &why);
                    continue;
                }
            };
            let Value::Array(entries) = entries else {
                self.fault(&at, "it is no list of hooks");
                continue;
            };
            for entry in entries {
                match hook_entry(entry, point, Layer::Plugin) {
                    Err(why) => self.fault(&at, &why),
                    Ok(read) => read.into_iter().for_each(|hook| self.hook(hook)),
                }
            }
        }
    }

    fn hook(&mut self, mut hook: HookSpec) {
        if self.parts.hooks.len() >= MOST {
            return self.fault("hooks", &format!("there are more than {MOST}"));
        }
        let (plugin, count) = (&self.manifest.name, self.parts.hooks.len() + 1);
        hook.name = match hook.name.as_str() {
            "" => format!("{plugin}-{}-{count}", hook.point),
            name => format!("{plugin}-{name}"),
        };
        if let HookCommand::Argv(words) = &mut hook.command {
            words.iter_mut().for_each(|word| *word = self.lodging.put_in(word));
        }
        hook.plugin = Some(self.lodging.clone());
        self.parts.hooks.push(hook);
    }

    fn tools_in(&mut self, folder: &str) {
        let files = self.contents.beneath(folder);
        let files = files.filter(|(name, _)| !name.contains('/'));
        let files: Vec<(String, Kind)> =
            files.map(|(name, item)| (name.to_owned(), item.kind)).collect();
        for (file, kind) in self.bounded(folder, files) {
            let whole = format!("{folder}{file}");
            match role(&file, kind) {
                Role::Beside => {}
                Role::Stray => self.fault(&whole, "it is no program, so it is no tool"),
                Role::Tool { name, is_script } => {
                    self.parts.tools.push(Implement { name, file: whole, is_script });
                }
            }
        }
    }

    fn bounded<T>(&mut self, folder: &str, mut files: Vec<T>) -> Vec<T> {
        if files.len() > MOST {
            self.fault(folder, &format!("only the first {MOST} of {} are used", files.len()));
            files.truncate(MOST);
        }
        files
    }
}

fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_suffix(".md").unwrap_or(file)
}

/// Makes an agent of Claude's one of ours: it works for others, with the tools that it lists and no
/// more. Gives the tools it goes without.
fn adopt(settings: &mut Map<String, Value>) -> Vec<String> {
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
    let mut unknown = Vec::new();
    if let Some(names) = names.filter(|names| !names.iter().any(|name| name == "*")) {
        let mut tools = Map::new();
        tools.insert("*".to_owned(), false.into());
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let bare = name.split('(').next().unwrap_or(&name);
            match TOOLS.iter().find(|(theirs, _)| *theirs == bare) {
                Some((_, ours)) => drop(tools.insert((*ours).to_owned(), true.into())),
                None => unknown.push(name),
            }
        }
        settings.insert("tools".to_owned(), Value::Object(tools));
    }
    // Their names of models are not ours; without one it has the session's.
    settings.retain(|key, value| {
        matches!(key.as_str(), "description" | "tools" | "name")
            || key == "model" && value.as_str().is_some_and(|model| model.contains('/'))
    });
    settings.insert("mode".to_owned(), json!("subagent"));
    unknown
}
