//! The text as it stands on the screen: broken into rows, and where the cursor is in them.

use super::buffer::{Buffer, Chip};
use super::motion;
use crate::ink::{self, Row};
use crate::wrap::{self, Break};
use ratatui::style::Style;

/// A row of the screen: a part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A cluster as it is shown: never wider than there is room for.
pub(super) fn shown(buffer: &Buffer, cluster: &str, limit: usize) -> String {
    match (cluster, buffer.chip(cluster)) {
        ("\t", _) => " ".repeat(4.min(limit)),
        (_, Some(chip)) => fitted(&Chip::label(chip), limit),
        (_, None) => fitted(cluster, limit),
    }
}

fn fitted(text: &str, limit: usize) -> String {
    let row = Row::of(Style::default(), text);
    wrap::wrap(&row, limit, Break::Anywhere, 0).first().map(Row::text).unwrap_or_default()
}

/// The rows of a text, of at most so many columns. It breaks between words where it can; spaces hang
/// over the edge.
pub(super) fn lay(buffer: &Buffer, limit: usize) -> Vec<Span> {
    let limit = limit.max(1);
    let mut rows = Vec::new();
    let mut start = 0;
    for line in buffer.raw().split('\n') {
        lay_line(buffer, Span { from: start, to: start + line.len() }, limit, &mut rows);
        start += line.len() + 1;
    }
    rows
}

fn lay_line(buffer: &Buffer, line: Span, limit: usize, rows: &mut Vec<Span>) {
    let text = buffer.raw().get(line.from..line.to).unwrap_or_default();
    let (mut from, mut column) = (line.from, 0);
    // The last place where it may break, and its column.
    let mut gap = (line.from, 0);
    for (offset, cluster) in motion::clusters(text) {
        let at = line.from + offset;
        let wide = columns(buffer, at, cluster, limit);
        let space = cluster.chars().all(char::is_whitespace);
        let loose = wide > 1;
        if loose {
            gap = (at, column);
        }
        if !space && column + wide > limit && column > 0 {
            if gap.0 <= from {
                gap = (at, column);
            }
            rows.push(Span { from, to: gap.0 });
            (from, column) = (gap.0, column - gap.1);
            if column + wide > limit && column > 0 {
                rows.push(Span { from, to: at });
                (from, column) = (at, 0);
            }
        }
        column += wide;
        if space || loose {
            gap = (at + cluster.len(), column);
        }
    }
    rows.push(Span { from, to: line.to });
}

fn columns(buffer: &Buffer, at: usize, cluster: &str, limit: usize) -> usize {
    match cluster.as_bytes() {
        // The mark beside the text shows it.
        _ if at == 0 && buffer.hides_sign() => 0,
        [b' '..=b'~'] => 1,
        _ => ink::width(&shown(buffer, cluster, limit)),
    }
}

/// The row and the column of the cursor.
pub(super) fn find(buffer: &Buffer, rows: &[Span], limit: usize) -> (usize, usize) {
    let at = buffer.at();
    let row = rows.partition_point(|span| span.from <= at).saturating_sub(1);
    let Some(span) = rows.get(row) else { return (0, 0) };
    let text = buffer.raw().get(span.from..at.min(span.to)).unwrap_or_default();
    let wide = |(offset, cluster)| columns(buffer, span.from + offset, cluster, limit.max(1));
    let column: usize = motion::clusters(text).map(wide).sum();
    (row, column.min(limit.max(1)))
}

/// The place in a row that is nearest to a column.
pub(super) fn place(
    buffer: &Buffer,
    rows: &[Span],
    (row, column): (usize, usize),
    limit: usize,
) -> Option<usize> {
    let span = rows.get(row)?;
    // The end of a row that goes on is shown as the beginning of the next.
    let goes_on = rows.get(row + 1).is_some_and(|next| next.from == span.to);
    let text = buffer.raw().get(span.from..span.to).unwrap_or_default();
    let (mut here, mut at) = (0, span.from);
    for (offset, cluster) in motion::clusters(text) {
        let next = here + columns(buffer, span.from + offset, cluster, limit.max(1));
        let end = span.from + offset + cluster.len();
        if next > column || (goes_on && end == span.to) {
            break;
        }
        (here, at) = (next, end);
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, limit: usize) -> Vec<String> {
        let mut buffer = Buffer::default();
        buffer.set(text);
        lay(&buffer, limit).iter().map(|span| text[span.from..span.to].to_owned()).collect()
    }

    #[test]
    fn it_breaks_between_words_and_spaces_hang() {
        assert_eq!(rows("hello big world", 5), ["hello ", "big ", "world"]);
        assert_eq!(rows("hello    world", 5), ["hello    ", "world"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("a abcdefgh", 3), ["a ", "abc", "def", "gh"]);
        assert_eq!(rows("a\n\nb\n", 3), ["a", "", "b", ""]);
    }

    #[test]
    fn wide_letters_are_never_cut_in_two() {
        assert_eq!(rows("語語語", 5), ["語語", "語"]);
        assert_eq!(rows("a語語", 4), ["a語", "語"]);
        assert_eq!(rows("ab語語", 4), ["ab語", "語"]);
        assert_eq!(rows("語", 1).len(), 1);
    }
}
