//! The form for an OpenAI-compatible server that the catalog does not know: its name, URL, API key
//! and model. The host writes it to the user's config.

use super::api_key_form::describe_saved;
use crate::keys::{KeyScope, UiCommand};
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

/// The labels of the fields, and what to write.
const FIELDS: [(&str, &str); 4] = [
    ("Name", "a short name for your config, such as `work`"),
    ("URL", "the base URL, such as https://models.example.com/v1"),
    ("API key", "hidden; leave empty if the server needs none"),
    ("Model", "leave empty to ask the server for its models"),
];
/// The width of a label with its gap.
const LABEL_COLUMNS: usize = 9;

/// State of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProviderForm {
    fields: [TextInput; 4],
    focused: usize,
    save_request: Option<u64>,
    /// The reason why nothing was saved.
    problem: Option<String>,
    /// The result for the user, once the server is saved.
    saved: Option<String>,
}

impl ProviderForm {
    pub(super) fn new() -> ProviderForm {
        let [name, url, model] = [(); 3].map(|()| TextInput::default());
        ProviderForm {
            fields: [name, url, TextInput::masked(), model],
            focused: 0,
            save_request: None,
            problem: None,
            saved: None,
        }
    }

    /// Returns the result for the user once the server is saved.
    pub(super) fn saved_message(&self) -> Option<&str> {
        self.saved.as_deref()
    }

    /// Handles a key press; Enter goes to the next field, and saves from the last one.
    pub(super) fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) {
        if self.save_request.is_some() {
            return;
        }
        let last = self.fields.len() - 1;
        match (key.code, cx.appearance.key_map.command_for(KeyScope::Panel, key)) {
            (KeyCode::Enter, _) if self.focused == last => self.save(cx),
            (KeyCode::Enter | KeyCode::Tab, _) | (_, Some(UiCommand::RowDown)) => {
                self.focused = (self.focused + 1).min(last);
            }
            (KeyCode::BackTab, _) | (_, Some(UiCommand::RowUp)) => {
                self.focused = self.focused.saturating_sub(1);
            }
            _ => {
                if let Some(input) = self.fields.get_mut(self.focused) {
                    input.on_key(key, cx.appearance);
                }
            }
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) {
        if let Some(input) = self.fields.get_mut(self.focused) {
            input.insert(text.trim());
        }
    }

    fn save(&mut self, cx: &mut UiContext<'_>) {
        let [name, base_url, key, model] =
            self.fields.each_ref().map(|field| field.text().trim().to_owned());
        if name.is_empty() || base_url.is_empty() {
            self.problem = Some("A name and a URL are needed.".to_owned());
            self.focused = usize::from(!name.is_empty());
            return;
        }
        let request = FrontendRequest::AddProvider { name, base_url, key: ProviderKey(key), model };
        self.problem = None;
        self.save_request = Some(cx.send_request(request));
    }

    /// Handles the response to the save request; returns false if `id` is not its own.
    pub(super) fn on_response(&mut self, id: u64, response: &Result<HostResponse, Fault>) -> bool {
        if self.save_request.take_if(|request| *request == id).is_none() {
            return false;
        }
        let [name, ..] = self.fields.each_ref().map(|field| field.text().trim().to_owned());
        match response {
            Err(fault) => self.problem = Some(crate::error_hints::describe(fault)),
            Ok(HostResponse::Login { result: LoginResult::Rejected { reason } }) => {
                self.problem = Some(format!("Not saved: {reason}"));
            }
            Ok(HostResponse::Login { result: LoginResult::Saved }) => {
                self.saved = Some(format!("Added {name} to your config"));
            }
            Ok(HostResponse::Login { result }) => {
                self.saved = Some(describe_saved(&name, result));
            }
            Ok(_) => {}
        }
        true
    }

    /// Renders the rows above the choices, and returns the cursor as column and row.
    pub(super) fn render(
        &self,
        width: usize,
        appearance: &Appearance,
    ) -> (Vec<SafeLine>, Option<(usize, usize)>) {
        let wrapped_text = |role, text: &str| {
            let row = SafeLine::styled(appearance.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), WrapMode::Words, 1)
        };
        let mut rows = wrapped_text(StyleRole::Text, "Add an OpenAI-compatible server.");
        rows.push(SafeLine::default());
        let mut cursor = None;
        for (index, ((label, hint), input)) in FIELDS.iter().zip(&self.fields).enumerate() {
            let is_focused = index == self.focused;
            let pointer = match (is_focused, appearance.ascii) {
                (true, false) => " › ",
                (true, true) => " > ",
                (false, _) => "   ",
            };
            let mut row = SafeLine::styled(appearance.style(StyleRole::Accent), pointer);
            let role = if is_focused { StyleRole::Strong } else { StyleRole::Text };
            row.push_text(appearance.style(role), &format!("{label:<LABEL_COLUMNS$}"));
            let start = row.width();
            let (input_row, column) = input.render(width.saturating_sub(start), appearance);
            input_row.spans().for_each(|(style, text)| row.push_text(style, text));
            if is_focused {
                cursor = Some((start + column, rows.len()));
            }
            if input.text().is_empty() {
                row.push_text(appearance.style(StyleRole::Dim), &format!(" {hint}"));
            }
            rows.push(wrap::truncate(&row, width, appearance));
        }
        if self.save_request.is_some() {
            rows.push(SafeLine::default());
            rows.extend(wrapped_text(StyleRole::Dim, "Asking the server for its models"));
        }
        if let Some(problem) = &self.problem {
            rows.push(SafeLine::default());
            rows.extend(wrapped_text(StyleRole::Error, problem));
        }
        (rows, cursor)
    }
}
