//! File contents as text, with changes that touch no byte outside the change.
//!
//! This module opens no file. It keeps the invariant that a splice preserves every byte outside the
//! real difference, in any encoding and with any line endings, even where bytes cannot be decoded.
//! Start reading at [`FileText::splice`]. `encoding` relates bytes to characters, `detect` finds
//! the encoding, and [`TextLineReader`] reads texts that are too long for memory.

mod common_prefix_suffix;
mod detect_encoding;
mod encoding;
mod line_feeds;
mod line_reader;
mod offset_map;

pub use detect_encoding::{BinaryContentError, detect_encoding};
pub use encoding::TextEncoding;
pub use line_reader::{ReadLinesError, RemainingLineCount, TextLine, TextLineReader};

use detect_encoding::{SampleExtent, sniff_encoding};
use encoding::REPLACEMENT_CHAR;
use offset_map::{LineEnding, OffsetMap, ViewAndByteOffset};
use std::fmt;
use std::ops::Range;

/// A replacement in a text; `range` is in bytes of [`FileText::view`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSplice {
    pub range: Range<usize>,
    /// The replacement; CRLF means the same as LF.
    pub new_text: String,
}

/// The bytes of a file, decoded as text.
#[derive(Clone, Debug)]
pub struct FileText {
    encoding: TextEncoding,
    body: FileTextContent,
}

#[derive(Clone, Debug)]
enum FileTextContent {
    /// UTF-8 without CRLF: the bytes after the byte-order mark are the view.
    Plain(String),
    Mapped {
        bytes: Vec<u8>,
        view: String,
        map: OffsetMap,
    },
}

/// The reason why a text cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeTextError {
    /// The encoding of the file lacks a character.
    UnencodableChar {
        /// The first such character.
        character: char,
        encoding: &'static str,
    },
    /// The new text contains U+FFFD, which represents undecodable bytes in this file.
    ReplacementChar,
    /// The change would merge with adjacent bytes that cannot be decoded.
    JoinsUndecodableBytes,
    /// The splices overlap, are not sorted, or do not fit the view.
    InvalidRange,
}

impl fmt::Display for EncodeTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeTextError::UnencodableChar { character, encoding } => write!(
                f,
                "{character:?} (U+{:04X}) cannot be written: the file is in {encoding}, which \
                 does not contain it. Use other characters, or rewrite the whole file, which \
                 converts it to UTF-8",
                u32::from(*character)
            ),
            EncodeTextError::ReplacementChar => f.write_str(
                "the new text contains U+FFFD, which in this file stands for bytes that could \
                 not be decoded and cannot be written back. Change only the text around it, in \
                 smaller edits",
            ),
            EncodeTextError::JoinsUndecodableBytes => f.write_str(
                "the change touches bytes that cannot be decoded and would change their meaning. \
                 Replace them (shown as U+FFFD) too, or leave a character in between",
            ),
            EncodeTextError::InvalidRange => f.write_str(
                "the changes overlap or do not match the file. Read it again, and make them one \
                 at a time",
            ),
        }
    }
}

impl std::error::Error for EncodeTextError {}

impl FileText {
    /// Detects the encoding and decodes the bytes; fails with `BinaryContentError` if they are not text.
    pub fn decode(bytes: Vec<u8>) -> Result<FileText, BinaryContentError> {
        let encoding = sniff_encoding(&bytes, SampleExtent::Whole)?;
        Ok(FileText::decode_as(encoding, bytes))
    }

    fn decode_as(encoding: TextEncoding, bytes: Vec<u8>) -> FileText {
        let is_plain = encoding.is_utf8() && memchr::memmem::find(&bytes, b"\r\n").is_none();
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if is_plain => {
                return FileText { encoding, body: FileTextContent::Plain(text) };
            }
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let view = encoding.decode_view(&bytes);
        let map = OffsetMap::new(encoding, &bytes, &view);
        FileText { encoding, body: FileTextContent::Mapped { bytes, view, map } }
    }

    /// Returns the text without byte-order mark, with LF for every CRLF and U+FFFD for undecodable
    /// bytes.
    pub fn view(&self) -> &str {
        match &self.body {
            FileTextContent::Plain(text) => {
                text.get(self.encoding.bom().len()..).unwrap_or_default()
            }
            FileTextContent::Mapped { view, .. } => view,
        }
    }

    /// Returns the bytes that the text was decoded from.
    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            FileTextContent::Plain(text) => text.as_bytes(),
            FileTextContent::Mapped { bytes, .. } => bytes,
        }
    }

    /// Returns the name of the encoding for display.
    pub fn encoding_name(&self) -> &'static str {
        self.encoding.name()
    }

    /// Returns the bytes of the file after the splices, which must be sorted and disjoint.
    ///
    /// Each splice is first reduced to the real difference. New line endings follow the line they
    /// are inserted into, otherwise its neighbors.
    pub fn splice(&self, splices: &[TextSplice]) -> Result<Vec<u8>, EncodeTextError> {
        self.write_splices(&self.minimize_splices(splices)?, LineEndingPolicy::Neighboring)
    }

    /// Does the same for splices of whole new lines: they get the most common line ending. If every
    /// line ends in a bare CR, which the view shows unchanged, the new lines do too.
    pub fn splice_lines(&self, splices: &[TextSplice]) -> Result<Vec<u8>, EncodeTextError> {
        let bare_cr = || self.view().contains('\r').then_some(LineEnding::Cr);
        let ending = self.dominant_line_ending().or_else(bare_cr);
        self.write_splices(splices, LineEndingPolicy::Dominant(ending.unwrap_or(LineEnding::Lf)))
    }

    fn write_splices(
        &self,
        splices: &[TextSplice],
        policy: LineEndingPolicy,
    ) -> Result<Vec<u8>, EncodeTextError> {
        let (view, bytes) = (self.view(), self.bytes());
        self.check_replacement_chars(splices.iter().map(|splice| splice.new_text.as_str()))?;
        let mut output = Vec::with_capacity(bytes.len());
        let mut expected = String::with_capacity(view.len());
        let mut position = ViewAndByteOffset { view: 0, byte: 0 };
        let mut hint = None;
        for splice in splices {
            let Range { start, end } = splice.range;
            let (from, _) = self.locate(hint, start)?;
            let (_, to) = self.locate(Some(from), end)?;
            hint = Some(to);
            let slice = |range: Range<usize>| view.get(range).ok_or(EncodeTextError::InvalidRange);
            let new_text =
                [slice(from.view..start)?, &splice.new_text, slice(end..to.view)?].concat();
            // Fails for two changes inside one `CharsetUnit`, because both cannot be extended to
            // it.
            expected.push_str(slice(position.view..from.view)?);
            output.extend_from_slice(
                bytes.get(position.byte..from.byte).ok_or(EncodeTextError::InvalidRange)?,
            );
            output.extend(
                self.encoding
                    .encode(&self.with_stored_line_endings(&new_text, from, to, policy))?,
            );
            match policy {
                LineEndingPolicy::Dominant(LineEnding::Cr) => {
                    expected.push_str(&new_text.replace('\n', "\r"))
                }
                LineEndingPolicy::Dominant(LineEnding::Lf | LineEnding::CrLf)
                | LineEndingPolicy::Neighboring => expected.push_str(&new_text),
            }
            position = to;
        }
        expected.push_str(view.get(position.view..).unwrap_or_default());
        output.extend_from_slice(bytes.get(position.byte..).unwrap_or_default());
        if self.encoding.decode_view(&output) == expected {
            Ok(output)
        } else {
            Err(EncodeTextError::JoinsUndecodableBytes)
        }
    }

    /// Encodes new content for the whole file with its encoding, byte-order mark and line endings.
    /// Keeps a final line ending.
    pub fn rewrite(&self, content: &str) -> Result<Vec<u8>, EncodeTextError> {
        self.check_replacement_chars([content])?;
        let text = self.with_file_line_endings(content);
        Ok([self.encoding.bom(), &self.encoding.encode(&text)?].concat())
    }

    /// Does the same as `rewrite` in UTF-8, for content that the file's encoding cannot represent.
    pub fn rewrite_in_utf8(&self, content: &str) -> Vec<u8> {
        let bom = if self.encoding.is_utf8() { self.encoding.bom() } else { b"" };
        [bom, self.with_file_line_endings(content).as_bytes()].concat()
    }

    /// Returns the content with the line endings and final line ending of this file.
    fn with_file_line_endings(&self, content: &str) -> String {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let mut text = match self.dominant_line_ending() {
            Some(ending) => convert_line_endings(&content.replace("\r\n", "\n"), None, ending),
            None => content.to_owned(),
        };
        if self.view().ends_with('\n') && !text.is_empty() && !text.ends_with('\n') {
            let last = text.chars().next_back();
            text += &convert_line_endings(
                "\n",
                last,
                self.dominant_line_ending().unwrap_or(LineEnding::Lf),
            );
        }
        text
    }

    /// Refuses U+FFFD in new text if it may represent bytes that it would replace.
    fn check_replacement_chars<'a>(
        &self,
        new_texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), EncodeTextError> {
        let has_replacement = new_texts.into_iter().any(|text| text.contains(REPLACEMENT_CHAR));
        if has_replacement && !self.encoding.can_decode(self.bytes()) {
            return Err(EncodeTextError::ReplacementChar);
        }
        Ok(())
    }

    /// Reduces splices to the real differences and joins adjacent ones.
    fn minimize_splices(&self, splices: &[TextSplice]) -> Result<Vec<TextSplice>, EncodeTextError> {
        let mut minimal: Vec<TextSplice> = Vec::new();
        let mut previous_end = 0;
        for TextSplice { range, new_text } in splices {
            let old = self.view().get(range.clone()).ok_or(EncodeTextError::InvalidRange)?;
            if range.start < previous_end {
                return Err(EncodeTextError::InvalidRange);
            }
            previous_end = range.end;
            let new_text = new_text.replace("\r\n", "\n");
            let (head, tail) = common_prefix_suffix::shared_affix_bytes(old, &new_text);
            let new_text =
                new_text.get(head..new_text.len() - tail).ok_or(EncodeTextError::InvalidRange)?;
            let range = range.start + head..range.end - tail;
            match minimal.last_mut().filter(|last| last.range.end == range.start) {
                _ if range.is_empty() && new_text.is_empty() => {}
                Some(last) => {
                    last.range.end = range.end;
                    last.new_text.push_str(new_text);
                }
                None => minimal.push(TextSplice { range, new_text: new_text.to_owned() }),
            }
        }
        Ok(minimal)
    }

    /// Returns the positions around an offset of the view; see [`OffsetMap::locate`].
    fn locate(
        &self,
        hint: Option<ViewAndByteOffset>,
        target: usize,
    ) -> Result<(ViewAndByteOffset, ViewAndByteOffset), EncodeTextError> {
        match &self.body {
            FileTextContent::Plain(_) => {
                let offset =
                    ViewAndByteOffset { view: target, byte: target + self.encoding.bom().len() };
                Ok((offset, offset))
            }
            FileTextContent::Mapped { bytes, view, map } => map
                .locate(self.encoding, bytes, view, hint, target)
                .ok_or(EncodeTextError::InvalidRange),
        }
    }

    /// Returns new text with the line endings to store.
    fn with_stored_line_endings(
        &self,
        new_text: &str,
        from: ViewAndByteOffset,
        to: ViewAndByteOffset,
        policy: LineEndingPolicy,
    ) -> String {
        let before = self.view().get(..from.view).and_then(|before| before.chars().next_back());
        let ending = match policy {
            LineEndingPolicy::Neighboring => self.line_ending_at(from.view..to.view),
            LineEndingPolicy::Dominant(ending) => ending,
        };
        let mut text = convert_line_endings(new_text, before, ending);
        let last = text.chars().next_back().or(before);
        let line_feed = self.encoding.encode_control(b'\n');
        let is_before_line_feed =
            self.bytes().get(to.byte..).is_some_and(|rest| rest.starts_with(&line_feed));
        if last == Some('\r') && is_before_line_feed {
            // The CR and the LF after it would be read as one line ending; another CR makes the LF
            // a CRLF of its own.
            text.push('\r');
        }
        text
    }

    /// Returns the line ending for new text: that of the first line it touches, otherwise the line
    /// before, otherwise the line after.
    fn line_ending_at(&self, range: Range<usize>) -> LineEnding {
        let FileTextContent::Mapped { bytes, map, .. } = &self.body else { return LineEnding::Lf };
        let line = map.line_at(range.start);
        let at_start = map.line_start(line).is_some_and(|start| start.view == range.start);
        let ending = |line: usize| map.line_ending(self.encoding, bytes, line);
        let before = line.checked_sub(1).and_then(ending);
        let touched = if range.is_empty() && at_start { None } else { ending(line) };
        touched.or(before).or_else(|| ending(line)).unwrap_or(LineEnding::Lf)
    }

    fn dominant_line_ending(&self) -> Option<LineEnding> {
        match &self.body {
            FileTextContent::Plain(text) => text.contains('\n').then_some(LineEnding::Lf),
            FileTextContent::Mapped { bytes, map, .. } => {
                map.dominant_line_ending(self.encoding, bytes)
            }
        }
    }
}

/// The source of the line endings in new text: see `convert_line_endings`.
#[derive(Clone, Copy)]
enum LineEndingPolicy {
    /// The line they are inserted into, otherwise its neighbors.
    Neighboring,
    /// The most common line ending of the file.
    Dominant(LineEnding),
}

/// Converts line feeds to `ending`. A line feed after a literal CR becomes CRLF, because CR and LF
/// would be read as one line ending.
fn convert_line_endings(text: &str, before: Option<char>, ending: LineEnding) -> String {
    let mut converted = String::with_capacity(text.len());
    let mut last = before;
    for char in text.chars() {
        if char == '\n' && ending == LineEnding::Cr {
            converted.push('\r');
            last = Some('\r');
            continue;
        }
        if char == '\n' && (ending == LineEnding::CrLf || last == Some('\r')) {
            converted.push('\r');
        }
        converted.push(char);
        last = Some(char);
    }
    converted
}

#[cfg(test)]
mod tests;
