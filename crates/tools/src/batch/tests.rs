//! The cases of `batch`.

use crate::harness;

windlass_testkit::cases!(harness::run, "batch/cases":
    results_come_in_order,
    one_that_fails_does_not_stop_the_others,
    one_question_is_asked_for_the_whole,
    a_no_is_for_the_whole,
    a_batch_in_a_batch_is_refused,
    what_a_rule_denies_is_denied_alone,
    two_edits_of_one_file_both_count,
    more_than_ten_are_refused,
    one_long_result_leaves_room_for_the_others,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Batch, expect_test::expect_file!["schema.json"]);
}
