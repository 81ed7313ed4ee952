//! What a command has said, in bounded memory: the beginning, the end, and exact counts.

use crate::command::{Heard, Piece};
use std::collections::VecDeque;

/// How much of the beginning is kept.
const HEAD: usize = 64 << 10;
/// How much of the end is kept.
const TAIL: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Tape {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    ends: u64,
    last: Option<u8>,
}

impl Tape {
    /// Takes what was said. No byte is looked at but for line ends.
    pub(super) fn push(&mut self, said: &[u8]) {
        self.bytes += said.len() as u64;
        self.ends += memchr::memchr_iter(b'\n', said).count() as u64;
        self.last = said.last().copied().or(self.last);
        let room = HEAD - self.head.len();
        let (first, rest) = said.split_at_checked(room).unwrap_or((said, &[]));
        self.head.extend_from_slice(first);
        let (_, rest) = rest.split_at_checked(rest.len().saturating_sub(TAIL)).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn lines(&self) -> u64 {
        self.ends + u64::from(self.last.is_some_and(|last| last != b'\n'))
    }

    pub(super) fn heard(&self) -> Heard {
        let (one, two) = self.tail.as_slices();
        let tail = [one, two].concat();
        Heard { head: self.head.clone(), tail, bytes: self.bytes, lines: self.lines() }
    }

    /// What was said since a place. A character of which only a part has come is left for the next
    /// time, unless nothing more will come.
    pub(super) fn since(&self, place: u64, over: bool) -> Piece {
        let place = place.min(self.bytes);
        let head = self.head.len() as u64;
        let tail = self.bytes - self.tail.len() as u64;
        let from_head = self.head.iter().skip(usize::try_from(place).unwrap_or(usize::MAX));
        let from_tail = usize::try_from(place.saturating_sub(tail)).unwrap_or(usize::MAX);
        // Where the tail begins beyond the head, what is between them is lost; a reader that is
        // still in the head gets the rest of it first.
        let gap = tail > head;
        let mut text: Vec<u8> = from_head.copied().collect();
        let (mut next, mut missed) = (place + text.len() as u64, 0);
        if text.is_empty() || !gap {
            missed = tail.saturating_sub(next);
            text.extend(self.tail.iter().skip(from_tail));
            next = self.bytes;
        }
        let kept = if over && next == self.bytes { 0 } else { unfinished(&text) };
        text.truncate(text.len() - kept);
        // What is cut at the gap will never be finished.
        let kept = if next == self.bytes { kept } else { 0 };
        let text = String::from_utf8_lossy(&text).into_owned();
        Piece { text, missed, next: next - kept as u64 }
    }

    /// The last lines, in at most so many bytes.
    pub(super) fn ending(&self, lines: usize, most: usize) -> String {
        let source = self.head.iter().chain(&self.tail).copied();
        let skipped = (self.head.len() + self.tail.len()).saturating_sub(most);
        let bytes: Vec<u8> = source.skip(skipped).collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\n');
        let start = text.rmatch_indices('\n').nth(lines.saturating_sub(1));
        start.map_or(text, |(at, _)| text.get(at + 1..).unwrap_or(text)).to_owned()
    }
}

/// How many bytes at the end begin a character that may yet be completed.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let (_, tail) = bytes.split_at_checked(tail).unwrap_or_default();
    match tail.utf8_chunks().last() {
        Some(chunk) if chunk.invalid().is_empty() => 0,
        Some(chunk) => match std::str::from_utf8(chunk.invalid()) {
            Err(error) if error.error_len().is_none() => chunk.invalid().len(),
            Ok(_) | Err(_) => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests;
