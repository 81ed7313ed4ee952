//! The cases of `batch`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "batch/cases":
    results_are_in_the_order_of_the_calls,
    a_failed_call_does_not_stop_the_others,
    approval_is_requested_once,
    a_denial_applies_to_the_whole_batch,
    a_nested_batch_is_refused,
    a_rule_denies_only_its_call,
    two_edits_of_one_file_are_both_applied,
    more_than_ten_calls_are_refused,
    a_long_result_is_truncated,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::BatchTool, expect_test::expect_file!["schema.json"]);
}
