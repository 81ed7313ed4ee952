//! The cases of `read`, and what a case cannot hold.
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::page::{Window, of_text};
use crate::harness;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};

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
    a_missing_file_names_the_nearest,
    a_picture_is_shown,
    a_broken_picture_is_told,
    a_document_is_shown,
    text_in_utf_16_is_read,
    text_in_latin_1_is_read,
    text_in_gbk_is_read,
    text_in_shift_jis_is_read,
    the_example_of_a_file_of_secrets_is_read,
    a_file_of_secrets_stays_closed_without_a_yes,
    instructions_nearby_are_taken_along,
    instructions_come_once_in_a_session,
    instructions_of_a_project_nobody_trusts_are_left_out,
    instructions_that_a_rule_keeps_closed_are_left_out,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Read::default(), expect_test::expect_file!["schema.json"]);
}

#[test]
fn a_huge_line_costs_its_head_only() {
    let huge = std::io::repeat(b'x').take(64 << 20);
    let page = of_text(BufReader::new(huge), Window::new(None, None)).unwrap();
    assert_eq!(page.len(), "1: ".len() + 2_000 + " … [67106864 more bytes in this line]\n".len());
}

#[test]
fn a_cut_through_a_character_shows_no_half_of_it() {
    let line = "x".to_owned() + &"ü".repeat(2_500);
    let page = of_text(line.as_bytes(), Window::new(None, None)).unwrap();
    assert!(page.contains("ü … [1002 more bytes in this line]"), "{page}");
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

/// Counts what is read, to see that a page costs no more than it must.
struct Counted<R> {
    source: R,
    bytes: u64,
}

impl<R: std::io::Read> std::io::Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

#[test]
fn a_page_of_ten_gigabytes_costs_a_few_megabytes() {
    let mut file = tempfile::tempfile().unwrap();
    let text: String = (1..=3_000).map(|n| format!("line {n}\n")).collect();
    file.write_all(text.as_bytes()).unwrap();
    file.set_len(10 << 30).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();

    let begun = std::time::Instant::now();
    let mut counted = BufReader::new(Counted { source: file, bytes: 0 });
    let page = of_text(&mut counted, Window::new(None, None)).unwrap();
    assert!(begun.elapsed().as_millis() < 900, "{:?}", begun.elapsed());
    assert!(counted.get_ref().bytes < 6 << 20, "{}", counted.get_ref().bytes);
    assert!(
        page.ends_with("2000: line 2000\n[lines 1 to 2000; more follow, read on with offset 2001]"),
        "{page}"
    );
}

#[test]
fn the_last_line_may_lack_its_end_and_still_counts() {
    let text = "one\ntwo\nthree";
    let page = of_text(text.as_bytes(), Window::new(Some(2), Some(1))).unwrap();
    assert_eq!(page, "2: two\n[lines 2 to 2 of 3; read on with offset 3]");
    let page = of_text(text.as_bytes(), Window::new(Some(3), Some(1))).unwrap();
    assert_eq!(page, "3: three\n");
    let error = of_text(text.as_bytes(), Window::new(Some(4), None)).unwrap_err();
    assert_eq!(error.text, "line 4 is past the end: the file has 3 lines");
}

#[test]
fn an_encoding_other_than_utf_8_is_named() {
    let (text, _, _) = encoding_rs::SHIFT_JIS.encode("日本語の文章です。\n漢字とひらがな。\n");
    let page = of_text(text.as_ref(), Window::new(None, Some(1))).unwrap();
    assert_eq!(
        page,
        "1: 日本語の文章です。\n[lines 1 to 1 of 2; read on with offset 2]\n[the file is in Shift_JIS]"
    );
    let page = of_text(text.as_ref(), Window::new(Some(2), None)).unwrap();
    assert_eq!(page, "2: 漢字とひらがな。\n[the file is in Shift_JIS]");
}

#[test]
fn utf_16_is_read_from_buffers_of_any_size() {
    let text: String = (1..=300).map(|n| format!("Zeile {n} \u{a0a} \u{a00}\u{d0a}\r\n")).collect();
    for little in [true, false] {
        let pair = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        let bytes: Vec<u8> =
            ("\u{feff}".to_owned() + &text).encode_utf16().flat_map(pair).collect();
        for capacity in [1, 2, 3, 7, 4096] {
            let source = BufReader::with_capacity(capacity, bytes.as_slice());
            let page = of_text(source, Window::new(Some(299), None)).unwrap();
            let name = if little { "UTF-16LE" } else { "UTF-16BE" };
            assert_eq!(
                page,
                format!(
                    "299: Zeile 299 \u{a0a} \u{a00}\u{d0a}\n300: Zeile 300 \u{a0a} \u{a00}\u{d0a}\n\
                     [the file is in {name}]"
                )
            );
        }
    }
}

#[test]
fn a_byte_order_mark_alone_is_an_empty_file() {
    for mark in [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"] {
        assert_eq!(of_text(mark, Window::new(None, None)).unwrap(), "[the file is empty]");
    }
}
