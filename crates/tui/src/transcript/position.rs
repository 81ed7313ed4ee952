//! Positions of rows in the transcript.

use super::blocks::TranscriptBlockKey;

/// The block and row at the top of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewAnchor {
    pub key: TranscriptBlockKey,
    /// The row in the block; negative for the blank rows before it.
    pub row: isize,
}

/// A row of the transcript: the index of its item, and the row in it, counting the blank rows
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPosition {
    pub item: usize,
    pub row: usize,
}
