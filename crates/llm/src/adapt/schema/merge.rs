//! Merges two schemas: their intersection, or the union of their enum values.
//!
//! If one schema cannot express both, a keyword is dropped and returned to the caller. This loosens
//! the schema and never narrows it.

use super::append_description;
use super::keyword::{self, SchemaKeywordKind, SchemaObject, keyword_kind, to_schema};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashSet;

/// Keywords that `intersect` had to drop.
pub(super) type DroppedKeywords = Vec<(String, Value)>;

/// Returns a schema for the values that match both schemas, and the keywords it had to drop.
pub(super) fn intersect(
    mut first: SchemaObject,
    second: SchemaObject,
) -> (SchemaObject, DroppedKeywords) {
    let mut dropped = DroppedKeywords::new();
    let has_any =
        |schema: &SchemaObject, group: &[&str]| group.iter().any(|key| schema.contains_key(*key));
    let groups: [&[&str]; 2] =
        [&["if", "then", "else"], &["contains", "minContains", "maxContains"]];
    let conflicting: Vec<&str> = groups
        .into_iter()
        .filter(|group| has_any(&first, group) && has_any(&second, group))
        .flatten()
        .copied()
        .collect();
    for (key, value) in second {
        if conflicting.contains(&key.as_str()) {
            dropped.push((key, value));
            continue;
        }
        match first.get_mut(&key) {
            None => {
                first.insert(key, value);
            }
            Some(existing) if *existing == value => {}
            Some(existing) => {
                let previous = std::mem::take(existing);
                *existing = intersect_values(&key, previous, value, &mut dropped);
            }
        }
    }
    (first, dropped)
}

/// Merges the values of a keyword that both schemas have.
fn intersect_values(
    key: &str,
    first: Value,
    second: Value,
    dropped: &mut DroppedKeywords,
) -> Value {
    match (key, first, second) {
        ("description", Value::String(first), Value::String(second)) => {
            if first.contains(&second) {
                first.into()
            } else {
                format!("{first}\n{second}").into()
            }
        }
        (key, Value::Object(first), Value::Object(second))
            if keyword_kind(key) == Some(SchemaKeywordKind::SchemasByName) =>
        {
            intersect_named(first, second, dropped).into()
        }
        ("required" | "allOf", Value::Array(mut first), Value::Array(second)) => {
            let known_values: HashSet<Value> = first.iter().cloned().collect();
            first.extend(second.into_iter().filter(|one| !known_values.contains(one)));
            first.into()
        }
        ("enum", Value::Array(first), Value::Array(second)) => {
            let known_values: HashSet<&Value> = second.iter().collect();
            let common: Vec<Value> =
                first.iter().filter(|one| known_values.contains(one)).cloned().collect();
            if common.is_empty() {
                dropped.push((key.to_owned(), second.into()));
                return first.into();
            }
            common.into()
        }
        ("type", first, second) => match keyword::type_value(&common_types(&first, &second)) {
            Some(types) => types,
            None => {
                dropped.push((key.to_owned(), second));
                first
            }
        },
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties",
            first,
            second,
        ) => std::cmp::max_by(first, second, compare_numbers),
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties",
            first,
            second,
        ) => std::cmp::min_by(first, second, compare_numbers),
        ("uniqueItems", first, second) => (first == true || second == true).into(),
        (key, first, second) if keyword_kind(key) == Some(SchemaKeywordKind::SchemaOrFlag) => {
            match (first, second) {
                (Value::Bool(false), _) | (_, Value::Bool(false)) => false.into(),
                (Value::Bool(true), other) | (other, Value::Bool(true)) => other,
                (first, second) => intersect_schemas(first, second, dropped),
            }
        }
        (key, first, second) => {
            if !keyword::is_annotation(key) {
                dropped.push((key.to_owned(), second));
            }
            first
        }
    }
}

fn compare_numbers(one: &Value, other: &Value) -> Ordering {
    one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
}

fn intersect_named(
    mut first: SchemaObject,
    second: SchemaObject,
    dropped: &mut DroppedKeywords,
) -> SchemaObject {
    for (name, schema) in second {
        let merged = match first.get_mut(&name).map(Value::take) {
            None => schema,
            Some(existing) => intersect_schemas(existing, schema, dropped),
        };
        first.insert(name, merged);
    }
    first
}

fn intersect_schemas(first: Value, second: Value, dropped: &mut DroppedKeywords) -> Value {
    if first == second {
        return first;
    }
    let (merged, more_dropped) = intersect(to_schema(first), to_schema(second));
    dropped.extend(more_dropped);
    merged.into()
}

fn common_types(first: &Value, second: &Value) -> Vec<&'static str> {
    let (first, second) = (keyword::parse_types(first), keyword::parse_types(second));
    let mut common: Vec<&str> = Vec::new();
    for name in keyword::TYPE_NAMES {
        let includes = |types: &[&str]| {
            types.contains(&name) || (name == "integer" && types.contains(&"number"))
        };
        if includes(&first) && includes(&second) {
            common.push(name);
        }
    }
    if common.contains(&"number") {
        common.retain(|name| *name != "integer");
    }
    // Keep the order in which the types were declared.
    common.sort_by_key(|name| first.iter().position(|other| other == name));
    common
}

/// Merges the subschemas of `allOf` into the schema.
pub(super) fn inline_all_of(mut schema: SchemaObject) -> (SchemaObject, DroppedKeywords) {
    let mut dropped = DroppedKeywords::new();
    for part in keyword::take_schemas(&mut schema, "allOf").unwrap_or_default() {
        let (part, more_dropped) = inline_all_of(part);
        dropped.extend(more_dropped);
        let (merged, more_dropped) = intersect(schema, part);
        dropped.extend(more_dropped);
        schema = merged;
    }
    (schema, dropped)
}

/// Merges alternatives that only list values into one `enum`. The description of each value is
/// kept.
pub(super) fn merge_enum_branches(branches: &[SchemaObject]) -> Option<SchemaObject> {
    let is_enum_keyword =
        |key: &String| matches!(key.as_str(), "type" | "enum" | "const" | "description" | "title");
    let (first, rest) = branches.split_first()?;
    let types = keyword::infer_types(first);
    if !rest.iter().all(|branch| keyword::infer_types(branch) == types) || types.is_empty() {
        return None;
    }
    let (mut values, mut notes) = (Vec::new(), Vec::new());
    for branch in branches {
        let branch_values = match (branch.get("enum"), branch.get("const")) {
            (Some(Value::Array(branch_values)), None) => branch_values.as_slice(),
            (None, Some(one)) => std::slice::from_ref(one),
            _ => return None,
        };
        if !branch.keys().all(is_enum_keyword) {
            return None;
        }
        if let Some(Value::String(text)) = branch.get("description") {
            notes.push(match branch_values {
                [one] => format!("{one}: {text}"),
                _ => text.clone(),
            });
        }
        values.extend(branch_values.iter().cloned());
    }
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    let mut merged = SchemaObject::new();
    keyword::set_types(&mut merged, &types);
    merged.insert("enum".into(), values.into());
    if !notes.is_empty() {
        append_description(&mut merged, &notes.join("\n"));
    }
    Some(merged)
}
