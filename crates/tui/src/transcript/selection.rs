//! Opening a single block: by a click on one of its rows, or by selecting it with keys.

use super::blocks::TranscriptBlockKey;
use super::{ScrollTarget, TranscriptView};
use crate::ui_context::UiContext;

/// The direction in which the selection moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionStep {
    Up,
    Down,
}

impl TranscriptView {
    /// Opens the block at a row of the last frame. An open block is closed only by its first row,
    /// so that a click into a text one reads changes nothing.
    pub fn click(&mut self, row: usize) {
        let Some(key) = self.visible_blocks.get(row).copied().filter(|key| self.can_open(*key))
        else {
            return;
        };
        let is_first_row = self.visible_block_rows.get(row) == Some(&0);
        if is_first_row || !self.is_open(key) {
            self.toggle_block(key);
        }
    }

    /// Selects the next block that can be opened, and scrolls to it.
    pub fn move_selection(&mut self, step: SelectionStep, cx: &mut UiContext<'_>) {
        let next = match (self.selected_block, step) {
            (None, _) => {
                let visible = self.visible_blocks.iter().rev().find(|key| self.can_open(**key));
                let first_visible = self.visible_blocks.first().copied();
                let earlier = self.blocks.blocks.iter().rev().map(|block| block.key);
                visible.copied().or_else(|| {
                    earlier
                        .filter(|key| first_visible.is_none_or(|first| *key < first))
                        .find(|key| self.can_open(*key))
                })
            }
            (Some(selected), SelectionStep::Up) => {
                let end = self.blocks.position_of(selected).unwrap_or_else(|insertion| insertion);
                let earlier = self.blocks.blocks.iter().take(end).rev();
                earlier.map(|block| block.key).find(|key| self.can_open(*key))
            }
            (Some(selected), SelectionStep::Down) => {
                let later = self.blocks.blocks.iter().map(|block| block.key);
                later.filter(|key| *key > selected).find(|key| self.can_open(*key))
            }
        };
        match next {
            Some(key) => {
                self.selected_block = Some(key);
                self.show_block(key, cx);
            }
            // Loads the next page, if there is one.
            None if step == SelectionStep::Up => self.scroll(ScrollTarget::Pages(-1), cx),
            None => self.scroll(ScrollTarget::End, cx),
        }
    }

    /// Scrolls until the first row of a block is visible.
    fn show_block(&mut self, key: TranscriptBlockKey, cx: &mut UiContext<'_>) {
        let is_visible = self
            .visible_blocks
            .iter()
            .zip(&self.visible_block_rows)
            .any(|(visible, row)| *visible == key && *row == 0);
        let Ok(item) = self.blocks.position_of(key) else { return };
        if !is_visible {
            let appearance = cx.appearance.clone();
            let render_cx = self.render_context(&appearance, cx.state);
            self.scroll_to_item(item, &render_cx);
            self.request_nearby_pages(cx);
        }
    }

    /// Opens or closes the selected block; returns false if none is selected.
    pub fn toggle_selected(&mut self) -> bool {
        let Some(key) = self.selected_block else { return false };
        self.toggle_block(key);
        true
    }

    /// Returns true if a block is selected.
    pub fn has_selection(&self) -> bool {
        self.selected_block.is_some()
    }

    /// Removes the selection.
    pub fn clear_selection(&mut self) {
        self.selected_block = None;
    }
}
