//! The patch format: an envelope, sections for files, hunks of lines.
//!
//! It is lenient where a text can mean only one thing (padding, wrappers, CRLF), and strict about
//! the end: a patch without `*** End Patch` may have been cut off.

use super::Refusal;
use std::collections::VecDeque;
use windlass_protocol::text::beginning;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";

/// How much of a patch is read.
const LONGEST: usize = 4 << 20;
/// How many sections, `@@` lines and hunks without one a patch may have together.
const MOST: usize = 10_000;
/// How much of a line is quoted back.
const QUOTED: usize = 80;

/// What a patch says about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// A whole file.
    Add {
        /// Where.
        path: String,
        /// Its lines, each with its end.
        content: String,
    },
    /// A file that goes.
    Delete {
        /// Which.
        path: String,
    },
    /// A file of which parts change, or which moves, or both.
    Update {
        /// Where it is now.
        path: String,
        /// Where it goes.
        to: Option<String>,
        /// What changes, from top to bottom.
        hunks: Vec<Hunk>,
    },
}

impl Section {
    /// The paths it names, the target of a move last.
    pub(super) fn paths(&self) -> impl Iterator<Item = &String> {
        let (path, to) = match self {
            Section::Add { path, .. } | Section::Delete { path } => (path, None),
            Section::Update { path, to, .. } => (path, to.as_ref()),
        };
        std::iter::once(path).chain(to)
    }

    /// The same, to be spelled otherwise.
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let (path, to) = match self {
            Section::Add { path, .. } | Section::Delete { path } => (path, None),
            Section::Update { path, to, .. } => (path, to.as_mut()),
        };
        std::iter::once(path).chain(to)
    }
}

/// One place in a file and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The line of the patch where it begins, for words about it.
    pub at: usize,
    /// The texts of its `@@` lines: each stands somewhere above, below the one before.
    pub anchors: Vec<String>,
    /// Its lines in order.
    pub lines: Vec<Line>,
    /// How many of the last lines have not even a leading space. They are blank lines of the file,
    /// or only the space before the next section.
    pub spare: usize,
    /// Whether it says to be at the end of the file.
    pub ends_file: bool,
}

/// One line of a hunk, without its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Stands in the file and stays.
    Keep(String),
    /// Stands in the file and goes.
    Remove(String),
    /// Comes.
    Add(String),
}

impl Line {
    /// What the file must have for it.
    pub(super) fn old(&self) -> Option<&str> {
        match self {
            Line::Keep(text) | Line::Remove(text) => Some(text),
            Line::Add(_) => None,
        }
    }
}

/// Reads a patch, or says in which line it cannot be read.
pub fn parse(text: &str) -> Result<Vec<Section>, Refusal> {
    if text.len() > LONGEST {
        let words = "the patch is longer than 4 MiB. Send it in parts, some files at a time.";
        return Err(Refusal::new(words));
    }
    let mut reader = Reader { lines: body(text)?, marks: 0 };
    let mut sections = Vec::new();
    while let Some((at, line)) = reader.lines.pop_front() {
        if !line.trim().is_empty() {
            sections.push(reader.section(at, line)?);
        }
    }
    if sections.is_empty() {
        return Err(Refusal::new(format!(
            "the patch is empty: between \"{BEGIN}\" and \"{END}\" there is no section. \
             {SECTIONS}"
        )));
    }
    Ok(sections)
}

const SECTIONS: &str = "A section begins with \"*** Add File: PATH\", \"*** Delete File: PATH\" \
                        or \"*** Update File: PATH\".";

/// Lines with their numbers, counted from 1.
type Lines<'a> = VecDeque<(usize, &'a str)>;

/// The lines between the markers.
fn body(text: &str) -> Result<Lines<'_>, Refusal> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut lines: Lines<'_> = (1..).zip(lines).collect();
    trim(&mut lines);
    while let Some(close) = lines.front().and_then(|(_, line)| wrapper(line)) {
        lines.pop_front();
        trim(&mut lines);
        if lines.back().is_some_and(|(_, line)| line.trim() == close) {
            lines.pop_back();
            trim(&mut lines);
        }
    }
    match lines.pop_front() {
        None => {
            return Err(Refusal::new(format!("the patch is empty. It begins with \"{BEGIN}\".")));
        }
        Some((_, line)) if line.trim() == BEGIN => {}
        Some((at, line)) => {
            let found = beginning(line, QUOTED);
            let words = format!("a patch begins with \"{BEGIN}\", but here is \"{found}\".");
            return Err(Refusal::at(at, words));
        }
    }
    // A line of a file is marked by a space, "+" or "-", so that this can only be the marker.
    if let Some(end) = lines.iter().position(|(_, line)| line.trim_end() == END) {
        let mut after = lines.split_off(end).into_iter().skip(1);
        if let Some((at, line)) = after.find(|(_, line)| !line.trim().is_empty()) {
            let found = beginning(line, QUOTED);
            let words = format!("nothing may follow \"{END}\", but here is \"{found}\".");
            return Err(Refusal::at(at, words));
        }
    } else if lines.back().is_some_and(|(_, line)| line.trim() == END) {
        lines.pop_back();
    } else {
        return Err(Refusal::new(format!(
            "the patch does not end with \"{END}\", so it may have been cut off and none of it was \
             applied. Send it again whole, or in smaller parts."
        )));
    }
    Ok(lines)
}

fn trim(lines: &mut Lines<'_>) {
    while lines.front().is_some_and(|(_, line)| line.trim().is_empty()) {
        lines.pop_front();
    }
    while lines.back().is_some_and(|(_, line)| line.trim().is_empty()) {
        lines.pop_back();
    }
}

/// What closes the code fence or the shell's heredoc that a line opens.
fn wrapper(line: &str) -> Option<&str> {
    let line = line.trim();
    let after = line.trim_start_matches('`');
    let (fence, _) = line.split_at_checked(line.len() - after.len())?;
    if fence.len() >= 3 {
        return Some(fence);
    }
    let word = line.strip_prefix("apply_patch").unwrap_or(line).trim_start().strip_prefix("<<")?;
    let word = word.strip_prefix('-').unwrap_or(word).trim_start();
    let word = word.trim_matches(|mark| mark == '\'' || mark == '"');
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!word.is_empty() && word.chars().all(plain)).then_some(word)
}

struct Reader<'a> {
    lines: Lines<'a>,
    /// Sections, `@@` lines and hunks without one so far.
    marks: usize,
}

impl Reader<'_> {
    fn section(&mut self, at: usize, line: &str) -> Result<Section, Refusal> {
        self.count(at)?;
        let line = line.trim();
        if let Some(path) = line.strip_prefix(ADD) {
            return self.add(name(at, path)?);
        }
        if let Some(path) = line.strip_prefix(DELETE) {
            return Ok(Section::Delete { path: name(at, path)? });
        }
        if let Some(path) = line.strip_prefix(UPDATE) {
            return self.update(at, name(at, path)?);
        }
        let found = beginning(line, QUOTED);
        Err(Refusal::at(at, format!("\"{found}\" belongs to no section. {SECTIONS}")))
    }

    fn add(&mut self, path: String) -> Result<Section, Refusal> {
        let mut content = String::new();
        let mut blank = None;
        while let Some((at, line)) = self.lines.front().copied() {
            if line.trim_start().starts_with("***") {
                break;
            }
            self.lines.pop_front();
            let bare = line.trim().is_empty();
            match line.strip_prefix('+') {
                Some(text) if blank.is_none() => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if bare => blank = blank.or(Some(at)),
                Some(_) | None => {
                    return Err(Refusal::at(
                        blank.unwrap_or(at),
                        format!(
                            "every line of the new file {path} begins with \"+\", an empty one too."
                        ),
                    ));
                }
            }
        }
        Ok(Section::Add { path, content })
    }

    fn update(&mut self, at: usize, path: String) -> Result<Section, Refusal> {
        let mut to = None;
        if let Some((at, line)) = self.lines.front().copied()
            && let Some(target) = line.trim().strip_prefix(MOVE)
        {
            self.lines.pop_front();
            to = Some(name(at, target)?);
        }
        let mut hunks = Vec::new();
        while let Some((_, line)) = self.lines.front() {
            // In a hunk a leading space marks a line to keep; before the first one it is padding.
            let padded = hunks.is_empty() && opens_section(line.trim_start());
            if padded || line.starts_with("***") {
                break;
            }
            hunks.extend(self.hunk()?);
        }
        let changes = |hunk: &Hunk| hunk.lines.iter().any(|line| !matches!(line, Line::Keep(_)));
        if to.is_none() && !hunks.iter().any(changes) {
            let words = format!(
                "this section changes nothing in {path}. Say what changes with lines that begin \
                 with \"-\" and \"+\", or leave the section out."
            );
            return Err(Refusal::at(at, words));
        }
        Ok(Section::Update { path, to, hunks })
    }

    /// Takes one hunk; nothing, when there is only space before the next one.
    fn hunk(&mut self) -> Result<Option<Hunk>, Refusal> {
        let mut hunk = Hunk::default();
        let mut headed = false;
        while let Some((at, line)) = self.lines.front().copied()
            && let Some(text) = line.strip_prefix("@@")
        {
            self.lines.pop_front();
            self.count(at)?;
            if !headed {
                hunk.at = at;
            }
            headed = true;
            hunk.anchors.extend(anchor(text));
        }
        while let Some((at, line)) = self.lines.front().copied() {
            if line.starts_with("@@") || line.starts_with("***") {
                break;
            }
            self.lines.pop_front();
            if hunk.at == 0 {
                hunk.at = at;
            }
            hunk.lines.push(marked(at, line)?);
            hunk.spare = if line.is_empty() { hunk.spare + 1 } else { 0 };
        }
        if self.lines.front().is_some_and(|(_, line)| line.trim_end() == END_OF_FILE) {
            hunk.ends_file = true;
            self.lines.pop_front();
        }
        let spare = hunk.spare;
        if hunk.lines.len() == spare {
            if !headed && !hunk.ends_file {
                return Ok(None);
            }
            let words = "this hunk has no lines. Add the lines to keep, with a leading space, and \
                         those that begin with \"-\" and \"+\".";
            return Err(Refusal::at(hunk.at, words));
        }
        // Blank lines alone say nothing about a place.
        if hunk.lines.iter().filter_map(Line::old).count() == spare {
            hunk.lines.truncate(hunk.lines.len() - spare);
            hunk.spare = 0;
        }
        if !headed {
            self.count(hunk.at)?;
        }
        Ok(Some(hunk))
    }

    fn count(&mut self, at: usize) -> Result<(), Refusal> {
        self.marks += 1;
        if self.marks > MOST {
            let words = format!(
                "a patch may have {MOST} sections and hunks, and this has more. Send it in parts."
            );
            return Err(Refusal::at(at, words));
        }
        Ok(())
    }
}

fn opens_section(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|marker| line.starts_with(marker))
}

fn name(at: usize, path: &str) -> Result<String, Refusal> {
    match path.trim() {
        "" => Err(Refusal::at(at, "the path is missing. It follows the colon.")),
        path => Ok(path.to_owned()),
    }
}

/// The text of an `@@` line. Line numbers, as a unified diff has them, are no text of the file.
fn anchor(text: &str) -> Option<String> {
    if let Some((numbers, _)) = text.split_once("@@") {
        let numbers = numbers.trim();
        let digits = |letter: char| letter.is_ascii_digit() || " ,+-".contains(letter);
        if numbers.starts_with('-') && numbers.contains('+') && numbers.chars().all(digits) {
            return None;
        }
    }
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

fn marked(at: usize, line: &str) -> Result<Line, Refusal> {
    if let Some(text) = line.strip_prefix('+') {
        return Ok(Line::Add(text.to_owned()));
    }
    if let Some(text) = line.strip_prefix('-') {
        return Ok(Line::Remove(text.to_owned()));
    }
    if let Some(text) = line.strip_prefix(' ') {
        return Ok(Line::Keep(text.to_owned()));
    }
    if line.is_empty() {
        return Ok(Line::Keep(String::new()));
    }
    let found = beginning(line, QUOTED);
    let words = format!(
        "a line of a hunk begins with \" \" (kept), \"-\" (removed) or \"+\" (added), but here is \
         \"{found}\"."
    );
    Err(Refusal::at(at, words))
}
