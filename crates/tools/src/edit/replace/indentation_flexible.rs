//! The same lines, indented differently.
//!
//! Lines that agree once their common indentation is gone agree once they are trimmed, so this
//! strategy finds no place that the line-trimmed one does not. It tells the two apart: whether a
//! block moved as a whole, or its lines drifted each on its own.

use super::Scene;
use super::lines::parts;

/// Whether the old lines stand at a line, all moved by the same step and otherwise the same.
pub(super) fn fits(scene: &Scene<'_>, first: usize) -> bool {
    let Some(change) = &scene.change else { return false };
    let wanted = change.old.iter().copied();
    let there = (first..).map(|line| scene.lines.get(line));
    let pairs: Vec<_> = wanted.zip(there).filter(|(old, _)| !old.trim().is_empty()).collect();
    let moved = pairs.iter().any(|(old, file)| parts(old).0 != parts(file).0);
    let margin = |lines: &mut dyn Iterator<Item = &str>| {
        lines.map(|line| parts(line).0.len()).min().unwrap_or(0)
    };
    let (old_margin, file_margin) = (
        margin(&mut pairs.iter().map(|pair| pair.0)),
        margin(&mut pairs.iter().map(|pair| pair.1)),
    );
    let inner = |line: &str, margin: usize| parts(line).0.len() - margin;
    let same = |(old, file): &(&str, &str)| {
        let (old_inner, file_inner) = (inner(old, old_margin), inner(file, file_margin));
        // Tabs and spaces count differently, so only whether there is a step can be compared.
        let alike = parts(old).0.chars().next() == parts(file).0.chars().next();
        (old_inner == file_inner || (!alike && (old_inner == 0) == (file_inner == 0)))
            && parts(old).2 == parts(file).2
    };
    moved && pairs.iter().all(same)
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::super::{Count, Strategy};

    #[test]
    fn a_block_that_moved_is_told_from_lines_that_drifted() {
        for (text, old, new, after, strategy) in [
            (
                "m\n    if alpha:\n        b\n",
                "if alpha:\n    b",
                "if alpha:\n    c",
                "m\n    if alpha:\n        c\n",
                Strategy::IndentationFlexible,
            ),
            (
                "\tif alpha\n\t\tb\n",
                "  if alpha\n    b",
                "  if alpha\n    b\n    c",
                "\tif alpha\n\t\tb\n\t\tc\n",
                Strategy::IndentationFlexible,
            ),
            (
                "if alpha:\n    b\n",
                "    if alpha:\n        b\n",
                "    if alpha:\n        c\n",
                "if alpha:\n    c\n",
                Strategy::IndentationFlexible,
            ),
            (
                "if alpha:\n    b\nc\n",
                "if alpha:\n  b\nc",
                "if alpha:\n  b\nd",
                "if alpha:\n    b\nd\n",
                Strategy::LineTrimmed,
            ),
        ] {
            assert_eq!(applied(text, old, new, Count::One), (after.into(), strategy), "{text:?}");
        }
    }
}
