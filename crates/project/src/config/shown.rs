//! What a config sets, in lines for a person: what is in force, and what a project would set.

use super::Config;
use crate::file::{Comments, File, Layer, Origin};
use crate::pointer;
use serde_json::{Map, Value};
use std::path::Path;

impl Config {
    /// Shows everything that is said at a place, except what may be secret.
    pub(super) fn show_all(&mut self, name: &str, value: &Value, pointer: &str, file: &File) {
        let origin = file.origin(pointer).clone();
        let secret = name.ends_with(".api_key")
            || name.contains(".headers.")
            || (["mcp.", "lsp.", "formatter."].iter().any(|top| name.starts_with(top))
                && [".env.", ".environment.", "ecret"].iter().any(|part| name.contains(part)));
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    let inner = pointer::join(pointer, key);
                    self.show_all(&format!("{name}.{key}"), value, &inner, file);
                }
            }
            _ if secret => self.show(name, "(set)", &origin),
            // An address may hold a password, though it should not.
            Value::String(text) if text.contains('@') => self.show(name, "(set)", &origin),
            Value::String(text) => self.show(name, text, &origin),
            other => self.show(name, &other.to_string(), &origin),
        }
    }

    pub(super) fn show_permission(&mut self, value: &Value, pointer: &str, file: &File) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.show_permission(value, &pointer::join(pointer, key), file);
                }
            }
            other => {
                let origin = file.origin(&format!("/permission{pointer}")).clone();
                let names: Vec<String> = pointer::names(pointer).collect();
                let path =
                    if names.is_empty() { String::new() } else { format!(".{}", names.join(" ")) };
                let level = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                self.show(&format!("permission{path}"), &level, &origin);
            }
        }
    }

    pub(super) fn show(&mut self, name: &str, value: &str, origin: &Origin) {
        // A stronger layer replaces what a weaker one said of the same thing, except where both
        // count: rules add up, and so do instructions.
        let adds_up = name.starts_with("permission") || name == "instructions";
        if !adds_up {
            self.shown.retain(|(shown, ..)| shown != name);
        }
        self.shown.push((name.to_owned(), value.to_owned(), origin.clone()));
    }
}

/// What a file of settings would set, line by line, for the person who is asked to trust it. Its
/// name is relative to the project.
pub(crate) fn wishes(name: &str, text: &str) -> Vec<String> {
    let own = crate::PROJECT_FILES.contains(&name);
    let file = match own {
        true => File::parse(Path::new(name), Layer::Project, text),
        false => File::bare(Path::new(name), Layer::Project, text, Comments::Refused),
    };
    let mut wishes = Vec::new();
    list(&file.value, name, "", &mut wishes);
    wishes.extend(file.diagnostics.iter().map(ToString::to_string));
    wishes
}

fn list(map: &Map<String, Value>, file: &str, path: &str, wishes: &mut Vec<String>) {
    for (key, value) in map {
        // A key may hold anything; it must not look like something else.
        let name = key.escape_debug();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match value {
            Value::Object(map) if map.is_empty() => wishes.push(format!("{file}: {path} = {{}}")),
            Value::Object(map) => list(map, file, &path, wishes),
            Value::String(_) if is_secret(key) => wishes.push(format!("{file}: {path} (a key)")),
            other => wishes.push(format!("{file}: {path} = {other}")),
        }
    }
}

/// True if a key, a token or the like is meant to stand under this name: its last word says so.
/// A name that only ends in the same letters hides nothing.
fn is_secret(name: &str) -> bool {
    let mut words = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.push(if letter.is_alphanumeric() { letter } else { ' ' });
        before = letter;
    }
    let last = words.split_whitespace().last().unwrap_or_default().to_lowercase();
    ["key", "apikey", "token", "secret", "password"].contains(&last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hidden_by_the_last_word_of_its_name_and_nothing_else_is() {
        for name in ["key", "api_key", "apiKey", "API_KEY", "x-auth-token", "clientSecret", "a.key"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["commandtoken", "monkey", "keys", "token_command", "command", "", "🔑"] {
            assert!(!is_secret(name), "{name}");
        }
        let shown =
            wishes(".mcp.json", r#"{"a": {"token": {"run": "x"}, "key": ["rm"], "e": {}}}"#);
        let expected = ["a.token.run = \"x\"", "a.key = [\"rm\"]", "a.e = {}"];
        assert!(shown.iter().zip(expected).all(|(shown, all)| shown.ends_with(all)), "{shown:?}");
        assert_eq!(shown.len(), 3);
    }

    #[test]
    fn what_stands_twice_in_a_list_of_servers_is_told() {
        let twice = r#"{"mcpServers": {"s": {"command": "calm", "command": "evil"}}}"#;
        let shown = wishes(".mcp.json", twice).join("\n");
        assert!(shown.contains("evil") && shown.contains("`command` stands here twice"), "{shown}");
        let shown = wishes(".mcp.json", "{ // calm\n}").join("\n");
        assert!(shown.contains("this is not JSON"), "{shown}");
        for deep in ["[", "{\"a\":"] {
            let shown = wishes(".mcp.json", &deep.repeat(100_000)).join("\n");
            assert!(shown.contains("this is not JSON"), "{}", shown.len());
        }
    }
}
