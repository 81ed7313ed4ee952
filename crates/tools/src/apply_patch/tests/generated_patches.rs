//! Property tests with generated texts and patches.

use super::{TestPatchFiles, apply_update};
use crate::apply_patch::parse_patch;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;
use proptest::{prop_assert, prop_assert_eq};
use similar::{ChangeTag, TextDiff};

/// Generates lines of a patch, some of them valid.
fn line() -> impl Strategy<Value = String> {
    let known = [
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: a",
        "*** Add File: dir/b",
        "*** Delete File: a",
        "*** Update File: f",
        "*** Update File: ./f",
        "*** Move to: g",
        "*** End of File",
        "@@",
        "@@ x",
        " x",
        "-x",
        "+x",
        "+\té",
        "",
        " ",
        "\r",
        "```",
        "<<'EOF'",
        "EOF",
    ];
    prop_oneof![4 => select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,12}"]
}

/// Generates a text of few different lines, often with repeated blocks, so that matches repeat.
fn text() -> impl Strategy<Value = String> {
    let lines =
        ["a", "b", "c", "  a", "\tb", "a ", "", "\u{201c}d\u{201d}", "\"d\"", "*** End Patch"];
    let line = prop_oneof![3 => select(lines.to_vec()).prop_map(str::to_owned), 2 => "[e-z]{1,2}"];
    let block = prop_oneof![
        (vec(line.clone(), 0..40), Just(1)),
        (vec(line, 1..8), 2..5usize),
        (vec(select(vec!["a", "b"]).prop_map(str::to_owned), 1..4), 2..12usize),
    ];
    let join_lines =
        |lines: Vec<String>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    block.prop_map(move |(lines, times)| join_lines(lines).repeat(times))
}

/// Generates a text and a version of it with a few changed lines.
fn edited_text() -> impl Strategy<Value = (String, String)> {
    let change = (any::<usize>(), select(vec!["", "a\n", "n\n", "n\n\nm\n", "  a\n"]));
    (text(), vec(change, 0..5)).prop_map(|(before, changes)| {
        let mut lines: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        for (index, new) in changes {
            let index = index % (lines.len() + 1);
            match lines.get_mut(index) {
                Some(line) => *line = new.to_owned(),
                None => lines.push(new.to_owned()),
            }
        }
        let after = lines.concat();
        (before, after)
    })
}

/// The style in which hunks are written.
#[derive(Clone, Copy, Debug)]
enum TestHunkStyle {
    Plain,
    EndOfFileMarker,
    BareBlankLines,
    SeparateSections,
}

/// Returns the hunks between two texts, with three lines of context.
fn hunks(before: &str, after: &str, style: TestHunkStyle) -> String {
    let diff = TextDiff::from_lines(before, after);
    let count = before.lines().count();
    let mut patch = String::new();
    for group in diff.grouped_ops(3) {
        if matches!(style, TestHunkStyle::SeparateSections) && !patch.is_empty() {
            patch.push_str("*** Update File: f\n");
        }
        patch.push_str("@@\n");
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let marker = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            match (style, marker, change.value()) {
                (TestHunkStyle::BareBlankLines, ' ', "\n") => patch.push('\n'),
                (_, marker, value) => patch.push_str(&format!("{marker}{value}")),
            }
        }
        let is_at_end = group.last().is_some_and(|op| op.old_range().end == count);
        if matches!(style, TestHunkStyle::EndOfFileMarker) && is_at_end {
            patch.push_str("*** End of File\n");
        }
    }
    patch
}

fn style() -> impl Strategy<Value = TestHunkStyle> {
    prop_oneof![
        Just(TestHunkStyle::Plain),
        Just(TestHunkStyle::EndOfFileMarker),
        Just(TestHunkStyle::BareBlankLines),
        Just(TestHunkStyle::SeparateSections),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC*|(?s).{0,80}") {
        let _ = parse_patch(&text);
    }

    #[test]
    fn any_patch_is_applied_or_changes_nothing(
        lines in vec(line(), 0..24),
        endings in vec(select(vec!["\n", "\r\n"]), 24),
    ) {
        let lines = lines.iter().zip(endings);
        let body: String = lines.map(|(line, ending)| format!("{line}{ending}")).collect();
        for patch in [body.clone(), format!("*** Begin Patch\n{body}*** End Patch")] {
            let mut files = TestPatchFiles::new(&[("f", "x\ny\nx\n"), ("a", "")]);
            let before = files.clone();
            if let Err(error) = files.patch(&patch) {
                prop_assert_eq!(&files, &before);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn a_damaged_patch_does_not_panic(
        (before, after) in edited_text(),
        position in any::<usize>(),
        length in 0..6usize,
        new in "\\PC{0,3}|\n|@@|\\*\\*\\*",
    ) {
        let patch = super::update(&hunks(&before, &after, TestHunkStyle::EndOfFileMarker));
        let char_boundary = |mut position: usize| {
            while !patch.is_char_boundary(position) { position -= 1; }
            position
        };
        let start = char_boundary(position % (patch.len() + 1));
        let end = char_boundary((start + length).min(patch.len())).max(start);
        let damaged = format!("{}{new}{}", &patch[..start], &patch[end..]);
        let mut files = TestPatchFiles::new(&[("f", &before)]);
        let original = files.clone();
        if files.patch(&damaged).is_err() {
            prop_assert_eq!(files, original);
        }
    }

    #[test]
    fn the_diff_of_two_texts_gives_the_second_or_is_ambiguous(
        (before, after) in prop_oneof![edited_text(), (text(), text())],
        style in style(),
    ) {
        let hunks = hunks(&before, &after, style);
        match apply_update(&before, &hunks) {
            Ok(changed) => prop_assert_eq!(changed, after),
            Err(_) if before == after => {}
            Err(error) => prop_assert!(error.contains("matches more than one place"), "{}", error),
        }
    }

    #[test]
    fn a_shifted_hunk_gives_a_shifted_text(before in "([a-z]{1,3}\n){3,12}", shift in "[ \t]{1,4}") {
        let lines: Vec<&str> = before.lines().collect();
        let (removed, context) = (lines[0], lines[1]);
        let hunk = format!("@@\n-{shift}{removed}\n+{shift}NEW\n {shift}{context}");
        let expected = before.replacen(removed, "NEW", 1);
        match apply_update(&before, &hunk) {
            Ok(changed) => prop_assert_eq!(changed, expected),
            Err(error) => prop_assert!(error.contains("matches more than one place"), "{}", error),
        }
    }
}
