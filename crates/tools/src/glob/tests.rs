//! The cases of `glob`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "glob/cases":
    files_are_listed_newest_first,
    files_of_the_same_age_are_sorted_by_path,
    a_page_has_a_hundred_files,
    an_offset_above_the_limit_is_refused,
    a_pattern_without_a_slash_matches_at_any_depth,
    a_pattern_with_a_slash_starts_at_the_folder,
    ignored_and_hidden_files_are_skipped,
    an_ignored_file_is_found_by_name,
    an_offset_selects_the_next_page,
    an_offset_past_the_end_reports_the_count,
    no_match_gives_a_hint,
    secret_files_are_skipped,
    links_are_not_followed,
    a_folder_with_a_linked_ignore_file_is_skipped,
    an_invalid_glob_is_an_error,
    a_missing_folder_fails,
    a_path_out_of_the_workspace_needs_approval,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::GlobTool, expect_test::expect_file!["schema.json"]);
}
