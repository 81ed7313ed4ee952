//! What a model is sent.

use crate::harness;

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Job, expect_test::expect_file!["schema.json"]);
}
