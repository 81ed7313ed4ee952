//! The cases of `write`.

use crate::harness;

windlass_testkit::cases!(harness::run, "write/cases":
    a_new_file_is_made_with_its_folders,
    a_file_is_replaced_whole,
    a_write_that_changes_nothing_fails,
    a_no_leaves_the_file_alone,
    a_rule_may_deny_it,
    a_folder_is_not_overwritten,
    a_path_out_of_the_workspace_is_refused,
    an_absolute_path_is_refused,
    a_link_out_of_the_workspace_is_refused,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Write, expect_test::expect_file!["schema.json"]);
}
