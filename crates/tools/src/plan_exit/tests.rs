//! The cases of `plan_exit`.

use crate::harness;

windlass_testkit::cases!(harness::run, "plan_exit/cases":
    a_yes_is_told_with_the_mode,
    a_no_keeps_the_mode,
    what_the_person_wants_otherwise_is_told,
    nobody_can_say_yes,
    in_other_modes_there_is_nothing_to_leave,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::PlanExit, expect_test::expect_file!["schema.json"]);
}
