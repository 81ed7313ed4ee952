//! OpenCode's config and folders.

use super::draft::Draft;
use super::files::{self, Form};
use super::{Side, secret, senses, server};
use serde_json::{Map, Value};

/// No config is longer.
const LONGEST: u64 = 1 << 20;

/// What is not carried over, and why.
const REASONS: [(&str, &str); 22] = [
    ("theme", "Windlass has no themes"),
    ("keybinds", "Windlass has no keys to bind"),
    ("tui", "Windlass has no such screen"),
    ("layout", "Windlass has no such screen"),
    (
        "plugin",
        "OpenCode's plugins are not run here; tools in a folder of their own are carried over",
    ),
    ("small_model", "the model of a session does everything"),
    ("default_agent", "choose an agent with `windlass run --agent`"),
    ("share", "a session is shared only by `windlass session share`"),
    ("autoshare", "a session is shared only by `windlass session share`"),
    ("autoupdate", "Windlass does not update itself"),
    ("snapshot", "what a session changed can always be undone"),
    ("compaction", "long sessions look after themselves"),
    ("username", "nobody is shown a name"),
    ("logLevel", "see the book's page on watching"),
    ("disabled_providers", "a provider is used only when a model of it is chosen"),
    ("enabled_providers", "a provider is used only when a model of it is chosen"),
    ("watcher", "changed files are noticed without it"),
    ("server", "there is no such server"),
    ("experimental", "Windlass has nothing like it"),
    ("enterprise", "Windlass has nothing like it"),
    ("skills", "skills are looked for in their own folders only"),
    ("references", "name files with `instructions`"),
];

/// The packages through which OpenCode speaks to providers, and the wire format of each.
const PACKAGES: [(&str, &str); 4] = [
    ("@ai-sdk/openai-compatible", "openai-chat"),
    ("@ai-sdk/openai", "openai-responses"),
    ("@ai-sdk/anthropic", "anthropic"),
    ("@ai-sdk/google", "gemini"),
];

pub(super) fn read(draft: &mut Draft<'_>) {
    let (folder, configs): (_, &[&str]) = match draft.side {
        Side::Own => ("opencode", &["opencode/opencode.jsonc", "opencode/opencode.json"]),
        Side::Project => (
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
        let Some(map) = draft.object(name, LONGEST) else { continue };
        for (key, value) in map {
            take(draft, &key, value);
        }
    }
    let at = |name: &str| format!("{folder}/{name}");
    for name in ["agent", "agents"] {
        files::take_agents(draft, &at(name), Form::OpenCode);
    }
    for name in ["command", "commands"] {
        files::take_commands(draft, &at(name));
    }
    for name in ["skill", "skills"] {
        files::take_skills(draft, &at(name));
    }
    for name in ["tool", "tools"] {
        files::take_tools(draft, &at(name));
    }
    if draft.contents.iter().any(|content| content.name.starts_with("tools/"))
        && (draft.source.is_there(&at("node_modules"))
            || draft.source.is_there(&at("package.json")))
    {
        draft.remark(
            "packages that a tool imports are not copied; `@opencode-ai/plugin` and `zod` are there \
             anyway, others have to lie beside it",
        );
    }
    for (name, why) in [
        ("plugin", "OpenCode's plugins are not run here"),
        ("plugins", "OpenCode's plugins are not run here"),
        ("themes", "Windlass has no themes"),
        ("mode", "put its files into `agent`"),
        ("modes", "put its files into `agent`"),
    ] {
        if draft.source.is_there(&at(name)) {
            draft.found.push(draft.source.shown(&at(name)));
            draft.leave(draft.source.shown(&at(name)), why);
        }
    }
    if draft.side == Side::Own {
        super::claude::take_advice(draft, "opencode/AGENTS.md");
    }
}

fn take(draft: &mut Draft<'_>, key: &str, value: Value) {
    let inner = |value: Value| match value {
        Value::Object(map) => Some(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    };
    match (key, value) {
        ("$schema", _) => {}
        ("model", Value::String(model)) if model.contains('/') => {
            draft.set(&["model"], model.clone().into(), &model);
        }
        ("permission", value) => take_rules(draft, value),
        ("tools", value) => take_switches(draft, value),
        ("instructions", Value::Array(patterns)) => take_instructions(draft, patterns),
        ("lsp" | "formatter", Value::Bool(on)) => {
            draft.set(&[key], on.into(), if on { "true" } else { "false" });
        }
        ("mcp" | "provider" | "agent" | "mode" | "command" | "lsp" | "formatter", value) => {
            let Some(map) = inner(value) else { return draft.leave(key, "it is not an object") };
            for (name, value) in map {
                match key {
                    "mcp" => server::opencode(draft, &name, value),
                    "provider" => take_provider(draft, &name, value),
                    "command" => take_command(draft, &name, value),
                    "lsp" => senses::take_language_server(draft, &name, value),
                    "formatter" => senses::take_formatter(draft, &name, value),
                    _ => take_agent(draft, &name, value),
                }
            }
        }
        (key, _) => {
            let row = REASONS.iter().find(|(known, _)| *known == key);
            draft.leave(key, row.map_or("Windlass has no such setting", |(_, why)| *why));
        }
    }
}

fn take_instructions(draft: &mut Draft<'_>, patterns: Vec<Value>) {
    for pattern in patterns {
        let Value::String(pattern) = pattern else {
            draft.leave("instructions", "one of them is not a text");
            continue;
        };
        let pattern = pattern.strip_prefix("./").unwrap_or(&pattern).to_owned();
        let what = format!("instructions \"{}\"", secret::masked(&[&pattern]));
        if pattern.contains("://") {
            draft.leave(what, "advice is read from files only");
        } else if let Some(why) = crate::instructions::objection(&pattern) {
            draft.leave(what, format!("it {why}"));
        } else {
            draft.add(&["instructions"], pattern.clone().into(), &pattern);
        }
    }
}

/// Permission rules, one to one where ours have the key.
fn take_rules(draft: &mut Draft<'_>, value: Value) {
    let keys = match value {
        Value::String(level) => Map::from_iter([("*".to_owned(), level.into())]),
        Value::Object(keys) => keys,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return draft.leave("permission", "it is not an object");
        }
    };
    for (key, value) in keys {
        if let Some(why) = unknown_key(&key, &value) {
            draft.leave(format!("permission.{key}"), why);
            continue;
        }
        match value {
            Value::Object(patterns) => {
                let mut denied = false;
                for (pattern, level) in patterns {
                    let lax = level.as_str() != Some("deny");
                    if denied && lax {
                        draft.remark(format!(
                            "permission.{key}: a deny wins here, wherever it stands; look at the rules \
                             after it with `windlass permission list`"
                        ));
                    }
                    denied |= !lax;
                    take_rule(draft, &["permission", &key, &pattern], level);
                }
            }
            level => take_rule(draft, &["permission", &key], level),
        }
    }
}

fn unknown_key(key: &str, value: &Value) -> Option<&'static str> {
    match key {
        "websearch" | "codesearch" => Some("searching falls under `webfetch` here"),
        "webfetch" if value.is_object() => {
            Some("rules of `webfetch` name hosts here, such as docs.rs or *.rust-lang.org")
        }
        "external_directory" => Some("what lies outside of the project is always asked about"),
        "glob" | "grep" if value.as_str() == Some("deny") => None,
        "glob" | "grep" | "list" => Some("looking around falls under `read` here"),
        "lsp" if value.as_str() != Some("deny") => {
            Some("asking about code falls under `read` here")
        }
        _ => None,
    }
}

fn take_rule(draft: &mut Draft<'_>, path: &[&str], level: Value) {
    let name = match path {
        [_, key, pattern] => format!("permission.{key} \"{pattern}\""),
        path => path.join("."),
    };
    let files = path.get(1).is_some_and(|key| ["read", "edit"].contains(key));
    let outside = |pattern: &&str| pattern.starts_with(['/', '~']) || pattern.starts_with("$HOME");
    match (level.as_str(), draft.side) {
        (Some("allow" | "ask" | "deny"), _) if files && path.get(2).is_some_and(outside) => {
            draft.leave(name, "rules for files name paths within a project");
        }
        (Some("allow"), Side::Project) => {
            draft.leave(name, "a project's rules only tighten, so its `allow` is dropped");
        }
        (Some(level @ ("allow" | "ask" | "deny")), _) => draft.set(path, level.into(), level),
        (Some(_) | None, _) => draft.leave(name, "it is not `allow`, `ask` or `deny`"),
    }
}

/// Tools that are switched off, in the old way of writing it.
fn take_switches(draft: &mut Draft<'_>, value: Value) {
    let Value::Object(map) = value else { return draft.leave("tools", "it is not an object") };
    for (tool, on) in map {
        match on {
            Value::Bool(false) if unknown_key(&tool, &"deny".into()).is_none() => {
                let key = if tool == "write" { "edit" } else { &tool };
                draft.set(&["permission", key], "deny".into(), "deny");
            }
            Value::Bool(true) => draft.leave(format!("tools.{tool}"), "it is there anyway"),
            _ => draft.leave(format!("tools.{tool}"), "Windlass has no such tool"),
        }
    }
}

fn take_agent(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("agent.{name}");
    let Value::Object(mut map) = value else { return draft.leave(at, "it is not an object") };
    if let Some(why) = files::unfit(name) {
        return draft.leave(at, why);
    }
    let off = map.get("disable") == Some(&Value::Bool(true));
    if crate::agents::is_built_in(name) && !off {
        return draft.leave(at, files::built_in(name));
    }
    if secret::mentions(&Value::Object(map.clone()), "{file:") {
        let why = format!("`{{file:…}}` is not read; put its text into agents/{name}.md");
        return draft.leave(at, why);
    }
    let ours =
        ["description", "mode", "model", "temperature", "tools", "permission", "prompt", "disable"];
    let rest: Vec<String> =
        map.keys().filter(|key| !ours.contains(&key.as_str())).cloned().collect();
    draft.leave_rest(&at, &rest.iter().map(String::as_str).collect::<Vec<_>>());
    map.retain(|key, _| ours.contains(&key.as_str()));
    let told = match map.get("description").and_then(Value::as_str) {
        _ if off => "off".to_owned(),
        Some(text) => windlass_protocol::text::beginning(text.trim(), 60),
        None => "an agent".to_owned(),
    };
    draft.set(&["agent", name], map.into(), &told);
}

fn take_command(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("command.{name}");
    let template = value.get("template").and_then(Value::as_str);
    let (Value::Object(map), Some(template)) = (&value, template) else {
        return draft.leave(at, "it has no `template`");
    };
    if template.contains("{file:") || template.contains("{env:") {
        return draft.leave(at, "`{file:…}` and `{env:…}` are not put into commands");
    }
    let rest = map.keys().map(String::as_str);
    let rest: Vec<&str> = rest.filter(|key| !["template", "description"].contains(key)).collect();
    draft.leave_rest(&at, &rest);
    let description = map.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!("---\ndescription: {}\n---\n\n{template}\n", files::quoted(description));
    files::take_command(draft, name, at, text);
}

fn take_provider(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("provider.{name}");
    let Value::Object(mut map) = value else { return draft.leave(at, "it is not an object") };
    let mut ours = Map::new();
    match map.shift_remove("npm").as_ref().and_then(Value::as_str) {
        Some(package) => match PACKAGES.iter().find(|(known, _)| *known == package) {
            Some((_, api)) => drop(ours.insert("api".into(), (*api).into())),
            None => {
                let package = secret::masked_line(package);
                return draft
                    .leave(at, format!("what the package `{package}` speaks is not known"));
            }
        },
        None if draft.sense.provider(name).is_some() => {}
        None => {
            return draft
                .leave(at, "it is not known here, and does not say what it speaks (`npm`)");
        }
    }
    if draft.side == Side::Project && draft.sense.provider(name).is_some() {
        return draft.leave(at, "a project cannot change a provider that Windlass knows");
    }
    if let Some(Value::Object(options)) = map.shift_remove("options") {
        take_options(draft, &at, name, options, &mut ours);
    }
    if let Some(Value::Object(models)) = map.shift_remove("models") {
        let models = models.into_iter().map(|(id, model)| {
            let made = model_of(draft, &format!("{at}.models.{id}"), model);
            (id, Value::Object(made))
        });
        let models: Map<String, Value> = models.collect();
        ours.insert("models".into(), models.into());
    }
    map.shift_remove("name");
    draft.leave_rest(&at, &map.keys().map(String::as_str).collect::<Vec<_>>());
    if ours.is_empty() {
        return;
    }
    let url = ours.get("base_url").and_then(Value::as_str).map(secret::masked_url);
    let models = ours.get("models").and_then(Value::as_object).map_or(0, Map::len);
    let models = match models {
        0 => String::new(),
        1 => ", 1 model".to_owned(),
        count => format!(", {count} models"),
    };
    let key = if ours.contains_key("api_key") { ", with its key (not shown)" } else { "" };
    let told = format!("{}{models}{key}", url.unwrap_or_else(|| "as it is known".to_owned()));
    draft.set(&["provider", name], ours.into(), &told);
}

fn take_options(
    draft: &mut Draft<'_>,
    at: &str,
    name: &str,
    mut options: Map<String, Value>,
    ours: &mut Map<String, Value>,
) {
    let own = draft.side == Side::Own;
    match options.shift_remove("baseURL") {
        Some(Value::String(url)) if url.contains("{env:") || url.contains("{file:") => {
            draft.leave(format!("{at}.options.baseURL"), "variables are not put into addresses");
        }
        Some(Value::String(url)) if !own && secret::masked_url(&url) != url => {
            let why = "it looks as if it held a secret, which goes into no project's file";
            draft.leave(format!("{at}.options.baseURL"), why);
        }
        Some(url) => drop(ours.insert("base_url".into(), url)),
        None => {}
    }
    match options.shift_remove("apiKey") {
        Some(Value::String(key)) if own && !key.contains("{file:") => {
            let whole = key.starts_with("{env:") && key.ends_with('}');
            if whole || !key.contains("{env:") {
                ours.insert("api_key".into(), key.into());
            } else {
                draft.leave(format!("{at}.options.apiKey"), "only `{env:NAME}` as a whole is read");
            }
        }
        Some(_) => {
            let why =
                if own { "`{file:…}` is not read" } else { "a key goes into no project's file" };
            let why = format!("{why}; keep it with `windlass auth login {name}`");
            draft.leave(format!("{at}.options.apiKey"), why);
        }
        None => {}
    }
    if let Some(Value::Object(headers)) = options.shift_remove("headers") {
        let mut kept = Map::new();
        for (header, value) in headers {
            let text = value.as_str().unwrap_or_default();
            let what = format!("{at}.options.headers.{header}");
            if text.contains("{env:") || text.contains("{file:") {
                draft.leave(what, "variables are not put into a provider's headers");
            } else if !own && secret::is_secret(&header, text) {
                draft.leave(what, "it looks like a secret, which goes into no project's file");
            } else {
                kept.insert(header, value);
            }
        }
        if !kept.is_empty() {
            ours.insert("headers".into(), kept.into());
        }
    }
    let rest: Vec<&str> = options.keys().map(String::as_str).collect();
    draft.leave_rest(&format!("{at}.options"), &rest);
}

/// A model in our form. What only names or prices it is not said to be missing.
fn model_of(draft: &mut Draft<'_>, at: &str, model: Value) -> Map<String, Value> {
    let Value::Object(mut map) = model else { return Map::new() };
    let mut ours = Map::new();
    for (theirs, key) in [
        ("id", "id"),
        ("reasoning", "reasons"),
        ("tool_call", "calls"),
        ("temperature", "temperature"),
    ] {
        if let Some(value) = map.shift_remove(theirs) {
            ours.insert(key.to_owned(), value);
        }
    }
    if let Some(limit) = map.shift_remove("limit") {
        for key in ["context", "output"] {
            if let Some(value) = limit.get(key).and_then(Value::as_u64) {
                ours.insert(key.to_owned(), value.into());
            }
        }
    }
    let takes = map.shift_remove("modalities");
    let takes = takes.as_ref().and_then(|kinds| kinds.get("input")).and_then(Value::as_array);
    if let Some(kinds) = takes {
        for (kind, key) in [("image", "images"), ("pdf", "pdfs")] {
            ours.insert(key.to_owned(), kinds.iter().any(|it| it.as_str() == Some(kind)).into());
        }
        map.shift_remove("attachment");
    } else if let Some(value) = map.shift_remove("attachment") {
        ours.insert("images".into(), value);
    }
    for key in ["name", "cost", "release_date", "last_updated", "knowledge"] {
        map.shift_remove(key);
    }
    draft.leave_rest(at, &map.keys().map(String::as_str).collect::<Vec<_>>());
    ours
}
