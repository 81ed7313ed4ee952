//! Bounded buffer for the output of a command: its head, its tail and exact counts, and a file for
//! the whole of it.

use crate::command::command_types::{CapturedOutput, OutputChunk};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Size up to which the whole output is kept in a file.
const MAX_SPILLED_BYTES: u64 = 100 << 20;
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_TAIL_BYTES: usize = 256 << 10;

#[derive(Default)]
pub(crate) struct HeadTailBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
    line_ends: u64,
    last_byte: Option<u8>,
    spill: OutputSpill,
}

/// The file with the whole output, which exists once the buffer cannot keep it.
#[derive(Default)]
enum OutputSpill {
    /// The whole output is not kept: it is too large, or it was never to be.
    #[default]
    None,
    /// A file is created in this folder when it is needed.
    Folder(PathBuf),
    /// A file without a name.
    File(File),
}

impl HeadTailBuffer {
    /// Creates a buffer that keeps the whole output in a file in this folder if it is large.
    pub(crate) fn with_spill_folder(folder: PathBuf) -> HeadTailBuffer {
        HeadTailBuffer { spill: OutputSpill::Folder(folder), ..HeadTailBuffer::default() }
    }

    /// Returns the file with the whole output and forgets it; `None` if there is none.
    pub(crate) fn take_spilled(&mut self) -> Option<File> {
        match std::mem::take(&mut self.spill) {
            OutputSpill::File(file) => Some(file),
            OutputSpill::None | OutputSpill::Folder(_) => None,
        }
    }

    /// Adds output to the file with the whole of it, before it is added to the buffer.
    fn spill(&mut self, bytes: &[u8]) {
        let total = self.total_bytes + bytes.len() as u64;
        let spilled = match std::mem::take(&mut self.spill) {
            OutputSpill::None => return,
            OutputSpill::Folder(folder) if total <= (MAX_HEAD_BYTES + MAX_TAIL_BYTES) as u64 => {
                Ok(OutputSpill::Folder(folder))
            }
            OutputSpill::Folder(_) | OutputSpill::File(_) if total > MAX_SPILLED_BYTES => return,
            OutputSpill::Folder(folder) => tempfile::tempfile_in(folder).and_then(|mut file| {
                let (front, back) = self.tail.as_slices();
                for part in [&self.head, front, back, bytes] {
                    file.write_all(part)?;
                }
                Ok(OutputSpill::File(file))
            }),
            OutputSpill::File(mut file) => file.write_all(bytes).map(|()| OutputSpill::File(file)),
        };
        // After an error, such as a full disk, only head and tail are kept.
        self.spill = spilled.unwrap_or_default();
    }

    /// Appends output. Inspects the bytes only for line ends.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.spill(bytes);
        self.total_bytes += bytes.len() as u64;
        self.line_ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.last_byte = bytes.last().copied().or(self.last_byte);
        let room = MAX_HEAD_BYTES - self.head.len();
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        let (_, rest) =
            rest.split_at_checked(rest.len().saturating_sub(MAX_TAIL_BYTES)).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(MAX_TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(crate) fn total_lines(&self) -> u64 {
        self.line_ends + u64::from(self.last_byte.is_some_and(|last| last != b'\n'))
    }

    pub(crate) fn to_captured_output(&self) -> CapturedOutput {
        let (front, back) = self.tail.as_slices();
        let tail = [front, back].concat();
        CapturedOutput {
            head: self.head.clone(),
            tail,
            total_bytes: self.total_bytes,
            total_lines: self.total_lines(),
        }
    }

    /// Returns the output since `offset`. Leaves an incomplete UTF-8 character for the next call,
    /// unless the output `is_closed`.
    pub(crate) fn chunk_since(&self, offset: u64, is_closed: bool) -> OutputChunk {
        let offset = offset.min(self.total_bytes);
        let head_end = self.head.len() as u64;
        let tail_start = self.total_bytes - self.tail.len() as u64;
        let from_head = self.head.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
        let from_tail = usize::try_from(offset.saturating_sub(tail_start)).unwrap_or(usize::MAX);
        // If the tail starts beyond the head, the bytes between them are lost. A reader that is
        // still in the head gets the rest of the head first.
        let has_gap = tail_start > head_end;
        let mut text: Vec<u8> = from_head.copied().collect();
        let mut next = offset + text.len() as u64;
        let mut dropped_bytes = 0;
        if text.is_empty() || !has_gap {
            dropped_bytes = tail_start.saturating_sub(next);
            text.extend(self.tail.iter().skip(from_tail));
            next = self.total_bytes;
        }
        let incomplete =
            if is_closed && next == self.total_bytes { 0 } else { incomplete_char_bytes(&text) };
        text.truncate(text.len() - incomplete);
        // A character cut at the gap will never be completed.
        let incomplete = if next == self.total_bytes { incomplete } else { 0 };
        let text = String::from_utf8_lossy(&text).into_owned();
        OutputChunk { text, dropped_bytes, next_offset: next - incomplete as u64 }
    }

    /// Returns the last `lines` lines, in at most `max_bytes` bytes.
    pub(crate) fn last_lines(&self, lines: usize, max_bytes: usize) -> String {
        let source = self.head.iter().chain(&self.tail).copied();
        let skipped = (self.head.len() + self.tail.len()).saturating_sub(max_bytes);
        let bytes: Vec<u8> = source.skip(skipped).collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\n');
        let start = text.rmatch_indices('\n').nth(lines.saturating_sub(1));
        start.map_or(text, |(newline, _)| text.get(newline + 1..).unwrap_or(text)).to_owned()
    }
}

/// Returns the number of trailing bytes that start a character which may yet be completed.
fn incomplete_char_bytes(bytes: &[u8]) -> usize {
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
