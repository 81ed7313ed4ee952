//! Takes an agent's changes to one file back, and keeps everybody else's.
//!
//! A change is known by what the file held before and after it. Taking it back is a three-way
//! merge: what the file holds now and what it held before are both seen as descendants of what
//! the agent left. What somebody else changed, before, between or after the agent's changes, stays.
//!
//! Changes that follow each other without anybody between are joined and taken back as one. All
//! in one go would be simpler, but would take along what others did between. So they are taken
//! back one by one, the newest first; one that is in conflict is put off, since older ones may
//! touch other lines. At the end the newest one put off is marked in the file for a person to
//! decide. Only one: markers on top of markers help nobody. The others stay as they are.
//!
//! Nothing a person wrote is ever removed, and no file that a person removed comes back.

use super::lines::{self, Deadline, Piece};
use std::time::Duration;

/// One change an agent made to a file: what stood there before and after (None: no file).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step<'a> {
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
}

/// What became of the file.
#[derive(Debug, PartialEq)]
pub(crate) enum Taken {
    /// Nothing is left to take back.
    Unchanged,
    /// What it should hold (None: remove the file).
    Content(Option<Vec<u8>>),
    /// What it should hold, with markers at the places where a person has to decide. Whatever
    /// could be taken back without asking has been; so many more steps could not be.
    Conflict { content: Vec<u8>, places: usize, left: usize },
    /// It cannot be merged and should be left as it is; why, in words that follow the file's name
    /// and a colon.
    Stuck { why: String },
}

/// Files larger than this are not merged.
const LARGEST: usize = 32 << 20;

/// How long all merges of a file may take. Only large files with hardly a line in common need it.
const PATIENCE: Duration = Duration::from_secs(3);

/// How far into a file a zero byte says that it is binary.
const LOOK: usize = 8 * 1024;

const TOO_LARGE: &str =
    "it was edited since and is too large to be merged. Take the change back by hand";

const NOW: &str = "now";
const LEFT: &str = "as the agent left it";
const BEFORE: &str = "before the agent";

/// Takes steps (oldest first) back from what the file holds now, keeping whatever somebody else
/// changed in between or since.
pub(crate) fn take_back(now: Option<&[u8]>, steps: &[Step<'_>]) -> Taken {
    let mut running = now.map(<[u8]>::to_vec);
    let mut put_off = Vec::new();
    let deadline = Deadline::after(PATIENCE);
    for step in join(steps).into_iter().rev() {
        match take_one(running.as_deref(), step, deadline) {
            One::Clean(content) => running = content,
            One::Conflict { .. } => put_off.push(step),
            One::Stuck(why) => return Taken::Stuck { why: why.to_owned() },
        }
    }
    let mut put_off = put_off.into_iter();
    while let Some(step) = put_off.next() {
        match take_one(running.as_deref(), step, deadline) {
            One::Clean(content) => running = content,
            One::Conflict { content, places } => {
                return Taken::Conflict { content, places, left: put_off.len() };
            }
            One::Stuck(why) => return Taken::Stuck { why: why.to_owned() },
        }
    }
    if running.as_deref() == now { Taken::Unchanged } else { Taken::Content(running) }
}

/// Joins steps where one starts with what the one before left.
fn join<'a>(steps: &[Step<'a>]) -> Vec<Step<'a>> {
    let mut joined: Vec<Step<'a>> = Vec::new();
    for step in steps {
        match joined.last_mut() {
            Some(last) if last.after == step.before => last.after = step.after,
            Some(_) | None => joined.push(*step),
        }
    }
    joined
}

/// What became of one step.
enum One {
    Clean(Option<Vec<u8>>),
    Conflict { content: Vec<u8>, places: usize },
    Stuck(&'static str),
}

fn take_one(running: Option<&[u8]>, step: Step<'_>, deadline: Deadline) -> One {
    let Step { before, after } = step;
    if before == after {
        return One::Clean(running.map(<[u8]>::to_vec));
    }
    if running == after || running == before {
        return One::Clean(before.map(<[u8]>::to_vec));
    }
    match (running, before, after) {
        (None, _, _) => One::Stuck(
            "it was removed since, so it was not brought back. To have it again, restore it from \
             version control or write it anew",
        ),
        (Some(_), None, _) => One::Stuck(
            "the agent made this file and it was edited since; to remove it would remove those \
             edits too. Remove it by hand if nothing in it is needed",
        ),
        (Some(_), Some(_), None) => One::Stuck(
            "the agent removed this file and another one stands in its place. Move that one away \
             first, then undo again",
        ),
        (Some(running), Some(before), Some(after)) => merge(running, before, after, deadline),
    }
}

/// Takes one change back from a file that others have changed too.
fn merge(running: &[u8], before: &[u8], after: &[u8], deadline: Deadline) -> One {
    let all = [running, before, after];
    if all.iter().any(|content| content.len() > LARGEST) {
        return One::Stuck(TOO_LARGE);
    }
    let mut kinds =
        all.iter().filter(|content| !content.is_empty()).map(|content| Kind::of(content));
    let kind = kinds.next().unwrap_or(Kind::Text);
    if kinds.any(|other| other.feed() != kind.feed()) {
        return One::Stuck(
            "it was edited since and its encoding has changed, so it cannot be merged. Take the \
             change back by hand",
        );
    }
    let [ours, theirs, ancestor] = all.map(|content| lines::split(content, kind.feed()));
    let Some(pieces) = lines::merge(&ancestor, &ours, &theirs, deadline) else {
        return One::Stuck(TOO_LARGE);
    };
    let places = pieces.iter().filter(|piece| matches!(piece, Piece::Conflict { .. })).count();
    if places > 0 && all.iter().any(|content| Kind::of(content) != Kind::Text) {
        return One::Stuck(
            "it was edited since in the same places, and it is not a text in which they could be \
             marked. Take the change back by hand",
        );
    }
    let mut draft = Draft { content: Vec::with_capacity(running.len()), end: line_end(&ours) };
    for piece in pieces {
        match piece {
            Piece::Lines(lines) => draft.put(lines),
            Piece::Conflict { ancestor, ours, theirs } => {
                draft.mark("<<<<<<<", NOW);
                draft.put(ours);
                draft.mark("|||||||", LEFT);
                draft.put(ancestor);
                draft.mark("=======", "");
                draft.put(theirs);
                draft.mark(">>>>>>>", BEFORE);
            }
        }
    }
    match places {
        0 => One::Clean(Some(draft.content)),
        _ => One::Conflict { content: draft.content, places },
    }
}

/// What bytes are, as far as lines and markers go.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    /// UTF-16, with the low byte first or last.
    LowFirst,
    LowLast,
    Binary,
}

impl Kind {
    fn of(content: &[u8]) -> Kind {
        match content {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] if !content.len().is_multiple_of(2) => Kind::Binary,
            [0xff, 0xfe, ..] => Kind::LowFirst,
            [0xfe, 0xff, ..] => Kind::LowLast,
            _ if content.iter().take(LOOK).any(|byte| *byte == 0) => Kind::Binary,
            _ => Kind::Text,
        }
    }

    fn feed(self) -> &'static [u8] {
        match self {
            Kind::Text | Kind::Binary => b"\n",
            Kind::LowFirst => b"\n\0",
            Kind::LowLast => b"\0\n",
        }
    }
}

/// The line end of a file: that of its first line.
fn line_end(lines: &[&[u8]]) -> &'static [u8] {
    let windows = lines.first().is_some_and(|line| line.ends_with(b"\r\n"));
    if windows { b"\r\n" } else { b"\n" }
}

/// A merged file on its way.
struct Draft {
    content: Vec<u8>,
    end: &'static [u8],
}

impl Draft {
    fn put(&mut self, lines: &[&[u8]]) {
        lines.iter().for_each(|line| self.content.extend_from_slice(line));
    }

    /// A marker stands on a line of its own, whatever came before.
    fn mark(&mut self, sign: &str, label: &str) {
        if self.content.last().is_some_and(|byte| *byte != b'\n') {
            self.content.extend_from_slice(self.end);
        }
        self.content.extend_from_slice(sign.as_bytes());
        if !label.is_empty() {
            self.content.push(b' ');
            self.content.extend_from_slice(label.as_bytes());
        }
        self.content.extend_from_slice(self.end);
    }
}

#[cfg(test)]
mod tests;
