//! Random schemas: the adapted schema is always accepted, and adapting it again changes nothing.

use super::{SUBSETS, adapt_and_check};
use crate::adapt::schema::{fits_strict, keyword};
use proptest::prelude::*;
use serde_json::{Value, json};

fn leaf_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(2.5)),
        Just(json!("")),
        Just(json!("a")),
        Just(json!("b")),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["a", "b"])),
        Just(json!([1, "a", null])),
        Just(json!([1, 2.5])),
        Just(json!([null])),
        Just(json!(["a", ""])),
        Just(json!({"type": "null"})),
        Just(json!({"const": "a"})),
        Just(json!({"enum": ["b", null]})),
    ]
}

fn type_value() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(keyword::TYPE_NAMES.to_vec());
    prop_oneof![
        6 => name().prop_map(Value::from),
        3 => prop::collection::vec(name(), 0..4).prop_map(|names| json!(names)),
        1 => Just(json!("any")),
    ]
}

fn to_object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn key_of(keys: &[&'static str]) -> impl Strategy<Value = &'static str> + Clone + use<> {
    prop::sample::select(keys.to_vec())
}

fn any_schema() -> impl Strategy<Value = Value> {
    let names = || key_of(&["a", "b", "format", "$ref", "anyOf"]);
    let references =
        key_of(&["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/definitions/x", "#/anyOf/0"]);
    let formats = key_of(&["uuid", "date-time", "uint", "int32", "float", "enum"]);
    let by_name = [
        "properties",
        "properties",
        "patternProperties",
        "$defs",
        "dependencies",
        "dependentSchemas",
    ];
    let lists = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
    let inners = "items additionalProperties not if then additionalItems contains propertyNames \
        unevaluatedProperties";
    let values = "enum const default examples nullable minimum maximum exclusiveMinimum minLength \
        minItems multipleOf uniqueItems title description format pattern x-unknown required \
        properties $schema $id deprecated";
    leaf_value().prop_recursive(5, 60, 6, move |inner| {
        let named = prop::collection::hash_map(names(), inner.clone(), 0..4).prop_map(to_object);
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        let required = prop::collection::vec(names(), 0..3).prop_map(|names| json!(names));
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        let entry = prop_oneof![
            4 => (Just("type"), type_value()),
            4 => (key_of(&by_name), named),
            4 => (key_of(&lists), list),
            3 => (key_of(&words(inners)), inner),
            2 => (Just("required"), required),
            2 => (key_of(&words(values)), leaf_value()),
            2 => (Just("format"), formats.clone().prop_map(Value::from)),
            1 => (Just("description"), Just(json!("said"))),
            1 => (Just("nullable"), Just(json!(true))),
            1 => (Just("$ref"), references.clone().prop_map(Value::from)),
        ];
        prop::collection::vec(entry, 0..6).prop_map(to_object)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_schema_is_adapted_and_adapting_is_idempotent(schema in any_schema()) {
        fits_strict(&schema);
        for subset in SUBSETS {
            adapt_and_check(&schema, subset);
            let nested = json!({"properties": {"p": schema}, "$defs": {"a": schema}});
            adapt_and_check(&nested, subset);
        }
    }
}
