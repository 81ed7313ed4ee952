//! The API key form: the input is masked, the host checks and stores the key, and it is never shown
//! again.

use crate::safe_line::SafeLine;
use crate::text_input::TextInput;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap::{self, WrapMode};
use crossterm::event::{KeyCode, KeyEvent};
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, LoginResult, ProviderKey,
};

/// State of the API key form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ApiKeyForm {
    Editing {
        provider: String,
        /// The provider's name for people.
        display_name: String,
        /// The masked key.
        text_input: TextInput,
        /// The pending `FrontendRequest::Login` that checks and saves the key.
        save_request: Option<u64>,
        /// The reason why the provider rejects the key. Enter saves it anyway; the next character
        /// begins another key.
        rejection: Option<String>,
        /// The reason the last save failed.
        fault: Option<Fault>,
    },
    Saved {
        /// The result for the user.
        message: String,
    },
}

impl ApiKeyForm {
    /// Creates the form for the API key of `provider`.
    pub(super) fn new(provider: &str, display_name: &str) -> ApiKeyForm {
        ApiKeyForm::Editing {
            provider: provider.to_owned(),
            display_name: display_name.to_owned(),
            text_input: TextInput::masked(),
            save_request: None,
            rejection: None,
            fault: None,
        }
    }

    /// Handles a key press; Enter saves.
    pub(super) fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) {
        let ApiKeyForm::Editing { provider, text_input, save_request, rejection, fault, .. } = self
        else {
            return;
        };
        if save_request.is_some() {
            return;
        }
        if key.code == KeyCode::Enter {
            let text = text_input.text().trim().to_owned();
            if !text.is_empty() {
                let request = FrontendRequest::Login {
                    provider: provider.clone(),
                    key: ProviderKey(text),
                    save_rejected: rejection.take().is_some(),
                };
                (*save_request, *fault) = (Some(cx.send_request(request)), None);
            }
            return;
        }
        if matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace) && rejection.take().is_some() {
            *text_input = TextInput::masked();
        }
        text_input.on_key(key, cx.appearance);
    }

    /// Inserts pasted text. Nothing is sent before Enter.
    pub(super) fn on_paste(&mut self, text: &str) {
        if let ApiKeyForm::Editing { text_input, save_request: None, rejection, .. } = self {
            if rejection.take().is_some() {
                *text_input = TextInput::masked();
            }
            text_input.insert(text.trim());
        }
    }

    /// Handles the response to the save request; returns false if `id` is not its own.
    pub(super) fn on_response(&mut self, id: u64, response: &Result<HostResponse, Fault>) -> bool {
        let ApiKeyForm::Editing {
            display_name, save_request, rejection, fault, text_input, ..
        } = self
        else {
            return false;
        };
        if save_request.take_if(|request| *request == id).is_none() {
            return false;
        }
        match response {
            Err(new_fault) => {
                *fault = Some(new_fault.clone());
                *text_input = TextInput::masked();
            }
            Ok(HostResponse::Login { result: LoginResult::Rejected { reason } }) => {
                *rejection = Some(reason.clone());
            }
            Ok(HostResponse::Login { result }) => {
                *self = ApiKeyForm::Saved { message: describe_saved(display_name, result) };
            }
            Ok(_) => {
                *self = ApiKeyForm::Saved { message: format!("API key for {display_name} saved") };
            }
        }
        true
    }

    /// Renders the rows above the choices as `SafeLine`s, and returns the cursor as column and row.
    pub(super) fn render(
        &self,
        width: usize,
        appearance: &Appearance,
    ) -> (Vec<SafeLine>, Option<(usize, usize)>) {
        let ApiKeyForm::Editing {
            display_name, text_input, save_request, rejection, fault, ..
        } = self
        else {
            return (Vec::new(), None);
        };
        let wrapped_text = |role, text: &str| {
            let row = SafeLine::styled(appearance.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), WrapMode::Words, 1)
        };
        let text = "Paste it here (hidden). Stored on this machine; sent only to the provider.";
        let mut rows = wrapped_text(StyleRole::Text, &format!("API key for {display_name}."));
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
            rows.extend(wrapped_text(
                StyleRole::Dim,
                "Asking the provider whether the key is valid",
            ));
        }
        if let Some(reason) = rejection {
            rows.push(SafeLine::default());
            rows.extend(wrapped_text(StyleRole::Error, &format!("Not saved: {reason}")));
            let text = "Paste another key, or press Enter to save this one anyway.";
            rows.extend(wrapped_text(StyleRole::Text, text));
        }
        if let Some(fault) = fault {
            rows.extend(wrapped_text(StyleRole::Error, &crate::error_hints::describe(fault)));
        }
        (rows, Some(cursor))
    }
}

/// Describes the result of a login that saved the key.
pub(super) fn describe_saved(name: &str, result: &LoginResult) -> String {
    match result {
        LoginResult::Saved => format!("API key for {name} saved; it is valid"),
        LoginResult::SavedUnchecked { reason } => {
            format!("API key for {name} saved, not checked: {reason}")
        }
        LoginResult::Rejected { reason } => format!("Not saved: {reason}"),
    }
}
