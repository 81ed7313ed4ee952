//! The corpora: commands with their expected verdicts.

use super::{MockPathLookup, PermissionMode, evaluate_with};
use crate::PermissionLevel;
use serde_json::Value;

pub(super) struct CorpusTestCase {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) verdict: String,
}

fn parse_rows(text: &str, kind: &str, verdict: &str) -> Vec<CorpusTestCase> {
    let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let mut text = field(&row, "cmd");
            if text == "true;×60 id" {
                text = "true; ".repeat(60) + "id";
            }
            let (id, kind, verdict) = (field(&row, "id"), field(&row, kind), field(&row, verdict));
            CorpusTestCase { id, text, kind, verdict }
        })
        .collect()
}

pub(super) fn attack_rows() -> Vec<CorpusTestCase> {
    parse_rows(include_str!("../../../corpora/permission.jsonl"), "cat", "verdict")
}

pub(super) fn ordinary_rows() -> Vec<CorpusTestCase> {
    parse_rows(include_str!("../../../corpora/ordinary.jsonl"), "kind", "auto")
}

/// Commands of many languages with variables, temporary files, loops and servers.
fn everyday_rows() -> Vec<CorpusTestCase> {
    parse_rows(include_str!("../../../corpora/everyday.jsonl"), "kind", "auto")
}

/// Commands that write outside, read secrets, connect or destroy, plainly or hidden. Those marked
/// `confined` hide it in the language of another program, and only the sandbox stops them.
fn hostile_rows() -> Vec<CorpusTestCase> {
    parse_rows(include_str!("../../../corpora/hostile.jsonl"), "kind", "auto")
}

/// Returns the links that a row assumes.
pub(super) fn lookup_for(row: &CorpusTestCase) -> MockPathLookup {
    match row.id.as_str() {
        "P132" => MockPathLookup::with_link("/w/link", "/home/u/.zshrc"),
        "P133" => MockPathLookup::with_link("/w/link", "/home/u/.ssh/id_rsa"),
        "P134" => MockPathLookup::with_link("/w/s", "/home/u/.ssh"),
        id if id.starts_with(['E', 'H']) => MockPathLookup {
            has_own_loopback: true,
            has_private_tmp: true,
            ..MockPathLookup::default()
        },
        _ => MockPathLookup::default(),
    }
}

/// Returns the user rules that a row assumes.
pub(super) fn user_rules_for(row: &CorpusTestCase) -> &'static str {
    match row.id.as_str() {
        "P010" => r#"{"bash": {"git commit *": "allow"}}"#,
        _ => "{}",
    }
}

pub(super) fn level_for(row: &CorpusTestCase, mode: PermissionMode, text: &str) -> PermissionLevel {
    evaluate_with(&lookup_for(row), user_rules_for(row), &[], mode, text).level
}

/// Rows whose verdict differs from the corpus, with the reason.
const KNOWN_DIFFERENCES: &[(&str, PermissionLevel, &str)] = &[
    (
        "P142",
        PermissionLevel::Deny,
        ".gitmodules is protected, because it controls what git fetches and runs.",
    ),
    (
        "P154",
        PermissionLevel::Ask,
        "Requests to a local server are everyday work, so they require approval; without a user \
        they are denied.",
    ),
];

/// Rows that are not command lines, with the place that covers them.
const NOT_COMMAND_LINES: &[(&str, &str)] = &[
    ("P153", "The proxy refuses names with control bytes; its tests check that."),
    ("P160", "Leaving the sandbox is a separate access that only the user approves."),
    ("P161", "A call in a folder outside the workspace requires approval."),
    ("P162", "The project crate reads no environment from a repository."),
    ("P163", "The project crate takes no address from a repository."),
    ("P164", "Trust in a server depends on how it is started."),
    ("P165", "Trust in a server's tools depends on their definitions."),
    ("P166", "Annotations of a server about its tools grant nothing."),
    ("P167", "Tool names of servers have a prefix."),
    ("P168", "The program registers no URL scheme."),
    ("P169", "The project crate stores trust by the resolved path of the workspace."),
];

fn parse_level(verdict: &str) -> PermissionLevel {
    match verdict {
        "allow" | "allow*" => PermissionLevel::Allow,
        "ask" => PermissionLevel::Ask,
        "deny" => PermissionLevel::Deny,
        other => panic!("{other}"),
    }
}

#[test]
fn attacks_get_the_verdicts_of_the_corpus() {
    let mut failures = Vec::new();
    let (mut exact, mut total, mut wrongly_allowed) = (0, 0, 0);
    for row in attack_rows() {
        let found = level_for(&row, PermissionMode::Ask, &row.text);
        let expected_level = parse_level(&row.verdict);
        wrongly_allowed += usize::from(
            found == PermissionLevel::Allow && expected_level != PermissionLevel::Allow,
        );
        if let Some((_, reason)) = NOT_COMMAND_LINES.iter().find(|(id, _)| *id == row.id) {
            assert!(reason.ends_with('.'));
            continue;
        }
        total += 1;
        exact += usize::from(found == expected_level);
        match KNOWN_DIFFERENCES.iter().find(|(id, ..)| *id == row.id) {
            Some((_, expected, _)) if found == *expected && found != expected_level => {}
            Some((_, expected, _)) => {
                failures.push(format!("{}: {found}, listed as {expected}", row.id))
            }
            None if found == expected_level => {}
            None => {
                failures.push(format!("{}: {found} for {expected_level}: {}", row.id, row.text))
            }
        }
    }
    println!("attacks: {exact} of {total} exact, {wrongly_allowed} wrongly allowed");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(wrongly_allowed, 0);
    assert!(exact * 100 >= total * 95, "{exact} of {total}");
}

#[test]
fn commands_denied_by_the_corpus_are_allowed_in_no_mode() {
    for row in attack_rows().iter().filter(|row| row.verdict == "deny") {
        if NOT_COMMAND_LINES.iter().any(|(id, _)| *id == row.id) {
            continue;
        }
        let listed = KNOWN_DIFFERENCES.iter().find(|(id, ..)| *id == row.id);
        let expected_level = listed.map_or(PermissionLevel::Deny, |(_, level, _)| *level);
        for mode in
            [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::Auto, PermissionMode::Full]
        {
            assert!(level_for(row, mode, &row.text) >= expected_level, "{} {mode:?}", row.text);
        }
    }
}

#[test]
fn hostile_commands_require_approval_in_modes_ask_and_auto() {
    let rows = hostile_rows();
    let mut allowed = Vec::new();
    for row in &rows {
        for mode in [PermissionMode::Ask, PermissionMode::Auto] {
            let is_confined = mode == PermissionMode::Auto && row.verdict == "confined";
            let is_allowed = level_for(row, mode, &row.text) == PermissionLevel::Allow;
            if is_allowed != is_confined {
                allowed.push(format!("{} {mode:?} {:?}: {}", row.id, row.text, row.verdict));
            }
        }
    }
    println!("hostile: {} of {} allowed", allowed.len(), rows.len());
    assert!(allowed.is_empty(), "{}", allowed.join("\n"));
    assert!(rows.len() >= 300);
}

#[test]
fn everyday_commands_rarely_require_approval() {
    check_approval_rates(&ordinary_rows(), 5);
    check_approval_rates(&everyday_rows(), 10);
}

/// Checks that at most this percentage of reads require approval in mode ask, and two percent of
/// all commands that stay in the workspace in mode auto.
fn check_approval_rates(rows: &[CorpusTestCase], max_ask_percent: usize) {
    let rows_requiring_approval =
        |mode: PermissionMode, kinds: &[&str]| -> (Vec<&CorpusTestCase>, usize) {
            let rows: Vec<&CorpusTestCase> =
                rows.iter().filter(|row| kinds.contains(&row.kind.as_str())).collect();
            let total = rows.len();
            let requiring_approval = rows
                .into_iter()
                .filter(|row| level_for(row, mode, &row.text) != PermissionLevel::Allow);
            (requiring_approval.collect(), total)
        };
    let list = |rows: &[&CorpusTestCase]| {
        rows.iter().map(|row| format!("{} {}", row.id, row.text)).collect::<Vec<_>>().join("\n  ")
    };
    let (ask, reads) = rows_requiring_approval(PermissionMode::Ask, &["read"]);
    println!("mode ask: {} of {reads} reads require approval\n  {}", ask.len(), list(&ask));
    let (auto, works) = rows_requiring_approval(PermissionMode::Auto, &["read", "work"]);
    println!("mode auto: {} of {works} require approval\n  {}", auto.len(), list(&auto));
    assert!(ask.len() * 100 <= reads * max_ask_percent);
    assert!(auto.len() * 100 <= works * 2);
    for mode in [PermissionMode::Ask, PermissionMode::Auto] {
        let (requiring_approval, total) = rows_requiring_approval(mode, &["network", "guard"]);
        assert_eq!(
            requiring_approval.len(),
            total,
            "{mode:?} allows commands that connect or destroy"
        );
        let (works, total) = rows_requiring_approval(mode, &["work"]);
        if mode == PermissionMode::Ask {
            assert_eq!(works.len(), total, "mode ask allows commands that change files");
        }
    }
    for row in rows.iter().filter(|row| row.kind == "network") {
        let verdict = evaluate_with(&lookup_for(row), "{}", &[], PermissionMode::Auto, &row.text);
        assert!(verdict.wants_network, "{} must want the network", row.text);
    }
}

/// A rule for a program does not cover the commands it wraps, the variables before it, or other
/// commands on the line.
#[test]
fn rules_that_allow_a_program_do_not_allow_commands_hidden_behind_it() {
    let user_rules = r#"{"bash": {"ls *": "allow", "echo *": "allow", "cat *": "allow", "true": "allow",
        "env *": "allow", "timeout *": "allow", "nice *": "allow", "xargs *": "allow", "find *": "allow",
        "nohup *": "allow", "stdbuf *": "allow", "flock *": "allow", "script *": "allow",
        "command *": "allow", "builtin *": "allow", "exec *": "allow", "time *": "allow",
        "git *": "allow", "npm *": "allow", "python3 *": "allow", "perl *": "allow"}}"#;
    let mut tried = 0;
    for row in attack_rows() {
        let kinds = ["wrapper", "env", "syntax", "path"];
        if !kinds.contains(&row.kind.as_str()) {
            continue;
        }
        let found =
            evaluate_with(&lookup_for(&row), user_rules, &[], PermissionMode::Ask, &row.text).level;
        assert!(found >= PermissionLevel::Ask, "{} {}", row.id, row.text);
        tried += 1;
    }
    assert!(tried > 60, "{tried}");
}
