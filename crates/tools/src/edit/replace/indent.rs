//! Detects the indentation difference between an edit and the file.

use super::line_diff::LineDiff;
use super::text_lines::{TextLines, leading_whitespace};
use std::collections::{BTreeMap, BTreeSet};

/// The mapping from indentations in the edit to indentations in the file.
#[derive(Debug)]
pub(super) enum IndentMap {
    Identical,
    /// Only the first line of the edit lost its indentation, as if copied from the middle of the
    /// line. An indentation equal to that of the first line is ambiguous.
    FirstLineUnindented {
        first: String,
    },
    /// Known indentations, and a rule for those between and beyond them.
    Remapped {
        known: BTreeMap<String, String>,
        rule: Option<IndentScaling>,
    },
    /// The lines differ in inconsistent ways.
    Inconsistent,
}

/// The width in the file as a linear function of the width in the edit.
#[derive(Debug)]
pub(super) struct IndentScaling {
    from_char: Option<char>,
    to_char: char,
    base_widths: (usize, usize),
    step_widths: (usize, usize),
}

impl IndentMap {
    /// Derives the mapping from matching lines: pairs of (indentation in the edit, indentation in
    /// the file), with the first line of the edit separate.
    pub(super) fn learn(
        first: Option<(&str, &str)>,
        rest: &[(&str, &str)],
        line_diff: &LineDiff<'_>,
        lines: &TextLines<'_>,
    ) -> IndentMap {
        let is_equal = |(old, file): &(&str, &str)| old == file;
        if rest.iter().all(is_equal) {
            match first {
                Some((old, file)) if old != file && !rest.is_empty() => {
                    if file.ends_with(old) {
                        return IndentMap::FirstLineUnindented { first: old.to_owned() };
                    }
                }
                Some((old, file)) if old != file => {}
                Some(_) | None => return IndentMap::Identical,
            }
        }
        let mut known = BTreeMap::new();
        for (old, file) in first.iter().chain(rest) {
            let previous = known.insert((*old).to_owned(), (*file).to_owned());
            if previous.is_some_and(|previous| previous != *file) {
                return IndentMap::Inconsistent;
            }
        }
        let widths: BTreeSet<(usize, usize)> =
            known.iter().map(|(old, file)| (old.len(), file.len())).collect();
        let is_increasing = widths.iter().zip(widths.iter().skip(1));
        let is_increasing =
            is_increasing.fold(true, |so_far, (a, b)| so_far && a.0 < b.0 && a.1 < b.1);
        if !is_increasing {
            return IndentMap::Inconsistent;
        }
        let rule = IndentScaling::derive(&known, &widths, line_diff, lines);
        IndentMap::Remapped { known, rule }
    }

    /// Returns false for `Inconsistent`.
    pub(super) fn is_consistent(&self) -> bool {
        !matches!(self, IndentMap::Inconsistent)
    }

    /// Returns true if the indentation of the file differs from that of the edit.
    pub(super) fn is_remapped(&self) -> bool {
        match self {
            IndentMap::Identical | IndentMap::FirstLineUnindented { .. } => false,
            IndentMap::Remapped { .. } | IndentMap::Inconsistent => true,
        }
    }

    /// Returns the indentation in the file for one in the edit, if it is certain.
    pub(super) fn map_indent(&self, indent: &str) -> Option<String> {
        match self {
            IndentMap::Identical => Some(indent.to_owned()),
            IndentMap::FirstLineUnindented { first } => {
                (indent != first).then(|| indent.to_owned())
            }
            IndentMap::Remapped { known, rule } => {
                let known = known.get(indent).cloned();
                known.or_else(|| rule.as_ref()?.map_indent(indent))
            }
            IndentMap::Inconsistent => None,
        }
    }
}

impl IndentScaling {
    /// Derives a rule from two known depths. A single depth is enough only if the indentation units
    /// of edit and file are known.
    fn derive(
        known: &BTreeMap<String, String>,
        widths: &BTreeSet<(usize, usize)>,
        line_diff: &LineDiff<'_>,
        lines: &TextLines<'_>,
    ) -> Option<IndentScaling> {
        let from_char = single_indent_char(
            line_diff
                .old_lines
                .iter()
                .chain(&line_diff.new_lines)
                .map(|line| leading_whitespace(line)),
        )?;
        let file_style = lines.indent_style();
        let to_char = single_indent_char(known.values().map(String::as_str))?;
        let to_char = to_char.or(file_style.map(|style| style.character))?;
        let (base, highest) = (*widths.first()?, *widths.last()?);
        let step = if base == highest {
            let (edit_unit, file_style) = (line_diff.indent_unit(from_char?)?, file_style?);
            // With the same indentation character, the units must be equal; with different ones,
            // the levels.
            let has_same_unit = from_char == Some(to_char) && edit_unit == file_style.unit_width;
            let has_same_level =
                base.0.is_multiple_of(edit_unit) && base.1.is_multiple_of(file_style.unit_width);
            let has_same_level = has_same_level
                && base.0 / edit_unit == base.1 / file_style.unit_width
                && base.0 > 0;
            if file_style.character != to_char
                || !(has_same_unit || (from_char != Some(to_char) && has_same_level))
            {
                return None;
            }
            (edit_unit, file_style.unit_width)
        } else {
            (highest.0 - base.0, highest.1 - base.1)
        };
        let rule = IndentScaling { from_char, to_char, base_widths: base, step_widths: step };
        widths.iter().all(|(old, file)| rule.map_width(*old) == Some(*file)).then_some(rule)
    }

    fn map_indent(&self, indent: &str) -> Option<String> {
        let is_uniform = indent.chars().all(|character| Some(character) == self.from_char);
        let width = self.map_width(indent.len()).filter(|_| is_uniform)?;
        Some(std::iter::repeat_n(self.to_char, width).collect())
    }

    fn map_width(&self, old: usize) -> Option<usize> {
        let ((old_base, file_base), (old_step, file_step)) = (self.base_widths, self.step_widths);
        let scale = |distance: usize| {
            let scaled = distance.checked_mul(file_step)?;
            scaled.is_multiple_of(old_step).then(|| scaled / old_step)
        };
        match old.checked_sub(old_base) {
            Some(deeper) => file_base.checked_add(scale(deeper)?),
            None => file_base.checked_sub(scale(old_base - old)?),
        }
    }
}

/// Returns the only character of all indentations: `Some(None)` if there is no indentation, `None`
/// if there are several characters.
fn single_indent_char<'a>(indents: impl Iterator<Item = &'a str>) -> Option<Option<char>> {
    let mut single = None;
    for character in indents.flat_map(str::chars) {
        if *single.get_or_insert(character) != character {
            return None;
        }
    }
    Some(single)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Learns from pairs of indentations and maps another one.
    fn map_after_learning(
        text: &str,
        edit: &str,
        pairs: &[(&str, &str)],
        indent: &str,
    ) -> Option<String> {
        let (lines, line_diff) = (TextLines::new(text), LineDiff::compute(edit, "").unwrap());
        IndentMap::learn(None, pairs, &line_diff, &lines).map_indent(indent)
    }

    #[test]
    fn known_and_derived_indentations_are_mapped() {
        let (four, tabs) = ("a\n    b\n        c\n", "a\n\tb\n\t\tc\n");
        for (text, edit, pairs, indent, expected) in [
            // Identical.
            (four, "a\n  b", vec![("", ""), ("  ", "  ")], "\t", Some("\t")),
            // Deeper by four, with two known depths.
            (
                four,
                "a\n    b",
                vec![("", "    "), ("    ", "        ")],
                "        ",
                Some(&*" ".repeat(12)),
            ),
            // Shallower; less than no indentation is impossible.
            (four, "    a\n        b", vec![("    ", ""), ("        ", "    ")], "", None),
            // Spaces to tabs and tabs to spaces.
            (tabs, "a\n    b", vec![("", ""), ("    ", "\t")], "        ", Some("\t\t")),
            (four, "a\n\tb", vec![("", ""), ("\t", "    ")], "\t\t\t", Some(&*" ".repeat(12))),
            // One depth, and edit and file have the same unit.
            (four, "a\n    b", vec![("", "    ")], "    ", Some("        ")),
            (tabs, "    a\n        b", vec![("    ", "\t")], "        ", Some("\t\t")),
            // The width of a tab is unknown.
            (tabs, "a\n    b", vec![("", "\t")], "    ", None),
            // One depth, and the edit indents by two.
            (four, "a\n  b", vec![("", "    ")], "  ", None),
            // Between two steps.
            (tabs, "a\n    b", vec![("", ""), ("    ", "\t")], "      ", None),
            // An unknown indentation character.
            (four, "a\n    b", vec![("", ""), ("    ", "  ")], "\t", None),
            // Inconsistent shifts.
            (four, "a\nb", vec![("", ""), ("", "    ")], "", None),
            (four, "a\n  b", vec![("", "    "), ("  ", "    ")], "", None),
        ] {
            let result = map_after_learning(text, edit, &pairs, indent);
            assert_eq!(result.as_deref(), expected, "{edit:?} {pairs:?} {indent:?}");
        }
    }

    #[test]
    fn a_first_line_without_its_indentation_is_not_a_shift() {
        let (lines, line_diff) =
            (TextLines::new("    a\n    b\n"), LineDiff::compute("a\n    b", "").unwrap());
        let indent_map =
            IndentMap::learn(Some(("", "    ")), &[("    ", "    ")], &line_diff, &lines);
        assert_eq!(indent_map.map_indent("    ").as_deref(), Some("    "));
        assert_eq!(
            indent_map.map_indent(""),
            None,
            "the indentation of the first line is ambiguous"
        );
    }
}
