//! The API key form: the input is masked, the host stores the key, and it is never shown again.

use crate::safe_line::SafeLine;
use crate::text_input::TextInput;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap::{self, WrapMode};
use crossterm::event::{KeyCode, KeyEvent};
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{FrontendRequest, ProviderKey};

/// State of the API key form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ApiKeyForm {
    Editing {
        provider: String,
        /// The masked key.
        text_input: TextInput,
        /// The pending `FrontendRequest::Login` that saves the key.
        save_request: Option<u64>,
        /// The reason the last save failed.
        fault: Option<Fault>,
    },
    Saved {
        provider: String,
    },
}

impl ApiKeyForm {
    /// Creates the form for the API key of `provider`.
    pub(super) fn new(provider: &str) -> ApiKeyForm {
        ApiKeyForm::Editing {
            provider: provider.to_owned(),
            text_input: TextInput::masked(),
            save_request: None,
            fault: None,
        }
    }

    /// Handles a key press; Enter saves.
    pub(super) fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) {
        let ApiKeyForm::Editing { provider, text_input, save_request, fault } = self else {
            return;
        };
        if key.code == KeyCode::Enter {
            let text = text_input.text().trim().to_owned();
            if !text.is_empty() && save_request.is_none() {
                let request =
                    FrontendRequest::Login { provider: provider.clone(), key: ProviderKey(text) };
                (*save_request, *fault) = (Some(cx.send_request(request)), None);
            }
        } else {
            text_input.on_key(key, cx.appearance);
        }
    }

    /// Inserts pasted text. Nothing is sent before Enter.
    pub(super) fn on_paste(&mut self, text: &str) {
        if let ApiKeyForm::Editing { text_input, .. } = self {
            text_input.insert(text.trim());
        }
    }

    /// Handles the response to the save request; returns false if `id` is not its own.
    pub(super) fn on_response(&mut self, id: u64, new_fault: Option<&Fault>) -> bool {
        let ApiKeyForm::Editing { provider, save_request, fault, text_input } = self else {
            return false;
        };
        if *save_request != Some(id) {
            return false;
        }
        match new_fault {
            Some(new_fault) => {
                (*save_request, *fault) = (None, Some(new_fault.clone()));
                *text_input = TextInput::masked();
            }
            None => *self = ApiKeyForm::Saved { provider: std::mem::take(provider) },
        }
        true
    }

    /// Renders the rows above the choices as `SafeLine`s, and returns the cursor as column and row.
    pub(super) fn render(
        &self,
        width: usize,
        appearance: &Appearance,
    ) -> (Vec<SafeLine>, Option<(usize, usize)>) {
        let ApiKeyForm::Editing { provider, text_input, save_request, fault } = self else {
            return (Vec::new(), None);
        };
        let wrapped_text = |role, text: &str| {
            let row = SafeLine::styled(appearance.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), WrapMode::Words, 1)
        };
        let text = "Paste it here (hidden). Stored on this machine; sent only to the provider.";
        let mut rows = wrapped_text(StyleRole::Text, &format!("API key for {provider}."));
        rows.extend(wrapped_text(StyleRole::Dim, text));
        rows.push(SafeLine::default());
        let mut row = SafeLine::styled(
            appearance.style(StyleRole::Accent),
            if appearance.ascii { " > " } else { " › " },
        );
        let start = row.width();
        let (input_row, column) = text_input.render(width.saturating_sub(start), appearance);
        input_row.spans().for_each(|(style, text)| row.push_text(style, text));
        let cursor = (start + column, rows.len());
        rows.push(row);
        if save_request.is_some() {
            rows.extend(wrapped_text(StyleRole::Dim, "Saving the key"));
        }
        if let Some(fault) = fault {
            rows.extend(wrapped_text(StyleRole::Error, &crate::error_hints::describe(fault)));
        }
        (rows, Some(cursor))
    }
}
