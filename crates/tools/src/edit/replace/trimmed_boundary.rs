//! The same text, but for white space around it.

use super::budget::PLACES;
use super::carry::{Place, settle};
use super::change::Change;
use super::lines::{Lines, is_apart, occurrences, parts, trimmed};
use super::{Doubt, Outcome, Scene, Site, Splice};
use std::ops::Range;

pub(super) fn find(scene: &Scene<'_>) -> Outcome {
    let (lead, core, trail) = parts(scene.old);
    if lead.is_empty() && trail.is_empty() {
        return Outcome::Nothing;
    }
    let text = scene.lines.text();
    let stands = |at: &usize| ends_alike(scene.lines, &(*at..*at + core.len()), lead, trail);
    let found: Vec<usize> =
        occurrences(text, core, PLACES + 1).into_iter().filter(stands).collect();
    if found.is_empty() {
        return lines_within(scene, core, (lead, trail));
    }
    if found.len() > PLACES {
        return Outcome::Many(found.iter().map(|at| scene.lines.at(*at)).collect());
    }
    let new = scene.new.strip_prefix(lead).and_then(|new| new.strip_suffix(trail));
    let mut sites = Vec::new();
    for at in found {
        let range = at..at + core.len();
        let lines = scene.lines.touched(&range);
        let Some(new) = new else {
            return Outcome::Doubtful { lines, doubt: Doubt::Spacing };
        };
        sites.push(Site { lines, splices: vec![Splice { range, new: new.to_owned() }] });
    }
    Outcome::Sites(sites)
}

/// Whether a part of the text ends where the edit has white space around it: a word is not part of
/// a longer one, and a line is a line.
fn ends_alike(lines: &Lines<'_>, range: &Range<usize>, lead: &str, trail: &str) -> bool {
    let touched = lines.touched(range);
    let (start, end) = (lines.start(touched.start), lines.end(touched.end - 1));
    let before = lines.text().get(start..range.start).unwrap_or_default();
    let after = lines.text().get(range.end..end).unwrap_or_default();
    let held = |side: &str, neighbour: Option<char>, line: &str| match () {
        () if side.is_empty() => true,
        () if side.contains('\n') => line.trim().is_empty(),
        () => neighbour.is_none_or(char::is_whitespace),
    };
    is_apart(lines.text(), range)
        && held(lead, before.chars().next_back(), before)
        && held(trail, after.chars().next(), after)
}

/// The lines within blank ones, which are not in the file.
fn lines_within(scene: &Scene<'_>, core: &str, (lead, trail): (&str, &str)) -> Outcome {
    let margin = lead.rfind('\n').map_or(0, |at| at + 1);
    let (Some(blank), true) = (lead.get(..margin), margin > 0 || trail.contains('\n')) else {
        return Outcome::Nothing;
    };
    let new = scene.new.strip_prefix(blank).and_then(|new| new.strip_suffix(trail));
    let indent = lead.get(margin..).unwrap_or_default();
    let old = format!("{indent}{core}");
    let Some(change) = new.and_then(|new| Change::of(&old, new)) else { return Outcome::Nothing };
    let found = scene.lines.places(&change.old, trimmed);
    let place = |first| Place::at(first, change.old.len());
    settle(scene, &change, &found.into_iter().map(place).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Doubt, Miss, Strategy};

    #[test]
    fn white_space_around_the_edit_may_be_missing_in_the_file() {
        for (text, old, new, after) in [
            ("foo()\nbar()\n", "\nfoo()\n", "\nbaz()\n", "baz()\nbar()\n"),
            ("x = foo(1)\n", "  foo(1)", "  bar(1)", "x = bar(1)\n"),
            ("a\nb", "\n\na\nb\n\n", "\n\na\nc\n\n", "a\nc"),
            ("a \nb", "\n\na\nb\n\n", "\n\na\nc\n\n", "a \nc"),
        ] {
            let found = applied(text, old, new, Count::One);
            assert_eq!(found, (after.into(), Strategy::TrimmedBoundary), "{old:?}");
        }
    }

    #[test]
    fn a_word_is_not_found_within_a_longer_one() {
        for (text, old) in [
            ("foobar", " foo "),
            ("x foo", "\nfoo"),
            ("foo x", "  foo\n"),
            ("xfoo = 1\n", "foo = 1  "),
            ("x = foobar\n", "  x = foo"),
        ] {
            let miss = refused(text, old, &old.replace("foo", "baz"), Count::One);
            assert!(matches!(miss, Miss::Missing { .. }), "{old:?} {miss:?}");
        }
    }

    #[test]
    fn an_edit_that_changes_white_space_which_is_not_there_is_not_guessed() {
        let miss = refused("x = foo(1)\n", "  foo(1)", "bar(1)", Count::One);
        assert!(matches!(miss, Miss::Uncertain { doubt: Doubt::Spacing, .. }), "{miss:?}");
    }
}
