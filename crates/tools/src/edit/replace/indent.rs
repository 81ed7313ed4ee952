//! How the indentation of a file differs from the one an edit was written with.

use super::change::Change;
use super::lines::{Lines, indent};
use std::collections::{BTreeMap, BTreeSet};

/// How an indentation of the edit becomes one of the file.
#[derive(Debug)]
pub(super) enum Shift {
    /// Both are the same.
    Same,
    /// The first line of the edit lost its indentation, as if copied from the middle of the line;
    /// the others have theirs. An indentation like that of the first line could mean either.
    Headless { first: String },
    /// Known indentations, and a rule for those between and beyond them.
    Moved { known: BTreeMap<String, String>, rule: Option<Rule> },
    /// The lines moved in different ways.
    Unclear,
}

/// Width in the file as a linear function of the width in the edit.
#[derive(Debug)]
pub(super) struct Rule {
    from: Option<char>,
    to: char,
    at: (usize, usize),
    step: (usize, usize),
}

impl Shift {
    /// What moved, learnt from the lines that agree: each with its indentation in the edit and in
    /// the file, the first line of the edit apart.
    pub(super) fn of(
        first: Option<(&str, &str)>,
        rest: &[(&str, &str)],
        change: &Change<'_>,
        lines: &Lines<'_>,
    ) -> Shift {
        let same = |(old, file): &(&str, &str)| old == file;
        if rest.iter().all(same) {
            match first {
                Some((old, file)) if old != file && !rest.is_empty() => {
                    if file.ends_with(old) {
                        return Shift::Headless { first: old.to_owned() };
                    }
                }
                Some((old, file)) if old != file => {}
                Some(_) | None => return Shift::Same,
            }
        }
        let mut known = BTreeMap::new();
        for (old, file) in first.iter().chain(rest) {
            let before = known.insert((*old).to_owned(), (*file).to_owned());
            if before.is_some_and(|before| before != *file) {
                return Shift::Unclear;
            }
        }
        let widths: BTreeSet<(usize, usize)> =
            known.iter().map(|(old, file)| (old.len(), file.len())).collect();
        let rising = widths.iter().zip(widths.iter().skip(1));
        let rising = rising.fold(true, |all, (a, b)| all && a.0 < b.0 && a.1 < b.1);
        if !rising {
            return Shift::Unclear;
        }
        let rule = Rule::of(&known, &widths, change, lines);
        Shift::Moved { known, rule }
    }

    /// Whether every line moved the same way.
    pub(super) fn is_clear(&self) -> bool {
        !matches!(self, Shift::Unclear)
    }

    /// Whether the lines are not where the edit has them.
    pub(super) fn is_moved(&self) -> bool {
        match self {
            Shift::Same | Shift::Headless { .. } => false,
            Shift::Moved { .. } | Shift::Unclear => true,
        }
    }

    /// What an indentation of the edit is in the file, if that is certain.
    pub(super) fn map(&self, indent: &str) -> Option<String> {
        match self {
            Shift::Same => Some(indent.to_owned()),
            Shift::Headless { first } => (indent != first).then(|| indent.to_owned()),
            Shift::Moved { known, rule } => {
                let known = known.get(indent).cloned();
                known.or_else(|| rule.as_ref()?.map(indent))
            }
            Shift::Unclear => None,
        }
    }
}

impl Rule {
    /// Two depths make a rule. One makes one only together with the steps in which the edit and the
    /// file indent.
    fn of(
        known: &BTreeMap<String, String>,
        widths: &BTreeSet<(usize, usize)>,
        change: &Change<'_>,
        lines: &Lines<'_>,
    ) -> Option<Rule> {
        let from = made_of(change.old.iter().chain(&change.new).map(|line| indent(line)))?;
        let style = lines.style();
        let to = made_of(known.values().map(String::as_str))?;
        let to = to.or(style.map(|style| style.character))?;
        let (low, high) = (*widths.first()?, *widths.last()?);
        let step = if low == high {
            let (unit, style) = (change.unit(from?)?, style?);
            // With one character for both, the steps must be the same; with two, the level.
            let same = from == Some(to) && unit == style.unit;
            let level = low.0.is_multiple_of(unit) && low.1.is_multiple_of(style.unit);
            let level = level && low.0 / unit == low.1 / style.unit && low.0 > 0;
            if style.character != to || !(same || (from != Some(to) && level)) {
                return None;
            }
            (unit, style.unit)
        } else {
            (high.0 - low.0, high.1 - low.1)
        };
        let rule = Rule { from, to, at: low, step };
        widths.iter().all(|(old, file)| rule.width(*old) == Some(*file)).then_some(rule)
    }

    fn map(&self, indent: &str) -> Option<String> {
        let plain = indent.chars().all(|found| Some(found) == self.from);
        let width = self.width(indent.len()).filter(|_| plain)?;
        Some(std::iter::repeat_n(self.to, width).collect())
    }

    fn width(&self, old: usize) -> Option<usize> {
        let ((old_at, file_at), (old_step, file_step)) = (self.at, self.step);
        let moved = |distance: usize| {
            let scaled = distance.checked_mul(file_step)?;
            scaled.is_multiple_of(old_step).then(|| scaled / old_step)
        };
        match old.checked_sub(old_at) {
            Some(deeper) => file_at.checked_add(moved(deeper)?),
            None => file_at.checked_sub(moved(old_at - old)?),
        }
    }
}

/// The one character that indentations are made of: `Some(None)` if there are none, `None` if there
/// are several.
fn made_of<'a>(indents: impl Iterator<Item = &'a str>) -> Option<Option<char>> {
    let mut one = None;
    for character in indents.flat_map(str::chars) {
        if *one.get_or_insert(character) != character {
            return None;
        }
    }
    Some(one)
}

/// What a file indents with.
#[derive(Clone, Copy)]
pub(super) struct Style {
    character: char,
    unit: usize,
}

impl Style {
    /// The character that all indented lines begin with, and the most common step inwards.
    pub(super) fn of(lines: &Lines<'_>) -> Option<Style> {
        let indents = || lines.iter().filter(|line| !line.trim().is_empty()).map(indent);
        let firsts: BTreeSet<char> = indents().filter_map(|found| found.chars().next()).collect();
        let character = *firsts.first().filter(|_| firsts.len() == 1)?;
        if character == '\t' {
            return Some(Style { character, unit: 1 });
        }
        let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
        for (a, b) in indents().zip(indents().skip(1)) {
            if let Some(step @ 1..) = b.len().checked_sub(a.len()) {
                *steps.entry(step).or_default() += 1;
            }
        }
        let (unit, _) =
            steps.into_iter().max_by_key(|(step, times)| (*times, usize::MAX - step))?;
        Some(Style { character, unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Learns from pairs, and maps one more.
    fn mapped(text: &str, edit: &str, pairs: &[(&str, &str)], indent: &str) -> Option<String> {
        let (lines, change) = (Lines::of(text), Change::of(edit, "").unwrap());
        Shift::of(None, pairs, &change, &lines).map(indent)
    }

    #[test]
    fn what_is_known_or_follows_is_mapped() {
        let (four, tabs) = ("a\n    b\n        c\n", "a\n\tb\n\t\tc\n");
        for (text, edit, pairs, indent, expected) in [
            // The same.
            (four, "a\n  b", vec![("", ""), ("  ", "  ")], "\t", Some("\t")),
            // Deeper by four, two depths known.
            (
                four,
                "a\n    b",
                vec![("", "    "), ("    ", "        ")],
                "        ",
                Some(&*" ".repeat(12)),
            ),
            // Shallower; a dedent beyond the margin has no place.
            (four, "    a\n        b", vec![("    ", ""), ("        ", "    ")], "", None),
            // Spaces to tabs and back.
            (tabs, "a\n    b", vec![("", ""), ("    ", "\t")], "        ", Some("\t\t")),
            (four, "a\n\tb", vec![("", ""), ("\t", "    ")], "\t\t\t", Some(&*" ".repeat(12))),
            // One depth, and the step of the edit is the step of the file.
            (four, "a\n    b", vec![("", "    ")], "    ", Some("        ")),
            (tabs, "    a\n        b", vec![("    ", "\t")], "        ", Some("\t\t")),
            // Nobody knows how many spaces a tab is.
            (tabs, "a\n    b", vec![("", "\t")], "    ", None),
            // One depth, and the edit indents by two.
            (four, "a\n  b", vec![("", "    ")], "  ", None),
            // Between two steps.
            (tabs, "a\n    b", vec![("", ""), ("    ", "\t")], "      ", None),
            // A character nobody knows about.
            (four, "a\n    b", vec![("", ""), ("    ", "  ")], "\t", None),
            // Lines that moved in different ways.
            (four, "a\nb", vec![("", ""), ("", "    ")], "", None),
            (four, "a\n  b", vec![("", "    "), ("  ", "    ")], "", None),
        ] {
            let found = mapped(text, edit, &pairs, indent);
            assert_eq!(found.as_deref(), expected, "{edit:?} {pairs:?} {indent:?}");
        }
    }

    #[test]
    fn a_first_line_without_its_indentation_is_not_a_shift() {
        let (lines, change) = (Lines::of("    a\n    b\n"), Change::of("a\n    b", "").unwrap());
        let shift = Shift::of(Some(("", "    ")), &[("    ", "    ")], &change, &lines);
        assert_eq!(shift.map("    ").as_deref(), Some("    "));
        assert_eq!(shift.map(""), None, "it could be the margin or the first line's place");
    }
}
