//! Checks the schema of `job`.

use crate::case_runner;

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::JobTool, expect_test::expect_file!["schema.json"]);
}
