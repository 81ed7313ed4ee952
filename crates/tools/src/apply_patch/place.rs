//! Where hunks stand in a file, and what they make of it.

use super::Refusal;
use super::nearest;
use super::parse::{Hunk, Line};
use super::seek::{Lens, View, plain};
use crate::text::Splice;
use std::fmt::Write as _;
use std::ops::Range;
use windlass_protocol::text::beginning;

/// How many lines of a hunk are quoted back, and how much of each.
const QUOTED: usize = 3;
const WIDTH: usize = 100;
/// How many places of an ambiguous hunk are listed.
const LISTED: usize = 6;

/// Places the hunks of all sections for one file on its text, whose line ends are LF. The splices
/// come sorted, do not overlap, and leave alone every line that is kept.
pub fn place(path: &str, text: &str, sections: &[&[Hunk]]) -> Result<Vec<Splice>, Refusal> {
    let view = View::new(text);
    let mut edits = Vec::new();
    for hunks in sections {
        let mut cursor = 0;
        for hunk in *hunks {
            let search = Search { path, view: &view, hunk, cursor };
            let spot = search.spot()?;
            cursor = cursor.max(spot.next);
            search.edit(&spot, &mut edits)?;
        }
    }
    edits.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    for (one, other) in edits.iter().zip(edits.iter().skip(1)) {
        if other.lines.start < one.lines.end {
            return Err(Refusal::new(format!(
                "the hunks at lines {} and {} of the patch both change line {} of {path}. All hunks \
                 are about the file as it is now: make one of the two.",
                one.at.min(other.at),
                one.at.max(other.at),
                other.lines.start + 1
            )));
        }
    }
    Ok(splices(&view, edits))
}

/// Lines of the file that are replaced.
struct Edit {
    lines: Range<usize>,
    new: String,
    /// The line of the patch where its hunk begins.
    at: usize,
}

fn splices(view: &View<'_>, edits: Vec<Edit>) -> Vec<Splice> {
    let lengths = view.lines.iter().map(|line| line.len() + 1);
    let starts = std::iter::once(0).chain(lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    let starts: Vec<usize> = starts.map(|start| start.min(view.text.len())).collect();
    let byte = |line: usize| starts.get(line).copied().unwrap_or(view.text.len());
    let count = view.lines.len();
    let mut open = count > 0 && !view.text.ends_with('\n');
    let mut splices: Vec<Splice> = Vec::new();
    for Edit { lines, mut new, .. } in edits {
        if open && lines.start == count {
            new.insert(0, '\n');
        }
        open &= lines.end < count;
        let range = byte(lines.start)..byte(lines.end);
        match splices.last_mut() {
            // An insertion comes before what replaces the line there.
            Some(last) if last.range.start == range.start => {
                last.range.end = range.end;
                last.new.push_str(&new);
            }
            Some(_) | None => splices.push(Splice { range, new }),
        }
    }
    splices.retain(|splice| view.text.get(splice.range.clone()) != Some(splice.new.as_str()));
    splices
}

/// Where a hunk stands.
struct Spot {
    /// The first of its lines in the file, or where lines are inserted.
    start: usize,
    /// The line after its last.
    next: usize,
    lens: Lens,
}

/// From where a hunk is searched, and which of several places is meant.
struct Start {
    from: usize,
    /// The line that the last `@@` line names, when it stands below the hunk before.
    anchor: Option<usize>,
}

/// One hunk, on its way to its place.
struct Search<'a> {
    path: &'a str,
    view: &'a View<'a>,
    hunk: &'a Hunk,
    /// The line after the hunk before.
    cursor: usize,
}

impl Search<'_> {
    fn spot(&self) -> Result<Spot, Refusal> {
        let start = self.start()?;
        let hunk = self.hunk;
        let old: Vec<&str> = hunk.lines.iter().filter_map(Line::old).collect();
        if old.is_empty() {
            let end = self.view.lines.len();
            let at = start.anchor.filter(|_| !hunk.ends_file).map_or(end, |anchor| anchor + 1);
            let next = if hunk.ends_file || start.anchor.is_some() { at } else { self.cursor };
            return Ok(Spot { start: at, next, lens: Lens::Exact });
        }
        let sure = old.get(..old.len().saturating_sub(hunk.spare)).unwrap_or_default();
        if hunk.ends_file {
            for old in [old.as_slice(), sure] {
                if let Some((lens, at)) = self.view.seek_at_end(old, start.from) {
                    return Ok(Spot { start: at, next: at + old.len(), lens });
                }
            }
        }
        let Some((lens, places)) = self.view.seek(sure, start.from, LISTED)? else {
            return Err(self.missing(&start, sure)?);
        };
        let at = self.choose(&start, &places)?;
        // Blank lines at the end may be only space before a marker, so they cannot choose the
        // place. Where they fit another one, nobody can tell.
        if hunk.spare > 0
            && let Some((_, mut places)) = self.view.seek(&old, start.from, LISTED)?
            && !places.contains(&at)
        {
            places.push(at);
            places.sort_unstable();
            return Err(self.ambiguous(&places));
        }
        Ok(Spot { start: at, next: at + sure.len(), lens })
    }

    fn start(&self) -> Result<Start, Refusal> {
        let hunk = self.hunk;
        let Some(last) = hunk.anchors.last() else {
            return Ok(Start { from: self.cursor, anchor: None });
        };
        let anchor = match self.follow(self.cursor)? {
            Ok(anchor) => anchor,
            Err(missing) => match self.follow(0)? {
                Ok(anchor) if anchor >= self.cursor => anchor,
                // It stands above the hunk before, as when two hunks name one class. Then it does
                // not tell which of several places is meant.
                Ok(_) if hunk.lines.iter().any(|line| line.old().is_some()) => {
                    return Ok(Start { from: self.cursor, anchor: None });
                }
                Ok(anchor) => return Err(self.anchor_above(anchor)),
                Err(_) => return Err(self.anchor_missing(missing)),
            },
        };
        // Some write the line again as the first line of the hunk.
        let from = if self.repeats(last) { anchor } else { anchor + 1 };
        Ok(Start { from, anchor: Some(anchor) })
    }

    fn repeats(&self, anchor: &str) -> bool {
        match self.hunk.lines.first() {
            Some(Line::Keep(text)) => Lens::Plain.see(text) == Lens::Plain.see(anchor),
            Some(Line::Remove(_) | Line::Add(_)) | None => false,
        }
    }

    /// The line that the last `@@` line names, each searched below the one before; or the one that
    /// is not there.
    fn follow(&self, from: usize) -> Result<Result<usize, &str>, Refusal> {
        let mut line = None;
        for anchor in &self.hunk.anchors {
            let from = line.map_or(from, |line| line + 1);
            let found = self.view.seek(&[anchor.as_str()], from, 1)?;
            match found.and_then(|(_, places)| places.first().copied()) {
                Some(at) => line = Some(at),
                None => return Ok(Err(anchor)),
            }
        }
        Ok(line.ok_or(""))
    }

    fn choose(&self, start: &Start, places: &[usize]) -> Result<usize, Refusal> {
        let first = places.first().copied().unwrap_or(start.from);
        let one = match start.anchor {
            None => places.len() == 1,
            // With the line of the `@@` itself and another place below it, both can be meant.
            Some(anchor) => first > anchor || places.len() == 1,
        };
        if one { Ok(first) } else { Err(self.ambiguous(places)) }
    }

    fn ambiguous(&self, places: &[usize]) -> Refusal {
        let mut numbers: Vec<String> = places.iter().map(|at| (at + 1).to_string()).collect();
        let last = numbers.pop().unwrap_or_default();
        let more = if places.len() >= LISTED { " and perhaps more" } else { "" };
        let (path, numbers) = (self.path, numbers.join(", "));
        self.refuse(
            &format!("fits more than one place of {path}: lines {numbers} and {last}{more}."),
            "Add lines of context around it, or an \"@@\" line with a line that stands above the \
             place.",
        )
    }

    fn missing(&self, start: &Start, old: &[&str]) -> Result<Refusal, Refusal> {
        let path = self.path;
        if start.from > 0
            && let Some((_, places)) = self.view.seek(old, 0, 1)?
            && let Some(at) = places.first()
        {
            let what =
                if start.anchor.is_some() { "its \"@@\" line" } else { "the hunk before it" };
            return Ok(self.refuse(
                &format!("fits {path} at line {} only, but not below {what}.", at + 1),
                "Write the hunks of a file from top to bottom, without lines that they share.",
            ));
        }
        let nearest = nearest::describe(self.view, old);
        Ok(self.refuse(
            &format!("does not fit {path}."),
            &format!("{nearest}\nRead the file and copy its lines exactly."),
        ))
    }

    fn anchor_missing(&self, anchor: &str) -> Refusal {
        let nearest = nearest::describe(self.view, &[anchor]);
        self.refuse(
            &format!(
                "names a line in \"@@ {}\" that {} does not have.",
                beginning(anchor, WIDTH),
                self.path
            ),
            &format!("{nearest}\nAfter \"@@\" stands one whole line of the file, or nothing."),
        )
    }

    fn anchor_above(&self, anchor: usize) -> Refusal {
        self.refuse(
            &format!(
                "adds lines below line {} of {}, but the hunk before it ends further down.",
                anchor + 1,
                self.path
            ),
            "Write the hunks of a file from top to bottom.",
        )
    }

    /// Names the hunk by its first lines, says what is wrong and what to do.
    fn refuse(&self, what: &str, next: &str) -> Refusal {
        let mut head = String::new();
        for anchor in self.hunk.anchors.iter().take(QUOTED) {
            let _ = write!(head, "\n    @@ {}", beginning(anchor, WIDTH));
        }
        for line in self.hunk.lines.iter().take(QUOTED) {
            let (mark, text) = match line {
                Line::Keep(text) => (' ', text),
                Line::Remove(text) => ('-', text),
                Line::Add(text) => ('+', text),
            };
            let _ = write!(head, "\n    {mark}{}", beginning(text, WIDTH));
        }
        if self.hunk.lines.len() > QUOTED {
            head.push_str("\n    …");
        }
        Refusal::at(self.hunk.at, format!("this hunk {what}{head}\n{next}"))
    }

    fn edit(&self, spot: &Spot, edits: &mut Vec<Edit>) -> Result<(), Refusal> {
        let shift = self.shift(spot)?;
        let at = self.hunk.at;
        let mut here = spot.start;
        let mut run: Option<Edit> = None;
        for line in &self.hunk.lines {
            match line {
                Line::Keep(_) => {
                    edits.extend(run.take());
                    here += 1;
                }
                Line::Remove(_) => {
                    let edit = run.get_or_insert_with(|| Edit::empty(here, at));
                    here += 1;
                    edit.lines.end = here;
                }
                Line::Add(text) => {
                    let edit = run.get_or_insert_with(|| Edit::empty(here, at));
                    let Some(()) = shift.write(text, &mut edit.new) else {
                        return Err(self.uneven(spot));
                    };
                    edit.new.push('\n');
                }
            }
        }
        edits.extend(run);
        Ok(())
    }

    /// By how much the file is indented otherwise than the hunk.
    fn shift(&self, spot: &Spot) -> Result<Shift, Refusal> {
        let adds = |line: &Line| matches!(line, Line::Add(text) if !text.trim().is_empty());
        let lax = match spot.lens {
            Lens::Exact | Lens::Trailing => false,
            Lens::Surrounding | Lens::Plain => true,
        };
        if !lax || !self.hunk.lines.iter().any(adds) {
            return Ok(Shift::None);
        }
        let old = self.hunk.lines.iter().filter_map(Line::old);
        let there = self.view.lines.iter().skip(spot.start).take(spot.next - spot.start);
        let mut shift = None;
        for (line, wanted) in there.zip(old).filter(|(line, _)| !line.trim().is_empty()) {
            let (line, wanted) = (indent(line), indent(wanted));
            let this = if line == wanted {
                Shift::None
            } else if let Some(more) = line.strip_suffix(&wanted) {
                Shift::Deeper(more.to_owned())
            } else if let Some(less) = wanted.strip_suffix(&line) {
                Shift::Shallower(less.to_owned())
            } else {
                return Err(self.uneven(spot));
            };
            if shift.get_or_insert_with(|| this.clone()) != &this {
                return Err(self.uneven(spot));
            }
        }
        Ok(shift.unwrap_or(Shift::None))
    }

    fn uneven(&self, spot: &Spot) -> Refusal {
        self.refuse(
            &format!(
                "fits lines {} to {} of {} only when indentation is overlooked, and not by an even \
                 shift, so how its new lines are indented is unclear.",
                spot.start + 1,
                spot.next,
                self.path
            ),
            "Read the file and copy the indentation exactly.",
        )
    }
}

impl Edit {
    fn empty(line: usize, at: usize) -> Edit {
        Edit { lines: line..line, new: String::new(), at }
    }
}

#[derive(Clone, PartialEq)]
enum Shift {
    None,
    Deeper(String),
    Shallower(String),
}

impl Shift {
    /// Writes a new line as the file would indent it, if that can be.
    fn write(&self, line: &str, new: &mut String) -> Option<()> {
        let (more, line) = match self {
            Shift::Deeper(more) if !line.trim().is_empty() => (more.as_str(), line),
            Shift::Shallower(less) if !line.trim().is_empty() => {
                ("", line.strip_prefix(less.as_str())?)
            }
            Shift::None | Shift::Deeper(_) | Shift::Shallower(_) => ("", line),
        };
        new.push_str(more);
        new.push_str(line);
        Some(())
    }
}

/// A line's leading whitespace, with plain spaces.
fn indent(line: &str) -> String {
    line.chars().take_while(|letter| letter.is_whitespace()).map(plain).collect()
}
