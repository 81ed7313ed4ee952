//! A line that something can be written in: a reason, an answer, a key.

use crate::cx::Look;
use crate::ink::Row;
use crate::keys::{Command, Place};
use crate::theme::Role;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The longest line, in bytes.
const LONGEST: usize = 4_000;

/// Whether what is written can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// It can.
    #[default]
    Plain,
    /// Only how long it is.
    Masked,
}

/// A line, and where the cursor stands in it. It cannot be printed by mistake.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    before: String,
    behind: String,
    shown: Shown,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line(…)")
    }
}

impl Line {
    /// A line of which nobody sees what is written.
    pub(crate) fn masked() -> Line {
        Line { shown: Shown::Masked, ..Line::default() }
    }

    /// What is written.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before, self.behind)
    }

    /// Writes a text at the cursor, on one line.
    pub(crate) fn write(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.before.len() + self.behind.len());
        let text = text.replace(['\r', '\n', '\t'], " ");
        self.before.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
    }

    /// Takes in a key; false if it means nothing in a line.
    pub(crate) fn key(&mut self, key: &KeyEvent, look: &Look) -> bool {
        if let KeyCode::Char(letter) = key.code
            && (key.modifiers - KeyModifiers::SHIFT).is_empty()
        {
            self.write(letter.encode_utf8(&mut [0; 4]));
            return true;
        }
        match look.keys.find(Place::Prompt, key) {
            Some(Command::Left) => self.left(one),
            Some(Command::Right) => self.right(one),
            Some(Command::WordLeft) => self.left(word),
            Some(Command::WordRight) => self.right(word),
            Some(Command::LineStart) => self.left(all),
            Some(Command::LineEnd) => self.right(all),
            Some(Command::DeleteLeft) => self.delete_left(one),
            Some(Command::DeleteWordLeft) => self.delete_left(word),
            Some(Command::DeleteToStart) => self.delete_left(all),
            Some(Command::DeleteRight) => self.delete_right(one),
            Some(Command::DeleteWordRight) => self.delete_right(word),
            Some(Command::DeleteToEnd) => self.delete_right(all),
            _ => return false,
        }
        true
    }

    fn left(&mut self, far: fn(&str, End) -> usize) {
        let moved = self.before.split_off(far(&self.before, End::Right));
        self.behind.insert_str(0, &moved);
    }

    fn right(&mut self, far: fn(&str, End) -> usize) {
        let rest = self.behind.split_off(far(&self.behind, End::Left));
        self.before.push_str(&self.behind);
        self.behind = rest;
    }

    fn delete_left(&mut self, far: fn(&str, End) -> usize) {
        self.before.truncate(far(&self.before, End::Right));
    }

    fn delete_right(&mut self, far: fn(&str, End) -> usize) {
        self.behind = self.behind.split_off(far(&self.behind, End::Left));
    }

    /// As much of it as fits, and in which column the cursor stands.
    pub(crate) fn row(&self, width: usize, look: &Look) -> (Row, usize) {
        let (before, behind) = match self.shown {
            Shown::Plain => (self.before.clone(), self.behind.clone()),
            Shown::Masked => {
                let sign = if look.ascii { "*" } else { "•" };
                let masked = |text: &str| sign.repeat(text.graphemes(true).count());
                (masked(&self.before), masked(&self.behind))
            }
        };
        // What stands left of the cursor is cut from the left, so that the cursor is on the screen.
        let mut before: &str = &before;
        while before.width() >= width.max(1) {
            let Some(first) = before.graphemes(true).next() else { break };
            before = before.get(first.len()..).unwrap_or_default();
        }
        let row = Row::of(look.style(Role::Text), before).and(look.style(Role::Text), &behind);
        (row, before.width())
    }
}

/// The end of a text that something is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

/// Where a cluster ends that begins at this end of a text.
fn one(text: &str, end: End) -> usize {
    match end {
        End::Left => text.graphemes(true).next().map_or(0, str::len),
        End::Right => text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
    }
}

/// The same for a word and the space before it.
fn word(text: &str, end: End) -> usize {
    let is_word = |(_, word): &(usize, &str)| !word.trim().is_empty();
    match end {
        End::Left => {
            let found = text.split_word_bound_indices().find(is_word);
            found.map_or(text.len(), |(at, word)| at + word.len())
        }
        End::Right => text.split_word_bound_indices().rev().find(is_word).map_or(0, |(at, _)| at),
    }
}

/// The same for all of it.
fn all(text: &str, end: End) -> usize {
    match end {
        End::Left => text.len(),
        End::Right => 0,
    }
}
