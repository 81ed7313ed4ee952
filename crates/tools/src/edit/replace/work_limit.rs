//! Limits on the work of one edit.
//!
//! A text may be a megabyte of equal lines, and an edit may have thousands of lines. Work that is
//! linear in both needs no limit; everything else has one here.

/// Maximum matches listed for an ambiguous edit.
pub(super) const MAX_LISTED_MATCHES: usize = 20;

/// Maximum matches that a loose strategy examines. More are too many to tell apart.
pub(super) const MAX_CANDIDATES: usize = 1_000;

/// Maximum blocks between two anchors that are compared.
pub(super) const MAX_COMPARED_BLOCKS: usize = 200;

/// Maximum comparison steps for blocks and lines of one edit.
pub(super) const MAX_COMPARE_STEPS: usize = 10_000_000;

/// Maximum lines for a real line diff. A longer edit counts as different from its first to its last
/// different line.
pub(super) const MAX_DIFF_LINES: usize = 2_000;

/// Maximum length of a line that is compared character by character.
pub(super) const MAX_COMPARED_LINE_CHARS: usize = 400;

/// The steps left of `MAX_COMPARE_STEPS`.
pub(super) struct CompareStepBudget(usize);

impl CompareStepBudget {
    pub(super) fn new() -> CompareStepBudget {
        CompareStepBudget(MAX_COMPARE_STEPS)
    }

    /// Subtracts steps; `None` if too few are left.
    pub(super) fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }

    /// Returns the similarity of two lines from 0 to 1.
    pub(super) fn similarity(&mut self, a: &str, b: &str) -> Option<f64> {
        if a == b {
            return Some(1.0);
        }
        if a.len().max(b.len()) > MAX_COMPARED_LINE_CHARS {
            return Some(0.0);
        }
        self.spend(a.len() * b.len())?;
        Some(strsim::normalized_levenshtein(a, b))
    }
}
