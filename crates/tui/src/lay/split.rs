//! Where one block of markdown ends and the next begins.
//!
//! It reads line by line and never takes back what it said, so that a text that is still being
//! written is laid out once, block by block: at blank lines outside of fences, before every item of
//! a list, before and behind every fence.

use std::ops::Range;

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A paragraph, a heading, a table, a quote and the like.
    Text,
    /// An item of a list, with all that belongs to it.
    Item {
        /// Its number, if it has one.
        number: Option<u64>,
    },
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub kind: Kind,
    /// Where it stands.
    pub place: Range<usize>,
    /// True if there is a blank line before it.
    pub apart: bool,
}

/// What a line means for the block under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// This block has ended before the line.
    pub ended: Option<Block>,
    /// The line is one of code, without what it is indented by.
    pub code: Option<Range<usize>>,
    /// A fence of this language has begun.
    pub fence: Option<String>,
    /// A fence has ended.
    pub closed: bool,
}

#[derive(Clone, Debug)]
enum Open {
    Text,
    Item { offset: usize, number: Option<(u64, char)> },
    Fence { fence: Fence, indent: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    sign: char,
    length: usize,
}

struct Marker {
    offset: usize,
    number: Option<(u64, char)>,
    /// May begin a list right below a paragraph.
    interrupts: bool,
    /// What stands behind it.
    content: usize,
}

/// Reads lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Splitter {
    open: Option<Open>,
    place: Range<usize>,
    apart: bool,
    blank: bool,
    /// A fence within the block under way.
    inner: Option<Fence>,
    /// The number of the item that ended last, if nothing else came behind it.
    last: Option<(u64, char)>,
}

impl Splitter {
    /// Reads the line that begins at a place of the text.
    pub(super) fn line(&mut self, line: &str, at: usize) -> Step {
        let end = at + line.len();
        let mut step = Step::default();
        if let Some(Open::Fence { fence, indent }) = &self.open {
            let (fence, indent) = (*fence, *indent);
            if closes(line, fence) {
                (self.open, step.closed) = (None, true);
            } else {
                let strip = line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
                step.code = Some(at + strip..end);
            }
            return step;
        }
        if line.trim().is_empty() {
            self.blank = true;
            return step;
        }
        if let Some(inner) = self.inner {
            if closes(line, inner) {
                self.inner = None;
            }
            (self.place.end, self.blank) = (end, false);
            return step;
        }
        let (indent, opens, marker) = (indent_of(line), opens(line), marker(line));
        let top = indent < 4;
        let next = match &self.open {
            Some(Open::Item { offset, .. }) if indent >= *offset => None,
            Some(Open::Item { .. } | Open::Text) | None if top && opens.is_some() => {
                opens.as_ref().map(|(fence, _)| Open::Fence { fence: *fence, indent })
            }
            Some(Open::Item { .. }) => match &marker {
                Some(marker) if top => Some(marker.open()),
                Some(_) | None => self.blank.then_some(Open::Text),
            },
            Some(Open::Text) => match &marker {
                Some(marker) if top && (self.blank || marker.interrupts) => Some(marker.open()),
                Some(_) | None => self.blank.then_some(Open::Text),
            },
            Some(Open::Fence { .. }) => None,
            None => Some(marker.as_ref().filter(|_| top).map_or(Open::Text, Marker::open)),
        };
        match next {
            None => {
                self.inner = opens.map(|(fence, _)| fence).filter(|_| indent >= 2);
                (self.place.end, self.blank) = (end, false);
            }
            Some(next) => {
                step.ended = self.end();
                if let Open::Fence { .. } = &next {
                    step.fence = Some(opens.map(|(_, language)| language).unwrap_or_default());
                }
                let content = marker.and_then(|marker| line.get(marker.content..));
                if let (Open::Item { .. }, Some(content)) = (&next, content) {
                    self.inner = self::opens(content).map(|(fence, _)| fence);
                }
                self.begin(next, at..end);
            }
        }
        step
    }

    fn begin(&mut self, mut open: Open, place: Range<usize>) {
        match &mut open {
            Open::Item { number: Some((number, sign)), .. } => {
                // Later numbers follow the first one, whatever was written.
                if let Some((last, same)) = self.last.filter(|(_, last)| last == sign) {
                    (*number, *sign) = (last.saturating_add(1), same);
                }
                self.last = Some((*number, *sign));
            }
            Open::Item { number: None, .. } | Open::Text | Open::Fence { .. } => self.last = None,
        }
        (self.open, self.place) = (Some(open), place);
        (self.apart, self.blank) = (self.blank, false);
    }

    /// Ends the block under way. Code between fences was given line by line.
    pub(super) fn end(&mut self) -> Option<Block> {
        let kind = match self.open.take()? {
            Open::Text => Kind::Text,
            Open::Item { number, .. } => Kind::Item { number: number.map(|(number, _)| number) },
            Open::Fence { .. } => return None,
        };
        self.inner = None;
        Some(Block { kind, place: self.place.clone(), apart: self.apart })
    }
}

impl Marker {
    fn open(&self) -> Open {
        Open::Item { offset: self.offset, number: self.number }
    }
}

/// How far a line is indented.
fn indent_of(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// The fence that a line opens, and its language.
fn opens(line: &str) -> Option<(Fence, String)> {
    let line = line.trim();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let length = line.len() - rest.len();
    let language = rest.trim();
    let opens = length >= 3 && !(sign == '`' && language.contains('`'));
    opens.then(|| (Fence { sign, length }, language.to_owned()))
}

fn closes(line: &str, fence: Fence) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|sign| sign == fence.sign)
}

/// The sign of a list that a line begins with.
fn marker(line: &str) -> Option<Marker> {
    let indent = indent_of(line);
    let text = line.trim_start_matches([' ', '\t']);
    let skipped = line.len() - text.len();
    let dense = |sign: char| text.chars().all(|other| other == sign || other == ' ');
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, length) = match text.chars().next()? {
        sign @ ('-' | '*') if dense(sign) && text.matches(sign).count() > 2 => return None,
        '-' | '*' | '+' => (None, 1),
        '0'..='9' if digits <= 9 => {
            let sign =
                text.get(digits..)?.chars().next().filter(|sign| matches!(sign, '.' | ')'))?;
            (Some((text.get(..digits)?.parse().ok()?, sign)), digits + 1)
        }
        _ => return None,
    };
    let behind = text.get(length..)?;
    if !behind.is_empty() && !behind.starts_with([' ', '\t']) {
        return None;
    }
    let spaces = indent_of(behind);
    let offset = indent + length + if (1..5).contains(&spaces) { spaces } else { 1 };
    let first = number.is_none_or(|(number, _)| number == 1);
    let interrupts = first && !behind.trim().is_empty();
    Some(Marker { offset, number, interrupts, content: skipped + length })
}
