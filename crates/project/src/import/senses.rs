//! Language servers and formatters, from OpenCode's form into ours.

use super::draft::Draft;
use super::secret;
use serde_json::{Map, Value, json};

/// Carries a language server over.
pub(super) fn take_language_server(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("lsp.{name}");
    let Value::Object(mut map) = value else { return draft.leave(at, "it is not an object") };
    if map.get("disabled") == Some(&Value::Bool(true)) {
        return draft.set(&["lsp", name, "enabled"], false.into(), "false");
    }
    let mut ours = Map::new();
    for key in ["command", "initialization", "env"] {
        match map.shift_remove(key) {
            Some(value) if suspicious(key, &value) => {
                draft.leave(format!("{at}.{key}"), "what looks like a secret is not copied");
            }
            Some(value) => drop(ours.insert(key.to_owned(), value)),
            None => {}
        }
    }
    if let Some(Value::Array(ends)) = map.shift_remove("extensions") {
        // OpenCode finds out what the protocol calls such files; the end of the name is near it.
        let named = ends.iter().filter_map(Value::as_str);
        let named = named.map(|end| (end.to_owned(), json!(end.trim_start_matches('.'))));
        ours.insert("extensions".into(), named.collect::<Map<_, _>>().into());
    }
    map.retain(|key, _| key != "disabled");
    let rest: Vec<String> = map.keys().cloned().collect();
    draft.leave_rest(&at, &rest.iter().map(String::as_str).collect::<Vec<_>>());
    for (key, value) in ours {
        let told = value.to_string();
        draft.set(&["lsp", name, &key], value, &told);
    }
}

/// True if something in it looks like a secret, or is read from a file.
fn suspicious(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{file:") || secret::is_secret(name, text),
        Value::Array(items) => items.iter().any(|item| suspicious(name, item)),
        Value::Object(map) => map.iter().any(|(name, item)| suspicious(name, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Carries over that a formatter is switched off. OpenCode's own change a file where it stands,
/// which no formatter can do here.
pub(super) fn take_formatter(draft: &mut Draft<'_>, name: &str, value: Value) {
    let at = format!("formatter.{name}");
    let Value::Object(map) = value else { return draft.leave(at, "it is not an object") };
    if map.get("disabled") == Some(&Value::Bool(true)) {
        return draft.set(&["formatter", name, "enabled"], false.into(), "false");
    }
    draft.leave(
        at,
        "a formatter reads standard input here and writes standard output; the book's page on \
         formatters says how to add it",
    );
}
