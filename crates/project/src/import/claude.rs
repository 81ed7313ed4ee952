//! Imports Claude Code's settings and folders: `.claude` and `.claude.json`.

use super::agents_and_skills::{self, ImportAgentFormat};
use super::plan_builder::{ImportPlanBuilder, ImportedFile};
use super::{ImportScope, hook_scripts, mcp_servers};
use crate::claude_permission_rules::{self, ClaudeRuleLevel};
use crate::config::file_parser::ConfigLayer;
use crate::config::hook_config::parse_hook_entry;
use serde_json::{Map, Value};
use windlass_protocol::HookPoint;
use windlass_protocol::display_text::{pluralize, truncate_chars};

/// Limits of the settings files and of `.claude.json`, which is longer because Claude Code stores
/// all its state there.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;
const MAX_STATE_BYTES: u64 = 16 << 20;
/// Limits instructions to more than is ever sent to a model.
const MAX_INSTRUCTIONS_BYTES: u64 = 256 << 10;

/// Settings that are not imported, with the reason.
const SKIP_REASONS: [(&str, &str); 23] = [
    ("env", "set variables in your shell, or in the `env` of a server"),
    (
        "apiKeyHelper",
        "key helpers are not supported; save the key with `windlass auth login anthropic`",
    ),
    ("statusLine", "custom status lines are not supported"),
    ("outputStyle", "put it in AGENTS.md or in an agent"),
    ("spinnerTipsEnabled", "Windlass shows no tips"),
    ("theme", "choose a theme with `tui.theme` in your own config"),
    ("includeCoAuthoredBy", "Windlass adds nothing to commits"),
    ("attribution", "Windlass adds nothing to commits"),
    ("cleanupPeriodDays", "sessions are kept until you delete them"),
    ("enableAllProjectMcpServers", "a project's servers are used once you trust the folder"),
    ("enabledMcpjsonServers", "a project's servers are used once you trust the folder"),
    ("disabledMcpjsonServers", "deny one: \"permission\": {\"process\": {\"mcp/NAME\": \"deny\"}}"),
    ("enabledPlugins", "review and add plugins one by one with `windlass plugin add`"),
    ("extraKnownMarketplaces", "review and add plugins one by one with `windlass plugin add`"),
    (
        "sandbox",
        "commands run in a sandbox by default; see `sandbox` on the book's configuration page",
    ),
    ("forceLoginMethod", "save API keys with `windlass auth login`"),
    ("awsAuthRefresh", "commands that provide keys are not supported"),
    ("awsCredentialExport", "commands that provide keys are not supported"),
    ("alwaysThinkingEnabled", "set `options.effort` of a model"),
    ("effortLevel", "set `options.effort` of a model"),
    ("autoUpdatesChannel", "Windlass does not update itself"),
    ("language", "put it in AGENTS.md"),
    ("companyAnnouncements", "Windlass shows no announcements"),
];

pub(super) fn import_claude(builder: &mut ImportPlanBuilder<'_>) {
    if builder.scope == ImportScope::User {
        import_state(builder);
    }
    let mut settings = Vec::new();
    for name in [".claude/settings.local.json", ".claude/settings.json"] {
        settings.extend(builder.read_json_object(name, MAX_SETTINGS_BYTES));
    }
    let mut lists: Vec<(ClaudeRuleLevel, Vec<Value>)> = Vec::new();
    let disables_hooks =
        |map: &Map<String, Value>| map.get("disableAllHooks") == Some(&Value::Bool(true));
    let hooks_disabled = settings.iter().any(disables_hooks);
    for mut map in settings {
        if hooks_disabled && map.shift_remove("hooks").is_some() {
            builder.skip("hooks", "all hooks are disabled there (`disableAllHooks`)");
        }
        map.shift_remove("disableAllHooks");
        for (key, value) in map {
            import_setting(builder, &key, value, &mut lists);
        }
    }
    import_rules(builder, lists);
    agents_and_skills::import_agents(builder, ".claude/agents", ImportAgentFormat::Claude);
    agents_and_skills::import_commands(builder, ".claude/commands");
    match builder.scope {
        ImportScope::User => {
            let skills = [(".claude/skills".to_owned(), "read in place")];
            agents_and_skills::note_read_in_place(builder, &skills);
            import_instructions(builder, ".claude/CLAUDE.md");
        }
        ImportScope::Project => {
            let trusted = "read in place once you trust the folder";
            let rows = [
                (".mcp.json".to_owned(), trusted),
                (".claude/skills".to_owned(), trusted),
                ("CLAUDE.md".to_owned(), "read in place if there is no AGENTS.md beside it"),
            ];
            agents_and_skills::note_read_in_place(builder, &rows);
        }
    }
    for (name, reason) in [
        (".claude/plugins", "review and add plugins one by one with `windlass plugin add`"),
        (".claude/output-styles", "put it in AGENTS.md or in an agent"),
    ] {
        if builder.source.exists(name) {
            builder.read_files.push(builder.source.display_name(name));
            builder.skip(builder.source.display_name(name), reason);
        }
    }
    builder.report_document_keys();
}

/// Imports Claude Code's state file `.claude.json`: MCP servers; the rest is its own.
fn import_state(builder: &mut ImportPlanBuilder<'_>) {
    const STATE_FILE: &str = ".claude.json";
    let Some(mut map) = builder.read_json_object(STATE_FILE, MAX_STATE_BYTES) else { return };
    if let Some(Value::Object(servers)) = map.shift_remove("mcpServers") {
        for (name, server) in servers {
            mcp_servers::import_claude_server(builder, &name, server);
        }
    }
    let display_name = builder.source.display_name(STATE_FILE);
    if let Some(Value::Object(projects)) = map.shift_remove("projects") {
        let has_servers = |project: &&Value| {
            let servers = project.get("mcpServers").and_then(Value::as_object);
            servers.is_some_and(|servers| !servers.is_empty())
        };
        let count = projects.values().filter(has_servers).count();
        if count > 0 {
            let reason = "each belongs to one folder; add it there with `windlass mcp add`";
            builder.skip(format!("{display_name}: per-project servers ({count})"), reason);
        }
    }
    if map.contains_key("oauthAccount") || map.contains_key("primaryApiKey") {
        let reason = "logins and keys are not imported; use `windlass auth login anthropic`";
        builder.skip(format!("{display_name}: your login"), reason);
    }
    if !map.is_empty() {
        let reason = "Claude Code's own state, not used by Windlass";
        let keys = pluralize(map.len(), "key");
        builder.skip(format!("{display_name}: the rest ({keys})"), reason);
    }
}

/// Imports the user's own instructions as `AGENTS.md`.
pub(super) fn import_instructions(builder: &mut ImportPlanBuilder<'_>, name: &str) {
    let source = builder.source.display_name(name);
    match builder.source.read_text(name, MAX_INSTRUCTIONS_BYTES) {
        Ok(None) => {}
        Err(reason) => {
            builder.read_files.push(source.clone());
            builder.skip(source, reason);
        }
        Ok(Some(text)) => {
            builder.read_files.push(source.clone());
            if text.lines().any(|line| line.starts_with('@')) {
                builder.skip(format!("{source}: @…"), "files imported with `@` are not included");
            }
            let (name, bytes) = ("AGENTS.md".to_owned(), text.into_bytes());
            builder.add_file(ImportedFile { name, source, bytes, is_executable: false });
        }
    }
}

fn import_setting(
    builder: &mut ImportPlanBuilder<'_>,
    key: &str,
    value: Value,
    lists: &mut Vec<(ClaudeRuleLevel, Vec<Value>)>,
) {
    match (key, value) {
        ("$schema", _) => {}
        ("model", Value::String(model)) if model.starts_with("claude-") => {
            let model = format!("anthropic/{model}");
            builder.set_key(&["model"], model.clone().into(), &model);
        }
        ("model", _) => builder.skip(
            "model",
            "a model needs its provider and full name, such as `anthropic/claude-sonnet-4-5`",
        ),
        ("permissions", Value::Object(map)) => import_permissions(builder, map, lists),
        ("hooks", Value::Object(map)) => import_hooks(builder, map),
        ("mcpServers", Value::Object(servers)) => {
            for (name, server) in servers {
                mcp_servers::import_claude_server(builder, &name, server);
            }
        }
        (key, _) => {
            let row = SKIP_REASONS.iter().find(|(known_key, _)| *known_key == key);
            builder.skip(key, row.map_or("Windlass has no such setting", |(_, reason)| *reason));
        }
    }
}

fn import_permissions(
    builder: &mut ImportPlanBuilder<'_>,
    map: Map<String, Value>,
    lists: &mut Vec<(ClaudeRuleLevel, Vec<Value>)>,
) {
    for (key, value) in map {
        let setting = format!("permissions.{key}");
        let level = ClaudeRuleLevel::ALL.into_iter().find(|level| level.name() == key);
        match (level, key.as_str(), value) {
            (Some(level), _, Value::Array(rules)) => lists.push((level, rules)),
            (None, "defaultMode", Value::String(mode))
                if mode == "plan" && builder.scope == ImportScope::User =>
            {
                builder.set_key(&["mode"], "plan".into(), "plan");
            }
            (None, "defaultMode", _) => {
                builder.skip(
                    setting,
                    "modes differ; see the book's page on security, then set `mode`",
                );
            }
            (None, "additionalDirectories", Value::Array(folders))
                if builder.scope == ImportScope::User =>
            {
                for folder in folders {
                    match folder.as_str() {
                        Some(path) if path.starts_with(['/', '~']) => {
                            builder.append_item(&["additional_directories"], path.into(), path);
                        }
                        _ => builder.skip(
                            setting.clone(),
                            "a folder must be an absolute path or begin with `~/`",
                        ),
                    }
                }
            }
            (None, "additionalDirectories", _) => builder.skip(
                setting,
                "a project cannot open other folders; set `additional_directories` in your own \
                 config",
            ),
            (_, _, _) => builder.skip(setting, "Windlass has no such setting"),
        }
    }
}

/// Imports the rules of all lists, least restrictive first, because the last match counts in our
/// rules. A rule in two lists gets the most restrictive level.
fn import_rules(
    builder: &mut ImportPlanBuilder<'_>,
    mut lists: Vec<(ClaudeRuleLevel, Vec<Value>)>,
) {
    lists.sort_by_key(|(level, _)| *level);
    let is_project = builder.scope == ImportScope::Project;
    let mut rules: Vec<(String, String, ClaudeRuleLevel)> = Vec::new();
    let mut dropped_count = 0;
    for (level, list) in lists {
        for rule in list {
            let Value::String(text) = rule else {
                builder.skip(format!("permissions.{}", level.name()), "a rule is not a string");
                continue;
            };
            if level == ClaudeRuleLevel::Allow && is_project {
                dropped_count += 1;
                continue;
            }
            match claude_permission_rules::convert_rule(&text, level, is_project) {
                Err(reason) => builder.skip(format!("{} {text}", level.name()), reason),
                Ok(converted) => {
                    for (key, pattern) in converted {
                        rules.retain(|(k, p, _)| (k, p) != (&key, &pattern));
                        rules.push((key, pattern, level));
                    }
                }
            }
        }
    }
    if dropped_count > 0 {
        let rules = pluralize(dropped_count, "rule");
        let reason = "a project's rules can only restrict, so its `allow` rules are dropped";
        builder.skip(format!("permissions.allow ({rules})"), reason);
    }
    for (key, pattern, level) in rules {
        builder.set_key(&["permission", &key, &pattern], level.name().into(), level.name());
    }
}

/// Imports hooks in Claude's format, which our config accepts, with new paths of their scripts.
fn import_hooks(builder: &mut ImportPlanBuilder<'_>, events: Map<String, Value>) {
    for (event, entries) in events {
        let setting = format!("hooks.{event}");
        let Value::Array(entries) = entries else {
            builder.skip(setting, "not a list");
            continue;
        };
        let Some(point) = claude_permission_rules::hook_point(&event) else {
            builder.skip(setting, "unsupported hook event");
            continue;
        };
        for entry in entries {
            let matcher = entry.get("matcher").cloned();
            let hooks = entry.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut imported = Vec::new();
            for hook in hooks {
                match convert_hook(builder, &hook, point) {
                    Ok(hook) => imported.push(hook),
                    Err(reason) => {
                        let name = hook_name(&setting, matcher.as_ref(), &describe_hook(&hook));
                        builder.skip(name, reason);
                    }
                }
            }
            import_hook(builder, &event, matcher, imported);
        }
    }
}

/// Returns a hook as our config accepts it, or the reason why it is not imported.
fn convert_hook(
    builder: &mut ImportPlanBuilder<'_>,
    hook: &Value,
    point: HookPoint,
) -> Result<Value, String> {
    let text = |key: &str| hook.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or("command");
    let mut converted = Map::new();
    converted.insert("type".into(), kind.into());
    match (kind, text("command")) {
        ("command", Some(line)) if !line.trim().is_empty() => {
            let line = hook_scripts::relocate_scripts(builder, line)?;
            converted.insert("command".into(), line.into());
        }
        ("command", _) => return Err("it has no command".to_owned()),
        ("http", _) if has_variable(hook.get("headers")) => {
            return Err("variables in `headers` are not supported; use a script instead".to_owned());
        }
        ("agent", _) => {
            return Err("a hook cannot run an agent; use a `prompt` or a script instead".to_owned());
        }
        (_, _) => {}
    }
    for key in ["url", "headers", "prompt", "timeout"] {
        converted.extend(hook.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let layer = match builder.scope {
        ImportScope::User => ConfigLayer::User,
        ImportScope::Project => ConfigLayer::Project,
    };
    let converted = Value::Object(converted);
    parse_hook_entry(serde_json::json!({"hooks": [converted.clone()]}), point, layer)?;
    Ok(converted)
}

/// Returns `true` if a header contains a variable, which Claude Code expands and we do not.
fn has_variable(headers: Option<&Value>) -> bool {
    headers.is_some_and(|headers| super::secret_detection::contains_text(headers, "$"))
}

/// Returns the action of a hook for the report, without secrets.
fn describe_hook(hook: &Value) -> String {
    let text = |key: &str| hook.get(key).and_then(Value::as_str);
    match (text("command"), text("url"), text("prompt")) {
        (Some(line), ..) => {
            super::secret_detection::mask_command(&line.split_whitespace().collect::<Vec<_>>())
        }
        (None, Some(url), _) => super::secret_detection::mask_url(url),
        (None, None, Some(prompt)) => super::secret_detection::mask_command(
            &truncate_chars(prompt, 80).split_whitespace().collect::<Vec<_>>(),
        ),
        (None, None, None) => text("type").unwrap_or("command").to_owned(),
    }
}

fn import_hook(
    builder: &mut ImportPlanBuilder<'_>,
    event: &str,
    matcher: Option<Value>,
    hooks: Vec<Value>,
) {
    if hooks.is_empty() {
        return;
    }
    let lines: Vec<String> = hooks.iter().map(describe_hook).collect();
    let has_secret = |hook: &Value| {
        let texts = ["command", "prompt"].map(|key| hook.get(key).and_then(Value::as_str));
        texts.into_iter().flatten().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            super::secret_detection::command_has_secret(&words)
        })
    };
    if builder.scope == ImportScope::Project && hooks.iter().any(has_secret) {
        let reason = "it seems to contain a secret, which is never written to a project file";
        return builder.skip(format!("hooks.{event}"), reason);
    }
    let mut description = lines.join("; ");
    let mut entry = Map::new();
    if let Some(Value::String(matcher)) = matcher {
        if !matcher.is_empty() {
            description = format!("{matcher} → {description}");
        }
        entry.insert("matcher".into(), matcher.into());
    }
    entry.insert("hooks".into(), hooks.into());
    builder.append_item(&["hooks", event], entry.into(), &description);
    builder.add_note(
        "hooks run in the sandbox: they can read the project, have no network access, and deny \
         the call if they fail. Test them before you rely on them",
    );
}

/// Returns the name of one hook in the report.
fn hook_name(setting: &str, matcher: Option<&Value>, action: &str) -> String {
    let action = truncate_chars(action, 80);
    match matcher.and_then(Value::as_str).filter(|matcher| !matcher.is_empty()) {
        Some(matcher) => format!("{setting}: {matcher} → {action}"),
        None => format!("{setting}: {action}"),
    }
}
