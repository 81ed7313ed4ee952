//! Schemas as tools and strangers write them, in every subset, and made-up ones that are hostile.

use super::{DEEPEST, Subset, adapt, fits_strict, takes_nothing};
use serde_json::{Map, Value, json};

mod made_up;

const SUBSETS: [Subset; 4] = [Subset::Full, Subset::Strict, Subset::Gemini, Subset::Plain];

fn text(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().to_owned()
}

/// The schema of one property, adapted.
fn property(schema: Value, subset: Subset) -> Value {
    let whole = json!({"type": "object", "properties": {"p": schema}, "required": ["p"]});
    adapt(&whole, subset)["properties"]["p"].take()
}

/// Visits every schema, and knows property names from keywords.
fn visit(schema: &Value, depth: usize, see: &mut dyn FnMut(&Map<String, Value>, usize)) {
    let Some(map) = schema.as_object() else { return };
    see(map, depth);
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                named.values().for_each(|inner| visit(inner, depth + 1, see));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                list.iter().for_each(|inner| visit(inner, depth + 1, see));
            }
            (
                "items"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                inner,
            ) => visit(inner, depth + 1, see),
            _ => {}
        }
    }
}

/// Fails on anything a provider of this subset would refuse.
fn check(schema: &Value, subset: Subset) {
    assert_eq!(schema["type"], "object", "{schema}");
    assert!(schema["properties"].is_object(), "{schema}");
    for key in ["anyOf", "oneOf", "allOf", "not", "enum", "const"] {
        assert!(schema.get(key).is_none(), "{key} at the top: {schema}");
    }
    visit(schema, 0, &mut |map, depth| {
        assert!(depth <= DEEPEST + 1);
        for key in map.keys() {
            assert!(known(key, subset), "{key} in {map:?}");
        }
        match subset {
            Subset::Full | Subset::Plain => {}
            Subset::Strict => check_strict(map),
            Subset::Gemini => check_gemini(map),
        }
    });
}

fn known(key: &str, subset: Subset) -> bool {
    let all = super::keyword::kind(key).is_some();
    let core = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "minimum",
        "maximum",
        "pattern",
        "minItems",
        "maxItems",
    ];
    let more: &[&str] = match subset {
        Subset::Full => return all,
        Subset::Strict => &[
            "title",
            "additionalProperties",
            "format",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ],
        Subset::Gemini => {
            &["format", "nullable", "minLength", "maxLength", "minProperties", "maxProperties"]
        }
        Subset::Plain => &[
            "title",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minProperties",
            "maxProperties",
            "uniqueItems",
        ],
    };
    core.contains(&key) || more.contains(&key)
}

fn check_strict(map: &Map<String, Value>) {
    assert!(map.contains_key("type") || map.contains_key("anyOf"), "{map:?}");
    let types = super::keyword::types(map);
    if types.contains(&"object") {
        assert_eq!(map["additionalProperties"], false);
        let names: Vec<&str> =
            map["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(map["required"], json!(names));
    }
    assert_eq!(types.contains(&"array"), map.contains_key("items"), "{map:?}");
}

fn check_gemini(map: &Map<String, Value>) {
    if map.contains_key("anyOf") {
        assert_eq!(map.len(), 1, "nothing stands beside alternatives: {map:?}");
        return;
    }
    let name = map["type"].as_str().expect("one type");
    assert_ne!(name, "null");
    assert_eq!(name == "array", map.contains_key("items"), "{map:?}");
    if let Some(values) = map.get("enum") {
        assert_eq!(name, "string");
        assert!(values.as_array().unwrap().iter().all(|value| value.as_str() != Some("")));
        assert!(values.as_array().unwrap().iter().all(Value::is_string));
    }
    for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(map["properties"].get(name.as_str().unwrap()).is_some(), "{map:?}");
    }
    if let Some(format) = map.get("format").and_then(Value::as_str) {
        let fits = match name {
            "string" => format == "date-time",
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => false,
        };
        assert!(fits, "{map:?}");
    }
}

/// Adapts, checks what holds for every schema, and hands it back.
fn checked(schema: &Value, subset: Subset) -> Value {
    let once = adapt(schema, subset);
    check(&once, subset);
    let twice = adapt(&once, subset);
    assert_eq!(once.to_string(), twice.to_string(), "{subset:?} of {schema}");
    assert_eq!(adapt(schema, subset).to_string(), once.to_string());
    once
}

#[test]
fn references_are_written_out_with_what_stands_beside_them() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/odd~1na~0me%20x", "description": "mine"},
            "b": {"$ref": "#/definitions/Text", "maxLength": 5},
            "c": {"$ref": "#/definitions/Text", "pattern": "y"},
        },
        "$defs": {"odd/na~me x": {"type": "integer", "description": "theirs"}},
        "definitions": {"Text": {"type": "string", "pattern": "x"}},
    });
    let full = checked(&schema, Subset::Full);
    assert_eq!(
        full,
        json!({"type": "object", "properties": {
            "a": {"type": "integer", "description": "mine"},
            "b": {"type": "string", "pattern": "x", "maxLength": 5},
            "c": {"allOf": [{"type": "string", "pattern": "x"}, {"pattern": "y"}]},
        }})
    );
    let gemini = checked(&schema, Subset::Gemini);
    assert_eq!(
        gemini["properties"]["c"],
        json!({"type": "string", "pattern": "x", "description": "Pattern: y"})
    );
}

#[test]
fn a_reference_to_what_is_not_here_is_loosened() {
    for reference in ["#/$defs/none", "other.json#/a", "https://x.example/y", "#anchor", "#/type"] {
        let schema = json!({"type": "object", "properties": {"p": {"$ref": reference}}});
        for subset in SUBSETS {
            let adapted = checked(&schema, subset);
            let told = text(&adapted["properties"]["p"]);
            assert!(told.contains(reference), "{adapted}");
        }
        assert_eq!(adapt(&schema, Subset::Full)["properties"]["p"].as_object().unwrap().len(), 1);
        assert!(!fits_strict(&schema));
    }
}

#[test]
fn recursion_ends_in_an_object_that_says_so() {
    let schema = json!({
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": "integer"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            "root": {"$ref": "#"},
        }}},
    });
    let full = checked(&schema, Subset::Full);
    let again = &full["properties"]["children"]["items"];
    assert_eq!(again, &json!({"type": "object", "description": "Another Node, nested in itself."}));
    assert!(text(&full["properties"]["root"]).contains("again"));
    for subset in SUBSETS {
        checked(&schema, subset);
    }
    assert!(!fits_strict(&schema));
    let circle = json!({
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    });
    for subset in SUBSETS {
        assert!(takes_nothing(&checked(&circle, subset)));
    }
}

#[test]
fn a_bomb_of_references_stays_small() {
    let mut defs = Map::new();
    for level in 0..40 {
        let next = format!("#/$defs/l{}", level + 1);
        let inner: Map<String, Value> =
            (0..10).map(|n| (format!("p{n}"), json!({"$ref": next}))).collect();
        defs.insert(format!("l{level}"), json!({"type": "object", "properties": inner}));
    }
    defs.insert("l40".into(), json!({"type": "string", "description": "x".repeat(100_000)}));
    let bomb = json!({"$ref": "#/$defs/l0", "$defs": defs});
    let many: Map<String, Value> =
        (0..2_000).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/x"}))).collect();
    let long = json!({"properties": many, "$defs": {"x": {"description": "x".repeat(100_000)}}});
    for subset in SUBSETS {
        for schema in [&bomb, &long] {
            let size = checked(schema, subset).to_string().len();
            assert!(size < 4_000_000, "{size}");
        }
    }
    assert!(!fits_strict(&bomb));
}

#[test]
fn nesting_ends_somewhere() {
    let deep =
        |wrap: fn(Value) -> Value| (0..200).fold(json!({"type": "string"}), |inner, _| wrap(inner));
    let schemas = [
        deep(|inner| json!({"type": "array", "items": inner})),
        deep(|inner| json!({"properties": {"p": inner}})),
        deep(|inner| json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": inner}]})),
        deep(|inner| json!({"prefixItems": [inner, {"type": "string"}]})),
        deep(|inner| json!({"allOf": [inner]})),
        deep(|inner| json!({"not": inner})),
        deep(|inner| json!({"type": ["array", "string"], "items": inner})),
        deep(|inner| json!({"default": [inner]})),
        deep(|inner| json!({"anyOf": [{"type": "string", "enum": [null]}, {"items": inner}]})),
        deep(|inner| json!({"anyOf": [{"type": "string"}, inner], "minimum": 1})),
        deep(|inner| json!({"properties": {"p": inner}, "oneOf": [{"required": ["p"]}, {}]})),
    ];
    for schema in schemas {
        for subset in SUBSETS {
            checked(&json!({"type": "object", "properties": {"p": schema}}), subset);
            checked(&schema, subset);
        }
    }
    let mut chain = Map::new();
    for n in 0..5_000 {
        chain.insert(format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    }
    let chain = json!({"$defs": chain, "properties": {"p": {"$ref": "#/$defs/d0"}}});
    checked(&chain, Subset::Full);
}

#[test]
fn properties_named_like_keywords_survive() {
    let names = [
        "format",
        "$ref",
        "additionalProperties",
        "const",
        "default",
        "$schema",
        "type",
        "properties",
        "nullable",
        "anyOf",
        "$defs",
        "required",
        "description",
    ];
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties, "required": names});
    for subset in SUBSETS {
        let adapted = checked(&schema, subset);
        let kept: Vec<&str> =
            adapted["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(kept, names, "in the order they came");
        assert_eq!(adapted["required"], json!(names));
    }
    assert!(fits_strict(&schema));
}

#[test]
fn strict_closes_objects_and_lets_the_optional_be_null() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "format": "uint32", "minimum": 0, "default": 10},
            "mode": {"enum": ["a", "b"]},
            "at": {"type": "object", "properties": {"line": {"type": "integer"}}},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["path", "ghost"],
    });
    assert!(fits_strict(&schema));
    assert_eq!(
        checked(&schema, Subset::Strict),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "minLength: 1"},
                "limit": {"type": ["integer", "null"], "minimum": 0, "description": "Default: 10"},
                "mode": {"type": ["string", "null"], "enum": ["a", "b", null]},
                "at": {
                    "type": ["object", "null"],
                    "properties": {"line": {"type": ["integer", "null"]}},
                    "required": ["line"],
                    "additionalProperties": false,
                },
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            },
            "required": ["path", "limit", "mode", "at", "either"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn what_strict_cannot_say_does_not_fit_it() {
    let whole = |p: Value| json!({"type": "object", "properties": {"p": p}});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    assert!(!fits_strict(&whole(map.clone())));
    assert!(!fits_strict(&map));
    assert!(!fits_strict(&whole(json!({"type": "object"}))));
    assert!(!fits_strict(&whole(json!({"type": "object", "additionalProperties": true}))));
    assert!(!fits_strict(&whole(json!({}))));
    assert!(!fits_strict(&whole(json!(true))));
    assert!(!fits_strict(&whole(json!({"type": "array"}))));
    assert!(!fits_strict(&whole(json!({"type": "string", "not": {"const": "x"}}))));
    assert!(!fits_strict(&whole(json!({"type": "array", "prefixItems": [{"type": "string"}]}))));
    assert!(!fits_strict(&json!({"type": "array", "items": {"type": "string"}})));
    assert!(!fits_strict(
        &json!({"oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {}}]})
    ));
    let deep = (0..12).fold(json!({"type": "string"}), |inner, _| whole(inner));
    assert!(!fits_strict(&deep));

    assert!(fits_strict(&json!({"type": "object"})));
    assert!(fits_strict(&json!({})));
    assert!(fits_strict(&whole(
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    )));
    assert!(fits_strict(&whole(json!({"type": "array", "items": {"type": ["string", "null"]}}))));
    assert!(fits_strict(&whole(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}))));
}

#[test]
fn gemini_gets_its_own_null_values_and_formats() {
    let gemini = |schema| property(schema, Subset::Gemini);
    assert_eq!(
        gemini(json!({"type": ["string", "null"]})),
        json!({"type": "string", "nullable": true})
    );
    assert_eq!(
        gemini(json!({"anyOf": [{"type": "integer", "format": "uint8"}, {"type": "null"}]})),
        json!({"type": "integer", "nullable": true})
    );
    assert_eq!(
        gemini(json!({"type": "integer", "enum": [1, 2]})),
        json!({"type": "integer", "description": "One of: 1, 2"})
    );
    assert_eq!(gemini(json!({"const": "x"})), json!({"enum": ["x"], "type": "string"}));
    assert_eq!(
        gemini(json!({"type": "string", "format": "uuid", "description": "Which."})),
        json!({"type": "string", "description": "Which.\nFormat: uuid"})
    );
    assert_eq!(gemini(json!({"type": "string", "format": "date-time"}))["format"], "date-time");
    assert_eq!(gemini(json!({"type": "integer", "format": "int64"}))["format"], "int64");
    assert_eq!(gemini(json!({"type": "array"}))["items"]["type"], "string");
    assert_eq!(
        gemini(json!({"type": ["string", "integer", "null"], "minimum": 1, "description": "D"})),
        json!({"anyOf": [
            {"type": "string", "description": "D", "nullable": true},
            {"type": "integer", "minimum": 1},
        ]})
    );
    assert_eq!(
        gemini(json!({"oneOf": [
            {"const": "a", "description": "The first."},
            {"const": "b", "description": "The second."},
        ]})),
        json!({"type": "string", "enum": ["a", "b"],
            "description": "\"a\": The first.\n\"b\": The second."})
    );
    assert_eq!(gemini(json!({"type": "object", "properties": {}})), json!({"type": "object"}));
    assert_eq!(gemini(json!({"type": "null"}))["nullable"], true);
}

#[test]
fn plain_keeps_only_what_every_server_knows() {
    let plain = |schema| property(schema, Subset::Plain);
    assert_eq!(
        plain(json!({"type": "integer", "format": "uint", "minimum": 0, "default": 3})),
        json!({"type": "integer", "minimum": 0, "description": "Default: 3"})
    );
    assert_eq!(
        plain(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        json!({"type": "object", "description": "additionalProperties: {\"type\":\"string\"}"})
    );
    assert_eq!(plain(json!({})), json!({}));
}

#[test]
fn the_top_is_always_one_object() {
    for odd in [json!(true), json!(false), json!(null), json!(7), json!([]), json!({}), json!("x")]
    {
        for subset in SUBSETS {
            let adapted = checked(&odd, subset);
            assert!(takes_nothing(&adapted), "{adapted}");
        }
    }
    let list = json!({"type": "array", "items": {"type": "string"}, "description": "Names."});
    let adapted = checked(&list, Subset::Full);
    assert_eq!(adapted["properties"], json!({}));
    assert!(text(&adapted).starts_with("Names.\nDeclared as no object: "), "{adapted}");

    let shapes = json!({"oneOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "file"}, "path": {"type": "string"}},
            "required": ["kind", "path"],
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "url"}, "url": {"type": "string"}},
            "required": ["kind", "url"],
        },
    ]});
    let adapted = checked(&shapes, Subset::Full);
    assert_eq!(
        adapted,
        json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["file", "url"]},
                "path": {"type": "string"},
                "url": {"type": "string"},
            },
            "required": ["kind"],
            "description": "Takes one of these sets of properties: \
                kind: \"file\", path; kind: \"url\", url",
        })
    );
    for subset in SUBSETS {
        checked(&shapes, subset);
    }
}

#[test]
fn parts_are_merged_and_alternatives_beside_properties_are_told() {
    let schema = json!({
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string"}}},
        ],
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    let adapted = checked(&schema, Subset::Gemini);
    assert_eq!(adapted["properties"]["a"], json!({"type": "integer", "minimum": 1}));
    assert_eq!(adapted["required"], json!(["a"]));
    assert!(text(&adapted).contains("a; b"), "{adapted}");
}

#[test]
fn older_drafts_are_written_in_the_new_one() {
    assert_eq!(
        property(json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}), Subset::Full),
        json!({"type": "number", "exclusiveMinimum": 1})
    );
    assert_eq!(
        property(json!({"items": [{"type": "string"}], "additionalItems": false}), Subset::Full),
        json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false})
    );
    assert_eq!(
        property(json!({"type": "STRING", "nullable": true}), Subset::Full),
        json!({"type": ["string", "null"]})
    );
    assert_eq!(
        property(json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}), Subset::Full),
        json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}})
    );
    assert_eq!(property(json!({"type": "any", "required": true}), Subset::Full), json!({}));
}

#[test]
fn what_was_valid_stays_valid() {
    let schema = json!({
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/Node"},
            "pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false},
            "size": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
            "any": true,
            "maybe": {"type": "string", "nullable": true},
        },
        "required": ["node"],
        "$defs": {"Node": {"type": "object", "properties": {
            "name": {"$ref": "#/$defs/Name"},
            "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        }, "additionalProperties": false}, "Name": {"type": "string", "pattern": "^[a-z]+$"}},
    });
    let values = [
        json!({"node": {"name": "a", "next": {"name": "b", "next": {"name": "c", "next": null}}}}),
        json!({"node": {}, "pair": ["x", 1], "size": 1, "any": [1], "maybe": null}),
    ];
    let full = checked(&schema, Subset::Full);
    let validator = jsonschema::draft202012::new(&full).unwrap();
    for value in &values {
        assert!(validator.is_valid(value), "{value}");
    }
    // Nor is it so loose that anything goes.
    for value in [
        json!({}),
        json!({"node": {"name": "UP"}}),
        json!({"node": {"extra": 1}}),
        json!({"node": {}, "pair": ["x", "y"]}),
        json!({"node": {}, "size": 0}),
    ] {
        assert!(!validator.is_valid(&value), "{value}");
    }
}
