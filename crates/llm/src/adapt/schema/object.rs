//! Alternatives between objects, and the top of a schema, as one plain object: no provider takes
//! alternatives for the arguments of a tool as a whole.

use super::keyword::{self, Schema};
use super::meet::{fold, join_values, meet};
use super::{Subset, cut, note, said, tell};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The top of a schema as an object, and whether that lost something.
pub(super) fn top(schema: Schema, subset: Subset) -> (Schema, bool) {
    let (mut schema, dropped) = fold(schema);
    let mut lost = !dropped.is_empty();
    for (key, value) in dropped {
        tell(&mut schema, &note(&key, &value));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = keyword::take_list(&mut schema, key) {
            lost = true;
            schema = unite(schema, branches);
        }
    }
    let types = keyword::infer(&schema);
    if !types.is_empty() && !types.contains(&"object") {
        return (replaced(schema), true);
    }
    for key in ["not", "enum", "const"] {
        if let Some(value) = schema.shift_remove(key) {
            lost = true;
            tell(&mut schema, &note(key, &value));
        }
    }
    keyword::set_types(&mut schema, &["object"]);
    if !schema.contains_key("properties") {
        schema.insert("properties".into(), json!({}));
    }
    // A tool without arguments is no free-form map.
    let empty = schema.get("properties") == Some(&json!({}));
    if subset == Subset::Strict && empty && !schema.contains_key("additionalProperties") {
        schema.insert("additionalProperties".into(), false.into());
    }
    (schema, lost)
}

fn replaced(mut schema: Schema) -> Schema {
    let text = schema.shift_remove("description");
    let declared = format!("Declared as no object: {}", Value::Object(schema));
    let mut object = text.as_ref().and_then(Value::as_str).map(said).unwrap_or_default();
    keyword::set_types(&mut object, &["object"]);
    object.insert("properties".into(), json!({}));
    tell(&mut object, &cut(&declared, 300));
    object
}

/// Whether a schema can describe an object.
pub(super) fn can_be_object(schema: &Schema) -> bool {
    let types = keyword::infer(schema);
    types.is_empty() || types.contains(&"object")
}

/// An object that fits every alternative: all their properties, and as required only what all of
/// them require.
pub(super) fn unite(parent: Schema, branches: Vec<Schema>) -> Schema {
    let branches: Vec<Schema> = branches.into_iter().map(single).filter(can_be_object).collect();
    let mut parent = parent;
    if branches.is_empty() {
        return parent;
    }
    let shapes: Vec<String> = branches.iter().map(shape).collect();
    unite_properties(&mut parent, &branches);
    unite_required(&mut parent, &branches);
    let closed = |schema: &Schema| schema.get("additionalProperties") == Some(&Value::Bool(false));
    if !parent.contains_key("additionalProperties") && branches.iter().all(closed) {
        parent.insert("additionalProperties".into(), false.into());
    }
    if !parent.contains_key("type")
        && branches.iter().all(|branch| !keyword::infer(branch).is_empty())
    {
        keyword::set_types(&mut parent, &["object"]);
    }
    let shapes = format!("Takes one of these sets of properties: {}", shapes.join("; "));
    tell(&mut parent, &cut(&shapes, 600));
    parent
}

/// An alternative without parts and alternatives of its own.
fn single(schema: Schema) -> Schema {
    let (mut schema, _) = fold(schema);
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = keyword::take_list(&mut schema, key) {
            schema = unite(schema, branches);
        }
    }
    schema
}

fn unite_properties(parent: &mut Schema, branches: &[Schema]) {
    let mut found: Schema = Schema::new();
    for branch in branches {
        let Some(Value::Object(properties)) = branch.get("properties") else { continue };
        for (name, schema) in properties {
            let entry = found.entry(name.as_str()).or_insert_with(|| json!([]));
            if let Value::Array(schemas) = entry {
                schemas.push(schema.clone());
            }
        }
    }
    if found.is_empty() {
        return;
    }
    let mut properties = match parent.get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => Schema::new(),
    };
    for (name, schemas) in found {
        let Value::Array(schemas) = schemas else { continue };
        let everywhere = schemas.len() == branches.len();
        let either = either(schemas.into_iter().map(keyword::schema_of).collect());
        let schema = match properties.get(&name) {
            None => either,
            Some(Value::Object(known)) if everywhere => {
                let (met, dropped) = meet(known.clone(), either);
                if dropped.is_empty() { met } else { known.clone() }
            }
            Some(_) => continue,
        };
        properties.insert(name, schema.into());
    }
    parent.insert("properties".into(), properties.into());
}

fn unite_required(parent: &mut Schema, branches: &[Schema]) {
    let listed = |schema: &Schema| match schema.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let mut required = listed(parent);
    let known: HashSet<Value> = required.iter().cloned().collect();
    let mut common = branches.first().map(listed).unwrap_or_default();
    common.retain(|name| !known.contains(name));
    for branch in branches {
        let theirs: HashSet<Value> = listed(branch).into_iter().collect();
        common.retain(|name| theirs.contains(name));
    }
    required.extend(common);
    if !required.is_empty() {
        parent.insert("required".into(), required.into());
    }
}

/// What fits one of some schemas.
pub(super) fn either(schemas: Vec<Schema>) -> Schema {
    let mut distinct: Vec<Schema> = Vec::new();
    let mut seen = HashSet::new();
    for schema in schemas {
        if seen.insert(Value::Object(schema.clone())) {
            distinct.push(schema);
        }
    }
    match distinct.as_slice() {
        [one] => one.clone(),
        many => join_values(many).unwrap_or_else(|| {
            let mut schema = Schema::new();
            schema.insert("anyOf".into(), many.iter().cloned().collect());
            schema
        }),
    }
}

/// An alternative in words: its properties, and the values that tell it apart.
fn shape(schema: &Schema) -> String {
    let mut names: Vec<String> = Vec::new();
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            let only = match (property.get("const"), property.get("enum")) {
                (Some(value), _) => Some(value),
                (None, Some(Value::Array(values))) if values.len() == 1 => values.first(),
                _ => None,
            };
            names.push(match only {
                Some(value) => format!("{name}: {}", cut(&value.to_string(), 60)),
                None => name.clone(),
            });
        }
    } else if let Some(Value::Array(required)) = schema.get("required") {
        names.extend(required.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
