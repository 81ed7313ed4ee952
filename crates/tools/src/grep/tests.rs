//! The cases of `grep`, and what a case cannot hold.
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::search::{Extent, Harvest, Search};
use super::*;
use crate::harness;
use grep_regex::RegexMatcher;
use proptest::prelude::{Strategy, prop, proptest};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windlass_permission::{Decision, Policy, Rules};
use windlass_sandbox::{Workspace, World};

windlass_testkit::cases!(harness::run, "grep/cases":
    matches_are_shown_by_file_with_their_lines,
    ignored_and_hidden_files_are_left_out,
    include_narrows_the_files,
    lines_around_matches_are_marked,
    files_mode_shows_the_files,
    count_mode_shows_how_many_lines_match,
    an_offset_pages_on,
    an_offset_pages_on_in_files,
    a_page_in_the_middle_of_a_file_keeps_the_lines_around,
    an_offset_past_the_end_says_how_many_there_are,
    an_offset_that_is_too_far_is_refused,
    a_long_line_is_cut_around_the_match,
    a_pattern_that_is_none_says_how_to_search_literally,
    a_file_is_searched_alone,
    nothing_found_says_what_to_try,
    no_file_to_search_says_so,
    secrets_are_left_out,
    a_pattern_with_a_line_end_matches_across_lines,
    text_in_any_script_is_found,
    a_binary_file_is_left_out,
    a_binary_file_alone_is_said_to_be_one,
    text_in_utf_16_is_found,
    line_ends_are_not_shown,
    links_are_not_followed,
    a_folder_with_an_ignore_file_that_is_a_link_is_left_out,
    a_path_out_of_the_workspace_is_refused,
    a_missing_path_fails,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Grep, expect_test::expect_file!["schema.json"]);
}

fn world(folder: &Path) -> World {
    let policy = Policy::new(Rules::parse(&serde_json::json!("allow")).unwrap());
    let Decision::Allowed(grant) = policy.decide(vec![Access::Search { path: ".".into() }], &[])
    else {
        panic!()
    };
    Workspace::at(folder).unwrap().look(grant)
}

fn run(folder: &Path, search: &Search) -> Harvest {
    search.run(&world(folder).tree(".").unwrap(), &|| false).unwrap()
}

fn input(pattern: &str) -> Input {
    let (path, include, context, offset) = (None, None, None, None);
    Input { pattern: pattern.into(), path, include, context, mode: Mode::Content, offset }
}

fn page_of(folder: &Path, search: &Search) -> String {
    render(&input("x"), search, &run(folder, search)).unwrap()
}

/// Many files with some matches each, deterministic.
fn fill(folder: &Path) -> Vec<String> {
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

fn places(harvest: &Harvest) -> Vec<String> {
    let lines = |hits: &search::Hits| -> Vec<String> {
        hits.lines.numbers().map(|number| format!("{}:{number}", hits.path)).collect()
    };
    harvest.files.iter().flat_map(lines).collect()
}

#[test]
fn all_matches_are_found_in_the_order_of_paths_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = fill(folder.path());
    for _ in 0..20 {
        let found = places(&run(folder.path(), &Search::new("x").unwrap()));
        assert!(found.is_sorted_by_key(|place| place.split(':').next().map(str::to_owned)));
        let mut found = found;
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn pages_meet_without_gap_or_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let all = fill(folder.path()).len();
    for context in [0, 2] {
        let whole = places(&run(folder.path(), &Search::new("x").unwrap()));
        let mut seen = Vec::new();
        while seen.len() < all {
            let extent = Extent { skipped: seen.len(), shown: 37, beyond: 10 };
            let search = Search { extent, context, ..Search::new("x").unwrap() };
            let page = page_of(folder.path(), &search);
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
fn what_is_counted_beyond_a_page_is_exact_or_said_to_be_more() {
    let folder = tempfile::tempdir().unwrap();
    let all = fill(folder.path()).len();
    for (beyond, expected) in [
        (all, format!("[5 of {all} matches; the next with offset 6]")),
        (all - 5, format!("[5 of {all} matches; the next with offset 6]")),
        (all - 6, format!("[5 of more than {} matches; the next with offset 6]", all - 1)),
        (10, "[5 of more than 15 matches; the next with offset 6]".into()),
    ] {
        let extent = Extent { skipped: 0, shown: 5, beyond };
        let search = Search { extent, ..Search::new("x").unwrap() };
        let page = page_of(folder.path(), &search);
        assert_eq!(page.lines().last().unwrap(), expected);
    }
}

#[test]
fn a_broad_search_ends_when_it_has_enough() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3_000 {
        std::fs::write(folder.path().join(format!("{n:04}")), "x\n".repeat(20)).unwrap();
    }
    let extent = Extent { skipped: 0, shown: 10, beyond: 10 };
    for mode in [Mode::Content, Mode::Files, Mode::Count] {
        let search = Search { extent, mode, ..Search::new("x").unwrap() };
        let harvest = run(folder.path(), &search);
        assert!(harvest.searched < 300, "{mode:?}: {}", harvest.searched);
        assert!(harvest.found > 20);
        assert_eq!(harvest.files[0].path, "0000");
    }
}

#[test]
fn one_huge_line_costs_a_bounded_amount_and_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut huge = b"x at the beginning\n".to_vec();
    huge.resize(100 << 20, b'y');
    std::fs::write(folder.path().join("huge.txt"), huge).unwrap();
    std::fs::write(folder.path().join("small.txt"), "x\n").unwrap();
    for pattern in ["x", "x\\n"] {
        let search = Search::new(pattern).unwrap();
        let harvest = run(folder.path(), &search);
        assert!(harvest.files.iter().any(|hits| hits.path == "small.txt"));
        assert_eq!(harvest.gaps.len(), 1);
        let page = render(&input(pattern), &search, &harvest).unwrap();
        assert!(page.contains("[huge.txt: not searched to its end, as what"), "{page}");
    }
}

#[test]
fn matches_before_the_first_zero_byte_are_shown_and_the_rest_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = b"x\n".to_vec();
    bytes.extend(b"nothing\n".repeat(20_000));
    bytes.extend(b"\0\nx\n");
    std::fs::write(folder.path().join("mixed"), bytes).unwrap();
    let page = page_of(folder.path(), &Search::new("x").unwrap());
    let words = "[mixed: searched up to the first zero byte, as it is a binary file]";
    assert_eq!(page, format!("mixed\n  1: x\n{words}"));
    let count = Search { mode: Mode::Count, ..Search::new("x").unwrap() };
    assert_eq!(run(folder.path(), &count).found, 0, "a part is not counted as the whole");
}

#[test]
fn a_search_stops_soon_after_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    // Neither a match nor the end of a file gives a chance to stop.
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    let text = "nothing to be found here\n".repeat(40_000);
    for _ in 0..300 {
        std::io::Write::write_all(&mut &large, text.as_bytes()).unwrap();
    }
    let asked = AtomicUsize::new(0);
    let cancelled = || asked.fetch_add(1, Ordering::Relaxed) > 20;
    let world = world(folder.path());
    let started = Instant::now();
    let search = Search::new("(a|b|c)+[0-9]x").unwrap();
    search.run(&world.tree(".").unwrap(), &cancelled).unwrap();
    assert!(asked.load(Ordering::Relaxed) < 40, "{asked:?}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_page_ends_before_it_would_be_cut() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let line = format!("x{}\n", "y".repeat(1_500));
        std::fs::write(folder.path().join(name), line.repeat(20)).unwrap();
    }
    let (mut seen, mut pages) = (0, 0);
    while seen < 40 {
        let extent = Extent { skipped: seen, shown: 100, beyond: 1_000 };
        let page = page_of(folder.path(), &Search { extent, ..Search::new("x").unwrap() });
        assert!(page.len() < 50 * 1024);
        let shown = page.lines().filter(|line| line.contains(": x")).count();
        assert!(shown > 0);
        seen += shown;
        pages += 1;
    }
    assert_eq!((seen, pages), (40, 2));
}

/// Up to some thousand characters of one to four bytes, in runs, so that they are made quickly.
fn long_text() -> impl Strategy<Value = String> {
    let run = (prop::sample::select(vec!["a", "é", "ÿ", "\u{4e00}", "\u{1f600}"]), 0usize..900);
    let runs = prop::collection::vec(run, 0..5);
    runs.prop_map(|runs| runs.iter().map(|(text, times)| text.repeat(*times)).collect())
}

proptest! {
    #[test]
    fn any_line_is_cut_to_its_length_with_the_match_in_it(
        before in long_text(),
        after in long_text(),
    ) {
        let line = format!("{before}NEEDLE{after}");
        let (mut lines, mut page) = (lines::Lines::default(), Page::default());
        lines.add_match(&RegexMatcher::new("NEEDLE").unwrap(), 1, format!("{line}\n").as_bytes());
        assert_eq!(lines.write(0..1, &mut page), 1);
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
    fn any_pattern_is_searched_for_or_refused_kindly(pattern in "\\PC{0,12}") {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), &pattern).unwrap();
        match Search::new(&pattern) {
            Ok(search) => {
                run(folder.path(), &search);
            }
            Err(failure) => {
                let (_, literal) = failure.text.split_once("literally: ").unwrap();
                let found = run(folder.path(), &Search::new(literal).unwrap());
                assert_eq!(found.found, 1, "{pattern} as {literal}");
            }
        }
    }
}

#[test]
fn a_pattern_too_large_to_compile_is_refused() {
    let failure = Search::new(r"(\w{1000}){1000}").err().unwrap();
    assert!(failure.text.contains("not a regular expression"), "{}", failure.text);
}
