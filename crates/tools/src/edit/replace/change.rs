//! An edit as the difference between two runs of lines.

use super::budget::DIFFED;
use super::lines::indent;
use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::collections::BTreeSet;
use std::ops::Range;

/// The lines of an edit, and where they differ.
pub(super) struct Change<'a> {
    pub(super) old: Vec<&'a str>,
    pub(super) new: Vec<&'a str>,
    pub(super) hunks: Vec<Hunk>,
}

/// Lines that go and lines that come in their stead; one of both may be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

impl<'a> Change<'a> {
    /// Reads an edit line by line. An old text that ends its last line and a new one that does not
    /// would join two lines of the file, which no likeness of lines can justify: that is none.
    pub(super) fn of(old: &'a str, new: &'a str) -> Option<Change<'a>> {
        let (old, new): (&str, Vec<&str>) = match (old.strip_suffix('\n'), new.strip_suffix('\n')) {
            (Some(old), Some(new)) => (old, new.split('\n').collect()),
            (Some(old), None) if new.is_empty() => (old, Vec::new()),
            (Some(_), None) => return None,
            (None, Some(_) | None) => (old, new.split('\n').collect()),
        };
        let old: Vec<&str> = old.split('\n').collect();
        let hunks = hunks(&old, &new);
        Some(Change { old, new, hunks })
    }

    /// The smallest step between the indentations of the edit, if all are made of one character.
    pub(super) fn unit(&self, character: char) -> Option<usize> {
        let lines = self.old.iter().chain(&self.new).filter(|line| !line.trim().is_empty());
        let mut widths = BTreeSet::from([0]);
        for indent in lines.map(|line| indent(line)) {
            if indent.chars().any(|found| found != character) {
                return None;
            }
            widths.insert(indent.len());
        }
        let steps = widths.iter().zip(widths.iter().skip(1)).map(|(a, b)| b - a);
        steps.min()
    }
}

/// Where two runs of lines differ. Lines that are the same are found first, so that of several
/// braces the right one goes; then those that differ only in white space at their ends, which are
/// the same line changed in place.
fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let mut hunks = Vec::new();
    for (same, old_range, new_range) in aligned(old, new) {
        if same {
            continue;
        }
        let trimmed = |lines: &[&'_ str], range: Range<usize>| -> Vec<String> {
            let lines = lines.get(range).unwrap_or_default();
            lines.iter().map(|line| line.trim().to_owned()).collect()
        };
        let within = aligned(&trimmed(old, old_range.clone()), &trimmed(new, new_range.clone()));
        let moved = |range: Range<usize>, by: usize| range.start + by..range.end + by;
        for (same, a, b) in within {
            let (a, b) = (moved(a, old_range.start), moved(b, new_range.start));
            if same {
                hunks.extend(a.zip(b).map(|(a, b)| Hunk { old: a..a + 1, new: b..b + 1 }));
            } else {
                hunks.push(Hunk { old: a, new: b });
            }
        }
    }
    hunks
}

/// The runs in which two lists are the same and in which they are not, in order.
pub(super) fn aligned<T: Eq + std::hash::Hash>(
    old: &[T],
    new: &[T],
) -> Vec<(bool, Range<usize>, Range<usize>)> {
    if old.len().max(new.len()) <= DIFFED {
        let ops = capture_diff_slices(Algorithm::Myers, old, new);
        let runs = ops.iter().map(|op| op.as_tag_tuple());
        return runs.map(|(tag, old, new)| (tag == DiffTag::Equal, old, new)).collect();
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - head;
    let pairs = old.iter().rev().zip(new.iter().rev()).take(room);
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let runs = [
        (true, 0..head, 0..head),
        (false, head..old_end, head..new_end),
        (true, old_end..old.len(), new_end..new.len()),
    ];
    runs.into_iter().filter(|(_, a, b)| !a.is_empty() || !b.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks_of(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let change = Change::of(old, new).unwrap();
        change.hunks.into_iter().map(|hunk| (hunk.old, hunk.new)).collect()
    }

    #[test]
    fn only_lines_that_differ_are_part_of_a_change() {
        assert_eq!(hunks_of("a\nb\nc", "a\nx\nc"), [(1..2, 1..2)]);
        assert_eq!(hunks_of("a\nb\n", "a\nx\nb\n"), [(1..1, 1..2)]);
        assert_eq!(hunks_of("a\nb\nc\n", "a\nc\n"), [(1..2, 1..1)]);
        assert_eq!(hunks_of("a\n", ""), [(0..1, 0..0)]);
        assert_eq!(hunks_of("a", ""), [(0..1, 0..1)]);
        assert_eq!(hunks_of("a", "a\n"), [(1..1, 1..2)]);
        assert_eq!(hunks_of("  }\n}", "}"), [(0..1, 0..0)]);
        assert_eq!(hunks_of("a", "if b:\n  a"), [(0..0, 0..1), (0..1, 1..2)]);
    }

    #[test]
    fn an_edit_that_would_join_lines_is_no_change_of_lines() {
        assert!(Change::of("a\n", "b").is_none());
        assert!(Change::of("a\n", "b\n").is_some());
        assert!(Change::of("a", "b\n").is_some());
    }

    #[test]
    fn long_lists_differ_from_their_first_to_their_last_difference() {
        let mut old: Vec<usize> = (0..DIFFED + 10).collect();
        let new = old.clone();
        assert_eq!(aligned(&old, &new), [(true, 0..old.len(), 0..old.len())]);
        old[5] = 0;
        old[100] = 0;
        assert_eq!(aligned(&old, &new)[1], (false, 5..101, 5..101));
        assert_eq!(aligned(&new[..7], &new)[1], (false, 7..7, 7..new.len()));
    }
}
