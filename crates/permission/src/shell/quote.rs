//! Quotes words so that bash reads them back unchanged.

use super::parse_result::RESERVED_WORDS;
use super::precheck::{is_forbidden_control, is_invisible};
use std::fmt::Write as _;

/// Joins words into one line of bash with the necessary quotes. Invisible characters are escaped.
pub fn quote<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let mut line = String::new();
    for (index, word) in words.into_iter().enumerate() {
        let word = word.as_ref();
        if index > 0 {
            line.push(' ');
        }
        let is_special_first_word =
            index == 0 && (RESERVED_WORDS.contains(&word) || word.contains('='));
        if word.contains(|c| is_forbidden_control(c) || is_invisible(c) || c == '\n' || c == '\t') {
            push_quoted(word, &mut line);
        } else if !is_special_first_word && is_safe_unquoted(word) {
            line.push_str(word);
        } else {
            let _ = write!(line, "'{}'", word.replace('\'', r"'\''"));
        }
    }
    line
}

/// Returns true if every shell reads the word unchanged without quotes.
fn is_safe_unquoted(word: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_@+=:,./-".contains(c);
    // zsh expands `=program`, and the parser takes `==` and `%` after a number for operators.
    !word.is_empty() && !word.starts_with('=') && word.chars().all(is_safe)
}

fn push_quoted(word: &str, line: &mut String) {
    line.push_str("$'");
    for character in word.chars() {
        match character {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\'' | '\\' => line.extend(['\\', character]),
            hidden if is_forbidden_control(hidden) || is_invisible(hidden) => {
                let _ = write!(line, "\\U{:08x}", u32::from(hidden));
            }
            plain => line.push(plain),
        }
    }
    line.push('\'');
}
