//! Imports MCP servers from the formats of other programs.
//!
//! References to the environment stay references. A value that looks like a secret goes into the
//! user's own config only.

use super::plan_builder::ImportPlanBuilder;
use super::{ImportScope, secret_detection};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Programs such as `npx` that download packages to run them, and so need the package registries.
const PACKAGE_RUNNERS: [&str; 4] = ["npx", "uvx", "bunx", "pipx"];

/// Imports a server from OpenCode's `mcp` format.
pub(super) fn import_opencode_server(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    value: Value,
) {
    let setting = format!("mcp.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    if !map.contains_key("command") && !map.contains_key("url") {
        return builder.skip(setting, "missing command or URL");
    }
    let mut converted = Map::new();
    for key in ["type", "command", "cwd", "url", "headers", "enabled", "timeout"] {
        if let Some(value) = map.shift_remove(key) {
            converted.insert(key.to_owned(), value);
        }
    }
    if let Some(value) = map.shift_remove("environment").or_else(|| map.shift_remove("env")) {
        converted.insert("env".into(), value);
    }
    match map.shift_remove("oauth") {
        Some(Value::Object(mut oauth)) => {
            if oauth.shift_remove("redirectUri").is_some() {
                builder.skip_unsupported(&format!("{setting}.oauth"), &["redirectUri"]);
            }
            converted.insert("oauth".into(), oauth.into());
        }
        Some(other) => drop(converted.insert("oauth".into(), other)),
        None => {}
    }
    add_server(builder, name, (converted, map));
}

/// Imports a server from the `mcpServers` format that Claude and other programs share.
pub(super) fn import_claude_server(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("mcpServers.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    let kind = map.shift_remove("type");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or("");
    let mut converted = Map::new();
    match (map.shift_remove("command"), map.shift_remove("url")) {
        (Some(program), None) if matches!(kind, "" | "stdio") => {
            let args = map.shift_remove("args").unwrap_or_else(|| json!([]));
            let Value::Array(args) = args else {
                return builder.skip(setting, "`args` must be a list");
            };
            converted.insert("type".into(), "local".into());
            converted.insert("command".into(), std::iter::once(program).chain(args).collect());
        }
        (None, Some(url)) if matches!(kind, "" | "http" | "streamable-http" | "sse") => {
            let kind = if kind == "sse" { "sse" } else { "remote" };
            converted.insert("type".into(), kind.into());
            converted.insert("url".into(), url);
        }
        (_, _) => {
            return builder.skip(setting, "unsupported server type");
        }
    }
    for key in ["env", "headers", "cwd"] {
        if let Some(value) = map.shift_remove(key) {
            converted.insert(key.to_owned(), value);
        }
    }
    if map.shift_remove("disabled") == Some(Value::Bool(true)) {
        converted.insert("enabled".into(), false.into());
    }
    for key in ["env", "headers"] {
        let Some(Value::Object(values)) = converted.get_mut(key) else { continue };
        for value in values.values_mut() {
            match value.as_str().map(convert_env_reference) {
                Some(Some(text)) => *value = text.into(),
                Some(None) => {
                    let reason =
                        "`${…:-…}` is not supported; use `{env:NAME}` with `windlass mcp add`";
                    return builder.skip(setting, reason);
                }
                None => {}
            }
        }
    }
    if ["command", "url", "cwd"]
        .iter()
        .any(|key| converted.get(*key).is_some_and(|it| secret_detection::contains_text(it, "${")))
    {
        return builder
            .skip(setting, "variables are only expanded in `env` and `headers`, not in commands");
    }
    add_server(builder, name, (converted, map));
}

/// Converts `${X}` to `{env:X}`; `None` for any other expansion.
fn convert_env_reference(text: &str) -> Option<String> {
    let (mut converted_text, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, remaining) = after.split_once('}')?;
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name_char) {
            return None;
        }
        converted_text.push_str(before);
        converted_text.push_str(&format!("{{env:{name}}}"));
        rest = remaining;
    }
    Some(converted_text + rest)
}

fn add_server(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    (mut converted, rest): (Map<String, Value>, Map<String, Value>),
) {
    let setting = format!("mcp.{name}");
    if let Some(reason) = server_problem(builder.scope, &converted) {
        return builder.skip(setting, reason);
    }
    let description = describe_server(&converted);
    let words = command_words(&converted);
    if let Some(program) = words.first() {
        let program = Path::new(program).file_name().and_then(|name| name.to_str());
        if program.is_some_and(|name| PACKAGE_RUNNERS.contains(&name)) {
            converted.insert("network".into(), json!(["registries"]));
        }
        builder.add_note(
            "local servers run in the sandbox. List the hosts that each server needs beside its \
             command: \"network\": [\"api.example.com\"]",
        );
        if builder.scope == ImportScope::Project {
            builder.add_note(
                "a project's server can only read the project, unless you set \"write\": true \
                 beside its command",
            );
        }
    }
    let variables = env_variables(&converted);
    if !variables.is_empty() {
        let variables = variables.join(", ");
        builder.add_note(format!("{setting} requires {variables} in the environment"));
    }
    builder.skip_unsupported(&setting, &rest.keys().map(String::as_str).collect::<Vec<_>>());
    builder.set_key(&["mcp", name], Value::Object(converted), &description);
}

fn command_words(server: &Map<String, Value>) -> Vec<String> {
    let command = server.get("command").and_then(Value::as_array);
    command.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Lists the variables in the `{env:NAME}` references of a server.
fn env_variables(server: &Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    let values = ["env", "headers", "oauth"].iter().filter_map(|key| server.get(*key)?.as_object());
    for text in values.flat_map(Map::values).filter_map(Value::as_str) {
        let parts = text.split("{env:").skip(1).filter_map(|rest| rest.split_once('}'));
        names.extend(parts.map(|(name, _)| name.to_owned()));
    }
    names.sort();
    names.dedup();
    names
}

/// Returns the reason why a server cannot go into the target config.
fn server_problem(scope: ImportScope, server: &Map<String, Value>) -> Option<String> {
    let server_value = Value::Object(server.clone());
    if secret_detection::contains_text(&server_value, "{file:") {
        return Some(
            "`{file:…}` is not supported; use `{env:NAME}` with `windlass mcp add`".into(),
        );
    }
    let plain_fields = ["command", "url", "cwd"].iter().filter_map(|key| server.get(*key));
    if plain_fields.into_iter().any(|value| secret_detection::contains_text(value, "{env:")) {
        return Some("variables are only expanded in `env` and `headers`, not in commands".into());
    }
    if scope == ImportScope::User {
        return None;
    }
    if secret_detection::contains_text(&server_value, "{env:") {
        let reason = "a project cannot read environment variables; add the server to your own \
                   config with `windlass mcp add`";
        return Some(reason.into());
    }
    let secret_name = |key: &str| {
        let values = server.get(key).and_then(Value::as_object).into_iter().flatten();
        let mut values = values.filter_map(|(name, value)| Some((name, value.as_str()?)));
        values
            .find(|(name, value)| secret_detection::is_secret(name, value))
            .map(|(name, _)| name.clone())
    };
    let secret_field = secret_name("env").or_else(|| secret_name("headers")).or_else(|| {
        let client = server.get("oauth").and_then(|oauth| oauth.get("clientSecret"));
        client.map(|_| "clientSecret".to_owned())
    });
    let command = command_words(server);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let url = server.get("url").and_then(Value::as_str);
    let secret_field = secret_field
        .or_else(|| {
            secret_detection::command_has_secret(&command).then(|| "its command".to_owned())
        })
        .or_else(|| {
            url.filter(|url| secret_detection::mask_url(url) != *url).map(|_| "its URL".to_owned())
        });
    let subject = secret_field?;
    Some(format!(
        "{subject} seems to contain a secret, which is never written to a project file; add the \
         server to your own config with `windlass mcp add`"
    ))
}

/// Describes a server for the user, without the values of its `env` and `headers`.
fn describe_server(server: &Map<String, Value>) -> String {
    let names = |key: &str| {
        let map = server.get(key).and_then(Value::as_object);
        map.into_iter().flatten().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let command = command_words(server);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut description = match server.get("url").and_then(Value::as_str) {
        Some(url) => format!("at {}", secret_detection::mask_url(url)),
        None => format!("runs {}", secret_detection::mask_command(&command)),
    };
    let (env, headers) = (names("env"), names("headers"));
    if !env.is_empty() {
        description.push_str(&format!(", with {env} set (not shown)"));
    }
    if !headers.is_empty() {
        description.push_str(&format!(", with the header {headers} (not shown)"));
    }
    if server.get("enabled") == Some(&Value::Bool(false)) {
        description.push_str(", off");
    }
    description
}
