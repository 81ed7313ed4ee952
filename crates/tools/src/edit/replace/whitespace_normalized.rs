//! The `WhitespaceNormalized` strategy: same words with different spacing.
//!
//! A one-line edit may match part of a line; an edit of several lines matches whole lines.

use super::apply_diff::resolve_candidates;
use super::candidate_lines::CandidateLines;
use super::text_lines::{collapse_whitespace, find_occurrences, has_word_boundaries};
use super::work_limit::MAX_CANDIDATES;
use super::{EditSite, MatchOutcome, MatchStrategyInput, TextSplice, word_diff};

pub(super) fn find(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    if !context.old.contains('\n') && context.old.trim() == context.old {
        return find_partial_line(context);
    }
    let Some(line_diff) = &context.line_diff else { return MatchOutcome::NoMatch };
    let found = context.lines.find_lines(&line_diff.old_lines, collapse_whitespace);
    let to_candidate = |first| CandidateLines::contiguous(first, line_diff.old_lines.len());
    resolve_candidates(context, line_diff, &found.into_iter().map(to_candidate).collect::<Vec<_>>())
}

/// Matches part of a line.
fn find_partial_line(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    let (old, new) = (context.old, context.new);
    let text = context.lines.text();
    let collapsed = WhitespaceCollapsedText::new(text);
    let needle = collapse_whitespace(old);
    let offsets = find_occurrences(&collapsed.text, &needle, MAX_CANDIDATES + 1);
    if offsets.len() > MAX_CANDIDATES {
        return MatchOutcome::Ambiguous(
            offsets
                .iter()
                .map(|offset| context.lines.line_at(collapsed.original_offset(*offset)))
                .collect(),
        );
    }
    let mut sites = Vec::new();
    for offset in offsets {
        // The end is computed from the last character, because whitespace may follow it.
        let last_len = needle.chars().next_back().map_or(1, char::len_utf8);
        let range = collapsed.original_offset(offset)
            ..collapsed.original_offset(offset + needle.len() - last_len) + last_len;
        if !has_word_boundaries(text, &range) {
            continue;
        }
        let lines = context.lines.lines_touching(&range);
        let matched = text.get(range.clone()).unwrap_or_default();
        if new.contains('\n') || new.trim() != new || !keeps_words(old, new) {
            return MatchOutcome::Uncertain {
                lines,
                uncertainty: super::UnsafeMatchReason::SpacingDiffers,
            };
        }
        let splices =
            vec![TextSplice { range, new_text: word_diff::apply_word_diff(old, new, matched) }];
        sites.push(EditSite { lines, splices });
    }
    if sites.is_empty() { MatchOutcome::NoMatch } else { MatchOutcome::Sites(sites) }
}

/// Returns true if `old` has several words and `new` is not empty.
fn keeps_words(old: &str, new: &str) -> bool {
    old.split_whitespace().count() > 1 && !new.is_empty()
}

/// A text with every run of whitespace within a line collapsed to one space.
struct WhitespaceCollapsedText {
    text: String,
    /// Offsets of each word in the collapsed and in the original text.
    word_offsets: Vec<(usize, usize)>,
}

impl WhitespaceCollapsedText {
    fn new(text: &str) -> WhitespaceCollapsedText {
        let mut collapsed = WhitespaceCollapsedText {
            text: String::with_capacity(text.len()),
            word_offsets: Vec::new(),
        };
        let (mut space, mut in_word) = (None, false);
        for (offset, character) in text.char_indices() {
            if character.is_whitespace() {
                // A whitespace run that contains a line ending becomes one line ending.
                space = Some(if character == '\n' { '\n' } else { space.unwrap_or(' ') });
                in_word = false;
                continue;
            }
            collapsed.text.extend(space.take());
            if !in_word {
                collapsed.word_offsets.push((collapsed.text.len(), offset));
                in_word = true;
            }
            collapsed.text.push(character);
        }
        collapsed
    }

    /// Maps the offset of a byte in a word to the original text.
    fn original_offset(&self, offset: usize) -> usize {
        let word = self
            .word_offsets
            .partition_point(|(collapsed_start, _)| *collapsed_start <= offset)
            .saturating_sub(1);
        self.word_offsets.get(word).map_or(0, |(collapsed_start, original_start)| {
            original_start + offset.saturating_sub(*collapsed_start)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount};

    #[test]
    fn changed_words_keep_the_spacing_of_the_file() {
        for (text, old, new, after) in [
            ("x = f(a,  b);\n", "f(a, b)", "f(a, c)", "x = f(a,  c);\n"),
            (
                "int  é = 1;\n\n\tint b = 2;\n",
                "int é = 1;",
                "int é = 3;",
                "int  é = 3;\n\n\tint b = 2;\n",
            ),
            ("a  = 1\nb   = 2\n", "a = 1\nb = 2\n", "a = 1\nb = 3\n", "a  = 1\nb   = 3\n"),
            (
                "a  = 1\nb   = 2\n",
                "a = 1\nb = 2\n",
                "a = 1\nc = 3\nb = 2\n",
                "a  = 1\nc = 3\nb   = 2\n",
            ),
            ("  a  = 1\n", "a = 1", "a = 1 + 1", "  a  = 1 + 1\n"),
        ] {
            assert_eq!(
                apply_edit(text, old, new, ReplaceCount::One),
                (after.into(), MatchStrategy::WhitespaceNormalized),
                "{text:?}"
            );
        }
    }

    #[test]
    fn part_of_a_longer_word_does_not_match() {
        for (text, old, new) in [
            ("max  = 15\n", "x = 1", "x = 2"),
            ("x  = 15\n", "x = 1", "x = 2"),
            ("max  = 1\n", "x = 1", "x = 2"),
            ("f(_a,  b)\n", "a, b", "c, b"),
            ("Maße  = 1\n", "e = 1", "e = 2"),
        ] {
            for count in [ReplaceCount::One, ReplaceCount::All] {
                let error = edit_error(text, old, new, count);
                assert!(matches!(error, EditError::NotFound { .. }), "{text:?} {error:?}");
            }
        }
        // Such a part does not make a match ambiguous.
        let (after, _) = apply_edit("max  = 1\nx   = 1\n", "x = 1", "x = 2", ReplaceCount::One);
        assert_eq!(after, "max  = 1\nx   = 2\n");
    }

    #[test]
    fn words_on_two_lines_do_not_match_one_line() {
        let error = edit_error("a\nb\n", "a b", "a c", ReplaceCount::One);
        assert!(matches!(error, EditError::NotFound { .. }), "{error:?}");
    }

    #[test]
    fn two_spacings_of_the_same_words_are_ambiguous() {
        let error = edit_error("f(a,  b)\nf(a,   b)\n", "f(a, b)", "f(b, a)", ReplaceCount::One);
        let strategy = MatchStrategy::WhitespaceNormalized;
        assert_eq!(
            error,
            EditError::Ambiguous { strategy, lines: vec![1, 2], count: ReplaceCount::One }
        );
    }
}
