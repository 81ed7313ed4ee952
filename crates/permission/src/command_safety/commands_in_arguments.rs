//! Programs without a suitable row that may run their last words as a command.

use super::programs;
use super::risk::Risk;
use crate::shell::ShellWord;

/// Limits the words that are tried as the start of a command.
const MAX_TRAILING_WORDS: usize = 48;

/// Program names that are also everyday words.
#[rustfmt::skip]
const EVERYDAY_WORDS: &[&str] = &[
    "at", "init", "service", "route", "login", "batch", "defaults", "security", "ip", "halt", "kill",
    "cargo", "npm",
];

/// Returns true if some of the words may form a command.
pub(super) fn may_run_arguments(program: &str, words: &[ShellWord]) -> bool {
    let has_word = |names: &[&str]| {
        let starts_with_any = |text: &str| names.iter().any(|name| text.starts_with(name));
        words.iter().any(|word| starts_with_any(word.text()))
    };
    match program {
        "git" => has_word(&["foreach", "bisect", "-x", "--exec"]),
        "tar" | "bsdtar" => {
            has_word(&["--to-c", "--checkpoint-a", "-I", "--use-c", "--rsh", "-F", "--info-s"])
        }
        _ => programs::rows_for_program(program).is_empty(),
    }
}

/// Returns true if a program can destroy data or gain privileges, except for `EVERYDAY_WORDS`.
pub(super) fn is_dangerous_program(program: &str) -> bool {
    let is_destructive =
        || programs::rows_for_program(program).iter().any(|(_, row)| row.risk == Risk::Destructive);
    let changes_files = matches!(program, "rm" | "chmod" | "chown" | "find" | "dd");
    changes_files || (!EVERYDAY_WORDS.contains(&program) && is_destructive())
}

/// Returns every suffix of the words, and every suffix of a word that itself contains several.
pub(super) fn trailing_commands(words: &[ShellWord]) -> Vec<Vec<ShellWord>> {
    let mut tails = Vec::new();
    for (index, word) in words.iter().enumerate().take(MAX_TRAILING_WORDS) {
        tails.extend(words.get(index..).map(<[ShellWord]>::to_vec));
        let is_separator = |c: char| c.is_whitespace() || c == '=';
        let parts: Vec<ShellWord> = word
            .text()
            .split(is_separator)
            .filter(|part| !part.is_empty())
            .take(MAX_TRAILING_WORDS)
            .map(|part| ShellWord::Plain(part.to_owned()))
            .collect();
        if parts.len() > 1 {
            tails.extend(
                (0..parts.len()).filter_map(|index| parts.get(index..)).map(<[ShellWord]>::to_vec),
            );
        }
    }
    tails.truncate(MAX_TRAILING_WORDS * 4);
    tails
}
