//! Tests of `sanitize_schema` with untrusted schemas, most of them hostile.

use super::*;
use crate::registry::compact_schema::{SchemaOrigin, compact};
use crate::validate_arguments::schema_violations;
use proptest::prelude::*;

#[test]
fn a_valid_schema_stays_unchanged() {
    let schema = json!({
        "type": "object",
        "properties": {
            "repo": {"type": "string", "pattern": "^[a-z]+$"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}},
            "$ref": {"type": "string"},
            "pattern": {"type": "string"},
            "mode": {"enum": [{"$ref": "http://a/b"}, "(?=x)"]},
        },
        "required": ["repo"],
        "$defs": {"Tag": {"type": "string"}},
    });
    assert_eq!(sanitize_schema(&schema).unwrap(), schema);
    assert_eq!(sanitize_schema(&json!({})).unwrap(), json!({"type": "object"}));
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"items": [{"type": "string"}]}},
    });
    assert_eq!(sanitize_schema(&old).unwrap(), old, "an older draft keeps its own rules");
}

#[test]
fn an_invalid_schema_is_rejected_with_the_reason() {
    let wide: Vec<u32> = (0..6_000).collect();
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    for (schema, expected) in [
        (json!(true), "not an object"),
        (json!([]), "not an object"),
        (json!({"type": "array"}), "is not `object`"),
        (json!({"type": ["object", "null"]}), "is not `object`"),
        (json!({"type": "object", "properties": {"a": {"type": "strang"}}}), "is invalid"),
        (json!({"type": "object", "properties": 7}), "is invalid"),
        (json!({"enum": wide}), "more than 5000"),
        (json!({"description": "x".repeat(70_000)}), "65536"),
        (deep, "deeper than 32"),
    ] {
        let error = sanitize_schema(&schema).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn references_out_of_the_schema_are_removed() {
    for reference in [
        "http://evil.example/schema.json",
        "https://evil.example/#/a",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/Missing",
        "#anchor",
        "#/type",
        "",
    ] {
        let schema = json!({
            "properties": {"a": {"$ref": reference, "type": "string"}, "b": {"type": "number"}},
        });
        let sanitized = sanitize_schema(&schema).unwrap();
        assert_eq!(sanitized["properties"]["a"], json!({}), "{reference}");
        assert_eq!(
            schema_violations(&sanitized, &json!({"a": 7, "b": 1})).unwrap(),
            Vec::<String>::new()
        );
    }
    for keyword in ["$dynamicRef", "$recursiveRef"] {
        let schema = json!({"properties": {"a": {keyword: "#"}}});
        assert_eq!(sanitize_schema(&schema).unwrap()["properties"]["a"], json!({}));
    }
    let schema_with_ids = json!({
        "$id": "http://evil.example/", "$schema": "http://evil.example/meta",
        "properties": {"a": {"$id": "http://evil.example/b", "$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    });
    let sanitized = sanitize_schema(&schema_with_ids).unwrap();
    assert!(!sanitized.to_string().contains("evil"), "{sanitized}");
    assert_eq!(schema_violations(&sanitized, &json!({"a": 7})).unwrap().len(), 1);
}

#[test]
fn a_pattern_that_is_not_linear_is_removed() {
    for pattern in [
        "(?=a)b".to_owned(),
        "(?<!a)b".to_owned(),
        r"(a)\1".to_owned(),
        "((a{900}){900}){900}".to_owned(),
        "a".repeat(1_025),
        "(".to_owned(),
    ] {
        let schema = json!({
            "properties": {"a": {"type": "string", "pattern": pattern}},
            "patternProperties": {pattern.clone(): {"type": "number"}, "^x": {"type": "string"}},
        });
        let sanitized = sanitize_schema(&schema).unwrap();
        assert_eq!(sanitized["properties"]["a"], json!({"type": "string"}), "{pattern}");
        assert_eq!(sanitized["patternProperties"], json!({"^x": {"type": "string"}}));
    }
    let slow = json!({"properties": {"a": {"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}}});
    let sanitized = sanitize_schema(&slow).unwrap();
    assert_eq!(schema_violations(&sanitized, &json!({"a": "a".repeat(20_000)})).unwrap().len(), 1);
    let many: Map<String, Value> =
        (0..500).map(|n| (format!("f{n}"), json!({"pattern": format!("^{n}$")}))).collect();
    let sanitized = sanitize_schema(&json!({"properties": many})).unwrap();
    assert_eq!(sanitized.to_string().matches("pattern\"").count(), MAX_PATTERNS);
}

#[test]
fn references_that_double_at_every_level_are_rejected() {
    let doubling = |levels: usize| {
        let mut defined = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defined.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        defined.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defined})
    };
    assert!(sanitize_schema(&doubling(5)).is_ok());
    assert!(sanitize_schema(&doubling(30)).unwrap_err().contains("references are expanded"));
    let tree = json!({
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    });
    let sanitized = sanitize_schema(&tree).unwrap();
    assert!(
        schema_violations(&sanitized, &json!({"root": {"next": {"next": {}}}})).unwrap().is_empty()
    );
    assert_eq!(sanitized["properties"]["root"], json!({"$ref": "#/$defs/Node"}));
    assert_eq!(
        sanitized["$defs"]["Node"]["properties"]["next"],
        json!({"description": "The same as #/$defs/Node."})
    );
    let violations = schema_violations(&sanitized, &json!({"root": {"next": 1, "a": 2}})).unwrap();
    assert!(violations.is_empty(), "nested levels are left to the server: {violations:?}");
    assert_eq!(schema_violations(&sanitized, &json!({"root": 1})).unwrap().len(), 1);
}

#[test]
fn validation_does_not_grow_with_the_depth_of_recursive_arguments() {
    let references = |target: &str| vec![json!({"$ref": target}); 60];
    let mut arguments = json!({});
    for _ in 0..60 {
        arguments = json!({"a": arguments});
    }
    for schema in [
        json!({"required": ["z"], "properties": {"a": {"allOf": references("#")}}}),
        json!({"required": ["z"], "properties": {"a": {"anyOf": references("#/properties/a")}}}),
        json!({
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {
                "A": {"required": ["z"], "properties": {"a": {"oneOf": references("#/$defs/B")}}},
                "B": {"required": ["z"], "properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}]}}},
            },
        }),
    ] {
        let sanitized = sanitize_schema(&schema).unwrap();
        assert!(schema_violations(&sanitized, &arguments).unwrap().len() <= 8);
    }
}

#[test]
fn a_reference_to_a_value_that_is_no_subschema_is_removed() {
    let hidden = json!({"pattern": "(a+)+$".repeat(400), "$id": "http://evil.example/"});
    for (target, schema) in [
        ("#/x/y", json!({"x": {"y": hidden}})),
        ("#/default", json!({"default": hidden})),
        ("#/enum/0", json!({"enum": [hidden, {"$ref": "#"}]})),
        ("#/properties/b/const", json!({"properties": {"b": {"const": hidden}}})),
    ] {
        let mut schema = schema;
        schema["additionalProperties"] = json!({"$ref": target});
        let sanitized = sanitize_schema(&schema).unwrap();
        assert_eq!(sanitized["additionalProperties"], json!({}), "{target}");
    }
    let allowed =
        json!({"properties": {"a~/b": {"type": "string"}, "c": {"$ref": "#/properties/a~0~1b"}}});
    assert_eq!(sanitize_schema(&allowed).unwrap()["properties"], allowed["properties"]);
}

#[test]
fn tool_names_are_valid_for_every_provider() {
    for (server, tool, name) in [
        ("git", "status", "git_status"),
        ("my server", "a.b/c", "my_server_a_b_c"),
        ("s", "größe", "s_gr__e"),
        ("s", "", "s_"),
    ] {
        assert_eq!(tool_name(server, tool), name);
    }
    let long = tool_name("server", &"x".repeat(100));
    assert_eq!((long.len(), long.is_ascii()), (64, true));
    assert_ne!(long, tool_name("server", &"x".repeat(101)), "shortened names stay distinct");
}

#[test]
fn a_digest_does_not_depend_on_the_order_of_fields() {
    let one: Value = serde_json::from_str(r#"{"a": {"x": 1, "y": [1, 2]}, "b": 2}"#).unwrap();
    let same: Value = serde_json::from_str(r#"{"b": 2, "a": {"y": [1, 2], "x": 1}}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"b": 2, "a": {"y": [2, 1], "x": 1}}"#).unwrap();
    assert_eq!(definition_digest(&one), definition_digest(&same));
    assert_ne!(definition_digest(&one), definition_digest(&other));
    assert_eq!(definition_digest(&one).len(), 64);
}

/// Generates values that resemble schemas, with keywords in unusual places.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"$ref": "#/$defs/A"})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"$ref": "http://x/y"})),
        Just(json!({"pattern": "(a|b)+$"})),
        Just(json!({"pattern": "(?=a)"})),
        Just(json!(true)),
        Just(json!(null)),
        Just(json!(["a", 1])),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("properties"),
        Just("items"),
        Just("anyOf"),
        Just("$defs"),
        Just("A"),
        Just("a"),
        Just("$ref"),
        Just("$id"),
        Just("pattern"),
        Just("patternProperties"),
        Just("enum"),
        Just("type"),
        Just("required"),
        Just("not"),
        Just("additionalProperties"),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..5).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

#[test]
fn a_description_is_cut_between_characters() {
    let text = "ä".repeat(MAX_DESCRIPTION_BYTES);
    let cut = truncate_description(&text);
    assert!(
        cut.len() <= MAX_DESCRIPTION_BYTES
            && cut.len() >= MAX_DESCRIPTION_BYTES - 1
            && text.starts_with(cut)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A sanitized schema can be used for validation, sent to models and sanitized again.
    #[test]
    fn a_sanitized_schema_compiles_and_stays_unchanged(input in schema(), value in schema()) {
        if let Ok(sanitized) = sanitize_schema(&input) {
            prop_assert_eq!(&sanitized["type"], "object");
            prop_assert!(schema_violations(&sanitized, &value).is_ok());
            let compacted = compact(&sanitized, "", SchemaOrigin::External);
            prop_assert!(compacted.to_string().len() < 20 * MAX_SCHEMA_BYTES);
            prop_assert_eq!(sanitize_schema(&sanitized), Ok(sanitized.clone()));
        }
    }

    #[test]
    fn every_tool_name_is_valid(server in ".{0,40}", tool in ".{0,80}") {
        let name = tool_name(&server, &tool);
        prop_assert!((1..=64).contains(&name.len()));
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        prop_assert!(name.chars().all(is_allowed));
    }
}
