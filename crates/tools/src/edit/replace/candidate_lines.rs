//! A place in the file that an edit may refer to, line by line.

use std::ops::Range;

/// File lines that may correspond to the old lines of an edit.
#[derive(Clone, Debug)]
pub(super) struct CandidateLines {
    pub(super) lines: Range<usize>,
    /// For each old line, its matching file line.
    pub(super) line_matches: Vec<Option<usize>>,
}

impl CandidateLines {
    /// Creates a candidate with one file line per old line.
    pub(super) fn contiguous(first: usize, count: usize) -> CandidateLines {
        let lines = first..first + count;
        CandidateLines { line_matches: lines.clone().map(Some).collect(), lines }
    }

    /// Returns true if every old line matches the file line at the same position.
    pub(super) fn is_contiguous(&self) -> bool {
        self.lines.len() == self.line_matches.len()
            && self
                .lines
                .clone()
                .zip(&self.line_matches)
                .all(|(line, line_match)| Some(line) == *line_match)
    }

    pub(super) fn matching_line(&self, old: usize) -> Option<usize> {
        self.line_matches.get(old).copied().flatten()
    }
}
