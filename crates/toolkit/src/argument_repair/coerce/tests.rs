//! Tests of `coerce`: conversions, values that stay unchanged, and descriptions of changes.

use super::coerce;
use crate::argument_repair::tests::values;
use proptest::test_runner::Config;
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

fn run_coerce(schema: &Value, mut value: Value) -> (Value, Vec<String>) {
    let mut changes = Vec::new();
    coerce(schema, &mut value, &mut changes);
    (value, changes)
}

/// Coerces a value in a field `x` with this schema, and returns the result.
fn coerce_field(schema: Value, value: Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"x": schema},
        "$defs": {
            "Edit": {
                "type": "object",
                "properties": {"oldText": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["oldText"],
                "additionalProperties": false,
            },
            "Loop": {"$ref": "#/$defs/Loop"},
        },
    });
    run_coerce(&schema, json!({"x": value})).0.get("x").cloned().unwrap_or(json!("gone"))
}

#[test]
fn unambiguous_values_are_converted_to_the_required_type() {
    let edit = json!({"$ref": "#/$defs/Edit"});
    let edits = json!({"type": "array", "items": edit});
    let strings = json!({"type": "array", "items": {"type": "string"}});
    for (schema, given, expected) in [
        (json!({"type": "integer"}), json!("5"), json!(5)),
        (json!({"type": ["integer", "null"]}), json!(" -5 "), json!(-5)),
        (json!({"type": "integer"}), json!(5.0), json!(5)),
        (json!({"type": "integer"}), json!("5.0"), json!(5)),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!("5"), json!(5)),
        (json!({"type": "number"}), json!("5.5"), json!(5.5)),
        (json!({"type": "boolean"}), json!("true"), json!(true)),
        (json!({"type": "boolean"}), json!("False"), json!(false)),
        (json!({"type": "string"}), json!(5), json!("5")),
        (json!({"type": "string"}), json!(true), json!("true")),
        (json!({"enum": ["1", "2"]}), json!(1), json!("1")),
        (strings.clone(), json!("a"), json!(["a"])),
        (strings.clone(), json!(5), json!(["5"])),
        (strings.clone(), json!("[\"a\",\"b\"]"), json!(["a", "b"])),
        (strings, json!(["a", 1]), json!(["a", "1"])),
        (json!({"type": "array", "items": {"type": "integer"}}), json!("[\"1\"]"), json!([1])),
        (edit.clone(), json!("{\"oldText\": \"a\"}"), json!({"oldText": "a"})),
        (
            edits.clone(),
            json!({"old_text": "a", "count": "2"}),
            json!([{"oldText": "a", "count": 2}]),
        ),
        (edits, json!("{\"oldText\": \"a\"}"), json!([{"oldText": "a"}])),
        (edit, json!({"OLD-TEXT": "a", "count": null}), json!({"oldText": "a"})),
        (json!({"type": "integer"}), json!(null), json!("gone")),
    ] {
        assert_eq!(coerce_field(schema.clone(), given.clone()), expected, "{schema} {given}");
    }
}

#[test]
fn valid_and_ambiguous_values_stay_unchanged() {
    for (schema, given) in [
        (json!({}), json!("5")),
        (json!(true), json!("5")),
        (json!({"type": "string"}), json!("5")),
        (json!({"type": "string"}), json!("{\"a\": 1}")),
        (json!({"type": ["string", "integer"]}), json!("5")),
        (json!({"type": "string", "pattern": "^a"}), json!("5")),
        (json!({"type": "string"}), json!(1.10)),
        (json!({"type": "string"}), json!({"a": 1})),
        (json!({"type": "string"}), json!(["a"])),
        (json!({"type": "integer"}), json!(5.5)),
        (json!({"type": "integer"}), json!("five")),
        (json!({"type": "integer"}), json!("0x5")),
        (json!({"type": "integer"}), json!("1e300")),
        (json!({"type": "number"}), json!(5.0)),
        (json!({"type": ["integer", "null"]}), json!(null)),
        (json!({"enum": ["a"]}), json!(5)),
        (json!({"type": "boolean"}), json!("yes")),
        (json!({"type": "boolean"}), json!(1)),
        (json!({"type": "array", "items": {"type": "integer"}}), json!("x")),
        (json!({"$ref": "#/$defs/Loop"}), json!("5")),
        (json!({"$ref": "#/nowhere"}), json!("5")),
        (json!({"$ref": "https://example.com/x"}), json!("5")),
    ] {
        assert_eq!(coerce_field(schema.clone(), given.clone()), given, "{schema} {given}");
    }
}

#[test]
fn a_field_is_renamed_only_if_both_names_are_unambiguous() {
    let schema = |additional: Value| {
        json!({
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "a_b": {}, "aB": {}},
            "additionalProperties": additional,
        })
    };
    for (additional, given, expected) in [
        (
            json!(false),
            json!({"z": 1, "file_path": "x", "y": 2}),
            json!({"z": 1, "filePath": "x", "y": 2}),
        ),
        (json!(true), json!({"FilePath": "x"}), json!({"filePath": "x"})),
        (json!({"type": "string"}), json!({"file_path": "x"}), json!({"file_path": "x"})),
        (
            json!(false),
            json!({"file_path": "x", "filePath": "y"}),
            json!({"file_path": "x", "filePath": "y"}),
        ),
        (
            json!(false),
            json!({"file_path": "x", "FILEPATH": "y"}),
            json!({"file_path": "x", "FILEPATH": "y"}),
        ),
        (json!(false), json!({"a-b": 1, "_": 2}), json!({"a-b": 1, "_": 2})),
    ] {
        let value = run_coerce(&schema(additional), given.clone()).0;
        assert_eq!(value.to_string(), expected.to_string(), "{given}");
    }
}

#[test]
fn a_synonym_names_a_field_that_is_missing_preferably_a_required_one() {
    let schema = json!({
        "type": "object",
        "properties": {"pattern": {}, "path": {}, "include": {}, "filePath": {}},
        "required": ["pattern", "filePath"],
        "additionalProperties": false,
    });
    for (given, expected) in [
        (json!({"glob": "*", "file": "x"}), json!({"pattern": "*", "filePath": "x"})),
        (json!({"glob": "*", "pattern": "x"}), json!({"include": "*", "pattern": "x"})),
        (json!({"file": "x", "filename": "y"}), json!({"file": "x", "filename": "y"})),
        // A field that the schema has is not taken for another one.
        (json!({"path": "x"}), json!({"path": "x"})),
        (json!({"directory": "x"}), json!({"path": "x"})),
        (json!({"directory": "x", "path": "y"}), json!({"directory": "x", "path": "y"})),
    ] {
        assert_eq!(run_coerce(&schema, given.clone()).0.to_string(), expected.to_string());
    }
}

#[test]
fn an_object_is_matched_to_an_alternative_by_its_tag() {
    let shape = |tag: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": tag}, "size": {"type": "integer"}},
            "required": ["kind", "size"],
        })
    };
    let schema = json!({"oneOf": [shape("a"), shape("b")]});
    let (value, changes) = run_coerce(&schema, json!({"kind": "b", "size": "3"}));
    assert_eq!(value, json!({"kind": "b", "size": 3}));
    assert_eq!(changes, ["`size`: \"3\" was read as 3"]);
    let (value, _) = run_coerce(&schema, json!({"kind": "c", "size": "3"}));
    assert_eq!(value, json!({"kind": "c", "size": "3"}));
}

#[test]
fn descriptions_of_changes_are_short_and_limited() {
    let schema = json!({
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "limit": {"type": "integer"},
            "note": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "lines": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["filePath"],
    });
    let given = json!({
        "file_path": 7, "limit": "5", "note": null, "paths": "ü".repeat(100),
        "lines": vec!["1"; 5_000],
    });
    let (_, changes) = run_coerce(&schema, given);
    expect_test::expect![[r#"
        `file_path` was read as `filePath`
        `note`: null was removed
        `filePath`: 7 was read as "7"
        `limit`: "5" was read as 5
        `paths`: "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü… was read as ["üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü…
        `lines.0`: "1" was read as 1
        `lines.1`: "1" was read as 1
        `lines.2`: "1" was read as 1
        and 4997 more"#]].assert_eq(&changes.join("\n"));
}

#[test]
fn an_endlessly_branching_schema_changes_nothing() {
    let schema = json!({
        "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
        "$defs": {
            "a": {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {"type": "null"}}},
            "b": {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {"type": "string"}}},
        },
    });
    let deep = (0..100).fold(json!({"y": 1}), |inner, _| json!({"x": inner, "y": 1}));
    let (value, _) = run_coerce(&schema, deep.clone());
    assert_eq!(value, deep);
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn valid_values_stay_valid_and_coercion_is_idempotent(mut value in values()) {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"$ref": "#"}}, "b": {"type": "string"}},
            "additionalProperties": {"anyOf": [{"type": "integer"}, {"$ref": "#"}, {"type": "boolean"}]},
        });
        let valid = jsonschema::is_valid(&schema, &value);
        let before = value.clone();
        let mut changes = Vec::new();
        coerce(&schema, &mut value, &mut changes);
        prop_assert!(changes.len() <= 9);
        prop_assert_eq!(changes.is_empty(), value == before);
        prop_assert!(!valid || jsonschema::is_valid(&schema, &value));
        let first_result = value.clone();
        let mut more_changes = Vec::new();
        coerce(&schema, &mut value, &mut more_changes);
        prop_assert_eq!(value, first_result);
    }
}
