//! A text as lines, and where a run of lines stands in it.

use super::budget::PLACES;
use super::indent::Style;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

/// A text with the places where its lines begin. A line end at the end begins no further line.
pub(super) struct Lines<'a> {
    text: &'a str,
    lines: Vec<(usize, &'a str)>,
    style: OnceCell<Option<Style>>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Lines<'a> {
        let mut start = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let at = start;
            start += line.len();
            (at, line.strip_suffix('\n').unwrap_or(line))
        });
        let lines = lines.collect();
        Lines { text, lines, style: OnceCell::new() }
    }

    /// What the text indents with; found once, since every place of an edit may ask.
    pub(super) fn style(&self) -> Option<Style> {
        *self.style.get_or_init(|| Style::of(self))
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

    /// A line without its line end; nothing past the end.
    pub(super) fn get(&self, line: usize) -> &'a str {
        self.lines.get(line).map_or("", |(_, line)| line)
    }

    /// Where a line begins; the end of the text past the last one.
    pub(super) fn start(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.text.len(), |(start, _)| *start)
    }

    /// Where a line ends, before its line end.
    pub(super) fn end(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.text.len(), |(start, line)| start + line.len())
    }

    /// Which line a byte is in.
    pub(super) fn at(&self, byte: usize) -> usize {
        self.lines.partition_point(|(start, _)| *start <= byte).saturating_sub(1)
    }

    /// The lines that a range of bytes touches.
    pub(super) fn touched(&self, bytes: &Range<usize>) -> Range<usize> {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        self.at(bytes.start)..self.at(last) + 1
    }

    /// The text of a range of lines.
    pub(super) fn slice(&self, lines: &Range<usize>) -> &'a str {
        let end = lines.end.checked_sub(1).map_or(0, |last| self.end(last));
        self.text.get(self.start(lines.start)..end).unwrap_or_default()
    }

    /// The lines at which `wanted` stands, when every line is folded first. Found in linear time,
    /// since the folded lines are one text.
    pub(super) fn places(&self, wanted: &[&str], fold: fn(&str) -> Cow<'_, str>) -> Vec<usize> {
        let mut hay = String::with_capacity(self.text.len() + 2);
        let mut starts = Vec::with_capacity(self.lines.len());
        for line in self.iter() {
            starts.push(hay.len());
            hay.push('\n');
            hay.push_str(&fold(line));
        }
        hay.push('\n');
        let mut needle = String::from("\n");
        for line in wanted {
            needle.push_str(&fold(line));
            needle.push('\n');
        }
        let found = occurrences(&hay, &needle, PLACES + 1);
        found.into_iter().filter_map(|at| starts.binary_search(&at).ok()).collect()
    }
}

/// Where a text occurs in another, overlaps included, up to a number of them.
pub(super) fn occurrences(hay: &str, needle: &str, most: usize) -> Vec<usize> {
    let step = needle.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() < most
        && let Some(at) = hay.get(from..).and_then(|rest| rest.find(needle))
    {
        found.push(from + at);
        from += at + step;
    }
    found
}

/// Whether a part of a text cuts no word in two: beside a word at its ends stands none.
pub(super) fn is_apart(text: &str, part: &Range<usize>) -> bool {
    let Some(((before, part), after)) = text
        .split_at_checked(part.end)
        .and_then(|(head, after)| Some((head.split_at_checked(part.start)?, after)))
    else {
        return false;
    };
    let is_word = |found: Option<char>| found.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let cut = |a: Option<char>, b: Option<char>| is_word(a) && is_word(b);
    !cut(before.chars().next_back(), part.chars().next())
        && !cut(part.chars().next_back(), after.chars().next())
}

/// A line without the white space at its ends.
pub(super) fn trimmed(line: &str) -> Cow<'_, str> {
    line.trim().into()
}

/// A line's words with one space between them.
pub(super) fn collapsed(line: &str) -> Cow<'_, str> {
    let mut words = line.split_whitespace();
    let mut folded = String::with_capacity(line.len());
    folded.extend(words.next());
    for word in words {
        folded.push(' ');
        folded.push_str(word);
    }
    folded.into()
}

/// A line's indentation, its content and the white space behind.
pub(super) fn parts(line: &str) -> (&str, &str, &str) {
    let content = line.trim_start();
    let (indent, content) = line.split_at(line.len() - content.len());
    let kept = content.trim_end().len();
    let (content, trail) = content.split_at(kept);
    (indent, content, trail)
}

/// A line's indentation.
pub(super) fn indent(line: &str) -> &str {
    parts(line).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_as_many_lines_as_a_person_counts() {
        for (text, lines) in
            [("", vec![]), ("a", vec!["a"]), ("a\n", vec!["a"]), ("\n\nb", vec!["", "", "b"])]
        {
            assert_eq!(Lines::of(text).iter().collect::<Vec<_>>(), lines, "{text:?}");
        }
    }

    #[test]
    fn lines_and_bytes_lead_to_each_other() {
        let lines = Lines::of("ab\n\ncd");
        assert_eq!((lines.start(0), lines.end(0)), (0, 2));
        assert_eq!((lines.start(2), lines.end(2)), (4, 6));
        assert_eq!((lines.start(9), lines.end(9)), (6, 6));
        assert_eq!((lines.at(0), lines.at(2), lines.at(3), lines.at(6)), (0, 0, 1, 2));
        assert_eq!(lines.touched(&(1..5)), 0..3);
        assert_eq!(lines.touched(&(0..3)), 0..1);
        assert_eq!(lines.slice(&(1..3)), "\ncd");
    }

    #[test]
    fn overlapping_runs_are_all_found_and_counted_no_further_than_asked() {
        let text = "a\n".repeat(100_000);
        let lines = Lines::of(&text);
        assert_eq!(lines.places(&["a ", " a"], trimmed).len(), PLACES + 1);
        assert_eq!(occurrences("aaaa", "aa", 9), [0, 1, 2]);
        assert_eq!(occurrences("ééé", "éé", 9), [0, 2]);
    }

    #[test]
    fn a_part_of_a_word_is_not_apart() {
        let text = "ab c_d é9, x";
        for (part, apart) in [
            (0..2, true),
            (1..2, false),
            (3..4, false),
            (7..9, false),
            (7..12, true),
            (10..11, true),
        ] {
            assert_eq!(is_apart(text, &part), apart, "{part:?}");
        }
        assert!(!is_apart(text, &(8..9)), "not on a character");
        assert!(is_apart(text, &(0..text.len())));
    }

    #[test]
    fn a_run_is_found_at_either_end() {
        let lines = Lines::of("x\ny\nz\nx");
        assert_eq!(lines.places(&["x"], trimmed), [0, 3]);
        assert_eq!(lines.places(&["z", "x"], trimmed), [2]);
        assert_eq!(lines.places(&["x", ""], trimmed), Vec::<usize>::new());
    }
}
