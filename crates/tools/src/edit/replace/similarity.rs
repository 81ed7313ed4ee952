//! Limits the drift between an edit and the place it refers to.
//!
//! A similar block may be an outdated view of the right one, or another block copied from it. Only
//! the amount of difference tells them apart: one word in a line is drift, more than that in a few
//! lines is another block.

use super::candidate_lines::CandidateLines;
use super::line_diff::LineDiff;
use super::text_lines::{TextLines, has_same_words};

/// Lines of an edit per drift point that `is_similar_enough` allows.
const LINES_PER_DRIFT_POINT: usize = 4;

/// Minimum `is_distinctive` lines that must match if others do not.
const MIN_DISTINCTIVE_LINES: usize = 3;

/// Returns true if the file differs so little that this is the place the edit refers to. A line
/// with one different word counts one drift point; a line that differs more, or exists on one side
/// only, counts two.
pub(super) fn is_similar_enough(
    lines: &TextLines<'_>,
    line_diff: &LineDiff<'_>,
    candidate: &CandidateLines,
) -> bool {
    let matched_count = candidate.line_matches.iter().flatten().count();
    let mut drift_points = 2 * (candidate.lines.len().saturating_sub(matched_count));
    for (old, line_match) in line_diff.old_lines.iter().zip(&candidate.line_matches) {
        drift_points += match line_match.map(|line| lines.get(line)) {
            Some(file) if has_same_words(old, file) => 0,
            Some(file) if differs_in_one_word(old, file) => 1,
            Some(_) | None => 2,
        };
    }
    let is_within_limit = drift_points <= line_diff.old_lines.len() / LINES_PER_DRIFT_POINT;
    drift_points == 0
        || (is_within_limit
            && count_distinctive_matches(lines, line_diff, candidate) >= MIN_DISTINCTIVE_LINES)
}

/// Counts the matching lines that contain more than a brace or an `end`.
pub(super) fn count_distinctive_matches(
    lines: &TextLines<'_>,
    line_diff: &LineDiff<'_>,
    candidate: &CandidateLines,
) -> usize {
    let pairs = line_diff.old_lines.iter().zip(&candidate.line_matches);
    let equal_pairs =
        pairs.filter(|(old, line)| line.is_some_and(|index| has_same_words(old, lines.get(index))));
    equal_pairs.filter(|(old, _)| is_distinctive(old)).count()
}

/// Returns true if a line has at least four letters or digits.
pub(super) fn is_distinctive(line: &str) -> bool {
    line.chars().filter(|character| character.is_alphanumeric()).count() >= 4
}

/// Returns true if two lines differ in at most one word. Straight and typographic quotes are equal.
fn differs_in_one_word(old: &str, file: &str) -> bool {
    let (old, file) = (straighten_quotes(old), straighten_quotes(file));
    let (old, file) = (split_tokens(&old), split_tokens(&file));
    let head = old.iter().zip(&file).take_while(|(a, b)| a == b).count();
    let max_tail = old.len().min(file.len()) - head;
    let pairs = old.iter().rev().zip(file.iter().rev()).take(max_tail);
    let tail = pairs.take_while(|(a, b)| a == b).count();
    old.len().max(file.len()) - head - tail <= 1 && head + tail > 0
}

fn straighten_quotes(line: &str) -> String {
    line.replace(['\u{201c}', '\u{201d}'], "\"").replace(['\u{2018}', '\u{2019}'], "'")
}

/// Splits a line into words and punctuation characters, without whitespace.
fn split_tokens(line: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word_char = |character: char| character.is_alphanumeric() || character == '_';
        let end = if is_word_char(first) {
            rest.find(|character| !is_word_char(character))
        } else {
            Some(first.len_utf8())
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_different_word_is_drift_and_two_are_not() {
        for (old, file, expected) in [
            ("let a = 1;", "let a = 2;", true),
            ("let a = 1;", "  let  a = 10;", true),
            ("f(a)", "f(&a)", true),
            ("say(\"x\")", "say(“x”)", true),
            ("key = order.customer.lower()", "key = order.currency.upper()", false),
            ("...", "done();", false),
            ("a", "b", false),
        ] {
            assert_eq!(differs_in_one_word(old, file), expected, "{old:?} {file:?}");
        }
    }

    #[test]
    fn a_longer_edit_allows_more_drift() {
        let text: String = (0..8).map(|n| format!("line {n}\n")).collect();
        let lines = TextLines::new(&text);
        for (from, to, length, expected) in [
            ("line 2", "line two", 4, true),
            ("line 2", "something else", 4, false),
            ("line 2", "something else", 8, true),
        ] {
            let old: String = text.lines().take(length).collect::<Vec<_>>().join("\n");
            let old = old.replace(from, to);
            let line_diff = LineDiff::compute(&old, "").unwrap();
            assert_eq!(
                is_similar_enough(&lines, &line_diff, &CandidateLines::contiguous(0, length)),
                expected,
                "{to} {length}"
            );
        }
    }
}
