//! Tests of reverting agent edits in files that others have edited too.

#![allow(clippy::disallowed_methods, reason = "a test measures how long a merge takes")]

use super::{AgentEdit, UndoResult, undo_edits};
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::test_runner::Config;

fn edit<'a>(before: &'a str, after: &'a str) -> AgentEdit<'a> {
    AgentEdit { before: Some(before.as_bytes()), after: Some(after.as_bytes()) }
}

fn undo(current: &str, edits: &[AgentEdit<'_>]) -> UndoResult {
    undo_edits(Some(current.as_bytes()), edits)
}

fn content(text: &str) -> UndoResult {
    UndoResult::Content(Some(text.as_bytes().to_vec()))
}

fn conflict(text: &str, conflicts: usize) -> UndoResult {
    UndoResult::Conflict { content: text.as_bytes().to_vec(), conflicts, unreverted: 0 }
}

fn is_unmergeable(result: &UndoResult, text: &str) -> bool {
    matches!(result, UndoResult::Unmergeable { reason } if reason.contains(text))
}

#[test]
fn user_edits_before_between_and_after_agent_edits_stay() {
    let file = |lines: [&str; 7]| lines.map(|line| format!("{line}\n")).concat();
    let first = file(["0", "1", "2", "3", "4", "5", "6"]);
    let agent_1 = file(["0", "1", "2", "3", "4", "5", "agent"]);
    let user_1 = file(["0", "1", "user", "3", "4", "5", "agent"]);
    let agent_2 = file(["0", "1", "user", "3", "agent", "5", "agent"]);
    let user_2 = file(["user", "1", "user", "3", "agent", "5", "agent"]);
    let edits = [edit(&first, &agent_1), edit(&user_1, &agent_2)];
    let expected = file(["user", "1", "user", "3", "4", "5", "6"]);
    assert_eq!(undo(&user_2, &edits), content(&expected));
    assert_eq!(undo(&expected, &edits), UndoResult::Unchanged, "a second undo changed the file");
}

#[test]
fn a_change_reverted_by_hand_is_left_alone() {
    assert_eq!(undo("a\n", &[edit("a\n", "b\n")]), UndoResult::Unchanged);
    assert_eq!(undo("a\n", &[edit("a\n", "b\n"), edit("b\n", "c\n")]), UndoResult::Unchanged);
    assert_eq!(undo("x\n", &[edit("a\n", "b\n"), edit("b\n", "a\n")]), UndoResult::Unchanged);
    assert_eq!(undo("x\n", &[]), UndoResult::Unchanged);
}

#[test]
fn a_conflict_is_marked_and_the_rest_is_reverted() {
    let before = "a\nb\nc\nd\ne\nf\n";
    let after = "A\nb\nc\nd\nE\nf\n";
    let current = "A\nb\nc\nd\nmine\nf\n";
    let marked = "a\nb\nc\nd\n<<<<<<< now\nmine\n||||||| after the agent's edit\nE\n=======\ne\n\
                  >>>>>>> before the agent's edit\nf\n";
    assert_eq!(undo(current, &[edit(before, after)]), conflict(marked, 1));
}

#[test]
fn markers_use_the_line_ending_of_the_file_and_their_own_lines() {
    let marked = "x\r\n<<<<<<< now\r\nmine\r\n||||||| after the agent's edit\r\nB\r\n=======\r\n\
                  b\r\n>>>>>>> before the agent's edit\r\n";
    assert_eq!(undo("x\r\nmine", &[edit("x\r\nb", "x\r\nB")]), conflict(marked, 1));
    let emptied = "<<<<<<< now\n||||||| after the agent's edit\nB\n=======\nb\n\
                   >>>>>>> before the agent's edit\n";
    assert_eq!(undo("", &[edit("b", "B")]), conflict(emptied, 1));
}

#[test]
fn an_older_change_is_reverted_despite_a_newer_conflict() {
    let first = "a\nb\nc\nd\ne\n";
    let agent_1 = "A\nb\nc\nd\ne\n";
    let user = "A\nb\nuser\nd\ne\n";
    let agent_2 = "A\nb\nuser\nd\nE\n";
    let current = "A\nb\nuser\nd\nmine\n";
    let marked = "a\nb\nuser\nd\n<<<<<<< now\nmine\n||||||| after the agent's edit\nE\n=======\ne\n\
                  >>>>>>> before the agent's edit\n";
    let edits = [edit(first, agent_1), edit(user, agent_2)];
    assert_eq!(undo(current, &edits), conflict(marked, 1));
}

#[test]
fn the_newest_of_two_conflicts_is_marked_and_markers_are_not_nested() {
    let edits = [edit("a\n1\n", "b\n1\n"), edit("c\n1\n", "d\n1\n")];
    let UndoResult::Conflict { content, conflicts, unreverted } = undo("e\n1\n", &edits) else {
        panic!()
    };
    assert_eq!(unreverted, 1, "the older conflict was counted as reverted");
    let text = String::from_utf8(content).unwrap();
    assert_eq!((conflicts, text.matches("<<<<<<<").count()), (1, 1));
    assert!(text.contains("=======\nc\n>>>>>>>"), "{text}");
}

#[test]
fn a_file_created_by_the_agent_is_removed_unless_it_was_edited() {
    let created = AgentEdit { before: None, after: Some(b"new\n") };
    assert_eq!(undo("new\n", &[created]), UndoResult::Content(None));
    assert_eq!(undo("newer\n", &[created, edit("new\n", "newer\n")]), UndoResult::Content(None));
    assert!(is_unmergeable(&undo("new\nmine\n", &[created]), "edited since"));
    assert_eq!(undo_edits(None, &[created]), UndoResult::Unchanged);
    let edits = [created, edit("new\nmine\n", "agent\nmine\n")];
    assert!(is_unmergeable(&undo("agent\nmine\n", &edits), "edited since"));
}

#[test]
fn a_file_removed_by_the_user_stays_removed() {
    assert!(is_unmergeable(&undo_edits(None, &[edit("a\n", "b\n")]), "deleted since"));
    let removed = AgentEdit { before: Some(b"a\n"), after: None };
    assert_eq!(undo_edits(None, &[removed]), content("a\n"));
    let created_and_removed = [AgentEdit { before: None, after: Some(b"a\n") }, removed];
    assert_eq!(undo_edits(None, &created_and_removed), UndoResult::Unchanged);
}

#[test]
fn a_file_removed_by_the_agent_does_not_replace_another_one() {
    let removed = AgentEdit { before: Some(b"a\n"), after: None };
    assert!(is_unmergeable(&undo("mine\n", &[removed]), "now exists at its path"));
    assert_eq!(undo("a\n", &[removed]), UndoResult::Unchanged);
}

#[test]
fn binary_files_are_merged_or_left_but_never_marked() {
    let binary = |result: &str| result.replace('_', "\0");
    let (before, after) = (binary("_a\nb\nc\n_d\n"), binary("_A\nb\nc\n_d\n"));
    let mergeable = binary("_A\nb\nc\n_mine\n");
    assert_eq!(undo(&mergeable, &[edit(&before, &after)]), content(&binary("_a\nb\nc\n_mine\n")));
    let conflicting = binary("mine\nb\nc\n_d\n");
    assert!(is_unmergeable(
        &undo(&conflicting, &[edit(&before, &after)]),
        "conflicts cannot be marked"
    ));
    let late_zero = format!("{}\0\n", "x".repeat(9_000));
    let result = undo("mine\n", &[edit(&late_zero, "after\n")]);
    assert!(
        matches!(result, UndoResult::Conflict { .. }),
        "a zero byte after the sniffed bytes: {result:?}"
    );
}

#[test]
fn utf_16_is_merged_by_its_lines() {
    type Encode = fn(u16) -> [u8; 2];
    for (encode, other_order) in [
        (u16::to_le_bytes as Encode, u16::to_be_bytes as Encode),
        (u16::to_be_bytes, u16::to_le_bytes),
    ] {
        let to_utf_16 = |text: &str, encode: Encode| -> Vec<u8> {
            ['\u{feff}'].into_iter().chain(text.chars()).flat_map(|c| encode(c as u16)).collect()
        };
        // Characters that contain the byte of a line feed must not be split.
        let before = to_utf_16("a\u{0a0a}\nb\nc\u{0a41}\nd\n", encode);
        let after = to_utf_16("A\u{0a0a}\nb\nc\u{0a41}\nd\n", encode);
        let current = to_utf_16("A\u{0a0a}\nb\nc\u{410a}\nd\n", encode);
        let edits = [AgentEdit { before: Some(&before), after: Some(&after) }];
        let expected = to_utf_16("a\u{0a0a}\nb\nc\u{410a}\nd\n", encode);
        assert_eq!(undo_edits(Some(&current), &edits), UndoResult::Content(Some(expected)));
        let conflicting = to_utf_16("mine\nb\nc\u{0a41}\nd\n", encode);
        assert!(is_unmergeable(
            &undo_edits(Some(&conflicting), &edits),
            "conflicts cannot be marked"
        ));
        let swapped = to_utf_16("A\u{0a0a}\nb\nc\u{410a}\nd\n", other_order);
        assert!(is_unmergeable(&undo_edits(Some(&swapped), &edits), "encoding"));
        assert!(
            is_unmergeable(&undo_edits(Some(&conflicting[..7]), &edits), ""),
            "truncated inside a character"
        );
    }
}

#[test]
fn large_files_with_nothing_in_common_take_bounded_time() {
    let file = |salt: u64| -> String {
        let mut state = salt;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(salt | 1);
            (state >> 40) % 50
        };
        (0..60_000).map(|_| format!("{}\n", next())).collect()
    };
    let files = [1, 2, 3, 4, 5].map(file);
    let [current, versions @ ..] = &files;
    let [one, two, three, four] = versions;
    let start = std::time::Instant::now();
    let result = undo(current, &[edit(one, two), edit(three, four)]);
    let elapsed = start.elapsed();
    println!("files of 60 000 lines: {elapsed:?}");
    assert!(elapsed.as_secs() < 30, "{elapsed:?}");
    assert!(
        !matches!(result, UndoResult::Unchanged | UndoResult::Content(_)),
        "large files were merged"
    );

    let huge = "x".repeat(super::MAX_MERGE_BYTES + 1);
    assert!(is_unmergeable(&undo(&huge, &[edit("a\n", "b\n")]), "too large"));
    assert_eq!(undo(&huge, &[edit("a\n", &huge)]), content("a\n"), "needs no merge");
}

#[test]
fn a_large_file_with_few_edits_is_merged() {
    let file = |agent: &str, user: &str| -> String {
        let lines = (0..20_000).map(|n| match n {
            3 | 12_000 => format!("{agent}\n"),
            8_000 | 19_990 => format!("{user}\n"),
            _ => format!("line {}\n", n % 1_000),
        });
        lines.collect()
    };
    let (before, after, current) = (file("", ""), file("agent", ""), file("agent", "user"));
    let start = std::time::Instant::now();
    let result = undo(&current, &[edit(&before, &after)]);
    println!("a file of 20 000 lines: {:?}", start.elapsed());
    assert!(result == content(&file("", "user")));
}

// --- Property tests ----------------------------------------------------------------------------

/// An edit of one block by the agent or the user, and the new number of lines.
#[derive(Clone, Debug)]
struct TestBlockEdit {
    by_agent: bool,
    block: usize,
    lines: usize,
}

/// Blocks of lines, separated by lines that never change. The agent edits only even blocks.
#[derive(Clone)]
struct TestBlockFile {
    blocks: Vec<Vec<String>>,
    line_ending: &'static str,
    unterminated: bool,
}

impl TestBlockFile {
    fn bytes(&self) -> Vec<u8> {
        let blocks = self.blocks.iter().enumerate();
        let lines =
            blocks.flat_map(|(n, block)| block.iter().cloned().chain([format!("fixed {n}")]));
        let text: String = lines.map(|line| line + self.line_ending).collect();
        let text = if self.unterminated { text.trim_end() } else { &text };
        text.as_bytes().to_vec()
    }
}

fn edits() -> impl Strategy<Value = Vec<TestBlockEdit>> {
    let edit = (any::<bool>(), 0..6_usize, 0..4_usize)
        .prop_map(|(by_agent, block, lines)| TestBlockEdit { by_agent, block, lines });
    prop::collection::vec(edit, 1..=30)
}

/// Generates bytes from few values, so that lines repeat and special bytes are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::collection::vec(
        prop_oneof![
            4 => Just(b'\n'), 2 => Just(b'a'), 2 => Just(b'b'), 1 => Just(b'\r'),
            1 => Just(0), 1 => Just(0xff), 1 => Just(0xfe), 1 => any::<u8>(),
        ],
        0..40,
    );
    prop_oneof![
        special.clone(),
        special.prop_map(|special| [&[0xff, 0xfe], special.as_slice()].concat()),
    ]
}

fn maybe_bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![1 => Just(None), 5 => bytes().prop_map(Some)]
}

fn agent_lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec((0..6).prop_map(|n| format!("line {n}\n")), 0..12)
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(200) })]

    #[test]
    fn separate_user_edits_stay_and_agent_edits_are_reverted(
        sizes in prop::collection::vec(0..4_usize, 12),
        edits in edits(),
        crlf in any::<bool>(),
        unterminated in any::<bool>(),
    ) {
        let blocks = sizes.iter().enumerate();
        let blocks = blocks.map(|(n, size)| (0..*size).map(|i| format!("{n}.{i}")).collect());
        let line_ending = if crlf { "\r\n" } else { "\n" };
        let mut file = TestBlockFile { blocks: blocks.collect(), line_ending, unterminated };
        let mut expected = file.clone();
        let mut versions = Vec::new();
        for (n, edit) in edits.iter().enumerate() {
            let author = if edit.by_agent { "agent" } else { "user" };
            let lines: Vec<String> = (0..edit.lines).map(|i| format!("{author} {n} {i}")).collect();
            let before = file.bytes();
            if edit.by_agent {
                file.blocks[edit.block * 2] = lines;
                versions.push((before, file.bytes()));
            } else {
                file.blocks[edit.block * 2 + 1] = lines.clone();
                expected.blocks[edit.block * 2 + 1] = lines;
            }
        }
        let agent_edits: Vec<AgentEdit<'_>> = versions
            .iter()
            .map(|(before, after)| AgentEdit { before: Some(before), after: Some(after) })
            .collect();
        let (current, expected) = (file.bytes(), expected.bytes());
        let result = undo_edits(Some(&current), &agent_edits);
        if current == expected {
            prop_assert_eq!(result, UndoResult::Unchanged);
        } else {
            prop_assert_eq!(result, UndoResult::Content(Some(expected)));
        }
    }

    #[test]
    fn a_file_edited_only_by_the_agent_is_restored(
        versions in prop::collection::vec(maybe_bytes(), 1..12),
    ) {
        let edits: Vec<AgentEdit<'_>> = versions
            .windows(2)
            .map(|pair| AgentEdit { before: pair[0].as_deref(), after: pair[1].as_deref() })
            .collect();
        let (first, current) = (versions.first().unwrap(), versions.last().unwrap());
        let result = undo_edits(current.as_deref(), &edits);
        if first == current {
            prop_assert_eq!(result, UndoResult::Unchanged);
        } else {
            prop_assert_eq!(result, UndoResult::Content(first.clone()));
        }
    }

    #[test]
    fn nothing_panics_and_only_text_is_marked(
        current in maybe_bytes(),
        versions in prop::collection::vec((maybe_bytes(), maybe_bytes()), 0..6),
    ) {
        let edits: Vec<AgentEdit<'_>> = versions
            .iter()
            .map(|(before, after)| AgentEdit { before: before.as_deref(), after: after.as_deref() })
            .collect();
        match undo_edits(current.as_deref(), &edits) {
            UndoResult::Conflict { content, conflicts, .. } => {
                prop_assert!(!content.contains(&0), "{content:?}");
                prop_assert!(!content.starts_with(&[0xff, 0xfe]), "{content:?}");
                let lines = content.split(|byte| *byte == b'\n');
                let starts = lines.filter(|line| line.starts_with(b"<<<<<<< now")).count();
                prop_assert_eq!(starts, conflicts);
            }
            UndoResult::Content(content) => prop_assert!(content != current),
            UndoResult::Unchanged | UndoResult::Unmergeable { .. } => {}
        }
    }

    #[test]
    fn every_user_line_is_in_the_result(
        current in agent_lines(),
        user_lines in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        versions in prop::collection::vec((agent_lines(), agent_lines()), 1..5),
    ) {
        let mut current = current;
        for (n, position) in user_lines.iter().enumerate() {
            current.insert(position.index(current.len() + 1), format!("user {n}\n"));
        }
        let versions: Vec<(String, String)> =
            versions.iter().map(|(before, after)| (before.concat(), after.concat())).collect();
        let edits: Vec<AgentEdit<'_>> =
            versions.iter().map(|(before, after)| edit(before, after)).collect();
        let outcome = match undo(&current.concat(), &edits) {
            UndoResult::Content(content) => content.unwrap_or_default(),
            UndoResult::Conflict { content, .. } => content,
            UndoResult::Unchanged => current.concat().into_bytes(),
            UndoResult::Unmergeable { reason } => panic!("{reason}"),
        };
        let outcome = String::from_utf8(outcome).unwrap();
        for n in 0..user_lines.len() {
            let line = format!("user {n}");
            prop_assert!(outcome.lines().any(|other| other == line), "{line} is lost: {outcome}");
        }
    }
}
