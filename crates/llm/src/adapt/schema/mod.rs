//! Rewrites the JSON Schema of a tool into the subset that a provider accepts.
//!
//! A schema comes from our own tools or from an untrusted server: it may use any draft and may be
//! malicious. `expand` converts it to draft 2020-12 without references, `object` turns the top
//! level into one plain object, and `restrict` removes the keywords that the provider does not
//! support. Constraints that cannot be expressed are loosened and noted in the `description`; no
//! schema is rejected.
//!
//! The output is deterministic and keeps the order of the input. Adapting an adapted schema again
//! does not change it. The size is bounded: the content that references add is counted, and nesting
//! stops at `MAX_SCHEMA_DEPTH`.

mod expand;
mod keyword;
mod merge;
mod object_alternatives;
mod restrict;

use expand::SchemaExpander;
use keyword::{SchemaKeywordKind, SchemaObject};
use restrict::SchemaRestrictor;
use serde_json::Value;

/// Bounds the nesting depth of a schema.
const MAX_SCHEMA_DEPTH: usize = 64;

/// The `description` that replaces a schema below `MAX_SCHEMA_DEPTH`.
const TOO_DEEP_NOTE: &str = "Any value: its schema is nested too deeply to show.";

/// The subset of JSON Schema that a provider supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaSubset {
    /// All of JSON Schema, with references inlined and an object at the top level.
    Full,
    /// OpenAI's strict mode: every object is closed and every property required; optional
    /// properties accept null instead.
    Strict,
    /// The subset of Google Gemini, in the style of OpenAPI 3.
    Gemini,
    /// The keywords that every server supports, for servers that reject a schema with an unknown
    /// keyword.
    Basic,
}

/// Rewrites a schema for `subset`. Constraints that cannot be expressed are loosened and noted in
/// the description.
///
/// Only `SchemaSubset::Strict` may also narrow a schema: a free-form map becomes an empty object.
/// Check [`fits_strict`] first.
pub fn adapt_schema(schema: &Value, subset: SchemaSubset) -> Value {
    adapt_tracking_loss(schema, subset).0
}

/// Returns true if strict mode can express a schema without loss. It cannot express free-form maps,
/// values of any type, or recursion. A limit that moves to the description is not a loss.
pub fn fits_strict(schema: &Value) -> bool {
    let (strict, is_lossy) = adapt_tracking_loss(schema, SchemaSubset::Strict);
    let mut size = SchemaSize::default();
    size.measure(&strict, 0);
    !is_lossy && size.depth <= 10 && size.properties <= 5_000 && size.enum_values <= 1_000
}

/// Returns true if an adapted schema has no properties. Some versions of Gemini reject such
/// parameters, so the tool is declared without parameters.
pub fn has_no_properties(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}

fn adapt_tracking_loss(schema: &Value, subset: SchemaSubset) -> (Value, bool) {
    let mut expander = SchemaExpander::new(schema);
    let adapted = expander.expand_root();
    let (adapted, is_merged) = object_alternatives::to_top_level_object(adapted, subset);
    let mut is_lossy = expander.is_lossy || is_merged;
    let adapted = match subset {
        SchemaSubset::Full => limit_depth(adapted, 0, &description_schema(TOO_DEEP_NOTE)),
        SchemaSubset::Strict | SchemaSubset::Gemini | SchemaSubset::Basic => {
            let mut restrictor = SchemaRestrictor::new(subset);
            let mut restricted = restrictor.restrict(adapted);
            is_lossy |= restrictor.is_lossy;
            if !restricted.contains_key("properties") {
                restricted.insert("properties".into(), SchemaObject::new().into());
            }
            limit_depth(
                restricted,
                0,
                &SchemaRestrictor::new(subset).restrict(description_schema(TOO_DEEP_NOTE)),
            )
        }
    };
    (adapted.into(), is_lossy)
}

/// Returns a schema that consists only of a `description`.
fn description_schema(note: &str) -> SchemaObject {
    SchemaObject::from_iter([("description".to_owned(), note.into())])
}

/// Appends a line to the `description` of a schema.
fn append_description(schema: &mut SchemaObject, note: &str) {
    match schema.get_mut("description") {
        Some(Value::String(text)) if !text.is_empty() => {
            text.push('\n');
            text.push_str(note);
        }
        _ => {
            schema.insert("description".into(), note.into());
        }
    }
}

/// Truncates text to `max_chars` characters and appends `…` if it was longer.
fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Formats a dropped keyword as a note for the `description`.
fn keyword_note(key: &str, value: &Value) -> String {
    let join_values = |values: &[Value]| {
        values.iter().take(100).map(Value::to_string).collect::<Vec<_>>().join(", ")
    };
    let text = match (key, value) {
        ("default", value) => format!("Default: {value}"),
        ("format", Value::String(format)) => format!("Format: {format}"),
        ("pattern", Value::String(pattern)) => format!("Pattern: {pattern}"),
        ("enum", Value::Array(values)) => format!("One of: {}", join_values(values)),
        ("examples", Value::Array(values)) => format!("Examples: {}", join_values(values)),
        (key, value) => format!("{key}: {value}"),
    };
    truncate(&text, 300)
}

/// Replaces schemas below `MAX_SCHEMA_DEPTH` with `leaf`.
fn limit_depth(mut schema: SchemaObject, depth: usize, leaf: &SchemaObject) -> SchemaObject {
    if depth > MAX_SCHEMA_DEPTH {
        return leaf.clone();
    }
    let limit_inner = |value: &mut Value| {
        if let Value::Object(map) = value {
            *value = limit_depth(std::mem::take(map), depth + 1, leaf).into();
        }
    };
    for (key, value) in &mut schema {
        match (keyword::keyword_kind(key), value) {
            (Some(SchemaKeywordKind::Schema | SchemaKeywordKind::SchemaOrFlag), value) => {
                limit_inner(value)
            }
            (Some(SchemaKeywordKind::Schemas), Value::Array(values)) => {
                values.iter_mut().for_each(limit_inner)
            }
            (Some(SchemaKeywordKind::SchemasByName), Value::Object(map)) => {
                map.values_mut().for_each(limit_inner)
            }
            _ => {}
        }
    }
    schema
}

/// The size of a strict schema in the quantities that OpenAI limits.
#[derive(Default)]
struct SchemaSize {
    depth: usize,
    properties: usize,
    enum_values: usize,
}

impl SchemaSize {
    fn measure(&mut self, schema: &Value, depth: usize) {
        let mut depth = depth;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            depth += 1;
            self.depth = self.depth.max(depth);
            self.properties += properties.len();
            properties.values().for_each(|inner| self.measure(inner, depth));
        }
        if let Some(items) = schema.get("items") {
            self.measure(items, depth);
        }
        self.enum_values += schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        for branch in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.measure(branch, depth);
        }
    }
}

#[cfg(test)]
mod tests;
