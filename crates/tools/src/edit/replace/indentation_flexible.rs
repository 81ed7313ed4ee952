//! The `IndentationFlexible` strategy: same lines with a different indentation.
//!
//! Lines that match without their common indentation also match after trimming, so this strategy
//! finds nothing that `LineTrimmed` does not. It tells the two cases apart: a block indented
//! differently as a whole, or lines that differ individually.

use super::MatchStrategyInput;
use super::text_lines::split_line;

/// Returns true if the old lines match at line `first`, all shifted by the same indentation and
/// otherwise equal.
pub(super) fn is_reindented_match(context: &MatchStrategyInput<'_>, first: usize) -> bool {
    let Some(line_diff) = &context.line_diff else { return false };
    let old_lines = line_diff.old_lines.iter().copied();
    let file_lines = (first..).map(|line| context.lines.get(line));
    let pairs: Vec<_> =
        old_lines.zip(file_lines).filter(|(old, _)| !old.trim().is_empty()).collect();
    let is_shifted = pairs.iter().any(|(old, file)| split_line(old).0 != split_line(file).0);
    let margin = |lines: &mut dyn Iterator<Item = &str>| {
        lines.map(|line| split_line(line).0.len()).min().unwrap_or(0)
    };
    let (old_margin, file_margin) = (
        margin(&mut pairs.iter().map(|pair| pair.0)),
        margin(&mut pairs.iter().map(|pair| pair.1)),
    );
    let inner_width = |line: &str, margin: usize| split_line(line).0.len() - margin;
    let is_same_shift = |(old, file): &(&str, &str)| {
        let (old_inner, file_inner) =
            (inner_width(old, old_margin), inner_width(file, file_margin));
        // Tabs and spaces have different widths, so only the presence of an inner indentation can
        // be compared.
        let has_same_char = split_line(old).0.chars().next() == split_line(file).0.chars().next();
        (old_inner == file_inner || (!has_same_char && (old_inner == 0) == (file_inner == 0)))
            && split_line(old).2 == split_line(file).2
    };
    is_shifted && pairs.iter().all(is_same_shift)
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply_edit;
    use super::super::{MatchStrategy, ReplaceCount};

    #[test]
    fn a_reindented_block_is_distinguished_from_individual_lines() {
        for (text, old, new, after, strategy) in [
            (
                "m\n    if alpha:\n        b\n",
                "if alpha:\n    b",
                "if alpha:\n    c",
                "m\n    if alpha:\n        c\n",
                MatchStrategy::IndentationFlexible,
            ),
            (
                "\tif alpha\n\t\tb\n",
                "  if alpha\n    b",
                "  if alpha\n    b\n    c",
                "\tif alpha\n\t\tb\n\t\tc\n",
                MatchStrategy::IndentationFlexible,
            ),
            (
                "if alpha:\n    b\n",
                "    if alpha:\n        b\n",
                "    if alpha:\n        c\n",
                "if alpha:\n    c\n",
                MatchStrategy::IndentationFlexible,
            ),
            (
                "if alpha:\n    b\nc\n",
                "if alpha:\n  b\nc",
                "if alpha:\n  b\nd",
                "if alpha:\n    b\nd\n",
                MatchStrategy::LineTrimmed,
            ),
        ] {
            assert_eq!(
                apply_edit(text, old, new, ReplaceCount::One),
                (after.into(), strategy),
                "{text:?}"
            );
        }
    }
}
