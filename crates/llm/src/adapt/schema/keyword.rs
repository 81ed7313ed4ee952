//! The keywords of JSON Schema: the kind of value each one takes and the types it applies to.

use serde_json::{Map, Value, json};

/// A schema object, as opposed to a boolean schema.
pub(super) type SchemaObject = Map<String, Value>;

/// The type names of JSON Schema.
pub(super) const TYPE_NAMES: [&str; 7] =
    ["string", "number", "integer", "boolean", "array", "object", "null"];

/// The kind of value that a keyword takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaKeywordKind {
    Schema,
    SchemaOrFlag,
    Schemas,
    SchemasByName,
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

/// Returns the kind of a keyword's value; `None` if the keyword is unknown or has no meaning once
/// references are inlined.
pub(super) fn keyword_kind(key: &str) -> Option<SchemaKeywordKind> {
    Some(match key {
        "not" | "if" | "then" | "else" | "contains" | "propertyNames" => SchemaKeywordKind::Schema,
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "items" => {
            SchemaKeywordKind::SchemaOrFlag
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => SchemaKeywordKind::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" => SchemaKeywordKind::SchemasByName,
        "required" => SchemaKeywordKind::Names,
        "dependentRequired" => SchemaKeywordKind::NamesByName,
        "type" => SchemaKeywordKind::Types,
        "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
            SchemaKeywordKind::Text
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            SchemaKeywordKind::Number
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => SchemaKeywordKind::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => SchemaKeywordKind::Flag,
        "const" | "default" => SchemaKeywordKind::Value,
        "enum" | "examples" => SchemaKeywordKind::Values,
        _ => return None,
    })
}

/// Returns true if a keyword describes a schema without constraining its values.
pub(super) fn is_annotation(key: &str) -> bool {
    matches!(
        key,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
    )
}

/// Returns the types a keyword applies to; `None` if it applies to all types.
pub(super) fn applicable_types(key: &str) -> Option<&'static [&'static str]> {
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

/// Returns true if a keyword applies to any of `types`, or `types` is empty.
pub(super) fn applies_to(key: &str, types: &[&str]) -> bool {
    types.is_empty()
        || applicable_types(key)
            .is_none_or(|applicable| applicable.iter().any(|name| types.contains(name)))
}

/// Returns the type of a value. A number without a fraction is an `integer`.
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

/// Returns true if a value has one of `types`.
pub(super) fn has_type(value: &Value, types: &[&str]) -> bool {
    let name = type_of(value);
    types.contains(&name) || (name == "integer" && types.contains(&"number"))
}

/// Returns the types in the schema's `type` keyword.
pub(super) fn declared_types(schema: &SchemaObject) -> Vec<&'static str> {
    schema.get("type").map(parse_types).unwrap_or_default()
}

/// Parses the value of `type`, skipping unknown names.
pub(super) fn parse_types(value: &Value) -> Vec<&'static str> {
    let type_names = match value {
        Value::Array(names) => names,
        name => std::slice::from_ref(name),
    };
    let mut types = Vec::new();
    for name in type_names.iter().filter_map(Value::as_str) {
        let known = TYPE_NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        types.extend(known.filter(|known| !types.contains(known)));
    }
    types
}

/// Returns the distinct types of some values, in order of appearance.
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

/// Returns the types a schema declares, or else those its keywords imply.
pub(super) fn infer_types(schema: &SchemaObject) -> Vec<&'static str> {
    let declared = declared_types(schema);
    if !declared.is_empty() {
        return declared;
    }
    if let Some(value) = schema.get("const") {
        return vec![type_of(value)];
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return types_of(values);
    }
    for name in ["object", "array", "string", "number"] {
        let implies_type = |key: &String| {
            applicable_types(key).is_some_and(|applicable| applicable.contains(&name))
        };
        if schema.keys().any(implies_type) {
            return vec![name];
        }
    }
    if schema.contains_key("format") {
        return vec!["string"];
    }
    Vec::new()
}

/// Returns the value of `type` for a list of types; `None` for an empty list.
pub(super) fn type_value(types: &[&str]) -> Option<Value> {
    match types {
        [] => None,
        [one] => Some(Value::from(*one)),
        many => Some(Value::from(many.to_vec())),
    }
}

/// Sets `type` in place, or inserts it as the first keyword.
pub(super) fn set_types(schema: &mut SchemaObject, types: &[&str]) {
    match (type_value(types), schema.get_mut("type")) {
        (Some(types), Some(current)) => *current = types,
        (Some(types), None) => {
            schema.shift_insert(0, "type".into(), types);
        }
        (None, _) => {
            schema.shift_remove("type");
        }
    }
}

/// Makes a schema accept null, if it has a type or an `anyOf` to extend.
pub(super) fn allow_null(schema: &mut SchemaObject) {
    let mut types = infer_types(schema);
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

/// Converts a boolean schema into a `SchemaObject`. `false` becomes a schema that matches nothing.
pub(super) fn to_schema(value: Value) -> SchemaObject {
    match value {
        Value::Object(map) => map,
        Value::Bool(false) => {
            SchemaObject::from_iter([("not".to_owned(), SchemaObject::new().into())])
        }
        Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            SchemaObject::new()
        }
    }
}

/// Returns true if no value matches the schema (`"not": {}`).
pub(super) fn matches_nothing(schema: &SchemaObject) -> bool {
    schema.get("not").and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// Removes a keyword such as `anyOf` and returns its list of schemas.
pub(super) fn take_schemas(schema: &mut SchemaObject, key: &str) -> Option<Vec<SchemaObject>> {
    match schema.shift_remove(key)? {
        Value::Array(values) => Some(values.into_iter().map(to_schema).collect()),
        _ => None,
    }
}
