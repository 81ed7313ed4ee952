//! Adapting schemas to every subset: those of real tools, hostile ones and random ones.

mod random_schemas;

use super::{MAX_SCHEMA_DEPTH, SchemaSubset, adapt_schema, fits_strict, has_no_properties};
use serde_json::{Map, Value, json};

const SUBSETS: [SchemaSubset; 4] =
    [SchemaSubset::Full, SchemaSubset::Strict, SchemaSubset::Gemini, SchemaSubset::Basic];

fn description_of(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().to_owned()
}

/// Adapts the schema of one property.
fn adapt_property(schema: Value, subset: SchemaSubset) -> Value {
    let whole = json!({"type": "object", "properties": {"p": schema}, "required": ["p"]});
    adapt_schema(&whole, subset)["properties"]["p"].take()
}

/// Visits every schema, and distinguishes property names from keywords.
fn visit(schema: &Value, depth: usize, visitor: &mut dyn FnMut(&Map<String, Value>, usize)) {
    let Some(map) = schema.as_object() else { return };
    visitor(map, depth);
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                named.values().for_each(|inner| visit(inner, depth + 1, visitor));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                list.iter().for_each(|inner| visit(inner, depth + 1, visitor));
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
            ) => visit(inner, depth + 1, visitor),
            _ => {}
        }
    }
}

/// Panics on anything that a provider of this subset would reject.
fn assert_accepted(schema: &Value, subset: SchemaSubset) {
    assert_eq!(schema["type"], "object", "{schema}");
    assert!(schema["properties"].is_object(), "{schema}");
    for key in ["anyOf", "oneOf", "allOf", "not", "enum", "const"] {
        assert!(schema.get(key).is_none(), "{key} at the top: {schema}");
    }
    visit(schema, 0, &mut |map, depth| {
        assert!(depth <= MAX_SCHEMA_DEPTH + 1);
        for key in map.keys() {
            assert!(is_known_keyword(key, subset), "{key} in {map:?}");
        }
        match subset {
            SchemaSubset::Full | SchemaSubset::Basic => {}
            SchemaSubset::Strict => check_strict(map),
            SchemaSubset::Gemini => check_gemini(map),
        }
    });
}

fn is_known_keyword(key: &str, subset: SchemaSubset) -> bool {
    let all = super::keyword::keyword_kind(key).is_some();
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
        SchemaSubset::Full => return all,
        SchemaSubset::Strict => &[
            "title",
            "additionalProperties",
            "format",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ],
        SchemaSubset::Gemini => {
            &["format", "nullable", "minLength", "maxLength", "minProperties", "maxProperties"]
        }
        SchemaSubset::Basic => &[
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
    let types = super::keyword::declared_types(map);
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
        assert_eq!(map.len(), 1, "`anyOf` must be the only keyword: {map:?}");
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

/// Adapts a schema, checks the result and that adapting is idempotent, and returns the result.
fn adapt_and_check(schema: &Value, subset: SchemaSubset) -> Value {
    let once = adapt_schema(schema, subset);
    assert_accepted(&once, subset);
    let twice = adapt_schema(&once, subset);
    assert_eq!(once.to_string(), twice.to_string(), "{subset:?} of {schema}");
    assert_eq!(adapt_schema(schema, subset).to_string(), once.to_string());
    once
}

#[test]
fn references_are_expanded_and_merged_with_sibling_keywords() {
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
    let full = adapt_and_check(&schema, SchemaSubset::Full);
    assert_eq!(
        full,
        json!({"type": "object", "properties": {
            "a": {"type": "integer", "description": "mine"},
            "b": {"type": "string", "pattern": "x", "maxLength": 5},
            "c": {"allOf": [{"type": "string", "pattern": "x"}, {"pattern": "y"}]},
        }})
    );
    let gemini = adapt_and_check(&schema, SchemaSubset::Gemini);
    assert_eq!(
        gemini["properties"]["c"],
        json!({"type": "string", "pattern": "x", "description": "Pattern: y"})
    );
}

#[test]
fn an_unresolved_reference_becomes_a_description() {
    for reference in ["#/$defs/none", "other.json#/a", "https://x.example/y", "#anchor", "#/type"] {
        let schema = json!({"type": "object", "properties": {"p": {"$ref": reference}}});
        for subset in SUBSETS {
            let adapted = adapt_and_check(&schema, subset);
            let description = description_of(&adapted["properties"]["p"]);
            assert!(description.contains(reference), "{adapted}");
        }
        assert_eq!(
            adapt_schema(&schema, SchemaSubset::Full)["properties"]["p"].as_object().unwrap().len(),
            1
        );
        assert!(!fits_strict(&schema));
    }
}

#[test]
fn recursion_ends_in_an_object_with_a_description() {
    let schema = json!({
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": "integer"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            "root": {"$ref": "#"},
        }}},
    });
    let full = adapt_and_check(&schema, SchemaSubset::Full);
    let again = &full["properties"]["children"]["items"];
    assert_eq!(again, &json!({"type": "object", "description": "Another Node (recursive)."}));
    assert!(description_of(&full["properties"]["root"]).contains("again"));
    for subset in SUBSETS {
        adapt_and_check(&schema, subset);
    }
    assert!(!fits_strict(&schema));
    let cycle = json!({
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    });
    for subset in SUBSETS {
        assert!(has_no_properties(&adapt_and_check(&cycle, subset)));
    }
}

#[test]
fn a_reference_bomb_stays_small() {
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
            let size = adapt_and_check(schema, subset).to_string().len();
            assert!(size < 4_000_000, "{size}");
        }
    }
    assert!(!fits_strict(&bomb));
}

#[test]
fn nesting_depth_is_limited() {
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
            adapt_and_check(&json!({"type": "object", "properties": {"p": schema}}), subset);
            adapt_and_check(&schema, subset);
        }
    }
    let mut chain = Map::new();
    for n in 0..5_000 {
        chain.insert(format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    }
    let chain = json!({"$defs": chain, "properties": {"p": {"$ref": "#/$defs/d0"}}});
    adapt_and_check(&chain, SchemaSubset::Full);
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
        let adapted = adapt_and_check(&schema, subset);
        let kept: Vec<&str> =
            adapted["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(kept, names, "the order must not change");
        assert_eq!(adapted["required"], json!(names));
    }
    assert!(fits_strict(&schema));
}

#[test]
fn strict_closes_objects_and_makes_optional_properties_nullable() {
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
        adapt_and_check(&schema, SchemaSubset::Strict),
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
fn a_schema_that_strict_cannot_express_does_not_fit() {
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
    let gemini = |schema| adapt_property(schema, SchemaSubset::Gemini);
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
fn basic_keeps_only_common_keywords() {
    let basic = |schema| adapt_property(schema, SchemaSubset::Basic);
    assert_eq!(
        basic(json!({"type": "integer", "format": "uint", "minimum": 0, "default": 3})),
        json!({"type": "integer", "minimum": 0, "description": "Default: 3"})
    );
    assert_eq!(
        basic(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        json!({"type": "object", "description": "additionalProperties: {\"type\":\"string\"}"})
    );
    assert_eq!(basic(json!({})), json!({}));
}

#[test]
fn the_top_level_is_always_an_object() {
    for odd in [json!(true), json!(false), json!(null), json!(7), json!([]), json!({}), json!("x")]
    {
        for subset in SUBSETS {
            let adapted = adapt_and_check(&odd, subset);
            assert!(has_no_properties(&adapted), "{adapted}");
        }
    }
    let list = json!({"type": "array", "items": {"type": "string"}, "description": "Names."});
    let adapted = adapt_and_check(&list, SchemaSubset::Full);
    assert_eq!(adapted["properties"], json!({}));
    assert!(
        description_of(&adapted).starts_with("Names.\nNot declared as an object: "),
        "{adapted}"
    );

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
    let adapted = adapt_and_check(&shapes, SchemaSubset::Full);
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
            "description": "Accepts one of these sets of properties: \
                kind: \"file\", path; kind: \"url\", url",
        })
    );
    for subset in SUBSETS {
        adapt_and_check(&shapes, subset);
    }
}

#[test]
fn all_of_is_merged_and_alternatives_are_described() {
    let schema = json!({
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string"}}},
        ],
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    let adapted = adapt_and_check(&schema, SchemaSubset::Gemini);
    assert_eq!(adapted["properties"]["a"], json!({"type": "integer", "minimum": 1}));
    assert_eq!(adapted["required"], json!(["a"]));
    assert!(description_of(&adapted).contains("a; b"), "{adapted}");
}

#[test]
fn older_drafts_are_converted() {
    assert_eq!(
        adapt_property(
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
            SchemaSubset::Full
        ),
        json!({"type": "number", "exclusiveMinimum": 1})
    );
    assert_eq!(
        adapt_property(
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            SchemaSubset::Full
        ),
        json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false})
    );
    assert_eq!(
        adapt_property(json!({"type": "STRING", "nullable": true}), SchemaSubset::Full),
        json!({"type": ["string", "null"]})
    );
    assert_eq!(
        adapt_property(
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
            SchemaSubset::Full
        ),
        json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}})
    );
    assert_eq!(
        adapt_property(json!({"type": "any", "required": true}), SchemaSubset::Full),
        json!({})
    );
}

#[test]
fn valid_values_stay_valid() {
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
    let full = adapt_and_check(&schema, SchemaSubset::Full);
    let validator = jsonschema::draft202012::new(&full).unwrap();
    for value in &values {
        assert!(validator.is_valid(value), "{value}");
    }
    // Invalid values are still rejected.
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
