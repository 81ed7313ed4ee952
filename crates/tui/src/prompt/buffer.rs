//! What is written: a text with a cursor, chips in it, and the way back.
//!
//! The cursor always stands between two clusters. Changes are undone in groups: a word, a run of
//! deletions, a paste.

use super::motion;
use windlass_protocol::Attachment;

/// So many changes can be taken back.
const UNDO: usize = 200;
/// And so many bytes are kept for it.
const UNDO_BYTES: usize = 2 << 20;

/// Something that stands in the text as one cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Chip {
    /// A text that was pasted and is too long to be shown.
    Text(String),
    /// A picture or a document.
    File(Attachment),
}

impl Chip {
    /// What is shown of it.
    pub(super) fn label(&self) -> String {
        match self {
            Chip::Text(text) => match text.lines().count() {
                0 | 1 => format!("[pasted {} characters]", text.chars().count()),
                lines => format!("[pasted {lines} lines]"),
            },
            Chip::File(file) => {
                let what = if file.mime.starts_with("image/") { "image" } else { "file" };
                format!("[{what}: {}]", file.name)
            }
        }
    }

    /// What is said of it.
    fn said(&self) -> String {
        match self {
            Chip::Text(text) => text.clone(),
            Chip::File(_) => self.label(),
        }
    }
}

/// What the last change was, because the next one may belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    Typed,
    Deleted,
    Cut,
}

/// Whether a change can go on with one of its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Same,
    New,
}

/// Which part of the text a deletion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

/// A text with a cursor.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    at: usize,
    chips: Vec<Chip>,
    undo: Vec<(String, usize)>,
    last: Last,
    cut: String,
    hides_sign: bool,
}

impl Buffer {
    /// The text, with characters that stand for chips.
    pub(super) fn raw(&self) -> &str {
        &self.text
    }

    /// Where the cursor stands.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// True if the first letter is not shown, because the mark beside the text shows it. The cursor
    /// cannot stand before it then.
    pub(super) fn hides_sign(&self) -> bool {
        self.hides_sign
    }

    /// No longer shows the first letter.
    pub(super) fn hide_sign(&mut self) {
        self.hides_sign = !self.text.is_empty();
        if self.hides_sign && self.at == 0 {
            self.at = motion::right(&self.text, 0);
        }
    }

    /// Shows the first letter.
    pub(super) fn show_sign(&mut self) {
        self.hides_sign = false;
    }

    /// The text before the cursor.
    pub(super) fn before(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    /// The text behind the cursor.
    pub(super) fn behind(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The chip that a cluster stands for.
    pub(super) fn chip(&self, cluster: &str) -> Option<&Chip> {
        self.chips.get(motion::chip(cluster.chars().next()?)?)
    }

    /// The text as it would be said.
    pub(super) fn said(&self) -> String {
        self.said_of(&self.text)
    }

    /// A part of the text as it would be said.
    pub(super) fn said_of(&self, part: &str) -> String {
        let mut text = String::with_capacity(part.len());
        for character in part.chars() {
            match motion::chip(character) {
                Some(number) => {
                    text.push_str(&self.chips.get(number).map_or_else(String::new, Chip::said))
                }
                None => text.push(character),
            }
        }
        text
    }

    /// The files that stand in the text, each once.
    pub(super) fn attachments(&self) -> Vec<Attachment> {
        let mut files: Vec<Attachment> = Vec::new();
        for number in self.text.chars().filter_map(motion::chip) {
            if let Some(Chip::File(file)) = self.chips.get(number)
                && !files.contains(file)
            {
                files.push(file.clone());
            }
        }
        files
    }

    /// Types a text, which is harmless already.
    pub(super) fn insert(&mut self, text: &str) {
        let kind = if text.chars().count() == 1 { Last::Typed } else { Last::Other };
        let word_ends =
            text.chars().all(char::is_whitespace) && !self.before().ends_with(char::is_whitespace);
        self.remember(kind, if word_ends { Group::New } else { Group::Same });
        self.put(text);
    }

    /// Puts a chip in; false if there are too many.
    pub(super) fn insert_chip(&mut self, chip: Chip) -> bool {
        let Some(mark) = motion::mark(self.chips.len()) else { return false };
        self.remember(Last::Other, Group::New);
        self.chips.push(chip);
        self.put(mark.encode_utf8(&mut [0; 4]));
        true
    }

    fn put(&mut self, text: &str) {
        let (before, behind) = (self.before(), self.behind());
        let whole = [before, text, behind].concat();
        let at = self.at + text.len();
        self.text = whole;
        self.at = motion::snap(&self.text, at);
    }

    /// Replaces a part of the text, and stands behind it.
    pub(super) fn replace(&mut self, from: usize, to: usize, text: &str) {
        self.remember(Last::Other, Group::Same);
        self.remove(from, to);
        self.put(text);
    }

    /// Replaces a part of the text by a chip.
    pub(super) fn replace_by_chip(&mut self, from: usize, to: usize, chip: Chip) {
        let Some(mark) = motion::mark(self.chips.len()) else { return };
        let at = self.at;
        self.replace(from, to, mark.encode_utf8(&mut [0; 4]));
        self.chips.push(chip);
        // What was written meanwhile is gone on with.
        if at > to {
            self.go(at - (to - from) + mark.len_utf8());
        } else if at < from {
            self.go(at);
        }
    }

    fn remove(&mut self, from: usize, to: usize) -> String {
        let (Some(before), Some(gone), Some(behind)) =
            (self.text.get(..from), self.text.get(from..to), self.text.get(to..))
        else {
            return String::new();
        };
        let (whole, gone) = ([before, behind].concat(), gone.to_owned());
        self.text = whole;
        self.at = motion::snap(&self.text, from);
        gone
    }

    /// Deletes. What is more than a cluster can be put back by [`Buffer::yank`].
    pub(super) fn delete(&mut self, reach: Reach) {
        let (text, at) = (self.text.as_str(), self.at);
        let other = match reach {
            Reach::Left => motion::left(text, at),
            Reach::Right => motion::right(text, at),
            Reach::WordLeft => motion::word_left(text, at),
            Reach::WordRight => motion::word_right(text, at),
            // At the edge of a line it joins it with the next.
            Reach::LineStart => match motion::line_start(text, at) {
                start if start == at => motion::left(text, at),
                start => start,
            },
            Reach::LineEnd => match motion::line_end(text, at) {
                end if end == at => motion::right(text, at),
                end => end,
            },
        };
        if other == at {
            return;
        }
        let (from, to) = (at.min(other), at.max(other));
        if matches!(reach, Reach::Left | Reach::Right) {
            self.remember(Last::Deleted, Group::Same);
            self.remove(from, to);
            return;
        }
        let goes_on = self.last == Last::Cut;
        self.remember(Last::Cut, Group::New);
        let gone = self.remove(from, to);
        self.cut = match (goes_on, other < at) {
            (false, _) => gone,
            (true, true) => gone + &self.cut,
            (true, false) => std::mem::take(&mut self.cut) + &gone,
        };
    }

    /// Puts back what was deleted last.
    pub(super) fn yank(&mut self) {
        if !self.cut.is_empty() {
            self.remember(Last::Other, Group::New);
            let cut = self.cut.clone();
            self.put(&cut);
        }
    }

    /// Takes the last change back.
    pub(super) fn undo(&mut self) {
        self.last = Last::Other;
        if let Some((text, at)) = self.undo.pop() {
            self.text = text;
            self.at = motion::snap(&self.text, at);
        }
    }

    /// Goes somewhere.
    pub(super) fn go(&mut self, at: usize) {
        self.last = Last::Other;
        self.at = motion::snap(&self.text, at.min(self.text.len()));
        if self.hides_sign {
            self.hide_sign();
        }
    }

    /// Puts another text in, which is harmless already, and stands at its end. A file that is named in
    /// it as it is shown stays that file.
    pub(super) fn set(&mut self, text: &str) {
        self.remember(Last::Other, Group::New);
        let mut text = text.to_owned();
        for (number, chip) in self.chips.iter().enumerate() {
            if let (Chip::File(_), Some(mark)) = (chip, motion::mark(number))
                && !text.contains(mark)
            {
                text = text.replacen(&chip.label(), mark.encode_utf8(&mut [0; 4]), 1);
            }
        }
        self.text = text;
        self.at = self.text.len();
    }

    /// Puts in what was said before, with its files where the text names them, or else at its end.
    pub(super) fn restore(&mut self, text: &str, files: &[Attachment]) {
        self.remember(Last::Other, Group::New);
        let mut text = text.to_owned();
        for file in files {
            let chip = Chip::File(file.clone());
            // One that was here before is the same one.
            let number = self.chips.iter().position(|known| *known == chip);
            let number = number.unwrap_or(self.chips.len());
            let Some(mark) = motion::mark(number).map(String::from) else { break };
            match text.contains(&chip.label()) {
                true => text = text.replacen(&chip.label(), &mark, 1),
                false if text.ends_with(char::is_whitespace) => text.push_str(&mark),
                false => text = format!("{text} {mark}"),
            }
            if number == self.chips.len() {
                self.chips.push(chip);
            }
        }
        self.text = text;
        self.at = self.text.len();
    }

    /// Begins anew: nothing is left but what was cut.
    pub(super) fn clear(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        // A chip that was cut is gone with the others.
        let cut = cut.chars().filter(|character| motion::chip(*character).is_none()).collect();
        *self = Buffer { cut, ..Buffer::default() };
    }

    /// Keeps what was, unless this change goes on with the last one.
    fn remember(&mut self, change: Last, group: Group) {
        let same = change != Last::Other && self.last == change && group == Group::Same;
        self.last = change;
        if same || self.undo.last().is_some_and(|(text, _)| *text == self.text) {
            return;
        }
        self.undo.push((self.text.clone(), self.at));
        let bytes =
            |undo: &[(String, usize)]| undo.iter().map(|(text, _)| text.len()).sum::<usize>();
        while self.undo.len() > UNDO || (self.undo.len() > 1 && bytes(&self.undo) > UNDO_BYTES) {
            self.undo.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Buffer {
        let mut buffer = Buffer::default();
        for character in text.chars() {
            buffer.insert(character.encode_utf8(&mut [0; 4]));
        }
        buffer
    }

    #[test]
    fn words_are_undone_one_by_one() {
        let mut buffer = typed("one two  three");
        let mut seen = Vec::new();
        for _ in 0..4 {
            buffer.undo();
            seen.push(buffer.raw().to_owned());
        }
        assert_eq!(seen, ["one two", "one", "", ""]);
    }

    #[test]
    fn a_run_of_deletions_is_undone_at_once() {
        let mut buffer = typed("abcdef");
        buffer.delete(Reach::Left);
        buffer.delete(Reach::Left);
        buffer.delete(Reach::Left);
        assert_eq!(buffer.raw(), "abc");
        buffer.undo();
        assert_eq!(buffer.raw(), "abcdef");
    }

    #[test]
    fn what_is_deleted_in_a_row_is_put_back_together() {
        let mut buffer = typed("one two three");
        buffer.delete(Reach::WordLeft);
        buffer.delete(Reach::WordLeft);
        assert_eq!(buffer.raw(), "one ");
        buffer.go(0);
        buffer.yank();
        assert_eq!(buffer.raw(), "two threeone ");
        buffer.go(0);
        buffer.delete(Reach::LineEnd);
        assert_eq!(buffer.raw(), "");
        buffer.yank();
        assert_eq!(buffer.raw(), "two threeone ");
    }

    #[test]
    fn at_the_edge_of_a_line_the_newline_goes() {
        let mut buffer = typed("a\nb");
        buffer.go(2);
        buffer.delete(Reach::LineStart);
        assert_eq!(buffer.raw(), "ab");
        let mut buffer = typed("a\nb");
        buffer.go(1);
        buffer.delete(Reach::LineEnd);
        assert_eq!(buffer.raw(), "ab");
    }

    #[test]
    fn a_chip_is_deleted_and_undone_whole() {
        let mut buffer = typed("see ");
        buffer.insert_chip(Chip::Text("1\n2\n3\n4".into()));
        assert_eq!(buffer.said(), "see 1\n2\n3\n4");
        buffer.delete(Reach::Left);
        assert_eq!(buffer.said(), "see ");
        buffer.undo();
        assert_eq!(buffer.said(), "see 1\n2\n3\n4");
    }

    #[test]
    fn a_cursor_never_stands_inside_a_cluster() {
        let mut buffer = typed("\u{301}");
        buffer.go(0);
        buffer.insert("e");
        assert_eq!(buffer.at(), buffer.raw().len());
    }
}
