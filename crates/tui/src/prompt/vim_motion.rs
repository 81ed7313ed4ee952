//! The motions of the vi keys, and the ranges that operators apply to.

use super::cursor::{self, GraphemeClusterKind};

/// A motion, named after its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VimMotion {
    /// `h`
    Left,
    /// `l` and space
    Right,
    /// `w`
    WordStart,
    /// `b`
    WordBack,
    /// `e`
    WordEnd,
    /// `0`
    LineStart,
    /// `^`
    FirstNonBlank,
    /// `$`
    LineEnd,
    /// `gg`
    FirstLine,
    /// `G`
    LastLine,
    /// The doubled operator, as in `dd`.
    WholeLines,
}

/// The range that an operator applies to. That of whole lines has no final line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MotionSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_linewise: bool,
}

impl VimMotion {
    pub(super) fn from_character(character: char) -> Option<VimMotion> {
        Some(match character {
            'h' => VimMotion::Left,
            'l' | ' ' => VimMotion::Right,
            'w' => VimMotion::WordStart,
            'b' => VimMotion::WordBack,
            'e' => VimMotion::WordEnd,
            '0' => VimMotion::LineStart,
            '^' => VimMotion::FirstNonBlank,
            '$' => VimMotion::LineEnd,
            'G' => VimMotion::LastLine,
            _ => return None,
        })
    }
}

/// Returns the cursor position after a motion.
pub(super) fn target(motion: VimMotion, count: Option<usize>, text: &str, cursor: usize) -> usize {
    let repeat = |step: fn(&str, usize) -> usize| {
        let mut position = cursor;
        for _ in 0..count.unwrap_or(1) {
            let next = step(text, position);
            if next == position {
                break;
            }
            position = next;
        }
        position
    };
    match motion {
        VimMotion::Left => repeat(left_in_line),
        VimMotion::Right => repeat(right_in_line),
        VimMotion::WordStart => repeat(next_word_start),
        VimMotion::WordBack => repeat(cursor::word_left),
        VimMotion::WordEnd => repeat(word_end),
        VimMotion::LineStart => cursor::line_start(text, cursor),
        VimMotion::FirstNonBlank => first_non_blank(text, cursor),
        VimMotion::LineEnd => {
            let end = cursor::line_end(text, line_below(text, cursor, count.unwrap_or(1) - 1));
            left_in_line(text, end)
        }
        VimMotion::FirstLine | VimMotion::LastLine | VimMotion::WholeLines => {
            let line = match (motion, count) {
                (_, Some(number)) => line_below(text, 0, number - 1),
                (VimMotion::LastLine, None) => text.len(),
                (_, None) => 0,
            };
            first_non_blank(text, line)
        }
    }
}

/// Returns the range between the cursor and the target of a motion.
pub(super) fn operator_span(
    motion: VimMotion,
    count: Option<usize>,
    text: &str,
    cursor: usize,
) -> MotionSpan {
    let lines = |first: usize, last: usize| MotionSpan {
        start: cursor::line_start(text, first.min(last)),
        end: cursor::line_end(text, first.max(last)),
        is_linewise: true,
    };
    let target = target(motion, count, text, cursor);
    let (start, end) = (cursor.min(target), cursor.max(target));
    let end = match motion {
        VimMotion::WholeLines => {
            return lines(cursor, line_below(text, cursor, count.unwrap_or(1) - 1));
        }
        VimMotion::FirstLine | VimMotion::LastLine => return lines(cursor, target),
        // These include the character at the target.
        VimMotion::WordEnd | VimMotion::LineEnd => clusters_right(text, end, 1),
        // The last word of a line ends with the line.
        VimMotion::WordStart if count.is_none() => end.min(cursor::line_end(text, start)),
        VimMotion::WordStart => end,
        VimMotion::Right => clusters_right(text, start, count.unwrap_or(1)),
        VimMotion::Left | VimMotion::WordBack | VimMotion::LineStart | VimMotion::FirstNonBlank => {
            end
        }
    };
    MotionSpan { start, end, is_linewise: false }
}

/// Returns the position some clusters to the right, at most the end of the line.
pub(super) fn clusters_right(text: &str, position: usize, count: usize) -> usize {
    let end = cursor::line_end(text, position);
    let line = text.get(position..end).unwrap_or_default();
    cursor::clusters(line).nth(count).map_or(end, |(offset, _)| position + offset)
}

pub(super) fn is_space_at(text: &str, position: usize) -> bool {
    kind_at(text, position).is_none_or(|kind| kind == GraphemeClusterKind::Space)
}

fn kind_at(text: &str, position: usize) -> Option<GraphemeClusterKind> {
    let (_, cluster) = cursor::clusters(text.get(position..)?).next()?;
    Some(cursor::cluster_kind(cluster))
}

fn left_in_line(text: &str, position: usize) -> usize {
    cursor::cluster_left(text, position).max(cursor::line_start(text, position))
}

fn right_in_line(text: &str, position: usize) -> usize {
    clusters_right(text, position, 1)
}

fn first_non_blank(text: &str, position: usize) -> usize {
    let (start, end) = (cursor::line_start(text, position), cursor::line_end(text, position));
    let line = text.get(start..end).unwrap_or_default();
    start + line.find(|character: char| !character.is_whitespace()).unwrap_or(line.len())
}

/// Returns a position in the line that is some lines below, at most the last one.
fn line_below(text: &str, position: usize, lines: usize) -> usize {
    let mut position = position;
    for _ in 0..lines {
        let end = cursor::line_end(text, position);
        if end == text.len() {
            break;
        }
        position = end + 1;
    }
    position
}

/// Returns the start of the next word, or the end of the text if there is none.
fn next_word_start(text: &str, position: usize) -> usize {
    let kinds = || {
        let after = text.get(position..).unwrap_or_default();
        cursor::clusters(after).map(|(offset, c)| (position + offset, cursor::cluster_kind(c)))
    };
    let Some((_, first)) = kinds().next() else { return position };
    let after_word = kinds()
        .skip(1)
        .skip_while(|(_, kind)| *kind == first && first != GraphemeClusterKind::Chip);
    let mut starts = after_word.skip_while(|(_, kind)| *kind == GraphemeClusterKind::Space);
    starts.next().map_or(text.len(), |(start, _)| start)
}

/// Returns the last cluster of the current or next word.
fn word_end(text: &str, position: usize) -> usize {
    let start = cursor::cluster_right(text, position);
    let after = text.get(start..).unwrap_or_default();
    let mut rest = cursor::clusters(after)
        .map(|(offset, c)| (start + offset, cursor::cluster_kind(c)))
        .skip_while(|(_, kind)| *kind == GraphemeClusterKind::Space);
    let Some((first, kind)) = rest.next() else { return position };
    if kind == GraphemeClusterKind::Chip {
        return first;
    }
    rest.take_while(|(_, other)| *other == kind).last().map_or(first, |(last, _)| last)
}
