//! Collects the matching lines of one file as text.

use super::GrepPage;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use std::ops::Range;

/// Characters shown of one line.
const MAX_SHOWN_LINE_CHARS: usize = 2_000;

/// Bytes reserved in `MatchedLines::text` at the first match of a file.
const INITIAL_CAPACITY_BYTES: usize = 1_024;

/// Lines of one file, concatenated in one string, with the offset at which each ends.
#[derive(Debug, Default)]
pub struct MatchedLines {
    text: String,
    line_ends: Vec<MatchedLineEnd>,
}

/// The end of a line in `MatchedLines::text`.
#[derive(Clone, Copy, Debug)]
struct MatchedLineEnd {
    offset: usize,
    line_number: u64,
    /// Matches up to and including this line. A match over several lines counts once.
    match_count: usize,
    kind: MatchedLineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchedLineKind {
    Match,
    Context,
    Break,
}

impl MatchedLines {
    /// Adds a match, which may span lines.
    pub(super) fn add_match(&mut self, matcher: &RegexMatcher, first: u64, bytes: &[u8]) {
        // Only a truncated line needs the position of the match.
        let match_range = match bytes.len() > MAX_SHOWN_LINE_CHARS {
            true => matcher.find(bytes).ok().flatten().map(|found| found.start()..found.end()),
            false => None,
        };
        let match_count = self.match_count() + 1;
        let mut start = 0;
        for (number, line) in (first..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            let range_in_line = match_range.as_ref().map_or(0..0, |match_range| {
                match_range.start.saturating_sub(start)..match_range.end.saturating_sub(start)
            });
            self.add_line(number, match_count, MatchedLineKind::Match, line, range_in_line);
            start += line.len();
        }
    }

    /// Adds a context line.
    pub(super) fn add_context(&mut self, number: u64, line: &[u8]) {
        self.add_line(number, self.match_count(), MatchedLineKind::Context, line, 0..0);
    }

    /// Adds a separator: the next line does not directly follow in the file.
    pub(super) fn add_break(&mut self) {
        self.text.push_str("  --\n");
        let (offset, match_count) = (self.text.len(), self.match_count());
        self.line_ends.push(MatchedLineEnd {
            offset,
            line_number: 0,
            match_count,
            kind: MatchedLineKind::Break,
        });
    }

    fn add_line(
        &mut self,
        number: u64,
        match_count: usize,
        kind: MatchedLineKind,
        line: &[u8],
        match_range: Range<usize>,
    ) {
        let marker = match kind {
            MatchedLineKind::Match => ':',
            MatchedLineKind::Context | MatchedLineKind::Break => '-',
        };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.line_ends.is_empty() {
            // Most files with a match have several; growing in small steps costs more than this.
            self.text.reserve(INITIAL_CAPACITY_BYTES);
            self.line_ends.reserve(INITIAL_CAPACITY_BYTES / 64);
        }
        self.text.push_str("  ");
        push_number(&mut self.text, number);
        self.text.push(marker);
        self.text.push(' ');
        match line.len() > MAX_SHOWN_LINE_CHARS {
            true => push_truncated(&mut self.text, line, match_range),
            false => match std::str::from_utf8(line) {
                Ok(line) => self.text.push_str(line),
                Err(_) => self.text.push_str(&String::from_utf8_lossy(line)),
            },
        }
        self.text.push('\n');
        self.line_ends.push(MatchedLineEnd {
            offset: self.text.len(),
            line_number: number,
            match_count,
            kind,
        });
    }

    fn match_count(&self) -> usize {
        self.line_ends.last().map_or(0, |end| end.match_count)
    }

    /// Returns the numbers of the matching lines.
    pub fn match_line_numbers(&self) -> impl Iterator<Item = u64> {
        self.line_ends
            .iter()
            .filter(|end| end.kind == MatchedLineKind::Match)
            .map(|end| end.line_number)
    }

    /// Writes a range of matches, counting from 0, with their context lines, until the page is
    /// full. Returns the number of matches written.
    pub(super) fn write_matches(&self, wanted: Range<usize>, page: &mut GrepPage) -> usize {
        // Context lines after the previous match lead to the first wanted one if no gap lies
        // between them.
        let is_before_range = |end: &MatchedLineEnd| {
            end.match_count <= wanted.start && end.kind != MatchedLineKind::Context
        };
        let begin = match wanted.start {
            0 => 0,
            _ => self.line_ends.iter().rposition(is_before_range).map_or(0, |index| index + 1),
        };
        let mut start = begin.checked_sub(1).and_then(|index| self.line_ends.get(index));
        let (mut written, mut break_start) = (0, None);
        for end in self.line_ends.iter().skip(begin) {
            let is_trailing_break =
                end.match_count == wanted.end && end.kind == MatchedLineKind::Break;
            if is_trailing_break || end.match_count > wanted.end {
                break;
            }
            let line =
                self.text.get(start.map_or(0, |end| end.offset)..end.offset).unwrap_or_default();
            start = Some(end);
            match end.kind {
                MatchedLineKind::Match => {
                    if end.match_count > wanted.start + written && page.is_full(line.len()) {
                        // Removes what was already written for this match.
                        page.text.truncate(break_start.unwrap_or(page.text.len()));
                        break;
                    }
                    break_start = None;
                    page.shown_results += end.match_count - wanted.start - written;
                    written = end.match_count - wanted.start;
                }
                MatchedLineKind::Break => break_start = Some(page.text.len()),
                MatchedLineKind::Context => {}
            }
            page.text.push_str(line);
        }
        written
    }
}

/// Appends a number without `format!`: a broad search writes a million of them.
fn push_number(text: &mut String, number: u64) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// Appends the part of a long line around the match, and notes how much is missing. It copies only
/// what it writes, however long the line is.
fn push_truncated(text: &mut String, line: &[u8], match_range: Range<usize>) {
    let (before, rest) = line.split_at_checked(match_range.start).unwrap_or((&[], line));
    let matching = rest.get(..match_range.len()).unwrap_or(rest);
    let matched_chars =
        matching.iter().take(4 * MAX_SHOWN_LINE_CHARS).filter(|byte| is_char_start(byte)).count();
    let leading_chars = MAX_SHOWN_LINE_CHARS.saturating_sub(matched_chars) / 2;
    let mut start = chars_back(before, before.len(), leading_chars);
    let end = chars_forward(line, start, MAX_SHOWN_LINE_CHARS);
    if end == line.len() {
        start = chars_back(line, end, MAX_SHOWN_LINE_CHARS);
    }
    let shown = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    if start > 0 {
        text.push_str(&format!("[{start} bytes left out] … "));
    }
    text.push_str(&shown);
    if end < line.len() {
        text.push_str(&format!(" … [{} bytes left out]", line.len() - end));
    }
}

/// Returns true for a byte that begins a character, or that belongs to no character.
fn is_char_start(byte: &u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Returns the offset that lies `characters` characters before `from`.
fn chars_back(line: &[u8], from: usize, characters: usize) -> usize {
    if characters == 0 {
        return from;
    }
    let head = line.get(..from).unwrap_or(line);
    let starts = head.iter().enumerate().rev().filter(|(_, byte)| is_char_start(byte));
    starts.map(|(index, _)| index).nth(characters - 1).unwrap_or(0)
}

/// Returns the offset that lies `characters` characters after `from`.
fn chars_forward(line: &[u8], from: usize, characters: usize) -> usize {
    let tail = line.get(from..).unwrap_or_default();
    let starts = tail.iter().enumerate().filter(|(_, byte)| is_char_start(byte));
    starts.map(|(index, _)| from + index).nth(characters).unwrap_or(line.len())
}
