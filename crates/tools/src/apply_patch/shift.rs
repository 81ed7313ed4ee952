//! By how much a file is indented otherwise than a hunk, and new lines with it.

use super::parse::{Hunk, Line};
use super::seek::{View, plain};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    None,
    Deeper(String),
    Shallower(String),
}

/// Why new lines cannot be indented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    /// The file is not indented evenly otherwise.
    Uneven,
    /// The kept lines, and nothing else, are one space short of the file: either they lack their
    /// mark, or all of the hunk is a space too far left.
    Unmarked,
}

impl Shift {
    /// Learns it from the lines that a hunk has in the file.
    pub(super) fn of(hunk: &Hunk, view: &View<'_>, start: usize) -> Result<Shift, Unclear> {
        let (mut kept, mut removed) = (None, None);
        let mut there = view.lines.iter().skip(start);
        for line in &hunk.lines {
            let (known, wanted) = match line {
                Line::Keep(text) => (&mut kept, text),
                Line::Remove(text) => (&mut removed, text),
                Line::Add(_) => continue,
            };
            // Blank lines tell nothing about it, and those to spare need not be there.
            let Some(line) = there.next().filter(|line| !line.trim().is_empty()) else { continue };
            let this = Shift::between(wanted, line).ok_or(Unclear::Uneven)?;
            if known.get_or_insert_with(|| this.clone()) != &this {
                return Err(Unclear::Uneven);
            }
        }
        match (kept, removed) {
            (None, None) => Ok(Shift::None),
            (Some(shift), None) if shift.is_a_mark() => match lacks_marks(hunk, view) {
                true => Ok(Shift::None),
                false => Err(Unclear::Unmarked),
            },
            (Some(shift), None) | (None, Some(shift)) => Ok(shift),
            (Some(kept), Some(removed)) if kept == removed => Ok(kept),
            // What is removed stands there exactly, so that only the marks are missing.
            (Some(kept), Some(Shift::None)) if kept.is_a_mark() => Ok(Shift::None),
            (Some(_), Some(_)) => Err(Unclear::Uneven),
        }
    }

    fn between(wanted: &str, line: &str) -> Option<Shift> {
        let (wanted, line) = (indent(wanted), indent(line));
        if line == wanted {
            return Some(Shift::None);
        }
        let deeper = line.strip_suffix(&wanted).map(|more| Shift::Deeper(more.to_owned()));
        let shallower = || Some(Shift::Shallower(wanted.strip_suffix(&line)?.to_owned()));
        deeper.or_else(shallower)
    }

    /// Whether it is the space that marks a kept line.
    fn is_a_mark(&self) -> bool {
        matches!(self, Shift::Deeper(more) if more == " ")
    }

    /// Writes a new line as the file would indent it, if that can be.
    pub(super) fn write(&self, line: &str, new: &mut String) -> Option<()> {
        let (more, line) = match self {
            Shift::Deeper(more) if !line.trim().is_empty() => (more.as_str(), line),
            Shift::Shallower(less) if !line.trim().is_empty() => {
                ("", line.strip_prefix(less.as_str())?)
            }
            Shift::None | Shift::Deeper(_) | Shift::Shallower(_) => ("", line),
        };
        new.push_str(more);
        new.push_str(line);
        Some(())
    }
}

/// Whether the kept lines certainly lack their mark: the file has no line as deep as they are then,
/// it has lines as deep as the new ones, and none as deep as those would be with another space.
fn lacks_marks(hunk: &Hunk, view: &View<'_>) -> bool {
    let told = view.lines.iter().filter(|line| !line.trim().is_empty());
    let mut depths: HashSet<String> = told.map(|line| indent(line)).collect();
    depths.insert(String::new());
    hunk.lines.iter().all(|line| match line {
        Line::Keep(text) => text.trim().is_empty() || !depths.contains(&indent(text)),
        Line::Remove(_) => true,
        Line::Add(text) => {
            let depth = indent(text);
            let deeper = format!(" {depth}");
            text.trim().is_empty() || (depths.contains(&depth) && !depths.contains(&deeper))
        }
    })
}

/// A line's leading whitespace, with plain spaces.
pub(super) fn indent(line: &str) -> String {
    line.chars().take_while(|letter| letter.is_whitespace()).map(plain).collect()
}
