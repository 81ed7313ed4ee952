//! References within a schema: they lead only to places that are sanitized, and never back into
//! themselves.
//!
//! A validator that lists violations visits each of `n` references to the same recursive schema at
//! each level of the arguments, so `n` to the power of the depth. The nested levels are therefore
//! left to the server.

use super::MAX_SCHEMA_VALUES;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Keywords whose value has a schema under each name.
pub(super) const NAMED_SCHEMA_KEYWORDS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is a schema or a list of schemas.
pub(super) const SCHEMA_KEYWORDS: [&str; 16] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "allOf",
    "anyOf",
    "oneOf",
    "prefixItems",
];

/// Returns the target of a reference within the schema, if it is a subschema and not another value
/// that merely looks like one.
pub(super) fn resolve_reference<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let mut rest = pointer.split('/').skip(1);
    let mut place = root;
    while let Some(keyword) = rest.next() {
        place = place.get(keyword)?;
        if NAMED_SCHEMA_KEYWORDS.contains(&keyword) {
            place = place.get(unescape_token(rest.next()?))?;
        } else if !SCHEMA_KEYWORDS.contains(&keyword) {
            return None;
        } else if let Value::Array(list) = place {
            place = list.get(rest.next()?.parse::<usize>().ok()?)?;
        }
    }
    (pointer.is_empty() || pointer.starts_with('/'))
        .then_some(place)
        .filter(|target| target.is_object() || target.is_boolean())
}

fn unescape_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn escape_token(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// Replaces every reference that leads back to a schema that contains it, directly or through other
/// references. Returns `None` if the schema has more than `MAX_SCHEMA_VALUES` values when its other
/// references are expanded.
pub(super) fn cut_recursion(schema: &mut Value) -> Option<()> {
    let mut search =
        RecursionSearch { root: schema, remaining: MAX_SCHEMA_VALUES, recursive: BTreeSet::new() };
    search.visit(schema, "", &mut Vec::new())?;
    for location in search.recursive {
        if let Some(Value::Object(place)) = schema.pointer_mut(&location) {
            let target = place.get("$ref").and_then(Value::as_str).unwrap_or_default();
            *place = match json!({"description": format!("The same as {target}.")}) {
                Value::Object(replacement) => replacement,
                _ => continue,
            };
        }
    }
    Some(())
}

/// A walk through a schema with its references expanded.
struct RecursionSearch<'a> {
    root: &'a Value,
    /// The number of values that may still be visited.
    remaining: usize,
    /// Locations of the schemas whose `$ref` leads back to a schema that contains it.
    recursive: BTreeSet<String>,
}

impl<'a> RecursionSearch<'a> {
    /// Visits a schema. `expanding` are the locations of the references that led to it.
    fn visit(
        &mut self,
        schema: &'a Value,
        location: &str,
        expanding: &mut Vec<String>,
    ) -> Option<()> {
        self.remaining = self.remaining.checked_sub(1)?;
        let Value::Object(map) = schema else { return Some(()) };
        for (keyword, value) in map {
            let location_of = |name: &str| format!("{location}/{keyword}/{}", escape_token(name));
            match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    self.visit_reference(reference, location, expanding)?;
                }
                (name, Value::Object(schemas)) if NAMED_SCHEMA_KEYWORDS.contains(&name) => {
                    for (name, schema) in schemas {
                        self.visit(schema, &location_of(name), expanding)?;
                    }
                }
                (name, Value::Array(schemas)) if SCHEMA_KEYWORDS.contains(&name) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        self.visit(schema, &location_of(&index.to_string()), expanding)?;
                    }
                }
                (name, schema) if SCHEMA_KEYWORDS.contains(&name) => {
                    self.visit(schema, &format!("{location}/{name}"), expanding)?;
                }
                (_, value) => self.remaining = self.remaining.checked_sub(count_values(value))?,
            }
        }
        Some(())
    }

    fn visit_reference(
        &mut self,
        reference: &str,
        location: &str,
        expanding: &mut Vec<String>,
    ) -> Option<()> {
        let Some(target) = resolve_reference(self.root, reference) else { return Some(()) };
        if self.recursive.contains(location) {
            return Some(());
        }
        let pointer = reference.trim_start_matches('#').to_owned();
        let is_inside = |location: &str| {
            location
                .strip_prefix(&pointer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if is_inside(location) || expanding.iter().any(|location| is_inside(location)) {
            self.recursive.insert(location.to_owned());
            return Some(());
        }
        expanding.push(location.to_owned());
        self.visit(target, &pointer, expanding)?;
        expanding.pop();
        Some(())
    }
}

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(count_values).sum::<usize>(),
        Value::Array(list) => list.iter().map(count_values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
