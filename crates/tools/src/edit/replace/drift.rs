//! How far a place may have drifted from what an edit says and still be the place it means.
//!
//! A block that is similar may be a stale view of the right one, or another one that was copied
//! from it. Nothing but the amount of difference tells them apart: a word in a line is drift, more
//! than that in a few lines is another block.

use super::carry::{Place, agree};
use super::change::Change;
use super::lines::Lines;

/// How many lines of an edit allow for one mark of drift.
const LINES_PER_MARK: usize = 4;

/// How many lines that say something must agree where others do not.
const TELLING: usize = 3;

/// Whether so little drifted that the place is the one the edit means. A line in which one word is
/// another counts one mark; one that differs more, or that only one side has, counts two.
pub(super) fn is_slight(lines: &Lines<'_>, change: &Change<'_>, place: &Place) -> bool {
    let paired = place.partners.iter().flatten().count();
    let mut marks = 2 * (place.lines.len().saturating_sub(paired));
    for (old, partner) in change.old.iter().zip(&place.partners) {
        marks += match partner.map(|line| lines.get(line)) {
            Some(file) if agree(old, file) => 0,
            Some(file) if is_one_word(old, file) => 1,
            Some(_) | None => 2,
        };
    }
    let room = marks <= change.old.len() / LINES_PER_MARK;
    marks == 0 || (room && telling(lines, change, place) >= TELLING)
}

/// How many lines agree that are more than a brace or an `end`.
pub(super) fn telling(lines: &Lines<'_>, change: &Change<'_>, place: &Place) -> usize {
    let pairs = change.old.iter().zip(&place.partners);
    let agreeing = pairs.filter(|(old, line)| line.is_some_and(|at| agree(old, lines.get(at))));
    agreeing.filter(|(old, _)| says_something(old)).count()
}

/// Whether a line has a word of some length.
pub(super) fn says_something(line: &str) -> bool {
    line.chars().filter(|found| found.is_alphanumeric()).count() >= 4
}

/// Whether two lines differ in one word at most. Straight and typographic quotes are the same.
fn is_one_word(old: &str, file: &str) -> bool {
    let (old, file) = (plain(old), plain(file));
    let (old, file) = (words(&old), words(&file));
    let head = old.iter().zip(&file).take_while(|(a, b)| a == b).count();
    let room = old.len().min(file.len()) - head;
    let pairs = old.iter().rev().zip(file.iter().rev()).take(room);
    let tail = pairs.take_while(|(a, b)| a == b).count();
    old.len().max(file.len()) - head - tail <= 1 && head + tail > 0
}

fn plain(line: &str) -> String {
    line.replace(['\u{201c}', '\u{201d}'], "\"").replace(['\u{2018}', '\u{2019}'], "'")
}

/// Words and signs, without the white space between them.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let part = |found: char| found.is_alphanumeric() || found == '_';
        let end =
            if part(first) { rest.find(|found| !part(found)) } else { Some(first.len_utf8()) };
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = behind.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_drift_and_two_are_another_line() {
        for (old, file, slight) in [
            ("let a = 1;", "let a = 2;", true),
            ("let a = 1;", "  let  a = 10;", true),
            ("f(a)", "f(&a)", true),
            ("say(\"x\")", "say(“x”)", true),
            ("key = order.customer.lower()", "key = order.currency.upper()", false),
            ("...", "done();", false),
            ("a", "b", false),
        ] {
            assert_eq!(is_one_word(old, file), slight, "{old:?} {file:?}");
        }
    }

    #[test]
    fn a_longer_edit_allows_for_more() {
        let text: String = (0..8).map(|n| format!("line {n}\n")).collect();
        let lines = Lines::of(&text);
        for (from, to, length, slight) in [
            ("line 2", "line two", 4, true),
            ("line 2", "something else", 4, false),
            ("line 2", "something else", 8, true),
        ] {
            let old: String = text.lines().take(length).collect::<Vec<_>>().join("\n");
            let old = old.replace(from, to);
            let change = Change::of(&old, "").unwrap();
            assert_eq!(is_slight(&lines, &change, &Place::at(0, length)), slight, "{to} {length}");
        }
    }
}
