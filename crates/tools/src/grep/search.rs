//! The pattern, options and results of a search. `pool` runs it.

use super::GrepMode;
use super::matched_lines::MatchedLines;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use windlass_sandbox::FileFilter;
use windlass_toolkit::CallFailure;

/// Size limit of a compiled regex; its DFA cache may use twice as much.
const MAX_REGEX_BYTES: usize = 16 << 20;

/// A search: pattern, mode, file filter and range of results.
pub struct GrepSearch {
    pub(super) matcher: RegexMatcher,
    pub(super) match_span: MultilineMode,
    pub mode: GrepMode,
    /// Context lines around each match.
    pub context: usize,
    pub file_filter: FileFilter,
    pub range: GrepResultRange,
}

/// Distinguishes patterns that match within one line from those that match across lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MultilineMode {
    SingleLine,
    MultiLine,
}

/// The range of results to return. A result is a match, or a file in the modes `Files` and `Count`.
#[derive(Clone, Copy, Debug)]
pub struct GrepResultRange {
    /// Results before the range.
    pub skip: usize,
    /// Results in the range.
    pub limit: usize,
    /// Results counted after the range before the search ends.
    pub count_beyond: usize,
}

impl GrepResultRange {
    /// The range that covers all results.
    pub const ALL_RESULTS: GrepResultRange =
        GrepResultRange { skip: 0, limit: usize::MAX / 2, count_beyond: 0 };

    /// Returns the number of results to keep.
    pub(super) fn results_to_keep(self) -> usize {
        self.skip.saturating_add(self.limit)
    }

    /// Returns the number of results that ends the search: one more than are counted, to know that
    /// there are more.
    pub(super) fn results_to_find(self) -> usize {
        self.results_to_keep().saturating_add(self.count_beyond).saturating_add(1)
    }
}

/// The results of a search.
#[derive(Debug, Default)]
pub struct GrepResults {
    /// Files with matches in path order, up to the end of the wanted range.
    pub files: Vec<GrepFileMatches>,
    /// All results found until the search ended, wanted or not.
    pub result_count: usize,
    pub searched_files: usize,
    /// Searched files that turned out to be binary.
    pub binary_files: usize,
    /// Files that could not be searched to their end.
    pub skipped_files: Vec<GrepSkippedFile>,
}

impl GrepResults {
    /// Appends the results of the next batch.
    pub(super) fn add_batch(&mut self, batch_results: GrepBatchResults, search: &GrepSearch) {
        for mut file_matches in batch_results.files {
            let results = file_matches.result_count(search.mode);
            if self.result_count + results <= search.range.skip {
                file_matches.lines = MatchedLines::default();
            }
            if self.result_count < search.range.results_to_keep() {
                self.files.push(file_matches);
            }
            self.result_count += results;
        }
        self.searched_files += batch_results.searched_files;
        self.binary_files += batch_results.binary_files;
        self.skipped_files.extend(batch_results.skipped_files);
    }
}

/// The results of one batch of files.
#[derive(Default)]
pub(super) struct GrepBatchResults {
    pub(super) files: Vec<GrepFileMatches>,
    /// The number of results in `files`.
    pub(super) result_count: usize,
    pub(super) searched_files: usize,
    pub(super) binary_files: usize,
    pub(super) skipped_files: Vec<GrepSkippedFile>,
}

/// The matches in one file.
#[derive(Debug)]
pub struct GrepFileMatches {
    pub path: String,
    pub match_count: usize,
    /// The matching lines, in the mode `Content`.
    pub lines: MatchedLines,
}

impl GrepFileMatches {
    /// Returns the number of results that the file counts for in a mode.
    pub(super) fn result_count(&self, mode: GrepMode) -> usize {
        match mode {
            GrepMode::Content => self.match_count,
            GrepMode::Files | GrepMode::Count => 1,
        }
    }
}

/// A file that could not be searched to its end.
#[derive(Debug)]
pub struct GrepSkippedFile {
    pub path: String,
    /// The reason, as shown to the user and the model.
    pub reason: String,
}

impl GrepSearch {
    /// Creates a search for all matching lines in all files. A pattern that can only match across
    /// lines becomes a `MultiLine` search.
    pub fn new(pattern: &str) -> Result<GrepSearch, CallFailure> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).size_limit(MAX_REGEX_BYTES).dfa_size_limit(2 * MAX_REGEX_BYTES);
        let single_line = builder.line_terminator(Some(b'\n')).build(pattern);
        let (matcher, match_span) = match single_line {
            Ok(matcher) => (Ok(matcher), MultilineMode::SingleLine),
            Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                (builder.line_terminator(None).build(pattern), MultilineMode::MultiLine)
            }
            Err(error) => (Err(error), MultilineMode::SingleLine),
        };
        Ok(GrepSearch {
            matcher: matcher.map_err(|error| invalid_pattern(pattern, &error))?,
            match_span,
            mode: GrepMode::Content,
            context: 0,
            file_filter: FileFilter::default(),
            range: GrepResultRange::ALL_RESULTS,
        })
    }
}

/// Returns the failure for an invalid regex, with the escaped pattern for a literal search.
fn invalid_pattern(pattern: &str, error: &grep_regex::Error) -> CallFailure {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    let is_special = |c: char| r"\.+*?()|[]{}^$#&-~".contains(c);
    let mut literal = String::new();
    for character in pattern.chars() {
        if is_special(character) {
            literal.push('\\');
        }
        literal.push(character);
    }
    CallFailure::new(format!(
        "the pattern is not a valid regular expression: {reason}. To search for it literally: \
         {literal}"
    ))
}
