//! The cases of `edit`.

use crate::harness;

windlass_testkit::cases!(crate::harness::run, "edit/cases":
    the_one_place_is_replaced,
    what_is_asked_is_shown_first,
    trimmed_lines_are_found,
    a_block_that_moved_as_a_whole_is_found,
    a_block_is_found_by_its_ends,
    half_of_a_block_is_enough_between_its_ends,
    runs_of_whitespace_are_found,
    a_word_within_a_longer_one_is_not_found,
    escaped_text_is_found,
    blank_ends_are_left_out,
    two_places_are_not_chosen_between,
    all_places_are_replaced_if_that_is_meant,
    places_that_overlap_are_not_all_replaced,
    white_space_alone_is_replaced_where_it_stands,
    what_is_not_there_shows_the_nearest,
    what_is_nowhere_near_says_so,
    a_change_that_changes_nothing_fails,
    signs_with_a_meaning_elsewhere_are_text,
    line_endings_stay,
    mixed_line_endings_stay_where_they_are,
    a_byte_order_mark_stays,
    a_missing_final_newline_stays_missing,
    text_in_latin_1_stays_latin_1,
    text_in_gbk_stays_gbk,
    text_in_shift_jis_stays_shift_jis,
    text_in_utf_16_stays_utf_16,
    a_character_the_encoding_lacks_is_told,
    a_new_file_is_made_from_nothing,
    nothing_is_not_found_in_a_file,
    a_missing_file_names_the_nearest,
    what_has_not_been_read_is_not_changed,
    what_was_changed_since_is_shown,
    a_change_after_the_approval_survives,
    a_file_removed_after_the_approval_stays_away,
    a_match_much_larger_than_the_text_is_refused,
    near_duplicates_are_not_mixed_up,
    a_binary_file_is_refused,
    a_protected_file_is_refused,
    a_file_of_secrets_shows_nothing_without_a_yes,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Edit::default(), expect_test::expect_file!["schema.json"]);
}
