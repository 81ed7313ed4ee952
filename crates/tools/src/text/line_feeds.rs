//! Finds line feeds in bytes that arrive in pieces, at memory speed.

use super::encoding::{ByteOrder, TextCodec, TextEncoding};

/// The state of a line feed search across pieces.
#[derive(Clone, Copy)]
pub(super) struct LineFeedScanner {
    codec: TextCodec,
    /// True if the last byte was the first of a UTF-16 pair.
    is_mid_pair: bool,
    last_byte: u8,
    /// True if bytes were seen since the last line feed.
    has_open_line: bool,
}

impl LineFeedScanner {
    /// Starts a search at the beginning of the text, after its byte-order mark.
    pub(super) fn new(encoding: TextEncoding) -> LineFeedScanner {
        LineFeedScanner {
            codec: encoding.codec,
            is_mid_pair: false,
            last_byte: b' ',
            has_open_line: false,
        }
    }

    /// Returns true if bytes were seen since the last line feed.
    pub(super) fn has_open_line(&self) -> bool {
        self.has_open_line
    }

    /// Scans up to and including the first line feed and returns the number of bytes scanned. Scans
    /// all bytes and returns `None` if there is no line feed.
    pub(super) fn next_line_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = match self.codec {
            TextCodec::Utf8 | TextCodec::Legacy(_) => {
                memchr::memchr(b'\n', bytes).map(|index| index + 1)
            }
            TextCodec::Utf16(order) => self.find_utf16_line_feed(order, bytes),
        };
        self.is_mid_pair ^= !end.unwrap_or(bytes.len()).is_multiple_of(2);
        self.last_byte = bytes.last().copied().unwrap_or(self.last_byte);
        self.has_open_line = end.is_none() && (self.has_open_line || !bytes.is_empty());
        end
    }

    /// Scans all bytes and counts their line feeds.
    pub(super) fn count_line_feeds(&mut self, bytes: &[u8]) -> u64 {
        match self.codec {
            TextCodec::Utf8 | TextCodec::Legacy(_) => {
                self.has_open_line = bytes.last().map_or(self.has_open_line, |last| *last != b'\n');
                memchr::memchr_iter(b'\n', bytes).count() as u64
            }
            TextCodec::Utf16(_) => {
                let (mut rest, mut count) = (bytes, 0);
                while let Some(end) = self.next_line_end(rest) {
                    rest = rest.get(end..).unwrap_or_default();
                    count += 1;
                }
                count
            }
        }
    }

    fn find_utf16_line_feed(&self, order: ByteOrder, bytes: &[u8]) -> Option<usize> {
        let continues_line_feed =
            self.is_mid_pair && self.last_byte == b'\n' && bytes.first() == Some(&0);
        if order == ByteOrder::Little && continues_line_feed {
            return Some(1);
        }
        let is_first = |index: usize| index.is_multiple_of(2) != self.is_mid_pair;
        memchr::memchr_iter(b'\n', bytes).find_map(|index| match order {
            ByteOrder::Little => {
                (is_first(index) && bytes.get(index + 1) == Some(&0)).then_some(index + 2)
            }
            ByteOrder::Big => {
                let previous = index
                    .checked_sub(1)
                    .and_then(|index| bytes.get(index))
                    .unwrap_or(&self.last_byte);
                (!is_first(index) && *previous == 0).then_some(index + 1)
            }
        })
    }
}
