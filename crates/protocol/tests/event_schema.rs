//! Checks that the published schema of the event stream matches the types.

#[test]
fn the_published_event_schema_is_current() {
    let schema = serde_json::to_string_pretty(&windlass_protocol::event::event_schema()).unwrap();
    expect_test::expect_file!["../../../docs/schema/events.schema.json"]
        .assert_eq(&(schema + "\n"));
}

/// The JSON of a record has the fields of its fact beside its own, so the names must differ.
#[test]
fn no_fact_has_a_field_of_its_record() {
    let schema = schemars::schema_for!(windlass_protocol::Fact);
    let kinds = schema.get("oneOf").and_then(|kinds| kinds.as_array()).unwrap();
    assert!(kinds.len() > 20, "{}", kinds.len());
    for kind in kinds {
        let fields = kind["properties"].as_object().unwrap();
        for name in ["session", "seq", "at", "origin"] {
            assert!(!fields.contains_key(name), "`{name}` in {}", fields["kind"]);
        }
    }
}
