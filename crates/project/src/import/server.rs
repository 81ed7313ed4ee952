//! Servers of the Model Context Protocol, from the forms of others into ours.
//!
//! What refers to the environment stays a reference. A value that looks like a secret goes into the
//! person's own config and nowhere else.

use super::draft::Draft;
use super::{Side, secret};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Programs that fetch what they run, and so need the registries.
const FETCHING: [&str; 4] = ["npx", "uvx", "bunx", "pipx"];

/// Carries a server over in OpenCode's form.
pub(super) fn opencode(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("mcp.{name}");
    let Value::Object(mut map) = value else { return draft.leave(at, "it is not an object") };
    if !map.contains_key("command") && !map.contains_key("url") {
        return draft.leave(at, "it has neither a command nor an address");
    }
    let mut ours = Map::new();
    for key in ["type", "command", "cwd", "url", "headers", "enabled", "timeout"] {
        if let Some(value) = map.shift_remove(key) {
            ours.insert(key.to_owned(), value);
        }
    }
    if let Some(value) = map.shift_remove("environment").or_else(|| map.shift_remove("env")) {
        ours.insert("env".into(), value);
    }
    match map.shift_remove("oauth") {
        Some(Value::Object(mut oauth)) => {
            if oauth.shift_remove("redirectUri").is_some() {
                draft.leave_rest(&format!("{at}.oauth"), &["redirectUri"]);
            }
            ours.insert("oauth".into(), oauth.into());
        }
        Some(other) => drop(ours.insert("oauth".into(), other)),
        None => {}
    }
    carry(draft, name, (ours, map));
}

/// Carries a server over in the form that Claude and others share.
pub(super) fn claude(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("mcpServers.{name}");
    let Value::Object(mut map) = value else { return draft.leave(at, "it is not an object") };
    let kind = map.shift_remove("type");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or("");
    let mut ours = Map::new();
    match (map.shift_remove("command"), map.shift_remove("url")) {
        (Some(program), None) if matches!(kind, "" | "stdio") => {
            let args = map.shift_remove("args").unwrap_or_else(|| json!([]));
            let Value::Array(args) = args else { return draft.leave(at, "`args` is no list") };
            ours.insert("type".into(), "local".into());
            ours.insert("command".into(), std::iter::once(program).chain(args).collect());
        }
        (None, Some(url)) if matches!(kind, "" | "http" | "streamable-http") => {
            ours.insert("type".into(), "remote".into());
            ours.insert("url".into(), url);
        }
        (_, Some(_)) if kind == "sse" => {
            return draft.leave(at, "servers of the kind `sse` are no longer spoken to");
        }
        (_, _) => {
            return draft.leave(at, "it is neither a program nor an address that is known here");
        }
    }
    for key in ["env", "headers", "cwd"] {
        if let Some(value) = map.shift_remove(key) {
            ours.insert(key.to_owned(), value);
        }
    }
    if map.shift_remove("disabled") == Some(Value::Bool(true)) {
        ours.insert("enabled".into(), false.into());
    }
    for key in ["env", "headers"] {
        let Some(Value::Object(values)) = ours.get_mut(key) else { continue };
        for value in values.values_mut() {
            match value.as_str().map(referring) {
                Some(Some(text)) => *value = text.into(),
                Some(None) => {
                    let why =
                        "`${…:-…}` has no form here; use `{env:NAME}` with `windlass mcp add`";
                    return draft.leave(at, why);
                }
                None => {}
            }
        }
    }
    if ["command", "url", "cwd"]
        .iter()
        .any(|key| ours.get(*key).is_some_and(|it| secret::mentions(it, "${")))
    {
        return draft
            .leave(at, "variables are put into `env` and `headers` only, not into commands");
    }
    carry(draft, name, (ours, map));
}

/// `${X}` as we write it; `None` if it says more than that.
fn referring(text: &str) -> Option<String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}')?;
        let plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return None;
        }
        whole.push_str(before);
        whole.push_str(&format!("{{env:{name}}}"));
        rest = behind;
    }
    Some(whole + rest)
}

fn carry(
    draft: &mut Draft<'_>,
    name: &str,
    (mut ours, rest): (Map<String, Value>, Map<String, Value>),
) {
    let at = format!("mcp.{name}");
    if let Some(why) = objection(draft.side, &ours) {
        return draft.leave(at, why);
    }
    let told = told(&ours);
    let words = words(&ours);
    if let Some(program) = words.first() {
        let program = Path::new(program).file_name().and_then(|name| name.to_str());
        if program.is_some_and(|name| FETCHING.contains(&name)) {
            ours.insert("network".into(), json!(["registries"]));
        }
        draft.remark(
            "servers that are programs run in the sandbox. Give each the hosts it needs: \
             \"network\": [\"api.example.com\"] beside its command",
        );
        if draft.side == Side::Project {
            draft.remark(
                "a project's server may only read the project, unless \"write\": true stands beside \
                 its command",
            );
        }
    }
    let needed = variables(&ours);
    if !needed.is_empty() {
        let needed = needed.join(", ");
        draft.remark(format!("{at} counts where {needed} is set in the environment"));
    }
    draft.leave_rest(&at, &rest.keys().map(String::as_str).collect::<Vec<_>>());
    draft.set(&["mcp", name], Value::Object(ours), &told);
}

fn words(server: &Map<String, Value>) -> Vec<String> {
    let command = server.get("command").and_then(Value::as_array);
    command.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The variables that a server refers to.
fn variables(server: &Map<String, Value>) -> Vec<String> {
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

/// Why a server cannot stand where it would go.
fn objection(side: Side, server: &Map<String, Value>) -> Option<String> {
    let whole = Value::Object(server.clone());
    if secret::mentions(&whole, "{file:") {
        return Some("`{file:…}` is not read; use `{env:NAME}` with `windlass mcp add`".into());
    }
    let outer = ["command", "url", "cwd"].iter().filter_map(|key| server.get(*key));
    if outer.into_iter().any(|value| secret::mentions(value, "{env:")) {
        return Some("variables are put into `env` and `headers` only, not into commands".into());
    }
    if side == Side::Own {
        return None;
    }
    if secret::mentions(&whole, "{env:") {
        let why = "a project cannot read the environment; add it to your own config with \
                   `windlass mcp add`";
        return Some(why.into());
    }
    let hidden = |key: &str| {
        let values = server.get(key).and_then(Value::as_object).into_iter().flatten();
        let mut values = values.filter_map(|(name, value)| Some((name, value.as_str()?)));
        values.find(|(name, value)| secret::is_secret(name, value)).map(|(name, _)| name.clone())
    };
    let named = hidden("env").or_else(|| hidden("headers")).or_else(|| {
        let client = server.get("oauth").and_then(|oauth| oauth.get("clientSecret"));
        client.map(|_| "clientSecret".to_owned())
    });
    let command = words(server);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let url = server.get("url").and_then(Value::as_str);
    let named =
        named.or_else(|| secret::in_words(&command).then(|| "its command".to_owned())).or_else(
            || url.filter(|url| secret::masked_url(url) != *url).map(|_| "its address".to_owned()),
        );
    let what = named?;
    Some(format!(
        "what stands in {what} looks like a secret, which goes into no project's file; add it to your \
         own config with `windlass mcp add`"
    ))
}

/// What a person is shown of a server. Values of its environment and headers are not part of it.
fn told(server: &Map<String, Value>) -> String {
    let names = |key: &str| {
        let map = server.get(key).and_then(Value::as_object);
        map.into_iter().flatten().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let command = words(server);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut told = match server.get("url").and_then(Value::as_str) {
        Some(url) => format!("at {}", secret::masked_url(url)),
        None => format!("runs {}", secret::masked(&command)),
    };
    let (env, headers) = (names("env"), names("headers"));
    if !env.is_empty() {
        told.push_str(&format!(", with {env} set (not shown)"));
    }
    if !headers.is_empty() {
        told.push_str(&format!(", with the header {headers} (not shown)"));
    }
    if server.get("enabled") == Some(&Value::Bool(false)) {
        told.push_str(", off");
    }
    told
}
