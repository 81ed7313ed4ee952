//! The `Exact` strategy: the text occurs exactly once.

use super::text_lines::{TextLines, find_occurrences};
use super::work_limit::MAX_LISTED_MATCHES;
use super::{EditError, MatchStrategy, ReplaceCount, TextReplacement, TextSplice};

/// Replaces the only occurrence. Overlapping occurrences count as several.
pub(super) fn find(text: &str, old: &str, new: &str) -> Option<Result<TextReplacement, EditError>> {
    let offsets = find_occurrences(text, old, MAX_LISTED_MATCHES + 1);
    let offset = *offsets.first()?;
    if offsets.len() > 1 {
        let lines = TextLines::new(text);
        let lines = offsets.into_iter().map(|offset| lines.line_at(offset)).collect();
        return Some(Err(EditError::ambiguous(MatchStrategy::Exact, lines, ReplaceCount::One)));
    }
    let splices = vec![TextSplice { range: offset..offset + old.len(), new_text: new.to_owned() }];
    Some(Ok(TextReplacement { splices, strategy: MatchStrategy::Exact }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount};

    #[test]
    fn the_only_occurrence_is_replaced_literally() {
        for (text, old, new, after) in [
            ("a b c", "b", "x", "a x c"),
            ("a\nb\n", "a\n", "x", "xb\n"),
            ("a\nb", "\nb", "", "a"),
            ("cost", "cost", "$& $1 \\0", "$& $1 \\0"),
            ("“ä”", "ä", "ö", "“ö”"),
            ("a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n"),
        ] {
            assert_eq!(
                apply_edit(text, old, new, ReplaceCount::One),
                (after.into(), MatchStrategy::Exact)
            );
        }
    }

    #[test]
    fn two_occurrences_are_ambiguous_even_if_they_overlap() {
        let strategy = MatchStrategy::Exact;
        let error = edit_error("a\naa\n", "a", "b", ReplaceCount::One);
        assert_eq!(
            error,
            EditError::Ambiguous { strategy, lines: vec![1, 2, 2], count: ReplaceCount::One }
        );
        let error = edit_error("xaaax", "aa", "b", ReplaceCount::One);
        assert_eq!(
            error,
            EditError::Ambiguous { strategy, lines: vec![1, 1], count: ReplaceCount::One }
        );
    }
}
