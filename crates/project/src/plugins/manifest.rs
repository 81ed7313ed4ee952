//! Parses a plugin's manifest: `plugin.json` in the Agent Plugins format, or else
//! `.claude-plugin/plugin.json` in Claude's. It fetches no schema.

use super::contents::{MANIFEST_PATHS, PluginContents};
use super::line_escaping::escape_line;
use crate::ProjectError;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Our key in a manifest's `extensions`, and the name of its folder.
pub(super) const WINDLASS_KEY: &str = "dev.windlass";
/// The schemas of the supported format. Older files use the second URL for the same schema.
const MANIFEST_SCHEMAS: [&str; 2] =
    ["https://agent-plugins.org/schemas/1.0.0/", "https://open-plugins.com/"];
const MAX_MANIFEST_BYTES: usize = 256 << 10;
/// Limits the part of a text that is shown to the user.
const MAX_SHOWN_CHARS: usize = 300;

/// The manifest keys of both formats.
pub(super) const COMMON_KEYS: [&str; 9] = [
    "$schema",
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
];

/// The format of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginManifestFormat {
    /// Agent Plugins, with our extension.
    AgentPlugins,
    /// Claude's format.
    Claude,
}

/// The manifest of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginManifest {
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub format: PluginManifestFormat,
    /// The whole JSON object.
    pub(super) raw: Map<String, Value>,
    /// The access that our `extensions` entry requests.
    pub(super) access: RequestedPluginAccess,
}

/// Access requested in our `extensions` entry of a manifest, because the standard keys cannot
/// express it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RequestedPluginAccess {
    pub(super) servers: BTreeMap<String, RequestedProgramAccess>,
    pub(super) tools: RequestedProgramAccess,
}

/// The access that a program requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RequestedProgramAccess {
    /// Write access to the project.
    pub(super) write: bool,
    /// Hosts to reach.
    pub(super) network: Vec<String>,
    /// The time to start, in milliseconds.
    pub(super) timeout: Option<std::num::NonZeroU32>,
}

impl PluginManifest {
    /// Reads the manifest and the faults of its unused parts. A manifest that violates its format
    /// is rejected.
    pub(super) fn read(
        contents: &PluginContents,
    ) -> Result<(PluginManifest, Vec<String>), ProjectError> {
        let Some(path) = MANIFEST_PATHS.into_iter().find(|path| contents.contains(path)) else {
            let reason =
                "it contains neither plugin.json nor .claude-plugin/plugin.json".to_owned();
            return Err(ProjectError::Plugin { name: "this".to_owned(), reason });
        };
        let text = contents.read_text(path).unwrap_or(Ok("")).and_then(parse_object);
        let format = if path == MANIFEST_PATHS[0] {
            PluginManifestFormat::AgentPlugins
        } else {
            PluginManifestFormat::Claude
        };
        let manifest = text.and_then(|object| PluginManifest::from_object(object, format));
        manifest.map_err(|reason| ProjectError::Plugin { name: path.to_owned(), reason })
    }

    fn from_object(
        object: Map<String, Value>,
        format: PluginManifestFormat,
    ) -> Result<(PluginManifest, Vec<String>), String> {
        let mut faults = Vec::new();
        let name = object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !is_valid_name(&name) {
            return Err(
                "`name` must be up to 64 lowercase letters, digits, `-` and `.`; `-` and `.` \
                 must not be doubled, first or last"
                    .to_owned(),
            );
        }
        if format == PluginManifestFormat::AgentPlugins {
            check_format(&object)?;
            faults.extend(unknown_keys(&object));
        }
        let text = |key: &str| {
            let text = object.get(key).and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            text.map(|text| {
                escape_line(&windlass_protocol::display_text::truncate_chars(text, MAX_SHOWN_CHARS))
            })
        };
        let (version, description) = (text("version"), text("description"));
        let extension =
            object.get("extensions").and_then(|extensions| extensions.get(WINDLASS_KEY)).cloned();
        let access = match (format, extension) {
            (PluginManifestFormat::AgentPlugins, Some(extension)) => {
                serde_json::from_value(extension)
                    .map_err(|error| format!("`extensions.\"{WINDLASS_KEY}\"`: {error}"))?
            }
            (PluginManifestFormat::AgentPlugins, None) | (PluginManifestFormat::Claude, _) => {
                RequestedPluginAccess::default()
            }
        };
        Ok((PluginManifest { name, version, description, format, raw: object, access }, faults))
    }
}

pub(super) fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > MAX_MANIFEST_BYTES {
        return Err(format!("larger than {} kB", MAX_MANIFEST_BYTES >> 10));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("not an object, { … }".to_owned()),
        Err(error) => Err(format!("invalid JSON: {error}")),
    }
}

/// Returns `true` for a valid name, which is also safe as a path component.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_valid_end = |byte: Option<&u8>| byte.is_some_and(|byte| is_alphanumeric(*byte));
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| is_alphanumeric(byte) || matches!(byte, b'-' | b'.'))
        && is_valid_end(name.as_bytes().first())
        && is_valid_end(name.as_bytes().last())
        && !name.contains("--")
        && !name.contains("..")
}

/// Checks the types of the known keys.
fn check_format(object: &Map<String, Value>) -> Result<(), String> {
    let is_text = |value: &Value| value.is_string();
    for key in ["$schema", "version", "description", "homepage", "repository", "license"] {
        if object.get(key).is_some_and(|value| !is_text(value)) {
            return Err(format!("`{key}` must be a string"));
        }
    }
    if object.get("author").is_some_and(|author| {
        !author.get("name").is_some_and(is_text)
            || author.as_object().is_some_and(|author| !author.values().all(is_text))
    }) {
        return Err("`author` must be an object with a `name`".to_owned());
    }
    let is_text_list = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(is_text));
    if object.get("keywords").is_some_and(|keywords| !is_text_list(keywords)) {
        return Err("`keywords` must be a list of strings".to_owned());
    }
    let is_object_map =
        |map: &Value| map.as_object().is_some_and(|map| map.values().all(Value::is_object));
    if object.get("extensions").is_some_and(|extensions| !is_object_map(extensions)) {
        return Err("`extensions` must be an object of objects".to_owned());
    }
    Ok(())
}

/// Reports keys that the format does not define; they are ignored.
fn unknown_keys(object: &Map<String, Value>) -> Vec<String> {
    let unknown = object.keys().map(String::as_str);
    let unknown = unknown.filter(|key| !COMMON_KEYS.contains(key) && *key != "extensions");
    let mut faults: Vec<String> =
        unknown.map(|key| format!("plugin.json: unknown key `{key}`")).collect();
    let schema = object.get("$schema").and_then(Value::as_str);
    if let Some(other) =
        schema.filter(|url| !MANIFEST_SCHEMAS.iter().any(|prefix| url.starts_with(prefix)))
    {
        faults.push(format!("plugin.json: read as Agent Plugins 1.0.0, not as {other}"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_parts_of_paths() {
        for name in ["a", "a-b.c", "9", &"a".repeat(64)] {
            assert!(is_valid_name(name), "{name}");
        }
        for name in [
            "",
            "..",
            ".a",
            "a.",
            "-a",
            "a-",
            "a--b",
            "a..b",
            "A",
            "a/b",
            "a b",
            "é",
            &"a".repeat(65),
        ] {
            assert!(!is_valid_name(name), "{name}");
        }
    }

    #[test]
    fn an_invalid_manifest_is_refused_and_unknown_fields_are_reported() {
        let parse_faults = |text: &str| {
            parse_object(text)
                .and_then(|object| {
                    PluginManifest::from_object(object, PluginManifestFormat::AgentPlugins)
                })
                .map(|(_, faults)| faults)
        };
        assert_eq!(
            parse_faults(r#"{"name": "a", "keywords": ["x"], "author": {"name": "b"}}"#),
            Ok(vec![])
        );
        let faults_found =
            parse_faults(r#"{"name": "a", "hooks": {}, "$schema": "https://x.example/2"}"#)
                .unwrap();
        assert!(faults_found.len() == 2 && faults_found[0].contains("`hooks`"), "{faults_found:?}");
        for invalid in [
            "",
            "[]",
            "{",
            r#"{"name": 7}"#,
            r#"{"name": "a", "version": 1}"#,
            r#"{"name": "a", "author": "b"}"#,
            r#"{"name": "a", "keywords": [1]}"#,
            r#"{"name": "a", "extensions": {"x": 1}}"#,
            r#"{"name": "a", "extensions": {"dev.windlass": {"sandbox": false}}}"#,
            r#"{"name": "a", "extensions": {"dev.windlass": {"tools": {"write": "yes"}}}}"#,
            &format!("{}{}", r#"{"name": "a", "x": "#, "[".repeat(100_000)),
        ] {
            assert!(parse_faults(invalid).is_err(), "{invalid:.60}");
        }
    }
}
