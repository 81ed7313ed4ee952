//! The cases of `grep`, and tests that a case cannot express.
#![allow(clippy::disallowed_methods, reason = "tests create files directly")]

use super::search::{GrepResultRange, GrepResults, GrepSearch};
use super::*;
use crate::case_runner;
use grep_regex::RegexMatcher;
use proptest::prelude::{Strategy, prop, proptest};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_sandbox::{CallWorkspace, Workspace};

windlass_testkit::cases!(case_runner::run_case, "grep/cases":
    matches_are_grouped_by_file,
    ignored_and_hidden_files_are_skipped,
    include_filters_files,
    context_lines_are_marked,
    files_mode_lists_files,
    count_mode_counts_matching_lines,
    an_offset_selects_the_next_page,
    an_offset_counts_files_in_files_mode,
    a_page_inside_a_file_has_context_lines,
    an_offset_past_the_end_reports_the_count,
    an_offset_above_the_limit_is_refused,
    a_long_line_is_truncated_around_the_match,
    an_invalid_pattern_is_an_error,
    a_single_file_is_searched,
    no_match_gives_a_hint,
    no_searched_file_is_reported,
    secret_files_are_skipped,
    a_pattern_with_a_newline_matches_across_lines,
    text_in_any_script_is_found,
    a_binary_file_is_skipped,
    a_single_binary_file_is_reported,
    text_in_utf_16_is_found,
    line_endings_are_not_shown,
    links_are_not_followed,
    a_folder_with_a_linked_ignore_file_is_skipped,
    a_path_out_of_the_workspace_needs_approval,
    a_missing_path_fails,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::GrepTool, expect_test::expect_file!["schema.json"]);
}

fn granted_workspace(folder: &Path) -> CallWorkspace {
    let policy = Policy::new(PermissionRules::parse(&serde_json::json!("allow")).unwrap());
    let Decision::Allowed(grant) =
        policy.decide(vec![ToolAccess::Search { path: ".".into() }], &[])
    else {
        panic!()
    };
    Workspace::open(folder).unwrap().open_read_only(grant)
}

fn run_search(folder: &Path, search: &GrepSearch) -> GrepResults {
    search.run(&granted_workspace(folder).walk(".").unwrap(), &|| false).unwrap()
}

fn input(pattern: &str) -> GrepInput {
    let (path, include, context, offset) = (None, None, None, None);
    GrepInput { pattern: pattern.into(), path, include, context, mode: GrepMode::Content, offset }
}

fn render(folder: &Path, search: &GrepSearch) -> String {
    render_page(&input("x"), search, &run_search(folder, search)).unwrap()
}

/// Creates many files with some matches each, and returns the matches.
fn create_files(folder: &Path) -> Vec<String> {
    let mut expected = Vec::new();
    for n in 0..300_usize {
        let name = format!("{}/{n:03}.txt", n % 7);
        let path = folder.join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut text = String::new();
        for line in 1..=(n * 7919 % 23) {
            if (line * n) % 3 == 1 {
                text.push_str("x marks\n");
                expected.push(format!("{name}:{line}"));
            } else {
                text.push_str("nothing\n");
            }
        }
        std::fs::write(path, text).unwrap();
    }
    expected.sort();
    expected
}

fn match_positions(search_results: &GrepResults) -> Vec<String> {
    let lines = |file_matches: &search::GrepFileMatches| -> Vec<String> {
        file_matches
            .lines
            .match_line_numbers()
            .map(|number| format!("{}:{number}", file_matches.path))
            .collect()
    };
    search_results.files.iter().flat_map(lines).collect()
}

#[test]
fn all_matches_are_found_in_path_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = create_files(folder.path());
    for _ in 0..20 {
        let found = match_positions(&run_search(folder.path(), &GrepSearch::new("x").unwrap()));
        assert!(found.is_sorted_by_key(|position| position.split(':').next().map(str::to_owned)));
        let mut found = found;
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn pages_have_no_gaps_or_overlaps() {
    let folder = tempfile::tempdir().unwrap();
    let all = create_files(folder.path()).len();
    for context in [0, 2] {
        let whole = match_positions(&run_search(folder.path(), &GrepSearch::new("x").unwrap()));
        let mut seen = Vec::new();
        while seen.len() < all {
            let range = GrepResultRange { skip: seen.len(), limit: 37, count_beyond: 10 };
            let search = GrepSearch { range, context, ..GrepSearch::new("x").unwrap() };
            let page = render(folder.path(), &search);
            let mut path = "";
            for line in page.lines().filter(|line| !line.starts_with('[')) {
                match line.strip_prefix("  ") {
                    None => path = line,
                    Some(line) => {
                        if let Some((number, _)) = line.split_once(": x") {
                            seen.push(format!("{path}:{number}"));
                        }
                    }
                }
            }
            assert_eq!(seen, whole[..seen.len()]);
        }
        assert_eq!(seen.len(), all);
    }
}

#[test]
fn the_total_is_exact_or_a_lower_bound() {
    let folder = tempfile::tempdir().unwrap();
    let all = create_files(folder.path()).len();
    for (count_beyond, expected) in [
        (all, format!("[5 of {all} matches; continue with offset 6]")),
        (all - 5, format!("[5 of {all} matches; continue with offset 6]")),
        (all - 6, format!("[5 of more than {} matches; continue with offset 6]", all - 1)),
        (10, "[5 of more than 15 matches; continue with offset 6]".into()),
    ] {
        let range = GrepResultRange { skip: 0, limit: 5, count_beyond };
        let search = GrepSearch { range, ..GrepSearch::new("x").unwrap() };
        let page = render(folder.path(), &search);
        assert_eq!(page.lines().last().unwrap(), expected);
    }
}

#[test]
fn a_broad_search_ends_with_enough_results() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3_000 {
        std::fs::write(folder.path().join(format!("{n:04}")), "x\n".repeat(20)).unwrap();
    }
    let range = GrepResultRange { skip: 0, limit: 10, count_beyond: 10 };
    for mode in [GrepMode::Content, GrepMode::Files, GrepMode::Count] {
        let search = GrepSearch { range, mode, ..GrepSearch::new("x").unwrap() };
        let search_results = run_search(folder.path(), &search);
        assert!(search_results.searched_files < 300, "{mode:?}: {}", search_results.searched_files);
        assert!(search_results.result_count > 20);
        assert_eq!(search_results.files[0].path, "0000");
    }
}

#[test]
fn a_huge_line_is_skipped_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut huge = b"x at the beginning\n".to_vec();
    huge.resize(100 << 20, b'y');
    std::fs::write(folder.path().join("huge.txt"), huge).unwrap();
    std::fs::write(folder.path().join("small.txt"), "x\n").unwrap();
    for pattern in ["x", "x\\n"] {
        let search = GrepSearch::new(pattern).unwrap();
        let search_results = run_search(folder.path(), &search);
        assert!(search_results.files.iter().any(|file_matches| file_matches.path == "small.txt"));
        assert_eq!(search_results.skipped_files.len(), 1);
        let page = render_page(&input(pattern), &search, &search_results).unwrap();
        assert!(page.contains("[huge.txt: not searched completely, because its content"), "{page}");
    }
}

#[test]
fn a_file_is_searched_up_to_the_first_zero_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = b"x\n".to_vec();
    bytes.extend(b"nothing\n".repeat(20_000));
    bytes.extend(b"\0\nx\n");
    std::fs::write(folder.path().join("mixed"), bytes).unwrap();
    let page = render(folder.path(), &GrepSearch::new("x").unwrap());
    let note = "[mixed: binary file, searched only up to the first zero byte]";
    assert_eq!(page, format!("mixed\n  1: x\n{note}"));
    let count = GrepSearch { mode: GrepMode::Count, ..GrepSearch::new("x").unwrap() };
    assert_eq!(
        run_search(folder.path(), &count).result_count,
        0,
        "a partial count is not reported"
    );
}

#[test]
fn a_canceled_search_stops_soon() {
    let folder = tempfile::tempdir().unwrap();
    // The file has no match and is long, so the search must stop within it.
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    let text = "nothing to be found here\n".repeat(40_000);
    for _ in 0..300 {
        std::io::Write::write_all(&mut &large, text.as_bytes()).unwrap();
    }
    let poll_count = AtomicUsize::new(0);
    let is_canceled = || poll_count.fetch_add(1, Ordering::Relaxed) > 20;
    let workspace = granted_workspace(folder.path());
    let started = Instant::now();
    let search = GrepSearch::new("(a|b|c)+[0-9]x").unwrap();
    search.run(&workspace.walk(".").unwrap(), &is_canceled).unwrap();
    assert!(poll_count.load(Ordering::Relaxed) < 40, "{poll_count:?}");
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_page_ends_before_the_size_limit() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let line = format!("x{}\n", "y".repeat(1_500));
        std::fs::write(folder.path().join(name), line.repeat(20)).unwrap();
    }
    let (mut seen, mut pages) = (0, 0);
    while seen < 40 {
        let range = GrepResultRange { skip: seen, limit: 100, count_beyond: 1_000 };
        let page = render(folder.path(), &GrepSearch { range, ..GrepSearch::new("x").unwrap() });
        assert!(page.len() < 50 * 1024);
        let shown = page.lines().filter(|line| line.contains(": x")).count();
        assert!(shown > 0);
        seen += shown;
        pages += 1;
    }
    assert_eq!((seen, pages), (40, 2));
}

/// Generates up to some thousand characters of one to four bytes, in runs for speed.
fn long_text() -> impl Strategy<Value = String> {
    let repeated =
        (prop::sample::select(vec!["a", "é", "ÿ", "\u{4e00}", "\u{1f600}"]), 0usize..900);
    let repetitions = prop::collection::vec(repeated, 0..5);
    repetitions.prop_map(|repetitions| {
        repetitions.iter().map(|(text, times)| text.repeat(*times)).collect()
    })
}

proptest! {
    #[test]
    fn a_long_line_is_truncated_around_the_match_exactly(
        before in long_text(),
        after in long_text(),
    ) {
        let line = format!("{before}NEEDLE{after}");
        let (mut lines, mut page) = (matched_lines::MatchedLines::default(), GrepPage::default());
        lines.add_match(&RegexMatcher::new("NEEDLE").unwrap(), 1, format!("{line}\n").as_bytes());
        assert_eq!(lines.write_matches(0..1, &mut page), 1);
        let shown = page.text.strip_prefix("  1: ").unwrap().strip_suffix('\n').unwrap();
        assert!(shown.contains("NEEDLE"));
        assert!(!shown.contains('\u{fffd}'));
        let (mut text, mut missing) = (shown, 0);
        if let Some((count, rest)) = text.split_once(" bytes left out] … ") {
            missing += count.strip_prefix('[').unwrap().parse::<usize>().unwrap();
            text = rest;
        }
        if let Some((rest, count)) = text.split_once(" … [") {
            missing += count.strip_suffix(" bytes left out]").unwrap().parse::<usize>().unwrap();
            text = rest;
        }
        assert!(line.contains(text));
        assert_eq!(text.len() + missing, line.len());
        if missing > 0 {
            assert_eq!(text.chars().count(), 2_000);
        }
    }

    #[test]
    fn an_invalid_pattern_suggests_a_literal_search(pattern in "\\PC{0,12}") {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), &pattern).unwrap();
        match GrepSearch::new(&pattern) {
            Ok(search) => {
                run_search(folder.path(), &search);
            }
            Err(failure) => {
                let (_, literal) = failure.text.split_once("literally: ").unwrap();
                let found = run_search(folder.path(), &GrepSearch::new(literal).unwrap());
                assert_eq!(found.result_count, 1, "{pattern} as {literal}");
            }
        }
    }
}

#[test]
fn a_pattern_too_large_to_compile_is_rejected() {
    let failure = GrepSearch::new(r"(\w{1000}){1000}").err().unwrap();
    assert!(failure.text.contains("not a valid regular expression"), "{}", failure.text);
}
