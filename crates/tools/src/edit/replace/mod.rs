//! Where an edit belongs in a text, and what it changes there.
//!
//! Nothing here opens a file. Nine strategies are asked in order, from exact to lax; the first that
//! knows a place decides, and it decides only if the place is the only one. An exact match is
//! replaced literally. For every other one the *difference* between the old and the new text is
//! applied to what the file says, and only where the file agrees with what the edit removes: that
//! rule lives in `carry`. A place that is found but not certain is reported, never guessed, and
//! no laxer strategy is asked for another one.
//!
//! The work is bounded: see `budget`.

mod block_anchor;
mod budget;
mod carry;
mod change;
mod context_aware;
mod drift;
mod escape_normalised;
mod exact;
mod indent;
mod indentation_flexible;
mod line_trimmed;
mod lines;
mod miss;
mod multi_occurrence;
mod nearest;
mod trimmed_boundary;
mod whitespace_normalised;
mod words;

pub use miss::{Doubt, Miss, Region};

use crate::text::Splice;
use change::Change;
use lines::Lines;
use std::fmt;
use std::ops::Range;

/// How a place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// The same text.
    Exact,
    /// The same lines, but for white space at their ends.
    LineTrimmed,
    /// The same first and last line, and a similar middle.
    BlockAnchor,
    /// The same words, spaced differently.
    WhitespaceNormalised,
    /// The same lines, indented differently.
    IndentationFlexible,
    /// The same text, once its escapes are read.
    EscapeNormalised,
    /// The same text, but for white space around it.
    TrimmedBoundary,
    /// The same first and last line, and half of the middle.
    ContextAware,
    /// The same text, at every place.
    MultiOccurrence,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Exact => "exact",
            Strategy::LineTrimmed => "line-trimmed",
            Strategy::BlockAnchor => "block anchor",
            Strategy::WhitespaceNormalised => "whitespace-normalised",
            Strategy::IndentationFlexible => "indentation-flexible",
            Strategy::EscapeNormalised => "escape-normalised",
            Strategy::TrimmedBoundary => "trimmed boundary",
            Strategy::ContextAware => "context-aware",
            Strategy::MultiOccurrence => "multi-occurrence",
        })
    }
}

/// How many places may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Exactly one.
    One,
    /// Every one.
    All,
}

/// What an edit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// In the order of the text, apart from each other.
    pub splices: Vec<Splice>,
    /// How the places were found.
    pub strategy: Strategy,
}

/// One place where an edit fits.
struct Site {
    /// Its lines, from 0.
    lines: Range<usize>,
    splices: Vec<Splice>,
}

/// What a strategy has to say.
enum Outcome {
    /// It knows no place.
    Nothing,
    /// It knows these, each as certain as the others.
    Sites(Vec<Site>),
    /// It knows a place where the edit cannot be applied for certain.
    Doubtful { lines: Range<usize>, doubt: Doubt },
    /// It knows too many; the lines where they begin, from 0.
    Many(Vec<usize>),
}

/// How a strategy is asked.
type Find = fn(&Scene<'_>) -> Outcome;

/// What every strategy looks at.
struct Scene<'a> {
    lines: &'a Lines<'a>,
    old: &'a str,
    new: &'a str,
    /// The edit line by line; none if it would join lines, which only an exact match may do.
    change: Option<Change<'a>>,
    count: Count,
}

/// Finds where `old` stands in `text` and says what has to change so that `new` stands there.
///
/// The text has line feeds only; those of the edit are made so.
pub fn replace(text: &str, old: &str, new: &str, count: Count) -> Result<Replaced, Miss> {
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err(Miss::Empty);
    }
    if old == new {
        return Err(Miss::Same);
    }
    if let Some(result) = literal(text, &old, &new, count) {
        return result;
    }
    if old.trim().is_empty() {
        return Err(Miss::Blank);
    }
    let lines = Lines::of(text);
    let change = Change::of(&old, &new);
    let scene = Scene { lines: &lines, old: &old, new: &new, change, count };
    let strategies: [(Strategy, Find); 6] = [
        (Strategy::LineTrimmed, line_trimmed::find),
        (Strategy::BlockAnchor, block_anchor::find),
        (Strategy::WhitespaceNormalised, whitespace_normalised::find),
        (Strategy::EscapeNormalised, escape_normalised::find),
        (Strategy::TrimmedBoundary, trimmed_boundary::find),
        (Strategy::ContextAware, context_aware::find),
    ];
    for (strategy, find) in strategies {
        match find(&scene) {
            Outcome::Nothing => {}
            Outcome::Sites(sites) => return settle(&scene, strategy, sites),
            Outcome::Doubtful { lines, doubt } => {
                let region = nearest::region(scene.lines, scene.old, lines);
                return Err(Miss::Uncertain { strategy, doubt, region });
            }
            Outcome::Many(lines) => return Err(Miss::ambiguous(strategy, lines, count)),
        }
    }
    Err(Miss::Missing { nearest: nearest::find(&lines, &old) })
}

/// What in a text is most like one that is not there.
pub(crate) fn nearest(text: &str, wanted: &str) -> Option<Region> {
    nearest::find(&Lines::of(text), wanted)
}

/// What stands in the text exactly as it is in the edit.
fn literal(text: &str, old: &str, new: &str, count: Count) -> Option<Result<Replaced, Miss>> {
    match count {
        Count::One => exact::find(text, old, new),
        Count::All => multi_occurrence::find(text, old, new),
    }
}

/// Whether the sites may be changed: one of them, or all if all are wanted.
fn settle(scene: &Scene<'_>, strategy: Strategy, sites: Vec<Site>) -> Result<Replaced, Miss> {
    let firsts = || sites.iter().map(|site| site.lines.start).collect();
    let apart = sites.iter().zip(sites.iter().skip(1)).all(|(a, b)| a.lines.end <= b.lines.start);
    if sites.len() > 1 && (scene.count == Count::One || !apart) {
        return Err(Miss::ambiguous(strategy, firsts(), scene.count));
    }
    for site in &sites {
        // Once its escapes are read, the old text is as large as what it stands for.
        let read = strategy == Strategy::EscapeNormalised;
        if let Some(matched) = far_larger(scene, &site.lines).filter(|_| !read) {
            let first = site.lines.start + 1;
            return Err(Miss::TooLarge { strategy, first, last: site.lines.end, matched });
        }
    }
    let first = sites.first().map_or(0, |site| site.lines.start) + 1;
    let moved = strategy == Strategy::LineTrimmed
        && sites.iter().all(|site| indentation_flexible::fits(scene, site.lines.start));
    let strategy = if moved { Strategy::IndentationFlexible } else { strategy };
    let text = scene.lines.text();
    let splices: Vec<Splice> = sites
        .into_iter()
        .flat_map(|site| site.splices)
        .filter(|splice| text.get(splice.range.clone()) != Some(splice.new.as_str()))
        .collect();
    if splices.is_empty() {
        return Err(Miss::Already { first });
    }
    Ok(Replaced { splices, strategy })
}

/// How many characters or lines a match has, if those are far more than the edit speaks of.
fn far_larger(scene: &Scene<'_>, matched: &Range<usize>) -> Option<usize> {
    let old = scene.old.trim();
    let old_lines = old.lines().count();
    if matched.len() >= (old_lines + 3).max(old_lines * 2) {
        return Some(matched.len());
    }
    let length = scene.lines.slice(matched).trim().len();
    let limit = (old.len() + 500).max(old.len() * 4);
    (matched.len() > 1 && length > limit).then_some(matched.len())
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
