//! What a plugin says of itself: `plugin.json` in the Agent Plugins format, or `.claude-plugin/plugin.json`
//! in Claude's if there is only that. No schema is fetched.

use super::contents::Contents;
use super::touches::flat;
use crate::Error;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where a manifest is; the first that is there counts.
pub(super) const PLACES: [&str; 2] = ["plugin.json", ".claude-plugin/plugin.json"];
/// The names that our part has in a manifest, and its folder.
pub(super) const OURS: &str = "dev.windlass";
/// The form that is read. Older files name another place for the same.
const SCHEMAS: [&str; 2] =
    ["https://agent-plugins.org/schemas/1.0.0/", "https://open-plugins.com/"];
/// No manifest needs to be longer.
const LONGEST: usize = 256 << 10;
/// No text in it that people read is shown further.
const LONGEST_TEXT: usize = 300;

/// What a plugin says of itself in either form.
pub(super) const COMMON: [&str; 9] = [
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

/// Whose form a plugin has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// That of Agent Plugins, with our part.
    Agent,
    /// Claude's.
    Claude,
}

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version, if it says so.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whose form it has.
    pub format: Format,
    /// All of it.
    pub(super) said: Map<String, Value>,
    /// What our part of it asks for.
    pub(super) wants: Wants,
}

/// What our part of a manifest asks for, because other parts cannot say it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Wants {
    /// Servers by their names.
    pub(super) servers: BTreeMap<String, Want>,
    /// All tools.
    pub(super) tools: Want,
}

/// What a program asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Want {
    /// To write in the project.
    pub(super) write: bool,
    /// To reach these hosts.
    pub(super) network: Vec<String>,
    /// To take so long to start, in milliseconds.
    pub(super) timeout: Option<std::num::NonZeroU32>,
}

impl Manifest {
    /// Reads the manifest, with what of it is not used. One that breaks its format is refused.
    pub(super) fn read(contents: &Contents) -> Result<(Manifest, Vec<String>), Error> {
        let Some(place) = PLACES.into_iter().find(|place| contents.has(place)) else {
            let reason = "there is no plugin.json in it, nor .claude-plugin/plugin.json".to_owned();
            return Err(Error::Plugin { what: "this".to_owned(), reason });
        };
        let text = contents.text(place).unwrap_or(Ok("")).and_then(parsed);
        let format = if place == PLACES[0] { Format::Agent } else { Format::Claude };
        let read = text.and_then(|said| Manifest::of(said, format));
        read.map_err(|reason| Error::Plugin { what: place.to_owned(), reason })
    }

    fn of(said: Map<String, Value>, format: Format) -> Result<(Manifest, Vec<String>), String> {
        let mut faults = Vec::new();
        let name = said.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !is_name(&name) {
            return Err(
                "its `name` has small letters, digits, `-` and `.`, 64 at most, with none \
                        of the last two twice in a row, at its beginning or at its end"
                    .to_owned(),
            );
        }
        if format == Format::Agent {
            check(&said)?;
            faults.extend(unknown(&said));
        }
        let text = |key: &str| {
            let text = said.get(key).and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            text.map(|text| flat(&windlass_protocol::text::beginning(text, LONGEST_TEXT)))
        };
        let (version, description) = (text("version"), text("description"));
        let ours = said.get("extensions").and_then(|extensions| extensions.get(OURS)).cloned();
        let wants = match (format, ours) {
            (Format::Agent, Some(ours)) => serde_json::from_value(ours)
                .map_err(|error| format!("`extensions.\"{OURS}\"`: {error}"))?,
            (Format::Agent, None) | (Format::Claude, _) => Wants::default(),
        };
        Ok((Manifest { name, version, description, format, said, wants }, faults))
    }
}

/// An object of JSON.
pub(super) fn parsed(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} kB", LONGEST >> 10));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("it is no object, { … }".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// True for a name that is also safe as a part of a path.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let ends = |letter: Option<&u8>| letter.is_some_and(|letter| plain(*letter));
    (1..=64).contains(&name.len())
        && name.bytes().all(|letter| plain(letter) || matches!(letter, b'-' | b'.'))
        && ends(name.as_bytes().first())
        && ends(name.as_bytes().last())
        && !name.contains("--")
        && !name.contains("..")
}

/// What breaks the format.
fn check(said: &Map<String, Value>) -> Result<(), String> {
    let is_text = |value: &Value| value.is_string();
    for key in ["$schema", "version", "description", "homepage", "repository", "license"] {
        if said.get(key).is_some_and(|value| !is_text(value)) {
            return Err(format!("its `{key}` is no text"));
        }
    }
    if said.get("author").is_some_and(|author| {
        !author.get("name").is_some_and(is_text)
            || author.as_object().is_some_and(|author| !author.values().all(is_text))
    }) {
        return Err("its `author` is no object with a `name`".to_owned());
    }
    let texts = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(is_text));
    if said.get("keywords").is_some_and(|keywords| !texts(keywords)) {
        return Err("its `keywords` are no list of texts".to_owned());
    }
    let objects =
        |map: &Value| map.as_object().is_some_and(|map| map.values().all(Value::is_object));
    if said.get("extensions").is_some_and(|extensions| !objects(extensions)) {
        return Err("its `extensions` are no objects by name".to_owned());
    }
    Ok(())
}

/// What the format does not know, which is told and passed over.
fn unknown(said: &Map<String, Value>) -> Vec<String> {
    let strange = said.keys().map(String::as_str);
    let strange = strange.filter(|key| !COMMON.contains(key) && *key != "extensions");
    let mut faults: Vec<String> =
        strange.map(|key| format!("plugin.json: `{key}` is not known")).collect();
    let schema = said.get("$schema").and_then(Value::as_str);
    if let Some(other) = schema.filter(|at| !SCHEMAS.iter().any(|known| at.starts_with(known))) {
        faults.push(format!("plugin.json: it is read as Agent Plugins 1.0.0, not as {other}"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_parts_of_paths() {
        for name in ["a", "a-b.c", "9", &"a".repeat(64)] {
            assert!(is_name(name), "{name}");
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
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn what_breaks_the_format_is_refused_and_what_is_unknown_is_told() {
        let read = |text: &str| {
            parsed(text)
                .and_then(|said| Manifest::of(said, Format::Agent))
                .map(|(_, faults)| faults)
        };
        assert_eq!(
            read(r#"{"name": "a", "keywords": ["x"], "author": {"name": "b"}}"#),
            Ok(vec![])
        );
        let told = read(r#"{"name": "a", "hooks": {}, "$schema": "https://x.example/2"}"#).unwrap();
        assert!(told.len() == 2 && told[0].contains("`hooks`"), "{told:?}");
        for wrong in [
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
            assert!(read(wrong).is_err(), "{wrong:.60}");
        }
    }
}
