//! Applies the difference of an edit to the text of the file, and only where the file agrees with
//! what the edit removes. This rule keeps loose matches safe.
//!
//! Lines that the edit does not change keep the text of the file, however much it differs. Lines
//! that the edit removes must have the same words in the file. New lines go only between lines that
//! are neighbors in the file too, and take over the indentation around them. Anything else is an
//! [`UnsafeMatchReason`], and nothing changes.

use super::candidate_lines::CandidateLines;
use super::indent::IndentMap;
use super::line_diff::{EditHunk, LineDiff};
use super::text_lines::{TextLines, has_same_words, split_line};
use super::{
    EditSite, MatchOutcome, MatchStrategyInput, ReplaceCount, TextSplice, UnsafeMatchReason,
    escape_normalized, similarity, word_diff,
};
use std::ops::Range;

/// Applies the edit to equally likely candidates. Returns `Ambiguous` for several with
/// `ReplaceCount::One`, or for more than `MAX_CANDIDATES`.
pub(super) fn resolve_candidates(
    context: &MatchStrategyInput<'_>,
    line_diff: &LineDiff<'_>,
    candidates: &[CandidateLines],
) -> MatchOutcome {
    let is_ambiguous = candidates.len() > 1 && context.count == ReplaceCount::One;
    if is_ambiguous || candidates.len() > super::work_limit::MAX_CANDIDATES {
        return MatchOutcome::Ambiguous(
            candidates.iter().map(|candidate| candidate.lines.start).collect(),
        );
    }
    let mut sites = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let lines = candidate.lines.clone();
        match apply_diff(context.lines, line_diff, candidate) {
            Ok(splices) => sites.push(EditSite { lines, splices }),
            Err(uncertainty) => return MatchOutcome::Uncertain { lines, uncertainty },
        }
    }
    if sites.is_empty() { MatchOutcome::NoMatch } else { MatchOutcome::Sites(sites) }
}

/// Applies `line_diff` to a candidate, or returns the `UnsafeMatchReason` that prevents it.
pub(super) fn apply_diff(
    lines: &TextLines<'_>,
    line_diff: &LineDiff<'_>,
    candidate: &CandidateLines,
) -> Result<Vec<TextSplice>, UnsafeMatchReason> {
    let pairs = line_diff.old_lines.iter().zip(&candidate.line_matches);
    let mut matched = pairs.filter_map(|(old, line)| Some((*old, lines.get((*line)?))));
    if matched.any(|(old, file)| {
        !has_same_words(old, file) && escape_normalized::matches_line_unescaped(old, file)
    }) {
        return Err(UnsafeMatchReason::EscapesDiffer);
    }
    let indent_map = learn_indent_map(lines, line_diff, candidate);
    // Braces with a different indentation could be any braces.
    let lacks_distinctive_match = indent_map.is_remapped()
        && similarity::count_distinctive_matches(lines, line_diff, candidate) == 0;
    if lacks_distinctive_match || !similarity::is_similar_enough(lines, line_diff, candidate) {
        return Err(UnsafeMatchReason::TooDifferent);
    }
    apply_hunks(lines, line_diff, candidate, indent_map)
}

/// Turns every hunk into a `TextSplice` at the candidate.
fn apply_hunks(
    lines: &TextLines<'_>,
    line_diff: &LineDiff<'_>,
    candidate: &CandidateLines,
    indent_map: IndentMap,
) -> Result<Vec<TextSplice>, UnsafeMatchReason> {
    let applier = DiffApplier { lines, line_diff, candidate, indent_map };
    let mut splices = Vec::with_capacity(line_diff.hunks.len());
    for hunk in &line_diff.hunks {
        let removed = applier.removed_lines(hunk)?;
        let added = applier.added_lines(hunk, &removed)?;
        splices.push(applier.make_splice(removed, added));
    }
    Ok(splices)
}

/// Derives the `IndentMap` from the lines that match.
fn learn_indent_map(
    lines: &TextLines<'_>,
    line_diff: &LineDiff<'_>,
    candidate: &CandidateLines,
) -> IndentMap {
    let mut first = None;
    let mut rest = Vec::new();
    for (index, (old, matching_line)) in
        line_diff.old_lines.iter().zip(&candidate.line_matches).enumerate()
    {
        let Some(file) = matching_line.map(|line| lines.get(line)) else { continue };
        let ((old_indent, content, _), (file_indent, _, _)) = (split_line(old), split_line(file));
        if content.is_empty() || !has_same_words(old, file) {
            continue;
        }
        match index {
            0 => first = Some((old_indent, file_indent)),
            _ => rest.push((old_indent, file_indent)),
        }
    }
    IndentMap::learn(first, &rest, line_diff, lines)
}

struct DiffApplier<'a> {
    lines: &'a TextLines<'a>,
    line_diff: &'a LineDiff<'a>,
    candidate: &'a CandidateLines,
    indent_map: IndentMap,
}

impl DiffApplier<'_> {
    fn old_line(&self, line: usize) -> &str {
        self.line_diff.old_lines.get(line).copied().unwrap_or_default()
    }

    /// Returns true if old line `old` matches file line `line` with the same words.
    fn is_matched_at(&self, old: usize, line: usize) -> bool {
        self.candidate.matching_line(old) == Some(line)
            && has_same_words(self.old_line(old), self.lines.get(line))
    }

    /// Returns the file lines that a hunk removes, or an empty range at the position where it
    /// inserts.
    fn removed_lines(&self, hunk: &EditHunk) -> Result<Range<usize>, UnsafeMatchReason> {
        let before = hunk.old_range.start.checked_sub(1);
        let after =
            (hunk.old_range.end < self.line_diff.old_lines.len()).then_some(hunk.old_range.end);
        let first = match (self.candidate.matching_line(hunk.old_range.start), before) {
            (Some(line), _) if !hunk.old_range.is_empty() => line,
            (_, Some(before)) => {
                self.candidate.matching_line(before).ok_or(UnsafeMatchReason::UnmatchedNeighbor)?
                    + 1
            }
            (_, None) => self.candidate.lines.start,
        };
        for (line, old) in (first..).zip(hunk.old_range.clone()) {
            if !self.is_matched_at(old, line) {
                return Err(UnsafeMatchReason::LineDiffers { line: line + 1 });
            }
        }
        let removed = first..first + hunk.old_range.len();
        let left = before.map(|old| (old, removed.start.wrapping_sub(1)));
        let right = after.map(|old| (old, removed.end));
        let neighbors = || [left, right].into_iter().flatten();
        if self.candidate.is_contiguous() {
            // A pure insertion needs at least one matching neighbor.
            let has_matching_neighbor =
                neighbors().any(|(old, line)| self.is_matched_at(old, line));
            return if has_matching_neighbor || !hunk.old_range.is_empty() {
                Ok(removed)
            } else {
                Err(UnsafeMatchReason::UnmatchedNeighbor)
            };
        }
        let reaches_ends = (after.is_some() || removed.end == self.candidate.lines.end)
            && (before.is_some() || removed.start == self.candidate.lines.start);
        let neighbors_match = neighbors().all(|(old, line)| self.is_matched_at(old, line));
        if neighbors_match && reaches_ends {
            Ok(removed)
        } else {
            Err(UnsafeMatchReason::UnmatchedNeighbor)
        }
    }

    /// Returns the new lines of a hunk with the indentation and spacing of the file (`IndentMap`).
    fn added_lines(
        &self,
        hunk: &EditHunk,
        removed: &Range<usize>,
    ) -> Result<Vec<String>, UnsafeMatchReason> {
        let is_paired = hunk.old_range.len() == hunk.new_range.len();
        let mut added = Vec::with_capacity(hunk.new_range.len());
        for (index, new) in hunk.new_range.clone().enumerate() {
            let new = self.line_diff.new_lines.get(new).copied().unwrap_or_default();
            let pair = is_paired
                .then(|| (self.old_line(hunk.old_range.start + index), removed.start + index));
            let line = match pair {
                Some((old, line)) => self.replacement_line(old, new, line, hunk.old_range.len()),
                None => self.inserted_line(new),
            };
            added.push(
                line.ok_or(UnsafeMatchReason::UnknownIndentation { line: removed.start + 1 })?,
            );
        }
        Ok(added)
    }

    /// Builds the new text of a changed line.
    fn replacement_line(
        &self,
        old: &str,
        new: &str,
        line: usize,
        hunk_length: usize,
    ) -> Option<String> {
        let file = split_line(self.lines.get(line));
        let (old_parts, new_parts) = (split_line(old), split_line(new));
        let has_blank = old_parts.1.is_empty() || new_parts.1.is_empty();
        if has_blank && old_parts.1 != new_parts.1 {
            return self.inserted_line(new);
        }
        // A single changed line keeps its indentation even if the other lines are inconsistent.
        let keeps_indent =
            old_parts.0 == new_parts.0 && (hunk_length == 1 || self.indent_map.is_consistent());
        let indent = if keeps_indent {
            file.0.to_owned()
        } else {
            self.indent_map.map_indent(new_parts.0)?
        };
        let content = match () {
            () if old_parts.1 == new_parts.1 => file.1.to_owned(),
            () if old_parts.1 == file.1 => new_parts.1.to_owned(),
            () => word_diff::apply_word_diff(old_parts.1, new_parts.1, file.1),
        };
        let trailing = if old_parts.2 == new_parts.2 { file.2 } else { new_parts.2 };
        Some(indent + &content + trailing)
    }

    /// Builds the text of an inserted line.
    fn inserted_line(&self, new: &str) -> Option<String> {
        let (indent, content, trailing) = split_line(new);
        if content.is_empty() {
            let remapped = self.indent_map.map_indent(new).filter(|_| !new.is_empty());
            return Some(remapped.unwrap_or_default());
        }
        Some(self.indent_map.map_indent(indent)? + content + trailing)
    }

    /// Replaces the `removed` lines by `added`, including line endings.
    fn make_splice(&self, removed: Range<usize>, added: Vec<String>) -> TextSplice {
        let lines = self.lines;
        let lacks_final_newline = !lines.text().ends_with('\n');
        let text = (!added.is_empty()).then(|| added.join("\n"));
        let (start, end) = (lines.line_start(removed.start), lines.line_start(removed.end));
        match text {
            Some(text) if !removed.is_empty() => {
                TextSplice { range: start..lines.line_end(removed.end - 1), new_text: text }
            }
            Some(text) if removed.start >= lines.len() && lacks_final_newline => {
                TextSplice { range: start..start, new_text: format!("\n{text}") }
            }
            Some(text) => TextSplice { range: start..start, new_text: text + "\n" },
            None if removed.end >= lines.len() && lacks_final_newline && removed.start > 0 => {
                TextSplice {
                    range: lines.line_end(removed.start - 1)..end,
                    new_text: String::new(),
                }
            }
            None => TextSplice { range: start..end, new_text: String::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies an edit to a candidate with the same number of lines.
    fn apply_at(
        text: &str,
        old: &str,
        new: &str,
        first: usize,
    ) -> Result<String, UnsafeMatchReason> {
        let (lines, line_diff) = (TextLines::new(text), LineDiff::compute(old, new).unwrap());
        let candidate = CandidateLines::contiguous(first, line_diff.old_lines.len());
        let splices = apply_hunks(
            &lines,
            &line_diff,
            &candidate,
            learn_indent_map(&lines, &line_diff, &candidate),
        )?;
        Ok(super::super::tests::apply(text, &splices))
    }

    #[test]
    fn unchanged_lines_keep_the_text_of_the_file() {
        for (text, old, new, after) in [
            ("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd\n", "a\nb(1)\nx\nd\n", "a\nb(2)\nx\nd\n"),
            ("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd", "a\nb(1)\nc\nd\ne", "a\nb(2)\nc\nd\ne\n"),
            ("  a  \n  b\n", "a\nb", "a\nc", "  a  \n  c\n"),
            ("a \nb\t\n", "a\nb", "x\nb", "x \nb\t\n"),
            ("\ta\n\tb\n", "    a\n    b\n", "    a\n", "\ta\n"),
        ] {
            assert_eq!(apply_at(text, old, new, 0).as_deref(), Ok(after), "{text:?} {new:?}");
        }
    }

    #[test]
    fn removed_lines_must_match_the_file() {
        let result = apply_at("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd\n", "a\nx\nc\nd\n", 0);
        assert_eq!(result, Err(UnsafeMatchReason::LineDiffers { line: 2 }));
        let result = apply_at("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd\n", "a\nc\nd\n", 0);
        assert_eq!(result, Err(UnsafeMatchReason::LineDiffers { line: 2 }));
    }

    #[test]
    fn an_inserted_line_needs_a_matching_neighbor() {
        let (old, new) = ("a(1)\nb(1)\nc(1)\nd\ne\nf\ng\nh", "a(1)\nb(1)\nx\nc(1)\nd\ne\nf\ng\nh");
        let result = apply_at("a(1)\nb(2)\nc(2)\nd\ne\nf\ng\nh\n", old, new, 0);
        assert_eq!(result, Err(UnsafeMatchReason::UnmatchedNeighbor));
        let after = apply_at("a(1)\nb(2)\nc(1)\nd\ne\nf\ng\nh\n", old, new, 0);
        assert_eq!(after.as_deref(), Ok("a(1)\nb(2)\nx\nc(1)\nd\ne\nf\ng\nh\n"));
    }

    #[test]
    fn lines_are_not_inserted_between_lines_that_are_apart_in_the_file() {
        let lines = TextLines::new("a\nmore\nb\nc\nd\ne\nf\ng\nh\n");
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        let line_matches = [0, 2, 3, 4, 5, 6, 7, 8].map(Some).to_vec();
        let candidate = CandidateLines { lines: 0..9, line_matches };
        let new = old.replace("a\n", "a\nx\n");
        let line_diff = LineDiff::compute(old, &new).unwrap();
        let indent_map = || learn_indent_map(&lines, &line_diff, &candidate);
        assert_eq!(
            apply_hunks(&lines, &line_diff, &candidate, indent_map()),
            Err(UnsafeMatchReason::UnmatchedNeighbor)
        );
        let new = old.replace("c\n", "x\nc\n");
        let line_diff = LineDiff::compute(old, &new).unwrap();
        let splices = apply_hunks(
            &lines,
            &line_diff,
            &candidate,
            learn_indent_map(&lines, &line_diff, &candidate),
        )
        .unwrap();
        let after = super::super::tests::apply(lines.text(), &splices);
        assert_eq!(after, lines.text().replace("c\n", "x\nc\n"));
    }

    #[test]
    fn new_lines_get_the_indentation_of_the_file() {
        for (text, old, new, after) in [
            (
                "  if a:\n    b\n",
                "if a:\n  b",
                "if a:\n  b\n  c\nd",
                "  if a:\n    b\n    c\n  d\n",
            ),
            ("\tif a\n\t\tb\n", "if a\n  b", "if a\n  if c\n    b", "\tif a\n\t\tif c\n\t\t\tb\n"),
            (
                "    a\n        b\n",
                "a\n    b",
                "if x\n    a\n        b",
                "    if x\n        a\n            b\n",
            ),
            ("        a\n", "    a", "    a\n    b", "        a\n        b\n"),
        ] {
            assert_eq!(apply_at(text, old, new, 0).as_deref(), Ok(after), "{text:?} {new:?}");
        }
    }

    #[test]
    fn an_unknown_indentation_is_not_guessed() {
        // The edit lost its structure: both lines have the same indentation.
        let result = apply_at("if a:\n    b\n", " if a:\n b", " if a:\n b\n c", 0);
        assert_eq!(result, Err(UnsafeMatchReason::UnknownIndentation { line: 3 }));
        // A single changed line keeps its indentation.
        let after = apply_at("if a:\n    b\n", " if a:\n b", " if a:\n c", 0);
        assert_eq!(after.as_deref(), Ok("if a:\n    c\n"));
    }

    #[test]
    fn line_endings_stay_unchanged() {
        for (text, old, new, after) in [
            (" a\n b", "a\nb\n", "a\nb\nc\n", " a\n b\n c"),
            (" a\nb", "a\nb\n", "a\n", " a"),
            (" a\nb\n", "a\nb\n", "a\n", " a\n"),
            (" a\nb\n", "a\n", "", "b\n"),
            (" a\nb\n", "a", "", "\nb\n"),
            (" a\nb\n", "a", "a\n", " a\n\nb\n"),
            (" a", "a\n", "", ""),
            (" a\nb", "a\nb", "b", "b"),
        ] {
            assert_eq!(
                apply_at(text, old, new, 0).as_deref(),
                Ok(after),
                "{text:?} {old:?} {new:?}"
            );
        }
    }
}
