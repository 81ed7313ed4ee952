//! The `LineTrimmed` strategy: same lines except for whitespace at their ends.

use super::apply_diff::resolve_candidates;
use super::candidate_lines::CandidateLines;
use super::text_lines::trim_line;
use super::{MatchOutcome, MatchStrategyInput};

pub(super) fn find(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    let Some(line_diff) = &context.line_diff else { return MatchOutcome::NoMatch };
    let found = context.lines.find_lines(&line_diff.old_lines, trim_line);
    let to_candidate = |first| CandidateLines::contiguous(first, line_diff.old_lines.len());
    resolve_candidates(context, line_diff, &found.into_iter().map(to_candidate).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount, UnsafeMatchReason};

    #[test]
    fn whitespace_at_line_ends_is_ignored() {
        for (text, old, new, after) in [
            (
                "f() {\n  a; \n  b;\n}\n",
                "f() {\n  a;\n  b;\n}",
                "f() {\n  a;\n  c;\n}",
                "f() {\n  a; \n  c;\n}\n",
            ),
            ("a\nb\nc\n", "a  \nb\t\n", "a  \nx\t\n", "a\nx\nc\n"),
            ("a\n\t\nb\n", "a\n\nb\n", "a\n\nc\n", "a\n\t\nc\n"),
            ("x\n a \nb", "a\nb\n", "a\nc\n", "x\n a \nc"),
            (
                "if a:  \n    b\n",
                "if a:\n    b\n",
                "if a:\n    b\n\n    c\n",
                "if a:  \n    b\n\n    c\n",
            ),
        ] {
            assert_eq!(
                apply_edit(text, old, new, ReplaceCount::One),
                (after.into(), MatchStrategy::LineTrimmed)
            );
        }
    }

    #[test]
    fn two_matches_are_ambiguous_and_can_all_be_replaced() {
        let (text, old, new) = ("a \nb\n\n a \nb\n", "a\nb\n", "a\nc\n");
        let error = edit_error(text, old, new, ReplaceCount::One);
        let strategy = MatchStrategy::LineTrimmed;
        assert_eq!(
            error,
            EditError::Ambiguous { strategy, lines: vec![1, 4], count: ReplaceCount::One }
        );
        let (after, _) = apply_edit("a \nb\n\na \nb\n", old, new, ReplaceCount::All);
        assert_eq!(after, "a \nc\n\na \nc\n");
    }

    #[test]
    fn overlapping_matches_are_ambiguous_even_with_replace_all() {
        let error = edit_error("a \na \na \n", "a\na\n", "b\n", ReplaceCount::All);
        let strategy = MatchStrategy::LineTrimmed;
        assert_eq!(
            error,
            EditError::Ambiguous { strategy, lines: vec![1, 2], count: ReplaceCount::All }
        );
    }

    #[test]
    fn an_uncertain_match_ends_the_search() {
        let text = "if alpha: \n    b\n";
        let error = edit_error(text, " if alpha:\n b", " if alpha:\n b\n c", ReplaceCount::One);
        let EditError::Uncertain { uncertainty, .. } = error else { panic!("{error:?}") };
        assert_eq!(uncertainty, UnsafeMatchReason::UnknownIndentation { line: 3 });
    }

    #[test]
    fn an_edit_without_effect_is_reported() {
        let error = edit_error("a\nb\n", "a  \nb", "a\nb", ReplaceCount::One);
        assert_eq!(error, EditError::AlreadyApplied { first_line: 1 });
    }
}
