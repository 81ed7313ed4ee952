//! What a brief says, and what is told when it would say something else.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use expect_test::expect;
use proptest::prelude::*;
use windlass_protocol::{Message, Part, Role};

fn advice(path: &str, text: &str) -> Advice {
    Advice { path: path.into(), text: text.into(), length: text.len() as u64 }
}

fn full() -> Brief {
    Brief {
        folder: "/home/ada/app".into(),
        platform: "linux".into(),
        day: Some(Day::of(Millis(1_794_700_800_000))),
        git: Git::Branch("main".into()),
        mode: Some(Mode::Ask),
        instructions: vec![
            advice("../AGENTS.md", "Answer in English.\n"),
            advice("AGENTS.md", "Run `make check`.\r\n"),
        ],
    }
}

/// What follows the words that every brief begins with.
fn rest(brief: &Brief) -> String {
    brief.text().strip_prefix(include_str!("system.md").trim_end()).unwrap().to_owned()
}

#[test]
fn a_brief_says_where_when_and_how() {
    expect![[r#"


        <environment>
        Workspace: /home/ada/app
        Platform: linux
        Date: 2026-11-15
        Git: yes, branch main
        Mode: ask: the person is asked about every change and most commands
        </environment>

        <instructions from="../AGENTS.md">
        Answer in English.
        </instructions>

        <instructions from="AGENTS.md">
        Run `make check`.
        </instructions>
    "#]]
    .assert_eq(&rest(&full()));
}

#[test]
fn the_words_every_brief_begins_with_are_few() {
    let words = include_str!("system.md");
    assert!(words.len() < 2_000, "{} bytes", words.len());
    for fact in ["relative to the workspace", "A no is an answer", "may have run", "Be brief"] {
        assert!(words.contains(fact), "{fact}");
    }
}

#[test]
fn days_are_those_of_the_calendar() {
    for (seconds, day) in [
        (0, "1970-01-01"),
        (951_782_399, "2000-02-28"),
        (951_782_400, "2000-02-29"),
        (951_868_800, "2000-03-01"),
        (1_794_787_199, "2026-11-15"),
        (1_794_787_200, "2026-11-16"),
        (4_107_542_400, "2100-03-01"),
    ] {
        assert_eq!(Day::of(Millis(seconds * 1_000)).0, day);
    }
}

#[test]
fn instructions_share_the_room_and_say_where_they_were_cut() {
    let brief = Brief {
        instructions: vec![
            advice("a", &"line of a\n".repeat(10_000)),
            advice("b", "short and whole"),
            Advice { path: "c".into(), text: "é".repeat(40_000), length: 1_000_000 },
        ],
        ..Brief::default()
    };
    let text = rest(&brief);
    assert!(text.len() < INSTRUCTIONS + 1_000, "{}", text.len());
    assert!(text.contains("short and whole\n</instructions>"));
    assert!(text.contains("of 100000 bytes; read a for the rest]"));
    assert!(text.contains("of 1000000 bytes; read c for the rest]"));
    assert!(text.contains("line of a\n[cut"), "it is cut at the end of a line");
}

#[test]
fn what_a_person_would_not_see_the_model_does_not_read() {
    let hidden = "plain\u{202e}\u{200b}\u{1b}[31m\u{e0041}\u{e0042} text";
    let brief = Brief { instructions: vec![advice("a\"\n>b", hidden)], ..Brief::default() };
    assert!(rest(&brief).contains("<instructions from=\"a___b\">\nplain[31m text\n</instr"));
}

fn told(texts: &[&str]) -> Vec<Message> {
    let message = |text: &&str| Message {
        role: Role::Context,
        seq: 1,
        model: None,
        parts: vec![Part::text(*text)],
    };
    texts.iter().map(message).collect()
}

#[test]
fn only_what_became_different_is_told_and_only_once() {
    let first = full().text();
    let mut later = full();
    later.day = Some(Day::of(Millis(1_794_787_200_000)));
    later.mode = Some(Mode::Plan);
    later.instructions = vec![advice("AGENTS.md", "Run `just check`."), advice("docs/x.md", "x")];
    let news = Said::by(&first).difference(&Said::by(&later.text())).unwrap();
    expect![[r#"
        What you were told at the beginning has changed. Now this holds:
        <environment>
        Date: 2026-11-16
        Mode: plan: nothing may be changed; look around, and answer with a plan of what you would do
        </environment>

        <instructions from="AGENTS.md">
        Run `just check`.
        </instructions>

        <instructions from="docs/x.md">
        x
        </instructions>

        <instructions from="../AGENTS.md">
        (these no longer hold)
        </instructions>
    "#]]
    .assert_eq(&news);
    let mut known = Said::by(&first);
    for message in told(&["<environment>\nMode: full\n</environment>", &news]) {
        known.hear(&message);
    }
    assert_eq!(known.difference(&Said::by(&later.text())), None);
    let back = known.difference(&Said::by(&first)).unwrap();
    assert!(back.contains("Answer in English.") && back.contains("docs/x.md"), "{back}");
}

proptest! {
    #[test]
    fn whatever_instructions_say_telling_the_difference_tells_all_of_it(
        before in proptest::collection::btree_map("[a-c\"<]{1,2}", "[a-c\n<>/ ]{0,12}|.*|</instructions>|<environment>\nMode: full\n</environment>", 0..4),
        after in proptest::collection::btree_map("[a-c\"<]{1,2}", "[a-c\n<>/ ]{0,12}|.*|</instructions>|\n<skills>", 0..4),
    ) {
        let brief = |texts: &std::collections::BTreeMap<String, String>| Brief {
            mode: Some(Mode::Ask),
            instructions: texts.iter().map(|(path, text)| advice(path, text)).collect(),
            ..Brief::default()
        }
        .text();
        let (first, later) = (brief(&before), brief(&after));
        let (mut known, now) = (Said::by(&first), Said::by(&later));
        prop_assert!(first.contains("Mode: ask"));
        if let Some(news) = known.difference(&now) {
            for message in told(&[&news]) {
                known.hear(&message);
            }
        }
        prop_assert_eq!(known.difference(&now), None);
    }
}
