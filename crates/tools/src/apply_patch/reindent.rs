//! Detects the indentation difference between a hunk and the file (`IndentShift`) and applies it to
//! new lines.

use super::line_search::{HunkSearchText, to_ascii_punctuation};
use super::parse::{HunkLine, PatchHunk};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IndentShift {
    Unshifted,
    Deeper(String),
    Shallower(String),
}

/// The reason why new lines cannot be indented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndentShiftError {
    /// The lines do not all differ by the same indentation.
    Uneven,
    /// Only the context lines are one space short of the file: either they lack their mark, or the
    /// whole hunk is indented one space too little.
    MissingContextMarks,
}

impl IndentShift {
    /// Derives the shift from the context and removed lines of the hunk, matched at line `start`.
    pub(super) fn detect(
        hunk: &PatchHunk,
        text: &HunkSearchText<'_>,
        start: usize,
    ) -> Result<IndentShift, IndentShiftError> {
        let (mut context_shift, mut removed_shift) = (None, None);
        let mut file_lines = text.lines.iter().skip(start);
        for line in &hunk.lines {
            let (shift, patch_line) = match line {
                HunkLine::Context(patch_text) => (&mut context_shift, patch_text),
                HunkLine::Remove(patch_text) => (&mut removed_shift, patch_text),
                HunkLine::Add(_) => continue,
            };
            // Blank lines show no indentation, and trailing blanks need not be in the file.
            let Some(line) = file_lines.next().filter(|line| !line.trim().is_empty()) else {
                continue;
            };
            let line_shift =
                IndentShift::between_lines(patch_line, line).ok_or(IndentShiftError::Uneven)?;
            if shift.get_or_insert_with(|| line_shift.clone()) != &line_shift {
                return Err(IndentShiftError::Uneven);
            }
        }
        match (context_shift, removed_shift) {
            (None, None) => Ok(IndentShift::Unshifted),
            (Some(shift), None) if shift.is_context_mark() => match lacks_context_marks(hunk, text)
            {
                true => Ok(IndentShift::Unshifted),
                false => Err(IndentShiftError::MissingContextMarks),
            },
            (Some(shift), None) | (None, Some(shift)) => Ok(shift),
            (Some(context_shift), Some(removed_shift)) if context_shift == removed_shift => {
                Ok(context_shift)
            }
            // The removed lines match exactly, so only the context marks are missing.
            (Some(context_shift), Some(IndentShift::Unshifted))
                if context_shift.is_context_mark() =>
            {
                Ok(IndentShift::Unshifted)
            }
            (Some(_), Some(_)) => Err(IndentShiftError::Uneven),
        }
    }

    fn between_lines(patch_line: &str, file_line: &str) -> Option<IndentShift> {
        let (patch_line, file_line) =
            (leading_whitespace(patch_line), leading_whitespace(file_line));
        if file_line == patch_line {
            return Some(IndentShift::Unshifted);
        }
        let deeper =
            file_line.strip_suffix(&patch_line).map(|extra| IndentShift::Deeper(extra.to_owned()));
        let shallower =
            || Some(IndentShift::Shallower(patch_line.strip_suffix(&file_line)?.to_owned()));
        deeper.or_else(shallower)
    }

    /// Returns true if the shift equals the single space that marks a context line.
    fn is_context_mark(&self) -> bool {
        matches!(self, IndentShift::Deeper(extra) if extra == " ")
    }

    /// Appends a new line with the indentation of the file; `None` if it is not indented deep
    /// enough.
    pub(super) fn write_line(&self, line: &str, output: &mut String) -> Option<()> {
        let (extra, line) = match self {
            IndentShift::Deeper(extra) if !line.trim().is_empty() => (extra.as_str(), line),
            IndentShift::Shallower(excess) if !line.trim().is_empty() => {
                ("", line.strip_prefix(excess.as_str())?)
            }
            IndentShift::Unshifted | IndentShift::Deeper(_) | IndentShift::Shallower(_) => {
                ("", line)
            }
        };
        output.push_str(extra);
        output.push_str(line);
        Some(())
    }
}

/// Returns true if the context lines certainly lack their mark: the file has no line as deep as
/// they are now, it has lines as deep as the added ones, and none one space deeper than those.
fn lacks_context_marks(hunk: &PatchHunk, text: &HunkSearchText<'_>) -> bool {
    let indented_lines = text.lines.iter().filter(|line| !line.trim().is_empty());
    let mut indents: HashSet<String> =
        indented_lines.map(|line| leading_whitespace(line)).collect();
    indents.insert(String::new());
    hunk.lines.iter().all(|line| match line {
        HunkLine::Context(text) => {
            text.trim().is_empty() || !indents.contains(&leading_whitespace(text))
        }
        HunkLine::Remove(_) => true,
        HunkLine::Add(text) => {
            let indent = leading_whitespace(text);
            let deeper = format!(" {indent}");
            text.trim().is_empty() || (indents.contains(&indent) && !indents.contains(&deeper))
        }
    })
}

/// Returns the leading whitespace of a line, with typographic spaces as ASCII.
pub(super) fn leading_whitespace(line: &str) -> String {
    line.chars()
        .take_while(|character| character.is_whitespace())
        .map(to_ascii_punctuation)
        .collect()
}
