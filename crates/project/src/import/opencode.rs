//! Imports OpenCode's config and folders: `opencode.jsonc` and `.opencode`.

use super::agents_and_skills::{self, ImportAgentFormat};
use super::plan_builder::ImportPlanBuilder;
use super::{ImportScope, lsp_and_formatters, mcp_servers, secret_detection};
use serde_json::{Map, Value};

const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Settings that are not imported, with the reason.
const SKIP_REASONS: [(&str, &str); 21] = [
    ("theme", "choose a theme with `tui.theme` in your own config"),
    ("keybinds", "set key bindings with `tui.keys` in your own config"),
    ("tui", "OpenCode's screen settings are not supported"),
    ("layout", "OpenCode's screen settings are not supported"),
    ("plugin", "review and add plugins one by one with `windlass plugin add npm:NAME`"),
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

/// The npm packages of OpenCode's providers, such as `@ai-sdk/openai`, and the wire format of each.
const PROVIDER_PACKAGES: [(&str, &str); 4] = [
    ("@ai-sdk/openai-compatible", "openai-chat"),
    ("@ai-sdk/openai", "openai-responses"),
    ("@ai-sdk/anthropic", "anthropic"),
    ("@ai-sdk/google", "gemini"),
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
        for (key, value) in map {
            import_setting(builder, &key, value);
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
    for (name, reason) in [
        ("themes", "OpenCode themes are not supported; see `tui.theme` and `tui.colors`"),
        ("mode", "move its files to `agent`"),
        ("modes", "move its files to `agent`"),
    ] {
        if builder.source.exists(&in_folder(name)) {
            builder.read_files.push(builder.source.display_name(&in_folder(name)));
            builder.skip(builder.source.display_name(&in_folder(name)), reason);
        }
    }
    if builder.scope == ImportScope::User {
        super::claude::import_instructions(builder, "opencode/AGENTS.md");
    }
}

fn import_setting(builder: &mut ImportPlanBuilder<'_>, key: &str, value: Value) {
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
        ("permission", value) => import_rules(builder, value),
        ("tools", value) => import_tool_switches(builder, value),
        ("instructions", Value::Array(patterns)) => import_instructions(builder, patterns),
        ("lsp" | "formatter", Value::Bool(enabled)) => {
            builder.set_key(&[key], enabled.into(), if enabled { "true" } else { "false" });
        }
        ("mcp" | "provider" | "agent" | "mode" | "command" | "lsp" | "formatter", value) => {
            let Some(map) = into_object(value) else { return builder.skip(key, "not an object") };
            for (name, value) in map {
                match key {
                    "mcp" => mcp_servers::import_opencode_server(builder, &name, value),
                    "provider" => import_provider(builder, &name, value),
                    "command" => import_command(builder, &name, value),
                    "lsp" => lsp_and_formatters::import_language_server(builder, &name, value),
                    "formatter" => lsp_and_formatters::import_formatter(builder, &name, value),
                    _ => import_agent(builder, &name, value),
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

/// Imports `permission` rules, one to one where we have the key.
fn import_rules(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let keys = match value {
        Value::String(level) => Map::from_iter([("*".to_owned(), level.into())]),
        Value::Object(keys) => keys,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return builder.skip("permission", "not an object");
        }
    };
    for (key, value) in keys {
        if let Some(reason) = unknown_key_reason(&key, &value) {
            builder.skip(format!("permission.{key}"), reason);
            continue;
        }
        match value {
            Value::Object(patterns) => {
                let mut has_deny = false;
                for (pattern, level) in patterns {
                    let is_permissive = level.as_str() != Some("deny");
                    if has_deny && is_permissive {
                        builder.add_note(format!(
                            "permission.{key}: a deny rule always wins here, regardless of its \
                             position; check the rules after it with `windlass permission list`"
                        ));
                    }
                    has_deny |= !is_permissive;
                    import_rule(builder, &["permission", &key, &pattern], level);
                }
            }
            level => import_rule(builder, &["permission", &key], level),
        }
    }
}

fn unknown_key_reason(key: &str, value: &Value) -> Option<&'static str> {
    match key {
        "websearch" | "codesearch" => Some("covered by `webfetch` rules"),
        "webfetch" if value.is_object() => {
            Some("`webfetch` rules name hosts, such as docs.rs or *.rust-lang.org")
        }
        "glob" | "grep" if value.as_str() == Some("deny") => None,
        "glob" | "grep" | "list" => Some("covered by `read` rules"),
        "lsp" if value.as_str() != Some("deny") => Some("covered by `read` rules"),
        _ => None,
    }
}

fn import_rule(builder: &mut ImportPlanBuilder<'_>, path: &[&str], level: Value) {
    let name = match path {
        [_, key, pattern] => format!("permission.{key} \"{pattern}\""),
        path => path.join("."),
    };
    let is_file_rule = path.get(1).is_some_and(|key| ["read", "edit"].contains(key));
    let is_outside =
        |pattern: &&str| pattern.starts_with(['/', '~']) || pattern.starts_with("$HOME");
    match (level.as_str(), builder.scope) {
        (Some("allow" | "ask" | "deny"), _)
            if is_file_rule && path.get(2).is_some_and(is_outside) =>
        {
            builder.skip(name, "file rules only match paths in the project");
        }
        (Some("allow"), ImportScope::Project) => {
            builder.skip(name, "a project's rules can only restrict, so its `allow` is dropped");
        }
        (Some(level @ ("allow" | "ask" | "deny")), _) => builder.set_key(path, level.into(), level),
        (Some(_) | None, _) => builder.skip(name, "not `allow`, `ask` or `deny`"),
    }
}

/// Imports disabled tools from OpenCode's old `tools` setting.
fn import_tool_switches(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Value::Object(map) = value else { return builder.skip("tools", "not an object") };
    for (tool, enabled) in map {
        match enabled {
            Value::Bool(false) if unknown_key_reason(&tool, &"deny".into()).is_none() => {
                let key = if tool == "write" { "edit" } else { &tool };
                builder.set_key(&["permission", key], "deny".into(), "deny");
            }
            Value::Bool(true) => builder.skip(format!("tools.{tool}"), "available by default"),
            _ => builder.skip(format!("tools.{tool}"), "Windlass has no such tool"),
        }
    }
}

fn import_agent(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("agent.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    if let Some(reason) = agents_and_skills::name_problem(name) {
        return builder.skip(setting, reason);
    }
    let is_disabled = map.get("disable") == Some(&Value::Bool(true));
    if crate::agents::is_built_in(name) && !is_disabled {
        return builder.skip(setting, agents_and_skills::built_in_agent_reason(name));
    }
    if secret_detection::contains_text(&Value::Object(map.clone()), "{file:") {
        let reason = format!("`{{file:…}}` is not supported; put its text in agents/{name}.md");
        return builder.skip(setting, reason);
    }
    let known_keys =
        ["description", "mode", "model", "temperature", "tools", "permission", "prompt", "disable"];
    let unsupported: Vec<String> =
        map.keys().filter(|key| !known_keys.contains(&key.as_str())).cloned().collect();
    builder.skip_unsupported(&setting, &unsupported.iter().map(String::as_str).collect::<Vec<_>>());
    map.retain(|key, _| known_keys.contains(&key.as_str()));
    let description = match map.get("description").and_then(Value::as_str) {
        _ if is_disabled => "off".to_owned(),
        Some(text) => windlass_protocol::display_text::truncate_chars(text.trim(), 60),
        None => "an agent".to_owned(),
    };
    builder.set_key(&["agent", name], map.into(), &description);
}

fn import_command(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("command.{name}");
    let template = value.get("template").and_then(Value::as_str);
    let (Value::Object(map), Some(template)) = (&value, template) else {
        return builder.skip(setting, "missing `template`");
    };
    if template.contains("{file:") || template.contains("{env:") {
        return builder.skip(setting, "`{file:…}` and `{env:…}` are not supported in commands");
    }
    let unsupported = map.keys().map(String::as_str);
    let unsupported: Vec<&str> =
        unsupported.filter(|key| !["template", "description"].contains(key)).collect();
    builder.skip_unsupported(&setting, &unsupported);
    let description = map.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!(
        "---\ndescription: {}\n---\n\n{template}\n",
        agents_and_skills::quote_yaml(description)
    );
    agents_and_skills::import_command(builder, name, setting, text);
}

fn import_provider(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("provider.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    let mut converted = Map::new();
    match map.shift_remove("npm").as_ref().and_then(Value::as_str) {
        Some(package) => {
            match PROVIDER_PACKAGES.iter().find(|(npm_name, _)| *npm_name == package) {
                Some((_, api)) => drop(converted.insert("api".into(), (*api).into())),
                None => {
                    let package = secret_detection::mask_line(package);
                    return builder
                        .skip(setting, format!("unsupported provider package `{package}`"));
                }
            }
        }
        None if builder.checks.canonical_provider(name).is_some() => {}
        None => {
            return builder.skip(setting, "unknown provider without a package (`npm`)");
        }
    }
    if builder.scope == ImportScope::Project && builder.checks.canonical_provider(name).is_some() {
        return builder.skip(setting, "a project cannot change a built-in provider");
    }
    if let Some(Value::Object(options)) = map.shift_remove("options") {
        import_options(builder, &setting, name, options, &mut converted);
    }
    if let Some(Value::Object(models)) = map.shift_remove("models") {
        let models = models.into_iter().map(|(id, model)| {
            let converted_model = convert_model(builder, &format!("{setting}.models.{id}"), model);
            (id, Value::Object(converted_model))
        });
        let models: Map<String, Value> = models.collect();
        converted.insert("models".into(), models.into());
    }
    map.shift_remove("name");
    builder.skip_unsupported(&setting, &map.keys().map(String::as_str).collect::<Vec<_>>());
    if converted.is_empty() {
        return;
    }
    let url = converted.get("base_url").and_then(Value::as_str).map(secret_detection::mask_url);
    let models = converted.get("models").and_then(Value::as_object).map_or(0, Map::len);
    let models = match models {
        0 => String::new(),
        1 => ", 1 model".to_owned(),
        count => format!(", {count} models"),
    };
    let key = if converted.contains_key("api_key") { ", with its API key (not shown)" } else { "" };
    let description = format!("{}{models}{key}", url.unwrap_or_else(|| "default URL".to_owned()));
    builder.set_key(&["provider", name], converted.into(), &description);
}

fn import_options(
    builder: &mut ImportPlanBuilder<'_>,
    parent: &str,
    name: &str,
    mut options: Map<String, Value>,
    converted: &mut Map<String, Value>,
) {
    let is_user = builder.scope == ImportScope::User;
    match options.shift_remove("baseURL") {
        Some(Value::String(url)) if url.contains("{env:") || url.contains("{file:") => {
            builder
                .skip(format!("{parent}.options.baseURL"), "variables are not supported in URLs");
        }
        Some(Value::String(url)) if !is_user && secret_detection::mask_url(&url) != url => {
            let reason = "it seems to contain a secret, which is never written to a project file";
            builder.skip(format!("{parent}.options.baseURL"), reason);
        }
        Some(url) => drop(converted.insert("base_url".into(), url)),
        None => {}
    }
    match options.shift_remove("apiKey") {
        Some(Value::String(key)) if is_user && !key.contains("{file:") => {
            let is_whole_reference = key.starts_with("{env:") && key.ends_with('}');
            if is_whole_reference || !key.contains("{env:") {
                converted.insert("api_key".into(), key.into());
            } else {
                builder.skip(
                    format!("{parent}.options.apiKey"),
                    "only a whole `{env:NAME}` is supported",
                );
            }
        }
        Some(_) => {
            let reason = if is_user {
                "`{file:…}` is not supported"
            } else {
                "API keys are never written to a project file"
            };
            let reason = format!("{reason}; save the key with `windlass auth login {name}`");
            builder.skip(format!("{parent}.options.apiKey"), reason);
        }
        None => {}
    }
    if let Some(Value::Object(headers)) = options.shift_remove("headers") {
        let mut imported = Map::new();
        for (header, value) in headers {
            let text = value.as_str().unwrap_or_default();
            let setting = format!("{parent}.options.headers.{header}");
            if text.contains("{env:") || text.contains("{file:") {
                builder.skip(setting, "variables are not supported in a provider's headers");
            } else if !is_user && secret_detection::is_secret(&header, text) {
                builder.skip(
                    setting,
                    "it looks like a secret, which is never written to a project file",
                );
            } else {
                imported.insert(header, value);
            }
        }
        if !imported.is_empty() {
            converted.insert("headers".into(), imported.into());
        }
    }
    let unsupported: Vec<&str> = options.keys().map(String::as_str).collect();
    builder.skip_unsupported(&format!("{parent}.options"), &unsupported);
}

/// Converts a model. `name`, `cost` and dates are dropped without a report.
fn convert_model(
    builder: &mut ImportPlanBuilder<'_>,
    setting: &str,
    model: Value,
) -> Map<String, Value> {
    let Value::Object(mut map) = model else { return Map::new() };
    let mut converted = Map::new();
    for (source_key, key) in [
        ("id", "id"),
        ("reasoning", "reasons"),
        ("tool_call", "calls"),
        ("temperature", "temperature"),
    ] {
        if let Some(value) = map.shift_remove(source_key) {
            converted.insert(key.to_owned(), value);
        }
    }
    if let Some(limit) = map.shift_remove("limit") {
        for key in ["context", "output"] {
            if let Some(value) = limit.get(key).and_then(Value::as_u64) {
                converted.insert(key.to_owned(), value.into());
            }
        }
    }
    let input_kinds = map.shift_remove("modalities");
    let input_kinds =
        input_kinds.as_ref().and_then(|kinds| kinds.get("input")).and_then(Value::as_array);
    if let Some(kinds) = input_kinds {
        for (kind, key) in [("image", "images"), ("pdf", "pdfs")] {
            converted
                .insert(key.to_owned(), kinds.iter().any(|it| it.as_str() == Some(kind)).into());
        }
        map.shift_remove("attachment");
    } else if let Some(value) = map.shift_remove("attachment") {
        converted.insert("images".into(), value);
    }
    for key in ["name", "cost", "release_date", "last_updated", "knowledge"] {
        map.shift_remove(key);
    }
    builder.skip_unsupported(setting, &map.keys().map(String::as_str).collect::<Vec<_>>());
    converted
}
