//! Claude Code's settings and folders.

use super::draft::{Content, Draft};
use super::files::{self, Form};
use super::rules::{self, Level};
use super::{Side, server};
use serde_json::{Map, Value};
use windlass_protocol::text::counted;

/// No settings are longer. The list of what Claude Code remembers is, with everything in it.
const LONGEST: u64 = 1 << 20;
const LONGEST_MEMORY: u64 = 16 << 20;
/// No advice is longer than is ever told.
const LONGEST_ADVICE: u64 = 256 << 10;

/// What is not carried over, and why.
const REASONS: [(&str, &str); 23] = [
    (
        "env",
        "variables belong to whoever is started; set them in your shell, or in `env` of a server",
    ),
    ("apiKeyHelper", "nothing is run for a key; keep it with `windlass auth login anthropic`"),
    ("statusLine", "Windlass has no such line"),
    ("outputStyle", "put it into AGENTS.md, or into an agent"),
    ("spinnerTipsEnabled", "Windlass has no such screen"),
    ("theme", "Windlass has no themes"),
    ("includeCoAuthoredBy", "Windlass adds nothing to commits"),
    ("attribution", "Windlass adds nothing to commits"),
    ("cleanupPeriodDays", "sessions stay until you delete them"),
    ("enableAllProjectMcpServers", "a project's servers count once you trust the folder"),
    ("enabledMcpjsonServers", "a project's servers count once you trust the folder"),
    ("disabledMcpjsonServers", "deny one: \"permission\": {\"servant\": {\"mcp/NAME\": \"deny\"}}"),
    ("enabledPlugins", "plugins are added one by one, after a look at each"),
    ("extraKnownMarketplaces", "plugins are added one by one, after a look at each"),
    (
        "sandbox",
        "commands run in a sandbox anyway; see `sandbox` in the book's page on configuration",
    ),
    ("forceLoginMethod", "keys are kept with `windlass auth login`"),
    ("awsAuthRefresh", "nothing is run for a key"),
    ("awsCredentialExport", "nothing is run for a key"),
    ("alwaysThinkingEnabled", "say so with `options.effort` of a model"),
    ("effortLevel", "say so with `options.effort` of a model"),
    ("autoUpdatesChannel", "Windlass does not update itself"),
    ("language", "put it into AGENTS.md"),
    ("companyAnnouncements", "Windlass has no such screen"),
];

pub(super) fn read(draft: &mut Draft<'_>) {
    if draft.side == Side::Own {
        take_memory(draft);
    }
    let mut settings = Vec::new();
    for name in [".claude/settings.local.json", ".claude/settings.json"] {
        settings.extend(draft.object(name, LONGEST));
    }
    let mut lists: Vec<(Level, Vec<Value>)> = Vec::new();
    let off = |map: &Map<String, Value>| map.get("disableAllHooks") == Some(&Value::Bool(true));
    let silent = settings.iter().any(off);
    for mut map in settings {
        if silent && map.shift_remove("hooks").is_some() {
            draft.leave("hooks", "they are all switched off there (`disableAllHooks`)");
        }
        map.shift_remove("disableAllHooks");
        for (key, value) in map {
            take(draft, &key, value, &mut lists);
        }
    }
    take_rules(draft, lists);
    files::take_agents(draft, ".claude/agents", Form::Claude);
    files::take_commands(draft, ".claude/commands");
    match draft.side {
        Side::Own => {
            files::take_skills(draft, ".claude/skills");
            take_advice(draft, ".claude/CLAUDE.md");
        }
        Side::Project => read_in_place(draft),
    }
    for (name, why) in [
        (".claude/plugins", "plugins are added one by one, after a look at each"),
        (".claude/output-styles", "put it into AGENTS.md, or into an agent"),
    ] {
        if draft.source.is_there(name) {
            draft.found.push(draft.source.shown(name));
            draft.leave(draft.source.shown(name), why);
        }
    }
}

/// What Windlass reads where it is.
fn read_in_place(draft: &mut Draft<'_>) {
    for (name, why) in [
        (".mcp.json", "it is read where it is, once you trust the folder"),
        (".claude/skills", "they are read where they are, once you trust the folder"),
        ("CLAUDE.md", "it is read where it is, if there is no AGENTS.md beside it"),
    ] {
        if draft.source.is_there(name) {
            draft.found.push(name.to_owned());
            draft.kept.push((name.to_owned(), why.to_owned()));
        }
    }
}

/// What Claude Code remembers: servers, and much that is its own.
fn take_memory(draft: &mut Draft<'_>) {
    const FILE: &str = ".claude.json";
    let Some(mut map) = draft.object(FILE, LONGEST_MEMORY) else { return };
    if let Some(Value::Object(servers)) = map.shift_remove("mcpServers") {
        for (name, server) in servers {
            server::claude(draft, &name, server);
        }
    }
    let shown = draft.source.shown(FILE);
    if let Some(Value::Object(projects)) = map.shift_remove("projects") {
        let has = |project: &&Value| {
            let servers = project.get("mcpServers").and_then(Value::as_object);
            servers.is_some_and(|servers| !servers.is_empty())
        };
        let with = projects.values().filter(has).count();
        if with > 0 {
            let why = "they belong to one folder each; add them there with `windlass mcp add`";
            draft.leave(format!("{shown}: servers of single projects ({with})"), why);
        }
    }
    if map.contains_key("oauthAccount") || map.contains_key("primaryApiKey") {
        let why = "logins and keys are not carried over; use `windlass auth login anthropic`";
        draft.leave(format!("{shown}: your login"), why);
    }
    if !map.is_empty() {
        let why = "Claude Code's own memory, of no use here";
        let keys = counted(map.len(), "key");
        draft.leave(format!("{shown}: the rest ({keys})"), why);
    }
}

/// Advice of the person's own becomes ours.
pub(super) fn take_advice(draft: &mut Draft<'_>, name: &str) {
    let from = draft.source.shown(name);
    match draft.source.text(name, LONGEST_ADVICE) {
        Ok(None) => {}
        Err(why) => {
            draft.found.push(from.clone());
            draft.leave(from, why);
        }
        Ok(Some(text)) => {
            draft.found.push(from.clone());
            if text.lines().any(|line| line.starts_with('@')) {
                draft.leave(format!("{from}: @…"), "files that advice names are not taken in");
            }
            let (name, bytes) = ("AGENTS.md".to_owned(), text.into_bytes());
            draft.make(Content { name, from, bytes, is_program: false });
        }
    }
}

fn take(draft: &mut Draft<'_>, key: &str, value: Value, lists: &mut Vec<(Level, Vec<Value>)>) {
    match (key, value) {
        ("$schema", _) => {}
        ("model", Value::String(model)) if model.starts_with("claude-") => {
            let model = format!("anthropic/{model}");
            draft.set(&["model"], model.clone().into(), &model);
        }
        ("model", _) => draft.leave(
            "model",
            "a model has its provider and whole name here, such as `anthropic/claude-sonnet-4-5`",
        ),
        ("permissions", Value::Object(map)) => take_permissions(draft, map, lists),
        ("hooks", Value::Object(map)) => take_hooks(draft, map),
        ("mcpServers", Value::Object(servers)) => {
            for (name, server) in servers {
                server::claude(draft, &name, server);
            }
        }
        (key, _) => {
            let row = REASONS.iter().find(|(known, _)| *known == key);
            draft.leave(key, row.map_or("Windlass has no such setting", |(_, why)| *why));
        }
    }
}

fn take_permissions(
    draft: &mut Draft<'_>,
    map: Map<String, Value>,
    lists: &mut Vec<(Level, Vec<Value>)>,
) {
    for (key, value) in map {
        let what = format!("permissions.{key}");
        let level = Level::ALL.into_iter().find(|level| level.name() == key);
        match (level, key.as_str(), value) {
            (Some(level), _, Value::Array(rules)) => lists.push((level, rules)),
            (None, "defaultMode", Value::String(mode))
                if mode == "plan" && draft.side == Side::Own =>
            {
                draft.set(&["mode"], "plan".into(), "plan");
            }
            (None, "defaultMode", _) => {
                draft.leave(
                    what,
                    "modes differ here; look at the book's page on security, then set `mode`",
                );
            }
            (None, "additionalDirectories", _) => {
                draft.leave(what, "name folders that commands may write to in `sandbox.write`");
            }
            (_, _, _) => draft.leave(what, "Windlass has no such setting"),
        }
    }
}

/// The rules of all lists, the laxest first: of ours the last one counts. Of a rule that stands in
/// two lists the strictest counts.
fn take_rules(draft: &mut Draft<'_>, mut lists: Vec<(Level, Vec<Value>)>) {
    lists.sort_by_key(|(level, _)| *level);
    let (mut rules, mut dropped): (Vec<(String, String, Level)>, usize) = (Vec::new(), 0);
    for (level, list) in lists {
        for rule in list {
            let Value::String(text) = rule else {
                draft.leave(format!("permissions.{}", level.name()), "a rule is not a text");
                continue;
            };
            if level == Level::Allow && draft.side == Side::Project {
                dropped += 1;
                continue;
            }
            match rules::rule(&text, level, draft.side) {
                Err(why) => draft.leave(format!("{} {text}", level.name()), why),
                Ok(ours) => {
                    for (key, pattern) in ours {
                        rules.retain(|(k, p, _)| (k, p) != (&key, &pattern));
                        rules.push((key, pattern, level));
                    }
                }
            }
        }
    }
    if dropped > 0 {
        let rules = counted(dropped, "rule");
        let why = "a project's rules only tighten, so what it allows is dropped";
        draft.leave(format!("permissions.allow ({rules})"), why);
    }
    for (key, pattern, level) in rules {
        draft.set(&["permission", &key, &pattern], level.name().into(), level.name());
    }
}

/// Hooks that are commands, as they are: our config takes their form.
fn take_hooks(draft: &mut Draft<'_>, events: Map<String, Value>) {
    for (event, entries) in events {
        let what = format!("hooks.{event}");
        let Value::Array(entries) = entries else {
            draft.leave(what, "it is not a list");
            continue;
        };
        if rules::point(&event).is_none() {
            draft.leave(what, "hooks are not asked at this point here");
            continue;
        }
        for entry in entries {
            let matcher = entry.get("matcher").cloned();
            let hooks = entry.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut kept = Vec::new();
            for hook in hooks {
                let kind = hook.get("type").and_then(Value::as_str).unwrap_or("command").to_owned();
                match (kind.as_str(), hook.get("command").and_then(Value::as_str)) {
                    ("command", Some(line)) if !line.trim().is_empty() => {
                        let mut ours = Map::new();
                        ours.insert("type".into(), "command".into());
                        ours.insert("command".into(), line.into());
                        ours.extend(
                            hook.get("timeout").map(|it| ("timeout".to_owned(), it.clone())),
                        );
                        kept.push(Value::Object(ours));
                    }
                    ("command", _) => draft.leave(what.clone(), "a hook in it names no command"),
                    (kind, _) => {
                        draft.leave(
                            format!("{what}: {kind}"),
                            "only hooks that are commands are run",
                        );
                    }
                }
            }
            take_hook(draft, &event, matcher, kept);
        }
    }
}

fn take_hook(draft: &mut Draft<'_>, event: &str, matcher: Option<Value>, hooks: Vec<Value>) {
    if hooks.is_empty() {
        return;
    }
    let lines = hooks.iter().filter_map(|hook| hook.get("command")?.as_str());
    let lines: Vec<String> = lines
        .map(|line| super::secret::masked(&line.split_whitespace().collect::<Vec<_>>()))
        .collect();
    let secret = |hook: &Value| {
        let line = hook.get("command").and_then(Value::as_str).unwrap_or_default();
        super::secret::in_words(&line.split_whitespace().collect::<Vec<_>>())
    };
    if draft.side == Side::Project && hooks.iter().any(secret) {
        let why = "its command looks as if it held a secret, which goes into no project's file";
        return draft.leave(format!("hooks.{event}"), why);
    }
    let mut told = lines.join("; ");
    let mut entry = Map::new();
    if let Some(Value::String(matcher)) = matcher {
        told = format!("{matcher} → {told}");
        entry.insert("matcher".into(), matcher.into());
    }
    entry.insert("hooks".into(), hooks.into());
    draft.add(&["hooks", event], entry.into(), &told);
    draft.remark(
        "hooks run in the sandbox, where they read the project and reach no host, and one that fails \
         refuses. Try them before you rely on them",
    );
    if draft.side == Side::Project {
        draft.remark(
            "scripts of hooks belong into .windlass/hooks, where `windlass trust` looks after them; \
             change their paths when you have moved them",
        );
    }
}
