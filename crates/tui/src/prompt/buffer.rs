//! The prompt buffer: text with a cursor, `PromptChip`s and undo.
//!
//! Invariant: the cursor is always between two grapheme clusters. Undo works in groups: a word, a
//! run of deletions, a paste.

use super::chips::{PromptChip, TextWithChips, copy_chips};
use super::{chips, cursor};
use windlass_protocol::Attachment;
use windlass_protocol::prompt_mentions::{mention_offsets, mentions, trim_mention};

const MAX_UNDO_STEPS: usize = 200;
const MAX_UNDO_BYTES: usize = 2 << 20;

/// The kind of the last edit; a following edit of the same kind joins its undo step (see
/// `push_undo`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PromptEditKind {
    #[default]
    Other,
    Insert,
    Delete,
    Cut,
}

/// Permission for an edit to join the previous undo step of its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UndoGrouping {
    Same,
    New,
}

/// The range that a deletion removes, relative to the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeleteRange {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

/// The text of the prompt with its cursor, chips and undo stack.
#[derive(Debug, Default)]
pub(super) struct PromptBuffer {
    text: String,
    cursor: usize,
    chips: Vec<PromptChip>,
    undo_stack: Vec<(String, usize)>,
    last_edit: PromptEditKind,
    cut_text: String,
    hides_prefix: bool,
}

impl PromptBuffer {
    /// Returns the text, with one placeholder character per chip.
    pub(super) fn raw_text(&self) -> &str {
        &self.text
    }

    /// Returns the byte offset of the cursor.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns true if the first character is hidden because the prompt mark shows it. The cursor
    /// cannot move before it then.
    pub(super) fn hides_prefix(&self) -> bool {
        self.hides_prefix
    }

    pub(super) fn hide_prefix(&mut self) {
        self.hides_prefix = !self.text.is_empty();
        if self.hides_prefix && self.cursor == 0 {
            self.cursor = cursor::cluster_right(&self.text, 0);
        }
    }

    pub(super) fn show_prefix(&mut self) {
        self.hides_prefix = false;
    }

    pub(super) fn text_before_cursor(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    pub(super) fn text_after_cursor(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    /// Returns the `PromptChip` that a cluster represents, if any.
    pub(super) fn chip_for(&self, cluster: &str) -> Option<&PromptChip> {
        self.chips.get(cursor::chip_number(cluster.chars().next()?)?)
    }

    /// Returns the text as it would be sent, with chips expanded.
    pub(super) fn expanded_text(&self) -> String {
        self.expand_text(&self.text)
    }

    /// Expands the chips in a part of the text.
    pub(super) fn expand_text(&self, part: &str) -> String {
        let mut text = String::with_capacity(part.len());
        for character in part.chars() {
            match cursor::chip_number(character) {
                Some(number) => text.push_str(
                    &self.chips.get(number).map_or_else(String::new, PromptChip::expanded_text),
                ),
                None => text.push(character),
            }
        }
        text
    }

    /// Returns the attachments in the text, without duplicates.
    pub(super) fn attachments(&self) -> Vec<Attachment> {
        chips::attachments(&self.text, &self.chips)
    }

    /// Inserts typed text, which must already be free of control characters (see `clean_paste`).
    pub(super) fn insert(&mut self, text: &str) {
        let kind =
            if text.chars().count() == 1 { PromptEditKind::Insert } else { PromptEditKind::Other };
        let word_ends = text.chars().all(char::is_whitespace)
            && !self.text_before_cursor().ends_with(char::is_whitespace);
        self.push_undo(kind, if word_ends { UndoGrouping::New } else { UndoGrouping::Same });
        self.insert_at_cursor(text);
    }

    /// Inserts a chip at the cursor; returns false if there are too many.
    pub(super) fn insert_chip(&mut self, chip: PromptChip) -> bool {
        let Some(placeholder) = cursor::chip_char(self.chips.len()) else { return false };
        self.push_undo(PromptEditKind::Other, UndoGrouping::New);
        self.chips.push(chip);
        self.insert_at_cursor(placeholder.encode_utf8(&mut [0; 4]));
        true
    }

    fn insert_at_cursor(&mut self, text: &str) {
        let (before, after) = (self.text_before_cursor(), self.text_after_cursor());
        let new_text = [before, text, after].concat();
        let end = self.cursor + text.len();
        self.text = new_text;
        self.cursor = cursor::snap_to_cluster(&self.text, end);
    }

    /// Replaces a range of the text and puts the cursor after it.
    pub(super) fn replace(&mut self, start: usize, end: usize, text: &str) {
        self.push_undo(PromptEditKind::Other, UndoGrouping::Same);
        self.remove(start, end);
        self.insert_at_cursor(text);
    }

    /// Replaces a range of the text with a chip.
    pub(super) fn replace_with_chip(&mut self, start: usize, end: usize, chip: PromptChip) {
        let Some(placeholder) = cursor::chip_char(self.chips.len()) else { return };
        let cursor = self.cursor;
        self.replace(start, end, placeholder.encode_utf8(&mut [0; 4]));
        self.chips.push(chip);
        // Keep the cursor where the user continued typing meanwhile.
        if cursor > end {
            self.move_cursor(cursor - (end - start) + placeholder.len_utf8());
        } else if cursor < start {
            self.move_cursor(cursor);
        }
    }

    fn remove(&mut self, start: usize, end: usize) -> String {
        let (Some(before), Some(removed), Some(after)) =
            (self.text.get(..start), self.text.get(start..end), self.text.get(end..))
        else {
            return String::new();
        };
        let (remaining_text, removed) = ([before, after].concat(), removed.to_owned());
        self.text = remaining_text;
        self.cursor = cursor::snap_to_cluster(&self.text, start);
        removed
    }

    /// Deletes a range. Anything longer than a cluster can be reinserted with
    /// [`PromptBuffer::yank`].
    pub(super) fn delete(&mut self, range: DeleteRange) {
        let (text, cursor) = (self.text.as_str(), self.cursor);
        let target = match range {
            DeleteRange::Left => cursor::cluster_left(text, cursor),
            DeleteRange::Right => cursor::cluster_right(text, cursor),
            DeleteRange::WordLeft => cursor::word_left(text, cursor),
            DeleteRange::WordRight => cursor::word_right(text, cursor),
            // At the edge of a line, delete the line break instead.
            DeleteRange::LineStart => match cursor::line_start(text, cursor) {
                start if start == cursor => cursor::cluster_left(text, cursor),
                start => start,
            },
            DeleteRange::LineEnd => match cursor::line_end(text, cursor) {
                end if end == cursor => cursor::cluster_right(text, cursor),
                end => end,
            },
        };
        if target == cursor {
            return;
        }
        let (delete_start, delete_end) = (cursor.min(target), cursor.max(target));
        if matches!(range, DeleteRange::Left | DeleteRange::Right) {
            self.push_undo(PromptEditKind::Delete, UndoGrouping::Same);
            self.remove(delete_start, delete_end);
            return;
        }
        let continues_cut = self.last_edit == PromptEditKind::Cut;
        self.push_undo(PromptEditKind::Cut, UndoGrouping::New);
        let removed = self.remove(delete_start, delete_end);
        self.cut_text = match (continues_cut, target < cursor) {
            (false, _) => removed,
            (true, true) => removed + &self.cut_text,
            (true, false) => std::mem::take(&mut self.cut_text) + &removed,
        };
    }

    /// Inserts the text that was cut last.
    pub(super) fn yank(&mut self) {
        if !self.cut_text.is_empty() {
            self.push_undo(PromptEditKind::Other, UndoGrouping::New);
            let text = self.cut_text.clone();
            self.insert_at_cursor(&text);
        }
    }

    pub(super) fn undo(&mut self) {
        self.last_edit = PromptEditKind::Other;
        if let Some((text, cursor)) = self.undo_stack.pop() {
            self.text = text;
            self.cursor = cursor::snap_to_cluster(&self.text, cursor);
        }
    }

    /// Moves the cursor to the nearest valid position at or after an offset.
    pub(super) fn move_cursor(&mut self, offset: usize) {
        self.last_edit = PromptEditKind::Other;
        self.cursor = cursor::snap_to_cluster(&self.text, offset.min(self.text.len()));
        if self.hides_prefix {
            self.hide_prefix();
        }
    }

    /// Replaces the text, which must already be free of control characters (see `clean_paste`), and
    /// puts the cursor at the end. The label of an attached file in the text becomes that
    /// attachment again, and so does a pasted block. A mention that was only text before stays so.
    pub(super) fn set_text(&mut self, text: &str) {
        self.push_undo(PromptEditKind::Other, UndoGrouping::New);
        let plain_mentions = self.plain_mentions();
        let mut text = text.to_owned();
        for (number, chip) in self.chips.iter().enumerate() {
            if let (PromptChip::AttachedFile(_) | PromptChip::PastedText(_), Some(placeholder)) =
                (chip, cursor::chip_char(number))
                && !text.contains(placeholder)
            {
                let placeholder = String::from(placeholder);
                text = text.replacen(&chip.expanded_text(), &placeholder, 1);
            }
        }
        let typed = chips::typed_text(&text);
        // From the end, so that the offsets before it stay valid.
        for (offset, mention) in mention_offsets(&typed).into_iter().rev() {
            if plain_mentions.iter().any(|plain| plain == trim_mention(mention)) {
                // Without a place for the chip, the `@` is dropped rather than made a mention.
                let at_sign = chips::add_chip(&mut self.chips, PromptChip::PlainAtSign);
                text.replace_range(offset..offset + 1, &at_sign.unwrap_or_default());
            }
        }
        self.text = text;
        self.cursor = self.text.len();
    }

    /// Returns the mentions in the text that are only text, because they were pasted.
    fn plain_mentions(&self) -> Vec<String> {
        let (typed, expanded) = (chips::typed_text(&self.text), self.expanded_text());
        let typed: Vec<&str> = mentions(&typed).into_iter().map(trim_mention).collect();
        let all = mentions(&expanded).into_iter().map(trim_mention);
        all.filter(|mention| !typed.contains(mention)).map(str::to_owned).collect()
    }

    /// Returns the text with the chips in it.
    pub(super) fn content(&self) -> TextWithChips {
        let mut chips = Vec::new();
        let text = copy_chips(&self.text, &self.chips, &mut chips);
        TextWithChips { text, chips }
    }

    /// Replaces the text with an earlier prompt.
    pub(super) fn restore(&mut self, content: &TextWithChips) {
        self.push_undo(PromptEditKind::Other, UndoGrouping::New);
        self.text = copy_chips(&content.text, &content.chips, &mut self.chips);
        self.cursor = self.text.len();
    }

    /// Replaces a range of the text with a pasted block.
    pub(super) fn replace_with_content(
        &mut self,
        start: usize,
        end: usize,
        content: &TextWithChips,
    ) {
        let text = copy_chips(&content.text, &content.chips, &mut self.chips);
        self.replace(start, end, &text);
    }

    /// Resets the buffer; only the cut text is kept.
    pub(super) fn clear(&mut self) {
        let cut_text = std::mem::take(&mut self.cut_text);
        // All chips are dropped, so their placeholders in the cut text are dropped too.
        let cut_text = cut_text
            .chars()
            .filter(|character| cursor::chip_number(*character).is_none())
            .collect();
        *self = PromptBuffer { cut_text, ..PromptBuffer::default() };
    }

    /// Saves an undo step, unless this edit joins the previous one.
    fn push_undo(&mut self, kind: PromptEditKind, group: UndoGrouping) {
        let joins_previous =
            kind != PromptEditKind::Other && self.last_edit == kind && group == UndoGrouping::Same;
        self.last_edit = kind;
        if joins_previous || self.undo_stack.last().is_some_and(|(text, _)| *text == self.text) {
            return;
        }
        self.undo_stack.push((self.text.clone(), self.cursor));
        let bytes =
            |steps: &[(String, usize)]| steps.iter().map(|(text, _)| text.len()).sum::<usize>();
        while self.undo_stack.len() > MAX_UNDO_STEPS
            || (self.undo_stack.len() > 1 && bytes(&self.undo_stack) > MAX_UNDO_BYTES)
        {
            self.undo_stack.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_with_text(text: &str) -> PromptBuffer {
        let mut buffer = PromptBuffer::default();
        for character in text.chars() {
            buffer.insert(character.encode_utf8(&mut [0; 4]));
        }
        buffer
    }

    #[test]
    fn words_are_undone_one_by_one() {
        let mut buffer = buffer_with_text("one two  three");
        let mut texts = Vec::new();
        for _ in 0..4 {
            buffer.undo();
            texts.push(buffer.raw_text().to_owned());
        }
        assert_eq!(texts, ["one two", "one", "", ""]);
    }

    #[test]
    fn a_run_of_deletions_is_undone_at_once() {
        let mut buffer = buffer_with_text("abcdef");
        buffer.delete(DeleteRange::Left);
        buffer.delete(DeleteRange::Left);
        buffer.delete(DeleteRange::Left);
        assert_eq!(buffer.raw_text(), "abc");
        buffer.undo();
        assert_eq!(buffer.raw_text(), "abcdef");
    }

    #[test]
    fn consecutive_deletions_are_yanked_together() {
        let mut buffer = buffer_with_text("one two three");
        buffer.delete(DeleteRange::WordLeft);
        buffer.delete(DeleteRange::WordLeft);
        assert_eq!(buffer.raw_text(), "one ");
        buffer.move_cursor(0);
        buffer.yank();
        assert_eq!(buffer.raw_text(), "two threeone ");
        buffer.move_cursor(0);
        buffer.delete(DeleteRange::LineEnd);
        assert_eq!(buffer.raw_text(), "");
        buffer.yank();
        assert_eq!(buffer.raw_text(), "two threeone ");
    }

    #[test]
    fn deleting_at_the_edge_of_a_line_removes_the_line_break() {
        let mut buffer = buffer_with_text("a\nb");
        buffer.move_cursor(2);
        buffer.delete(DeleteRange::LineStart);
        assert_eq!(buffer.raw_text(), "ab");
        let mut buffer = buffer_with_text("a\nb");
        buffer.move_cursor(1);
        buffer.delete(DeleteRange::LineEnd);
        assert_eq!(buffer.raw_text(), "ab");
    }

    #[test]
    fn a_chip_is_deleted_and_restored_as_a_whole() {
        let mut buffer = buffer_with_text("see ");
        buffer.insert_chip(PromptChip::PastedText("1\n2\n3\n4".into()));
        assert_eq!(buffer.expanded_text(), "see 1\n2\n3\n4");
        buffer.delete(DeleteRange::Left);
        assert_eq!(buffer.expanded_text(), "see ");
        buffer.undo();
        assert_eq!(buffer.expanded_text(), "see 1\n2\n3\n4");
    }

    #[test]
    fn the_cursor_is_never_inside_a_cluster() {
        let mut buffer = buffer_with_text("\u{301}");
        buffer.move_cursor(0);
        buffer.insert("e");
        assert_eq!(buffer.cursor(), buffer.raw_text().len());
    }
}
