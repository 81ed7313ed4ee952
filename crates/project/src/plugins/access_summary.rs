//! Summaries of a plugin's access for the user to review before approval, and of the changes since
//! the last approval.

use super::PluginCandidate;
use super::components::PluginComponents;
use super::contents::PluginContents;
use super::line_escaping::escape_line;
use super::manifest::PluginManifest;
use super::mcp_servers::PluginMcpServer;
use super::plugin_folders::PluginDirs;
use crate::config::HookCommand;

/// Limits the changed files that are listed.
const MAX_NAMED_FILES: usize = 30;

/// The changes compared with the `InstalledPlugin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginDiff {
    /// Access that is new.
    pub added_access: Vec<String>,
    /// Access that is gone.
    pub removed_access: Vec<String>,
    /// Files, each with a mark: `+` for added, `~` for changed, `-` for removed.
    pub files: Vec<String>,
    /// `true` if the installed files cannot be compared, because they changed since they were
    /// added.
    pub cannot_compare: bool,
}

impl PluginDiff {
    pub(super) fn between(
        previous: Option<PluginCandidate>,
        current: &PluginCandidate,
    ) -> PluginDiff {
        let Some(previous) = previous else {
            return PluginDiff {
                added_access: current.access_lines.clone(),
                cannot_compare: true,
                ..PluginDiff::default()
            };
        };
        let difference = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|line| !other.contains(line)).cloned().collect()
        };
        PluginDiff {
            added_access: difference(&current.access_lines, &previous.access_lines),
            removed_access: difference(&previous.access_lines, &current.access_lines),
            files: changed_files(&previous.contents, &current.contents),
            cannot_compare: false,
        }
    }

    /// Returns `true` if nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == PluginDiff::default()
    }
}

fn changed_files(previous: &PluginContents, current: &PluginContents) -> Vec<String> {
    let mut files = current.changed_names(previous);
    let omitted = files.len().saturating_sub(MAX_NAMED_FILES);
    if omitted > 0 {
        files.truncate(MAX_NAMED_FILES);
        files.push(format!("… and {omitted} more"));
    }
    files
}

/// Describes the access of a plugin, one line per component.
pub(super) fn access_lines(
    manifest: &PluginManifest,
    components: &PluginComponents,
    plugin_dirs: &PluginDirs,
) -> Vec<String> {
    let mut lines: Vec<String> = components.servers.iter().map(describe_server).collect();
    for hook in &components.hooks {
        let command = match &hook.command {
            HookCommand::Argv(words) => quote_words(words),
            HookCommand::Shell(line) => format!("bash -c {line:?}"),
            HookCommand::Http { url, .. } => format!("request to {url}"),
            HookCommand::Prompt(prompt) => format!("prompt {prompt:?}"),
        };
        let subject = hook.matcher.as_deref().unwrap_or("everything");
        let access = describe_access(hook.write, &hook.network, "reaches no host");
        let (name, point) = (&hook.name, hook.point);
        lines.push(format!("hook {name}: at {point}, about {subject}; runs {command}; {access}"));
    }
    let tool_access = &manifest.access.tools;
    for tool in &components.tools {
        let default_hosts = "reaches the hosts in `sandbox.network`";
        let access = describe_access(tool_access.write, &tool_access.network, default_hosts);
        let hooks =
            if tool.is_script { "; its hooks see calls and can change or deny them" } else { "" };
        lines.push(format!("tool {}: runs {}; {access}{hooks}", tool.prefix, tool.file));
    }
    if components.tools.iter().any(|tool| tool.is_script) {
        lines.push("its scripts read the conversation of each session that they run in".to_owned());
    }
    let describe_names = |kind: &str, names: Vec<&str>| match names.as_slice() {
        [] => None,
        [one] => Some(format!("1 {kind}: {one}")),
        several => Some(format!("{} {kind}s: {}", several.len(), several.join(", "))),
    };
    let skills = components.skills.iter().map(|skill| skill.name.as_str()).collect();
    let commands = components.commands.iter().map(|command| command.name.as_str()).collect();
    let agents = components.agents.iter().map(|agent| agent.name.as_str()).collect();
    lines.extend(describe_names("skill", skills));
    lines.extend(describe_names("command", commands));
    lines.extend(describe_names("agent", agents));
    lines.iter().map(|line| escape_line(&plugin_dirs.abbreviate_dirs(line))).collect()
}

/// Quotes words so that they can be told apart.
fn quote_words(words: &[String]) -> String {
    let needs_quotes = |word: &String| word.is_empty() || word.contains([' ', '"', '\'', '\\']);
    let quote = |word: &String| if needs_quotes(word) { format!("{word:?}") } else { word.clone() };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn describe_server(plugin_server: &PluginMcpServer) -> String {
    let server = &plugin_server.server;
    let mut line = format!("server {}: ", plugin_server.name);
    match (&server.command, &server.url) {
        (Some(command), _) => {
            line.push_str(&format!("runs {}", quote_words(command)));
            let hosts = server.network.as_deref().unwrap_or_default();
            let default_hosts = "reaches the hosts in `sandbox.network`";
            line.push_str(&format!(
                "; {}",
                describe_access(server.write == Some(true), hosts, default_hosts)
            ));
            line.push_str(&join_names("sets", server.env.keys()));
        }
        (None, url) => {
            line.push_str(&format!("reaches {}", url.as_deref().unwrap_or_default()));
            line.push_str(&join_names("sends the headers", server.headers.keys()));
        }
    }
    line.push_str(&join_names("reads your environment variables", plugin_server.env_names.iter()));
    line
}

fn join_names<'a>(verb: &str, names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { String::new() } else { format!("; {verb} {}", names.join(", ")) }
}

fn describe_access(write: bool, hosts: &[String], default_hosts: &str) -> String {
    let project = if write { "READS AND WRITES the project" } else { "reads the project" };
    let hosts = match hosts {
        [] => default_hosts.to_owned(),
        hosts => format!("reaches {}", hosts.join(", ")),
    };
    format!("{project}, {hosts}")
}
