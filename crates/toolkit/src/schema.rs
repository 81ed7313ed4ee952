//! Validation: what is wrong with arguments, field by field, in words a model can act on.

use crate::tool::{Definition, Failure};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use windlass_protocol::text::beginning;

/// How many faults are listed at most.
const MOST: usize = 8;
/// How large a pattern may become once it is compiled, in bytes.
const LARGEST: usize = 1 << 20;

/// Checks arguments against a tool's schema.
pub(crate) fn validate(
    tool: &str,
    definition: &Definition,
    arguments: &Value,
) -> Result<(), Failure> {
    let faults = fits(&definition.schema, arguments)
        .map_err(|failure| Failure::new(format!("{tool} cannot be called: {failure}")))?;
    if faults.is_empty() {
        return Ok(());
    }
    let example = Value::Object(example(&definition.schema));
    Err(Failure::new(format!(
        "{tool} was called with arguments that do not fit:\n{}\nCall it again like this: {example}",
        faults.join("\n")
    )))
}

/// What keeps a value from fitting a schema, a line each; an error if the schema is none.
pub fn fits(schema: &Value, value: &Value) -> Result<Vec<String>, Failure> {
    let validator = compiled(schema)?;
    let faults = validator
        .iter_errors(value)
        .take(MOST)
        .map(|error| {
            let path = error.instance_path().to_string();
            let field = path.trim_start_matches('/').replace('/', ".");
            let at =
                if field.is_empty() { "the arguments".to_owned() } else { format!("`{field}`") };
            match error.kind() {
                ValidationErrorKind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    let field =
                        if field.is_empty() { name.into() } else { format!("{field}.{name}") };
                    format!("- `{field}`: required, but missing")
                }
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    format!("- {at}: there is no field `{}`", unexpected.join("`, `"))
                }
                ValidationErrorKind::Type { kind } => {
                    let expected = match kind {
                        jsonschema::error::TypeKind::Single(one) => one.to_string(),
                        jsonschema::error::TypeKind::Multiple(many) => {
                            many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
                        }
                    };
                    format!("- {at}: expected {expected}, got {}", short(error.instance()))
                }
                _ => format!("- {at}: {}", error.masked_with("this")),
            }
        })
        .collect();
    Ok(faults)
}

/// A check of a schema. Patterns are matched in linear time, and none may grow beyond bounds.
pub(crate) fn compiled(schema: &Value) -> Result<jsonschema::Validator, Failure> {
    let patterns = jsonschema::PatternOptions::regex().size_limit(LARGEST).dfa_size_limit(LARGEST);
    jsonschema::options()
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| Failure::new(format!("its schema is not valid ({error})")))
}

fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    beginning(&value.to_string(), LONGEST)
}

/// The smallest arguments of the right shape.
fn example(schema: &Value) -> Map<String, Value> {
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

    fn complaint(arguments: Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "limit": {"type": ["integer", "null"], "minimum": 1}},
            "required": ["filePath"],
            "additionalProperties": false,
        });
        let definition = Definition { description: String::new(), schema };
        match validate("read", &definition, &arguments) {
            Ok(()) => "fits".into(),
            Err(failure) => failure.text,
        }
    }

    #[test]
    fn each_field_says_what_is_wrong_with_it() {
        assert_eq!(complaint(json!({"filePath": "a", "limit": 3})), "fits");
        expect_test::expect![[r#"
            read was called with arguments that do not fit:
            - `limit`: expected null or integer, got "ten"
            - the arguments: there is no field `path`
            - `filePath`: required, but missing
            Call it again like this: {"filePath":"…"}"#]]
        .assert_eq(&complaint(json!({"path": "a", "limit": "ten"})));
        expect_test::expect![[r#"
            read was called with arguments that do not fit:
            - `limit`: this is less than the minimum of 1
            Call it again like this: {"filePath":"…"}"#]]
        .assert_eq(&complaint(json!({"filePath": "a", "limit": 0})));
        expect_test::expect![[r#"
            read was called with arguments that do not fit:
            - the arguments: expected object, got [1]
            Call it again like this: {"filePath":"…"}"#]]
        .assert_eq(&complaint(json!([1])));
    }

    #[test]
    fn a_huge_value_is_not_echoed() {
        assert!(complaint(json!({"filePath": vec![7; 100_000]})).len() < 300);
    }

    #[test]
    fn a_pattern_made_to_take_for_ever_takes_no_time() {
        let schema = json!({"type": "string", "pattern": "^(a+)+$"});
        let value = Value::from("a".repeat(50_000) + "!");
        assert_eq!(fits(&schema, &value).unwrap().len(), 1);
        for pattern in ["(?=a)b", r"(a)\1", "((a{500}){500}){500}"] {
            let schema = json!({"type": "string", "pattern": pattern});
            let failure = fits(&schema, &json!("a")).unwrap_err();
            assert!(failure.text.starts_with("its schema is not valid"), "{pattern}");
        }
    }
}
