//! Line search in a file, from strict to loose (`MatchTolerance`).
//!
//! Each `MatchTolerance` maps lines to numeric ids once (`LineIds`) and then compares ids, so a
//! long file of equal lines costs no more than any other.

use super::PatchError;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

/// Maximum line comparisons per file: seconds at worst, and far more than a legitimate patch needs.
const MAX_COMPARED_LINES: usize = 400_000_000;

/// Differences between two lines that a search ignores. Each variant includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchTolerance {
    Exact,
    TrailingWhitespace,
    /// Whitespace at both ends, so indentation too.
    SurroundingWhitespace,
    /// Also typographic quotes, dashes and spaces in place of ASCII ones.
    Typography,
}

impl MatchTolerance {
    const STRICTEST_FIRST: [MatchTolerance; 4] = [
        MatchTolerance::Exact,
        MatchTolerance::TrailingWhitespace,
        MatchTolerance::SurroundingWhitespace,
        MatchTolerance::Typography,
    ];

    /// Returns true if matching lines may differ in more than invisible trailing whitespace.
    pub(super) fn is_loose(self) -> bool {
        match self {
            MatchTolerance::Exact | MatchTolerance::TrailingWhitespace => false,
            MatchTolerance::SurroundingWhitespace | MatchTolerance::Typography => true,
        }
    }

    /// Returns the line in the form that this `MatchTolerance` compares.
    pub(super) fn normalize(self, line: &str) -> Cow<'_, str> {
        match self {
            MatchTolerance::Exact => Cow::Borrowed(line),
            MatchTolerance::TrailingWhitespace => Cow::Borrowed(line.trim_end()),
            MatchTolerance::SurroundingWhitespace => Cow::Borrowed(line.trim()),
            MatchTolerance::Typography if line.is_ascii() => Cow::Borrowed(line.trim()),
            MatchTolerance::Typography => {
                Cow::Owned(line.trim().chars().map(to_ascii_punctuation).collect())
            }
        }
    }
}

/// Maps a typographic character to its ASCII equivalent.
pub(super) fn to_ascii_punctuation(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// The text of a file split into lines, with the ids that `find_lines` needs.
pub(super) struct HunkSearchText<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<&'a str>,
    exact_ids: OnceCell<LineIds<'a>>,
    trailing_whitespace_ids: OnceCell<LineIds<'a>>,
    surrounding_whitespace_ids: OnceCell<LineIds<'a>>,
    typography_ids: OnceCell<LineIds<'a>>,
    /// Line comparisons left of `MAX_COMPARED_LINES`.
    pub(super) remaining_steps: Cell<usize>,
}

/// Numeric ids of lines: equal lines have equal ids.
struct LineIds<'a> {
    line_ids: Vec<u32>,
    ids_by_text: HashMap<Cow<'a, str>, u32>,
    /// For each id, the index in `line_ids` if only one line has it.
    unique_lines: Vec<Option<usize>>,
}

impl<'a> LineIds<'a> {
    fn new(lines: &[&'a str], tolerance: MatchTolerance) -> LineIds<'a> {
        let mut ids_by_text: HashMap<Cow<'a, str>, u32> = HashMap::new();
        let mut id_of = |line: &'a str| {
            let next = u32::try_from(ids_by_text.len()).unwrap_or(u32::MAX);
            *ids_by_text.entry(tolerance.normalize(line)).or_insert(next)
        };
        let line_ids: Vec<u32> = lines.iter().map(|line| id_of(line)).collect();
        let mut unique_lines: Vec<Option<usize>> = Vec::with_capacity(ids_by_text.len());
        for (index, id) in line_ids.iter().enumerate() {
            match unique_lines.get_mut(*id as usize) {
                Some(unique_line) => *unique_line = None,
                None => unique_lines.push(Some(index)),
            }
        }
        LineIds { line_ids, ids_by_text, unique_lines }
    }

    /// Returns the only possible start of `needle` if one of its lines is unique in the file. Most
    /// hunks have such a line, and then no search is needed.
    fn unique_start(&self, needle: &[u32]) -> Option<Option<usize>> {
        let unique_line = |id: &u32| self.unique_lines.get(*id as usize).copied().flatten();
        let (offset, line) =
            needle.iter().enumerate().find_map(|(offset, id)| Some((offset, unique_line(id)?)))?;
        let start = line.checked_sub(offset);
        let is_match =
            |start: &usize| self.line_ids.get(*start..).is_some_and(|ids| ids.starts_with(needle));
        Some(start.filter(is_match))
    }
}

impl<'a> HunkSearchText<'a> {
    pub(super) fn new(text: &'a str) -> HunkSearchText<'a> {
        let without_final_newline = text.strip_suffix('\n').unwrap_or(text);
        let lines =
            if text.is_empty() { Vec::new() } else { without_final_newline.split('\n').collect() };
        HunkSearchText {
            text,
            lines,
            exact_ids: OnceCell::new(),
            trailing_whitespace_ids: OnceCell::new(),
            surrounding_whitespace_ids: OnceCell::new(),
            typography_ids: OnceCell::new(),
            remaining_steps: Cell::new(MAX_COMPARED_LINES),
        }
    }

    fn line_ids(&self, tolerance: MatchTolerance) -> &LineIds<'a> {
        let cell = match tolerance {
            MatchTolerance::Exact => &self.exact_ids,
            MatchTolerance::TrailingWhitespace => &self.trailing_whitespace_ids,
            MatchTolerance::SurroundingWhitespace => &self.surrounding_whitespace_ids,
            MatchTolerance::Typography => &self.typography_ids,
        };
        cell.get_or_init(|| LineIds::new(&self.lines, tolerance))
    }

    /// Returns the first `limit` matches of `wanted` at or after line `from`, with the strictest
    /// `MatchTolerance` that finds any.
    pub(super) fn find_lines(
        &self,
        wanted: &[&str],
        from: usize,
        limit: usize,
    ) -> Result<Option<(MatchTolerance, Vec<usize>)>, PatchError> {
        if wanted.is_empty() {
            return Ok(None);
        }
        for tolerance in MatchTolerance::STRICTEST_FIRST {
            let found = self.find_lines_with(tolerance, wanted, from, limit)?;
            if !found.is_empty() {
                return Ok(Some((tolerance, found)));
            }
        }
        Ok(None)
    }

    /// Does the same as `find_lines`, with a single `MatchTolerance`.
    pub(super) fn find_lines_with(
        &self,
        tolerance: MatchTolerance,
        wanted: &[&str],
        from: usize,
        limit: usize,
    ) -> Result<Vec<usize>, PatchError> {
        let index = self.line_ids(tolerance);
        let Some(needle) = lookup_ids(index, wanted, tolerance) else { return Ok(Vec::new()) };
        match index.unique_start(&needle) {
            Some(start) => Ok(start.filter(|start| *start >= from).into_iter().collect()),
            None => self.scan_lines(index, &needle, from, limit),
        }
    }

    fn scan_lines(
        &self,
        index: &LineIds<'_>,
        needle: &[u32],
        from: usize,
        limit: usize,
    ) -> Result<Vec<usize>, PatchError> {
        let haystack = index.line_ids.get(from..).unwrap_or_default();
        let found = find_subsequences(haystack, needle, limit);
        let compared = match found.last() {
            Some(last) if found.len() == limit => last + needle.len(),
            Some(_) | None => haystack.len(),
        };
        self.spend_steps(compared + needle.len())?;
        Ok(found.iter().map(|line| line + from).collect())
    }

    /// Finds `wanted` at the end of the file, starting no earlier than line `from`.
    pub(super) fn find_at_end(
        &self,
        wanted: &[&str],
        from: usize,
    ) -> Option<(MatchTolerance, usize)> {
        let start = self.lines.len().checked_sub(wanted.len()).filter(|start| *start >= from)?;
        let is_match = |tolerance: &MatchTolerance| {
            let index = self.line_ids(*tolerance);
            let needle = lookup_ids(index, wanted, *tolerance);
            needle.is_some_and(|needle| index.line_ids.ends_with(&needle))
        };
        MatchTolerance::STRICTEST_FIRST
            .into_iter()
            .find(is_match)
            .map(|tolerance| (tolerance, start))
    }

    /// Subtracts from `remaining_steps`; fails when too few are left.
    pub(super) fn spend_steps(&self, steps: usize) -> Result<(), PatchError> {
        match self.remaining_steps.get().checked_sub(steps) {
            Some(remaining) => {
                self.remaining_steps.set(remaining);
                Ok(())
            }
            None => Err(PatchError::new(
                "finding this many hunks in such a long file takes too long. Send the patch in \
                 parts, with fewer hunks each.",
            )),
        }
    }
}

/// Returns the ids of the lines, or `None` if the file lacks one of them.
fn lookup_ids(index: &LineIds<'_>, wanted: &[&str], tolerance: MatchTolerance) -> Option<Vec<u32>> {
    wanted
        .iter()
        .map(|line| index.ids_by_text.get(tolerance.normalize(line).as_ref()).copied())
        .collect()
}

/// Returns the positions of `needle` in `haystack` in linear time (Knuth-Morris-Pratt): after a
/// mismatch the search continues with the longest border of the matched prefix.
fn find_subsequences(haystack: &[u32], needle: &[u32], limit: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut borders: Vec<usize> = vec![0];
    let advance = |borders: &[usize], mut length: usize, id: u32| loop {
        if needle.get(length) == Some(&id) {
            return length + 1;
        }
        match length.checked_sub(1) {
            Some(last) => length = borders.get(last).copied().unwrap_or(0),
            None => return 0,
        }
    };
    let mut length = 0;
    for id in needle.iter().skip(1) {
        length = advance(&borders, length, *id);
        borders.push(length);
    }
    let mut length = 0;
    for (index, id) in haystack.iter().enumerate() {
        length = advance(&borders, length, *id);
        if length == needle.len() {
            found.push(index + 1 - length);
            if found.len() >= limit {
                break;
            }
        }
    }
    found
}
