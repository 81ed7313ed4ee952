//! The keywords of JSON Schema: what their values are, and which types they speak of.

use serde_json::{Map, Value, json};

/// A schema that is not a boolean.
pub(super) type Schema = Map<String, Value>;

/// The names of all types.
pub(super) const TYPES: [&str; 7] =
    ["string", "number", "integer", "boolean", "array", "object", "null"];

/// What the value of a keyword is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Schema,
    SchemaOrFlag,
    Schemas,
    Named,
    Names,
    NamesByName,
    Types,
    Text,
    Number,
    Count,
    Flag,
    Value,
    Values,
}

/// What a keyword's value is; none when the keyword is unknown or says nothing once references
/// are gone.
pub(super) fn kind(key: &str) -> Option<Kind> {
    Some(match key {
        "not" | "if" | "then" | "else" | "contains" | "propertyNames" => Kind::Schema,
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "items" => {
            Kind::SchemaOrFlag
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Kind::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" => Kind::Named,
        "required" => Kind::Names,
        "dependentRequired" => Kind::NamesByName,
        "type" => Kind::Types,
        "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
            Kind::Text
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Kind::Number
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Kind::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Kind::Flag,
        "const" | "default" => Kind::Value,
        "enum" | "examples" => Kind::Values,
        _ => return None,
    })
}

/// Whether a keyword says something about a schema without constraining values.
pub(super) fn annotates(key: &str) -> bool {
    matches!(
        key,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
    )
}

/// The types a keyword speaks of; none when it speaks of all.
pub(super) fn speaks_of(key: &str) -> Option<&'static [&'static str]> {
    match key {
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "required"
        | "dependentRequired"
        | "dependentSchemas"
        | "minProperties"
        | "maxProperties" => Some(&["object"]),
        "items" | "prefixItems" | "unevaluatedItems" | "contains" | "minContains"
        | "maxContains" | "minItems" | "maxItems" | "uniqueItems" => Some(&["array"]),
        "pattern" | "minLength" | "maxLength" | "contentEncoding" | "contentMediaType" => {
            Some(&["string"])
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Some(&["number", "integer"])
        }
        _ => None,
    }
}

/// Whether a keyword has something to say about any of these types.
pub(super) fn concerns(key: &str, types: &[&str]) -> bool {
    types.is_empty()
        || speaks_of(key).is_none_or(|spoken| spoken.iter().any(|name| types.contains(name)))
}

/// The type of a value. A number without a fraction is an integer.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() == 0.0) => {
            "integer"
        }
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a value is of one of these types.
pub(super) fn is_of(value: &Value, types: &[&str]) -> bool {
    let name = type_of(value);
    types.contains(&name) || (name == "integer" && types.contains(&"number"))
}

/// The types a schema names.
pub(super) fn types(schema: &Schema) -> Vec<&'static str> {
    schema.get("type").map(named_types).unwrap_or_default()
}

/// The types in the value of `type`, without those that are none.
pub(super) fn named_types(value: &Value) -> Vec<&'static str> {
    let named = match value {
        Value::Array(names) => names,
        name => std::slice::from_ref(name),
    };
    let mut types = Vec::new();
    for name in named.iter().filter_map(Value::as_str) {
        let known = TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        types.extend(known.filter(|known| !types.contains(known)));
    }
    types
}

/// The types of some values, in the order they come.
pub(super) fn types_of(values: &[Value]) -> Vec<&'static str> {
    let mut types = Vec::new();
    for name in values.iter().map(type_of) {
        if !types.contains(&name) {
            types.push(name);
        }
    }
    if types.contains(&"number") {
        types.retain(|name| *name != "integer");
    }
    types
}

/// The types a schema names, or those its keywords give away.
pub(super) fn infer(schema: &Schema) -> Vec<&'static str> {
    let named = types(schema);
    if !named.is_empty() {
        return named;
    }
    if let Some(value) = schema.get("const") {
        return vec![type_of(value)];
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return types_of(values);
    }
    for name in ["object", "array", "string", "number"] {
        let telling = |key: &String| speaks_of(key).is_some_and(|spoken| spoken.contains(&name));
        if schema.keys().any(telling) {
            return vec![name];
        }
    }
    if schema.contains_key("format") {
        return vec!["string"];
    }
    Vec::new()
}

/// The value of `type` for some types; none for none.
pub(super) fn written(types: &[&str]) -> Option<Value> {
    match types {
        [] => None,
        [one] => Some(Value::from(*one)),
        many => Some(Value::from(many.to_vec())),
    }
}

/// Writes the types where they stood, or first.
pub(super) fn set_types(schema: &mut Schema, types: &[&str]) {
    match (written(types), schema.get_mut("type")) {
        (Some(types), Some(stood)) => *stood = types,
        (Some(types), None) => {
            schema.shift_insert(0, "type".into(), types);
        }
        (None, _) => {
            schema.shift_remove("type");
        }
    }
}

/// Lets a schema accept null, where it has a type or alternatives to say so with.
pub(super) fn allow_null(schema: &mut Schema) {
    let mut types = infer(schema);
    if types.is_empty() {
        if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
            let null = json!({"type": "null"});
            if !branches.contains(&null) {
                branches.push(null);
            }
        }
        return;
    }
    if !types.contains(&"null") {
        types.push("null");
        set_types(schema, &types);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// The schema in a place that takes booleans too. False is a schema nothing fits.
pub(super) fn schema_of(value: Value) -> Schema {
    match value {
        Value::Object(map) => map,
        Value::Bool(false) => Schema::from_iter([("not".to_owned(), Schema::new().into())]),
        Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Schema::new()
        }
    }
}

/// Whether nothing fits a schema.
pub(super) fn is_never(schema: &Schema) -> bool {
    schema.get("not").and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// The schemas of a keyword that holds a list of them, taken out.
pub(super) fn take_list(schema: &mut Schema, key: &str) -> Option<Vec<Schema>> {
    match schema.shift_remove(key)? {
        Value::Array(values) => Some(values.into_iter().map(schema_of).collect()),
        _ => None,
    }
}
