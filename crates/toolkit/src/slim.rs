//! A tool's schema as a model is told it: without what only a check needs.
//!
//! Every request carries every schema, and a check has the whole of it anyway. What is left out says
//! nothing a model would act on: that other fields are refused, how wide an integer is, that what
//! may be left out may also be null, that `file` is "The file." What is defined beside stands where
//! it is used. The same schema always gives the same bytes.

use serde_json::{Map, Value};

/// How deep schemas are looked into; what lies deeper stays as it is.
const DEEPEST: usize = 16;
/// How many values a schema may have once its definitions stand where they are used.
const WIDEST: usize = 10_000;

/// The schema without that. Of words to choose from, those that the description explains in
/// backticks are not explained again.
pub(crate) fn slim(schema: &Value, description: &str) -> Value {
    let mut slim = whole(schema).unwrap_or_else(|| schema.clone());
    if let Value::Object(top) = &mut slim {
        top.shift_remove("$schema");
    }
    thin(&mut slim, description, 0);
    slim
}

/// The schema with its definitions where they are used, without the words they have besides; none
/// if one of them is made of itself, or all of it would be too much.
fn whole(schema: &Value) -> Option<Value> {
    let mut whole = schema.clone();
    let Some(Value::Object(defined)) = whole.as_object_mut()?.shift_remove("$defs") else {
        return None;
    };
    let mut room = WIDEST;
    place(&mut whole, (&defined, &mut room), 0)?;
    Some(whole)
}

fn place(
    schema: &mut Value,
    (defined, room): (&Map<String, Value>, &mut usize),
    depth: usize,
) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    *room = room.checked_sub(1)?;
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref") {
                let name = name.as_str()?.strip_prefix("#/$defs/")?;
                let mut found = defined.get(name)?.as_object()?.clone();
                found.shift_remove("description");
                let own = std::mem::take(map).into_iter().filter(|(key, _)| key != "$ref");
                found.extend(own);
                *map = found;
            }
            map.values_mut().try_for_each(|inner| place(inner, (defined, room), depth + 1))
        }
        Value::Array(list) => {
            list.iter_mut().try_for_each(|inner| place(inner, (defined, room), depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

fn thin(schema: &mut Value, told: &str, depth: usize) {
    let Value::Object(map) = schema else { return };
    if depth > DEEPEST {
        return;
    }
    let idle = |key: &str, value: &Value| match (key, value) {
        ("additionalProperties", value) => *value == Value::Bool(false),
        ("format", Value::String(format)) => {
            ["int", "uint", "float", "double"].iter().any(|kind| format.starts_with(kind))
        }
        ("default", Value::Bool(false) | Value::Null) => true,
        ("default", Value::String(text)) => text.is_empty(),
        ("minimum", value) => value.as_u64() == Some(0),
        // Two words say no more than the name does.
        ("description", Value::String(text)) => text.split_whitespace().count() <= 2,
        _ => false,
    };
    map.retain(|key, value| !idle(key, value));
    choose(map, told);
    let required: Vec<Value> =
        map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["properties", "$defs"] {
        let Some(Value::Object(named)) = map.get_mut(key) else { continue };
        for (name, inner) in named {
            thin(inner, told, depth + 1);
            if key == "properties" && !required.iter().any(|required| required == name) {
                present(inner);
            }
        }
    }
    if let Some(items) = map.get_mut("items") {
        thin(items, told, depth + 1);
    }
}

/// Words with an explanation each become a list of words, if the description has explained them.
fn choose(map: &mut Map<String, Value>, told: &str) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let word = |choice: &Value| {
        let word = choice.get("const")?.as_str()?;
        told.contains(&format!("`{word}`")).then(|| Value::from(word))
    };
    let Some(words) = choices.iter().map(word).collect::<Option<Vec<Value>>>() else { return };
    if let Some(place) = map.get_mut("oneOf") {
        *place = Value::Array(words);
    }
    // In the place it had, so that nothing else moves.
    let renamed =
        |(key, value)| if key == "oneOf" { ("enum".to_owned(), value) } else { (key, value) };
    *map = std::mem::take(map).into_iter().map(renamed).collect();
}

/// What may be left out need not be told to be null.
fn present(schema: &mut Value) {
    let Some(Value::Array(kinds)) = schema.get_mut("type") else { return };
    kinds.retain(|kind| kind != "null");
    if let [kind] = kinds.as_slice() {
        let kind = kind.clone();
        if let Some(place) = schema.get_mut("type") {
            *place = kind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_only_a_check_needs_is_left_out_and_nothing_else() {
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
        let told = "`go` goes on, `stop` does not.";
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
        assert_eq!(slim(&schema, told).to_string(), expected.to_string(), "in the same order");
        assert_eq!(slim(&expected, told), expected);
        let action = slim(&schema, "It goes.")["properties"]["action"].clone();
        assert_eq!(action, schema["properties"]["action"], "nobody else explains the words");
    }

    #[test]
    fn what_is_defined_beside_stands_where_it_is_used() {
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
        let slim = slim(&schema, "");
        assert_eq!(slim["properties"]["all"]["items"], thing);
        assert_eq!(slim["properties"]["one"]["description"], "This very one.");
        assert!(slim.get("$defs").is_none());
        let endless = json!({"items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}});
        assert_eq!(super::slim(&endless, ""), endless);
        let elsewhere = json!({"items": {"$ref": "http://a/b"}, "$defs": {"A": {}}});
        assert_eq!(super::slim(&elsewhere, ""), elsewhere);
    }

    #[test]
    fn a_schema_that_is_none_stays_what_it_is() {
        let mut deep = json!({"additionalProperties": false});
        for _ in 0..1_000 {
            deep = json!({"items": deep});
        }
        for odd in [json!(true), json!([1]), json!({"properties": 3, "required": {}}), deep] {
            assert_eq!(slim(&odd, ""), odd);
        }
    }

    #[test]
    fn definitions_that_double_at_every_level_stay_beside() {
        let mut defined = Map::new();
        for level in 0..12 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            let pair = json!({"properties": {"a": next, "b": next}});
            defined.insert(format!("d{level}"), pair);
        }
        defined.insert("d12".into(), json!({"type": "string"}));
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defined});
        assert!(slim(&schema, "").to_string().len() <= schema.to_string().len());
        let small = json!({"properties": {"x": {"$ref": "#/$defs/d9"}}, "$defs": defined});
        assert!(slim(&small, "").get("$defs").is_none());
    }
}
