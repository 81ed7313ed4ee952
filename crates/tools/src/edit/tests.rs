//! The cases of `edit`.

use crate::case_runner;

windlass_testkit::cases!(crate::case_runner::run_case, "edit/cases":
    a_unique_match_is_replaced,
    the_approval_shows_the_change,
    whitespace_at_line_ends_is_ignored,
    a_reindented_block_is_found,
    a_block_is_found_by_its_first_and_last_line,
    a_block_with_a_half_equal_middle_is_found,
    whitespace_between_words_is_ignored,
    part_of_a_longer_word_is_not_found,
    escaped_text_is_found,
    surrounding_whitespace_is_ignored,
    an_ambiguous_match_is_refused,
    replace_all_replaces_every_occurrence,
    overlapping_matches_are_not_replaced,
    unique_whitespace_is_replaced,
    a_failed_match_shows_the_closest_text,
    a_failed_match_without_similar_text,
    an_edit_without_effect_fails,
    special_characters_in_new_string_are_text,
    line_endings_are_kept,
    mixed_line_endings_are_kept,
    a_byte_order_mark_is_kept,
    a_missing_final_newline_stays_missing,
    latin_1_is_kept,
    gbk_is_kept,
    shift_jis_is_kept,
    utf_16_is_kept,
    a_character_missing_in_the_encoding_is_reported,
    an_empty_old_string_creates_a_file,
    an_empty_old_string_is_refused_for_an_existing_file,
    a_missing_file_suggests_similar_paths,
    an_exact_match_is_replaced_in_an_unread_file,
    an_unread_file_is_not_changed,
    a_file_changed_since_it_was_read_is_shown,
    concurrent_writes_are_not_overwritten,
    a_concurrently_removed_file_is_not_recreated,
    a_much_larger_match_is_refused,
    near_duplicates_are_distinguished,
    a_binary_file_is_refused,
    a_protected_file_is_refused,
    a_secret_file_is_not_shown_without_approval,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &super::EditTool::default(),
        expect_test::expect_file!["schema.json"],
    );
}
