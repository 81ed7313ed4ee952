//! Where hunks stand in a file, and what they make of it.

use super::Refusal;
use super::anchor::follow;
use super::parse::{Hunk, Line};
use super::seek::{Lens, View};
use super::shift::{Shift, Unclear};
use crate::edit::replace::nearest;
use crate::text::Splice;
use std::fmt::Write as _;
use std::ops::Range;
use windlass_protocol::text::beginning;

/// How many lines of a hunk are quoted back, and how much of each.
const QUOTED: usize = 3;
const WIDTH: usize = 100;
/// How many places of an ambiguous hunk are listed.
const LISTED: usize = 6;

/// What hunks make of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Sorted and apart from each other; they leave alone every line that is kept.
    pub splices: Vec<Splice>,
    /// Whether a hunk stands there only when indentation or typography is overlooked.
    pub loosely: bool,
}

/// Places the hunks of all sections for one file on its text, whose line ends are LF.
pub fn place(path: &str, text: &str, sections: &[&[Hunk]]) -> Result<Placed, Refusal> {
    let view = View::new(text);
    let mut edits = Vec::new();
    let mut loosely = false;
    for hunks in sections {
        let mut cursor = 0;
        for hunk in *hunks {
            let search = Search { path, view: &view, hunk, cursor };
            let spot = search.spot()?;
            cursor = cursor.max(spot.next);
            loosely |= spot.lens.is_lax();
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
    Ok(Placed { splices: splices(&view, edits), loosely })
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
    /// The lines that the last `@@` line may name. None when it does not tell places apart.
    anchors: Vec<usize>,
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
            let (end, lens) = (self.view.lines.len(), Lens::Exact);
            return match start.anchors.as_slice() {
                _ if hunk.ends_file => Ok(Spot { start: end, next: end, lens }),
                [] => Ok(Spot { start: end, next: self.cursor, lens }),
                [line] => Ok(Spot { start: line + 1, next: line + 1, lens }),
                lines => Err(self.ambiguous(lines)),
            };
        }
        let sure = old.get(..old.len().saturating_sub(hunk.spare)).unwrap_or_default();
        if hunk.ends_file {
            for old in [old.as_slice(), sure] {
                if let Some((lens, at)) = self.view.seek_at_end(old, start.from) {
                    return Ok(Spot { start: at, next: at + old.len(), lens });
                }
            }
        }
        let Some((lens, mut places)) = self.view.seek(sure, start.from, LISTED)? else {
            return Err(self.missing(&start, sure)?);
        };
        if !start.anchors.is_empty() {
            places = self.first_below_each(&start, lens, sure, places)?;
        }
        let [at] = *places.as_slice() else { return Err(self.ambiguous(&places)) };
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
        let anchors = follow(self.view, &hunk.anchors)?;
        let anchors = anchors.map_err(|missing| self.anchor_missing(missing))?;
        let above = anchors.iter().any(|line| *line < self.cursor);
        let inserts = hunk.lines.iter().all(|line| line.old().is_none());
        match anchors.as_slice() {
            [line] if above && inserts && !hunk.ends_file => Err(self.anchor_above(*line)),
            [first, ..] if !above || inserts => {
                Ok(Start { from: self.below(*first).max(self.cursor), anchors })
            }
            // A line above the hunk before, as when two hunks name one class, does not tell which
            // of several places is meant.
            [] | [_, ..] => Ok(Start { from: self.cursor, anchors: Vec::new() }),
        }
    }

    /// From where a hunk may stand that an `@@` line leads to. Some write that line again as the
    /// first line of the hunk.
    fn below(&self, anchor: usize) -> usize {
        let plain = |text: &str| Lens::Plain.see(text).into_owned();
        let last = self.hunk.anchors.last().map(|anchor| plain(anchor));
        match self.hunk.lines.first() {
            Some(Line::Keep(text)) if last == Some(plain(text)) => anchor,
            Some(Line::Keep(_) | Line::Remove(_) | Line::Add(_)) | None => anchor + 1,
        }
    }

    /// The first place below each line that the `@@` line may name, of which the first is known.
    fn first_below_each(
        &self,
        start: &Start,
        lens: Lens,
        wanted: &[&str],
        mut places: Vec<usize>,
    ) -> Result<Vec<usize>, Refusal> {
        places.truncate(1);
        for anchor in &start.anchors {
            let from = self.below(*anchor);
            if places.last().is_some_and(|last| from <= *last) {
                continue;
            }
            let found = self.view.seek_through(lens, wanted, from, 1)?;
            if found.is_empty() || places.len() >= LISTED {
                break;
            }
            places.extend(found);
        }
        Ok(places)
    }

    fn ambiguous(&self, places: &[usize]) -> Refusal {
        let mut numbers: Vec<String> = places.iter().map(|at| (at + 1).to_string()).collect();
        let last = numbers.pop().unwrap_or_default();
        let more = if places.len() >= LISTED { " and perhaps more" } else { "" };
        let (path, numbers) = (self.path, numbers.join(", "));
        self.refuse(
            &format!("fits more than one place of {path}: lines {numbers} and {last}{more}."),
            if self.hunk.anchors.is_empty() {
                "Add lines of context around it, or an \"@@\" line with a line that stands above \
                 the place."
            } else {
                "Add lines of context around it, or another \"@@\" line before its own, with what \
                 the place lies in."
            },
        )
    }

    fn missing(&self, start: &Start, old: &[&str]) -> Result<Refusal, Refusal> {
        let path = self.path;
        if start.from > 0
            && let Some((_, places)) = self.view.seek(old, 0, 1)?
            && let Some(at) = places.first()
        {
            let what =
                if !start.anchors.is_empty() { "its \"@@\" line" } else { "the hunk before it" };
            return Ok(self.refuse(
                &format!("fits {path} at line {} only, but not below {what}.", at + 1),
                "Write the hunks of a file from top to bottom, without lines that they share.",
            ));
        }
        let nearest = self.nearest(old);
        Ok(self.refuse(
            &format!("does not fit {path}."),
            &format!("{nearest}\nRead the file and copy its lines exactly."),
        ))
    }

    /// Words about what in the file is most like lines that are not there.
    fn nearest(&self, wanted: &[&str]) -> String {
        if self.view.lines.is_empty() {
            return "The file is empty.".to_owned();
        }
        let Some(region) = nearest(self.view.text, &wanted.join("\n")) else {
            return "Nothing in the file is like it.".to_owned();
        };
        let (first, last, diff) = (region.first, region.last, region.diff);
        let lines = if first == last {
            format!("line {first}")
        } else {
            format!("lines {first} to {last}")
        };
        format!("The nearest text is {lines} (- the patch, + the file):\n{diff}")
    }

    fn anchor_missing(&self, anchor: &str) -> Refusal {
        let nearest = self.nearest(&[anchor]);
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
                        return Err(self.unclear(spot, Unclear::Uneven));
                    };
                    edit.new.push('\n');
                }
            }
        }
        edits.extend(run);
        Ok(())
    }

    fn shift(&self, spot: &Spot) -> Result<Shift, Refusal> {
        let adds = |line: &Line| matches!(line, Line::Add(text) if !text.trim().is_empty());
        if !spot.lens.is_lax() || !self.hunk.lines.iter().any(adds) {
            return Ok(Shift::None);
        }
        self.view.spend(self.view.lines.len())?;
        let shift = Shift::of(self.hunk, self.view, spot.start);
        shift.map_err(|unclear| self.unclear(spot, unclear))
    }

    fn unclear(&self, spot: &Spot, unclear: Unclear) -> Refusal {
        let (path, first, last) = (self.path, spot.start + 1, spot.next);
        let (only, next) = match unclear {
            Unclear::Uneven => (
                "when indentation is overlooked, and not by an even shift",
                "Read the file and copy the indentation exactly.",
            ),
            Unclear::Unmarked => (
                "a space further left, perhaps because its kept lines lack the space that marks \
                 them",
                "Begin each kept line with a space, and then write it as it is in the file.",
            ),
        };
        self.refuse(
            &format!(
                "fits lines {first} to {last} of {path} only {only}, so how its new lines are \
                 indented is unclear."
            ),
            next,
        )
    }
}

impl Edit {
    fn empty(line: usize, at: usize) -> Edit {
        Edit { lines: line..line, new: String::new(), at }
    }
}
