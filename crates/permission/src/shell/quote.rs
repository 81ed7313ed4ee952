//! Shows words in the one way that bash would read back as the same words.

use super::finding::RESERVED;
use super::guard::{is_control, is_unseen};
use std::fmt::Write as _;

/// The words as one line of bash. What cannot be seen is spelled out.
pub fn quote<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let mut line = String::new();
    for (at, word) in words.into_iter().enumerate() {
        let word = word.as_ref();
        if at > 0 {
            line.push(' ');
        }
        let command = at == 0 && (RESERVED.contains(&word) || word.contains('='));
        if word.contains(|each| is_control(each) || is_unseen(each) || each == '\n' || each == '\t')
        {
            spell(word, &mut line);
        } else if !command && is_safe(word) {
            line.push_str(word);
        } else {
            let _ = write!(line, "'{}'", word.replace('\'', r"'\''"));
        }
    }
    line
}

/// True if no shell sees anything in it but the word.
fn is_safe(word: &str) -> bool {
    let safe = |each: char| each.is_ascii_alphanumeric() || "_@%+=:,./-".contains(each);
    !word.is_empty() && word.chars().all(safe)
}

fn spell(word: &str, line: &mut String) {
    line.push_str("$'");
    for character in word.chars() {
        match character {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\'' | '\\' => line.extend(['\\', character]),
            hidden if is_control(hidden) || is_unseen(hidden) => {
                let _ = write!(line, "\\U{:08x}", u32::from(hidden));
            }
            plain => line.push(plain),
        }
    }
    line.push('\'');
}
