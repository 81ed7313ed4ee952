//! Finds line feeds in bytes that arrive piece by piece, at memory speed.

use super::format::{Codec, Format, Order};

/// Where the search stands.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    codec: Codec,
    /// Whether the last byte seen was the first of a pair.
    halfway: bool,
    last: u8,
    /// Whether a line was begun that no line feed has ended yet.
    begun: bool,
}

impl Ends {
    /// A search that begins where the text begins, after its mark.
    pub(super) fn new(format: Format) -> Ends {
        Ends { codec: format.codec, halfway: false, last: b' ', begun: false }
    }

    /// Whether bytes were seen since the last line feed.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Looks at the bytes up to and including the first line feed and says how many they are; at
    /// all of them if there is none.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = match self.codec {
            Codec::Utf8 | Codec::Legacy(_) => memchr::memchr(b'\n', bytes).map(|at| at + 1),
            Codec::Utf16(order) => self.find_pair(order, bytes),
        };
        self.halfway ^= !end.unwrap_or(bytes.len()).is_multiple_of(2);
        self.last = bytes.last().copied().unwrap_or(self.last);
        self.begun = end.is_none() && (self.begun || !bytes.is_empty());
        end
    }

    /// How many line feeds there are in the bytes, all of which are looked at.
    pub(super) fn count(&mut self, bytes: &[u8]) -> u64 {
        match self.codec {
            Codec::Utf8 | Codec::Legacy(_) => {
                self.begun = bytes.last().map_or(self.begun, |last| *last != b'\n');
                memchr::memchr_iter(b'\n', bytes).count() as u64
            }
            Codec::Utf16(_) => {
                let (mut rest, mut count) = (bytes, 0);
                while let Some(end) = self.find(rest) {
                    rest = rest.get(end..).unwrap_or_default();
                    count += 1;
                }
                count
            }
        }
    }

    fn find_pair(&self, order: Order, bytes: &[u8]) -> Option<usize> {
        let begun = self.halfway && self.last == b'\n' && bytes.first() == Some(&0);
        if order == Order::Little && begun {
            return Some(1);
        }
        let is_first = |at: usize| at.is_multiple_of(2) != self.halfway;
        memchr::memchr_iter(b'\n', bytes).find_map(|at| match order {
            Order::Little => (is_first(at) && bytes.get(at + 1) == Some(&0)).then_some(at + 2),
            Order::Big => {
                let before = at.checked_sub(1).and_then(|at| bytes.get(at)).unwrap_or(&self.last);
                (!is_first(at) && *before == 0).then_some(at + 1)
            }
        })
    }
}
