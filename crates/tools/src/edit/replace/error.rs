//! Errors of `replace`, worded for the model that wrote the edit.

use super::work_limit::MAX_LISTED_MATCHES;
use super::{MatchStrategy, ReplaceCount};
use std::fmt;

/// The reason why an edit changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    OldEqualsNew,
    EmptyOldText,
    /// The old text is only whitespace and does not occur in the file.
    BlankOldText,
    /// The file already contains the result of the edit.
    AlreadyApplied {
        /// 1-based.
        first_line: usize,
    },
    NotFound {
        closest: Option<ClosestRegion>,
    },
    /// The old text matches several places.
    Ambiguous {
        strategy: MatchStrategy,
        /// First lines of the matches, 1-based; at most one more than `MAX_LISTED_MATCHES`.
        lines: Vec<usize>,
        count: ReplaceCount,
    },
    /// The place is known, but the result of the edit there is not certain.
    Uncertain {
        strategy: MatchStrategy,
        uncertainty: UnsafeMatchReason,
        region: ClosestRegion,
    },
    /// The match is far larger than the old text.
    MatchTooLarge {
        strategy: MatchStrategy,
        /// 1-based.
        first_line: usize,
        last_line: usize,
        matched_lines: usize,
    },
}

/// The reason why an edit cannot be applied safely to a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsafeMatchReason {
    /// A line that the edit changes is different in the file.
    LineDiffers {
        /// 1-based.
        line: usize,
    },
    /// A new line would be next to file lines that the old text does not contain.
    UnmatchedNeighbor,
    /// The file differs more than an outdated view of the lines explains.
    TooDifferent,
    /// The indentation of a new line cannot be derived.
    UnknownIndentation {
        /// 1-based.
        line: usize,
    },
    /// Old and new text are not escaped in the same way.
    EscapesDiffer,
    /// The edit changes whitespace that the file does not contain.
    SpacingDiffers,
}

/// The lines of a file that are most similar to the old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosestRegion {
    /// 1-based.
    pub first_line: usize,
    pub last_line: usize,
    /// `-` marks the old text, `+` the file.
    pub diff: String,
}

impl EditError {
    /// Creates `Ambiguous` from 0-based lines and keeps the first of them.
    pub(super) fn ambiguous(
        strategy: MatchStrategy,
        mut lines: Vec<usize>,
        count: ReplaceCount,
    ) -> EditError {
        lines.sort_unstable();
        let lines = lines.into_iter().map(|line| line + 1).take(MAX_LISTED_MATCHES + 1).collect();
        EditError::Ambiguous { strategy, lines, count }
    }
}

impl std::error::Error for EditError {}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::OldEqualsNew => f.write_str(
                "oldString and newString are identical, so nothing would change. Put the changed \
                 text in newString.",
            ),
            EditError::EmptyOldText => f.write_str(
                "oldString is empty, so there is nothing to replace. Set it to the text to \
                 replace, including the lines around it.",
            ),
            EditError::BlankOldText => f.write_str(
                "oldString is only whitespace, which does not appear like this in the file. \
                 Include the text around it, exactly as in the file.",
            ),
            EditError::AlreadyApplied { first_line } => write!(
                f,
                "the file already contains the result of this edit (line {first_line}), so nothing \
                 changed. Continue, or read the file to check."
            ),
            EditError::NotFound { closest: None } => f.write_str(
                "oldString was not found in the file, and nothing in it is similar. Read the \
                 file and copy the text from it.",
            ),
            EditError::NotFound { closest: Some(region) } => write!(
                f,
                "oldString was not found in the file. {region}\nCopy the text from the file into \
                 oldString, or read the file again."
            ),
            EditError::Ambiguous { strategy, lines, count } => {
                let more = if lines.len() > MAX_LISTED_MATCHES { " and more" } else { "" };
                let shown: Vec<String> =
                    lines.iter().take(MAX_LISTED_MATCHES).map(ToString::to_string).collect();
                let shown = shown.join(", ");
                let advice = match (count, strategy) {
                    (ReplaceCount::All, _) => {
                        ", but not exactly, so replacing all of them is not safe. Copy the text \
                         from the file into oldString."
                    }
                    // `BlockAnchor` matches are only similar, so at most one is ever changed.
                    (ReplaceCount::One, MatchStrategy::BlockAnchor) => {
                        ", but none of them exactly. Copy the intended text from the file into \
                         oldString."
                    }
                    (ReplaceCount::One, _) => {
                        ". Add surrounding lines so that it matches only one, or set replaceAll \
                         to change every occurrence."
                    }
                };
                write!(f, "oldString matches several places, at lines {shown}{more}{advice}")
            }
            EditError::Uncertain { uncertainty, region, .. } => write!(
                f,
                "oldString does not match the file exactly, and {uncertainty}, so nothing changed. \
                 {region}\nCopy the text from the file into oldString and try again."
            ),
            EditError::MatchTooLarge { first_line, last_line, matched_lines, .. } => write!(
                f,
                "the text similar to oldString is far larger: {matched_lines} lines, from \
                 {first_line} to {last_line}. Include all lines to replace, exactly as in the file."
            ),
        }
    }
}

impl fmt::Display for UnsafeMatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsafeMatchReason::LineDiffers { line } => {
                write!(f, "a line that the edit changes is different in the file (line {line})")
            }
            UnsafeMatchReason::UnmatchedNeighbor => {
                f.write_str("the position of the new lines is uncertain")
            }
            UnsafeMatchReason::TooDifferent => {
                f.write_str("too much differs to be sure that this is the right place")
            }
            UnsafeMatchReason::UnknownIndentation { line } => {
                write!(f, "the indentation of the new lines is uncertain (line {line})")
            }
            UnsafeMatchReason::EscapesDiffer => {
                f.write_str("the meaning of the backslashes in newString is uncertain")
            }
            UnsafeMatchReason::SpacingDiffers => {
                f.write_str("it differs in whitespace that the edit changes")
            }
        }
    }
}

impl fmt::Display for ClosestRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClosestRegion { first_line, last_line, diff } = self;
        let lines = if first_line == last_line {
            format!("line {first_line}")
        } else {
            format!("lines {first_line} to {last_line}")
        };
        write!(f, "The closest text is {lines} (- oldString, + file):\n{diff}")
    }
}
