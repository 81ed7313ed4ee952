//! The way from the view back to the bytes: line starts, and a walk along the one line.

use super::ends::Ends;
use super::format::Format;
use std::ops::Range;

/// The same place in the view and in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) view: usize,
    pub(super) byte: usize,
}

/// Where every line starts.
#[derive(Clone, Debug)]
pub(super) struct Map {
    starts: Vec<Place>,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
    /// In files from before 2001, and only where no line ends otherwise.
    Cr,
}

impl Map {
    pub(super) fn new(format: Format, bytes: &[u8], view: &str) -> Map {
        let mark = format.mark().len();
        let mut starts = vec![Place { view: 0, byte: mark }];
        let mut ends = Ends::new(format);
        let mut byte = mark;
        for at in memchr::memchr_iter(b'\n', view.as_bytes()) {
            let Some(end) = bytes.get(byte..).and_then(|rest| ends.find(rest)) else { break };
            byte += end;
            starts.push(Place { view: at + 1, byte });
        }
        Map { starts }
    }

    /// The last line that starts at or before a place of the view.
    pub(super) fn line(&self, view: usize) -> usize {
        self.starts.partition_point(|start| start.view <= view).saturating_sub(1)
    }

    pub(super) fn start(&self, line: usize) -> Option<Place> {
        self.starts.get(line).copied()
    }

    /// What ends a line; `None` for a last line that nothing ends.
    pub(super) fn ending(&self, format: Format, bytes: &[u8], line: usize) -> Option<Ending> {
        let span = Range { start: self.start(line)?.byte, end: self.start(line + 1)?.byte };
        let before = bytes.get(span)?.strip_suffix(format.control(b'\n').as_slice())?;
        let cr = before.ends_with(&format.control(b'\r'));
        Some(if cr { Ending::CrLf } else { Ending::Lf })
    }

    /// What ends most lines; `None` if there is but one line.
    pub(super) fn usual_ending(&self, format: Format, bytes: &[u8]) -> Option<Ending> {
        let mut counts = (0_usize, 0_usize);
        for line in 0..self.starts.len() {
            match self.ending(format, bytes, line) {
                Some(Ending::Lf) => counts.0 += 1,
                Some(Ending::CrLf) => counts.1 += 1,
                Some(Ending::Cr) | None => {}
            }
        }
        match counts {
            (0, 0) => None,
            (lf, crlf) => Some(if crlf > lf { Ending::CrLf } else { Ending::Lf }),
        }
    }

    /// The nearest places at or before, and at or after, a place of the view: they differ when the
    /// place is inside a unit. `None` if the walk does not find what the view shows.
    ///
    /// The walk goes on from a place that was found before, if that is nearer than the start of the
    /// line: a line may be as long as the file.
    pub(super) fn locate(
        &self,
        format: Format,
        bytes: &[u8],
        view: &str,
        found: Option<Place>,
        target: usize,
    ) -> Option<(Place, Place)> {
        let start = self.start(self.line(target))?;
        let nearer = |found: &Place| (start.view..=target).contains(&found.view);
        let mut here = found.filter(nearer).unwrap_or(start);
        while here.view < target {
            let next = step(format, bytes, view, here)?;
            if next.view > target {
                return Some((here, next));
            }
            here = next;
        }
        Some((here, here))
    }
}

/// One unit on, a CRLF counting as one.
fn step(format: Format, bytes: &[u8], view: &str, here: Place) -> Option<Place> {
    let unit = format.unit(bytes.get(here.byte..)?)?;
    let mut next = Place { view: here.view, byte: here.byte + unit.bytes };
    if unit.first == '\r'
        && let Some(after) = bytes.get(next.byte..).and_then(|rest| format.unit(rest))
        && after.first == '\n'
    {
        next.byte += after.bytes;
        next.view += 1;
        return view.get(here.view..)?.starts_with('\n').then_some(next);
    }
    for char in unit.chars() {
        if !view.get(next.view..)?.starts_with(char) {
            return None;
        }
        next.view += char.len_utf8();
    }
    Some(next)
}
