//! The corpora: commands with the verdict that each should get.

use super::{Machine, Mode, judged_on};
use crate::Level;
use serde_json::Value;

pub(super) struct Row {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) verdict: String,
}

fn rows(text: &str, kind: &str, verdict: &str) -> Vec<Row> {
    let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let mut text = field(&row, "cmd");
            if text == "true;×60 id" {
                text = "true; ".repeat(60) + "id";
            }
            let (id, kind, verdict) = (field(&row, "id"), field(&row, kind), field(&row, verdict));
            Row { id, text, kind, verdict }
        })
        .collect()
}

pub(super) fn attacks() -> Vec<Row> {
    rows(include_str!("../../../corpora/permission.jsonl"), "cat", "verdict")
}

pub(super) fn everyday() -> Vec<Row> {
    rows(include_str!("../../../corpora/ordinary.jsonl"), "kind", "auto")
}

/// The links that a row speaks of.
pub(super) fn machine(row: &Row) -> Machine {
    match row.id.as_str() {
        "P132" => Machine::linked("/w/link", "/home/u/.zshrc"),
        "P133" => Machine::linked("/w/link", "/home/u/.ssh/id_rsa"),
        "P134" => Machine::linked("/w/s", "/home/u/.ssh"),
        _ => Machine::default(),
    }
}

/// The rules that a row takes for granted.
pub(super) fn own(row: &Row) -> &'static str {
    match row.id.as_str() {
        "P010" => r#"{"bash": {"git commit *": "allow"}}"#,
        _ => "{}",
    }
}

pub(super) fn verdict(row: &Row, mode: Mode, text: &str) -> Level {
    judged_on(&machine(row), own(row), &[], mode, text).level
}

/// Rows that are judged otherwise than the corpus says, and why that is right.
const DIFFERENCES: &[(&str, Level, &str)] = &[
    ("P142", Level::Deny, "We protect .gitmodules, because git fetches and runs by it."),
    (
        "P154",
        Level::Ask,
        "Trying a server of one's own is everyday work, so it is asked about; where nobody is asked it is denied.",
    ),
];

/// Rows that are no command lines, and what covers them instead.
const NO_COMMANDS: &[(&str, &str)] = &[
    ("P153", "The proxy refuses names with control bytes; its tests show it."),
    ("P160", "Leaving the sandbox is an access of its own that only a person opens."),
    ("P161", "The folder of a call lies in the workspace, or the call asks."),
    ("P162", "The project crate reads no environment from a repository."),
    ("P163", "The project crate takes no address from a repository."),
    ("P164", "Trust in a server is kept by what it is started with."),
    ("P165", "Trust in a server's tools is kept by what they say."),
    ("P166", "What a server says about its tools opens nothing."),
    ("P167", "Tools of servers have names of their own."),
    ("P168", "There are no links that start the program."),
    ("P169", "The project crate keeps trust by the real path of the workspace."),
];

fn level(verdict: &str) -> Level {
    match verdict {
        "allow" | "allow*" => Level::Allow,
        "ask" => Level::Ask,
        "deny" => Level::Deny,
        other => panic!("{other}"),
    }
}

#[test]
fn attacks_get_the_verdicts_of_the_corpus() {
    let mut wrong = Vec::new();
    let (mut exact, mut all, mut lax) = (0, 0, 0);
    for row in attacks() {
        let found = verdict(&row, Mode::Ask, &row.text);
        let wanted = level(&row.verdict);
        lax += usize::from(found == Level::Allow && wanted != Level::Allow);
        if let Some((_, why)) = NO_COMMANDS.iter().find(|(id, _)| *id == row.id) {
            assert!(why.ends_with('.'));
            continue;
        }
        all += 1;
        exact += usize::from(found == wanted);
        match DIFFERENCES.iter().find(|(id, ..)| *id == row.id) {
            Some((_, expected, _)) if found == *expected && found != wanted => {}
            Some((_, expected, _)) => {
                wrong.push(format!("{}: {found}, listed as {expected}", row.id))
            }
            None if found == wanted => {}
            None => wrong.push(format!("{}: {found} for {wanted}: {}", row.id, row.text)),
        }
    }
    println!("attacks: {exact} of {all} exact, {lax} allowed that should not be");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(lax, 0);
    assert!(exact * 100 >= all * 95, "{exact} of {all}");
}

#[test]
fn what_the_corpus_denies_is_allowed_in_no_mode() {
    for row in attacks().iter().filter(|row| row.verdict == "deny") {
        if NO_COMMANDS.iter().any(|(id, _)| *id == row.id) {
            continue;
        }
        let listed = DIFFERENCES.iter().find(|(id, ..)| *id == row.id);
        let wanted = listed.map_or(Level::Deny, |(_, level, _)| *level);
        for mode in [Mode::Plan, Mode::Ask, Mode::Auto, Mode::Full] {
            assert!(verdict(row, mode, &row.text) >= wanted, "{} {mode:?}", row.text);
        }
    }
}

#[test]
fn everyday_commands_are_seldom_asked_about() {
    let rows = everyday();
    let asked = |mode: Mode, kinds: &[&str]| -> (Vec<&Row>, usize) {
        let rows: Vec<&Row> =
            rows.iter().filter(|row| kinds.contains(&row.kind.as_str())).collect();
        let all = rows.len();
        let asked = rows.into_iter().filter(|row| verdict(row, mode, &row.text) != Level::Allow);
        (asked.collect(), all)
    };
    let list = |rows: &[&Row]| {
        rows.iter().map(|row| format!("{} {}", row.id, row.text)).collect::<Vec<_>>().join("\n  ")
    };
    let (ask, reads) = asked(Mode::Ask, &["read"]);
    println!("mode ask: {} of {reads} looks are asked about\n  {}", ask.len(), list(&ask));
    let (auto, works) = asked(Mode::Auto, &["read", "work"]);
    println!("mode auto: {} of {works} are asked about\n  {}", auto.len(), list(&auto));
    assert!(ask.len() * 100 <= reads * 5);
    assert!(auto.len() * 100 <= works * 2);
    for mode in [Mode::Ask, Mode::Auto] {
        let (held, all) = asked(mode, &["network", "guard"]);
        assert_eq!(held.len(), all, "{mode:?} allows some that connect or destroy");
        let (works, all) = asked(mode, &["work"]);
        if mode == Mode::Ask {
            assert_eq!(works.len(), all, "mode ask allows some that change files");
        }
    }
    for row in rows.iter().filter(|row| row.kind == "network") {
        let judged = judged_on(&machine(row), "{}", &[], Mode::Auto, &row.text);
        assert!(judged.connects, "{} connects", row.text);
    }
}

/// A rule for a program is not a rule for what it wraps, for the variables before it, or for what
/// stands beside it.
#[test]
fn rules_that_allow_a_program_do_not_allow_what_hides_behind_it() {
    let own = r#"{"bash": {"ls *": "allow", "echo *": "allow", "cat *": "allow", "true": "allow",
        "env *": "allow", "timeout *": "allow", "nice *": "allow", "xargs *": "allow", "find *": "allow",
        "nohup *": "allow", "stdbuf *": "allow", "flock *": "allow", "script *": "allow",
        "command *": "allow", "builtin *": "allow", "exec *": "allow", "time *": "allow",
        "git *": "allow", "npm *": "allow", "python3 *": "allow", "perl *": "allow"}}"#;
    let mut tried = 0;
    for row in attacks() {
        let kinds = ["wrapper", "env", "syntax", "path"];
        if !kinds.contains(&row.kind.as_str()) {
            continue;
        }
        let found = judged_on(&machine(&row), own, &[], Mode::Ask, &row.text).level;
        assert!(found >= Level::Ask, "{} {}", row.id, row.text);
        tried += 1;
    }
    assert!(tried > 60, "{tried}");
}
