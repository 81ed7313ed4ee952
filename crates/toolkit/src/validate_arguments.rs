//! Validation of arguments against a tool's schema, with one message per field that the model can
//! act on.

use crate::call_failure::CallFailure;
use crate::registry::tool_name_match;
use crate::tool_definition::ToolDefinition;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};
use windlass_protocol::display_text::truncate_chars;

/// Further violations are not listed.
const MAX_LISTED_VIOLATIONS: usize = 8;
/// Limits the text of the allowed values of a field.
const MAX_OPTIONS_CHARS: usize = 400;
/// A shorter name is not taken for a part of another one.
const MIN_SIMILAR_CHARS: usize = 4;
/// Limits the nesting of an example.
const MAX_EXAMPLE_DEPTH: usize = 8;
/// Limits the size of a compiled regex.
const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 20;

/// Checks arguments against a tool's schema. `wrapper_tool` is the tool through which the model made
/// the call, if any.
pub(crate) fn validate_arguments(
    (tool, wrapper_tool): (&str, Option<&str>),
    definition: &ToolDefinition,
    arguments: &Value,
) -> Result<(), CallFailure> {
    let violations = schema_violations(&definition.schema, arguments)
        .map_err(|failure| CallFailure::new(format!("{tool} cannot be called: {failure}")))?;
    if violations.is_empty() {
        return Ok(());
    }
    let example = example_value(&definition.schema, &definition.schema, 0);
    let example = match wrapper_tool {
        Some(wrapper_tool) => {
            format!("{wrapper_tool} {}", json!({"name": tool, "arguments": example}))
        }
        None => example.to_string(),
    };
    Err(CallFailure::new(format!(
        "{tool} was called with invalid arguments:\n{}\nCall it again like this: {example}",
        violations.join("\n")
    )))
}

/// Removes the fields that a schema does not know, and returns their names. Returns `None` if the
/// arguments are invalid for another reason, or if a name may be meant for a known field.
pub(crate) fn remove_unknown_fields(schema: &Value, arguments: &mut Value) -> Option<Vec<String>> {
    let mut known_names = Vec::new();
    collect_field_names(schema, 0, &mut known_names);
    let is_similar = |name: &str| {
        let normalized = tool_name_match::normalize_name(name);
        let contains = |known: &&str| {
            let known = tool_name_match::normalize_name(known);
            let (short, long) = match known.len() < normalized.len() {
                true => (&known, &normalized),
                false => (&normalized, &known),
            };
            short.len() >= MIN_SIMILAR_CHARS && long.contains(short.as_str())
        };
        !tool_name_match::likely_names(name, &known_names).is_empty()
            || known_names.iter().any(contains)
    };
    let mut unknown: Vec<(String, String)> = Vec::new();
    for error in compile_schema(schema).ok()?.iter_errors(arguments) {
        let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() else {
            return None;
        };
        if unexpected.iter().any(|name| is_similar(name)) {
            return None;
        }
        let path = error.instance_path().to_string();
        unknown.extend(unexpected.iter().map(|name| (path.clone(), name.clone())));
    }
    let mut names = Vec::new();
    for (path, name) in unknown {
        arguments.pointer_mut(&path)?.as_object_mut()?.shift_remove(&name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then_some(names)
}

/// Collects the names of all fields in a schema.
fn collect_field_names<'a>(schema: &'a Value, depth: usize, names: &mut Vec<&'a str>) {
    if depth > MAX_EXAMPLE_DEPTH {
        return;
    }
    match schema {
        Value::Object(map) => {
            for (keyword, value) in map {
                if let ("properties", Value::Object(fields)) = (keyword.as_str(), value) {
                    names.extend(fields.keys().map(String::as_str));
                }
                collect_field_names(value, depth + 1, names);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| collect_field_names(item, depth + 1, names));
        }
        _ => {}
    }
}

/// Returns the violations of a schema by a value, one line each; fails if the schema is invalid.
pub fn schema_violations(schema: &Value, value: &Value) -> Result<Vec<String>, CallFailure> {
    let validator = compile_schema(schema)?;
    let violations = validator
        .iter_errors(value)
        .take(MAX_LISTED_VIOLATIONS)
        .map(|error| {
            let path = error.instance_path().to_string();
            let field = path.trim_start_matches('/').replace('/', ".");
            let location =
                if field.is_empty() { "the arguments".to_owned() } else { format!("`{field}`") };
            match error.kind() {
                ValidationErrorKind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    let field =
                        if field.is_empty() { name.into() } else { format!("{field}.{name}") };
                    format!("- `{field}`: required, but missing")
                }
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    format!("- {location}: unknown field `{}`", unexpected.join("`, `"))
                }
                ValidationErrorKind::Enum { options } => {
                    let options: Vec<String> =
                        options.as_array().into_iter().flatten().map(Value::to_string).collect();
                    format!(
                        "- {location}: expected {}, got {}",
                        truncate_chars(&options.join(" or "), MAX_OPTIONS_CHARS),
                        shorten_value(error.instance())
                    )
                }
                ValidationErrorKind::Type { kind } => {
                    let expected = match kind {
                        jsonschema::error::TypeKind::Single(kind) => kind.to_string(),
                        jsonschema::error::TypeKind::Multiple(kinds) => kinds
                            .iter()
                            .map(|kind| kind.to_string())
                            .collect::<Vec<_>>()
                            .join(" or "),
                    };
                    format!(
                        "- {location}: expected {expected}, got {}",
                        shorten_value(error.instance())
                    )
                }
                _ => format!("- {location}: {}", error.masked_with("this")),
            }
        })
        .collect();
    Ok(violations)
}

/// Compiles a schema into a `Validator`. Its regexes match in linear time and are limited in size.
pub(crate) fn compile_schema(schema: &Value) -> Result<jsonschema::Validator, CallFailure> {
    let patterns = jsonschema::PatternOptions::regex()
        .size_limit(MAX_COMPILED_PATTERN_BYTES)
        .dfa_size_limit(MAX_COMPILED_PATTERN_BYTES);
    jsonschema::options()
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| CallFailure::new(format!("its schema is invalid ({error})")))
}

fn shorten_value(value: &Value) -> String {
    const MAX_VALUE_CHARS: usize = 60;
    truncate_chars(&value.to_string(), MAX_VALUE_CHARS)
}

/// Returns a small value that fits a schema: objects have their required fields, arrays one item.
fn example_value(schema: &Value, root: &Value, depth: usize) -> Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let referred = reference.and_then(|text| root.pointer(text.strip_prefix('#')?));
    if let Some(referred) = referred.filter(|_| depth < MAX_EXAMPLE_DEPTH) {
        return example_value(referred, root, depth + 1);
    }
    let fixed = schema.get("const").or_else(|| schema.get("enum")?.get(0));
    if let Some(fixed) = fixed {
        return fixed.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| *kind != "null"),
        kind => kind,
    };
    match kind.and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(Value::from(1)),
        Some("boolean") => Value::from(true),
        Some("array") => {
            let item = schema.get("items").filter(|_| depth < MAX_EXAMPLE_DEPTH);
            let item = item.map(|item| example_value(item, root, depth + 1));
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 3);
            Value::Array(item.into_iter().cycle().take(count as usize).collect())
        }
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array);
            let names = required.into_iter().flatten().filter_map(Value::as_str);
            let names = names.filter(|_| depth < MAX_EXAMPLE_DEPTH);
            let field = |name: &str| {
                let property = schema.get("properties").and_then(|all| all.get(name));
                let value = property.map(|property| example_value(property, root, depth + 1));
                (name.to_owned(), value.unwrap_or(Value::from("…")))
            };
            Value::Object(names.map(field).collect())
        }
        _ => Value::from("…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn violations_text(arguments: Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "limit": {"type": ["integer", "null"], "minimum": 1}},
            "required": ["filePath"],
            "additionalProperties": false,
        });
        let definition = ToolDefinition { description: String::new(), schema };
        match validate_arguments(("read", None), &definition, &arguments) {
            Ok(()) => "fits".into(),
            Err(failure) => failure.text,
        }
    }

    #[test]
    fn each_violation_names_its_field() {
        assert_eq!(violations_text(json!({"filePath": "a", "limit": 3})), "fits");
        expect_test::expect![[r#"
            read was called with invalid arguments:
            - `limit`: expected null or integer, got "ten"
            - the arguments: unknown field `path`
            - `filePath`: required, but missing
            Call it again like this: {"filePath":"…"}"#]]
        .assert_eq(&violations_text(json!({"path": "a", "limit": "ten"})));
        expect_test::expect![[r#"
            read was called with invalid arguments:
            - `limit`: this is less than the minimum of 1
            Call it again like this: {"filePath":"…"}"#]]
        .assert_eq(&violations_text(json!({"filePath": "a", "limit": 0})));
        expect_test::expect![[r#"
            read was called with invalid arguments:
            - the arguments: expected object, got [1]
            Call it again like this: {"filePath":"…"}"#]]
        .assert_eq(&violations_text(json!([1])));
    }

    #[test]
    fn all_values_are_listed_and_the_example_is_whole() {
        let schema = json!({
            "type": "object",
            "properties": {"todos": {"type": "array", "items": {"$ref": "#/$defs/Todo"}}},
            "required": ["todos"],
            "$defs": {"Todo": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"enum": ["pending", "in_progress", "completed", "cancelled"]},
                    "rank": {"type": ["integer", "null"], "minimum": 2},
                },
                "required": ["content", "status", "rank"],
            }},
        });
        let definition = ToolDefinition { description: String::new(), schema: schema.clone() };
        let arguments = json!({"todos": [{"content": "x", "status": "done", "rank": 3}]});
        let failure = validate_arguments(("todowrite", None), &definition, &arguments).unwrap_err();
        expect_test::expect![[r#"
            todowrite was called with invalid arguments:
            - `todos.0.status`: expected "pending" or "in_progress" or "completed" or "cancelled", got "done"
            Call it again like this: {"todos":[{"content":"…","status":"pending","rank":2}]}"#]]
        .assert_eq(&failure.text);
        let example = example_value(&schema, &schema, 0);
        assert_eq!(schema_violations(&schema, &example).unwrap(), [] as [String; 0]);
        let endless = json!({"type": "array", "items": {"$ref": "#"}});
        example_value(&endless, &endless, 0);
    }

    #[test]
    fn an_unknown_field_is_removed_unless_it_may_be_meant_for_a_known_one() {
        let item = json!({
            "type": "object",
            "properties": {"content": {"type": "string"}},
            "additionalProperties": false,
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "filePath": {"type": "string"},
                "limit": {"type": "integer"},
                "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            },
            "required": ["filePath"],
            "additionalProperties": false,
            "$defs": {"Item": item},
        });
        for (mut given, expected) in [
            (json!({"filePath": "a", "-n": true, "mode": "x"}), Some(json!({"filePath": "a"}))),
            (
                json!({"filePath": "a", "items": [{"content": "b", "activeForm": "c"}]}),
                Some(json!({"filePath": "a", "items": [{"content": "b"}]})),
            ),
            (json!({"filePath": "a", "limt": 3}), None),
            (json!({"filePath": "a", "line_limit": 3}), None),
            (json!({"mode": "x"}), None),
            (json!({"filePath": 7, "mode": "x"}), None),
            (json!({"filePath": "a"}), None),
        ] {
            let removed = remove_unknown_fields(&schema, &mut given);
            assert_eq!(removed.map(|_| given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn a_huge_value_is_not_echoed() {
        assert!(violations_text(json!({"filePath": vec![7; 100_000]})).len() < 300);
    }

    #[test]
    fn a_backtracking_pattern_matches_in_linear_time() {
        let schema = json!({"type": "string", "pattern": "^(a+)+$"});
        let value = Value::from("a".repeat(50_000) + "!");
        assert_eq!(schema_violations(&schema, &value).unwrap().len(), 1);
        for pattern in ["(?=a)b", r"(a)\1", "((a{500}){500}){500}"] {
            let schema = json!({"type": "string", "pattern": pattern});
            let failure = schema_violations(&schema, &json!("a")).unwrap_err();
            assert!(failure.text.starts_with("its schema is invalid"), "{pattern}");
        }
    }
}
