//! Which types are changed, which are not, and how it is told.

use super::coerce;
use crate::repair::tests::values;
use proptest::test_runner::Config;
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

fn coerced(schema: &Value, mut value: Value) -> (Value, Vec<String>) {
    let mut changes = Vec::new();
    coerce(schema, &mut value, &mut changes);
    (value, changes)
}

/// One field `x` of this schema, and what becomes of a value in it.
fn field(schema: Value, value: Value) -> Value {
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
    coerced(&schema, json!({"x": value})).0.get("x").cloned().unwrap_or(json!("gone"))
}

#[test]
fn obvious_types_become_what_is_wanted() {
    let edit = json!({"$ref": "#/$defs/Edit"});
    let edits = json!({"type": "array", "items": edit});
    let strings = json!({"type": "array", "items": {"type": "string"}});
    for (schema, given, wanted) in [
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
        assert_eq!(field(schema.clone(), given.clone()), wanted, "{schema} {given}");
    }
}

#[test]
fn what_fits_or_is_not_obvious_is_left_alone() {
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
        assert_eq!(field(schema.clone(), given.clone()), given, "{schema} {given}");
    }
}

#[test]
fn a_field_is_renamed_only_if_both_names_can_mean_nothing_else() {
    let schema = |additional: Value| {
        json!({
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "a_b": {}, "aB": {}},
            "additionalProperties": additional,
        })
    };
    for (additional, given, meant) in [
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
        let coerced = coerced(&schema(additional), given.clone()).0;
        assert_eq!(coerced.to_string(), meant.to_string(), "{given}");
    }
}

#[test]
fn one_of_several_objects_is_meant_by_its_tag() {
    let shape = |tag: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": tag}, "size": {"type": "integer"}},
            "required": ["kind", "size"],
        })
    };
    let schema = json!({"oneOf": [shape("a"), shape("b")]});
    let (value, changes) = coerced(&schema, json!({"kind": "b", "size": "3"}));
    assert_eq!(value, json!({"kind": "b", "size": 3}));
    assert_eq!(changes, ["`size`: \"3\" was read as 3"]);
    let (value, _) = coerced(&schema, json!({"kind": "c", "size": "3"}));
    assert_eq!(value, json!({"kind": "c", "size": "3"}));
}

#[test]
fn changes_are_named_shortly_and_few() {
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
    let (_, changes) = coerced(&schema, given);
    expect_test::expect![[r#"
        `file_path` was read as `filePath`
        `note`: null was left out
        `filePath`: 7 was read as "7"
        `limit`: "5" was read as 5
        `paths`: "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü… was read as ["üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü…
        `lines.0`: "1" was read as 1
        `lines.1`: "1" was read as 1
        `lines.2`: "1" was read as 1
        and 4997 more"#]].assert_eq(&changes.join("\n"));
}

#[test]
fn a_schema_that_branches_without_end_is_given_up_on() {
    let schema = json!({
        "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
        "$defs": {
            "a": {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {"type": "null"}}},
            "b": {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {"type": "string"}}},
        },
    });
    let deep = (0..100).fold(json!({"y": 1}), |inner, _| json!({"x": inner, "y": 1}));
    let (value, _) = coerced(&schema, deep.clone());
    assert_eq!(value, deep);
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_fits_is_left_alone_and_nothing_is_changed_twice(mut value in values()) {
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
        let again = value.clone();
        let mut more = Vec::new();
        coerce(&schema, &mut value, &mut more);
        prop_assert_eq!(value, again);
    }
}
