//! The lines of a text that need not fit into memory.

use super::detect::{Binary, Extent, GUESSED, sniff};
use super::ends::Ends;
use super::format::Format;
use std::io::{self, BufRead, Chain, Cursor, Read as _};

/// How many characters of a line are shown.
const SHOWN: usize = 2_000;
/// How many bytes of a line are kept: more than so many characters can take.
const KEPT: usize = 4 * SHOWN + 64;

/// Reads the lines of a text one by one, in constant memory.
pub struct Lines<R> {
    source: Chain<Cursor<Vec<u8>>, R>,
    format: Format,
    ends: Ends,
}

/// One line, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its first characters.
    pub text: String,
    /// How many bytes it has beyond them.
    pub more: u64,
}

/// What is left of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The lines that were counted.
    pub lines: u64,
    /// Whether the end was reached.
    pub ended: bool,
}

/// Why lines cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// They are none.
    Binary(Binary),
    /// The source failed.
    Source(io::Error),
}

/// What was read in one go.
enum Piece {
    /// Some of a line.
    Middle,
    /// The last of a line.
    End,
    /// There was nothing left.
    Nothing,
}

impl<R: BufRead> Lines<R> {
    /// Looks at the first bytes to see how to read the rest.
    pub fn open(mut source: R) -> Result<Lines<R>, Unreadable> {
        let mut head = Vec::new();
        let read = source.by_ref().take(GUESSED as u64).read_to_end(&mut head);
        let extent = match read.map_err(Unreadable::Source)? {
            GUESSED => Extent::Head,
            _ => Extent::Whole,
        };
        let format = sniff(&head, extent).map_err(Unreadable::Binary)?;
        let mut head = Cursor::new(head);
        head.set_position(format.mark().len() as u64);
        let source = head.chain(source);
        Ok(Lines { source, format, ends: Ends::new(format) })
    }

    /// How the text is stored.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The next line; `None` at the end.
    pub fn read(&mut self) -> io::Result<Option<Line>> {
        let mut line = Kept::default();
        loop {
            match self.piece(|bytes| line.push(bytes))? {
                Piece::Middle => {}
                Piece::End => return Ok(Some(line.show(self.format, Ending::LineFeed))),
                Piece::Nothing if line.length == 0 => return Ok(None),
                Piece::Nothing => {
                    // What follows, if a file grows, would be a line of its own.
                    self.ends = Ends::new(self.format);
                    return Ok(Some(line.show(self.format, Ending::Nothing)));
                }
            }
        }
    }

    /// Passes over so many lines, and says how many there were.
    pub fn skip(&mut self, lines: u64) -> io::Result<u64> {
        Ok(self.pass(lines, u64::MAX)?.lines)
    }

    /// Counts the lines that are left, reading about so many bytes at most.
    pub fn count(&mut self, bytes: u64) -> io::Result<Rest> {
        self.pass(u64::MAX, bytes)
    }

    fn pass(&mut self, lines: u64, bytes: u64) -> io::Result<Rest> {
        let (mut passed, mut read) = (0, 0);
        while passed < lines {
            let buffer = match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                let last = u64::from(self.ends.begun());
                self.ends = Ends::new(self.format);
                return Ok(Rest { lines: passed + last, ended: true });
            }
            if read >= bytes {
                break;
            }
            let mut ends = self.ends;
            let found = ends.count(buffer);
            if passed + found < lines {
                self.ends = ends;
                let used = buffer.len();
                self.source.consume(used);
                (passed, read) = (passed + found, read + used as u64);
            } else {
                // The wanted line ends in this buffer: go there line by line.
                while passed < lines {
                    self.piece(|_| {})?;
                    passed += 1;
                }
            }
        }
        Ok(Rest { lines: passed, ended: false })
    }

    /// Reads up to the next line feed, or what is at hand.
    fn piece(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<Piece> {
        loop {
            let buffer = match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                return Ok(Piece::Nothing);
            }
            let end = self.ends.find(buffer);
            let used = end.unwrap_or(buffer.len());
            visit(buffer.get(..used).unwrap_or_default());
            self.source.consume(used);
            return Ok(if end.is_some() { Piece::End } else { Piece::Middle });
        }
    }
}

/// What a line ends with.
enum Ending {
    LineFeed,
    /// The text itself ends.
    Nothing,
}

/// The beginning of a line and what must be known of its rest.
#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    /// The last bytes, which may hold the line end.
    tail: Vec<u8>,
    length: u64,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or_default());
        let (start, longest) = (bytes.len().saturating_sub(4), 4);
        self.tail.extend_from_slice(bytes.get(start..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(longest));
        self.length += bytes.len() as u64;
    }

    fn show(self, format: Format, ending: Ending) -> Line {
        let (cr, lf) = (format.control(b'\r'), format.control(b'\n'));
        let end = match (ending, self.tail.strip_suffix(lf.as_slice())) {
            (Ending::LineFeed, Some(before)) if before.ends_with(&cr) => cr.len() + lf.len(),
            (Ending::LineFeed, _) => lf.len(),
            (Ending::Nothing, _) => 0,
        };
        let content = self.length.saturating_sub(end as u64);
        let (mut text, mut shown, mut at) = (String::new(), 0, 0);
        // The line end is left in sight, as it decides what bytes before it mean.
        while shown < SHOWN
            && (at as u64) < content
            && let Some(unit) = self.head.get(at..).and_then(|rest| format.unit(rest))
        {
            text.extend(unit.chars());
            shown += unit.chars().count();
            at += unit.bytes;
        }
        Line { text, more: content.saturating_sub(at as u64) }
    }
}
