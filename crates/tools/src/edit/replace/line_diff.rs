//! An edit as a line diff between its old and new text.

use super::text_lines::leading_whitespace;
use super::work_limit::MAX_DIFF_LINES;
use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::collections::BTreeSet;
use std::ops::Range;

/// The lines of an edit and the hunks in which they differ.
pub(super) struct LineDiff<'a> {
    pub(super) old_lines: Vec<&'a str>,
    pub(super) new_lines: Vec<&'a str>,
    pub(super) hunks: Vec<EditHunk>,
}

/// Old lines and the new lines that replace them; either range may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditHunk {
    pub(super) old_range: Range<usize>,
    pub(super) new_range: Range<usize>,
}

impl<'a> LineDiff<'a> {
    /// Diffs an edit by lines. Returns `None` if only the old text ends its last line: that would
    /// join two file lines, which no line similarity can justify.
    pub(super) fn compute(old: &'a str, new: &'a str) -> Option<LineDiff<'a>> {
        let (old, new): (&str, Vec<&str>) = match (old.strip_suffix('\n'), new.strip_suffix('\n')) {
            (Some(old), Some(new)) => (old, new.split('\n').collect()),
            (Some(old), None) if new.is_empty() => (old, Vec::new()),
            (Some(_), None) => return None,
            (None, Some(_) | None) => (old, new.split('\n').collect()),
        };
        let old: Vec<&str> = old.split('\n').collect();
        let hunks = diff_hunks(&old, &new);
        Some(LineDiff { old_lines: old, new_lines: new, hunks })
    }

    /// Returns the smallest indentation step of the edit, if all indentations consist of
    /// `character`.
    pub(super) fn indent_unit(&self, character: char) -> Option<usize> {
        let lines =
            self.old_lines.iter().chain(&self.new_lines).filter(|line| !line.trim().is_empty());
        let mut widths = BTreeSet::from([0]);
        for indent in lines.map(|line| leading_whitespace(line)) {
            if indent.chars().any(|other| other != character) {
                return None;
            }
            widths.insert(indent.len());
        }
        let steps = widths.iter().zip(widths.iter().skip(1)).map(|(a, b)| b - a);
        steps.min()
    }
}

/// Returns the hunks between two lists of lines. Equal lines are matched first, so that the right
/// one of several braces is removed; then lines that differ only in surrounding whitespace, which
/// count as one line changed in place.
fn diff_hunks(old: &[&str], new: &[&str]) -> Vec<EditHunk> {
    let mut hunks = Vec::new();
    for (is_equal, old_range, new_range) in align_runs(old, new) {
        if is_equal {
            continue;
        }
        let trimmed = |lines: &[&'_ str], range: Range<usize>| -> Vec<String> {
            let lines = lines.get(range).unwrap_or_default();
            lines.iter().map(|line| line.trim().to_owned()).collect()
        };
        let inner_runs =
            align_runs(&trimmed(old, old_range.clone()), &trimmed(new, new_range.clone()));
        let shift = |range: Range<usize>, offset: usize| range.start + offset..range.end + offset;
        for (is_equal, a, b) in inner_runs {
            let (a, b) = (shift(a, old_range.start), shift(b, new_range.start));
            if is_equal {
                hunks.extend(
                    a.zip(b).map(|(a, b)| EditHunk { old_range: a..a + 1, new_range: b..b + 1 }),
                );
            } else {
                hunks.push(EditHunk { old_range: a, new_range: b });
            }
        }
    }
    hunks
}

/// Returns the equal and different runs of two lists, in order.
pub(super) fn align_runs<T: Eq + std::hash::Hash>(
    old: &[T],
    new: &[T],
) -> Vec<(bool, Range<usize>, Range<usize>)> {
    if old.len().max(new.len()) <= MAX_DIFF_LINES {
        let ops = capture_diff_slices(Algorithm::Myers, old, new);
        let runs = ops.iter().map(|op| op.as_tag_tuple());
        return runs.map(|(tag, old, new)| (tag == DiffTag::Equal, old, new)).collect();
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let max_tail = old.len().min(new.len()) - head;
    let pairs = old.iter().rev().zip(new.iter().rev()).take(max_tail);
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
        let line_diff = LineDiff::compute(old, new).unwrap();
        line_diff.hunks.into_iter().map(|hunk| (hunk.old_range, hunk.new_range)).collect()
    }

    #[test]
    fn hunks_contain_only_different_lines() {
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
    fn an_edit_that_would_join_lines_has_no_line_diff() {
        assert!(LineDiff::compute("a\n", "b").is_none());
        assert!(LineDiff::compute("a\n", "b\n").is_some());
        assert!(LineDiff::compute("a", "b\n").is_some());
    }

    #[test]
    fn long_lists_have_one_run_of_differences() {
        let mut old: Vec<usize> = (0..MAX_DIFF_LINES + 10).collect();
        let new = old.clone();
        assert_eq!(align_runs(&old, &new), [(true, 0..old.len(), 0..old.len())]);
        old[5] = 0;
        old[100] = 0;
        assert_eq!(align_runs(&old, &new)[1], (false, 5..101, 5..101));
        assert_eq!(align_runs(&new[..7], &new)[1], (false, 7..7, 7..new.len()));
    }
}
