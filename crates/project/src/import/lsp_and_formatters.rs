//! Imports `lsp` and `formatter` entries from OpenCode's format.

use super::plan_builder::ImportPlanBuilder;
use super::secret_detection;
use serde_json::{Map, Value, json};

pub(super) fn import_language_server(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    value: Value,
) {
    let setting = format!("lsp.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    if map.get("disabled") == Some(&Value::Bool(true)) {
        return builder.set_key(&["lsp", name, "enabled"], false.into(), "false");
    }
    let mut converted = Map::new();
    for key in ["command", "initialization", "env"] {
        match map.shift_remove(key) {
            Some(value) if may_hold_secret(key, &value) => {
                builder.skip(
                    format!("{setting}.{key}"),
                    "values that look like secrets are not copied",
                );
            }
            Some(value) => drop(converted.insert(key.to_owned(), value)),
            None => {}
        }
    }
    if let Some(Value::Array(extensions)) = map.shift_remove("extensions") {
        // OpenCode derives the LSP language ID itself; the file extension is close to it.
        let language_ids = extensions.iter().filter_map(Value::as_str);
        let language_ids = language_ids
            .map(|extension| (extension.to_owned(), json!(extension.trim_start_matches('.'))));
        converted.insert("extensions".into(), language_ids.collect::<Map<_, _>>().into());
    }
    map.retain(|key, _| key != "disabled");
    let unsupported: Vec<String> = map.keys().cloned().collect();
    builder.skip_unsupported(&setting, &unsupported.iter().map(String::as_str).collect::<Vec<_>>());
    for (key, value) in converted {
        let description = value.to_string();
        builder.set_key(&["lsp", name, &key], value, &description);
    }
}

/// Returns `true` if a part of the value looks like a secret or is read from a file.
fn may_hold_secret(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{file:") || secret_detection::is_secret(name, text),
        Value::Array(items) => items.iter().any(|item| may_hold_secret(name, item)),
        Value::Object(map) => map.iter().any(|(name, item)| may_hold_secret(name, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Imports that a formatter is `disabled`. OpenCode's formatters change a file in place, which ours
/// cannot do.
pub(super) fn import_formatter(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("formatter.{name}");
    let Value::Object(map) = value else { return builder.skip(setting, "not an object") };
    if map.get("disabled") == Some(&Value::Bool(true)) {
        return builder.set_key(&["formatter", name, "enabled"], false.into(), "false");
    }
    builder.skip(
        setting,
        "formatters must read standard input and write standard output; see the book's page on \
         formatters",
    );
}
