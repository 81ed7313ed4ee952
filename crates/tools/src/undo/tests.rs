//! The cases of `undo`.

use crate::harness;

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Undo, expect_test::expect_file!["schema.json"]);
}
