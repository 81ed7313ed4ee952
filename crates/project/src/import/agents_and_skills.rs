//! Imports agents, commands and tools that are files. Files that our own readers would
//! reject are not copied, and front matter keys that our readers do not know are removed.

use super::opencode_permission_settings;
use super::plan_builder::{ImportPlanBuilder, ImportedFile};
use super::source_files::ImportSourceEntry;
use crate::claude_permission_rules;
use crate::custom_commands::template::parse_command;
use crate::{agents, front_matter};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// Limits of a document, and of a file beside one.
const MAX_DOCUMENT_BYTES: u64 = 1 << 20;
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The front matter keys of a command.
const COMMAND_KEYS: [&str; 6] =
    ["description", "agent", "model", "subtask", "allowed-tools", "argument-hint"];

/// The program whose format an agent file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportAgentFormat {
    OpenCode,
    Claude,
}

pub(super) fn import_agents(
    builder: &mut ImportPlanBuilder<'_>,
    folder: &str,
    format: ImportAgentFormat,
) {
    for entry in list_documents(builder, folder) {
        let source = builder.source.display_name(&entry.full_name);
        let Some((name, text)) = read_document(builder, &entry) else { continue };
        let converted = match format {
            ImportAgentFormat::OpenCode => convert_opencode_agent(builder, &name, &source, text),
            ImportAgentFormat::Claude => convert_claude_agent(builder, &name, &source, &text),
        };
        let Some((name, text)) = converted else { continue };
        if let Some(reason) = name_problem(&name) {
            builder.skip(source, reason);
            continue;
        }
        if agents::is_built_in(&name) {
            builder.skip(source, built_in_agent_reason(&name));
            continue;
        }
        let checked = agents::check_agent_file(&name, &text);
        let rules = checked.as_ref().ok().and_then(|(settings, _)| settings.get("permission"));
        let rules_problem = rules.and_then(|rules| builder.checks.check_rules(rules));
        match (checked, rules_problem) {
            (Err(reason), _) | (Ok(_), Some(reason)) => builder.skip(source, reason),
            (Ok(_), None) => {
                let (name, bytes) = (format!("agents/{name}.md"), text.into_bytes());
                builder.add_file(ImportedFile { name, source, bytes, is_executable: false });
            }
        }
    }
}

/// Adds an agent of the config as a file of its own.
pub(super) fn add_agent_file(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    setting: String,
    settings: &Map<String, Value>,
    prompt: &str,
) {
    // JSON is YAML.
    let head = settings.iter().map(|(key, value)| format!("{key}: {value}\n"));
    let text = format!("---\n{}---\n\n{}\n", head.collect::<String>(), prompt.trim());
    let checked = agents::check_agent_file(name, &text);
    let rules = checked.as_ref().ok().and_then(|(settings, _)| settings.get("permission"));
    let rules_problem = rules.and_then(|rules| builder.checks.check_rules(rules));
    match (checked, rules_problem) {
        (Err(reason), _) | (Ok(_), Some(reason)) => builder.skip(setting, reason),
        (Ok(_), None) => builder.add_file(ImportedFile {
            name: format!("agents/{name}.md"),
            source: setting,
            bytes: text.into_bytes(),
            is_executable: false,
        }),
    }
}

/// Returns the reason why an agent with a built-in name is not imported.
pub(super) fn built_in_agent_reason(name: &str) -> String {
    format!(
        "Windlass has a built-in agent `{name}` with its own restrictions, which yours would \
         replace; rename yours"
    )
}

/// Returns the problem with a name, if any.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_valid =
        (1..=64).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_name_char);
    (!is_valid).then(|| "invalid name: use up to 64 letters, digits, `-`, `_` and `.`".into())
}

/// Converts an agent in OpenCode's format, which differs from ours in a few keys.
fn convert_opencode_agent(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    source: &str,
    text: String,
) -> Option<(String, String)> {
    let text = translate_agent_rules(builder, source, text);
    match agents::check_agent_file(name, &text) {
        Err(reason) => {
            builder.skip(source, reason);
            None
        }
        Ok((_, unknown_keys)) if unknown_keys.is_empty() => Some((name.to_owned(), text)),
        Ok((_, unknown_keys)) => {
            let folder = source.rsplit_once('/').map_or("agents", |(folder, _)| folder);
            builder.skip_document_keys(
                folder,
                source,
                &unknown_keys.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            let stripped = remove_front_matter_keys(&text, &unknown_keys);
            let is_clean = agents::check_agent_file(name, &stripped)
                .is_ok_and(|(_, unknown_keys)| unknown_keys.is_empty());
            Some((name.to_owned(), if is_clean { stripped } else { text }))
        }
    }
}

/// Replaces the `permission` rules of an agent, in which the last match counts, by ours.
fn translate_agent_rules(
    builder: &mut ImportPlanBuilder<'_>,
    source: &str,
    text: String,
) -> String {
    let front = front_matter::parse_front_matter(&text);
    let Some(rules) = front.ok().and_then(|front| front.settings.get("permission").cloned()) else {
        return text;
    };
    let setting = format!("{source}: permission");
    let converted = opencode_permission_settings::convert_rules(builder, &setting, &rules);
    let converted = Value::from(converted.unwrap_or_default());
    if converted == rules {
        return text;
    }
    let stripped = remove_front_matter_keys(&text, &["permission".to_owned()]);
    // JSON is YAML.
    match stripped.strip_prefix("---\n") {
        Some(rest) if converted.as_object().is_some_and(|rules| !rules.is_empty()) => {
            format!("---\npermission: {converted}\n{rest}")
        }
        Some(_) | None => stripped,
    }
}

/// Removes keys from the front matter of a document.
fn remove_front_matter_keys(text: &str, keys: &[String]) -> String {
    let mut kept_lines = Vec::new();
    let mut fences = 0;
    let mut skipping = false;
    for line in text.lines() {
        if fences < 2 && line.trim_end() == "---" {
            fences += 1;
            skipping = false;
        } else if fences == 1 && !line.starts_with([' ', '\t', '-', '#']) && !line.is_empty() {
            let key = line.split(':').next().unwrap_or_default().trim();
            skipping = keys.iter().any(|name| name == key.trim_matches(['"', '\'']));
        }
        if !(skipping && fences == 1) {
            kept_lines.push(line);
        }
    }
    kept_lines.join("\n") + "\n"
}

/// Converts an agent from Claude's format into ours.
fn convert_claude_agent(
    builder: &mut ImportPlanBuilder<'_>,
    stem: &str,
    source: &str,
    text: &str,
) -> Option<(String, String)> {
    let front = match front_matter::parse_front_matter(text) {
        Ok(front) => front,
        Err(error) => {
            builder.skip(source, format!("line {}: {}", error.line, error.message));
            return None;
        }
    };
    let mut settings = front.settings;
    let folder = source.rsplit_once('/').map_or("agents", |(folder, _)| folder);
    let text_of = |settings: &mut Map<String, Value>, key: &str| {
        settings
            .shift_remove(key)
            .and_then(|value| value.as_str().map(|text| text.trim().to_owned()))
    };
    let name = text_of(&mut settings, "name").map(|name| name.replace(' ', "-"));
    let name = name.filter(|name| name_problem(name).is_none());
    let name = name.unwrap_or_else(|| stem.to_owned());
    let description = text_of(&mut settings, "description").unwrap_or_default();
    let mut head = vec!["---".to_owned(), format!("description: {}", quote_yaml(&description))];
    head.push("mode: subagent".to_owned());
    match text_of(&mut settings, "model").as_deref() {
        None | Some("inherit") => {}
        Some(model) if model.starts_with("claude-") => {
            head.push(format!("model: {}", quote_yaml(&format!("anthropic/{model}"))));
        }
        Some(model @ ("opus" | "sonnet" | "haiku")) => {
            builder.skip_document_keys(folder, source, &[&format!("model {model}")]);
        }
        Some(model) => builder.skip(
            format!("{source}: model {model}"),
            "a model needs its provider and full name; the agent uses your model until you set \
             `model: PROVIDER/MODEL`",
        ),
    }
    let allowed = settings.shift_remove("tools");
    let disallowed = settings.shift_remove("disallowedTools");
    let lists = [(parse_name_list(allowed), "true"), (parse_name_list(disallowed), "false")];
    let mut lines: Vec<String> = Vec::new();
    for (tools, enabled) in lists {
        if enabled == "true" && !tools.is_empty() && !tools.iter().any(|tool| tool == "*") {
            lines.push("  \"*\": false".to_owned());
        }
        for tool in tools.iter().filter(|tool| *tool != "*") {
            let (tool_name, is_partial) =
                tool.split_once('(').map_or((tool.as_str(), false), |it| (it.0, true));
            let our_tools = match claude_permission_rules::map_mcp_tool(tool_name) {
                Some(key) => vec![key],
                None => builder.checks.tools_for_claude(tool_name),
            };
            match our_tools.as_slice() {
                [] => builder.skip(format!("{source}: {tool}"), "Windlass has no such tool"),
                _ if is_partial && enabled == "true" => builder.skip(
                    format!("{source}: {tool}"),
                    "a tool cannot be allowed in part, and the whole tool would be more; use \
                     `permission`",
                ),
                our_tools => {
                    lines.extend(
                        our_tools
                            .iter()
                            .map(|our_tool| format!("  {}: {enabled}", quote_yaml(our_tool))),
                    );
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    if !lines.is_empty() {
        head.push("tools:".to_owned());
        head.append(&mut lines);
    }
    let keys: Vec<&str> = settings.keys().map(String::as_str).collect();
    builder.skip_document_keys(folder, source, &keys);
    Some((name, format!("{}\n---\n\n{}\n", head.join("\n"), front.body)))
}

/// Parses a list of names, written as an array or as a string with commas.
fn parse_name_list(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::String(names)) => {
            // Parentheses may contain a comma.
            let mut parts = Vec::new();
            let mut depth = 0_u32;
            let mut name = String::new();
            for c in names.chars().chain([',']) {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if c == ',' && depth == 0 {
                    parts.push(std::mem::take(&mut name));
                } else {
                    name.push(c);
                }
            }
            let names = parts.into_iter().map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        }
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(|name| name.trim().to_owned()).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

/// Quotes a text for front matter.
pub(super) fn quote_yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {}
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

pub(super) fn import_commands(builder: &mut ImportPlanBuilder<'_>, folder: &str) {
    for entry in list_documents(builder, folder) {
        let source = builder.source.display_name(&entry.full_name);
        let Some((name, text)) = read_document(builder, &entry) else { continue };
        import_command(builder, &name, source, text);
    }
}

pub(super) fn import_command(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    source: String,
    text: String,
) {
    let name = &name.replace(':', "-");
    if let Some(reason) = name_problem(name) {
        return builder.skip(source, reason);
    }
    let file = format!("commands/{name}.md");
    if let Err((_, reason)) = parse_command(Path::new(&file), &text) {
        return builder.skip(source, reason);
    }
    let settings =
        front_matter::parse_front_matter(&text).map(|front| front.settings).unwrap_or_default();
    let unsupported = settings.keys().map(String::as_str).filter(|key| !COMMAND_KEYS.contains(key));
    let folder = source.rsplit_once('/').map_or("commands", |(folder, _)| folder);
    builder.skip_document_keys(folder, &source, &unsupported.collect::<Vec<_>>());
    builder.add_file(ImportedFile {
        name: file,
        source,
        bytes: text.into_bytes(),
        is_executable: false,
    });
}

/// Imports the tools or plugins of a folder, with the files beside them.
pub(super) fn import_tools(builder: &mut ImportPlanBuilder<'_>, folder: &str, target: &str) {
    for entry in list_files(builder, folder) {
        copy_file(builder, &entry, target);
    }
}

/// Lists files and folders that Windlass reads in place.
pub(super) fn note_read_in_place(builder: &mut ImportPlanBuilder<'_>, rows: &[(String, &str)]) {
    for (name, reason) in rows {
        if builder.source.exists(name) {
            let name = builder.source.display_name(name);
            builder.read_files.push(name.clone());
            builder.existing.push((name, (*reason).to_owned()));
        }
    }
}

fn copy_file(builder: &mut ImportPlanBuilder<'_>, entry: &ImportSourceEntry, target: &str) {
    let source = builder.source.display_name(&entry.full_name);
    match builder.source.read_bytes(&entry.full_name, MAX_FILE_BYTES) {
        Err(reason) => builder.skip(source, reason),
        Ok(None) => {}
        Ok(Some(file)) => {
            let name = format!("{target}/{}", entry.name);
            builder.add_file(ImportedFile {
                name,
                source,
                bytes: file.bytes,
                is_executable: file.is_executable,
            });
        }
    }
}

/// Lists the files of a folder and reports entries that cannot be read.
fn list_files(builder: &mut ImportPlanBuilder<'_>, folder: &str) -> Vec<ImportSourceEntry> {
    match builder.source.list_files(folder) {
        Ok(None) => Vec::new(),
        Err(reason) => {
            builder.read_files.push(builder.source.display_name(folder));
            builder.skip(builder.source.display_name(folder), reason);
            Vec::new()
        }
        Ok(Some((entries, faults))) => {
            builder.read_files.push(builder.source.display_name(folder));
            for (name, reason) in faults {
                builder.skip(builder.source.display_name(&name), reason);
            }
            entries
        }
    }
}

/// Lists the Markdown files of a folder and reports the others.
fn list_documents(builder: &mut ImportPlanBuilder<'_>, folder: &str) -> Vec<ImportSourceEntry> {
    let (documents, others): (Vec<ImportSourceEntry>, Vec<ImportSourceEntry>) =
        list_files(builder, folder).into_iter().partition(|entry| {
            Path::new(&entry.name).extension().is_some_and(|extension| extension == "md")
        });
    for entry in others {
        builder.skip(builder.source.display_name(&entry.full_name), "not a Markdown file");
    }
    documents
}

/// Returns the name and the text of a document. A document in a subfolder gets the folder's name as
/// prefix.
fn read_document(
    builder: &mut ImportPlanBuilder<'_>,
    entry: &ImportSourceEntry,
) -> Option<(String, String)> {
    match builder.source.read_text(&entry.full_name, MAX_DOCUMENT_BYTES) {
        Ok(text) => {
            let name = entry.name.strip_suffix(".md").unwrap_or(&entry.name).replace('/', "-");
            Some((name, text?))
        }
        Err(reason) => {
            builder.skip(builder.source.display_name(&entry.full_name), reason);
            None
        }
    }
}
