//! The cases of `read`, and tests that a case file cannot express.
#![allow(clippy::disallowed_methods, reason = "tests create files directly")]

use super::page::{LineWindow, render_text_page};
use crate::case_runner;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};

windlass_testkit::cases!(case_runner::run_case, "read/cases":
    lines_are_numbered,
    a_page_says_how_to_continue,
    an_offset_past_the_end_reports_the_length,
    an_empty_file_is_reported,
    a_folder_lists_its_entries,
    a_missing_file_fails,
    a_binary_file_is_refused,
    line_endings_are_not_shown,
    a_path_out_of_the_workspace_needs_approval,
    an_absolute_path_needs_approval,
    a_link_out_of_the_workspace_needs_approval,
    a_rule_may_deny_a_file,
    a_rule_applies_through_a_link,
    a_secret_file_needs_approval,
    invalid_arguments_are_reported,
    an_unknown_field_is_ignored,
    a_missing_file_suggests_similar_paths,
    an_image_is_attached,
    a_broken_image_is_reported,
    a_pdf_is_attached,
    utf_16_is_decoded,
    latin_1_is_decoded,
    gbk_is_decoded,
    shift_jis_is_decoded,
    the_example_of_a_secret_file_is_read,
    a_secret_file_is_not_shown_without_approval,
    nearby_instructions_are_added,
    instructions_are_added_once_per_session,
    instructions_of_an_untrusted_project_are_ignored,
    denied_instructions_are_ignored,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &super::ReadTool::default(),
        expect_test::expect_file!["schema.json"],
    );
}

#[test]
fn only_the_head_of_a_huge_line_is_rendered() {
    let huge = std::io::repeat(b'x').take(64 << 20);
    let page = render_text_page(BufReader::new(huge), LineWindow::new(None, None)).unwrap().text;
    assert_eq!(page.len(), "1: ".len() + 2_000 + " … [67106864 more bytes in this line]\n".len());
}

#[test]
fn a_line_is_truncated_at_a_character_boundary() {
    let line = "x".to_owned() + &"ü".repeat(2_500);
    let page = render_text_page(line.as_bytes(), LineWindow::new(None, None)).unwrap().text;
    assert!(page.contains("ü … [1002 more bytes in this line]"), "{page}");
    assert!(!page.contains('\u{fffd}'), "{page}");
}

#[test]
fn consecutive_pages_have_no_gap_and_no_overlap() {
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    let (mut seen, mut offset) = (0, 1);
    while seen < 5_000 {
        let page =
            render_text_page(text.as_bytes(), LineWindow::new(Some(offset), None)).unwrap().text;
        for line in page.lines().filter(|line| !line.starts_with('[')) {
            seen += 1;
            assert_eq!(line, format!("{seen}: line {seen}"));
        }
        offset = seen + 1;
    }
    assert!(render_text_page(text.as_bytes(), LineWindow::new(Some(5_001), None)).is_err());
}

/// A reader that counts the bytes read from it.
struct CountingReader<R> {
    source: R,
    bytes: u64,
}

impl<R: std::io::Read> std::io::Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

#[test]
fn a_page_of_a_file_of_ten_gigabytes_reads_a_few_megabytes() {
    let mut file = tempfile::tempfile().unwrap();
    let text: String = (1..=3_000).map(|n| format!("line {n}\n")).collect();
    file.write_all(text.as_bytes()).unwrap();
    file.set_len(10 << 30).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();

    let started = std::time::Instant::now();
    let mut reader = BufReader::new(CountingReader { source: file, bytes: 0 });
    let page = render_text_page(&mut reader, LineWindow::new(None, None)).unwrap().text;
    assert!(
        started.elapsed()
            < windlass_testkit::time_limits::limit(std::time::Duration::from_millis(900)),
        "{:?}",
        started.elapsed()
    );
    assert!(reader.get_ref().bytes < 6 << 20, "{}", reader.get_ref().bytes);
    assert!(
        page.ends_with(
            "2000: line 2000\n[lines 1 to 2000; more follow, continue with offset 2001]"
        ),
        "{page}"
    );
}

#[test]
fn a_last_line_without_a_line_ending_counts() {
    let text = "one\ntwo\nthree";
    let page = render_text_page(text.as_bytes(), LineWindow::new(Some(2), Some(1))).unwrap().text;
    assert_eq!(page, "2: two\n[lines 2 to 2 of 3; continue with offset 3]");
    let page = render_text_page(text.as_bytes(), LineWindow::new(Some(3), Some(1))).unwrap().text;
    assert_eq!(page, "3: three\n");
    let error = render_text_page(text.as_bytes(), LineWindow::new(Some(4), None)).unwrap_err();
    assert_eq!(error.text, "line 4 is past the end: the file has 3 lines");
}

#[test]
fn an_encoding_other_than_utf_8_is_named() {
    let (text, _, _) = encoding_rs::SHIFT_JIS.encode("日本語の文章です。\n漢字とひらがな。\n");
    let page = render_text_page(text.as_ref(), LineWindow::new(None, Some(1))).unwrap().text;
    assert_eq!(
        page,
        "1: 日本語の文章です。\n[lines 1 to 1 of 2; continue with offset 2]\n[the file is in Shift_JIS]"
    );
    let page = render_text_page(text.as_ref(), LineWindow::new(Some(2), None)).unwrap().text;
    assert_eq!(page, "2: 漢字とひらがな。\n[the file is in Shift_JIS]");
}

#[test]
fn utf_16_is_read_from_buffers_of_any_size() {
    let text: String = (1..=300).map(|n| format!("Zeile {n} \u{a0a} \u{a00}\u{d0a}\r\n")).collect();
    for little_endian in [true, false] {
        let to_bytes =
            |unit: u16| if little_endian { unit.to_le_bytes() } else { unit.to_be_bytes() };
        let bytes: Vec<u8> =
            ("\u{feff}".to_owned() + &text).encode_utf16().flat_map(to_bytes).collect();
        for capacity in [1, 2, 3, 7, 4096] {
            let source = BufReader::with_capacity(capacity, bytes.as_slice());
            let page = render_text_page(source, LineWindow::new(Some(299), None)).unwrap().text;
            let name = if little_endian { "UTF-16LE" } else { "UTF-16BE" };
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
        assert_eq!(
            render_text_page(mark, LineWindow::new(None, None)).unwrap().text,
            "[the file is empty]"
        );
    }
}
