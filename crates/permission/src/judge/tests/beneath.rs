//! What patterns and searches may show besides what they name.

use super::{Machine, Mode, judged_on};
use crate::Level;

fn level(machine: &Machine, own: &str, mode: Mode, text: &str) -> Level {
    judged_on(machine, own, &[], mode, text).level
}

#[test]
fn a_pattern_that_can_mean_what_a_rule_closes_is_not_allowed() {
    let machine = Machine::default();
    let deny = r#"{"read": {"secret.txt": "deny", "a/*.pem": "deny"}, "bash": "allow"}"#;
    for text in [
        "cat s*.txt",
        "cat *",
        "cat ?ecret.txt",
        "cat [s]ecret.txt",
        "cat S*.TXT",
        "cat /w/s*",
        "cat b/../s*",
        "cd a && cat *.pem",
        "cat a/*",
        "cat */x.pem",
        "head -1 < s*.txt",
        "bash -c 'cat s*.txt'",
    ] {
        for mode in [Mode::Ask, Mode::Auto] {
            assert_eq!(level(&machine, deny, mode, text), Level::Ask, "{mode:?} {text}");
        }
        assert_eq!(level(&machine, deny, Mode::Full, text), Level::Deny, "{text}");
    }
    assert_eq!(level(&machine, deny, Mode::Full, "cat secret.txt"), Level::Deny);
    for text in ["cat *.md", "cat b/*", "ls src/*.rs", "cat [a-r]*.md"] {
        assert_eq!(level(&machine, deny, Mode::Ask, text), Level::Allow, "{text}");
    }
    let others = judged_on(&machine, "{}", &[r#"{"read": {"k/*": "ask"}}"#], Mode::Ask, "cat k*/x");
    assert_eq!(others.level, Level::Ask);
    assert!(others.segments[0].reason.contains("k/*"), "{:?}", others.segments);
    let later = r#"{"read": {"*": "ask", "docs/*": "allow"}}"#;
    assert_eq!(level(&machine, later, Mode::Ask, "cat docs/*.md"), Level::Allow);
    assert_eq!(level(&machine, later, Mode::Ask, "cat doc*/x"), Level::Ask);
}

#[test]
fn a_private_file_that_is_there_is_asked_about_however_it_is_reached() {
    let here = Machine::with(&["src/a.rs", "conf/.env", "conf/prod.env"]);
    for text in [
        "grep -r SECRET .",
        "grep -rn SECRET",
        "grep -R SECRET conf",
        "grep -d recurse SECRET .",
        "egrep --recursive x /w",
        "grep -r x *",
        "cd conf && grep -r x .",
        "rg --hidden SECRET",
        "rg -. SECRET .",
        "rg -uu SECRET",
        "rg -u -u SECRET conf",
        "rg -g '.env' SECRET",
        "rg SECRET",
        "diff -r conf src",
        "cat conf/*",
        "cat */prod*",
        "cat conf/p*",
        "ls && grep -r SECRET .",
    ] {
        assert_eq!(level(&here, "{}", Mode::Ask, text), Level::Ask, "{text}");
        assert_eq!(level(&here, "{}", Mode::Auto, text), Level::Ask, "{text}");
        let empty = Machine::with(&["src/a.rs", "conf/.env.example"]);
        assert_eq!(level(&empty, "{}", Mode::Ask, text), Level::Allow, "{text}");
    }
    // A rule that does not speak of secrets does not mean them.
    let rule = r#"{"bash": {"grep *": "allow"}}"#;
    assert_eq!(level(&here, rule, Mode::Ask, "grep -r SECRET ."), Level::Ask);
    for text in [
        "grep -rn TODO src",
        "grep -r --include='*.rs' x .",
        "grep x src/a.rs",
        "rg -g '*.rs' x",
        "rg --hidden x src",
        "rg --files --hidden",
        "cat src/*",
        "ls | rg x",
    ] {
        assert_eq!(level(&here, "{}", Mode::Ask, text), Level::Allow, "{text}");
    }
    let hidden = Machine::with(&[".env", ".cache/x.env"]);
    for text in ["rg TODO", "cat *", "rg -u TODO"] {
        assert_eq!(level(&hidden, "{}", Mode::Ask, text), Level::Allow, "{text}");
    }
}

#[test]
fn a_search_over_what_a_rule_closes_is_asked_about() {
    let deny = r#"{"read": {"keys/*": "deny"}, "bash": {"grep *": "allow", "*": "allow"}}"#;
    let here = Machine::with(&["keys/a.pem", "src/a.rs"]);
    assert_eq!(level(&here, deny, Mode::Ask, "grep -r x ."), Level::Ask);
    assert_eq!(level(&here, deny, Mode::Full, "grep -r x ."), Level::Deny);
    assert_eq!(level(&here, deny, Mode::Ask, "grep -r x src"), Level::Allow);
    let none = Machine::with(&["src/a.rs"]);
    assert_eq!(level(&none, deny, Mode::Ask, "rg x"), Level::Allow);
    // Where the look ends early, nobody knows.
    let large = Machine { more: true, ..Machine::with(&["src/a.rs"]) };
    assert_eq!(level(&large, deny, Mode::Ask, "rg x"), Level::Ask);
    assert_eq!(level(&large, deny, Mode::Ask, "rg x src"), Level::Allow);
    assert_eq!(level(&large, "{}", Mode::Ask, "grep -r x ."), Level::Allow);
}

#[test]
fn more_folders_than_are_looked_through_end_in_a_question() {
    let machine = Machine::default();
    let many = |count: usize| {
        (0..count).map(|at| format!("grep -r x d{at}")).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(level(&machine, "{}", Mode::Ask, &many(16)), Level::Allow);
    assert_eq!(level(&machine, "{}", Mode::Ask, &many(17)), Level::Ask);
    let same = "grep -r x .; ".repeat(200);
    assert_eq!(level(&machine, "{}", Mode::Ask, &same), Level::Allow);
}

#[test]
fn what_has_no_command_in_it_says_so() {
    for text in ["", " ", "\n"] {
        let judged = judged_on(&Machine::default(), "{}", &[], Mode::Auto, text);
        assert_eq!(judged.level, Level::Ask, "{text:?}");
        assert_eq!(judged.segments[0].reason, "it is empty", "{text:?}");
    }
    let comment = judged_on(&Machine::default(), "{}", &[], Mode::Ask, "# ls");
    assert!(comment.level == Level::Ask && !comment.segments[0].reason.is_empty());
}
