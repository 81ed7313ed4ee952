//! The rule that keeps lax matches honest: an edit's difference is applied to what the file says,
//! and only where the file agrees with what the edit removes.
//!
//! Lines that the edit does not touch keep the file's own text, however far they drifted. Lines
//! that it removes must have the same words in the file. Lines that come in stand between lines
//! that are neighbours in the file too, and move with the indentation around them. Whatever does
//! not fit is a [`Doubt`], and nothing is changed.

use super::change::{Change, Hunk};
use super::indent::Shift;
use super::lines::{Lines, collapsed, parts};
use super::{Count, Doubt, Outcome, Scene, Site, Splice, drift, escape_normalised, words};
use std::ops::Range;

/// Lines of the file that may be the old ones of an edit.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// All of them.
    pub(super) lines: Range<usize>,
    /// For every old line the one that stands for it.
    pub(super) partners: Vec<Option<usize>>,
}

impl Place {
    /// A place with as many lines as the edit speaks of.
    pub(super) fn at(first: usize, count: usize) -> Place {
        let lines = first..first + count;
        Place { partners: lines.clone().map(Some).collect(), lines }
    }

    /// Whether every old line has its partner, in a row.
    fn is_whole(&self) -> bool {
        self.lines.len() == self.partners.len()
            && self.lines.clone().zip(&self.partners).all(|(line, found)| Some(line) == *found)
    }

    fn partner(&self, old: usize) -> Option<usize> {
        self.partners.get(old).copied().flatten()
    }
}

/// What becomes of places that are all equally likely.
pub(super) fn settle(scene: &Scene<'_>, change: &Change<'_>, places: &[Place]) -> Outcome {
    let several = places.len() > 1 && scene.count == Count::One;
    if several || places.len() > super::budget::PLACES {
        return Outcome::Many(places.iter().map(|place| place.lines.start).collect());
    }
    let mut sites = Vec::with_capacity(places.len());
    for place in places {
        let lines = place.lines.clone();
        match carry(scene.lines, change, place) {
            Ok(splices) => sites.push(Site { lines, splices }),
            Err(doubt) => return Outcome::Doubtful { lines, doubt },
        }
    }
    if sites.is_empty() { Outcome::Nothing } else { Outcome::Sites(sites) }
}

/// Applies a change at a place, if it is certain that this is the place.
pub(super) fn carry(
    lines: &Lines<'_>,
    change: &Change<'_>,
    place: &Place,
) -> Result<Vec<Splice>, Doubt> {
    let pairs = change.old.iter().zip(&place.partners);
    let mut there = pairs.filter_map(|(old, line)| Some((*old, lines.get((*line)?))));
    if there.any(|(old, file)| !agree(old, file) && escape_normalised::explains(old, file)) {
        return Err(Doubt::Escapes);
    }
    let shift = shift(lines, change, place);
    // Braces that moved could be any braces.
    let nameless = shift.is_moved() && drift::telling(lines, change, place) == 0;
    if nameless || !drift::is_slight(lines, change, place) {
        return Err(Doubt::Drifted);
    }
    transfer(lines, change, place, shift)
}

/// Makes of every hunk what it is at a place.
fn transfer(
    lines: &Lines<'_>,
    change: &Change<'_>,
    place: &Place,
    shift: Shift,
) -> Result<Vec<Splice>, Doubt> {
    let carrier = Carrier { lines, change, place, shift };
    let mut splices = Vec::with_capacity(change.hunks.len());
    for hunk in &change.hunks {
        let gone = carrier.removed(hunk)?;
        let new = carrier.added(hunk, &gone)?;
        splices.push(carrier.splice(gone, new));
    }
    Ok(splices)
}

/// What the lines that agree say about the indentation.
fn shift(lines: &Lines<'_>, change: &Change<'_>, place: &Place) -> Shift {
    let mut first = None;
    let mut rest = Vec::new();
    for (at, (old, partner)) in change.old.iter().zip(&place.partners).enumerate() {
        let Some(file) = partner.map(|line| lines.get(line)) else { continue };
        let ((old_indent, content, _), (file_indent, _, _)) = (parts(old), parts(file));
        if content.is_empty() || !agree(old, file) {
            continue;
        }
        match at {
            0 => first = Some((old_indent, file_indent)),
            _ => rest.push((old_indent, file_indent)),
        }
    }
    Shift::of(first, &rest, change, lines)
}

/// Whether two lines have the same words.
pub(super) fn agree(old: &str, file: &str) -> bool {
    old.trim() == file.trim() || collapsed(old) == collapsed(file)
}

struct Carrier<'a> {
    lines: &'a Lines<'a>,
    change: &'a Change<'a>,
    place: &'a Place,
    shift: Shift,
}

impl Carrier<'_> {
    fn old(&self, line: usize) -> &str {
        self.change.old.get(line).copied().unwrap_or_default()
    }

    /// Whether an old line stands at a line of the file, with the same words.
    fn stands(&self, old: usize, line: usize) -> bool {
        self.place.partner(old) == Some(line) && agree(self.old(old), self.lines.get(line))
    }

    /// The lines of the file that a hunk removes, or the empty range where it inserts.
    fn removed(&self, hunk: &Hunk) -> Result<Range<usize>, Doubt> {
        let before = hunk.old.start.checked_sub(1);
        let after = (hunk.old.end < self.change.old.len()).then_some(hunk.old.end);
        let first = match (self.place.partner(hunk.old.start), before) {
            (Some(line), _) if !hunk.old.is_empty() => line,
            (_, Some(before)) => self.place.partner(before).ok_or(Doubt::Gap)? + 1,
            (_, None) => self.place.lines.start,
        };
        for (line, old) in (first..).zip(hunk.old.clone()) {
            if !self.stands(old, line) {
                return Err(Doubt::Differs { line: line + 1 });
            }
        }
        let gone = first..first + hunk.old.len();
        let left = before.map(|old| (old, gone.start.wrapping_sub(1)));
        let right = after.map(|old| (old, gone.end));
        let neighbours = || [left, right].into_iter().flatten();
        if self.place.is_whole() {
            // A line that only comes in needs one line that agrees to hold on to.
            let held = neighbours().any(|(old, line)| self.stands(old, line));
            return if held || !hunk.old.is_empty() { Ok(gone) } else { Err(Doubt::Gap) };
        }
        let reaches = (after.is_some() || gone.end == self.place.lines.end)
            && (before.is_some() || gone.start == self.place.lines.start);
        let pinned = neighbours().all(|(old, line)| self.stands(old, line));
        if pinned && reaches { Ok(gone) } else { Err(Doubt::Gap) }
    }

    /// The lines that come in, as the file would have them.
    fn added(&self, hunk: &Hunk, gone: &Range<usize>) -> Result<Vec<String>, Doubt> {
        let paired = hunk.old.len() == hunk.new.len();
        let mut added = Vec::with_capacity(hunk.new.len());
        for (at, new) in hunk.new.clone().enumerate() {
            let new = self.change.new.get(new).copied().unwrap_or_default();
            let pair = paired.then(|| (self.old(hunk.old.start + at), gone.start + at));
            let line = match pair {
                Some((old, line)) => self.changed(old, new, line, hunk.old.len()),
                None => self.moved(new),
            };
            added.push(line.ok_or(Doubt::Indentation { line: gone.start + 1 })?);
        }
        Ok(added)
    }

    /// A line that takes another one's place.
    fn changed(&self, old: &str, new: &str, line: usize, of: usize) -> Option<String> {
        let file = parts(self.lines.get(line));
        let (old_parts, new_parts) = (parts(old), parts(new));
        let blank = old_parts.1.is_empty() || new_parts.1.is_empty();
        if blank && old_parts.1 != new_parts.1 {
            return self.moved(new);
        }
        // A line alone keeps its depth whatever happened to the others.
        let keeps = old_parts.0 == new_parts.0 && (of == 1 || self.shift.is_clear());
        let indent = if keeps { file.0.to_owned() } else { self.shift.map(new_parts.0)? };
        let content = match () {
            () if old_parts.1 == new_parts.1 => file.1.to_owned(),
            () if old_parts.1 == file.1 => new_parts.1.to_owned(),
            () => words::carry(old_parts.1, new_parts.1, file.1),
        };
        let trail = if old_parts.2 == new_parts.2 { file.2 } else { new_parts.2 };
        Some(indent + &content + trail)
    }

    /// A line that is new.
    fn moved(&self, new: &str) -> Option<String> {
        let (indent, content, trail) = parts(new);
        if content.is_empty() {
            let moved = self.shift.map(new).filter(|_| !new.is_empty());
            return Some(moved.unwrap_or_default());
        }
        Some(self.shift.map(indent)? + content + trail)
    }

    /// Lines of the file replaced by others, line ends included.
    fn splice(&self, gone: Range<usize>, new: Vec<String>) -> Splice {
        let lines = self.lines;
        let open = !lines.text().ends_with('\n');
        let new = (!new.is_empty()).then(|| new.join("\n"));
        let (start, end) = (lines.start(gone.start), lines.start(gone.end));
        match new {
            Some(new) if !gone.is_empty() => Splice { range: start..lines.end(gone.end - 1), new },
            Some(new) if gone.start >= lines.len() && open => {
                Splice { range: start..start, new: format!("\n{new}") }
            }
            Some(new) => Splice { range: start..start, new: new + "\n" },
            None if gone.end >= lines.len() && open && gone.start > 0 => {
                Splice { range: lines.end(gone.start - 1)..end, new: String::new() }
            }
            None => Splice { range: start..end, new: String::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries an edit to a place of as many lines and applies it.
    fn carried(text: &str, old: &str, new: &str, first: usize) -> Result<String, Doubt> {
        let (lines, change) = (Lines::of(text), Change::of(old, new).unwrap());
        let place = Place::at(first, change.old.len());
        let splices = transfer(&lines, &change, &place, shift(&lines, &change, &place))?;
        Ok(super::super::tests::apply(text, &splices))
    }

    #[test]
    fn lines_that_the_edit_leaves_keep_the_text_of_the_file() {
        for (text, old, new, after) in [
            ("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd\n", "a\nb(1)\nx\nd\n", "a\nb(2)\nx\nd\n"),
            ("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd", "a\nb(1)\nc\nd\ne", "a\nb(2)\nc\nd\ne\n"),
            ("  a  \n  b\n", "a\nb", "a\nc", "  a  \n  c\n"),
            ("a \nb\t\n", "a\nb", "x\nb", "x \nb\t\n"),
            ("\ta\n\tb\n", "    a\n    b\n", "    a\n", "\ta\n"),
        ] {
            assert_eq!(carried(text, old, new, 0).as_deref(), Ok(after), "{text:?} {new:?}");
        }
    }

    #[test]
    fn what_the_edit_removes_must_be_what_the_file_says() {
        let miss = carried("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd\n", "a\nx\nc\nd\n", 0);
        assert_eq!(miss, Err(Doubt::Differs { line: 2 }));
        let miss = carried("a\nb(2)\nc\nd\n", "a\nb(1)\nc\nd\n", "a\nc\nd\n", 0);
        assert_eq!(miss, Err(Doubt::Differs { line: 2 }));
    }

    #[test]
    fn a_line_that_comes_in_needs_a_neighbour_that_agrees() {
        let (old, new) = ("a(1)\nb(1)\nc(1)\nd\ne\nf\ng\nh", "a(1)\nb(1)\nx\nc(1)\nd\ne\nf\ng\nh");
        let miss = carried("a(1)\nb(2)\nc(2)\nd\ne\nf\ng\nh\n", old, new, 0);
        assert_eq!(miss, Err(Doubt::Gap));
        let after = carried("a(1)\nb(2)\nc(1)\nd\ne\nf\ng\nh\n", old, new, 0);
        assert_eq!(after.as_deref(), Ok("a(1)\nb(2)\nx\nc(1)\nd\ne\nf\ng\nh\n"));
    }

    #[test]
    fn lines_between_which_the_file_has_more_are_no_place_to_insert() {
        let lines = Lines::of("a\nmore\nb\nc\nd\ne\nf\ng\nh\n");
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        let partners = [0, 2, 3, 4, 5, 6, 7, 8].map(Some).to_vec();
        let place = Place { lines: 0..9, partners };
        let new = old.replace("a\n", "a\nx\n");
        let change = Change::of(old, &new).unwrap();
        let shifted = || shift(&lines, &change, &place);
        assert_eq!(transfer(&lines, &change, &place, shifted()), Err(Doubt::Gap));
        let new = old.replace("c\n", "x\nc\n");
        let change = Change::of(old, &new).unwrap();
        let splices = transfer(&lines, &change, &place, shift(&lines, &change, &place)).unwrap();
        let after = super::super::tests::apply(lines.text(), &splices);
        assert_eq!(after, lines.text().replace("c\n", "x\nc\n"));
    }

    #[test]
    fn new_lines_move_with_the_block() {
        for (text, old, new, after) in [
            (
                "  if a:\n    b\n",
                "if a:\n  b",
                "if a:\n  b\n  c\nd",
                "  if a:\n    b\n    c\n  d\n",
            ),
            ("\tif a\n\t\tb\n", "if a\n  b", "if a\n  if c\n    b", "\tif a\n\t\tif c\n\t\t\tb\n"),
            (
                "    a\n        b\n",
                "a\n    b",
                "if x\n    a\n        b",
                "    if x\n        a\n            b\n",
            ),
            ("        a\n", "    a", "    a\n    b", "        a\n        b\n"),
        ] {
            assert_eq!(carried(text, old, new, 0).as_deref(), Ok(after), "{text:?} {new:?}");
        }
    }

    #[test]
    fn an_indentation_that_cannot_be_known_is_not_guessed() {
        // The edit lost its structure: both lines at the margin.
        let miss = carried("if a:\n    b\n", " if a:\n b", " if a:\n b\n c", 0);
        assert_eq!(miss, Err(Doubt::Indentation { line: 3 }));
        // But a line alone stays where it is.
        let after = carried("if a:\n    b\n", " if a:\n b", " if a:\n c", 0);
        assert_eq!(after.as_deref(), Ok("if a:\n    c\n"));
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        for (text, old, new, after) in [
            (" a\n b", "a\nb\n", "a\nb\nc\n", " a\n b\n c"),
            (" a\nb", "a\nb\n", "a\n", " a"),
            (" a\nb\n", "a\nb\n", "a\n", " a\n"),
            (" a\nb\n", "a\n", "", "b\n"),
            (" a\nb\n", "a", "", "\nb\n"),
            (" a\nb\n", "a", "a\n", " a\n\nb\n"),
            (" a", "a\n", "", ""),
            (" a\nb", "a\nb", "b", "b"),
        ] {
            assert_eq!(
                carried(text, old, new, 0).as_deref(),
                Ok(after),
                "{text:?} {old:?} {new:?}"
            );
        }
    }
}
