//! The cases of `plan_exit`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "plan_exit/cases":
    an_approval_names_the_new_mode,
    a_denial_keeps_the_mode,
    a_custom_answer_is_returned,
    without_a_user_the_plan_is_not_approved,
    other_modes_cannot_be_left,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::PlanExitTool, expect_test::expect_file!["schema.json"]);
}
