//! The wrapped layout of the prompt text as `RowByteRange`s, and the cursor position in it.

use super::buffer::PromptBuffer;
use super::chips::PromptChip;
use super::cursor;
use crate::safe_line::{self, SafeLine};
use crate::wrap::{self, WrapMode};
use ratatui::style::Style;

/// A screen row as a byte range of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowByteRange {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns the displayed form of a cluster, at most `limit` columns wide.
pub(super) fn display_cluster(buffer: &PromptBuffer, cluster: &str, limit: usize) -> String {
    match (cluster, buffer.chip_for(cluster)) {
        ("\t", _) => " ".repeat(4.min(limit)),
        (_, Some(chip)) => truncate_to_width(&PromptChip::label(chip), limit),
        (_, None) => truncate_to_width(cluster, limit),
    }
}

fn truncate_to_width(text: &str, limit: usize) -> String {
    let row = SafeLine::styled(Style::default(), text);
    wrap::wrap(&row, limit, WrapMode::Anywhere, 0).first().map(SafeLine::text).unwrap_or_default()
}

/// Wraps the text into rows of at most `limit` columns. It breaks between words if possible;
/// trailing spaces extend past the edge.
pub(super) fn wrap_rows(buffer: &PromptBuffer, limit: usize) -> Vec<RowByteRange> {
    let limit = limit.max(1);
    let mut rows = Vec::new();
    let mut start = 0;
    for line in buffer.raw_text().split('\n') {
        wrap_line(buffer, RowByteRange { start, end: start + line.len() }, limit, &mut rows);
        start += line.len() + 1;
    }
    rows
}

fn wrap_line(
    buffer: &PromptBuffer,
    line: RowByteRange,
    limit: usize,
    rows: &mut Vec<RowByteRange>,
) {
    let text = buffer.raw_text().get(line.start..line.end).unwrap_or_default();
    let break_offsets = wrap::break_offsets(text);
    let (mut start, mut column) = (line.start, 0);
    // The last possible break, and its column.
    let mut break_point = (line.start, 0);
    for (offset, cluster) in cursor::clusters(text) {
        let position = line.start + offset;
        let width = cluster_width(buffer, position, cluster, limit);
        let is_space = cluster.chars().all(char::is_whitespace);
        let can_break = |offset: usize| {
            buffer.chip_for(cluster).is_some() || break_offsets.binary_search(&offset).is_ok()
        };
        let is_wide = width > 1;
        if is_wide && can_break(offset) {
            break_point = (position, column);
        }
        if !is_space && column + width > limit && column > 0 {
            if break_point.0 <= start {
                break_point = (position, column);
            }
            rows.push(RowByteRange { start, end: break_point.0 });
            (start, column) = (break_point.0, column - break_point.1);
            if column + width > limit && column > 0 {
                rows.push(RowByteRange { start, end: position });
                (start, column) = (position, 0);
            }
        }
        column += width;
        if is_space || (is_wide && can_break(offset + cluster.len())) {
            break_point = (position + cluster.len(), column);
        }
    }
    rows.push(RowByteRange { start, end: line.end });
}

fn cluster_width(buffer: &PromptBuffer, position: usize, cluster: &str, limit: usize) -> usize {
    match cluster.as_bytes() {
        // The prompt mark shows this character.
        _ if position == 0 && buffer.hides_prefix() => 0,
        [b' '..=b'~'] => 1,
        _ => safe_line::display_width(&display_cluster(buffer, cluster, limit)),
    }
}

pub(super) fn cursor_position(
    buffer: &PromptBuffer,
    rows: &[RowByteRange],
    limit: usize,
) -> (usize, usize) {
    let cursor = buffer.cursor();
    let row = rows.partition_point(|span| span.start <= cursor).saturating_sub(1);
    let Some(span) = rows.get(row) else { return (0, 0) };
    let text = buffer.raw_text().get(span.start..cursor.min(span.end)).unwrap_or_default();
    let width =
        |(offset, cluster)| cluster_width(buffer, span.start + offset, cluster, limit.max(1));
    let column: usize = cursor::clusters(text).map(width).sum();
    (row, column.min(limit.max(1)))
}

/// Returns the offset in a row that is nearest to a column.
pub(super) fn offset_at_column(
    buffer: &PromptBuffer,
    rows: &[RowByteRange],
    (row, column): (usize, usize),
    limit: usize,
) -> Option<usize> {
    let span = rows.get(row)?;
    // The end of a wrapped row is displayed as the start of the next one.
    let continues = rows.get(row + 1).is_some_and(|next_column| next_column.start == span.end);
    let text = buffer.raw_text().get(span.start..span.end).unwrap_or_default();
    let (mut current_column, mut position) = (0, span.start);
    for (offset, cluster) in cursor::clusters(text) {
        let next_column =
            current_column + cluster_width(buffer, span.start + offset, cluster, limit.max(1));
        let end = span.start + offset + cluster.len();
        if next_column > column || (continues && end == span.end) {
            break;
        }
        (current_column, position) = (next_column, end);
    }
    Some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, limit: usize) -> Vec<String> {
        let mut buffer = PromptBuffer::default();
        buffer.set_text(text);
        wrap_rows(&buffer, limit).iter().map(|span| text[span.start..span.end].to_owned()).collect()
    }

    #[test]
    fn rows_break_between_words_and_keep_trailing_spaces() {
        assert_eq!(rows("hello big world", 5), ["hello ", "big ", "world"]);
        assert_eq!(rows("hello    world", 5), ["hello    ", "world"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("a abcdefgh", 3), ["a ", "abc", "def", "gh"]);
        assert_eq!(rows("a\n\nb\n", 3), ["a", "", "b", ""]);
    }

    #[test]
    fn wide_characters_are_never_split() {
        assert_eq!(rows("語語語", 5), ["語語", "語"]);
        assert_eq!(rows("a語語", 4), ["a語", "語"]);
        assert_eq!(rows("ab語語", 4), ["ab語", "語"]);
        assert_eq!(rows("語", 1).len(), 1);
        assert_eq!(rows("語語語。語", 6), ["語語", "語。語"]);
    }
}
