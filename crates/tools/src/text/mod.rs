//! A file's bytes, understood as text, and changed without touching any byte outside the change.
//!
//! It opens no file. It keeps the invariant that a splice leaves every byte outside of what really
//! differs as it was, whatever the encoding and the line ends, and even where bytes cannot be
//! decoded. Start reading at [`Text::splice`]; how bytes and characters relate is in `format`, how
//! an encoding is found in `detect`, and texts too long for memory are read with [`Lines`].

mod detect;
mod ends;
mod format;
mod lines;
mod map;
mod shrink;

pub use detect::{Binary, detect};
pub use format::Format;
pub use lines::{Line, Lines, Rest, Unreadable};

use detect::{Extent, sniff};
use format::UNDECODABLE;
use map::{Ending, Map, Place};
use std::fmt;
use std::ops::Range;

/// A piece of a text to be replaced; the range is in bytes of [`Text::view`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// What is replaced.
    pub range: Range<usize>,
    /// What stands there afterwards; a CRLF in it means the same as LF.
    pub new: String,
}

/// A file's bytes, understood as text.
#[derive(Clone, Debug)]
pub struct Text {
    format: Format,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// UTF-8 without CRLF: what follows the mark is the view itself.
    Plain(String),
    Mapped {
        bytes: Vec<u8>,
        view: String,
        map: Map,
    },
}

/// Why a text cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// The file's encoding has no such character.
    Character {
        /// The first of them.
        character: char,
        /// The file's encoding.
        encoding: &'static str,
    },
    /// The new text holds U+FFFD, which in this file stands for bytes that cannot be decoded.
    Undecodable,
    /// The change would melt into bytes beside it that cannot be decoded.
    Seam,
    /// The splices overlap, are not in order, or do not fit the view.
    Range,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Character { character, encoding } => write!(
                f,
                "{character:?} (U+{:04X}) cannot be written: the file is in {encoding}, which does \
                 not have it. Use other characters, or write the whole file anew: it then becomes \
                 UTF-8",
                u32::from(*character)
            ),
            Unwritable::Undecodable => f.write_str(
                "the new text holds U+FFFD, which in this file stands for bytes that could not be \
                 decoded and cannot be written back. Change only what is around it, in smaller \
                 pieces",
            ),
            Unwritable::Seam => f.write_str(
                "the change touches bytes that cannot be decoded and would give them another \
                 meaning. Replace them (shown as U+FFFD) too, or leave a character between",
            ),
            Unwritable::Range => f.write_str(
                "the changes overlap or do not fit the file. Read it again, and make them one by \
                 one",
            ),
        }
    }
}

impl std::error::Error for Unwritable {}

impl Text {
    /// Finds out how the bytes are to be read.
    pub fn decode(bytes: Vec<u8>) -> Result<Text, Binary> {
        let format = sniff(&bytes, Extent::Whole)?;
        Ok(Text::decode_as(format, bytes))
    }

    fn decode_as(format: Format, bytes: Vec<u8>) -> Text {
        let plain = format.is_utf8() && memchr::memmem::find(&bytes, b"\r\n").is_none();
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if plain => return Text { format, body: Body::Plain(text) },
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let view = format.view(&bytes);
        let map = Map::new(format, &bytes, &view);
        Text { format, body: Body::Mapped { bytes, view, map } }
    }

    /// The text without its byte-order mark, every CRLF as LF; what cannot be decoded is U+FFFD.
    pub fn view(&self) -> &str {
        match &self.body {
            Body::Plain(text) => text.get(self.format.mark().len()..).unwrap_or_default(),
            Body::Mapped { view, .. } => view,
        }
    }

    /// The bytes it was decoded from.
    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Plain(text) => text.as_bytes(),
            Body::Mapped { bytes, .. } => bytes,
        }
    }

    /// The encoding's name, for people.
    pub fn encoding(&self) -> &'static str {
        self.format.name()
    }

    /// The bytes of the whole file after the splices, which are in order and do not overlap.
    ///
    /// A splice is first shrunk to what really differs. Line ends in what is left take after the
    /// line they are put into, else after its neighbours.
    pub fn splice(&self, splices: &[Splice]) -> Result<Vec<u8>, Unwritable> {
        self.put(&self.shrink(splices)?, Ends::Near)
    }

    /// The same for splices of whole lines, each of which is new: they end as most lines do. Where
    /// every line ends in a CR alone, which the view shows as it is, the new ones do too.
    pub fn splice_lines(&self, splices: &[Splice]) -> Result<Vec<u8>, Unwritable> {
        let returns = || self.view().contains('\r').then_some(Ending::Cr);
        let usual = self.usual_ending().or_else(returns);
        self.put(splices, Ends::Usual(usual.unwrap_or(Ending::Lf)))
    }

    fn put(&self, splices: &[Splice], ends: Ends) -> Result<Vec<u8>, Unwritable> {
        let (view, bytes) = (self.view(), self.bytes());
        self.check_stand_ins(splices.iter().map(|splice| splice.new.as_str()))?;
        let mut made = Vec::with_capacity(bytes.len());
        let mut expected = String::with_capacity(view.len());
        let mut done = Place { view: 0, byte: 0 };
        let mut found = None;
        for splice in splices {
            let Range { start, end } = splice.range;
            let (from, _) = self.locate(found, start)?;
            let (_, to) = self.locate(Some(from), end)?;
            found = Some(to);
            let apart = |range: Range<usize>| view.get(range).ok_or(Unwritable::Range);
            let new = [apart(from.view..start)?, &splice.new, apart(end..to.view)?].concat();
            // Two changes inside one unit cannot both be widened to it.
            expected.push_str(apart(done.view..from.view)?);
            made.extend_from_slice(bytes.get(done.byte..from.byte).ok_or(Unwritable::Range)?);
            made.extend(self.format.encode(&self.stored(&new, from, to, ends))?);
            match ends {
                Ends::Usual(Ending::Cr) => expected.push_str(&new.replace('\n', "\r")),
                Ends::Usual(Ending::Lf | Ending::CrLf) | Ends::Near => expected.push_str(&new),
            }
            done = to;
        }
        expected.push_str(view.get(done.view..).unwrap_or_default());
        made.extend_from_slice(bytes.get(done.byte..).unwrap_or_default());
        if self.format.view(&made) == expected { Ok(made) } else { Err(Unwritable::Seam) }
    }

    /// The bytes of the whole content anew, in this file's encoding, byte-order mark and line ends;
    /// a final line end the file had is kept.
    pub fn rewrite(&self, content: &str) -> Result<Vec<u8>, Unwritable> {
        self.check_stand_ins([content])?;
        let text = self.rewritten(content);
        Ok([self.format.mark(), &self.format.encode(&text)?].concat())
    }

    /// The same in UTF-8, for a content that this file's encoding cannot hold.
    pub fn rewrite_in_utf8(&self, content: &str) -> Vec<u8> {
        let mark = if self.format.is_utf8() { self.format.mark() } else { b"" };
        [mark, self.rewritten(content).as_bytes()].concat()
    }

    /// A whole content with this file's line ends and final line end.
    fn rewritten(&self, content: &str) -> String {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let mut text = match self.usual_ending() {
            Some(ending) => end_lines(&content.replace("\r\n", "\n"), None, ending),
            None => content.to_owned(),
        };
        if self.view().ends_with('\n') && !text.is_empty() && !text.ends_with('\n') {
            let last = text.chars().next_back();
            text += &end_lines("\n", last, self.usual_ending().unwrap_or(Ending::Lf));
        }
        text
    }

    /// Refuses U+FFFD where it may stand for bytes that it would replace.
    fn check_stand_ins<'a>(
        &self,
        new: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Unwritable> {
        let written = new.into_iter().any(|new| new.contains(UNDECODABLE));
        if written && !self.format.decodes(self.bytes()) {
            return Err(Unwritable::Undecodable);
        }
        Ok(())
    }

    /// The splices without what they merely repeat; those that touch become one.
    fn shrink(&self, splices: &[Splice]) -> Result<Vec<Splice>, Unwritable> {
        let mut shrunk: Vec<Splice> = Vec::new();
        let mut done = 0;
        for Splice { range, new } in splices {
            let old = self.view().get(range.clone()).ok_or(Unwritable::Range)?;
            if range.start < done {
                return Err(Unwritable::Range);
            }
            done = range.end;
            let new = new.replace("\r\n", "\n");
            let (head, tail) = shrink::shared(old, &new);
            let new = new.get(head..new.len() - tail).ok_or(Unwritable::Range)?;
            let range = range.start + head..range.end - tail;
            match shrunk.last_mut().filter(|last| last.range.end == range.start) {
                _ if range.is_empty() && new.is_empty() => {}
                Some(last) => {
                    last.range.end = range.end;
                    last.new.push_str(new);
                }
                None => shrunk.push(Splice { range, new: new.to_owned() }),
            }
        }
        Ok(shrunk)
    }

    /// The places around one of the view; see [`Map::locate`].
    fn locate(&self, found: Option<Place>, target: usize) -> Result<(Place, Place), Unwritable> {
        match &self.body {
            Body::Plain(_) => {
                let place = Place { view: target, byte: target + self.format.mark().len() };
                Ok((place, place))
            }
            Body::Mapped { bytes, view, map } => {
                map.locate(self.format, bytes, view, found, target).ok_or(Unwritable::Range)
            }
        }
    }

    /// A new piece of the view with its line ends as they are stored.
    fn stored(&self, new: &str, from: Place, to: Place, ends: Ends) -> String {
        let before = self.view().get(..from.view).and_then(|before| before.chars().next_back());
        let ending = match ends {
            Ends::Near => self.ending_at(from.view..to.view),
            Ends::Usual(ending) => ending,
        };
        let mut text = end_lines(new, before, ending);
        let last = text.chars().next_back().or(before);
        let bare = self.format.control(b'\n');
        let followed = self.bytes().get(to.byte..).is_some_and(|rest| rest.starts_with(&bare));
        if last == Some('\r') && followed {
            // The two would be read as one line end; a CRLF after the CR keeps them apart.
            text.push('\r');
        }
        text
    }

    /// What shall end the lines of a new piece: what ends the first line it touches, else the line
    /// before, else the line after.
    fn ending_at(&self, range: Range<usize>) -> Ending {
        let Body::Mapped { bytes, map, .. } = &self.body else { return Ending::Lf };
        let line = map.line(range.start);
        let at_start = map.start(line).is_some_and(|start| start.view == range.start);
        let ending = |line: usize| map.ending(self.format, bytes, line);
        let before = line.checked_sub(1).and_then(ending);
        let touched = if range.is_empty() && at_start { None } else { ending(line) };
        touched.or(before).or_else(|| ending(line)).unwrap_or(Ending::Lf)
    }

    fn usual_ending(&self) -> Option<Ending> {
        match &self.body {
            Body::Plain(text) => text.contains('\n').then_some(Ending::Lf),
            Body::Mapped { bytes, map, .. } => map.usual_ending(self.format, bytes),
        }
    }
}

/// Where new line ends take after.
#[derive(Clone, Copy)]
enum Ends {
    /// The line they are put into, else its neighbours.
    Near,
    /// Most lines of the file.
    Usual(Ending),
}

/// Gives lines their end. A line feed after a CR that stands for itself needs one of its own.
fn end_lines(text: &str, before: Option<char>, ending: Ending) -> String {
    let mut ended = String::with_capacity(text.len());
    let mut last = before;
    for char in text.chars() {
        if char == '\n' && ending == Ending::Cr {
            ended.push('\r');
            last = Some('\r');
            continue;
        }
        if char == '\n' && (ending == Ending::CrLf || last == Some('\r')) {
            ended.push('\r');
        }
        ended.push(char);
        last = Some(char);
    }
    ended
}

#[cfg(test)]
mod tests;
