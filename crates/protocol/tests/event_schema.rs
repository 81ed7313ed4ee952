//! Checks that the published schema of the event stream matches the types.

#[test]
fn the_published_event_schema_is_current() {
    let schema = serde_json::to_string_pretty(&windlass_protocol::event::event_schema()).unwrap();
    expect_test::expect_file!["../../../docs/schema/events.schema.json"]
        .assert_eq(&(schema + "\n"));
}
