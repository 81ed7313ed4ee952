//! Whatever is put around a command, the verdict on it never becomes laxer.

use super::corpus::{Row, attacks, everyday, verdict};
use super::{Mode, level};
use crate::Level;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// True if a command begins with an ordinary word, so that a wrapper may stand before it.
fn begins_with_word(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let keyword = ["for", "while", "if", "case", "coproc", "time", "!"].contains(&first);
    !keyword
        && first.starts_with(|letter: char| letter.is_alphanumeric() || "./\\$".contains(letter))
        && !first.contains(['(', '=', '<'])
}

/// The command in other clothes.
fn variations(row: &Row) -> Vec<String> {
    let text = &row.text;
    let mut all = vec![
        format!("bash -c {}", quoted(text)),
        format!("sh -ec {}", quoted(text)),
        format!("eval {}", quoted(text)),
        format!("env bash -c {}", quoted(text)),
        format!("timeout 5 bash -c {}", quoted(&format!("bash -c {}", quoted(text)))),
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
            // In a pipe a cd does not last, and an escaped dollar is no longer one.
            let other = match start {
                "echo x | xargs" => text.starts_with("cd "),
                "\\" => text.starts_with('$'),
                _ => false,
            };
            if other {
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
    // A here-document ends at a line of its own, and a comment takes what follows with it.
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

fn never_laxer(rows: &[Row]) {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for row in rows {
        for mode in [Mode::Ask, Mode::Auto] {
            let plain = verdict(row, mode, &row.text);
            for text in variations(row) {
                tried += 1;
                let found = verdict(row, mode, &text);
                if found < plain {
                    wrong.push(format!("{} {mode:?}: {found} instead of {plain}: {text}", row.id));
                }
            }
        }
    }
    println!("{tried} variations");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nothing_around_an_attack_makes_the_verdict_laxer() {
    never_laxer(&attacks());
}

#[test]
fn nothing_around_an_everyday_command_makes_the_verdict_laxer() {
    never_laxer(&everyday());
}

/// So many harmless commands around a row make the verdict on it no laxer.
fn hides_nothing(mode: Mode, size: usize) {
    let many = "true;".repeat(size / 2);
    for row in attacks().iter().chain(&everyday()) {
        let plain = verdict(row, mode, &row.text);
        // What stands behind a here-document may be a part of it.
        let text = match row.text.contains("<<") {
            true => format!("{many}{many}{}", row.text),
            false => format!("{many}{}\n{many}", row.text),
        };
        assert!(verdict(row, mode, &text) >= plain, "{mode:?} {size} around {}", row.text);
    }
}

#[test]
fn a_thousand_harmless_commands_hide_nothing_in_mode_ask() {
    hides_nothing(Mode::Ask, 1_000);
}

#[test]
fn a_thousand_harmless_commands_hide_nothing_in_mode_auto() {
    hides_nothing(Mode::Auto, 1_000);
}

#[test]
fn ten_thousand_harmless_commands_hide_nothing() {
    #[allow(clippy::disallowed_methods, reason = "a long run is asked for from outside")]
    let soak = std::env::var_os("WINDLASS_SOAK").is_some();
    let modes: &[Mode] = if soak { &[Mode::Ask, Mode::Auto] } else { &[] };
    modes.iter().for_each(|mode| hides_nothing(*mode, 10_000));
    assert_eq!(level(Mode::Ask, &("true;".repeat(9_000) + "id")), Level::Ask);
}

#[test]
fn a_few_harmless_commands_hide_nothing() {
    let rows: Vec<Row> = attacks().into_iter().chain(everyday()).collect();
    for (size, step) in [(1, 1), (2, 1), (50, 7), (51, 3)] {
        for row in rows.iter().step_by(step) {
            for mode in [Mode::Ask, Mode::Auto] {
                let plain = verdict(row, mode, &row.text);
                let found = verdict(row, mode, &format!("{}{}", "true; ".repeat(size), row.text));
                assert!(found >= plain, "{size} before {}", row.text);
            }
        }
    }
}

#[test]
fn wrappers_around_wrappers_end_in_a_question() {
    for depth in 1..40 {
        let text = "timeout 5 ".repeat(depth) + "rm -rf /";
        assert!(level(Mode::Auto, &text) >= Level::Ask, "{depth}");
        let text = "nice ".repeat(depth) + "ls";
        let wanted = if depth <= 8 { Level::Allow } else { Level::Ask };
        assert_eq!(level(Mode::Ask, &text), wanted, "{depth}");
    }
    let mut text = "ls".to_owned();
    for depth in 0..9 {
        text = format!("bash -c {}", quoted(&text));
        if text.len() > 60_000 {
            break;
        }
        let wanted = if depth < 8 { Level::Allow } else { Level::Ask };
        assert_eq!(level(Mode::Ask, &text), wanted, "{depth}");
    }
}
