//! A three-way merge on lines of bytes.
//!
//! It is pure and works on any bytes: a line ends with a line feed or is the rest. Two sides
//! conflict if they changed the same lines, or lines with no unchanged line between them, unless
//! both made the same change. The diff stops looking for the shortest answer before it gets slow; a
//! longer answer can only cause more conflicts, never lost lines.
#![allow(clippy::disallowed_methods, reason = "the merge deadline needs the current time")]

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The time at which a merge gives up.
#[derive(Clone, Copy)]
pub(super) struct MergeDeadline(Instant);

impl MergeDeadline {
    pub(super) fn after(timeout: Duration) -> MergeDeadline {
        MergeDeadline(Instant::now() + timeout)
    }

    fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// A run of lines of the merged file.
#[derive(Debug)]
pub(super) enum MergeChunk<'a> {
    Resolved(&'a [&'a [u8]]),
    /// Changed by both sides in different ways.
    Conflict {
        ancestor: &'a [&'a [u8]],
        ours: &'a [&'a [u8]],
        theirs: &'a [&'a [u8]],
    },
}

/// Splits bytes after every line feed. `line_feed` is in the file's encoding; its length is that of
/// a code unit.
pub(super) fn split_lines<'a>(bytes: &'a [u8], line_feed: &[u8]) -> Vec<&'a [u8]> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.chunks(line_feed.len()).position(|unit| unit == line_feed);
        let length = end.map_or(rest.len(), |end| (end + 1) * line_feed.len());
        let (line, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        lines.push(line);
        rest = after;
    }
    lines
}

/// A range of ancestor lines and the range of lines that replaces it.
#[derive(Clone)]
struct MergeSideChange {
    old_range: Range<usize>,
    new_range: Range<usize>,
}

/// Merges the changes of two sides to an ancestor. Returns `None` if it takes too long.
pub(super) fn merge_three_way<'a>(
    ancestor: &'a [&'a [u8]],
    ours: &'a [&'a [u8]],
    theirs: &'a [&'a [u8]],
    deadline: MergeDeadline,
) -> Option<Vec<MergeChunk<'a>>> {
    let mut ids = HashMap::new();
    let mut to_line_ids = |lines: &[&'a [u8]]| -> Vec<u32> {
        let mut line_ids = Vec::with_capacity(lines.len());
        for line in lines {
            let next = ids.len() as u32;
            line_ids.push(*ids.entry(*line).or_insert(next));
        }
        line_ids
    };
    let ancestor_ids = to_line_ids(ancestor);
    let mut left = MergeSide::new(&ancestor_ids, &to_line_ids(ours), ours, deadline)?;
    let mut right = MergeSide::new(&ancestor_ids, &to_line_ids(theirs), theirs, deadline)?;

    let mut chunks = Vec::new();
    let mut position = 0;
    while let Some(start) =
        [left.next_hunk_start(), right.next_hunk_start()].into_iter().flatten().min()
    {
        let mut region = start..start;
        // Touching hunks belong together, and may make further hunks touch.
        while left.absorb_touching_hunk(&mut region) || right.absorb_touching_hunk(&mut region) {}
        chunks.push(MergeChunk::Resolved(ancestor.get(position..region.start).unwrap_or_default()));
        let old = ancestor.get(region.clone()).unwrap_or_default();
        chunks.push(match (left.finish_region(&region), right.finish_region(&region)) {
            (Some(lines), None) | (None, Some(lines)) => MergeChunk::Resolved(lines),
            (Some(ours), Some(theirs)) if ours == theirs => MergeChunk::Resolved(ours),
            (Some(ours), Some(theirs)) => MergeChunk::Conflict { ancestor: old, ours, theirs },
            (None, None) => MergeChunk::Resolved(old),
        });
        position = region.end;
    }
    chunks.push(MergeChunk::Resolved(ancestor.get(position..).unwrap_or_default()));
    Some(chunks)
}

/// The changes of one side, from first to last line.
struct MergeSide<'a> {
    lines: &'a [&'a [u8]],
    hunks: std::iter::Peekable<std::vec::IntoIter<MergeSideChange>>,
    /// Lines of this side minus lines of the ancestor, up to the last finished region.
    line_offset: isize,
    /// The same including the hunks of the current region, if there are any.
    pending_offset: Option<isize>,
}

impl<'a> MergeSide<'a> {
    fn new(
        old: &[u32],
        new: &[u32],
        lines: &'a [&'a [u8]],
        deadline: MergeDeadline,
    ) -> Option<MergeSide<'a>> {
        let operations = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline.0));
        if deadline.has_passed() {
            return None;
        }
        let changed = operations.iter().filter(|operation| operation.tag() != DiffTag::Equal);
        let hunks: Vec<MergeSideChange> = changed
            .map(|operation| MergeSideChange {
                old_range: operation.old_range(),
                new_range: operation.new_range(),
            })
            .collect();
        Some(MergeSide {
            lines,
            hunks: hunks.into_iter().peekable(),
            line_offset: 0,
            pending_offset: None,
        })
    }

    fn next_hunk_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old_range.start)
    }

    /// Adds the next hunk to a region that it touches. A region starts empty at the first hunk, so
    /// it only grows at its end.
    fn absorb_touching_hunk(&mut self, region: &mut Range<usize>) -> bool {
        let Some(hunk) = self.hunks.next_if(|hunk| hunk.old_range.start <= region.end) else {
            return false;
        };
        region.end = region.end.max(hunk.old_range.end);
        self.pending_offset =
            Some(hunk.new_range.end.cast_signed() - hunk.old_range.end.cast_signed());
        true
    }

    /// Returns the lines of this side in a region, if it changed any.
    fn finish_region(&mut self, region: &Range<usize>) -> Option<&'a [&'a [u8]]> {
        let offset = self.pending_offset.take()?;
        let start = region.start.checked_add_signed(self.line_offset);
        let end = region.end.checked_add_signed(offset);
        self.line_offset = offset;
        self.lines.get(start?..end?)
    }
}
