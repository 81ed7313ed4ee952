//! The prompt editor.
//!
//! [`buffer`] contains the text, [`chips`] the pasted blocks and files in it, [`wrapped_rows`] its
//! layout, [`history`] the earlier prompts, [`paste`] the handling of pasted text, [`completion`] the
//! list above the prompt. This module handles keys, and [`submit`] handles Enter.

mod buffer;
mod chips;
mod completion;
mod completion_cache;
mod cursor;
mod draw;
mod history;
mod non_key_input;
mod paste;
mod preparation;
mod slash_command;
mod submission;
mod submit;
#[cfg(test)]
mod tests;
mod vim;
mod vim_motion;
mod wrapped_rows;

use crate::keys::{KeyScope, UiCommand};
use crate::ui_context::{Appearance, UiContext};
use buffer::{DeleteRange, PromptBuffer};
use chips::TextWithChips;
use completion::{CompletionListKind, CompletionOpenPolicy, CompletionState};
use completion_cache::CompletionKind;
use crossterm::event::KeyEvent;
use history::{PastPrompt, PromptHistory};
use preparation::PromptPreparation;
pub(crate) use slash_command::command_name;
pub use slash_command::missing_command_tip;
use std::collections::BTreeMap;
pub use submission::Submission;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    Fault, PromptDelivery, PromptHistoryRow, QueryReply, SessionOp, SessionQuery,
};

/// The effect of a key on the `PromptEditor`.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptAction {
    /// The key has no meaning here.
    Ignored,
    /// The prompt handled the key.
    Handled,
    /// The user submitted the prompt.
    Submit(Submission),
}

/// An attachment that the host is storing; it becomes a chip afterwards.
#[derive(Clone, Debug, PartialEq)]
enum PendingAttachment {
    ClipboardImage,
    /// A file, with its path as it appears in the text.
    FilePath(String),
}

/// Load state of the earlier prompts of this folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PromptHistoryLoadState {
    #[default]
    NotRequested,
    /// The request is pending. If `show_when_loaded`, the latest prompt is shown on arrival.
    Requested {
        request_id: u64,
        show_when_loaded: bool,
    },
    Loaded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerticalDirection {
    Up,
    Down,
}

/// The prompt editor with its history and completion.
#[derive(Debug)]
pub struct PromptEditor {
    buffer: PromptBuffer,
    history: PromptHistory,
    older_prompts: PromptHistoryLoadState,
    completion: CompletionState,
    /// The text width at the last draw, and the height of the screen.
    text_columns: usize,
    screen_rows: u16,
    top_row: usize,
    /// The column that vertical movement tries to keep.
    goal_column: Option<usize>,
    pending_chips: BTreeMap<u64, PendingAttachment>,
    /// A message shown until the next key.
    notice: Option<String>,
    /// A sample prompt, shown while the input is empty and nothing was typed yet.
    suggestion: Option<&'static str>,
    vim: vim::VimState,
    /// The delivery of a submitted prompt that waits for a chip, the command list or the files that
    /// it mentions.
    pending_delivery: Option<PromptDelivery>,
    preparation: PromptPreparation,
    /// The text that the user was warned about; a second Enter sends it.
    confirmed_text: Option<String>,
}

impl Default for PromptEditor {
    fn default() -> PromptEditor {
        PromptEditor {
            buffer: PromptBuffer::default(),
            history: PromptHistory::default(),
            older_prompts: PromptHistoryLoadState::default(),
            completion: CompletionState::default(),
            text_columns: 77,
            screen_rows: 24,
            top_row: 0,
            goal_column: None,
            pending_chips: BTreeMap::new(),
            notice: None,
            suggestion: None,
            vim: vim::VimState::default(),
            pending_delivery: None,
            preparation: PromptPreparation::default(),
            confirmed_text: None,
        }
    }
}

impl PromptEditor {
    /// Shows a sample prompt in place of the empty input. The first key replaces it; Tab or Right
    /// accepts it.
    pub(crate) fn suggest(&mut self, text: &'static str) {
        self.suggestion = Some(text);
    }

    /// Handles a key and returns its effect as a `PromptAction`.
    pub fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PromptAction {
        (self.notice, self.pending_delivery) = (None, None);
        if !self.buffer.raw_text().is_empty() {
            self.suggestion = None;
        }
        if let Some(action) = self.on_vim_key(key, cx) {
            self.completion.update(&self.buffer, CompletionOpenPolicy::Suppressed, cx);
            self.update_prefix();
            return action;
        }
        let command = cx.appearance.key_map.command_for(KeyScope::Prompt, key);
        if let Some(action) = self.on_list_key(command, key, cx) {
            self.update_prefix();
            return action;
        }
        if self.is_empty()
            && matches!(command, Some(UiCommand::AcceptCompletion | UiCommand::Right))
            && let Some(suggestion) = self.suggestion.take()
        {
            self.buffer.insert(suggestion);
            return PromptAction::Handled;
        }
        let mut list_opening = CompletionOpenPolicy::Suppressed;
        match command {
            Some(UiCommand::SendPrompt) => return self.submit(PromptDelivery::Steer, cx),
            Some(UiCommand::QueuePrompt) => return self.submit(PromptDelivery::Queue, cx),
            Some(UiCommand::HistoryUp) => self.move_up(cx),
            Some(UiCommand::HistoryDown) => self.move_down(),
            Some(UiCommand::HistoryFind) => {
                self.request_older_prompts(cx);
                self.completion.open_history(&self.history);
                return PromptAction::Handled;
            }
            Some(command) => {
                if !self.apply_edit(command, cx) {
                    return PromptAction::Ignored;
                }
                if matches!(command, UiCommand::DeleteLeft | UiCommand::DeleteWordLeft) {
                    list_opening = CompletionOpenPolicy::Allowed;
                }
                self.start_draft();
            }
            None => {
                let Some(character) = cursor::typed_char(key) else { return PromptAction::Ignored };
                if character == '?' && self.is_empty() {
                    cx.push_command(UiCommand::Help);
                    return PromptAction::Handled;
                }
                self.buffer.insert(character.encode_utf8(&mut [0; 4]));
                list_opening = CompletionOpenPolicy::Allowed;
                self.start_draft();
            }
        }
        self.completion.update(&self.buffer, list_opening, cx);
        self.update_prefix();
        PromptAction::Handled
    }

    /// Handles a key that has a special meaning while a list is open; returns `None` for other
    /// keys.
    fn on_list_key(
        &mut self,
        command: Option<UiCommand>,
        key: &KeyEvent,
        cx: &mut UiContext<'_>,
    ) -> Option<PromptAction> {
        let list = self.completion.list.as_ref().filter(|_| self.has_open_list())?;
        let is_history = list.kind == CompletionListKind::History;
        match command {
            // Ctrl+P moves up in a list, as in other programs.
            Some(UiCommand::HistoryUp | UiCommand::CommandPalette) => {
                self.completion.move_selection(-1)
            }
            Some(UiCommand::HistoryDown) => self.completion.move_selection(1),
            Some(UiCommand::HistoryFind) if is_history => self.completion.move_selection(1),
            Some(UiCommand::AcceptCompletion) => self.accept_completion(cx),
            Some(UiCommand::SendPrompt) if self.completion.enter_accepts() => {
                let is_command = list.kind == CompletionListKind::SlashCommand;
                self.accept_completion(cx);
                if is_command {
                    return Some(self.submit(PromptDelivery::Steer, cx));
                }
            }
            Some(UiCommand::SendPrompt) if is_history => {
                self.completion.close();
            }
            // If the text only resembles a command, Enter completes it first.
            Some(UiCommand::SendPrompt) if list.kind == CompletionListKind::SlashCommand => {
                if !list.query.is_empty() {
                    self.accept_completion(cx);
                }
            }
            Some(UiCommand::DeleteLeft) if is_history => {
                let mut query = list.query.clone();
                query.truncate(cursor::cluster_left(&query, query.len()));
                self.completion.search_history(query, &self.history);
            }
            Some(UiCommand::DeleteWordLeft | UiCommand::DeleteToStart) if is_history => {
                self.completion.search_history(String::new(), &self.history);
            }
            None if is_history => {
                let query = list.query.clone() + &String::from(cursor::typed_char(key)?);
                self.completion.search_history(query, &self.history);
            }
            Some(UiCommand::Escape) => return None,
            // Ignore edits of a text that is not shown.
            Some(command) if is_history && self.is_edit_command(command) => {}
            Some(_) | None => return None,
        }
        Some(PromptAction::Handled)
    }

    fn is_edit_command(&self, command: UiCommand) -> bool {
        crate::keys::COMMAND_TABLE
            .iter()
            .any(|entry| entry.command == command && entry.scope == KeyScope::Prompt)
    }

    /// Inserts the selected completion in place of the text from `replacement_start`.
    fn accept_completion(&mut self, cx: &mut UiContext<'_>) {
        let Some(choice) = self.completion.selected() else { return };
        let name = choice.entry.name.clone();
        let gap =
            if self.buffer.text_after_cursor().starts_with(char::is_whitespace) { "" } else { " " };
        match choice.entry.kind {
            CompletionKind::File | CompletionKind::Agent => {
                let quote = if name.contains(char::is_whitespace) { "\"" } else { "" };
                let text = format!("@{quote}{name}{quote}{gap}");
                self.buffer.replace(
                    self.completion.replacement_start(),
                    self.buffer.cursor(),
                    &text,
                );
            }
            CompletionKind::BuiltinCommand(_) | CompletionKind::CustomCommand => {
                let raw = self.buffer.raw_text();
                let end = raw.find(char::is_whitespace).unwrap_or(raw.len());
                self.buffer.replace(0, end, &format!("/{name}"));
                if self.buffer.text_after_cursor().is_empty() {
                    self.buffer.insert(" ");
                }
            }
            CompletionKind::PastPrompt => {
                if let Some(prompt) = self.history.last_with_text(&name, |_| true) {
                    self.buffer.restore(&prompt.content);
                }
            }
        }
        self.completion.close();
        self.start_draft();
        self.completion.update(&self.buffer, CompletionOpenPolicy::Suppressed, cx);
    }

    /// Updates the prompt mark: it shows the first character in place of the text if that selects a
    /// mode.
    fn update_prefix(&mut self) {
        match self.mode_prefix() {
            Some(_) => self.buffer.hide_prefix(),
            None => self.buffer.show_prefix(),
        }
    }

    /// Returns the first character if it decides the effect of Enter (`!` or `/`).
    fn mode_prefix(&self) -> Option<char> {
        let raw = self.buffer.raw_text();
        if raw.starts_with('!') {
            return Some('!');
        }
        let name = command_name(raw)?;
        let cache = &self.completion.cache;
        let name_is_complete = raw.len() > name.len() + 1;
        let is_command = match name_is_complete {
            true => cache.command_kind(name).is_some(),
            false => cache.is_command_prefix(name),
        };
        is_command.then_some('/')
    }

    /// Turns the current text into a draft, and resets the goal column.
    fn start_draft(&mut self) {
        self.history.stop_browsing();
        self.goal_column = None;
    }

    /// Runs an editing or cursor command; returns false for other commands.
    fn apply_edit(&mut self, command: UiCommand, cx: &mut UiContext<'_>) -> bool {
        let (text, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
        match command {
            UiCommand::Newline => self.buffer.insert("\n"),
            // `App` runs these, as if the user had typed them after `/`.
            UiCommand::OpenEditor | UiCommand::PasteImage => cx.push_command(command),
            UiCommand::Left => self.buffer.move_cursor(cursor::cluster_left(text, cursor)),
            UiCommand::Right => self.buffer.move_cursor(cursor::cluster_right(text, cursor)),
            UiCommand::WordLeft => self.buffer.move_cursor(cursor::word_left(text, cursor)),
            UiCommand::WordRight => self.buffer.move_cursor(cursor::word_right(text, cursor)),
            UiCommand::LineStart => self.buffer.move_cursor(cursor::line_start(text, cursor)),
            UiCommand::LineEnd => self.buffer.move_cursor(cursor::line_end(text, cursor)),
            UiCommand::DeleteLeft => self.buffer.delete(DeleteRange::Left),
            UiCommand::DeleteRight => self.buffer.delete(DeleteRange::Right),
            UiCommand::DeleteWordLeft => self.buffer.delete(DeleteRange::WordLeft),
            UiCommand::DeleteWordRight => self.buffer.delete(DeleteRange::WordRight),
            UiCommand::DeleteToStart => self.buffer.delete(DeleteRange::LineStart),
            UiCommand::DeleteToEnd => self.buffer.delete(DeleteRange::LineEnd),
            UiCommand::Yank => self.buffer.yank(),
            UiCommand::UndoEdit => self.buffer.undo(),
            _ => return false,
        }
        true
    }

    /// Moves up a row; on the first row, shows the previous prompt. If the prompt is empty,
    /// withdraws the last queued prompt for editing.
    fn move_up(&mut self, cx: &mut UiContext<'_>) {
        if self.is_empty()
            && !self.history.is_browsing()
            && let Some(prompt) = cx.state.queued_prompts.last()
        {
            cx.send_op(SessionOp::WithdrawPrompt { prompt: prompt.id });
            self.buffer.restore(&self.sent_content(&prompt.text, &prompt.attachments));
            return;
        }
        if self.history.is_browsing() || !self.move_row(VerticalDirection::Up) {
            self.request_older_prompts(cx);
            match self.history.older_prompt(self.buffer.content()) {
                Some(past_prompt) => self.buffer.restore(&past_prompt),
                None if self.history.is_browsing() => {}
                None => {
                    self.buffer.move_cursor(0);
                    if let PromptHistoryLoadState::Requested { show_when_loaded, .. } =
                        &mut self.older_prompts
                    {
                        *show_when_loaded = self.buffer.raw_text().is_empty();
                    }
                }
            }
        }
    }

    /// Requests the earlier prompts of this folder with `SessionQuery::Prompts`, once.
    fn request_older_prompts(&mut self, cx: &mut UiContext<'_>) {
        if self.older_prompts == PromptHistoryLoadState::NotRequested {
            let id = cx.send_query(SessionQuery::Prompts { session: None, limit: Some(200) });
            self.older_prompts =
                PromptHistoryLoadState::Requested { request_id: id, show_when_loaded: false };
        }
    }

    fn on_older_prompts(&mut self, response: &Result<HostResponse, Fault>) {
        let show_when_loaded = matches!(
            self.older_prompts,
            PromptHistoryLoadState::Requested { show_when_loaded: true, .. }
        );
        self.older_prompts = PromptHistoryLoadState::Loaded;
        if let Ok(HostResponse::Reply { reply: QueryReply::Prompts { prompts } }) = response {
            let to_past_prompt = |row: &PromptHistoryRow| {
                let text = paste::clean_paste(&row.text);
                let content = TextWithChips::from_sent(&text, &row.attachments);
                PastPrompt { text, content }
            };
            self.history.prepend_older(prompts.iter().rev().map(to_past_prompt));
        }
        if let Some(list) = &self.completion.list
            && list.kind == CompletionListKind::History
        {
            self.completion.search_history(list.query.clone(), &self.history);
        } else if show_when_loaded
            && self.is_empty()
            && let Some(past_prompt) = self.history.older_prompt(TextWithChips::default())
        {
            self.buffer.restore(&past_prompt);
        }
    }

    /// Moves down a row; while browsing the history, shows the next prompt.
    fn move_down(&mut self) {
        if self.history.is_browsing() {
            if let Some(past_prompt) = self.history.newer_prompt() {
                self.buffer.restore(&past_prompt);
            }
        } else if !self.move_row(VerticalDirection::Down) {
            self.buffer.move_cursor(self.buffer.raw_text().len());
        }
    }

    /// Moves the cursor a row up or down; returns false if there is none.
    fn move_row(&mut self, direction: VerticalDirection) -> bool {
        let rows = wrapped_rows::wrap_rows(&self.buffer, self.text_columns);
        let (row, column) = wrapped_rows::cursor_position(&self.buffer, &rows, self.text_columns);
        let goal = self.goal_column.unwrap_or(column);
        let next_row = match direction {
            VerticalDirection::Up => row.checked_sub(1),
            VerticalDirection::Down => Some(row + 1),
        };
        let offset = next_row.and_then(|next_row| {
            wrapped_rows::offset_at_column(&self.buffer, &rows, (next_row, goal), self.text_columns)
        });
        if let Some(offset) = offset {
            self.buffer.move_cursor(offset);
            self.goal_column = Some(goal);
        }
        offset.is_some()
    }

    /// Returns the text as it would be sent.
    pub fn text(&self) -> String {
        self.buffer.expanded_text()
    }

    /// Replaces the text, after `clean_paste`.
    pub fn set_text(&mut self, text: &str) {
        self.pending_delivery = None;
        // Ctrl-C during a history search returns to the draft.
        let closed_search = self.is_searching_history() && self.completion.close();
        if closed_search && text.is_empty() {
            return;
        }
        self.start_draft();
        self.completion.list = None;
        self.buffer.set_text(&paste::clean_paste(text));
        self.update_prefix();
    }

    fn is_searching_history(&self) -> bool {
        self.completion.list.as_ref().is_some_and(|list| list.kind == CompletionListKind::History)
    }

    /// Returns true if a list with choices is open above the prompt.
    pub fn has_open_list(&self) -> bool {
        let list = self.completion.list.as_ref();
        list.is_some_and(|list| !list.rows.is_empty() || list.kind == CompletionListKind::History)
    }

    /// Returns true if there is no text and no history search.
    pub fn is_empty(&self) -> bool {
        self.buffer.raw_text().is_empty() && !self.is_searching_history()
    }

    /// Closes the list above the prompt; returns false if none is open.
    pub fn close_list(&mut self) -> bool {
        self.completion.close()
    }

    /// Sets the height of the screen; the prompt takes at most a third of it.
    pub fn set_screen_rows(&mut self, rows: u16) {
        self.screen_rows = rows;
    }

    /// Returns the height of the prompt, including an open list.
    pub fn height(&self, width: u16, appearance: &Appearance) -> u16 {
        let notice_rows = u16::try_from(self.notice_rows(width, appearance).len()).unwrap_or(0);
        self.text_height(width).saturating_add(self.list_height()).saturating_add(notice_rows)
    }
}
