//! The `ContextAware` strategy: same first and last line, same number of lines, and at least half
//! of the lines between them equal.

use super::apply_diff::resolve_candidates;
use super::block_anchor::{AnchorLineIds, has_middle};
use super::candidate_lines::CandidateLines;
use super::{MatchOutcome, MatchStrategyInput};

pub(super) fn find(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    let Some(line_diff) = context.line_diff.as_ref().filter(|line_diff| has_middle(line_diff))
    else {
        return MatchOutcome::NoMatch;
    };
    let (anchors, length) =
        (AnchorLineIds::new(context.lines, line_diff), line_diff.old_lines.len());
    let Some(blocks) = anchors.candidate_blocks(length..=length) else {
        return MatchOutcome::Ambiguous(anchors.first_anchor_lines());
    };
    let half_matches = |start: usize| {
        let middle = (1..length - 1).filter(|index| {
            !line_diff.old_lines.get(*index).is_none_or(|line| line.trim().is_empty())
        });
        let (same_count, line_count) = middle.fold((0, 0), |(same_count, line_count), index| {
            (same_count + usize::from(anchors.is_same_line(index, start + index)), line_count + 1)
        });
        line_count > 0 && same_count * 2 >= line_count
    };
    let blocks = blocks.into_iter().filter(|block| half_matches(block.start));
    let candidates: Vec<CandidateLines> =
        blocks.map(|block| CandidateLines::contiguous(block.start, length)).collect();
    if candidates.iter().any(|candidate| !anchors.has_distinctive_line(candidate)) {
        return MatchOutcome::NoMatch;
    }
    resolve_candidates(context, line_diff, &candidates)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount, UnsafeMatchReason};

    const TEXT: &str = "def load(path):\n    data = open(path).read()\n    rows = parse(data)\n    \
                        return rows\n";

    #[test]
    fn a_half_equal_middle_is_found_but_uncertain() {
        let old = TEXT.replace("data = open(path).read()", "with fetch(url) as reply: x");
        let error = edit_error(TEXT, &old, &old.replace("(data)", "(text)"), ReplaceCount::One);
        let EditError::Uncertain { strategy, uncertainty, region } = error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (strategy, uncertainty),
            (MatchStrategy::ContextAware, UnsafeMatchReason::TooDifferent)
        );
        assert_eq!((region.first_line, region.last_line), (1, 4));
    }

    #[test]
    fn a_short_middle_with_one_different_word_is_certain() {
        let text = "begin section\n  x = a\n  shown = b\nfinish section\n";
        let old = text.replace("x = a", "an_extraordinarily_long_name = a");
        let after = text.replace("shown = b", "shown = c");
        let found =
            apply_edit(text, &old, &old.replace("shown = b", "shown = c"), ReplaceCount::One);
        assert_eq!(found, (after, MatchStrategy::ContextAware));
    }

    #[test]
    fn two_half_equal_blocks_are_ambiguous() {
        let text = format!("{TEXT}\n{}", TEXT.replace("open(path)", "curl(path, 1, 2, 3)"));
        let old = "def load(path):\n    with fetch(url) as reply: x\n    rows = parse(data)\n    return rows\n";
        let error = edit_error(&text, old, &old.replace("(data)", "(text)"), ReplaceCount::One);
        assert!(!matches!(error, EditError::Uncertain { .. }), "{error:?}");
    }

    #[test]
    fn less_than_half_is_not_found() {
        let old = "def load(path):\n    one(1)\n    two(2)\n    return rows\n";
        let error =
            edit_error(TEXT, old, &old.replace("return rows", "return 1"), ReplaceCount::One);
        assert!(matches!(error, EditError::NotFound { .. }), "{error:?}");
    }
}
