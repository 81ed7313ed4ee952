//! The `TrimmedBoundary` strategy: same text except for whitespace around it.

use super::apply_diff::resolve_candidates;
use super::candidate_lines::CandidateLines;
use super::line_diff::LineDiff;
use super::text_lines::{TextLines, find_occurrences, has_word_boundaries, split_line, trim_line};
use super::work_limit::MAX_CANDIDATES;
use super::{EditSite, MatchOutcome, MatchStrategyInput, TextSplice, UnsafeMatchReason};
use std::ops::Range;

pub(super) fn find(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    let (leading, core, trailing) = split_line(context.old);
    if leading.is_empty() && trailing.is_empty() {
        return MatchOutcome::NoMatch;
    }
    let text = context.lines.text();
    let fits = |offset: &usize| {
        has_matching_boundaries(context.lines, &(*offset..*offset + core.len()), leading, trailing)
    };
    let offsets: Vec<usize> =
        find_occurrences(text, core, MAX_CANDIDATES + 1).into_iter().filter(fits).collect();
    if offsets.is_empty() {
        return find_inner_lines(context, core, (leading, trailing));
    }
    if offsets.len() > MAX_CANDIDATES {
        return MatchOutcome::Ambiguous(
            offsets.iter().map(|offset| context.lines.line_at(*offset)).collect(),
        );
    }
    let new = context.new.strip_prefix(leading).and_then(|new| new.strip_suffix(trailing));
    let mut sites = Vec::new();
    for offset in offsets {
        let range = offset..offset + core.len();
        let lines = context.lines.lines_touching(&range);
        let Some(new) = new else {
            return MatchOutcome::Uncertain {
                lines,
                uncertainty: UnsafeMatchReason::SpacingDiffers,
            };
        };
        sites.push(EditSite {
            lines,
            splices: vec![TextSplice { range, new_text: new.to_owned() }],
        });
    }
    MatchOutcome::Sites(sites)
}

/// Returns true if `range` ends at boundaries that fit the whitespace around the edit: a word must
/// not be part of a longer one, and a line must be a whole line.
fn has_matching_boundaries(
    lines: &TextLines<'_>,
    range: &Range<usize>,
    leading: &str,
    trailing: &str,
) -> bool {
    let touched = lines.lines_touching(range);
    let (start, end) = (lines.line_start(touched.start), lines.line_end(touched.end - 1));
    let before = lines.text().get(start..range.start).unwrap_or_default();
    let after = lines.text().get(range.end..end).unwrap_or_default();
    let fits = |side: &str, neighbor: Option<char>, line: &str| match () {
        () if side.is_empty() => true,
        () if side.contains('\n') => line.trim().is_empty(),
        () => neighbor.is_none_or(char::is_whitespace),
    };
    has_word_boundaries(lines.text(), range)
        && fits(leading, before.chars().next_back(), before)
        && fits(trailing, after.chars().next(), after)
}

/// Matches the lines between surrounding blank lines that the file does not have.
fn find_inner_lines(
    context: &MatchStrategyInput<'_>,
    core: &str,
    (leading, trailing): (&str, &str),
) -> MatchOutcome {
    let indent_start = leading.rfind('\n').map_or(0, |index| index + 1);
    let (Some(blank_lines), true) =
        (leading.get(..indent_start), indent_start > 0 || trailing.contains('\n'))
    else {
        return MatchOutcome::NoMatch;
    };
    let new = context.new.strip_prefix(blank_lines).and_then(|new| new.strip_suffix(trailing));
    let indent = leading.get(indent_start..).unwrap_or_default();
    let old = format!("{indent}{core}");
    let Some(line_diff) = new.and_then(|new| LineDiff::compute(&old, new)) else {
        return MatchOutcome::NoMatch;
    };
    let found = context.lines.find_lines(&line_diff.old_lines, trim_line);
    let to_candidate = |first| CandidateLines::contiguous(first, line_diff.old_lines.len());
    resolve_candidates(
        context,
        &line_diff,
        &found.into_iter().map(to_candidate).collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount, UnsafeMatchReason};

    #[test]
    fn surrounding_whitespace_may_be_missing_in_the_file() {
        for (text, old, new, after) in [
            ("foo()\nbar()\n", "\nfoo()\n", "\nbaz()\n", "baz()\nbar()\n"),
            ("x = foo(1)\n", "  foo(1)", "  bar(1)", "x = bar(1)\n"),
            ("a\nb", "\n\na\nb\n\n", "\n\na\nc\n\n", "a\nc"),
            ("a \nb", "\n\na\nb\n\n", "\n\na\nc\n\n", "a \nc"),
        ] {
            let found = apply_edit(text, old, new, ReplaceCount::One);
            assert_eq!(found, (after.into(), MatchStrategy::TrimmedBoundary), "{old:?}");
        }
    }

    #[test]
    fn part_of_a_longer_word_does_not_match() {
        for (text, old) in [
            ("foobar", " foo "),
            ("x foo", "\nfoo"),
            ("foo x", "  foo\n"),
            ("xfoo = 1\n", "foo = 1  "),
            ("x = foobar\n", "  x = foo"),
        ] {
            let error = edit_error(text, old, &old.replace("foo", "baz"), ReplaceCount::One);
            assert!(matches!(error, EditError::NotFound { .. }), "{old:?} {error:?}");
        }
    }

    #[test]
    fn an_edit_of_missing_whitespace_is_uncertain() {
        let error = edit_error("x = foo(1)\n", "  foo(1)", "bar(1)", ReplaceCount::One);
        assert!(
            matches!(
                error,
                EditError::Uncertain { uncertainty: UnsafeMatchReason::SpacingDiffers, .. }
            ),
            "{error:?}"
        );
    }
}
