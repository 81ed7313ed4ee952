//! Locates hunks in a file and turns them into `TextSplice`s.

use super::PatchError;
use super::anchor::resolve_anchors;
use super::line_search::{HunkSearchText, MatchTolerance};
use super::parse::{HunkLine, PatchHunk};
use super::reindent::{IndentShift, IndentShiftError};
use crate::edit::replace::closest_match;
use crate::text::TextSplice;
use std::fmt::Write as _;
use std::ops::Range;
use windlass_protocol::display_text::truncate_chars;

/// Limits for quoting a hunk in an error: lines, and characters per line.
const MAX_QUOTED_LINES: usize = 3;
const MAX_QUOTED_LINE_CHARS: usize = 100;
/// Maximum matches listed for an ambiguous hunk.
const MAX_LISTED_MATCHES: usize = 6;

/// The result of `locate_hunks`: the changes to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedHunks {
    /// Sorted and disjoint; context lines stay untouched.
    pub splices: Vec<TextSplice>,
    /// True if a hunk matches only when differences in indentation or typography are ignored.
    pub is_loose_match: bool,
}

/// Locates the hunks of all sections for one file in `text`, which must use LF line endings.
pub fn locate_hunks(
    path: &str,
    text: &str,
    sections: &[&[PatchHunk]],
) -> Result<LocatedHunks, PatchError> {
    let searchable = HunkSearchText::new(text);
    let mut edits = Vec::new();
    let mut is_loose_match = false;
    for hunks in sections {
        let mut cursor = 0;
        for hunk in *hunks {
            let search = HunkSearch { path, text: &searchable, hunk, cursor };
            let location = search.locate()?;
            cursor = cursor.max(location.end);
            is_loose_match |= location.tolerance.is_loose();
            search.collect_edits(&location, &mut edits)?;
        }
    }
    edits.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    for (first, second) in edits.iter().zip(edits.iter().skip(1)) {
        if second.lines.start < first.lines.end {
            return Err(PatchError::new(format!(
                "the hunks at lines {} and {} of the patch both change line {} of {path}. All \
                 hunks apply to the file as it is now: merge these two into one.",
                first.patch_line.min(second.patch_line),
                first.patch_line.max(second.patch_line),
                second.lines.start + 1
            )));
        }
    }
    Ok(LocatedHunks { splices: to_splices(&searchable, edits), is_loose_match })
}

/// A range of file lines and its replacement.
struct LineEdit {
    lines: Range<usize>,
    new: String,
    /// First line of the hunk in the patch.
    patch_line: usize,
}

fn to_splices(searchable: &HunkSearchText<'_>, edits: Vec<LineEdit>) -> Vec<TextSplice> {
    let lengths = searchable.lines.iter().map(|line| line.len() + 1);
    let starts = std::iter::once(0).chain(lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    let starts: Vec<usize> = starts.map(|start| start.min(searchable.text.len())).collect();
    let byte_offset = |line: usize| starts.get(line).copied().unwrap_or(searchable.text.len());
    let line_count = searchable.lines.len();
    let mut lacks_final_newline = line_count > 0 && !searchable.text.ends_with('\n');
    let mut splices: Vec<TextSplice> = Vec::new();
    for LineEdit { lines, mut new, .. } in edits {
        if lacks_final_newline && lines.start == line_count {
            new.insert(0, '\n');
        }
        lacks_final_newline &= lines.end < line_count;
        let range = byte_offset(lines.start)..byte_offset(lines.end);
        match splices.last_mut() {
            // An insertion goes before the replacement of the line at the same position.
            Some(last) if last.range.start == range.start => {
                last.range.end = range.end;
                last.new_text.push_str(&new);
            }
            Some(_) | None => splices.push(TextSplice { range, new_text: new }),
        }
    }
    splices.retain(|splice| {
        searchable.text.get(splice.range.clone()) != Some(splice.new_text.as_str())
    });
    splices
}

struct HunkLocation {
    /// First matched line, or the line before which lines are inserted.
    start: usize,
    /// Line after the last matched one.
    end: usize,
    tolerance: MatchTolerance,
}

/// The line where the search for a hunk starts, and the anchors that choose between matches.
struct HunkSearchStart {
    from: usize,
    /// Lines that the last `@@` line may refer to. Empty if it does not help to choose between
    /// matches.
    anchors: Vec<usize>,
}

/// The search for one hunk.
struct HunkSearch<'a> {
    path: &'a str,
    text: &'a HunkSearchText<'a>,
    hunk: &'a PatchHunk,
    /// Line after the previous hunk.
    cursor: usize,
}

impl HunkSearch<'_> {
    fn locate(&self) -> Result<HunkLocation, PatchError> {
        let start = self.search_start()?;
        let hunk = self.hunk;
        let old: Vec<&str> = hunk.lines.iter().filter_map(HunkLine::old_text).collect();
        if old.is_empty() {
            let (end, tolerance) = (self.text.lines.len(), MatchTolerance::Exact);
            return match start.anchors.as_slice() {
                _ if hunk.at_end_of_file => Ok(HunkLocation { start: end, end, tolerance }),
                [] => Ok(HunkLocation { start: end, end: self.cursor, tolerance }),
                [line] => Ok(HunkLocation { start: line + 1, end: line + 1, tolerance }),
                lines => Err(self.ambiguous_error(lines)),
            };
        }
        let certain = old.get(..old.len().saturating_sub(hunk.trailing_blanks)).unwrap_or_default();
        if hunk.at_end_of_file {
            for old in [old.as_slice(), certain] {
                if let Some((tolerance, line)) = self.text.find_at_end(old, start.from) {
                    return Ok(HunkLocation { start: line, end: line + old.len(), tolerance });
                }
            }
        }
        let Some((tolerance, mut matches)) =
            self.text.find_lines(certain, start.from, MAX_LISTED_MATCHES)?
        else {
            return Err(self.not_found_error(&start, certain)?);
        };
        if !start.anchors.is_empty() {
            matches = self.first_match_below_each(&start, tolerance, certain, matches)?;
        }
        let [line] = *matches.as_slice() else { return Err(self.ambiguous_error(&matches)) };
        // Trailing blank lines may be only space before a marker, so they cannot choose the match.
        // If they fit a different one, the hunk is ambiguous.
        if hunk.trailing_blanks > 0
            && let Some((_, mut matches)) =
                self.text.find_lines(&old, start.from, MAX_LISTED_MATCHES)?
            && !matches.contains(&line)
        {
            matches.push(line);
            matches.sort_unstable();
            return Err(self.ambiguous_error(&matches));
        }
        Ok(HunkLocation { start: line, end: line + certain.len(), tolerance })
    }

    fn search_start(&self) -> Result<HunkSearchStart, PatchError> {
        let hunk = self.hunk;
        let anchors = resolve_anchors(self.text, &hunk.anchors)?;
        let anchors = anchors.map_err(|missing| self.anchor_missing_error(missing))?;
        let is_above = anchors.iter().any(|line| *line < self.cursor);
        let only_inserts = hunk.lines.iter().all(|line| line.old_text().is_none());
        match anchors.as_slice() {
            [line] if is_above && only_inserts && !hunk.at_end_of_file => {
                Err(self.anchor_above_error(*line))
            }
            [first, ..] if !is_above || only_inserts => Ok(HunkSearchStart {
                from: self.first_line_below(*first).max(self.cursor),
                anchors,
            }),
            // An anchor above the previous hunk, as when two hunks name one class, does not tell
            // which of several matches is meant.
            [] | [_, ..] => Ok(HunkSearchStart { from: self.cursor, anchors: Vec::new() }),
        }
    }

    /// Returns the first line where a hunk below `anchor` may start. Some patches repeat the `@@`
    /// line as the first line of the hunk.
    fn first_line_below(&self, anchor: usize) -> usize {
        let normalize = |text: &str| MatchTolerance::Typography.normalize(text).into_owned();
        let last_anchor = self.hunk.anchors.last().map(|anchor| normalize(anchor));
        match self.hunk.lines.first() {
            Some(HunkLine::Context(text)) if last_anchor == Some(normalize(text)) => anchor,
            Some(HunkLine::Context(_) | HunkLine::Remove(_) | HunkLine::Add(_)) | None => {
                anchor + 1
            }
        }
    }

    /// Returns the first match below each anchor. The caller passes the match below the first
    /// anchor in `matches`.
    fn first_match_below_each(
        &self,
        start: &HunkSearchStart,
        tolerance: MatchTolerance,
        wanted: &[&str],
        mut matches: Vec<usize>,
    ) -> Result<Vec<usize>, PatchError> {
        matches.truncate(1);
        for anchor in &start.anchors {
            let from = self.first_line_below(*anchor);
            if matches.last().is_some_and(|last| from <= *last) {
                continue;
            }
            let found = self.text.find_lines_with(tolerance, wanted, from, 1)?;
            if found.is_empty() || matches.len() >= MAX_LISTED_MATCHES {
                break;
            }
            matches.extend(found);
        }
        Ok(matches)
    }

    fn ambiguous_error(&self, matches: &[usize]) -> PatchError {
        let mut numbers: Vec<String> = matches.iter().map(|line| (line + 1).to_string()).collect();
        let last = numbers.pop().unwrap_or_default();
        let more = if matches.len() >= MAX_LISTED_MATCHES { " and possibly more" } else { "" };
        let (path, numbers) = (self.path, numbers.join(", "));
        self.hunk_error(
            &format!("matches more than one place in {path}: lines {numbers} and {last}{more}."),
            if self.hunk.anchors.is_empty() {
                "Add context lines around it, or an \"@@\" line that quotes a line above the \
                 place."
            } else {
                "Add context lines around it, or another \"@@\" line before its own that quotes \
                 the enclosing block."
            },
        )
    }

    fn not_found_error(
        &self,
        start: &HunkSearchStart,
        old: &[&str],
    ) -> Result<PatchError, PatchError> {
        let path = self.path;
        if start.from > 0
            && let Some((_, matches)) = self.text.find_lines(old, 0, 1)?
            && let Some(line) = matches.first()
        {
            let boundary =
                if !start.anchors.is_empty() { "its \"@@\" line" } else { "the hunk before it" };
            return Ok(self.hunk_error(
                &format!(
                    "matches {path} only at line {}, which is not below {boundary}.",
                    line + 1
                ),
                "Order the hunks of a file from top to bottom, without overlaps.",
            ));
        }
        let nearest = self.describe_closest(old);
        Ok(self.hunk_error(
            &format!("does not match {path}."),
            &format!("{nearest}\nRead the file and copy its lines exactly."),
        ))
    }

    /// Describes the text in the file that is most similar to `wanted`.
    fn describe_closest(&self, wanted: &[&str]) -> String {
        if self.text.lines.is_empty() {
            return "The file is empty.".to_owned();
        }
        let Some(region) = closest_match(self.text.text, &wanted.join("\n")) else {
            return "Nothing in the file is similar.".to_owned();
        };
        let (first, last, diff) = (region.first_line, region.last_line, region.diff);
        let lines = if first == last {
            format!("line {first}")
        } else {
            format!("lines {first} to {last}")
        };
        format!("The closest text is {lines} (- the patch, + the file):\n{diff}")
    }

    fn anchor_missing_error(&self, anchor: &str) -> PatchError {
        let nearest = self.describe_closest(&[anchor]);
        self.hunk_error(
            &format!(
                "quotes a line in \"@@ {}\" that is not in {}.",
                truncate_chars(anchor, MAX_QUOTED_LINE_CHARS),
                self.path
            ),
            &format!("{nearest}\nAfter \"@@\", write one whole line of the file, or nothing."),
        )
    }

    fn anchor_above_error(&self, anchor: usize) -> PatchError {
        self.hunk_error(
            &format!(
                "adds lines below line {} of {}, but the previous hunk ends further down.",
                anchor + 1,
                self.path
            ),
            "Order the hunks of a file from top to bottom.",
        )
    }

    /// Builds a `PatchError` that quotes the first lines of the hunk, says what is wrong and what
    /// to do.
    fn hunk_error(&self, problem: &str, instruction: &str) -> PatchError {
        let mut head = String::new();
        for anchor in self.hunk.anchors.iter().take(MAX_QUOTED_LINES) {
            let _ = write!(head, "\n    @@ {}", truncate_chars(anchor, MAX_QUOTED_LINE_CHARS));
        }
        for line in self.hunk.lines.iter().take(MAX_QUOTED_LINES) {
            let (marker, text) = match line {
                HunkLine::Context(text) => (' ', text),
                HunkLine::Remove(text) => ('-', text),
                HunkLine::Add(text) => ('+', text),
            };
            let _ = write!(head, "\n    {marker}{}", truncate_chars(text, MAX_QUOTED_LINE_CHARS));
        }
        if self.hunk.lines.len() > MAX_QUOTED_LINES {
            head.push_str("\n    …");
        }
        PatchError::at_line(
            self.hunk.patch_line,
            format!("this hunk {problem}{head}\n{instruction}"),
        )
    }

    fn collect_edits(
        &self,
        location: &HunkLocation,
        edits: &mut Vec<LineEdit>,
    ) -> Result<(), PatchError> {
        let shift = self.indent_shift(location)?;
        let patch_line = self.hunk.patch_line;
        let mut line = location.start;
        let mut pending: Option<LineEdit> = None;
        for hunk_line in &self.hunk.lines {
            match hunk_line {
                HunkLine::Context(_) => {
                    edits.extend(pending.take());
                    line += 1;
                }
                HunkLine::Remove(_) => {
                    let edit = pending.get_or_insert_with(|| LineEdit::empty(line, patch_line));
                    line += 1;
                    edit.lines.end = line;
                }
                HunkLine::Add(text) => {
                    let edit = pending.get_or_insert_with(|| LineEdit::empty(line, patch_line));
                    let Some(()) = shift.write_line(text, &mut edit.new) else {
                        return Err(self.indent_error(location, IndentShiftError::Uneven));
                    };
                    edit.new.push('\n');
                }
            }
        }
        edits.extend(pending);
        Ok(())
    }

    fn indent_shift(&self, location: &HunkLocation) -> Result<IndentShift, PatchError> {
        let is_addition =
            |line: &HunkLine| matches!(line, HunkLine::Add(text) if !text.trim().is_empty());
        if !location.tolerance.is_loose() || !self.hunk.lines.iter().any(is_addition) {
            return Ok(IndentShift::Unshifted);
        }
        self.text.spend_steps(self.text.lines.len())?;
        let shift = IndentShift::detect(self.hunk, self.text, location.start);
        shift.map_err(|error| self.indent_error(location, error))
    }

    fn indent_error(&self, location: &HunkLocation, error: IndentShiftError) -> PatchError {
        let (path, first, last) = (self.path, location.start + 1, location.end);
        let (condition, instruction) = match error {
            IndentShiftError::Uneven => (
                "if indentation is ignored, and the difference is not uniform",
                "Read the file and copy the indentation exactly.",
            ),
            IndentShiftError::MissingContextMarks => (
                "one space further left, perhaps because its context lines lack their leading \
                 space",
                "Begin each context line with a space, followed by the line exactly as it is in \
                 the file.",
            ),
        };
        self.hunk_error(
            &format!(
                "matches lines {first} to {last} of {path} only {condition}, so the indentation of \
                 its new lines is unclear."
            ),
            instruction,
        )
    }
}

impl LineEdit {
    fn empty(line: usize, patch_line: usize) -> LineEdit {
        LineEdit { lines: line..line, new: String::new(), patch_line }
    }
}
