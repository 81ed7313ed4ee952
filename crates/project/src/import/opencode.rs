//! Imports OpenCode's config and folders: `opencode.jsonc` and `.opencode`.

use super::agents_and_skills::{self, ImportAgentFormat};
use super::plan_builder::ImportPlanBuilder;
use super::{
    ImportScope, lsp_and_formatters, mcp_servers, opencode_appearance,
    opencode_permission_settings, opencode_providers, secret_detection,
};
use crate::plugins::NpmPackageSpec;
use serde_json::{Map, Value};

const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Settings that are not imported, with the reason.
const SKIP_REASONS: [(&str, &str); 18] = [
    ("tui", "OpenCode's screen settings have no equivalent"),
    ("layout", "OpenCode's screen settings have no equivalent"),
    ("default_agent", "choose an agent with `windlass run --agent`"),
    ("share", "sessions are shared only with `windlass session share`"),
    ("autoshare", "sessions are shared only with `windlass session share`"),
    ("autoupdate", "Windlass does not update itself"),
    ("snapshot", "file changes of a session can always be undone"),
    ("compaction", "long sessions are compacted automatically"),
    ("username", "Windlass shows no user name"),
    ("logLevel", "set the environment variable WINDLASS_LOG"),
    ("disabled_providers", "a provider is used only when you choose one of its models"),
    ("enabled_providers", "a provider is used only when you choose one of its models"),
    ("watcher", "changed files are detected without it"),
    ("server", "OpenCode's server settings are not supported"),
    ("experimental", "Windlass has no equivalent"),
    ("enterprise", "Windlass has no equivalent"),
    ("skills", "skills are loaded only from their own folders"),
    ("references", "list files in `instructions`"),
];

pub(super) fn import_opencode(builder: &mut ImportPlanBuilder<'_>) {
    let (folder, configs): (_, &[&str]) = match builder.scope {
        ImportScope::User => ("opencode", &["opencode/opencode.jsonc", "opencode/opencode.json"]),
        ImportScope::Project => (
            ".opencode",
            &[
                ".opencode/opencode.jsonc",
                ".opencode/opencode.json",
                "opencode.jsonc",
                "opencode.json",
            ],
        ),
    };
    for name in configs {
        let Some(map) = builder.read_json_object(name, MAX_CONFIG_BYTES) else { continue };
        let base = name.rsplit_once('/').map_or("", |(base, _)| base);
        for (key, value) in map {
            import_setting(builder, (folder, base), &key, value);
        }
    }
    for name in ["tui.json", "tui.jsonc"].map(|name| format!("{folder}/{name}")) {
        let Some(map) = builder.read_json_object(&name, MAX_CONFIG_BYTES) else { continue };
        for (key, value) in map {
            match key.as_str() {
                "$schema" => {}
                "theme" => opencode_appearance::import_theme(builder, folder, &value),
                "keybinds" => opencode_appearance::import_keys(builder, value),
                key => {
                    let reason = "OpenCode's screen settings have no equivalent";
                    builder.skip(format!("{name}: {key}"), reason);
                }
            }
        }
    }
    let in_folder = |name: &str| format!("{folder}/{name}");
    for name in ["agent", "agents"] {
        agents_and_skills::import_agents(builder, &in_folder(name), ImportAgentFormat::OpenCode);
    }
    for name in ["command", "commands"] {
        agents_and_skills::import_commands(builder, &in_folder(name));
    }
    let reason = match builder.scope {
        ImportScope::User => "read in place",
        ImportScope::Project => "read in place once you trust the folder",
    };
    let skills = ["skill", "skills"].map(|name| (in_folder(name), reason));
    agents_and_skills::note_read_in_place(builder, &skills);
    let tools = ["tool", "tools", "plugin", "plugins"];
    match builder.scope {
        ImportScope::User => {
            for name in tools {
                let target = if name.starts_with("tool") { "tools" } else { "plugins" };
                agents_and_skills::import_tools(builder, &in_folder(name), target);
            }
        }
        ImportScope::Project => {
            let rows = tools.map(|name| (in_folder(name), reason));
            agents_and_skills::note_read_in_place(builder, &rows);
        }
    }
    if builder.files.iter().any(|file| file.name.starts_with("tools/"))
        && (builder.source.exists(&in_folder("node_modules"))
            || builder.source.exists(&in_folder("package.json")))
    {
        builder.add_note(
            "packages that a tool imports are not copied; `@opencode-ai/plugin` and `zod` are \
             built in",
        );
    }
    for (name, reason) in
        [("mode", "move its files to `agent`"), ("modes", "move its files to `agent`")]
    {
        if builder.source.exists(&in_folder(name)) {
            builder.read_files.push(builder.source.display_name(&in_folder(name)));
            builder.skip(builder.source.display_name(&in_folder(name)), reason);
        }
    }
    if builder.scope == ImportScope::User {
        super::claude::import_instructions(builder, "opencode/AGENTS.md");
    }
    builder.report_document_keys();
}

/// Imports the list of plugins. The list runs no code: its packages count once the user adds them.
fn import_plugins(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Value::Array(plugins) = value else { return builder.skip("plugin", "not a list") };
    for plugin in plugins {
        let (name, options) = match &plugin {
            Value::Array(parts) => (parts.first().and_then(Value::as_str), parts.get(1)),
            name => (name.as_str(), None),
        };
        let Some(name) = name else {
            builder.skip("plugin", "an entry is not a string");
            continue;
        };
        if name.starts_with(['.', '/', '~']) || name.contains("://") {
            let reason = "files in `plugin` and `plugins` are plugins without an entry; put others \
                          there";
            builder.skip(format!("plugin {name}"), reason);
            continue;
        }
        let package = name.strip_suffix("@latest").unwrap_or(name);
        if NpmPackageSpec::parse(package).is_none() {
            builder.skip(format!("plugin {name}"), "not the name of an npm package");
            continue;
        }
        if options.is_some() {
            builder.skip(format!("plugin {name}: options"), "plugins have no options here");
        }
        builder.append_item(&["plugin"], package.into(), package);
        builder.add_note(
            "plugins in the list do not run yet: review and add them with `windlass plugin add`",
        );
    }
}

/// Replaces each `{file:…}` by the text of the file, which is relative to the folder of the config.
fn inline_files(builder: &ImportPlanBuilder<'_>, base: &str, text: &str) -> Result<String, String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("{file:") {
        let (name, after) = reference.split_once('}').ok_or("`{file:` is not closed")?;
        let name = name.trim();
        let name = name.strip_prefix("./").unwrap_or(name);
        let is_outside = name.starts_with(['/', '~'])
            || name.split('/').any(|part| part == "..")
            || name.contains(['\\', '{']);
        if is_outside {
            return Err(format!("{{file:{name}}} is outside the folder of the config"));
        }
        let path = if base.is_empty() { name.to_owned() } else { format!("{base}/{name}") };
        let content = builder.source.read_text(&path, MAX_CONFIG_BYTES)?;
        let content = content.ok_or_else(|| format!("{{file:{name}}} does not exist"))?;
        result.push_str(before);
        result.push_str(content.trim_end());
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn import_setting(
    builder: &mut ImportPlanBuilder<'_>,
    (folder, base): (&str, &str),
    key: &str,
    value: Value,
) {
    let into_object = |value: Value| match value {
        Value::Object(map) => Some(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    };
    match (key, value) {
        ("$schema", _) => {}
        ("model" | "small_model", Value::String(model)) if model.contains('/') => {
            if key == "small_model" && builder.scope == ImportScope::Project {
                return builder.skip(key, "a project cannot choose the small model");
            }
            builder.set_key(&[key], model.clone().into(), &model);
        }
        ("experimental", Value::Object(mut settings)) if builder.scope == ImportScope::User => {
            if let Some(Value::Array(tools)) = settings.shift_remove("primary_tools") {
                let names: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
                let (shown, names) = (names.join(", "), names.into());
                builder.set_key(&["subagents", "exclude_tools"], names, &shown);
            }
            let unsupported: Vec<&str> = settings.keys().map(String::as_str).collect();
            builder.skip_unsupported(key, &unsupported);
        }
        ("theme", value) => opencode_appearance::import_theme(builder, folder, &value),
        ("keybinds", value) => opencode_appearance::import_keys(builder, value),
        ("plugin", value) => import_plugins(builder, value),
        ("permission", value) => opencode_permission_settings::import_rules(builder, value),
        ("tools", value) => opencode_permission_settings::import_tool_switches(builder, value),
        ("instructions", Value::Array(patterns)) => import_instructions(builder, patterns),
        ("lsp" | "formatter", Value::Bool(enabled)) => {
            builder.set_key(&[key], enabled.into(), if enabled { "true" } else { "false" });
        }
        ("mcp" | "provider" | "agent" | "mode" | "command" | "lsp" | "formatter", value) => {
            let Some(map) = into_object(value) else { return builder.skip(key, "not an object") };
            for (name, value) in map {
                match key {
                    "mcp" => mcp_servers::import_opencode_server(builder, &name, value),
                    "provider" => opencode_providers::import_provider(builder, &name, value),
                    "command" => import_command(builder, base, &name, value),
                    "lsp" => lsp_and_formatters::import_language_server(builder, &name, value),
                    "formatter" => lsp_and_formatters::import_formatter(builder, &name, value),
                    _ => import_agent(builder, base, &name, value),
                }
            }
        }
        (key, _) => {
            let row = SKIP_REASONS.iter().find(|(known_key, _)| *known_key == key);
            builder.skip(key, row.map_or("Windlass has no such setting", |(_, reason)| *reason));
        }
    }
}

fn import_instructions(builder: &mut ImportPlanBuilder<'_>, patterns: Vec<Value>) {
    for pattern in patterns {
        let Value::String(pattern) = pattern else {
            builder.skip("instructions", "an entry is not a string");
            continue;
        };
        let pattern = pattern.strip_prefix("./").unwrap_or(&pattern).to_owned();
        let setting = format!("instructions \"{}\"", secret_detection::mask_command(&[&pattern]));
        if pattern.contains("://") {
            builder.skip(setting, "instructions are read only from files");
        } else if let Some(reason) = crate::instructions::pattern_problem(&pattern) {
            builder.skip(setting, format!("it {reason}"));
        } else {
            builder.append_item(&["instructions"], pattern.clone().into(), &pattern);
        }
    }
}

fn import_agent(builder: &mut ImportPlanBuilder<'_>, base: &str, name: &str, value: Value) {
    let setting = format!("agent.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    if let Some(reason) = agents_and_skills::name_problem(name) {
        return builder.skip(setting, reason);
    }
    let is_disabled = map.get("disable") == Some(&Value::Bool(true));
    collect_agent_options(builder, &setting, &mut map);
    if crate::agents::is_built_in(name) && !is_disabled {
        return import_built_in_agent(builder, name, map);
    }
    if let Some(steps) = map.shift_remove("maxSteps") {
        map.entry("steps").or_insert(steps);
    }
    let known_keys = [
        "description",
        "mode",
        "model",
        "temperature",
        "variant",
        "steps",
        "options",
        "tools",
        "permission",
        "prompt",
        "disable",
    ];
    let unsupported: Vec<String> =
        map.keys().filter(|key| !known_keys.contains(&key.as_str())).cloned().collect();
    builder.skip_unsupported(&setting, &unsupported.iter().map(String::as_str).collect::<Vec<_>>());
    map.retain(|key, _| known_keys.contains(&key.as_str()));
    if let Some(rules) = map.get("permission").cloned() {
        let rules_setting = format!("{setting}.permission");
        let rules = opencode_permission_settings::convert_rules(builder, &rules_setting, &rules);
        match rules.filter(|rules| !rules.is_empty()) {
            Some(rules) => drop(map.insert("permission".to_owned(), rules.into())),
            None => drop(map.shift_remove("permission")),
        }
    }
    let prompt = map.get("prompt").and_then(Value::as_str).filter(|text| text.contains("{file:"));
    if let Some(prompt) = prompt {
        return match inline_files(builder, base, prompt) {
            Ok(prompt) => {
                map.shift_remove("prompt");
                agents_and_skills::add_agent_file(builder, name, setting, &map, &prompt);
            }
            Err(reason) => builder.skip(setting, reason),
        };
    }
    let description = match map.get("description").and_then(Value::as_str) {
        _ if is_disabled => "off".to_owned(),
        Some(text) => windlass_protocol::display_text::truncate_chars(text.trim(), 60),
        None => "an agent".to_owned(),
    };
    builder.set_key(&["agent", name], map.into(), &description);
}

/// Moves the options of an agent's model into `options`.
fn collect_agent_options(
    builder: &mut ImportPlanBuilder<'_>,
    setting: &str,
    map: &mut Map<String, Value>,
) {
    let mut options = match map.shift_remove("options") {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    };
    for key in ["top_p", "topP", "topK", "maxOutputTokens", "reasoningEffort"] {
        options.extend(map.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    if options.is_empty() {
        return;
    }
    let options =
        opencode_providers::convert_options(builder, &format!("{setting}.options"), options);
    if !options.is_empty() {
        map.insert("options".to_owned(), options.into());
    }
}

/// Imports what changes a built-in agent without replacing it: the options of its model.
fn import_built_in_agent(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    mut map: Map<String, Value>,
) {
    let mut options = match map.shift_remove("options") {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    };
    options.extend(map.shift_remove("temperature").map(|value| ("temperature".to_owned(), value)));
    map.shift_remove("disable");
    map.shift_remove("mode");
    map.shift_remove("description");
    if !map.is_empty() {
        let keys: Vec<&str> = map.keys().map(String::as_str).collect();
        let setting = format!("agent.{name}: {}", keys.join(", "));
        builder.skip(setting, agents_and_skills::built_in_agent_reason(name));
    }
    if !options.is_empty() {
        let description = Value::Object(options.clone()).to_string();
        builder.set_key(&["agent", name, "options"], options.into(), &description);
    }
}

fn import_command(builder: &mut ImportPlanBuilder<'_>, base: &str, name: &str, value: Value) {
    let setting = format!("command.{name}");
    let template = value.get("template").and_then(Value::as_str);
    let (Value::Object(map), Some(template)) = (&value, template) else {
        return builder.skip(setting, "missing `template`");
    };
    if template.contains("{env:") {
        return builder.skip(setting, "`{env:…}` is not supported in commands");
    }
    let template = match inline_files(builder, base, template) {
        Ok(template) => template,
        Err(reason) => return builder.skip(setting, reason),
    };
    // A file that is inlined may have settings of its own.
    let template = match crate::front_matter::parse_front_matter(&template) {
        Ok(front) => front.body,
        Err(_) => template,
    };
    let mut head = String::new();
    let mut unsupported = Vec::new();
    for (key, value) in map {
        match (key.as_str(), value) {
            ("template", _) => {}
            ("description" | "agent" | "model", Value::String(text)) => {
                head += &format!("{key}: {}\n", agents_and_skills::quote_yaml(text));
            }
            ("subtask", Value::Bool(is_subtask)) => head += &format!("{key}: {is_subtask}\n"),
            (key, _) => unsupported.push(key),
        }
    }
    builder.skip_document_keys("commands", &setting, &unsupported);
    let text = format!("---\n{head}---\n\n{template}\n");
    agents_and_skills::import_command(builder, name, setting, text);
}
