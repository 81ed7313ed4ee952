//! The cases of `call_tool`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "call_tool/cases":
    the_named_tool_is_called,
    the_approval_is_about_the_named_tool,
    rules_for_the_tool_apply,
    arguments_may_be_a_string,
    invalid_arguments_are_reported_by_the_schema_of_the_tool,
    an_unknown_name_suggests_similar_ones,
    it_cannot_call_itself_or_a_batch,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::CallTool, expect_test::expect_file!["schema.json"]);
}
