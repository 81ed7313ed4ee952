//! A three-way merge on lines of bytes.
//!
//! Pure, and of any bytes: a line is whatever ends with a line feed, or the rest. Two sides that
//! changed the same lines, or lines without an unchanged one between them, are in conflict unless
//! they made the same of them. The search for what changed gives up on the shortest answer before
//! it gets slow; a longer answer can only mean more conflicts, never lost lines.
#![allow(clippy::disallowed_methods, reason = "a merge nobody waits for is given up")]

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// When to give up.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    pub(super) fn after(patience: Duration) -> Deadline {
        Deadline(Instant::now() + patience)
    }

    fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// A run of lines of the merged file.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// Settled.
    Lines(&'a [&'a [u8]]),
    /// Changed by both sides, in different ways.
    Conflict { ancestor: &'a [&'a [u8]], ours: &'a [&'a [u8]], theirs: &'a [&'a [u8]] },
}

/// Cuts bytes after every line feed. `feed` is how the file's encoding writes one; its length is
/// that of a character.
pub(super) fn split<'a>(bytes: &'a [u8], feed: &[u8]) -> Vec<&'a [u8]> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.chunks(feed.len()).position(|unit| unit == feed);
        let length = end.map_or(rest.len(), |end| (end + 1) * feed.len());
        let (line, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        lines.push(line);
        rest = after;
    }
    lines
}

/// Lines of the ancestor that became other lines.
#[derive(Clone)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

/// Merges what two sides made of an ancestor. None if it takes too long.
pub(super) fn merge<'a>(
    ancestor: &'a [&'a [u8]],
    ours: &'a [&'a [u8]],
    theirs: &'a [&'a [u8]],
    deadline: Deadline,
) -> Option<Vec<Piece<'a>>> {
    let mut names = HashMap::new();
    let mut name = |lines: &[&'a [u8]]| -> Vec<u32> {
        let mut names_of = Vec::with_capacity(lines.len());
        for line in lines {
            let next = names.len() as u32;
            names_of.push(*names.entry(*line).or_insert(next));
        }
        names_of
    };
    let named = (name(ancestor), name(ours), name(theirs));
    let mut left = Side::new(&named.0, &named.1, ours, deadline)?;
    let mut right = Side::new(&named.0, &named.2, theirs, deadline)?;

    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(start) = [left.next_start(), right.next_start()].into_iter().flatten().min() {
        let mut region = start..start;
        // Hunks that touch belong together, and may make others touch.
        while left.take_touching(&mut region) || right.take_touching(&mut region) {}
        pieces.push(Piece::Lines(ancestor.get(at..region.start).unwrap_or_default()));
        let old = ancestor.get(region.clone()).unwrap_or_default();
        let (mine, other) = (left.finish(&region), right.finish(&region));
        pieces.push(match (mine, other) {
            (Some(lines), None) | (None, Some(lines)) => Piece::Lines(lines),
            (Some(mine), Some(other)) if mine == other => Piece::Lines(mine),
            (Some(ours), Some(theirs)) => Piece::Conflict { ancestor: old, ours, theirs },
            (None, None) => Piece::Lines(old),
        });
        at = region.end;
    }
    pieces.push(Piece::Lines(ancestor.get(at..).unwrap_or_default()));
    Some(pieces)
}

/// One side's changes, from the first line to the last.
struct Side<'a> {
    lines: &'a [&'a [u8]],
    hunks: std::iter::Peekable<std::vec::IntoIter<Hunk>>,
    /// How far this side's lines are ahead of the ancestor's, behind the last finished region.
    ahead: isize,
    /// The same, with the hunks taken into the region at hand, if there are any.
    ahead_then: Option<isize>,
}

impl<'a> Side<'a> {
    fn new(
        old: &[u32],
        new: &[u32],
        lines: &'a [&'a [u8]],
        deadline: Deadline,
    ) -> Option<Side<'a>> {
        let operations = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline.0));
        if deadline.is_over() {
            return None;
        }
        let changed = operations.iter().filter(|operation| operation.tag() != DiffTag::Equal);
        let hunks: Vec<Hunk> = changed
            .map(|operation| Hunk { old: operation.old_range(), new: operation.new_range() })
            .collect();
        Some(Side { lines, hunks: hunks.into_iter().peekable(), ahead: 0, ahead_then: None })
    }

    fn next_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    /// Takes the next hunk into a region if it touches it. A region starts empty at the first
    /// hunk, so it grows to the end only.
    fn take_touching(&mut self, region: &mut Range<usize>) -> bool {
        let Some(hunk) = self.hunks.next_if(|hunk| hunk.old.start <= region.end) else {
            return false;
        };
        region.end = region.end.max(hunk.old.end);
        self.ahead_then = Some(hunk.new.end.cast_signed() - hunk.old.end.cast_signed());
        true
    }

    /// This side's lines of a region, if it changed any.
    fn finish(&mut self, region: &Range<usize>) -> Option<&'a [&'a [u8]]> {
        let then = self.ahead_then.take()?;
        let start = region.start.checked_add_signed(self.ahead);
        let end = region.end.checked_add_signed(then);
        self.ahead = then;
        self.lines.get(start?..end?)
    }
}
