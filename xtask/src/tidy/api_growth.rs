//! Checks that the HTTP API only grows within its version: clients of the last release keep working
//! with later servers. Requests may gain optional fields and lose required ones, responses may gain
//! fields; nothing is removed or changes its type.

use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The published description of the API.
const DOCUMENT: &str = "docs/schema/api.openapi.json";

/// Keys for people, which may change.
const TEXT_KEYS: &[&str] = &["description", "summary", "title", "example", "examples", "info"];

/// Keys with a map of names; a name of the last release stays.
const NAME_KEYS: &[&str] =
    &["paths", "properties", "responses", "content", "schemas", "securitySchemes", "headers"];

/// Compares the document with that of the last release. Without a release, nothing is promised yet.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(root).output();
        output.context("cannot start git")
    };
    let described = git(&["describe", "--tags", "--match", "v*", "--abbrev=0"])?;
    if !described.status.success() {
        return Ok(Vec::new());
    }
    let tag = String::from_utf8(described.stdout)?;
    let released = git(&["show", &format!("{}:{DOCUMENT}", tag.trim())])?;
    if !released.status.success() {
        // The API is younger than the release.
        return Ok(Vec::new());
    }
    let released: Value = serde_json::from_slice(&released.stdout)?;
    let current: Value = serde_json::from_slice(&std::fs::read(root.join(DOCUMENT))?)?;
    Ok(compare(&released, &current))
}

/// Returns what clients of the released API would miss.
pub(crate) fn compare(released: &Value, current: &Value) -> Vec<String> {
    let version = |document: &Value| document.pointer("/info/version").cloned();
    if version(released) != version(current) {
        return Vec::new();
    }
    let mut comparison = Comparison {
        sent_schemas: sent_schemas(released),
        is_sent: false,
        is_received: true,
        faults: Vec::new(),
    };
    comparison.compare_values("", released, current);
    comparison.faults
}

struct Comparison {
    /// Schemas that are part of requests.
    sent_schemas: BTreeSet<String>,
    /// Whether clients send the current part, and whether they receive it.
    is_sent: bool,
    is_received: bool,
    faults: Vec<String>,
}

impl Comparison {
    fn report(&mut self, path: &str, change: &str) {
        self.faults.push(format!(
            "{DOCUMENT}: `{path}` {change} since the last release; the API may only grow within its \
             version"
        ));
    }

    fn compare_values(&mut self, path: &str, released: &Value, current: &Value) {
        let (Some(released), Some(current)) = (released.as_object(), current.as_object()) else {
            if released != current {
                self.report(path, "changed");
            }
            return;
        };
        for (key, old) in released.iter().filter(|(key, _)| !TEXT_KEYS.contains(&key.as_str())) {
            let path = format!("{path}/{key}");
            let new = current.get(key).unwrap_or(&Value::Null);
            match (key.as_str(), new) {
                ("required", _) => self.compare_required(&path, old, new),
                ("oneOf" | "anyOf" | "enum" | "parameters", _) => {
                    self.compare_variants(&path, old, new);
                }
                (name, _) if NAME_KEYS.contains(&name) => self.compare_names(&path, old, new),
                (_, Value::Null) if !old.is_null() => self.report(&path, "is missing"),
                ("requestBody", _) => {
                    (self.is_sent, self.is_received) = (true, false);
                    self.compare_values(&path, old, new);
                    (self.is_sent, self.is_received) = (false, true);
                }
                _ => self.compare_values(&path, old, new),
            }
        }
        let is_new = |key: &&str| current.contains_key(*key) && !released.contains_key(*key);
        for key in ["required", "enum", "pattern", "requestBody"].iter().filter(|key| is_new(key)) {
            match *key {
                "required" => {
                    let path = format!("{path}/required");
                    self.compare_required(&path, &Value::Null, &current["required"]);
                }
                key => self.report(&format!("{path}/{key}"), "was added"),
            }
        }
    }

    /// Compares maps of names; new names are allowed.
    fn compare_names(&mut self, path: &str, released: &Value, current: &Value) {
        for (name, old) in released.as_object().into_iter().flatten() {
            let path = format!("{path}/{name}");
            let is_schema = path.strip_prefix("/components/schemas/") == Some(name.as_str());
            if is_schema {
                self.is_sent = self.sent_schemas.contains(name);
            }
            match current.get(name) {
                Some(new) => self.compare_values(&path, old, new),
                None => self.report(&path, "is missing"),
            }
            if is_schema {
                self.is_sent = false;
            }
        }
    }

    fn compare_required(&mut self, path: &str, released: &Value, current: &Value) {
        if *current == true && *released != true {
            self.report(path, "was added");
        }
        let names = |value: &Value| -> BTreeSet<String> {
            let values = value.as_array().into_iter().flatten();
            values.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (released, current) = (names(released), names(current));
        if self.is_sent {
            for name in current.difference(&released) {
                self.report(&format!("{path}/{name}"), "must be sent");
            }
        }
        if self.is_received {
            for name in released.difference(&current) {
                self.report(&format!("{path}/{name}"), "may be missing");
            }
        }
    }

    /// Compares lists whose order does not matter; new variants are allowed.
    fn compare_variants(&mut self, path: &str, released: &Value, current: &Value) {
        let variants = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let current = variants(current);
        let released = variants(released);
        for old in &released {
            let name = variant_name(old);
            let path = format!("{path}/{name}");
            match current.iter().find(|new| variant_name(new) == name) {
                Some(new) => self.compare_values(&path, old, new),
                None => self.report(&path, "is missing"),
            }
        }
        for new in current.iter().filter(|new| new["required"] == true && new.get("in").is_some()) {
            let name = variant_name(new);
            if !released.iter().any(|old| variant_name(old) == name) {
                self.report(&format!("{path}/{name}"), "must be sent");
            }
        }
    }
}

/// Returns the name by which a variant or parameter is found again: its constants, or the schema or
/// type that it is.
fn variant_name(variant: &Value) -> String {
    if let (Some(place), Some(name)) = (variant["in"].as_str(), variant["name"].as_str()) {
        return format!("{place} {name}");
    }
    if let Some(schema) = variant["$ref"].as_str() {
        return schema.to_owned();
    }
    let properties = variant["properties"].as_object();
    let constants: Vec<String> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some(format!("{name}={}", schema.get("const")?)))
        .collect();
    match (variant.get("const"), constants.is_empty(), properties) {
        (Some(constant), _, _) => constant.to_string(),
        (None, false, _) => constants.join(" "),
        (None, true, Some(properties)) if !properties.is_empty() => {
            properties.keys().cloned().collect::<Vec<_>>().join(" ")
        }
        (None, true, _) if variant.is_object() => variant["type"].to_string(),
        (None, true, _) => variant.to_string(),
    }
}

/// Returns the names of the schemas that requests contain, directly or in other schemas.
fn sent_schemas(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&Value> = Vec::new();
    for path in document["paths"].as_object().into_iter().flat_map(|paths| paths.values()) {
        for operation in path.as_object().into_iter().flat_map(|path| path.values()) {
            pending.extend([&operation["requestBody"], &operation["parameters"]]);
        }
    }
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(map) => pending.extend(map.values()),
            Value::Array(values) => pending.extend(values),
            Value::String(text) => {
                if let Some(name) = text.strip_prefix("#/components/schemas/")
                    && found.insert(name.to_owned())
                {
                    pending.extend(document.pointer(&format!("/components/schemas/{name}")));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn released() -> Value {
        json!({
            "info": {"version": "1", "description": "The API."},
            "paths": {"/v1/sessions": {"post": {
                "parameters": [{"in": "query", "name": "limit", "schema": {"type": "integer"}}],
                "requestBody": {"content": {"application/json": {"schema": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string"},
                        "op": {"$ref": "#/components/schemas/Op"},
                    },
                    "required": ["title"],
                }}}},
                "responses": {"200": {"content": {"application/json": {"schema": {
                    "$ref": "#/components/schemas/Session",
                }}}}},
            }}},
            "components": {"schemas": {
                "Session": {"type": "object", "properties": {
                    "id": {"type": "string", "format": "uuid"},
                }, "required": ["id"]},
                "Op": {"oneOf": [
                    {"type": "object", "properties": {
                        "op": {"const": "prompt"}, "text": {"type": "string"},
                    }, "required": ["op", "text"]},
                    {"type": "object", "properties": {"op": {"const": "stop"}}, "required": ["op"]},
                ]},
            }},
        })
    }

    /// Returns the faults of the API after a change to one of its values.
    fn faults(pointer: &str, value: &Value) -> Vec<String> {
        let mut current = released();
        *current.pointer_mut(pointer).unwrap() = value.clone();
        compare(&released(), &current)
    }

    const BODY: &str = "/paths/~1v1~1sessions/post/requestBody/content/application~1json/schema";
    const POST: &str = "/paths/~1v1~1sessions/post";

    #[test]
    fn additions_are_allowed() {
        assert!(compare(&released(), &released()).is_empty());
        let with = |pointer: &str, value: &Value| faults(pointer, value);
        let mut paths = released()["paths"].clone();
        paths["/v1/files"] = json!({"get": {}});
        let mut variants = released()["components"]["schemas"]["Op"]["oneOf"].clone();
        variants
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"properties": {"op": {"const": "undo"}}}));
        let session = json!({"id": {"type": "string", "format": "uuid"}, "age": {}});
        let parameters = json!([
            {"in": "query", "name": "after", "schema": {}},
            {"in": "query", "name": "limit", "schema": {"type": "integer"}},
        ]);
        for (pointer, value) in [
            ("/paths", paths),
            ("/info/description", json!("Another text.")),
            ("/components/schemas/Op/oneOf", variants),
            ("/components/schemas/Session/properties", session),
            ("/components/schemas/Session/required", json!(["id", "age"])),
            (&format!("{BODY}/required"), json!([])),
            (&format!("{POST}/parameters"), parameters),
        ] {
            assert_eq!(with(pointer, &value), [""; 0], "{pointer}");
        }
    }

    #[test]
    fn removals_and_changes_are_reported() {
        let stop = released()["components"]["schemas"]["Op"]["oneOf"][1].clone();
        let session = "/components/schemas/Session";
        let required_parameter = json!([
            {"in": "query", "name": "limit", "schema": {"type": "integer"}},
            {"in": "query", "name": "after", "required": true, "schema": {}},
        ]);
        for (pointer, value, expected) in [
            ("/paths", json!({}), "`/paths//v1/sessions` is missing"),
            ("/paths/~1v1~1sessions", json!({"get": {}}), "/post` is missing"),
            (&format!("{BODY}/properties/title/type"), json!("integer"), "/title/type` changed"),
            (&format!("{BODY}/properties/op"), json!({}), "/op/$ref` is missing"),
            (&format!("{BODY}/required"), json!(["title", "op"]), "/required/op` must be sent"),
            (&format!("{POST}/responses"), json!({}), "/responses/200` is missing"),
            (&format!("{POST}/parameters"), json!([]), "/query limit` is missing"),
            (&format!("{POST}/parameters"), required_parameter, "/query after` must be sent"),
            (&format!("{session}/required"), json!([]), "/required/id` may be missing"),
            (&format!("{session}/properties"), json!({}), "/properties/id` is missing"),
            ("/components/schemas/Op/oneOf", json!([stop]), "/op=\"prompt\"` is missing"),
            (
                &format!("{POST}/parameters/0"),
                json!({"in": "query", "name": "limit", "required": true, "schema": {"type": "integer"}}),
                "/query limit/required` was added",
            ),
            (
                "/components/schemas/Op/oneOf/1/required",
                json!(["op", "reason"]),
                "/required/reason` must be sent",
            ),
        ] {
            let found = faults(pointer, &value);
            assert!(found.len() == 1 && found[0].contains(expected), "{pointer}: {found:?}");
        }
    }

    #[test]
    fn another_version_may_differ() {
        let mut current = json!({"info": {"version": "2"}});
        assert!(compare(&released(), &current).is_empty());
        current["info"]["version"] = json!("1");
        assert!(!compare(&released(), &current).is_empty());
    }

    #[test]
    fn the_published_document_equals_itself_and_misses_each_removed_path() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let document = std::fs::read(root.join(DOCUMENT)).unwrap();
        let document: Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(compare(&document, &document), [""; 0]);
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.len() > 40);
        for path in paths.keys() {
            let mut current = document.clone();
            current["paths"].as_object_mut().unwrap().remove(path);
            let faults = compare(&document, &current);
            assert!(faults.len() == 1 && faults[0].contains(path), "{faults:?}");
        }
    }
}
