//! Programs that may run what their last words say, without a row that tells so.

use super::class::Class;
use super::programs;
use crate::shell::Word;

/// How many words are tried as the beginning of a command.
const MOST: usize = 48;

/// Names of programs that are everyday words too.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "at", "init", "service", "route", "login", "batch", "defaults", "security", "ip", "halt", "kill",
    "cargo", "npm",
];

/// True if some of the words may be a command of their own.
pub(super) fn may_run(program: &str, words: &[Word]) -> bool {
    let says = |names: &[&str]| {
        let named = |text: &str| names.iter().any(|name| text.starts_with(name));
        words.iter().any(|word| named(word.text()))
    };
    match program {
        "git" => says(&["foreach", "bisect", "-x", "--exec"]),
        "tar" | "bsdtar" => {
            says(&["--to-c", "--checkpoint-a", "-I", "--use-c", "--rsh", "-F", "--info-s"])
        }
        _ => programs::rows(program).is_empty(),
    }
}

/// True if a program can destroy or gain rights.
pub(super) fn is_feared(program: &str) -> bool {
    let guards = || programs::rows(program).iter().any(|(_, row)| row.class == Class::Guard);
    let removes = matches!(program, "rm" | "chmod" | "chown" | "find" | "dd");
    removes || (!WORDS.contains(&program) && guards())
}

/// Every way the words can end, and every way a word of several does.
pub(super) fn tails(words: &[Word]) -> Vec<Vec<Word>> {
    let mut tails = Vec::new();
    for (at, word) in words.iter().enumerate().take(MOST) {
        tails.extend(words.get(at..).map(<[Word]>::to_vec));
        let blank = |letter: char| letter.is_whitespace() || letter == '=';
        let parts: Vec<Word> = word
            .text()
            .split(blank)
            .filter(|part| !part.is_empty())
            .take(MOST)
            .map(|part| Word::Plain(part.to_owned()))
            .collect();
        if parts.len() > 1 {
            tails.extend((0..parts.len()).filter_map(|at| parts.get(at..)).map(<[Word]>::to_vec));
        }
    }
    tails.truncate(MOST * 4);
    tails
}
