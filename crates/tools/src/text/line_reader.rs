//! Reads the lines of a text that may not fit into memory.

use super::detect_encoding::{
    BinaryContentError, ENCODING_GUESS_BYTES, SampleExtent, sniff_encoding,
};
use super::encoding::TextEncoding;
use super::line_feeds::LineFeedScanner;
use std::io::{self, BufRead, Chain, Cursor, Read as _};

/// Characters of a line that are shown.
const MAX_SHOWN_LINE_CHARS: usize = 2_000;
/// Bytes of a line that are kept: more than `MAX_SHOWN_LINE_CHARS` can take.
const MAX_KEPT_LINE_BYTES: usize = 4 * MAX_SHOWN_LINE_CHARS + 64;
/// A CRLF in UTF-16.
const MAX_LINE_ENDING_BYTES: usize = 4;

/// Reads a text line by line in constant memory.
pub struct TextLineReader<R> {
    source: Chain<Cursor<Vec<u8>>, R>,
    encoding: TextEncoding,
    line_feeds: LineFeedScanner,
}

/// A line without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub struct TextLine {
    /// The line, truncated to `MAX_SHOWN_LINE_CHARS`.
    pub text: String,
    /// Number of bytes after `text`.
    pub omitted_bytes: u64,
}

/// The result of counting the rest of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingLineCount {
    /// Number of lines counted.
    pub lines: u64,
    /// True if counting reached the end of the text.
    pub reached_end: bool,
}

/// The reason why lines cannot be read.
#[derive(Debug)]
pub enum ReadLinesError {
    /// The content is not text.
    Binary(BinaryContentError),
    Io(io::Error),
}

/// The part of a line that one `read_chunk` returns.
enum LineChunk {
    Middle,
    End,
    EndOfText,
}

impl<R: BufRead> TextLineReader<R> {
    /// Opens a text and detects its encoding from the first bytes.
    pub fn open(mut source: R) -> Result<TextLineReader<R>, ReadLinesError> {
        let mut head = Vec::new();
        let read = source.by_ref().take(ENCODING_GUESS_BYTES as u64).read_to_end(&mut head);
        let extent = match read.map_err(ReadLinesError::Io)? {
            ENCODING_GUESS_BYTES => SampleExtent::Head,
            _ => SampleExtent::Whole,
        };
        let encoding = sniff_encoding(&head, extent).map_err(ReadLinesError::Binary)?;
        let mut head = Cursor::new(head);
        head.set_position(encoding.bom().len() as u64);
        let source = head.chain(source);
        Ok(TextLineReader { source, encoding, line_feeds: LineFeedScanner::new(encoding) })
    }

    /// Returns the `TextEncoding` that `open` detected.
    pub fn encoding(&self) -> TextEncoding {
        self.encoding
    }

    /// Reads the next line; `None` at the end.
    pub fn read_line(&mut self) -> io::Result<Option<TextLine>> {
        let mut line = TruncatedLine::default();
        loop {
            match self.read_chunk(|bytes| line.push(bytes))? {
                LineChunk::Middle => {}
                LineChunk::End => {
                    return Ok(Some(line.into_line(self.encoding, LineTerminator::LineFeed)));
                }
                LineChunk::EndOfText if line.length == 0 => return Ok(None),
                LineChunk::EndOfText => {
                    // If the file grows later, the appended text counts as a new line.
                    self.line_feeds = LineFeedScanner::new(self.encoding);
                    return Ok(Some(line.into_line(self.encoding, LineTerminator::EndOfText)));
                }
            }
        }
    }

    /// Skips up to `lines` lines and returns the number skipped.
    pub fn skip_lines(&mut self, lines: u64) -> io::Result<u64> {
        Ok(self.advance(lines, u64::MAX)?.lines)
    }

    /// Counts the remaining lines, reading at most about `bytes` bytes.
    pub fn count_remaining(&mut self, bytes: u64) -> io::Result<RemainingLineCount> {
        self.advance(u64::MAX, bytes)
    }

    fn advance(&mut self, lines: u64, bytes: u64) -> io::Result<RemainingLineCount> {
        let (mut skipped, mut read) = (0, 0);
        while skipped < lines {
            let buffer = match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                let last = u64::from(self.line_feeds.has_open_line());
                self.line_feeds = LineFeedScanner::new(self.encoding);
                return Ok(RemainingLineCount { lines: skipped + last, reached_end: true });
            }
            if read >= bytes {
                break;
            }
            let mut scanner = self.line_feeds;
            let count = scanner.count_line_feeds(buffer);
            if skipped + count < lines {
                self.line_feeds = scanner;
                let used = buffer.len();
                self.source.consume(used);
                (skipped, read) = (skipped + count, read + used as u64);
            } else {
                // The last line to skip ends in this buffer, so advance line by line.
                while skipped < lines {
                    self.read_chunk(|_| {})?;
                    skipped += 1;
                }
            }
        }
        Ok(RemainingLineCount { lines: skipped, reached_end: false })
    }

    /// Reads up to the next line feed, or the buffered bytes if there is none.
    fn read_chunk(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<LineChunk> {
        loop {
            let buffer = match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                return Ok(LineChunk::EndOfText);
            }
            let end = self.line_feeds.next_line_end(buffer);
            let used = end.unwrap_or(buffer.len());
            visit(buffer.get(..used).unwrap_or_default());
            self.source.consume(used);
            return Ok(if end.is_some() { LineChunk::End } else { LineChunk::Middle });
        }
    }
}

/// The end of a line: a line feed or the end of the text.
enum LineTerminator {
    LineFeed,
    EndOfText,
}

/// The beginning of a line, with the last bytes and the length.
#[derive(Default)]
struct TruncatedLine {
    head: Vec<u8>,
    /// The last bytes, which may contain the line ending.
    tail: Vec<u8>,
    length: u64,
}

impl TruncatedLine {
    fn push(&mut self, bytes: &[u8]) {
        let kept = MAX_KEPT_LINE_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..kept).unwrap_or_default());
        let start = bytes.len().saturating_sub(MAX_LINE_ENDING_BYTES);
        self.tail.extend_from_slice(bytes.get(start..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(MAX_LINE_ENDING_BYTES));
        self.length += bytes.len() as u64;
    }

    fn into_line(self, encoding: TextEncoding, ending: LineTerminator) -> TextLine {
        let (cr, lf) = (encoding.encode_control(b'\r'), encoding.encode_control(b'\n'));
        let ending_bytes = match (ending, self.tail.strip_suffix(lf.as_slice())) {
            (LineTerminator::LineFeed, Some(before)) if before.ends_with(&cr) => {
                cr.len() + lf.len()
            }
            (LineTerminator::LineFeed, _) => lf.len(),
            (LineTerminator::EndOfText, _) => 0,
        };
        let content_bytes = self.length.saturating_sub(ending_bytes as u64);
        let (mut text, mut shown, mut position) = (String::new(), 0, 0);
        // `head` still includes the line ending, because it affects how the bytes before it decode.
        while shown < MAX_SHOWN_LINE_CHARS
            && (position as u64) < content_bytes
            && let Some(unit) = self.head.get(position..).and_then(|rest| encoding.first_unit(rest))
        {
            text.extend(unit.chars());
            shown += unit.chars().count();
            position += unit.byte_len;
        }
        TextLine { text, omitted_bytes: content_bytes.saturating_sub(position as u64) }
    }
}
