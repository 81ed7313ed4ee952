//! What undo makes of a file that others have edited too.

#![allow(clippy::disallowed_methods, reason = "a test measures how long a merge takes")]

use super::{Step, Taken, take_back};
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::test_runner::Config;

fn step<'a>(before: &'a str, after: &'a str) -> Step<'a> {
    Step { before: Some(before.as_bytes()), after: Some(after.as_bytes()) }
}

fn undo(now: &str, steps: &[Step<'_>]) -> Taken {
    take_back(Some(now.as_bytes()), steps)
}

fn content(text: &str) -> Taken {
    Taken::Content(Some(text.as_bytes().to_vec()))
}

fn conflict(text: &str, places: usize) -> Taken {
    Taken::Conflict { content: text.as_bytes().to_vec(), places, left: 0 }
}

fn is_stuck(taken: &Taken, word: &str) -> bool {
    matches!(taken, Taken::Stuck { why } if why.contains(word))
}

#[test]
fn edits_before_between_and_after_stay() {
    let file = |lines: [&str; 7]| lines.map(|line| format!("{line}\n")).concat();
    let first = file(["0", "1", "2", "3", "4", "5", "6"]);
    let agent_1 = file(["0", "1", "2", "3", "4", "5", "agent"]);
    let person_1 = file(["0", "1", "person", "3", "4", "5", "agent"]);
    let agent_2 = file(["0", "1", "person", "3", "agent", "5", "agent"]);
    let person_2 = file(["person", "1", "person", "3", "agent", "5", "agent"]);
    let steps = [step(&first, &agent_1), step(&person_1, &agent_2)];
    let wanted = file(["person", "1", "person", "3", "4", "5", "6"]);
    assert_eq!(undo(&person_2, &steps), content(&wanted));
    assert_eq!(undo(&wanted, &steps), Taken::Unchanged, "undo twice is undo once");
}

#[test]
fn a_change_taken_back_by_hand_is_left_alone() {
    assert_eq!(undo("a\n", &[step("a\n", "b\n")]), Taken::Unchanged);
    assert_eq!(undo("a\n", &[step("a\n", "b\n"), step("b\n", "c\n")]), Taken::Unchanged);
    assert_eq!(undo("x\n", &[step("a\n", "b\n"), step("b\n", "a\n")]), Taken::Unchanged);
    assert_eq!(undo("x\n", &[]), Taken::Unchanged);
}

#[test]
fn a_conflict_is_marked_where_it_is_and_the_rest_is_taken_back() {
    let before = "a\nb\nc\nd\ne\nf\n";
    let after = "A\nb\nc\nd\nE\nf\n";
    let now = "A\nb\nc\nd\nmine\nf\n";
    let marked = "a\nb\nc\nd\n<<<<<<< now\nmine\n||||||| as the agent left it\nE\n=======\ne\n\
                  >>>>>>> before the agent\nf\n";
    assert_eq!(undo(now, &[step(before, after)]), conflict(marked, 1));
}

#[test]
fn markers_end_like_the_file_and_stand_on_lines_of_their_own() {
    let marked = "x\r\n<<<<<<< now\r\nmine\r\n||||||| as the agent left it\r\nB\r\n=======\r\n\
                  b\r\n>>>>>>> before the agent\r\n";
    assert_eq!(undo("x\r\nmine", &[step("x\r\nb", "x\r\nB")]), conflict(marked, 1));
    let emptied = "<<<<<<< now\n||||||| as the agent left it\nB\n=======\nb\n\
                   >>>>>>> before the agent\n";
    assert_eq!(undo("", &[step("b", "B")]), conflict(emptied, 1));
}

#[test]
fn an_older_change_elsewhere_is_taken_back_although_a_newer_one_is_in_conflict() {
    let first = "a\nb\nc\nd\ne\n";
    let agent_1 = "A\nb\nc\nd\ne\n";
    let person = "A\nb\nperson\nd\ne\n";
    let agent_2 = "A\nb\nperson\nd\nE\n";
    let now = "A\nb\nperson\nd\nmine\n";
    let marked = "a\nb\nperson\nd\n<<<<<<< now\nmine\n||||||| as the agent left it\nE\n=======\ne\n\
                  >>>>>>> before the agent\n";
    let steps = [step(first, agent_1), step(person, agent_2)];
    assert_eq!(undo(now, &steps), conflict(marked, 1));
}

#[test]
fn the_newest_of_two_conflicts_is_marked_and_markers_are_not_nested() {
    let steps = [step("a\n1\n", "b\n1\n"), step("c\n1\n", "d\n1\n")];
    let Taken::Conflict { content, places, left } = undo("e\n1\n", &steps) else { panic!() };
    assert_eq!(left, 1, "the older one is still to be taken back");
    let text = String::from_utf8(content).unwrap();
    assert_eq!((places, text.matches("<<<<<<<").count()), (1, 1));
    assert!(text.contains("=======\nc\n>>>>>>>"), "{text}");
}

#[test]
fn a_file_the_agent_made_goes_unless_it_was_edited() {
    let made = Step { before: None, after: Some(b"new\n") };
    assert_eq!(undo("new\n", &[made]), Taken::Content(None));
    assert_eq!(undo("newer\n", &[made, step("new\n", "newer\n")]), Taken::Content(None));
    assert!(is_stuck(&undo("new\nmine\n", &[made]), "edited since"));
    assert_eq!(take_back(None, &[made]), Taken::Unchanged);
    let steps = [made, step("new\nmine\n", "agent\nmine\n")];
    assert!(is_stuck(&undo("agent\nmine\n", &steps), "edited since"));
}

#[test]
fn a_file_somebody_removed_stays_removed() {
    assert!(is_stuck(&take_back(None, &[step("a\n", "b\n")]), "removed since"));
    let gone = Step { before: Some(b"a\n"), after: None };
    assert_eq!(take_back(None, &[gone]), content("a\n"));
    let passing = [Step { before: None, after: Some(b"a\n") }, gone];
    assert_eq!(take_back(None, &passing), Taken::Unchanged);
}

#[test]
fn a_file_the_agent_removed_does_not_replace_another_one() {
    let gone = Step { before: Some(b"a\n"), after: None };
    assert!(is_stuck(&undo("mine\n", &[gone]), "stands in its place"));
    assert_eq!(undo("a\n", &[gone]), Taken::Unchanged);
}

#[test]
fn binary_files_are_merged_or_left_but_never_marked() {
    let binary = |text: &str| text.replace('_', "\0");
    let (before, after) = (binary("_a\nb\nc\n_d\n"), binary("_A\nb\nc\n_d\n"));
    let clean = binary("_A\nb\nc\n_mine\n");
    assert_eq!(undo(&clean, &[step(&before, &after)]), content(&binary("_a\nb\nc\n_mine\n")));
    let clash = binary("mine\nb\nc\n_d\n");
    assert!(is_stuck(&undo(&clash, &[step(&before, &after)]), "not a text"));
    let late = format!("{}\0\n", "x".repeat(9_000));
    let text = undo("mine\n", &[step(&late, "after\n")]);
    assert!(matches!(text, Taken::Conflict { .. }), "a zero byte far into a file: {text:?}");
}

#[test]
fn wide_text_is_merged_by_its_own_lines() {
    type Encode = fn(u16) -> [u8; 2];
    for (encode, other) in [
        (u16::to_le_bytes as Encode, u16::to_be_bytes as Encode),
        (u16::to_be_bytes, u16::to_le_bytes),
    ] {
        let wide = |text: &str, encode: Encode| -> Vec<u8> {
            ['\u{feff}'].into_iter().chain(text.chars()).flat_map(|c| encode(c as u16)).collect()
        };
        // Characters that hold the byte of a line feed must not be cut apart.
        let before = wide("a\u{0a0a}\nb\nc\u{0a41}\nd\n", encode);
        let after = wide("A\u{0a0a}\nb\nc\u{0a41}\nd\n", encode);
        let now = wide("A\u{0a0a}\nb\nc\u{410a}\nd\n", encode);
        let steps = [Step { before: Some(&before), after: Some(&after) }];
        let wanted = wide("a\u{0a0a}\nb\nc\u{410a}\nd\n", encode);
        assert_eq!(take_back(Some(&now), &steps), Taken::Content(Some(wanted)));
        let clash = wide("mine\nb\nc\u{0a41}\nd\n", encode);
        assert!(is_stuck(&take_back(Some(&clash), &steps), "not a text"));
        let turned = wide("A\u{0a0a}\nb\nc\u{410a}\nd\n", other);
        assert!(is_stuck(&take_back(Some(&turned), &steps), "encoding"));
        assert!(is_stuck(&take_back(Some(&clash[..7]), &steps), ""), "cut in a character");
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
    let [now, versions @ ..] = &files;
    let [one, two, three, four] = versions;
    let start = std::time::Instant::now();
    let taken = undo(now, &[step(one, two), step(three, four)]);
    let time = start.elapsed();
    println!("files of 60 000 lines: {time:?}");
    assert!(time.as_secs() < 30, "{time:?}");
    assert!(!matches!(taken, Taken::Unchanged | Taken::Content(_)), "nothing was merged");

    let huge = "x".repeat(super::LARGEST + 1);
    assert!(is_stuck(&undo(&huge, &[step("a\n", "b\n")]), "too large"));
    assert_eq!(undo(&huge, &[step("a\n", &huge)]), content("a\n"), "no merge is needed");
}

#[test]
fn a_large_file_with_few_edits_is_merged() {
    let file = |agent: &str, person: &str| -> String {
        let lines = (0..20_000).map(|n| match n {
            3 | 12_000 => format!("{agent}\n"),
            8_000 | 19_990 => format!("{person}\n"),
            _ => format!("line {}\n", n % 1_000),
        });
        lines.collect()
    };
    let (before, after, now) = (file("", ""), file("agent", ""), file("agent", "person"));
    let start = std::time::Instant::now();
    let taken = undo(&now, &[step(&before, &after)]);
    println!("a file of 20 000 lines: {:?}", start.elapsed());
    assert!(taken == content(&file("", "person")));
}

// --- Any file ----------------------------------------------------------------------------------

/// Who edits which block, and how many lines it has then.
#[derive(Clone, Debug)]
struct Edit {
    agent: bool,
    block: usize,
    lines: usize,
}

/// Blocks of lines with a line between them that nobody touches. The even ones are the agent's.
#[derive(Clone)]
struct File {
    blocks: Vec<Vec<String>>,
    end: &'static str,
    open: bool,
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let blocks = self.blocks.iter().enumerate();
        let lines =
            blocks.flat_map(|(n, block)| block.iter().cloned().chain([format!("fixed {n}")]));
        let text: String = lines.map(|line| line + self.end).collect();
        let text = if self.open { text.trim_end() } else { &text };
        text.as_bytes().to_vec()
    }
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (any::<bool>(), 0..6_usize, 0..4_usize).prop_map(|(agent, block, lines)| Edit {
        agent,
        block,
        lines,
    });
    prop::collection::vec(edit, 1..=30)
}

/// Few characters, so that lines repeat and everything special turns up.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop::collection::vec(
        prop_oneof![
            4 => Just(b'\n'), 2 => Just(b'a'), 2 => Just(b'b'), 1 => Just(b'\r'),
            1 => Just(0), 1 => Just(0xff), 1 => Just(0xfe), 1 => any::<u8>(),
        ],
        0..40,
    );
    prop_oneof![odd.clone(), odd.prop_map(|odd| [&[0xff, 0xfe], odd.as_slice()].concat()),]
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
    fn apart_from_each_other_edits_of_people_stay_and_those_of_the_agent_go(
        sizes in prop::collection::vec(0..4_usize, 12),
        edits in edits(),
        windows in any::<bool>(),
        open in any::<bool>(),
    ) {
        let blocks = sizes.iter().enumerate();
        let blocks = blocks.map(|(n, size)| (0..*size).map(|i| format!("{n}.{i}")).collect());
        let end = if windows { "\r\n" } else { "\n" };
        let mut file = File { blocks: blocks.collect(), end, open };
        let mut wanted = file.clone();
        let mut versions = Vec::new();
        for (n, edit) in edits.iter().enumerate() {
            let who = if edit.agent { "agent" } else { "person" };
            let lines: Vec<String> = (0..edit.lines).map(|i| format!("{who} {n} {i}")).collect();
            let before = file.bytes();
            if edit.agent {
                file.blocks[edit.block * 2] = lines;
                versions.push((before, file.bytes()));
            } else {
                file.blocks[edit.block * 2 + 1] = lines.clone();
                wanted.blocks[edit.block * 2 + 1] = lines;
            }
        }
        let steps: Vec<Step<'_>> = versions
            .iter()
            .map(|(before, after)| Step { before: Some(before), after: Some(after) })
            .collect();
        let (now, wanted) = (file.bytes(), wanted.bytes());
        let taken = take_back(Some(&now), &steps);
        if now == wanted {
            prop_assert_eq!(taken, Taken::Unchanged);
        } else {
            prop_assert_eq!(taken, Taken::Content(Some(wanted)));
        }
    }

    #[test]
    fn what_nobody_else_touched_is_restored_whatever_its_bytes(
        versions in prop::collection::vec(maybe_bytes(), 1..12),
    ) {
        let steps: Vec<Step<'_>> = versions
            .windows(2)
            .map(|pair| Step { before: pair[0].as_deref(), after: pair[1].as_deref() })
            .collect();
        let (first, now) = (versions.first().unwrap(), versions.last().unwrap());
        let taken = take_back(now.as_deref(), &steps);
        if first == now {
            prop_assert_eq!(taken, Taken::Unchanged);
        } else {
            prop_assert_eq!(taken, Taken::Content(first.clone()));
        }
    }

    #[test]
    fn nothing_panics_and_only_text_is_marked(
        now in maybe_bytes(),
        versions in prop::collection::vec((maybe_bytes(), maybe_bytes()), 0..6),
    ) {
        let steps: Vec<Step<'_>> = versions
            .iter()
            .map(|(before, after)| Step { before: before.as_deref(), after: after.as_deref() })
            .collect();
        match take_back(now.as_deref(), &steps) {
            Taken::Conflict { content, places, .. } => {
                prop_assert!(!content.contains(&0), "{content:?}");
                prop_assert!(!content.starts_with(&[0xff, 0xfe]), "{content:?}");
                let lines = content.split(|byte| *byte == b'\n');
                let starts = lines.filter(|line| line.starts_with(b"<<<<<<< now")).count();
                prop_assert_eq!(starts, places);
            }
            Taken::Content(content) => prop_assert!(content != now),
            Taken::Unchanged | Taken::Stuck { .. } => {}
        }
    }

    #[test]
    fn every_line_of_a_person_is_somewhere_in_the_outcome(
        now in agent_lines(),
        mine in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        versions in prop::collection::vec((agent_lines(), agent_lines()), 1..5),
    ) {
        let mut now = now;
        for (n, place) in mine.iter().enumerate() {
            now.insert(place.index(now.len() + 1), format!("mine {n}\n"));
        }
        let versions: Vec<(String, String)> =
            versions.iter().map(|(before, after)| (before.concat(), after.concat())).collect();
        let steps: Vec<Step<'_>> =
            versions.iter().map(|(before, after)| step(before, after)).collect();
        let outcome = match undo(&now.concat(), &steps) {
            Taken::Content(content) => content.unwrap_or_default(),
            Taken::Conflict { content, .. } => content,
            Taken::Unchanged => now.concat().into_bytes(),
            Taken::Stuck { why } => panic!("{why}"),
        };
        let outcome = String::from_utf8(outcome).unwrap();
        for n in 0..mine.len() {
            let line = format!("mine {n}");
            prop_assert!(outcome.lines().any(|found| found == line), "{line} is lost: {outcome}");
        }
    }
}
