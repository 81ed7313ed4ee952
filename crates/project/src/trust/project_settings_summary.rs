//! The settings that a project would apply, in lines for the user.

use crate::config::file_parser::{ConfigLayer, JsonCommentPolicy, PROJECT_FILES, ParsedConfig};
use serde_json::{Map, Value};
use std::path::Path;

/// Lists the settings of a file line by line, for the user who decides whether to trust it. `name`
/// is relative to the project.
pub(super) fn describe_settings(name: &str, text: &str) -> Vec<String> {
    let file = parse_settings(name, text);
    let mut settings_lines = Vec::new();
    list_settings(&file.value, name, "", &mut settings_lines);
    settings_lines.extend(file.diagnostics.iter().map(ToString::to_string));
    settings_lines
}

/// Parses a settings file of a project.
pub(super) fn parse_settings(name: &str, text: &str) -> ParsedConfig {
    match PROJECT_FILES.contains(&name) {
        true => ParsedConfig::parse(Path::new(name), ConfigLayer::Project, text),
        false => ParsedConfig::parse_untyped(
            Path::new(name),
            ConfigLayer::Project,
            text,
            JsonCommentPolicy::Forbidden,
        ),
    }
}

fn list_settings(
    map: &Map<String, Value>,
    file: &str,
    path: &str,
    settings_lines: &mut Vec<String>,
) {
    for (key, value) in map {
        // A key may contain any character; escaping keeps it from looking like something else.
        let name = key.escape_debug();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match value {
            Value::Object(map) if map.is_empty() => {
                settings_lines.push(format!("{file}: {path} = {{}}"))
            }
            Value::Object(map) => list_settings(map, file, &path, settings_lines),
            Value::String(_) if is_secret_name(key) => {
                settings_lines.push(format!("{file}: {path} (a key)"))
            }
            other => settings_lines.push(format!("{file}: {path} = {other}")),
        }
    }
}

/// Returns `true` if the last word of the name is `key`, `token` or similar. A name that only ends
/// in the same letters does not count.
fn is_secret_name(name: &str) -> bool {
    let mut words = String::new();
    let mut previous = ' ';
    for c in name.chars() {
        if c.is_uppercase() && previous.is_lowercase() {
            words.push(' ');
        }
        words.push(if c.is_alphanumeric() { c } else { ' ' });
        previous = c;
    }
    let last = words.split_whitespace().last().unwrap_or_default().to_lowercase();
    ["key", "apikey", "token", "secret", "password"].contains(&last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_whose_name_ends_in_a_secret_word_are_hidden() {
        for name in ["key", "api_key", "apiKey", "API_KEY", "x-auth-token", "clientSecret", "a.key"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["commandtoken", "monkey", "keys", "token_command", "command", "", "🔑"] {
            assert!(!is_secret_name(name), "{name}");
        }
        let shown = describe_settings(
            ".mcp.json",
            r#"{"a": {"token": {"run": "x"}, "key": ["rm"], "e": {}}}"#,
        );
        let expected = ["a.token.run = \"x\"", "a.key = [\"rm\"]", "a.e = {}"];
        assert!(shown.iter().zip(expected).all(|(shown, all)| shown.ends_with(all)), "{shown:?}");
        assert_eq!(shown.len(), 3);
    }

    #[test]
    fn duplicate_keys_in_mcp_json_are_reported() {
        let duplicate_key = r#"{"mcpServers": {"s": {"command": "calm", "command": "evil"}}}"#;
        let shown = describe_settings(".mcp.json", duplicate_key).join("\n");
        assert!(shown.contains("evil") && shown.contains("duplicate key `command`"), "{shown}");
        let shown = describe_settings(".mcp.json", "{ // calm\n}").join("\n");
        assert!(shown.contains("invalid JSON"), "{shown}");
        for deep in ["[", "{\"a\":"] {
            let shown = describe_settings(".mcp.json", &deep.repeat(100_000)).join("\n");
            assert!(shown.contains("invalid JSON"), "{}", shown.len());
        }
    }
}
