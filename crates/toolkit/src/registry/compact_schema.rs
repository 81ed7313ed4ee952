//! Compacts a tool's schema for the model: removes the parts that only validation needs.
//!
//! Every request carries every schema, and validation uses the full one anyway. The removed parts
//! do not affect what a model does: that other fields are rejected, the width of an integer, that
//! an optional field may be null, that `file` is "The file." Definitions (`$defs`) are inlined. The
//! same schema always gives the same bytes.

use crate::registry::tool_search::split_words;
use serde_json::{Map, Value};

/// Deeper parts of a schema stay unchanged.
const MAX_SCHEMA_DEPTH: usize = 16;
/// Limits the size of a schema after its `$defs` are inlined.
const MAX_INLINED_VALUES: usize = 10_000;
/// Words that add nothing to the name of a field.
const FILLER_WORDS: [&str; 5] = ["a", "an", "the", "it", "of"];

/// The author of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaOrigin {
    /// A schema of ours, whose descriptions of one or two words and `minimum: 0` are not for the
    /// model.
    BuiltIn,
    /// The schema of a server or a custom tool.
    External,
}

/// Returns the compact schema. Enum values that `description` explains in backticks lose their own
/// descriptions.
pub(crate) fn compact(schema: &Value, description: &str, origin: SchemaOrigin) -> Value {
    let mut compacted = inline_definitions(schema).unwrap_or_else(|| schema.clone());
    if let Value::Object(top) = &mut compacted {
        top.shift_remove("$schema");
    }
    remove_redundant(&mut compacted, "", (description, origin), 0);
    compacted
}

/// Returns true if the description of a field says no more than its name and its type. A short one
/// may be a unit or a format, which a model needs.
fn repeats_name(text: &str, name: &str, kind: &Value) -> bool {
    let kinds: Vec<&str> = match kind {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    let known: Vec<String> =
        split_words(name).chain(kinds.iter().flat_map(|kind| split_words(kind))).collect();
    let mut words = split_words(text).peekable();
    // A text without words may be a unit, such as `%`.
    if words.peek().is_none() {
        return text.trim().is_empty();
    }
    words.all(|word| FILLER_WORDS.contains(&word.as_str()) || known.contains(&word))
}

/// Inlines the `$defs`, without their descriptions; `None` if one refers to itself or the result
/// would be too large.
fn inline_definitions(schema: &Value) -> Option<Value> {
    let mut inlined = schema.clone();
    let Some(Value::Object(definitions)) = inlined.as_object_mut()?.shift_remove("$defs") else {
        return None;
    };
    let mut remaining = MAX_INLINED_VALUES;
    inline_references(&mut inlined, (&definitions, &mut remaining), 0)?;
    Some(inlined)
}

fn inline_references(
    schema: &mut Value,
    (definitions, remaining): (&Map<String, Value>, &mut usize),
    depth: usize,
) -> Option<()> {
    if depth > MAX_SCHEMA_DEPTH {
        return None;
    }
    *remaining = remaining.checked_sub(1)?;
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref") {
                let name = name.as_str()?.strip_prefix("#/$defs/")?;
                let mut target = definitions.get(name)?.as_object()?.clone();
                target.shift_remove("description");
                let siblings = std::mem::take(map).into_iter().filter(|(key, _)| key != "$ref");
                target.extend(siblings);
                *map = target;
            }
            map.values_mut()
                .try_for_each(|inner| inline_references(inner, (definitions, remaining), depth + 1))
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|inner| inline_references(inner, (definitions, remaining), depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

/// Removes the redundant parts of the schema of a field; `name` is empty if it has none.
fn remove_redundant(
    schema: &mut Value,
    name: &str,
    (description, origin): (&str, SchemaOrigin),
    depth: usize,
) {
    let Value::Object(map) = schema else { return };
    if depth > MAX_SCHEMA_DEPTH {
        return;
    }
    let kind = map.get("type").cloned().unwrap_or_default();
    let is_redundant = |key: &str, value: &Value| match (key, value) {
        ("additionalProperties", value) => *value == Value::Bool(false),
        ("format", Value::String(format)) => {
            ["int", "uint", "float", "double"].iter().any(|prefix| format.starts_with(prefix))
        }
        ("default", Value::Bool(false) | Value::Null) => true,
        ("default", Value::String(text)) => text.is_empty(),
        ("minimum", value) => origin == SchemaOrigin::BuiltIn && value.as_u64() == Some(0),
        ("description", Value::String(text)) => match origin {
            SchemaOrigin::BuiltIn => text.split_whitespace().count() <= 2,
            SchemaOrigin::External => repeats_name(text, name, &kind),
        },
        _ => false,
    };
    map.retain(|key, value| !is_redundant(key, value));
    collapse_one_of(map, description);
    let required: Vec<Value> =
        map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["properties", "$defs"] {
        let Some(Value::Object(schemas)) = map.get_mut(key) else { continue };
        for (name, inner) in schemas {
            remove_redundant(inner, name, (description, origin), depth + 1);
            if key == "properties" && !required.iter().any(|required| required == name) {
                remove_null_type(inner);
            }
        }
    }
    if let Some(items) = map.get_mut("items") {
        remove_redundant(items, "", (description, origin), depth + 1);
    }
}

/// Replaces a `oneOf` of described constants with an `enum`, if the tool description explains all
/// of them.
fn collapse_one_of(map: &mut Map<String, Value>, description: &str) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let explained_constant = |choice: &Value| {
        let constant = choice.get("const")?.as_str()?;
        description.contains(&format!("`{constant}`")).then(|| Value::from(constant))
    };
    let Some(constants) = choices.iter().map(explained_constant).collect::<Option<Vec<Value>>>()
    else {
        return;
    };
    if let Some(value) = map.get_mut("oneOf") {
        *value = Value::Array(constants);
    }
    // The key keeps its position, so that the order of the others stays the same.
    let rename =
        |(key, value)| if key == "oneOf" { ("enum".to_owned(), value) } else { (key, value) };
    *map = std::mem::take(map).into_iter().map(rename).collect();
}

/// Removes `null` from the types of an optional field.
fn remove_null_type(schema: &mut Value) {
    let Some(Value::Array(types)) = schema.get_mut("type") else { return };
    types.retain(|single| single != "null");
    if let [single] = types.as_slice() {
        let single = single.clone();
        if let Some(value) = schema.get_mut("type") {
            *value = single;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compact(schema: &Value, description: &str) -> Value {
        super::compact(schema, description, SchemaOrigin::External)
    }

    #[test]
    fn only_the_parts_for_validation_are_removed() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "format": {"type": "string", "default": "short", "description": "A name like a keyword."},
                "many": {"type": ["integer", "null"], "format": "uint64", "minimum": 1},
                "none": {"type": ["string", "null"], "format": "uri"},
                "loud": {"type": "boolean", "default": false},
                "action": {"oneOf": [{"const": "go", "description": "Goes."}, {"const": "stop"}]},
                "open": {"type": "object", "additionalProperties": true},
                "list": {"type": "array", "items": {"type": "object", "additionalProperties": false}},
            },
            "required": ["none"],
        });
        let description = "`go` goes on, `stop` does not.";
        let expected = json!({
            "type": "object",
            "properties": {
                "format": {"type": "string", "default": "short", "description": "A name like a keyword."},
                "many": {"type": "integer", "minimum": 1},
                "none": {"type": ["string", "null"], "format": "uri"},
                "loud": {"type": "boolean"},
                "action": {"enum": ["go", "stop"]},
                "open": {"type": "object", "additionalProperties": true},
                "list": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["none"],
        });
        assert_eq!(
            compact(&schema, description).to_string(),
            expected.to_string(),
            "in the same order"
        );
        assert_eq!(compact(&expected, description), expected);
        let action = compact(&schema, "It goes.")["properties"]["action"].clone();
        assert_eq!(
            action, schema["properties"]["action"],
            "the description does not explain the values"
        );
    }

    #[test]
    fn a_description_stays_unless_it_only_repeats_the_name_and_type() {
        for (name, text) in [
            ("delay", "in seconds"),
            ("zone", "UTC"),
            ("since", "e.g. 2024-01-01"),
            ("interval", "how often"),
            ("size", "kB"),
            ("path", "absolute path"),
        ] {
            let schema = json!({"properties": {name: {"type": "string", "description": text}}});
            assert_eq!(compact(&schema, ""), schema, "{text}");
        }
        for (name, text) in [
            ("file", "The file."),
            ("file", "A file (string)"),
            ("filePath", "the path of the file"),
            ("issue_ids", "Issue IDs"),
            ("x", "  "),
        ] {
            let schema = json!({"properties": {name: {"type": "string", "description": text}}});
            let expected = json!({"properties": {name: {"type": "string"}}});
            assert_eq!(compact(&schema, ""), expected, "{text}");
        }
        let bounded = json!({"properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}});
        assert_eq!(compact(&bounded, ""), bounded, "validation enforces it");
        let own = json!({"properties": {"n": {"minimum": 0, "description": "The count."}}});
        let expected = json!({"properties": {"n": {}}});
        assert_eq!(super::compact(&own, "", SchemaOrigin::BuiltIn), expected);
    }

    #[test]
    fn definitions_are_inlined() {
        let schema = json!({
            "properties": {
                "one": {"$ref": "#/$defs/Thing", "description": "This very one."},
                "all": {"type": "array", "items": {"$ref": "#/$defs/Thing"}},
            },
            "$defs": {
                "Thing": {"type": "object", "properties": {"kind": {"$ref": "#/$defs/Kind"}}, "description": "A thing."},
                "Kind": {"enum": ["a", "b"]},
            },
        });
        let thing = json!({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}}});
        let compacted = compact(&schema, "");
        assert_eq!(compacted["properties"]["all"]["items"], thing);
        assert_eq!(compacted["properties"]["one"]["description"], "This very one.");
        assert!(compacted.get("$defs").is_none());
        let recursive = json!({
            "items": {"$ref": "#/$defs/A"},
            "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}},
        });
        assert_eq!(compact(&recursive, ""), recursive);
        let external = json!({"items": {"$ref": "http://a/b"}, "$defs": {"A": {}}});
        assert_eq!(compact(&external, ""), external);
    }

    #[test]
    fn a_value_that_is_not_a_schema_stays_unchanged() {
        let mut deep = json!({"additionalProperties": false});
        for _ in 0..1_000 {
            deep = json!({"items": deep});
        }
        for schema in [json!(true), json!([1]), json!({"properties": 3, "required": {}}), deep] {
            assert_eq!(compact(&schema, ""), schema);
        }
    }

    #[test]
    fn definitions_that_double_at_every_level_are_not_inlined() {
        let mut definitions = Map::new();
        for level in 0..12 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            let pair = json!({"properties": {"a": next, "b": next}});
            definitions.insert(format!("d{level}"), pair);
        }
        definitions.insert("d12".into(), json!({"type": "string"}));
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
        assert!(compact(&schema, "").to_string().len() <= schema.to_string().len());
        let small = json!({"properties": {"x": {"$ref": "#/$defs/d9"}}, "$defs": definitions});
        assert!(compact(&small, "").get("$defs").is_none());
    }
}
