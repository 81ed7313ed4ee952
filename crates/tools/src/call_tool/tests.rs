//! The cases of `call_tool`.

use crate::harness;

windlass_testkit::cases!(harness::run, "call_tool/cases":
    the_call_is_that_of_the_tool_it_names,
    the_person_is_asked_about_the_tool_it_names,
    a_rule_for_the_tool_holds,
    arguments_written_as_text_are_understood,
    arguments_that_do_not_fit_are_told_as_the_tools_own,
    a_name_that_is_nobodys_names_the_nearest,
    it_does_not_call_itself_nor_a_batch,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::CallTool, expect_test::expect_file!["schema.json"]);
}
