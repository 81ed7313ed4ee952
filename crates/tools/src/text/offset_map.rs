//! Maps offsets in the decoded view back to byte offsets: a table of line starts, then a walk along
//! one line.

use super::encoding::TextEncoding;
use super::line_feeds::LineFeedScanner;

/// The same position in the view and in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewAndByteOffset {
    pub(super) view: usize,
    pub(super) byte: usize,
}

/// The line starts of a text, each as a `ViewAndByteOffset`.
#[derive(Clone, Debug)]
pub(super) struct OffsetMap {
    line_starts: Vec<ViewAndByteOffset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnding {
    Lf,
    CrLf,
    /// Used in files from before 2001, and only if no line ends in LF or CRLF.
    Cr,
}

impl OffsetMap {
    pub(super) fn new(encoding: TextEncoding, bytes: &[u8], view: &str) -> OffsetMap {
        let bom_len = encoding.bom().len();
        let mut line_starts = vec![ViewAndByteOffset { view: 0, byte: bom_len }];
        let mut scanner = LineFeedScanner::new(encoding);
        let mut byte = bom_len;
        for offset in memchr::memchr_iter(b'\n', view.as_bytes()) {
            let Some(end) = bytes.get(byte..).and_then(|rest| scanner.next_line_end(rest)) else {
                break;
            };
            byte += end;
            line_starts.push(ViewAndByteOffset { view: offset + 1, byte });
        }
        OffsetMap { line_starts }
    }

    /// Returns the last line that starts at or before the offset `view`.
    pub(super) fn line_at(&self, view: usize) -> usize {
        self.line_starts.partition_point(|start| start.view <= view).saturating_sub(1)
    }

    pub(super) fn line_start(&self, line: usize) -> Option<ViewAndByteOffset> {
        self.line_starts.get(line).copied()
    }

    /// Returns the ending of a line; `None` for a last line without one.
    pub(super) fn line_ending(
        &self,
        encoding: TextEncoding,
        bytes: &[u8],
        line: usize,
    ) -> Option<LineEnding> {
        let span = self.line_start(line)?.byte..self.line_start(line + 1)?.byte;
        let content = bytes.get(span)?.strip_suffix(encoding.encode_control(b'\n').as_slice())?;
        let ends_with_cr = content.ends_with(&encoding.encode_control(b'\r'));
        Some(if ends_with_cr { LineEnding::CrLf } else { LineEnding::Lf })
    }

    /// Returns the most common line ending; `None` if there is only one line.
    pub(super) fn dominant_line_ending(
        &self,
        encoding: TextEncoding,
        bytes: &[u8],
    ) -> Option<LineEnding> {
        let mut counts = (0_usize, 0_usize);
        for line in 0..self.line_starts.len() {
            match self.line_ending(encoding, bytes, line) {
                Some(LineEnding::Lf) => counts.0 += 1,
                Some(LineEnding::CrLf) => counts.1 += 1,
                Some(LineEnding::Cr) | None => {}
            }
        }
        match counts {
            (0, 0) => None,
            (lf, crlf) => Some(if crlf > lf { LineEnding::CrLf } else { LineEnding::Lf }),
        }
    }

    /// Returns the nearest positions at or before, and at or after, an offset of the view. They
    /// differ if the offset is inside a `CharsetUnit`. Returns `None` if the walk does not find the
    /// text of the view.
    ///
    /// The walk starts at `hint` if that is nearer than the start of the line, because a line may
    /// be as long as the file.
    pub(super) fn locate(
        &self,
        encoding: TextEncoding,
        bytes: &[u8],
        view: &str,
        hint: Option<ViewAndByteOffset>,
        target: usize,
    ) -> Option<(ViewAndByteOffset, ViewAndByteOffset)> {
        let start = self.line_start(self.line_at(target))?;
        let is_nearer = |hint: &ViewAndByteOffset| (start.view..=target).contains(&hint.view);
        let mut current = hint.filter(is_nearer).unwrap_or(start);
        while current.view < target {
            let next = next_offset(encoding, bytes, view, current)?;
            if next.view > target {
                return Some((current, next));
            }
            current = next;
        }
        Some((current, current))
    }
}

/// Advances by one unit; CRLF counts as one.
fn next_offset(
    encoding: TextEncoding,
    bytes: &[u8],
    view: &str,
    current: ViewAndByteOffset,
) -> Option<ViewAndByteOffset> {
    let unit = encoding.first_unit(bytes.get(current.byte..)?)?;
    let mut next = ViewAndByteOffset { view: current.view, byte: current.byte + unit.byte_len };
    if unit.first_char == '\r'
        && let Some(following) = bytes.get(next.byte..).and_then(|rest| encoding.first_unit(rest))
        && following.first_char == '\n'
    {
        next.byte += following.byte_len;
        next.view += 1;
        return view.get(current.view..)?.starts_with('\n').then_some(next);
    }
    for char in unit.chars() {
        if !view.get(next.view..)?.starts_with(char) {
            return None;
        }
        next.view += char.len_utf8();
    }
    Some(next)
}
