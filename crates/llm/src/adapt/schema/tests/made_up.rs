//! Schemas nobody would write: whatever comes, the result is accepted, and stays as it is.

use super::{SUBSETS, checked};
use crate::adapt::schema::{fits_strict, keyword};
use proptest::prelude::*;
use serde_json::{Value, json};

fn leaf() -> impl Strategy<Value = Value> {
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

fn kinds() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(keyword::TYPES.to_vec());
    prop_oneof![
        6 => name().prop_map(Value::from),
        3 => prop::collection::vec(name(), 0..4).prop_map(|names| json!(names)),
        1 => Just(json!("any")),
    ]
}

fn map(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn key(keys: &[&'static str]) -> impl Strategy<Value = &'static str> + Clone + use<> {
    prop::sample::select(keys.to_vec())
}

fn schemas() -> impl Strategy<Value = Value> {
    let names = || key(&["a", "b", "format", "$ref", "anyOf"]);
    let references =
        key(&["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/definitions/x", "#/anyOf/0"]);
    let formats = key(&["uuid", "date-time", "uint", "int32", "float", "enum"]);
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
    leaf().prop_recursive(5, 60, 6, move |inner| {
        let named = prop::collection::hash_map(names(), inner.clone(), 0..4).prop_map(map);
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        let required = prop::collection::vec(names(), 0..3).prop_map(|names| json!(names));
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        let entry = prop_oneof![
            4 => (Just("type"), kinds()),
            4 => (key(&by_name), named),
            4 => (key(&lists), list),
            3 => (key(&words(inners)), inner),
            2 => (Just("required"), required),
            2 => (key(&words(values)), leaf()),
            2 => (Just("format"), formats.clone().prop_map(Value::from)),
            1 => (Just("description"), Just(json!("said"))),
            1 => (Just("nullable"), Just(json!(true))),
            1 => (Just("$ref"), references.clone().prop_map(Value::from)),
        ];
        prop::collection::vec(entry, 0..6).prop_map(map)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_comes_is_adapted_once_and_for_all(schema in schemas()) {
        fits_strict(&schema);
        for subset in SUBSETS {
            checked(&schema, subset);
            let nested = json!({"properties": {"p": schema}, "$defs": {"a": schema}});
            checked(&nested, subset);
        }
    }
}
