//! Clicks, and keys while a block of the transcript is selected.

use super::App;
use crate::keys::{KeyScope, UiCommand, is_text_key};
use crossterm::event::KeyEvent;
use ratatui::layout::Position;

impl App {
    /// Handles a click: opens or closes a block of the transcript, or moves the cursor of the
    /// prompt. A click never answers a question.
    pub(super) fn on_click(&mut self, position: Position) {
        if self.panels.is_empty() && self.transcript_area.contains(position) {
            self.transcript.click(usize::from(position.y - self.transcript_area.y));
        } else if self.panels.is_empty() && self.prompt_area.contains(position) {
            let row = usize::from(position.y - self.prompt_area.y);
            self.prompt.click((row, usize::from(position.x - self.prompt_area.x)));
        }
    }

    /// Handles a key while a block is selected; returns false if the key has its usual meaning.
    pub(super) fn on_selection_key(
        &mut self,
        key: &KeyEvent,
        bound_command: Option<UiCommand>,
    ) -> bool {
        if !self.transcript.has_selection() {
            return false;
        }
        let in_prompt = self.appearance.key_map.command_for(KeyScope::Prompt, key);
        if in_prompt == Some(UiCommand::SendPrompt) && self.prompt.is_empty() {
            return self.transcript.toggle_selected();
        }
        if bound_command == Some(UiCommand::Escape) {
            self.transcript.clear_selection();
            return true;
        }
        if is_text_key(key) {
            self.transcript.clear_selection();
        }
        false
    }
}
