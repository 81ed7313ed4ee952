//! Schemas that strangers sent, most of them in bad faith.

use super::*;
use crate::schema::fits;
use crate::slim::slim;
use proptest::prelude::*;

#[test]
fn an_honest_schema_stays_as_it_is() {
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
    assert_eq!(tame(&schema).unwrap(), schema);
    assert_eq!(tame(&json!({})).unwrap(), json!({"type": "object"}));
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"items": [{"type": "string"}]}},
    });
    assert_eq!(tame(&old).unwrap(), old, "an older draft has its own rules");
}

#[test]
fn what_is_no_schema_of_arguments_is_refused_with_the_reason() {
    let wide: Vec<u32> = (0..6_000).collect();
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    for (schema, why) in [
        (json!(true), "no object"),
        (json!([]), "no object"),
        (json!({"type": "array"}), "not that of an object"),
        (json!({"type": ["object", "null"]}), "not that of an object"),
        (json!({"type": "object", "properties": {"a": {"type": "strang"}}}), "not valid"),
        (json!({"type": "object", "properties": 7}), "not valid"),
        (json!({"enum": wide}), "more than 5000"),
        (json!({"description": "x".repeat(70_000)}), "65536"),
        (deep, "deeper than 32"),
    ] {
        let said = tame(&schema).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn nothing_leads_out_of_a_schema() {
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
        let tame = tame(&schema).unwrap();
        assert_eq!(tame["properties"]["a"], json!({}), "{reference}");
        assert_eq!(fits(&tame, &json!({"a": 7, "b": 1})).unwrap(), Vec::<String>::new());
    }
    for word in ["$dynamicRef", "$recursiveRef"] {
        let schema = json!({"properties": {"a": {word: "#"}}});
        assert_eq!(tame(&schema).unwrap()["properties"]["a"], json!({}));
    }
    let moved = json!({
        "$id": "http://evil.example/", "$schema": "http://evil.example/meta",
        "properties": {"a": {"$id": "http://evil.example/b", "$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    });
    let tame = tame(&moved).unwrap();
    assert!(!tame.to_string().contains("evil"), "{tame}");
    assert_eq!(fits(&tame, &json!({"a": 7})).unwrap().len(), 1);
}

#[test]
fn a_pattern_that_costs_more_than_reading_is_left_out() {
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
        let tame = tame(&schema).unwrap();
        assert_eq!(tame["properties"]["a"], json!({"type": "string"}), "{pattern}");
        assert_eq!(tame["patternProperties"], json!({"^x": {"type": "string"}}));
    }
    let slow = json!({"properties": {"a": {"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}}});
    let tamed = tame(&slow).unwrap();
    assert_eq!(fits(&tamed, &json!({"a": "a".repeat(20_000)})).unwrap().len(), 1);
    let many: Map<String, Value> =
        (0..500).map(|n| (format!("f{n}"), json!({"pattern": format!("^{n}$")}))).collect();
    let tamed = tame(&json!({"properties": many})).unwrap();
    assert_eq!(tamed.to_string().matches("pattern\"").count(), PATTERNS);
}

#[test]
fn references_that_double_at_every_level_are_counted() {
    let doubling = |levels: usize| {
        let mut defined = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defined.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        defined.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defined})
    };
    assert!(tame(&doubling(5)).is_ok());
    assert!(tame(&doubling(30)).unwrap_err().contains("refers to itself"));
    let tree = json!({
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    });
    let tame = tame(&tree).unwrap();
    assert!(fits(&tame, &json!({"root": {"next": {"next": {}}}})).unwrap().is_empty());
}

#[test]
fn names_are_those_every_provider_takes() {
    for (server, tool, name) in [
        ("git", "status", "git_status"),
        ("my server", "a.b/c", "my_server_a_b_c"),
        ("s", "größe", "s_gr__e"),
        ("s", "", "s_"),
    ] {
        assert_eq!(sanitized(server, tool), name);
    }
    let long = sanitized("server", &"x".repeat(100));
    assert_eq!((long.len(), long.is_ascii()), (64, true));
    assert_ne!(long, sanitized("server", &"x".repeat(101)), "cut off, they are still two");
}

#[test]
fn a_digest_is_of_the_meaning_and_not_of_the_order() {
    let one: Value = serde_json::from_str(r#"{"a": {"x": 1, "y": [1, 2]}, "b": 2}"#).unwrap();
    let same: Value = serde_json::from_str(r#"{"b": 2, "a": {"y": [1, 2], "x": 1}}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"b": 2, "a": {"y": [2, 1], "x": 1}}"#).unwrap();
    assert_eq!(digest(&one), digest(&same));
    assert_ne!(digest(&one), digest(&other));
    assert_eq!(digest(&one).len(), 64);
}

/// Almost a schema: real words in odd places.
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
    let text = "ä".repeat(DESCRIPTION);
    let cut = shortened(&text);
    assert!(cut.len() <= DESCRIPTION && cut.len() >= DESCRIPTION - 1 && text.starts_with(cut));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// What is let in can be checked against, sent and let in again.
    #[test]
    fn what_is_tame_is_an_object_that_compiles_and_stays_tame(wild in schema(), value in schema()) {
        if let Ok(once) = tame(&wild) {
            prop_assert_eq!(&once["type"], "object");
            prop_assert!(fits(&once, &value).is_ok());
            prop_assert!(slim(&once, "").to_string().len() < 20 * LONGEST);
            prop_assert_eq!(tame(&once), Ok(once.clone()));
        }
    }

    #[test]
    fn every_name_is_taken(server in ".{0,40}", tool in ".{0,80}") {
        let name = sanitized(&server, &tool);
        prop_assert!((1..=64).contains(&name.len()));
        let fit = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        prop_assert!(name.chars().all(fit));
    }
}
