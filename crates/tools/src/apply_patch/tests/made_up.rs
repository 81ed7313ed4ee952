//! Texts and patches that nobody thought of.

use super::{Disk, change};
use crate::apply_patch::parse;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;
use proptest::{prop_assert, prop_assert_eq};
use similar::{ChangeTag, TextDiff};

/// Lines of a patch, some of them right.
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

/// A text of few different lines, often the same block again and again, so that places repeat.
fn text() -> impl Strategy<Value = String> {
    let lines =
        ["a", "b", "c", "  a", "\tb", "a ", "", "\u{201c}d\u{201d}", "\"d\"", "*** End Patch"];
    let line = prop_oneof![3 => select(lines.to_vec()).prop_map(str::to_owned), 2 => "[e-z]{1,2}"];
    let block = prop_oneof![
        (vec(line.clone(), 0..40), Just(1)),
        (vec(line, 1..8), 2..5usize),
        (vec(select(vec!["a", "b"]).prop_map(str::to_owned), 1..4), 2..12usize),
    ];
    let ended =
        |lines: Vec<String>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    block.prop_map(move |(lines, times)| ended(lines).repeat(times))
}

/// Changes of some lines, so that most of a text stays.
fn edited() -> impl Strategy<Value = (String, String)> {
    let change = (any::<usize>(), select(vec!["", "a\n", "n\n", "n\n\nm\n", "  a\n"]));
    (text(), vec(change, 0..5)).prop_map(|(before, changes)| {
        let mut lines: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        for (at, new) in changes {
            let at = at % (lines.len() + 1);
            match lines.get_mut(at) {
                Some(line) => *line = new.to_owned(),
                None => lines.push(new.to_owned()),
            }
        }
        let after = lines.concat();
        (before, after)
    })
}

/// How hunks are written.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Plain,
    MarksTheEnd,
    LeavesBlankLinesBare,
    OpensSections,
}

/// The hunks that lead from one text to another, with three lines of context.
fn hunks(before: &str, after: &str, habit: Habit) -> String {
    let diff = TextDiff::from_lines(before, after);
    let count = before.lines().count();
    let mut patch = String::new();
    for group in diff.grouped_ops(3) {
        if matches!(habit, Habit::OpensSections) && !patch.is_empty() {
            patch.push_str("*** Update File: f\n");
        }
        patch.push_str("@@\n");
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            match (habit, mark, change.value()) {
                (Habit::LeavesBlankLinesBare, ' ', "\n") => patch.push('\n'),
                (_, mark, value) => patch.push_str(&format!("{mark}{value}")),
            }
        }
        let ends = group.last().is_some_and(|op| op.old_range().end == count);
        if matches!(habit, Habit::MarksTheEnd) && ends {
            patch.push_str("*** End of File\n");
        }
    }
    patch
}

fn habit() -> impl Strategy<Value = Habit> {
    prop_oneof![
        Just(Habit::Plain),
        Just(Habit::MarksTheEnd),
        Just(Habit::LeavesBlankLinesBare),
        Just(Habit::OpensSections),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|(?s).{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn any_lines_are_planned_or_change_nothing(lines in vec(line(), 0..24), ends in vec(select(vec!["\n", "\r\n"]), 24)) {
        let body: String = lines.iter().zip(ends).map(|(line, end)| format!("{line}{end}")).collect();
        for patch in [body.clone(), format!("*** Begin Patch\n{body}*** End Patch")] {
            let mut disk = Disk::of(&[("f", "x\ny\nx\n"), ("a", "")]);
            let before = disk.clone();
            if let Err(refusal) = disk.patch(&patch) {
                prop_assert_eq!(&disk, &before);
                prop_assert!(!refusal.to_string().is_empty());
            }
        }
    }

    #[test]
    fn a_patch_that_was_damaged_is_no_reason_to_panic(
        (before, after) in edited(),
        at in any::<usize>(),
        length in 0..6usize,
        new in "\\PC{0,3}|\n|@@|\\*\\*\\*",
    ) {
        let patch = super::update(&hunks(&before, &after, Habit::MarksTheEnd));
        let cut = |mut at: usize| {
            while !patch.is_char_boundary(at) { at -= 1; }
            at
        };
        let start = cut(at % (patch.len() + 1));
        let end = cut((start + length).min(patch.len())).max(start);
        let damaged = format!("{}{new}{}", &patch[..start], &patch[end..]);
        let mut disk = Disk::of(&[("f", &before)]);
        let kept = disk.clone();
        if disk.patch(&damaged).is_err() {
            prop_assert_eq!(disk, kept);
        }
    }

    #[test]
    fn the_difference_of_two_texts_leads_to_the_second_or_is_ambiguous(
        (before, after) in prop_oneof![edited(), (text(), text())],
        habit in habit(),
    ) {
        let hunks = hunks(&before, &after, habit);
        match change(&before, &hunks) {
            Ok(changed) => prop_assert_eq!(changed, after),
            Err(_) if before == after => {}
            Err(words) => prop_assert!(words.contains("fits more than one place"), "{}", words),
        }
    }

    #[test]
    fn a_shifted_hunk_gives_a_shifted_text(before in "([a-z]{1,3}\n){3,12}", shift in "[ \t]{1,4}") {
        let lines: Vec<&str> = before.lines().collect();
        let (removed, kept) = (lines[0], lines[1]);
        let hunk = format!("@@\n-{shift}{removed}\n+{shift}NEW\n {shift}{kept}");
        let expected = before.replacen(removed, "NEW", 1);
        match change(&before, &hunk) {
            Ok(changed) => prop_assert_eq!(changed, expected),
            Err(words) => prop_assert!(words.contains("fits more than one place"), "{}", words),
        }
    }
}
