//! Validation of arguments against a tool's schema, with one message per field that the model can
//! act on.

use crate::call_failure::CallFailure;
use crate::tool_definition::ToolDefinition;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use windlass_protocol::display_text::truncate_chars;

/// Further violations are not listed.
const MAX_LISTED_VIOLATIONS: usize = 8;
/// Limits the size of a compiled regex.
const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 20;

/// Checks arguments against a tool's schema.
pub(crate) fn validate_arguments(
    tool: &str,
    definition: &ToolDefinition,
    arguments: &Value,
) -> Result<(), CallFailure> {
    let violations = schema_violations(&definition.schema, arguments)
        .map_err(|failure| CallFailure::new(format!("{tool} cannot be called: {failure}")))?;
    if violations.is_empty() {
        return Ok(());
    }
    let example = Value::Object(example_arguments(&definition.schema));
    Err(CallFailure::new(format!(
        "{tool} was called with invalid arguments:\n{}\nCall it again like this: {example}",
        violations.join("\n")
    )))
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

/// Returns the smallest arguments that have the right types.
fn example_arguments(schema: &Value) -> Map<String, Value> {
    let empty = Vec::new();
    let required = schema.get("required").and_then(Value::as_array).unwrap_or(&empty);
    let sample = |name: &str| match schema.pointer(&format!("/properties/{name}/type")) {
        Some(Value::String(kind)) => match kind.as_str() {
            "integer" | "number" => Value::from(1),
            "boolean" => Value::from(true),
            "array" => Value::Array(Vec::new()),
            "object" => Value::Object(Map::new()),
            _ => Value::from("…"),
        },
        _ => Value::from("…"),
    };
    required.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), sample(name))).collect()
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
        match validate_arguments("read", &definition, &arguments) {
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
