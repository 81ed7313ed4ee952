//! The cases of `write`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "write/cases":
    a_new_file_is_created_with_its_folders,
    a_file_is_replaced,
    a_write_without_effect_fails,
    instructions_are_shown_after_the_change,
    a_denial_changes_nothing,
    a_rule_may_deny_writing,
    a_folder_is_not_overwritten,
    a_path_out_of_the_workspace_needs_approval,
    an_absolute_path_needs_approval,
    a_link_out_of_the_workspace_needs_approval,
    a_git_hook_is_not_created,
    a_protected_name_in_another_case_is_refused,
    a_link_into_a_protected_folder_is_refused,
    the_user_may_allow_a_protected_file,
    an_unread_file_is_not_replaced,
    a_file_changed_since_it_was_read_is_not_replaced,
    touching_a_file_is_not_a_change,
    concurrent_writes_are_not_overwritten,
    a_concurrently_created_file_is_kept,
    no_approval_is_requested_for_a_call_that_fails,
    line_endings_are_kept,
    the_encoding_and_byte_order_mark_are_kept,
    a_final_newline_is_kept,
    a_character_missing_in_the_encoding_makes_it_utf_8,
    a_secret_file_needs_approval,
    an_unknown_field_is_an_error,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &super::WriteTool::default(),
        expect_test::expect_file!["schema.json"],
    );
}
