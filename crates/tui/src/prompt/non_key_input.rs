//! Prompt input other than keys: pastes, images, and responses to its requests.

use super::chips::{PromptChip, TextWithChips};
use super::completion::{CompletionListKind, CompletionOpenPolicy};
use super::{PendingAttachment, PromptEditor, PromptHistoryLoadState, cursor, paste};
use crate::ui_context::UiContext;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::prompt_mentions::mentions;
use windlass_protocol::{Event, Fact, Fault};

impl PromptEditor {
    /// Handles pasted text; a history search takes it as its query.
    pub fn on_paste(&mut self, text: &str, cx: &mut UiContext<'_>) {
        (self.notice, self.pending_delivery) = (None, None);
        let text = paste::clean_paste(text);
        if let Some(list) =
            self.completion.list.as_ref().filter(|list| list.kind == CompletionListKind::History)
        {
            let query = list.query.clone() + text.lines().next().unwrap_or_default();
            self.completion.search_history(query, &self.history);
            return;
        }
        self.start_draft();
        self.insert_paste(text, cx);
        self.completion.update(&self.buffer, CompletionOpenPolicy::Suppressed, cx);
        self.update_prefix();
    }

    fn insert_paste(&mut self, text: String, cx: &mut UiContext<'_>) {
        if let Some(path) = paste::parse_file_path(&text) {
            let id = cx.send_request(FrontendRequest::AttachFile { path });
            self.buffer.insert(text.trim());
            self.pending_chips.insert(id, PendingAttachment::FilePath(text.trim().to_owned()));
            return;
        }
        let (raw, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
        let chip_start = cursor::cluster_left(raw, cursor);
        let previous_chip =
            raw.get(chip_start..cursor).and_then(|cluster| self.buffer.chip_for(cluster));
        let is_repeated =
            matches!(previous_chip, Some(PromptChip::PastedText(pasted)) if *pasted == text);
        if is_repeated && text.len() <= paste::MAX_EXPANDED_CHARS {
            let content = TextWithChips::from_paste(&text);
            self.buffer.replace_with_content(chip_start, cursor, &content);
        } else if !paste::is_long(&text)
            || !self.buffer.insert_chip(PromptChip::PastedText(text.clone()))
        {
            let is_single_mention =
                text.trim().starts_with('@') && !text.trim().contains(char::is_whitespace);
            match is_single_mention || mentions(&text).is_empty() {
                true => self.buffer.insert(&text),
                false => {
                    let content = TextWithChips::from_paste(&text);
                    self.buffer.replace_with_content(cursor, cursor, &content);
                }
            }
        }
    }

    /// Sends an image from the clipboard to the host for storage (`FrontendRequest::PutBlob`).
    pub fn on_clipboard_image(&mut self, bytes: &[u8], cx: &mut UiContext<'_>) {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.encode(bytes);
        let id =
            cx.send_request(FrontendRequest::PutBlob { name: "clipboard.png".to_owned(), bytes });
        self.pending_chips.insert(id, PendingAttachment::ClipboardImage);
    }

    /// Handles an event of the session: after a call, the project may have other files.
    pub fn on_event(&mut self, event: &Event) {
        if let Event::Fact(record) = event
            && let Fact::CallSettled { .. } | Fact::TurnEnded { .. } = &record.fact
        {
            self.completion.cache.expire_files();
        }
    }

    /// Handles a response; returns false if `id` is not its own.
    pub fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let rows = match response {
            Ok(HostResponse::Rows { rows }) => Some(rows.as_slice()),
            Ok(_) | Err(_) => None,
        };
        if let PromptHistoryLoadState::Requested { request_id, .. } = self.older_prompts
            && request_id == id
        {
            self.on_older_prompts(response);
            self.update_prefix();
            return true;
        }
        if self.on_prepared(id, response) {
            return true;
        }
        if self.completion.on_response(id, rows, cx) {
            self.update_prefix();
            return true;
        }
        let Some(pending_chip) = self.pending_chips.remove(&id) else { return false };
        match (pending_chip, response) {
            (PendingAttachment::ClipboardImage, Ok(HostResponse::BlobStored { attachment })) => {
                self.start_draft();
                self.buffer.insert_chip(PromptChip::AttachedFile(attachment.clone()));
            }
            (PendingAttachment::FilePath(text), Ok(HostResponse::BlobStored { attachment })) => {
                if let Some(start) = self.buffer.raw_text().find(&text) {
                    self.start_draft();
                    let chip = PromptChip::AttachedFile(attachment.clone());
                    self.buffer.replace_with_chip(start, start + text.len(), chip);
                }
            }
            (PendingAttachment::ClipboardImage, Err(fault)) => {
                // Do not send the prompt without its attachment.
                (self.notice, self.pending_delivery) = (Some(fault.to_string()), None);
            }
            // The host could not attach the file; the path stays text.
            (PendingAttachment::FilePath(_), Err(_)) | (_, Ok(_)) => {}
        }
        self.update_prefix();
        true
    }
}
