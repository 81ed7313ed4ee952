//! The matching lines of one file, as text.

use super::Page;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use std::ops::Range;

/// How many characters of a line are shown.
const LINE: usize = 2_000;

/// How many bytes the first match of a file makes room for.
const FIRST: usize = 1_024;

/// Lines of one file, written one behind the other, with where each of them ends.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    ends: Vec<End>,
}

/// Where a line ends in the text.
#[derive(Clone, Copy, Debug)]
struct End {
    at: usize,
    number: u64,
    /// How many matches there are up to this line. A match over several lines is one.
    matches: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Match,
    Around,
    Gap,
}

impl Lines {
    /// Adds a match, which may span lines.
    pub(super) fn add_match(&mut self, matcher: &RegexMatcher, first: u64, bytes: &[u8]) {
        // Only a line that is cut has to know where the match is.
        let focus = match bytes.len() > LINE {
            true => matcher.find(bytes).ok().flatten().map(|found| found.start()..found.end()),
            false => None,
        };
        let matches = self.matches() + 1;
        let mut start = 0;
        for (number, line) in (first..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            let near = focus.as_ref().map_or(0..0, |focus| {
                focus.start.saturating_sub(start)..focus.end.saturating_sub(start)
            });
            self.add(number, matches, Kind::Match, line, near);
            start += line.len();
        }
    }

    /// Adds a line around a match.
    pub(super) fn add_around(&mut self, number: u64, line: &[u8]) {
        self.add(number, self.matches(), Kind::Around, line, 0..0);
    }

    /// Marks that the next line is not the next of the file.
    pub(super) fn add_break(&mut self) {
        self.text.push_str("  --\n");
        let (at, matches) = (self.text.len(), self.matches());
        self.ends.push(End { at, number: 0, matches, kind: Kind::Gap });
    }

    fn add(&mut self, number: u64, matches: usize, kind: Kind, line: &[u8], focus: Range<usize>) {
        let mark = match kind {
            Kind::Match => ':',
            Kind::Around | Kind::Gap => '-',
        };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.ends.is_empty() {
            // Most files with a match have several; growing in small steps costs more than this.
            self.text.reserve(FIRST);
            self.ends.reserve(FIRST / 64);
        }
        self.text.push_str("  ");
        push_number(&mut self.text, number);
        self.text.push(mark);
        self.text.push(' ');
        match line.len() > LINE {
            true => cut(&mut self.text, line, focus),
            false => match std::str::from_utf8(line) {
                Ok(line) => self.text.push_str(line),
                Err(_) => self.text.push_str(&String::from_utf8_lossy(line)),
            },
        }
        self.text.push('\n');
        self.ends.push(End { at: self.text.len(), number, matches, kind });
    }

    /// How many matches were added.
    fn matches(&self) -> usize {
        self.ends.last().map_or(0, |end| end.matches)
    }

    /// The numbers of the lines that match.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.ends.iter().filter(|end| end.kind == Kind::Match).map(|end| end.number)
    }

    /// Writes a range of the matches, counting from 0, with the lines around them, as long as the
    /// page has room, and says how many they were.
    pub(super) fn write(&self, wanted: Range<usize>, page: &mut Page) -> usize {
        // What follows the match above, without a gap, leads to the first one.
        let above = |end: &End| end.matches <= wanted.start && end.kind != Kind::Around;
        let begin = match wanted.start {
            0 => 0,
            _ => self.ends.iter().rposition(above).map_or(0, |index| index + 1),
        };
        let mut start = begin.checked_sub(1).and_then(|index| self.ends.get(index));
        let (mut written, mut gap) = (0, None);
        for end in self.ends.iter().skip(begin) {
            let last = end.matches == wanted.end && end.kind == Kind::Gap;
            if last || end.matches > wanted.end {
                break;
            }
            let line = self.text.get(start.map_or(0, |end| end.at)..end.at).unwrap_or_default();
            start = Some(end);
            match end.kind {
                Kind::Match => {
                    if end.matches > wanted.start + written && page.is_full(line.len()) {
                        // What was written for this match goes with it.
                        page.text.truncate(gap.unwrap_or(page.text.len()));
                        break;
                    }
                    gap = None;
                    page.shown += end.matches - wanted.start - written;
                    written = end.matches - wanted.start;
                }
                Kind::Gap => gap = Some(page.text.len()),
                Kind::Around => {}
            }
            page.text.push_str(line);
        }
        written
    }
}

/// Writes a number, without the machinery of formatting: a broad search writes a million of them.
fn push_number(text: &mut String, number: u64) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// Writes so much of a line as is shown, around what matched, and says what is missing. Nothing is
/// copied but what is written, however long the line is.
fn cut(text: &mut String, line: &[u8], focus: Range<usize>) {
    let (before, rest) = line.split_at_checked(focus.start).unwrap_or((&[], line));
    let matching = rest.get(..focus.len()).unwrap_or(rest);
    let matched = matching.iter().take(4 * LINE).filter(|byte| begins(byte)).count();
    let lead = LINE.saturating_sub(matched) / 2;
    let mut start = back(before, before.len(), lead);
    let end = forth(line, start, LINE);
    if end == line.len() {
        start = back(line, end, LINE);
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

/// True for a byte that begins a character, or is none at all.
fn begins(byte: &u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Where so many characters before a place begin.
fn back(line: &[u8], from: usize, characters: usize) -> usize {
    if characters == 0 {
        return from;
    }
    let head = line.get(..from).unwrap_or(line);
    let starts = head.iter().enumerate().rev().filter(|(_, byte)| begins(byte));
    starts.map(|(at, _)| at).nth(characters - 1).unwrap_or(0)
}

/// Where so many characters from a place on end.
fn forth(line: &[u8], from: usize, characters: usize) -> usize {
    let tail = line.get(from..).unwrap_or_default();
    let starts = tail.iter().enumerate().filter(|(_, byte)| begins(byte));
    starts.map(|(at, _)| from + at).nth(characters).unwrap_or(line.len())
}
