//! Merges object alternatives, and the top level of a schema, into one plain object. No provider
//! accepts alternatives for the arguments of a tool as a whole.

use super::keyword::{self, SchemaObject};
use super::merge::{inline_all_of, intersect, merge_enum_branches};
use super::{SchemaSubset, append_description, description_schema, keyword_note, truncate};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Turns the top level of a schema into an object of type `object`; also returns whether
/// information was lost.
pub(super) fn to_top_level_object(
    schema: SchemaObject,
    subset: SchemaSubset,
) -> (SchemaObject, bool) {
    let (mut schema, dropped) = inline_all_of(schema);
    let mut is_lossy = !dropped.is_empty();
    for (key, value) in dropped {
        append_description(&mut schema, &keyword_note(&key, &value));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = keyword::take_schemas(&mut schema, key) {
            is_lossy = true;
            schema = merge_alternatives(schema, branches);
        }
    }
    let types = keyword::infer_types(&schema);
    if !types.is_empty() && !types.contains(&"object") {
        return (replace_non_object(schema), true);
    }
    for key in ["not", "enum", "const"] {
        if let Some(value) = schema.shift_remove(key) {
            is_lossy = true;
            append_description(&mut schema, &keyword_note(key, &value));
        }
    }
    keyword::set_types(&mut schema, &["object"]);
    if !schema.contains_key("properties") {
        schema.insert("properties".into(), json!({}));
    }
    // A tool without arguments is not a free-form map, so strict mode can close it.
    let is_empty = schema.get("properties") == Some(&json!({}));
    if subset == SchemaSubset::Strict && is_empty && !schema.contains_key("additionalProperties") {
        schema.insert("additionalProperties".into(), false.into());
    }
    (schema, is_lossy)
}

fn replace_non_object(mut schema: SchemaObject) -> SchemaObject {
    let text = schema.shift_remove("description");
    let note = format!("Not declared as an object: {}", Value::Object(schema));
    let mut object =
        text.as_ref().and_then(Value::as_str).map(description_schema).unwrap_or_default();
    keyword::set_types(&mut object, &["object"]);
    object.insert("properties".into(), json!({}));
    append_description(&mut object, &truncate(&note, 300));
    object
}

/// Returns true if a schema can match an object.
pub(super) fn can_be_object(schema: &SchemaObject) -> bool {
    let types = keyword::infer_types(schema);
    types.is_empty() || types.contains(&"object")
}

/// Merges alternatives into one object: it has the properties of all of them and requires only
/// those that every alternative requires.
pub(super) fn merge_alternatives(
    parent: SchemaObject,
    branches: Vec<SchemaObject>,
) -> SchemaObject {
    let branches: Vec<SchemaObject> =
        branches.into_iter().map(flatten_alternative).filter(can_be_object).collect();
    let mut parent = parent;
    if branches.is_empty() {
        return parent;
    }
    let descriptions: Vec<String> = branches.iter().map(describe_alternative).collect();
    merge_properties(&mut parent, &branches);
    merge_required(&mut parent, &branches);
    let is_closed =
        |schema: &SchemaObject| schema.get("additionalProperties") == Some(&Value::Bool(false));
    if !parent.contains_key("additionalProperties") && branches.iter().all(is_closed) {
        parent.insert("additionalProperties".into(), false.into());
    }
    if !parent.contains_key("type")
        && branches.iter().all(|branch| !keyword::infer_types(branch).is_empty())
    {
        keyword::set_types(&mut parent, &["object"]);
    }
    let descriptions =
        format!("Accepts one of these sets of properties: {}", descriptions.join("; "));
    append_description(&mut parent, &truncate(&descriptions, 600));
    parent
}

/// Merges the `allOf`, `anyOf` and `oneOf` of an alternative into the alternative.
fn flatten_alternative(schema: SchemaObject) -> SchemaObject {
    let (mut schema, _) = inline_all_of(schema);
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = keyword::take_schemas(&mut schema, key) {
            schema = merge_alternatives(schema, branches);
        }
    }
    schema
}

fn merge_properties(parent: &mut SchemaObject, branches: &[SchemaObject]) {
    let mut schemas_by_name: SchemaObject = SchemaObject::new();
    for branch in branches {
        let Some(Value::Object(properties)) = branch.get("properties") else { continue };
        for (name, schema) in properties {
            let entry = schemas_by_name.entry(name.as_str()).or_insert_with(|| json!([]));
            if let Value::Array(schemas) = entry {
                schemas.push(schema.clone());
            }
        }
    }
    if schemas_by_name.is_empty() {
        return;
    }
    let mut properties = match parent.get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => SchemaObject::new(),
    };
    for (name, schemas) in schemas_by_name {
        let Value::Array(schemas) = schemas else { continue };
        let in_all_branches = schemas.len() == branches.len();
        let alternatives = any_of(schemas.into_iter().map(keyword::to_schema).collect());
        let schema = match properties.get(&name) {
            None => alternatives,
            Some(Value::Object(existing)) if in_all_branches => {
                let (merged, dropped) = intersect(existing.clone(), alternatives);
                if dropped.is_empty() { merged } else { existing.clone() }
            }
            Some(_) => continue,
        };
        properties.insert(name, schema.into());
    }
    parent.insert("properties".into(), properties.into());
}

fn merge_required(parent: &mut SchemaObject, branches: &[SchemaObject]) {
    let required_names = |schema: &SchemaObject| match schema.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let mut required = required_names(parent);
    let known_names: HashSet<Value> = required.iter().cloned().collect();
    let mut common = branches.first().map(required_names).unwrap_or_default();
    common.retain(|name| !known_names.contains(name));
    for branch in branches {
        let branch_names: HashSet<Value> = required_names(branch).into_iter().collect();
        common.retain(|name| branch_names.contains(name));
    }
    required.extend(common);
    if !required.is_empty() {
        parent.insert("required".into(), required.into());
    }
}

/// Returns an `anyOf` of the distinct `schemas`, simplified if possible.
pub(super) fn any_of(schemas: Vec<SchemaObject>) -> SchemaObject {
    let mut distinct: Vec<SchemaObject> = Vec::new();
    let mut seen = HashSet::new();
    for schema in schemas {
        if seen.insert(Value::Object(schema.clone())) {
            distinct.push(schema);
        }
    }
    match distinct.as_slice() {
        [one] => one.clone(),
        many => merge_enum_branches(many).unwrap_or_else(|| {
            let mut schema = SchemaObject::new();
            schema.insert("anyOf".into(), many.iter().cloned().collect());
            schema
        }),
    }
}

/// Describes an alternative in text: its property names, and the constant values that distinguish
/// it.
fn describe_alternative(schema: &SchemaObject) -> String {
    let mut names: Vec<String> = Vec::new();
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            let constant = match (property.get("const"), property.get("enum")) {
                (Some(value), _) => Some(value),
                (None, Some(Value::Array(values))) if values.len() == 1 => values.first(),
                _ => None,
            };
            names.push(match constant {
                Some(value) => format!("{name}: {}", truncate(&value.to_string(), 60)),
                None => name.clone(),
            });
        }
    } else if let Some(Value::Array(required)) = schema.get("required") {
        names.extend(required.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
