//! Parser for the patch format: an envelope with file sections, which contain hunks of lines.
//!
//! It is lenient where a text can mean only one thing (padding, wrappers, CRLF) and strict about
//! the end: a patch without `*** End Patch` may be truncated.

use super::PatchError;
use std::borrow::Cow;
use std::collections::VecDeque;
use windlass_protocol::display_text::truncate_chars;

const BEGIN_MARKER: &str = "*** Begin Patch";
const END_MARKER: &str = "*** End Patch";
const END_OF_FILE_MARKER: &str = "*** End of File";
const ADD_FILE_MARKER: &str = "*** Add File:";
const DELETE_FILE_MARKER: &str = "*** Delete File:";
const UPDATE_FILE_MARKER: &str = "*** Update File:";
const MOVE_TO_MARKER: &str = "*** Move to:";

const MAX_PATCH_BYTES: usize = 4 << 20;
/// Bounds the sections, `@@` lines and hunks without an `@@` line of a patch, counted together.
const MAX_SECTIONS_AND_HUNKS: usize = 10_000;
const MAX_QUOTED_CHARS: usize = 80;

/// The part of a patch that concerns one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchSection {
    /// Creates a file with its whole content.
    Add {
        path: String,
        /// Every line ends in LF.
        content: String,
    },
    Delete {
        path: String,
    },
    /// Changes parts of a file, moves it, or both.
    Update {
        /// Current path.
        path: String,
        move_to: Option<String>,
        /// From top to bottom.
        hunks: Vec<PatchHunk>,
    },
}

impl PatchSection {
    /// Returns the paths of the section, the target of a move last.
    pub(super) fn paths(&self) -> impl Iterator<Item = &String> {
        let (path, move_to) = match self {
            PatchSection::Add { path, .. } | PatchSection::Delete { path } => (path, None),
            PatchSection::Update { path, move_to, .. } => (path, move_to.as_ref()),
        };
        std::iter::once(path).chain(move_to)
    }

    /// Like `paths`, but mutable, so that the caller can replace them by resolved ones.
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let (path, move_to) = match self {
            PatchSection::Add { path, .. } | PatchSection::Delete { path } => (path, None),
            PatchSection::Update { path, move_to, .. } => (path, move_to.as_mut()),
        };
        std::iter::once(path).chain(move_to)
    }
}

/// A change at one place of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchHunk {
    /// First line of the hunk in the patch, for error messages.
    pub patch_line: usize,
    /// Texts of the `@@` lines: each matches a line above the hunk and below the previous anchor.
    pub anchors: Vec<String>,
    pub lines: Vec<HunkLine>,
    /// Number of trailing lines without even a leading space: blank lines of the file, or only
    /// space before the next section.
    pub trailing_blanks: usize,
    /// True if `*** End of File` follows the hunk.
    pub at_end_of_file: bool,
}

/// A line of a hunk, without its leading mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HunkLine {
    /// A line of the file that stays, marked by a space.
    Context(String),
    /// A line of the file that is removed, marked `-`.
    Remove(String),
    /// A new line, marked `+` in the patch.
    Add(String),
}

impl HunkLine {
    /// Returns the text that the file must contain: `None` for `Add`.
    pub(super) fn old_text(&self) -> Option<&str> {
        match self {
            HunkLine::Context(text) | HunkLine::Remove(text) => Some(text),
            HunkLine::Add(_) => None,
        }
    }
}

/// Parses a patch, or reports the line that cannot be parsed.
pub fn parse_patch(text: &str) -> Result<Vec<PatchSection>, PatchError> {
    if text.len() > MAX_PATCH_BYTES {
        let message = "the patch is larger than 4 MiB. Send it in parts, a few files at a time.";
        return Err(PatchError::new(message));
    }
    let mut parser = PatchParser { lines: patch_body(text)?, item_count: 0 };
    let mut sections = Vec::new();
    while let Some((number, line)) = parser.lines.pop_front() {
        if !line.trim().is_empty() {
            sections.push(parser.parse_section(number, line)?);
        }
    }
    if sections.is_empty() {
        return Err(PatchError::new(format!(
            "the patch is empty: no section between \"{BEGIN_MARKER}\" and \"{END_MARKER}\". \
             {SECTION_HELP}"
        )));
    }
    Ok(sections)
}

const SECTION_HELP: &str = "A section begins with \"*** Add File: PATH\", \"*** Delete File: PATH\" \
                        or \"*** Update File: PATH\".";

/// Lines with their numbers, counted from 1.
type NumberedLines<'a> = VecDeque<(usize, &'a str)>;

/// Replaces the paths of a patch. Only the lines that name files are changed.
pub(super) fn map_paths<'a>(patch: &'a str, map: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    let markers = [ADD_FILE_MARKER, DELETE_FILE_MARKER, UPDATE_FILE_MARKER, MOVE_TO_MARKER];
    let map_line = |line: &'a str| {
        let named = markers.iter().find_map(|marker| Some((marker, line.strip_prefix(marker)?)));
        match named.map(|(marker, path)| (marker, path.trim())) {
            Some((marker, path)) if !path.is_empty() => {
                let line_end = if line.ends_with('\n') { "\n" } else { "" };
                Cow::Owned(format!("{marker} {}{line_end}", map(path)))
            }
            Some(_) | None => Cow::Borrowed(line),
        }
    };
    patch.split_inclusive('\n').map(map_line).collect()
}

/// Returns the lines between `BEGIN_MARKER` and `END_MARKER`.
fn patch_body(text: &str) -> Result<NumberedLines<'_>, PatchError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut lines: NumberedLines<'_> = (1..).zip(lines).collect();
    trim_blank_lines(&mut lines);
    while let Some(delimiter) = lines.front().and_then(|(_, line)| closing_delimiter(line)) {
        lines.pop_front();
        trim_blank_lines(&mut lines);
        if lines.back().is_some_and(|(_, line)| line.trim() == delimiter) {
            lines.pop_back();
            trim_blank_lines(&mut lines);
        }
    }
    match lines.pop_front() {
        None => {
            return Err(PatchError::new(format!(
                "the patch is empty. It must begin with \"{BEGIN_MARKER}\"."
            )));
        }
        Some((_, line)) if line.trim() == BEGIN_MARKER => {}
        Some((number, line)) => {
            let found = truncate_chars(line, MAX_QUOTED_CHARS);
            let message = format!(
                "a patch must begin with \"{BEGIN_MARKER}\", but this line is \
                                 \"{found}\"."
            );
            return Err(PatchError::at_line(number, message));
        }
    }
    // File lines begin with " ", "+" or "-", so this can only be the marker.
    if let Some(end) = lines.iter().position(|(_, line)| line.trim_end() == END_MARKER) {
        let mut after = lines.split_off(end).into_iter().skip(1);
        if let Some((number, line)) = after.find(|(_, line)| !line.trim().is_empty()) {
            let found = truncate_chars(line, MAX_QUOTED_CHARS);
            let message = format!(
                "nothing may follow \"{END_MARKER}\", but this line is \
                                 \"{found}\"."
            );
            return Err(PatchError::at_line(number, message));
        }
    } else if lines.back().is_some_and(|(_, line)| line.trim() == END_MARKER) {
        lines.pop_back();
    } else {
        return Err(PatchError::new(format!(
            "the patch does not end with \"{END_MARKER}\", so it may have been cut off and was \
             not applied. Send all of it again, or send it in smaller parts."
        )));
    }
    Ok(lines)
}

fn trim_blank_lines(lines: &mut NumberedLines<'_>) {
    while lines.front().is_some_and(|(_, line)| line.trim().is_empty()) {
        lines.pop_front();
    }
    while lines.back().is_some_and(|(_, line)| line.trim().is_empty()) {
        lines.pop_back();
    }
}

/// Returns the text that closes the code fence or shell heredoc opened by `line`.
fn closing_delimiter(line: &str) -> Option<&str> {
    let line = line.trim();
    let after = line.trim_start_matches('`');
    let (fence, _) = line.split_at_checked(line.len() - after.len())?;
    if fence.len() >= 3 {
        return Some(fence);
    }
    let word = line.strip_prefix("apply_patch").unwrap_or(line).trim_start().strip_prefix("<<")?;
    let word = word.strip_prefix('-').unwrap_or(word).trim_start();
    let word = word.trim_matches(|quote| quote == '\'' || quote == '"');
    let is_word_char = |character: char| character.is_ascii_alphanumeric() || character == '_';
    (!word.is_empty() && word.chars().all(is_word_char)).then_some(word)
}

struct PatchParser<'a> {
    lines: NumberedLines<'a>,
    /// Sections, `@@` lines and hunks without an `@@` line so far.
    item_count: usize,
}

impl PatchParser<'_> {
    fn parse_section(&mut self, number: usize, line: &str) -> Result<PatchSection, PatchError> {
        self.count_item(number)?;
        let line = line.trim();
        if let Some(path) = line.strip_prefix(ADD_FILE_MARKER) {
            return self.parse_add(parse_path(number, path)?);
        }
        if let Some(path) = line.strip_prefix(DELETE_FILE_MARKER) {
            return Ok(PatchSection::Delete { path: parse_path(number, path)? });
        }
        if let Some(path) = line.strip_prefix(UPDATE_FILE_MARKER) {
            return self.parse_update(number, parse_path(number, path)?);
        }
        let found = truncate_chars(line, MAX_QUOTED_CHARS);
        Err(PatchError::at_line(
            number,
            format!(
                "\"{found}\" is not part of any section. \
                                             {SECTION_HELP}"
            ),
        ))
    }

    fn parse_add(&mut self, path: String) -> Result<PatchSection, PatchError> {
        let mut content = String::new();
        let mut first_blank = None;
        while let Some((number, line)) = self.lines.front().copied() {
            if line.trim_start().starts_with("***") {
                break;
            }
            self.lines.pop_front();
            let is_blank = line.trim().is_empty();
            match line.strip_prefix('+') {
                Some(text) if first_blank.is_none() => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if is_blank => first_blank = first_blank.or(Some(number)),
                Some(_) | None => {
                    return Err(PatchError::at_line(
                        first_blank.unwrap_or(number),
                        format!(
                            "every line of the new file {path} must begin with \"+\", including \
                             empty lines."
                        ),
                    ));
                }
            }
        }
        Ok(PatchSection::Add { path, content })
    }

    fn parse_update(&mut self, number: usize, path: String) -> Result<PatchSection, PatchError> {
        let mut move_to = None;
        if let Some((number, line)) = self.lines.front().copied()
            && let Some(target) = line.trim().strip_prefix(MOVE_TO_MARKER)
        {
            self.lines.pop_front();
            move_to = Some(parse_path(number, target)?);
        }
        let mut hunks = Vec::new();
        while let Some((_, line)) = self.lines.front() {
            // In a hunk, a leading space marks a context line; before the first hunk it is padding.
            let is_padded_section = hunks.is_empty() && is_section_start(line.trim_start());
            if is_padded_section || line.starts_with("***") {
                break;
            }
            hunks.extend(self.parse_hunk()?);
        }
        let has_changes =
            |hunk: &PatchHunk| hunk.lines.iter().any(|line| !matches!(line, HunkLine::Context(_)));
        if move_to.is_none() && !hunks.iter().any(has_changes) {
            let message = format!(
                "this section changes nothing in {path}. Add lines that begin with \"-\" and \
                 \"+\", or omit the section."
            );
            return Err(PatchError::at_line(number, message));
        }
        Ok(PatchSection::Update { path, move_to, hunks })
    }

    /// Parses one hunk; returns `None` if only blank lines precede the next section.
    fn parse_hunk(&mut self) -> Result<Option<PatchHunk>, PatchError> {
        let mut hunk = PatchHunk::default();
        let mut has_header = false;
        while let Some((number, line)) = self.lines.front().copied()
            && let Some(text) = line.strip_prefix("@@")
        {
            self.lines.pop_front();
            self.count_item(number)?;
            if !has_header {
                hunk.patch_line = number;
            }
            has_header = true;
            hunk.anchors.extend(parse_anchor(text));
        }
        while let Some((number, line)) = self.lines.front().copied() {
            if line.starts_with("@@") || line.starts_with("***") {
                break;
            }
            self.lines.pop_front();
            if hunk.patch_line == 0 {
                hunk.patch_line = number;
            }
            hunk.lines.push(parse_hunk_line(number, line)?);
            hunk.trailing_blanks = if line.is_empty() { hunk.trailing_blanks + 1 } else { 0 };
        }
        if self.lines.front().is_some_and(|(_, line)| line.trim_end() == END_OF_FILE_MARKER) {
            hunk.at_end_of_file = true;
            self.lines.pop_front();
        }
        let trailing_blanks = hunk.trailing_blanks;
        if hunk.lines.len() == trailing_blanks {
            if !has_header && !hunk.at_end_of_file {
                return Ok(None);
            }
            let message = "this hunk has no lines. Add context lines with a leading space, and \
                         lines that begin with \"-\" and \"+\".";
            return Err(PatchError::at_line(hunk.patch_line, message));
        }
        // Blank lines alone do not identify a place.
        if hunk.lines.iter().filter_map(HunkLine::old_text).count() == trailing_blanks {
            hunk.lines.truncate(hunk.lines.len() - trailing_blanks);
            hunk.trailing_blanks = 0;
        }
        if !has_header {
            self.count_item(hunk.patch_line)?;
        }
        Ok(Some(hunk))
    }

    fn count_item(&mut self, number: usize) -> Result<(), PatchError> {
        self.item_count += 1;
        if self.item_count > MAX_SECTIONS_AND_HUNKS {
            let message = format!(
                "the patch has more than {MAX_SECTIONS_AND_HUNKS} sections and hunks. Send it in \
                 parts."
            );
            return Err(PatchError::at_line(number, message));
        }
        Ok(())
    }
}

fn is_section_start(line: &str) -> bool {
    [ADD_FILE_MARKER, DELETE_FILE_MARKER, UPDATE_FILE_MARKER]
        .iter()
        .any(|marker| line.starts_with(marker))
}

fn parse_path(number: usize, path: &str) -> Result<String, PatchError> {
    match path.trim() {
        "" => Err(PatchError::at_line(number, "the path is missing. Write it after the colon.")),
        path => Ok(path.to_owned()),
    }
}

/// Returns the text of an `@@` line, or `None` for line numbers as in a unified diff, which are not
/// text of the file.
fn parse_anchor(text: &str) -> Option<String> {
    if let Some((numbers, _)) = text.split_once("@@") {
        let numbers = numbers.trim();
        let is_range_char =
            |character: char| character.is_ascii_digit() || " ,+-".contains(character);
        if numbers.starts_with('-') && numbers.contains('+') && numbers.chars().all(is_range_char) {
            return None;
        }
    }
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

fn parse_hunk_line(number: usize, line: &str) -> Result<HunkLine, PatchError> {
    if let Some(text) = line.strip_prefix('+') {
        return Ok(HunkLine::Add(text.to_owned()));
    }
    if let Some(text) = line.strip_prefix('-') {
        return Ok(HunkLine::Remove(text.to_owned()));
    }
    if let Some(text) = line.strip_prefix(' ') {
        return Ok(HunkLine::Context(text.to_owned()));
    }
    if line.is_empty() {
        return Ok(HunkLine::Context(String::new()));
    }
    let found = truncate_chars(line, MAX_QUOTED_CHARS);
    let message = format!(
        "a hunk line must begin with \" \" (context), \"-\" (removed) or \"+\" (added), but this \
         line is \"{found}\"."
    );
    Err(PatchError::at_line(number, message))
}
