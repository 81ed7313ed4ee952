//! The cases of `invalid`.

use crate::harness;

windlass_testkit::cases!(harness::run, "invalid/cases":
    an_unknown_tool_gets_the_nearest_names,
    arguments_that_are_not_json_are_not_run,
    any_spelling_of_a_name_reaches_the_tool,
    a_call_that_is_almost_right_is_repaired,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Invalid, expect_test::expect_file!["schema.json"]);
}
