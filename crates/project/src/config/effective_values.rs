//! The effective values of a config, recorded for display with their origins.

use super::Config;
use crate::config::file_parser::{ConfigOrigin, ParsedConfig};
use crate::config::json_pointer;
use serde_json::Value;

impl Config {
    /// Records every value below `pointer` for display, and hides values that may be secret.
    pub(super) fn record_values(
        &mut self,
        name: &str,
        value: &Value,
        pointer: &str,
        file: &ParsedConfig,
    ) {
        let origin = file.origin_of(pointer).clone();
        let is_secret = name.ends_with(".api_key")
            || name.contains(".headers.")
            || (["mcp.", "lsp.", "formatter."].iter().any(|prefix| name.starts_with(prefix))
                && [".env.", ".environment.", "ecret"].iter().any(|part| name.contains(part)));
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    let inner = json_pointer::join(pointer, key);
                    self.record_values(&format!("{name}.{key}"), value, &inner, file);
                }
            }
            _ if is_secret => self.record_value(name, "(set)", &origin),
            // A URL may contain a password, though it should not.
            Value::String(text) if text.contains('@') => self.record_value(name, "(set)", &origin),
            Value::String(text) => self.record_value(name, text, &origin),
            other => self.record_value(name, &other.to_string(), &origin),
        }
    }

    pub(super) fn record_permission(&mut self, value: &Value, pointer: &str, file: &ParsedConfig) {
        match value {
            // A deny with exceptions.
            Value::Object(map) if map.get("except").is_some_and(|except| !except.is_string()) => {
                let level = map.get("level").and_then(Value::as_str).unwrap_or_default();
                let except = map.get("except").unwrap_or(&Value::Null);
                self.record_permission(&format!("{level} except {except}").into(), pointer, file);
            }
            Value::Object(map) => {
                for (key, value) in map {
                    self.record_permission(value, &json_pointer::join(pointer, key), file);
                }
            }
            other => {
                let origin = file.origin_of(&format!("/permission{pointer}")).clone();
                let names: Vec<String> = json_pointer::segments(pointer).collect();
                let path =
                    if names.is_empty() { String::new() } else { format!(".{}", names.join(" ")) };
                let level = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                self.record_value(&format!("permission{path}"), &level, &origin);
            }
        }
    }

    pub(super) fn record_value(&mut self, name: &str, value: &str, origin: &ConfigOrigin) {
        // A stronger layer replaces the value of a weaker one, except where both count:
        // `permission` rules, `instructions` and `plugin` accumulate.
        let accumulates =
            name.starts_with("permission") || matches!(name, "instructions" | "plugin");
        if !accumulates {
            self.effective_values.retain(|(value_name, ..)| value_name != name);
        }
        self.effective_values.push((name.to_owned(), value.to_owned(), origin.clone()));
    }
}
