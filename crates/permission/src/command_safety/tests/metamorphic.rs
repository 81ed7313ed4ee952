//! Metamorphic tests: nothing around a command makes the verdict on it laxer.

use super::corpus::{CorpusTestCase, attack_rows, level_for, ordinary_rows};
use super::{PermissionMode, level};
use crate::PermissionLevel;

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns true if a command begins with an ordinary word, so that a wrapper may precede it.
fn begins_with_word(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let keyword = ["for", "while", "if", "case", "coproc", "time", "!"].contains(&first);
    !keyword
        && first.starts_with(|letter: char| letter.is_alphanumeric() || "./\\$".contains(letter))
        && !first.contains(['(', '=', '<'])
}

/// Returns variations that also run the command.
fn variations(row: &CorpusTestCase) -> Vec<String> {
    let text = &row.text;
    let mut all = vec![
        format!("bash -c {}", single_quoted(text)),
        format!("sh -ec {}", single_quoted(text)),
        format!("eval {}", single_quoted(text)),
        format!("env bash -c {}", single_quoted(text)),
        format!("timeout 5 bash -c {}", single_quoted(&format!("bash -c {}", single_quoted(text)))),
        format!("( {text}\n)"),
        format!("{{ {text}\n}}"),
        format!("true; {text}"),
        format!("ls && {text}"),
        format!("{text}\nls"),
        format!("bash <<'WHOLE'\n{text}\nWHOLE"),
    ];
    if begins_with_word(text) {
        for start in [
            "env",
            "timeout 5",
            "nice",
            "nice -n 5",
            "nohup",
            "command",
            "time",
            "!",
            "stdbuf -o0",
            "X=1",
            "CI=1",
            "setsid",
            "echo x | xargs",
            "\\",
            "busybox",
        ] {
            // `cd` has no effect in a pipeline, and an escaped dollar expands nothing.
            let changes_meaning = match start {
                "echo x | xargs" => text.starts_with("cd "),
                "\\" => text.starts_with('$'),
                _ => false,
            };
            if changes_meaning {
                continue;
            }
            let blank = if start == "\\" { "" } else { " " };
            all.push(format!("{start}{blank}{text}"));
        }
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        if first.chars().all(|letter| letter.is_ascii_alphanumeric()) && first.len() > 1 {
            let (head, tail) = first.split_at(1);
            all.push(format!("'{first}' {rest}"));
            all.push(format!("\"{first}\" {rest}"));
            all.push(format!("{head}''{tail} {rest}"));
            all.push(format!("{head}\\{tail} {rest}"));
        }
    }
    // A here-document ends at its own line, and a comment extends to the end of the line.
    if !text.contains("<<") && !text.contains('#') {
        for end in [
            " ; ls",
            " && true",
            " | cat",
            " > out.txt",
            " >> out.txt",
            " 2>/dev/null",
            " || true",
            " &",
        ] {
            all.push(format!("{text}{end}"));
        }
    }
    all
}

fn assert_never_laxer(rows: &[CorpusTestCase]) {
    let mut failures = Vec::new();
    let mut tried = 0;
    for row in rows {
        for mode in [PermissionMode::Ask, PermissionMode::Auto] {
            let original = level_for(row, mode, &row.text);
            for text in variations(row) {
                tried += 1;
                let found = level_for(row, mode, &text);
                if found < original {
                    failures.push(format!(
                        "{} {mode:?}: {found} instead of {original}: {text}",
                        row.id
                    ));
                }
            }
        }
    }
    println!("{tried} variations");
    assert!(failures.is_empty(), "{} of {tried}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn nothing_around_an_attack_makes_the_verdict_laxer() {
    assert_never_laxer(&attack_rows());
}

#[test]
fn nothing_around_an_everyday_command_makes_the_verdict_laxer() {
    assert_never_laxer(&ordinary_rows());
}

/// Checks that harmless commands around a row do not make the verdict laxer.
fn assert_hides_nothing(mode: PermissionMode, size: usize) {
    let many = "true;".repeat(size / 2);
    for row in attack_rows().iter().chain(&ordinary_rows()) {
        let original = level_for(row, mode, &row.text);
        // Text after a here-document may be a part of it.
        let text = match row.text.contains("<<") {
            true => format!("{many}{many}{}", row.text),
            false => format!("{many}{}\n{many}", row.text),
        };
        assert!(level_for(row, mode, &text) >= original, "{mode:?} {size} around {}", row.text);
    }
}

#[test]
fn a_thousand_harmless_commands_hide_nothing_in_mode_ask() {
    assert_hides_nothing(PermissionMode::Ask, 1_000);
}

#[test]
fn a_thousand_harmless_commands_hide_nothing_in_mode_auto() {
    assert_hides_nothing(PermissionMode::Auto, 1_000);
}

#[test]
fn ten_thousand_harmless_commands_hide_nothing() {
    #[allow(clippy::disallowed_methods, reason = "an environment variable selects the soak")]
    let soak = std::env::var_os("WINDLASS_SOAK").is_some();
    let modes: &[PermissionMode] =
        if soak { &[PermissionMode::Ask, PermissionMode::Auto] } else { &[] };
    modes.iter().for_each(|mode| assert_hides_nothing(*mode, 10_000));
    assert_eq!(level(PermissionMode::Ask, &("true;".repeat(9_000) + "id")), PermissionLevel::Ask);
}

#[test]
fn a_few_harmless_commands_hide_nothing() {
    let rows: Vec<CorpusTestCase> = attack_rows().into_iter().chain(ordinary_rows()).collect();
    for (size, step) in [(1, 1), (2, 1), (50, 7), (51, 3)] {
        for row in rows.iter().step_by(step) {
            for mode in [PermissionMode::Ask, PermissionMode::Auto] {
                let original = level_for(row, mode, &row.text);
                let found = level_for(row, mode, &format!("{}{}", "true; ".repeat(size), row.text));
                assert!(found >= original, "{size} before {}", row.text);
            }
        }
    }
}

#[test]
fn deeply_nested_wrappers_require_approval() {
    for depth in 1..40 {
        let text = "timeout 5 ".repeat(depth) + "rm -rf /";
        assert!(level(PermissionMode::Auto, &text) >= PermissionLevel::Ask, "{depth}");
        let text = "nice ".repeat(depth) + "ls";
        let expected = if depth <= 8 { PermissionLevel::Allow } else { PermissionLevel::Ask };
        assert_eq!(level(PermissionMode::Ask, &text), expected, "{depth}");
    }
    let mut text = "ls".to_owned();
    for depth in 0..9 {
        text = format!("bash -c {}", single_quoted(&text));
        if text.len() > 60_000 {
            break;
        }
        let expected = if depth < 8 { PermissionLevel::Allow } else { PermissionLevel::Ask };
        assert_eq!(level(PermissionMode::Ask, &text), expected, "{depth}");
    }
}
