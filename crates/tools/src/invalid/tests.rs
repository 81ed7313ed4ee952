//! The cases of `invalid`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "invalid/cases":
    an_unknown_tool_suggests_similar_names,
    truncated_arguments_are_rejected,
    any_unambiguous_spelling_reaches_the_tool,
    an_unambiguous_call_is_repaired,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::InvalidCallTool, expect_test::expect_file!["schema.json"]);
}
