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
    a_hook_of_git_is_not_made,
    another_case_of_a_protected_name_is_refused,
    a_link_into_a_protected_folder_is_refused,
    a_person_may_open_a_protected_file,
    what_has_not_been_read_is_not_replaced,
    what_was_changed_since_is_shown_instead_of_replaced,
    a_touch_is_not_a_change,
    a_change_after_the_approval_survives,
    a_file_made_after_the_approval_survives,
    nobody_is_asked_about_what_cannot_be_done,
    line_endings_are_kept,
    the_encoding_and_its_mark_are_kept,
    a_final_newline_is_kept,
    a_character_the_encoding_lacks_makes_it_utf_8,
    a_file_of_secrets_is_asked_about,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Write::default(), expect_test::expect_file!["schema.json"]);
}
