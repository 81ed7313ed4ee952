//! The check of a prompt before it is sent: the host reads the files that it mentions, and says which
//! attachments the model would not get.

use super::PromptEditor;
use super::chips::typed_text;
use crate::ui_context::UiContext;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::prompt_mentions::mentions;
use windlass_protocol::{Attachment, Fault, PromptDelivery};

/// The state of the check (`FrontendRequest::PreparePrompt`).
#[derive(Debug, Default)]
pub(super) struct PromptPreparation {
    /// The pending request, and the checked text.
    pending: Option<(u64, String)>,
    /// The checked text and the result for it.
    checked: Option<(String, Vec<Attachment>, Vec<String>)>,
}

impl PromptEditor {
    /// Returns the contents of the mentioned files. Returns `None` if the prompt has to wait for
    /// the host, or for the user to read a warning.
    pub(super) fn prepare_prompt(
        &mut self,
        delivery: PromptDelivery,
        cx: &mut UiContext<'_>,
    ) -> Option<Vec<Attachment>> {
        let (text, attachments) = (self.typed_text(), self.buffer.attachments());
        if attachments.is_empty() && mentions(&text).is_empty() {
            return Some(Vec::new());
        }
        match self.preparation.checked.take() {
            Some((checked, files, warnings)) if checked == text => {
                if warnings.is_empty() || self.confirmed_text.as_ref() == Some(&text) {
                    return Some(files);
                }
                let warnings = warnings.join(" ");
                self.notice = Some(format!("{warnings} Press Enter again to send the prompt."));
                self.confirmed_text = Some(text);
                return None;
            }
            Some(_) | None => {}
        }
        if self.preparation.pending.as_ref().is_none_or(|(_, pending)| *pending != text) {
            let request =
                FrontendRequest::PreparePrompt { text: text.clone(), attachments, model: None };
            self.preparation.pending = Some((cx.send_request(request), text));
        }
        self.submit_later("reading the files", delivery);
        None
    }

    /// Handles the response of the host; returns false if `id` is not its own.
    pub(super) fn on_prepared(&mut self, id: u64, response: &Result<HostResponse, Fault>) -> bool {
        let Some((_, text)) = self.preparation.pending.take_if(|(pending, _)| *pending == id)
        else {
            return false;
        };
        match response {
            Ok(HostResponse::PreparedPrompt { attachments, warnings }) => {
                self.preparation.checked = Some((text, attachments.clone(), warnings.clone()));
            }
            Ok(_) => {}
            // Do not send the prompt without its files.
            Err(fault) => (self.notice, self.pending_delivery) = (Some(fault.to_string()), None),
        }
        true
    }

    /// Returns the text without pasted blocks: a mention in one of them is not the user's.
    fn typed_text(&self) -> String {
        typed_text(self.buffer.raw_text().trim_end())
    }
}
