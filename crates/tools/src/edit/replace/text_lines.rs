//! A text split into lines, with its indentation style and search for runs of lines.

use super::work_limit::MAX_CANDIDATES;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A text with its line starts. A trailing line ending starts no further line.
pub(super) struct TextLines<'a> {
    text: &'a str,
    lines: Vec<(usize, &'a str)>,
    indent_style: OnceCell<Option<IndentStyle>>,
}

impl<'a> TextLines<'a> {
    pub(super) fn new(text: &'a str) -> TextLines<'a> {
        let mut start = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let line_start = start;
            start += line.len();
            (line_start, line.strip_suffix('\n').unwrap_or(line))
        });
        let lines = lines.collect();
        TextLines { text, lines, indent_style: OnceCell::new() }
    }

    /// Returns the `IndentStyle` of the text, detected once because every match may need it.
    pub(super) fn indent_style(&self) -> Option<IndentStyle> {
        *self.indent_style.get_or_init(|| IndentStyle::detect(self))
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.lines.iter().map(|(_, line)| *line)
    }

    /// Returns a line without its line ending; empty past the end.
    pub(super) fn get(&self, line: usize) -> &'a str {
        self.lines.get(line).map_or("", |(_, line)| line)
    }

    /// Returns the byte offset of a line; the text length past the last line.
    pub(super) fn line_start(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.text.len(), |(start, _)| *start)
    }

    /// Returns the byte offset of the end of a line, before its line ending.
    pub(super) fn line_end(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.text.len(), |(start, line)| start + line.len())
    }

    /// Returns the line that contains a byte.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        self.lines.partition_point(|(start, _)| *start <= byte).saturating_sub(1)
    }

    /// Returns the lines that a byte range touches.
    pub(super) fn lines_touching(&self, bytes: &Range<usize>) -> Range<usize> {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        self.line_at(bytes.start)..self.line_at(last) + 1
    }

    /// Returns the text of a range of lines.
    pub(super) fn slice(&self, lines: &Range<usize>) -> &'a str {
        let end = lines.end.checked_sub(1).map_or(0, |last| self.line_end(last));
        self.text.get(self.line_start(lines.start)..end).unwrap_or_default()
    }

    /// Returns the lines where `wanted` occurs, comparing lines after
    /// `normalize`. Runs in linear time, because the normalized lines are searched as one text.
    pub(super) fn find_lines(
        &self,
        wanted: &[&str],
        normalize: fn(&str) -> Cow<'_, str>,
    ) -> Vec<usize> {
        let mut haystack = String::with_capacity(self.text.len() + 2);
        let mut starts = Vec::with_capacity(self.lines.len());
        for line in self.iter() {
            starts.push(haystack.len());
            haystack.push('\n');
            haystack.push_str(&normalize(line));
        }
        haystack.push('\n');
        let mut needle = String::from("\n");
        for line in wanted {
            needle.push_str(&normalize(line));
            needle.push('\n');
        }
        let found = find_occurrences(&haystack, &needle, MAX_CANDIDATES + 1);
        found.into_iter().filter_map(|offset| starts.binary_search(&offset).ok()).collect()
    }
}

/// The indentation character and unit of a file.
#[derive(Clone, Copy)]
pub(super) struct IndentStyle {
    pub(super) character: char,
    pub(super) unit_width: usize,
}

impl IndentStyle {
    /// Detects the character that starts all indented lines and the most common increase in width.
    fn detect(lines: &TextLines<'_>) -> Option<IndentStyle> {
        let indents =
            || lines.iter().filter(|line| !line.trim().is_empty()).map(leading_whitespace);
        let first_chars: BTreeSet<char> =
            indents().filter_map(|indent| indent.chars().next()).collect();
        let character = *first_chars.first().filter(|_| first_chars.len() == 1)?;
        if character == '\t' {
            return Some(IndentStyle { character, unit_width: 1 });
        }
        let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
        for (a, b) in indents().zip(indents().skip(1)) {
            if let Some(step @ 1..) = b.len().checked_sub(a.len()) {
                *steps.entry(step).or_default() += 1;
            }
        }
        let (unit, _) =
            steps.into_iter().max_by_key(|(step, count)| (*count, usize::MAX - step))?;
        Some(IndentStyle { character, unit_width: unit })
    }
}

/// Returns the first `limit` offsets of `needle`, including overlapping ones.
pub(super) fn find_occurrences(haystack: &str, needle: &str, limit: usize) -> Vec<usize> {
    let step = needle.chars().next().map_or(1, char::len_utf8);
    let mut offsets = Vec::new();
    let mut from = 0;
    while offsets.len() < limit
        && let Some(offset) = haystack.get(from..).and_then(|rest| rest.find(needle))
    {
        offsets.push(from + offset);
        from += offset + step;
    }
    offsets
}

/// Returns true if both ends of `part` are at word boundaries.
pub(super) fn has_word_boundaries(text: &str, part: &Range<usize>) -> bool {
    let Some(((before, part), after)) = text
        .split_at_checked(part.end)
        .and_then(|(head, after)| Some((head.split_at_checked(part.start)?, after)))
    else {
        return false;
    };
    let is_word = |character: Option<char>| {
        character.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let splits_word = |a: Option<char>, b: Option<char>| is_word(a) && is_word(b);
    !splits_word(before.chars().next_back(), part.chars().next())
        && !splits_word(part.chars().next_back(), after.chars().next())
}

/// Trims whitespace at both ends.
pub(super) fn trim_line(line: &str) -> Cow<'_, str> {
    line.trim().into()
}

/// Joins the words of a line with single spaces.
pub(super) fn collapse_whitespace(line: &str) -> Cow<'_, str> {
    let mut words = line.split_whitespace();
    let mut collapsed = String::with_capacity(line.len());
    collapsed.extend(words.next());
    for word in words {
        collapsed.push(' ');
        collapsed.push_str(word);
    }
    collapsed.into()
}

/// Compares two lines by their words, ignoring spacing.
pub(super) fn has_same_words(old: &str, file: &str) -> bool {
    old.trim() == file.trim() || collapse_whitespace(old) == collapse_whitespace(file)
}

/// Splits a line into indentation, content and trailing whitespace.
pub(super) fn split_line(line: &str) -> (&str, &str, &str) {
    let content = line.trim_start();
    let (indent, content) = line.split_at(line.len() - content.len());
    let length = content.trim_end().len();
    let (content, trailing) = content.split_at(length);
    (indent, content, trailing)
}

pub(super) fn leading_whitespace(line: &str) -> &str {
    split_line(line).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_newline_starts_no_line() {
        for (text, lines) in
            [("", vec![]), ("a", vec!["a"]), ("a\n", vec!["a"]), ("\n\nb", vec!["", "", "b"])]
        {
            assert_eq!(TextLines::new(text).iter().collect::<Vec<_>>(), lines, "{text:?}");
        }
    }

    #[test]
    fn lines_and_byte_offsets_are_converted() {
        let lines = TextLines::new("ab\n\ncd");
        assert_eq!((lines.line_start(0), lines.line_end(0)), (0, 2));
        assert_eq!((lines.line_start(2), lines.line_end(2)), (4, 6));
        assert_eq!((lines.line_start(9), lines.line_end(9)), (6, 6));
        assert_eq!(
            (lines.line_at(0), lines.line_at(2), lines.line_at(3), lines.line_at(6)),
            (0, 0, 1, 2)
        );
        assert_eq!(lines.lines_touching(&(1..5)), 0..3);
        assert_eq!(lines.lines_touching(&(0..3)), 0..1);
        assert_eq!(lines.slice(&(1..3)), "\ncd");
    }

    #[test]
    fn overlapping_matches_are_found_up_to_the_limit() {
        let text = "a\n".repeat(100_000);
        let lines = TextLines::new(&text);
        assert_eq!(lines.find_lines(&["a ", " a"], trim_line).len(), MAX_CANDIDATES + 1);
        assert_eq!(find_occurrences("aaaa", "aa", 9), [0, 1, 2]);
        assert_eq!(find_occurrences("ééé", "éé", 9), [0, 2]);
    }

    #[test]
    fn part_of_a_word_has_no_word_boundaries() {
        let text = "ab c_d é9, x";
        for (part, expected) in [
            (0..2, true),
            (1..2, false),
            (3..4, false),
            (7..9, false),
            (7..12, true),
            (10..11, true),
        ] {
            assert_eq!(has_word_boundaries(text, &part), expected, "{part:?}");
        }
        assert!(!has_word_boundaries(text, &(8..9)), "not at a character boundary");
        assert!(has_word_boundaries(text, &(0..text.len())));
    }

    #[test]
    fn lines_are_found_at_either_end() {
        let lines = TextLines::new("x\ny\nz\nx");
        assert_eq!(lines.find_lines(&["x"], trim_line), [0, 3]);
        assert_eq!(lines.find_lines(&["z", "x"], trim_line), [2]);
        assert_eq!(lines.find_lines(&["x", ""], trim_line), Vec::<usize>::new());
    }
}
