//! How much work one edit may cause.
//!
//! A text may be a megabyte of equal lines, and an edit thousands of lines. What is linear in both
//! needs no limit; everything else has one here.

/// How many places are listed for an edit that fits several.
pub(super) const LISTED: usize = 20;

/// How many places a lax strategy looks at. More are too many to tell apart.
pub(super) const PLACES: usize = 1_000;

/// How many blocks between two anchors are compared.
pub(super) const BLOCKS: usize = 200;

/// Steps of comparing blocks and lines, for one edit.
pub(super) const STEPS: usize = 10_000_000;

/// Lines that are compared by a real line diff. Longer edits differ from their first different line
/// to their last.
pub(super) const DIFFED: usize = 2_000;

/// Characters of a line that is compared letter by letter.
pub(super) const LETTERS: usize = 400;

/// What is left of the steps.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Budget {
        Budget(STEPS)
    }

    /// Takes steps, or says that there are not enough left.
    pub(super) fn take(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }

    /// How alike two lines are, from 0 to 1.
    pub(super) fn similarity(&mut self, a: &str, b: &str) -> Option<f64> {
        if a == b {
            return Some(1.0);
        }
        if a.len().max(b.len()) > LETTERS {
            return Some(0.0);
        }
        self.take(a.len() * b.len())?;
        Some(strsim::normalized_levenshtein(a, b))
    }
}
