//! The cases of `read`, and what a case cannot hold.
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::page::{Window, of_text};
use crate::harness;
use std::io::{BufReader, Read as _};

windlass_testkit::cases!(harness::run, "read/cases":
    lines_are_numbered,
    a_page_says_how_to_read_on,
    an_offset_past_the_end_says_the_length,
    an_empty_file_says_so,
    a_folder_lists_its_entries,
    a_missing_file_fails,
    a_binary_file_is_refused,
    line_ends_are_not_shown,
    a_path_out_of_the_workspace_is_refused,
    an_absolute_path_is_refused,
    a_link_out_of_the_workspace_is_refused,
    a_rule_may_deny_a_file,
    a_rule_holds_through_a_link,
    a_file_of_secrets_is_asked_about,
    arguments_that_do_not_fit_say_why,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Read, expect_test::expect_file!["schema.json"]);
}

#[test]
fn a_huge_line_costs_its_head_only() {
    let huge = std::io::repeat(b'x').take(64 << 20);
    let page = of_text(BufReader::new(huge), Window::new(None, None)).unwrap();
    assert_eq!(page.len(), "1: ".len() + 2_000 + " … [67106864 more bytes in this line]\n".len());
}

#[test]
fn a_cut_through_a_character_shows_no_half_of_it() {
    let line = "x".to_owned() + &"ü".repeat(1_500);
    let page = of_text(line.as_bytes(), Window::new(None, None)).unwrap();
    assert!(page.contains("ü … [1001 more bytes in this line]"), "{page}");
    assert!(!page.contains('\u{fffd}'), "{page}");
}

#[test]
fn pages_meet_without_gap_or_overlap() {
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    let (mut seen, mut offset) = (0, 1);
    while seen < 5_000 {
        let page = of_text(text.as_bytes(), Window::new(Some(offset), None)).unwrap();
        for line in page.lines().filter(|line| !line.starts_with('[')) {
            seen += 1;
            assert_eq!(line, format!("{seen}: line {seen}"));
        }
        offset = seen + 1;
    }
    assert!(of_text(text.as_bytes(), Window::new(Some(5_001), None)).is_err());
}
