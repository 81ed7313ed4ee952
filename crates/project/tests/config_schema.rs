//! The published config schema matches the types.

#[test]
fn the_published_config_schema_is_current() {
    let schema = serde_json::to_string_pretty(&windlass_project::config_schema()).unwrap();
    expect_test::expect_file!["../../../docs/schema/config.schema.json"]
        .assert_eq(&(schema + "\n"));
}
