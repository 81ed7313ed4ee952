//! A single-line text input, used for a denial reason, an answer or an API key.

use crate::keys::{KeyScope, UiCommand};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const MAX_INPUT_BYTES: usize = 4_000;

/// Display mode of a `TextInput`: readable or masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InputVisibility {
    #[default]
    Plain,
    /// Shows one mask character per grapheme cluster.
    Masked,
}

/// A single-line input with a cursor. Its `Debug` output hides the text, so an API key cannot be
/// logged by mistake.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TextInput {
    before_cursor: String,
    after_cursor: String,
    visibility: InputVisibility,
}

impl std::fmt::Debug for TextInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TextInput(…)")
    }
}

impl TextInput {
    /// Creates an input that hides its text, for an API key.
    pub(crate) fn masked() -> TextInput {
        TextInput { visibility: InputVisibility::Masked, ..TextInput::default() }
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before_cursor, self.after_cursor)
    }

    /// Inserts a text at the cursor; line breaks and tabs become spaces.
    pub(crate) fn insert(&mut self, text: &str) {
        let available =
            MAX_INPUT_BYTES.saturating_sub(self.before_cursor.len() + self.after_cursor.len());
        let text = text.replace(['\r', '\n', '\t'], " ");
        self.before_cursor
            .push_str(text.get(..text.floor_char_boundary(available)).unwrap_or_default());
    }

    /// Handles a key; returns false if the key has no meaning in a text input.
    pub(crate) fn on_key(&mut self, key: &KeyEvent, appearance: &Appearance) -> bool {
        if let KeyCode::Char(character) = key.code
            && (key.modifiers - KeyModifiers::SHIFT).is_empty()
        {
            self.insert(character.encode_utf8(&mut [0; 4]));
            return true;
        }
        match appearance.key_map.command_for(KeyScope::Prompt, key) {
            Some(UiCommand::Left) => self.move_left(cluster_boundary),
            Some(UiCommand::Right) => self.move_right(cluster_boundary),
            Some(UiCommand::WordLeft) => self.move_left(word_boundary),
            Some(UiCommand::WordRight) => self.move_right(word_boundary),
            Some(UiCommand::LineStart) => self.move_left(text_boundary),
            Some(UiCommand::LineEnd) => self.move_right(text_boundary),
            Some(UiCommand::DeleteLeft) => self.delete_left(cluster_boundary),
            Some(UiCommand::DeleteWordLeft) => self.delete_left(word_boundary),
            Some(UiCommand::DeleteToStart) => self.delete_left(text_boundary),
            Some(UiCommand::DeleteRight) => self.delete_right(cluster_boundary),
            Some(UiCommand::DeleteWordRight) => self.delete_right(word_boundary),
            Some(UiCommand::DeleteToEnd) => self.delete_right(text_boundary),
            _ => return false,
        }
        true
    }

    fn move_left(&mut self, boundary: fn(&str, TextEdge) -> usize) {
        let moved = self.before_cursor.split_off(boundary(&self.before_cursor, TextEdge::Right));
        self.after_cursor.insert_str(0, &moved);
    }

    fn move_right(&mut self, boundary: fn(&str, TextEdge) -> usize) {
        let rest = self.after_cursor.split_off(boundary(&self.after_cursor, TextEdge::Left));
        self.before_cursor.push_str(&self.after_cursor);
        self.after_cursor = rest;
    }

    fn delete_left(&mut self, boundary: fn(&str, TextEdge) -> usize) {
        self.before_cursor.truncate(boundary(&self.before_cursor, TextEdge::Right));
    }

    fn delete_right(&mut self, boundary: fn(&str, TextEdge) -> usize) {
        self.after_cursor =
            self.after_cursor.split_off(boundary(&self.after_cursor, TextEdge::Left));
    }

    /// Renders the part that fits as a `SafeLine`, and returns the column of the cursor.
    pub(crate) fn render(&self, width: usize, appearance: &Appearance) -> (SafeLine, usize) {
        let (before, after) = match self.visibility {
            InputVisibility::Plain => (self.before_cursor.clone(), self.after_cursor.clone()),
            InputVisibility::Masked => {
                let mask_character = if appearance.ascii { "*" } else { "•" };
                let masked = |text: &str| mask_character.repeat(text.graphemes(true).count());
                (masked(&self.before_cursor), masked(&self.after_cursor))
            }
        };
        // Cut the text before the cursor from the left, so that the cursor stays visible.
        let mut before: &str = &before;
        while before.width() >= width.max(1) {
            let Some(first) = before.graphemes(true).next() else { break };
            before = before.get(first.len()..).unwrap_or_default();
        }
        let row = SafeLine::styled(appearance.style(StyleRole::Text), before)
            .with_text(appearance.style(StyleRole::Text), &after);
        (row, before.width())
    }
}

/// The end of a text to measure from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextEdge {
    Left,
    Right,
}

/// Returns the boundary of the grapheme cluster at `end` of a text.
fn cluster_boundary(text: &str, end: TextEdge) -> usize {
    match end {
        TextEdge::Left => text.graphemes(true).next().map_or(0, str::len),
        TextEdge::Right => text.grapheme_indices(true).next_back().map_or(0, |(offset, _)| offset),
    }
}

/// Returns the boundary of the word at `end`, including the space next to the cursor.
fn word_boundary(text: &str, end: TextEdge) -> usize {
    let is_word = |(_, word): &(usize, &str)| !word.trim().is_empty();
    match end {
        TextEdge::Left => {
            let first_word = text.split_word_bound_indices().find(is_word);
            first_word.map_or(text.len(), |(offset, word)| offset + word.len())
        }
        TextEdge::Right => {
            text.split_word_bound_indices().rev().find(is_word).map_or(0, |(offset, _)| offset)
        }
    }
}

/// Returns the opposite end of the text.
fn text_boundary(text: &str, end: TextEdge) -> usize {
    match end {
        TextEdge::Left => text.len(),
        TextEdge::Right => 0,
    }
}
