//! Submission of the prompt with Enter.

use super::buffer::DeleteRange;
use super::chips::TextWithChips;
use super::completion_cache::CompletionKind;
use super::history::PastPrompt;
use super::slash_command::command_name;
use super::{PendingAttachment, PromptAction, PromptEditor, Submission, paste};
use crate::ui_context::UiContext;
use windlass_protocol::frontend_messages::ListedItemKind;
use windlass_protocol::{Attachment, PromptDelivery, PromptSettings};

impl PromptEditor {
    /// Returns a submission that waited for missing data, once the data is here.
    pub fn take_due_submission(&mut self, cx: &mut UiContext<'_>) -> Option<Submission> {
        let delivery = self.pending_delivery.take()?;
        self.notice = None;
        match self.submit(delivery, cx) {
            PromptAction::Submit(submission) => Some(submission),
            PromptAction::Handled | PromptAction::Ignored => None,
        }
    }

    /// Submits a prompt as if the user had typed it, so that the files it mentions are read. It is
    /// never a command: the spaces around it hide a `!` or `/` at its start and a `\` at its end.
    pub fn submit_text(&mut self, text: &str, cx: &mut UiContext<'_>) -> PromptAction {
        let text = text.trim();
        let indent = if text.starts_with(['!', '/']) { " " } else { "" };
        let end = if text.ends_with('\\') { " " } else { "" };
        self.set_text(&format!("{indent}{text}{end}"));
        self.submit(PromptDelivery::Steer, cx)
    }

    /// Submits the text. A trailing `\` inserts a line break instead.
    pub(super) fn submit(
        &mut self,
        delivery: PromptDelivery,
        cx: &mut UiContext<'_>,
    ) -> PromptAction {
        let raw = self.buffer.raw_text();
        let backslashes = raw.chars().rev().take_while(|character| *character == '\\').count();
        if delivery == PromptDelivery::Steer
            && backslashes % 2 == 1
            && self.buffer.text_after_cursor().is_empty()
        {
            // The shell interprets the backslash itself, so keep it.
            if !raw.starts_with('!') {
                self.buffer.delete(DeleteRange::Left);
            }
            self.buffer.insert("\n");
            self.start_draft();
            return PromptAction::Handled;
        }
        if self
            .pending_chips
            .values()
            .any(|pending_chip| *pending_chip == PendingAttachment::ClipboardImage)
        {
            self.submit_later("waiting for the image", delivery);
            return PromptAction::Handled;
        }
        let Some(submission) = self.build_submission(delivery, cx) else {
            return PromptAction::Handled;
        };
        let text = self.buffer.expanded_text().trim_end().to_owned();
        let mut content = self.buffer.content();
        content.text.truncate(content.text.trim_end().len());
        self.history.push(PastPrompt { text, content });
        self.buffer.clear();
        self.vim.reset();
        self.pending_chips.clear();
        (self.preparation, self.confirmed_text) = Default::default();
        self.completion.close();
        (self.top_row, self.goal_column) = (0, None);
        PromptAction::Submit(submission)
    }

    /// Postpones the submission until the missing data arrives.
    pub(super) fn submit_later(&mut self, notice: &str, delivery: PromptDelivery) {
        (self.notice, self.pending_delivery) = (Some(notice.to_owned()), Some(delivery));
    }

    /// Builds the `Submission` for the current text; returns `None` if it is empty or has to wait.
    fn build_submission(
        &mut self,
        delivery: PromptDelivery,
        cx: &mut UiContext<'_>,
    ) -> Option<Submission> {
        let expanded = self.buffer.expanded_text();
        let mut text = expanded.trim_end().trim_start_matches('\n').to_owned();
        if let Some(command) = text.strip_prefix('!') {
            let command = command.trim().to_owned();
            return (!command.is_empty()).then_some(Submission::ShellCommand(command));
        }
        let is_name = |name: &str| !name.is_empty();
        if let Some(escaped) = text.strip_prefix('/')
            && command_name(escaped).is_some_and(is_name)
        {
            // `//name` sends `/name` as text.
            text = escaped.to_owned();
        } else if let Some(name) = command_name(&text).filter(|name| is_name(name)) {
            let arguments = text.get(name.len() + 1..).unwrap_or_default().trim().to_owned();
            let cache = &mut self.completion.cache;
            match cache.command_kind(name) {
                Some(CompletionKind::BuiltinCommand(command)) => {
                    return Some(Submission::BuiltinCommand(command, arguments));
                }
                Some(CompletionKind::CustomCommand) => {
                    return Some(Submission::CustomCommand { name: name.to_owned(), arguments });
                }
                Some(CompletionKind::File | CompletionKind::Agent | CompletionKind::PastPrompt) => {
                }
                None if !cache.is_loaded(ListedItemKind::Commands) => {
                    cache.request_list(ListedItemKind::Commands, cx);
                    self.submit_later("loading your commands", delivery);
                    return None;
                }
                // A mistyped command must not cost a request.
                None if self.confirmed_text.as_deref() != Some(&text) => {
                    let tip = cache.unknown_command_tip(name).map(|tip| format!(" {tip}"));
                    self.notice = Some(format!(
                        "Unknown command /{name}.{} Press Enter again to send it as text.",
                        tip.unwrap_or_default()
                    ));
                    self.confirmed_text = Some(text);
                    self.completion.close();
                    return None;
                }
                None => {}
            }
        }
        if text.trim().is_empty() {
            return None;
        }
        let mentioned_files = self.prepare_prompt(delivery, cx)?;
        let mut attachments = self.buffer.attachments();
        attachments.extend(mentioned_files);
        Some(Submission::Prompt {
            text,
            attachments,
            delivery,
            settings: PromptSettings::default(),
        })
    }

    /// Restores a submitted prompt with its attachments.
    pub fn restore(&mut self, text: &str, files: &[Attachment]) {
        self.pending_delivery = None;
        self.start_draft();
        self.completion.list = None;
        self.buffer.restore(&self.sent_content(text, files));
        self.update_prefix();
    }

    /// Returns a submitted prompt for the buffer: as it was written if it is in the history with
    /// the same files. Two prompts may have the same text, since all images of the clipboard have
    /// the same name.
    pub(super) fn sent_content(&self, text: &str, files: &[Attachment]) -> TextWithChips {
        match self.history.last_with_text(text, |content| content.has_sent_files(files)) {
            Some(prompt) => prompt.content.clone(),
            None => TextWithChips::from_sent(&paste::clean_paste(text), files),
        }
    }
}
