//! The cases of `glob`, and what a case cannot hold.

use crate::harness;

windlass_testkit::cases!(harness::run, "glob/cases":
    files_are_listed_newest_first,
    files_of_one_age_come_in_the_order_of_their_paths,
    a_hundred_files_are_shown_at_a_time,
    an_offset_that_is_too_far_is_refused,
    a_pattern_without_a_slash_holds_at_any_depth,
    a_pattern_with_a_slash_holds_from_the_folder,
    ignored_and_hidden_files_are_left_out,
    a_pattern_that_names_an_ignored_file_finds_it,
    an_offset_pages_on,
    an_offset_past_the_end_says_how_many_there_are,
    nothing_found_says_what_to_try,
    secrets_are_left_out,
    links_are_not_followed,
    a_folder_with_an_ignore_file_that_is_a_link_is_left_out,
    a_glob_that_is_none_says_why,
    a_folder_that_is_not_there_fails,
    a_path_out_of_the_workspace_is_refused,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Glob, expect_test::expect_file!["schema.json"]);
}
