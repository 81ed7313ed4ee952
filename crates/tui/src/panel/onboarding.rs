//! The onboarding panel: finds available providers, lets the user choose a model, and asks for an
//! API key if one is needed. `/login` uses it too, for the key only.

use super::api_key_form::ApiKeyForm;
use super::filter_list::edit_filter;
use super::onboarding_row::{OnboardingRow, name_of};
use super::provider_form::ProviderForm;
use super::{Panel, PanelControlFlow, PanelResult};
use crate::keys::{KeyScope, UiCommand};
use crate::questions::choices::{self, AnswerKeyChoice, KeyFocus};
use crate::questions::draw_page;
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap::{self, WrapMode};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_width::UnicodeWidthStr as _;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, ModelChoiceScope, ProviderListItem,
};

pub use super::onboarding_row::OnboardingPurpose;

/// The prompt suggested after the first model choice.
const SAMPLE_PROMPT: &str = "Explain what this project does and how it is built";

/// Progress of the provider discovery (`FrontendRequest::DiscoverProviders`).
#[derive(Clone, Debug, PartialEq)]
enum ProviderDiscoveryState {
    Searching(u64),
    Found(Vec<ProviderListItem>),
    Failed(Fault),
}

/// The panel for the first run and for `/login`.
#[derive(Debug)]
pub struct OnboardingPanel {
    purpose: OnboardingPurpose,
    state: ProviderDiscoveryState,
    selected_row: usize,
    /// The text that the names of the shown providers contain.
    filter: String,
    login_form: Option<ApiKeyForm>,
    provider_form: Option<ProviderForm>,
    /// The chosen model, and the id of the `SetModel` request.
    chosen_model: Option<(String, u64)>,
    /// The message after a choice that the user was not asked for.
    hint: Option<String>,
    /// The reason the chosen model cannot be used.
    fault: Option<Fault>,
    finished: bool,
    scroll_state: (usize, usize),
}

impl OnboardingPanel {
    /// Opens the panel and starts the provider discovery.
    pub fn new(purpose: OnboardingPurpose, cx: &mut UiContext<'_>) -> OnboardingPanel {
        let state =
            ProviderDiscoveryState::Searching(cx.send_request(FrontendRequest::DiscoverProviders));
        OnboardingPanel {
            purpose,
            state,
            selected_row: 0,
            filter: String::new(),
            login_form: None,
            provider_form: None,
            chosen_model: None,
            hint: None,
            fault: None,
            finished: false,
            scroll_state: (0, 1),
        }
    }

    /// Opens the key form of `provider`, or the provider list if it is empty.
    pub fn open_login(provider: &str, cx: &mut UiContext<'_>) -> OnboardingPanel {
        let mut panel = OnboardingPanel::new(OnboardingPurpose::Login, cx);
        let provider = Some(provider.trim()).filter(|name| !name.is_empty());
        panel.login_form = provider.map(|name| ApiKeyForm::new(name, name));
        panel
    }

    fn providers(&self) -> &[ProviderListItem] {
        match &self.state {
            ProviderDiscoveryState::Found(providers) => providers,
            ProviderDiscoveryState::Searching(_) | ProviderDiscoveryState::Failed(_) => &[],
        }
    }

    /// Returns the rows that the filter shows: ready providers, those that need a key, and the form
    /// for another server. `/login` leaves out servers that need no key.
    fn shown_rows(&self) -> Vec<OnboardingRow<'_>> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let is_shown = |option: &&ProviderListItem| {
            let text =
                format!("{} {} {}", name_of(option), option.provider, option.models.join(" "));
            let text = text.to_lowercase();
            (option.takes_key || self.purpose == OnboardingPurpose::ChooseModel)
                && words.iter().all(|word| text.contains(word.as_str()))
        };
        let mut rows: Vec<OnboardingRow<'_>> =
            self.providers().iter().filter(is_shown).map(OnboardingRow::Provider).collect();
        if matches!(self.state, ProviderDiscoveryState::Found(_)) {
            rows.push(OnboardingRow::OtherServer);
        }
        rows
    }

    /// Returns true if a provider is ready to use.
    fn has_ready_provider(&self) -> bool {
        self.providers().iter().any(|option| option.is_ready)
    }

    fn choose_row(&mut self, cx: &mut UiContext<'_>) {
        let option = match self.shown_rows().get(self.selected_row) {
            None => return,
            Some(OnboardingRow::OtherServer) => {
                self.provider_form = Some(ProviderForm::new());
                return;
            }
            Some(OnboardingRow::Provider(option)) => (*option).clone(),
        };
        match option
            .models
            .first()
            .filter(|_| option.is_ready && self.purpose == OnboardingPurpose::ChooseModel)
        {
            Some(model) if self.chosen_model.is_none() => {
                let request = FrontendRequest::SetModel {
                    model: model.clone(),
                    persist: ModelChoiceScope::Config,
                };
                self.chosen_model = Some((model.clone(), cx.send_request(request)));
                self.fault = None;
            }
            Some(_) => {}
            None => {
                self.login_form = Some(ApiKeyForm::new(&option.provider, name_of(&option)));
            }
        }
    }

    /// Chooses a model without a question if only one provider is ready and it has an API key: that
    /// is the one that the user set up. It is not saved, so a key added later is offered, too. A
    /// local server does not tell which of its models is for code.
    fn choose_only_provider(&mut self, cx: &mut UiContext<'_>) {
        let mut ready = self.providers().iter().filter(|option| option.is_ready);
        let (Some(option), None) = (ready.next(), ready.next()) else { return };
        let (evidence, model) = (option.evidence.clone(), option.models.first().cloned());
        if self.purpose != OnboardingPurpose::ChooseModel || !option.takes_key {
            return;
        }
        let Some(model) = model else { return };
        let persist = ModelChoiceScope::Session;
        let request = FrontendRequest::SetModel { model: model.clone(), persist };
        self.hint = Some(format!("Using {model} ({evidence}); /model chooses another"));
        self.chosen_model = Some((model, cx.send_request(request)));
    }

    fn discover_again(&mut self, cx: &mut UiContext<'_>) {
        let request = cx.send_request(FrontendRequest::DiscoverProviders);
        self.state = ProviderDiscoveryState::Searching(request);
        self.selected_row = 0;
        self.filter.clear();
    }

    /// Continues after a key or a server was saved: `/login` is done, the first run looks again for
    /// what it can use now.
    fn on_saved(&mut self, cx: &mut UiContext<'_>) {
        match self.purpose {
            OnboardingPurpose::Login => self.finished = true,
            OnboardingPurpose::ChooseModel => {
                (self.login_form, self.provider_form) = (None, None);
                self.discover_again(cx);
            }
        }
    }

    /// Renders the rows above the choices, and returns the cursor as column and row, and the row
    /// that must stay visible.
    fn render(
        &self,
        width: usize,
        appearance: &Appearance,
    ) -> (Vec<SafeLine>, Option<(usize, usize)>, usize) {
        let form = match (&self.provider_form, &self.login_form) {
            (Some(form), _) => Some(form.render(width, appearance)),
            (None, Some(form)) => Some(form.render(width, appearance)),
            (None, None) => None,
        };
        if let Some((rows, cursor)) = form {
            return (rows, cursor, cursor.map_or(0, |(_, row)| row));
        }
        let wrapped_text = |role, text: &str| {
            let row = SafeLine::styled(appearance.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), WrapMode::Words, 1)
        };
        let providers = self.providers();
        let ready = self.has_ready_provider();
        let mut rows = Vec::new();
        match (&self.state, self.purpose) {
            (ProviderDiscoveryState::Searching(_), _) => {
                let text = "Looking for API keys in the environment and for local model servers.";
                rows.extend(wrapped_text(StyleRole::Dim, text));
            }
            (ProviderDiscoveryState::Failed(fault), _) => {
                rows.extend(wrapped_text(StyleRole::Error, &crate::error_hints::describe(fault)));
            }
            (ProviderDiscoveryState::Found(_), OnboardingPurpose::Login) => {
                rows.extend(wrapped_text(
                    StyleRole::Text,
                    "Which provider's API key do you want to add?",
                ));
            }
            (ProviderDiscoveryState::Found(_), OnboardingPurpose::ChooseModel) if ready => {
                rows.extend(wrapped_text(StyleRole::Text, "Choose a model."));
            }
            (ProviderDiscoveryState::Found(_), OnboardingPurpose::ChooseModel) => {
                let text = "No model is available yet: no API key found, and no local model \
                            server is running.";
                rows.extend(wrapped_text(StyleRole::Text, text));
                let text = "set a variable such as ANTHROPIC_API_KEY, and start again. Or start \
                            a local server, such as `ollama serve`, and press Ctrl+R.";
                let text = match providers.is_empty() {
                    true => format!("Quit, {text}"),
                    false => {
                        format!("Choose a provider below and enter its API key. Or quit, {text}")
                    }
                };
                rows.extend(wrapped_text(StyleRole::Dim, &text));
            }
        }
        let shown = self.shown_rows();
        if !shown.is_empty() {
            let (role, text) = match self.filter.as_str() {
                "" => (StyleRole::Dim, "type to filter"),
                filter => (StyleRole::Text, filter),
            };
            rows.extend(wrapped_text(role, text));
            rows.push(SafeLine::default());
        }
        let name_width = shown.iter().map(|row| row.name(self.purpose).width()).max();
        let name_width = name_width.unwrap_or_default().min(width / 2);
        let mut focused_row = 0;
        let mut was_ready = None;
        for (index, row) in shown.iter().enumerate() {
            // A blank row separates the ready providers (`is_ready`) from those that need a key.
            if was_ready.is_some_and(|was_ready| was_ready != row.is_ready()) {
                rows.push(SafeLine::default());
            }
            was_ready = Some(row.is_ready());
            if index == self.selected_row {
                focused_row = rows.len();
            }
            rows.push(self.render_row((index, row), name_width, width, appearance));
        }
        if let Some((model, _)) = &self.chosen_model {
            rows.extend(wrapped_text(
                StyleRole::Dim,
                &format!("Checking whether {model} is available"),
            ));
        }
        if let Some(fault) = &self.fault {
            rows.push(SafeLine::default());
            rows.extend(wrapped_text(StyleRole::Error, &crate::error_hints::describe(fault)));
        }
        (rows, None, focused_row)
    }

    fn render_row(
        &self,
        (index, row): (usize, &OnboardingRow<'_>),
        name_width: usize,
        width: usize,
        appearance: &Appearance,
    ) -> SafeLine {
        let is_selected = index == self.selected_row;
        let pointer = match (is_selected, appearance.ascii) {
            (true, false) => " › ",
            (true, true) => " > ",
            (false, _) => "   ",
        };
        let role = if is_selected { StyleRole::Strong } else { StyleRole::Text };
        let name = SafeLine::styled(appearance.style(role), row.name(self.purpose));
        let name = wrap::truncate(&name, name_width, appearance);
        let mut line = SafeLine::styled(appearance.style(StyleRole::Accent), pointer);
        name.spans().for_each(|(style, text)| line.push_text(style, text));
        let gap = " ".repeat(name_width.saturating_sub(name.width()) + 2);
        let role = if row.is_ready() { StyleRole::Success } else { StyleRole::Dim };
        let evidence = match row {
            OnboardingRow::OtherServer => "name, URL and key",
            // Only the selected row names the source of the key; on every row it would be noise.
            OnboardingRow::Provider(option) if is_selected || option.is_ready => &option.evidence,
            OnboardingRow::Provider(option) => {
                option.evidence.split(';').next().unwrap_or_default()
            }
        };
        line.push_text(appearance.style(role), &format!("{gap}{evidence}"));
        wrap::truncate(&line, width, appearance)
    }

    fn render_footer(&self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let mut choices = Vec::new();
        if self.provider_form.is_some() {
            choices.push(AnswerKeyChoice::for_key("Enter", "next field", "next"));
            choices.push(AnswerKeyChoice::for_key("Esc", "go back", "back"));
        } else if self.login_form.is_some() {
            choices.push(AnswerKeyChoice::for_key("Enter", "save", "save"));
            choices.push(AnswerKeyChoice::for_key("Esc", "go back", "back"));
        } else {
            if matches!(self.state, ProviderDiscoveryState::Found(_)) {
                choices.push(AnswerKeyChoice::for_key("Enter", "select", "select"));
            }
            if !matches!(self.state, ProviderDiscoveryState::Searching(_)) {
                choices.push(AnswerKeyChoice::for_key("Ctrl+R", "rescan", "rescan"));
            }
            choices.push(match self.purpose {
                OnboardingPurpose::ChooseModel => AnswerKeyChoice::for_key("Esc", "skip", "skip"),
                OnboardingPurpose::Login => AnswerKeyChoice::for_key("Esc", "close", "close"),
            });
        }
        choices::render_choices(&[("", choices)], width, KeyFocus::Here, appearance)
    }
}

impl Panel for OnboardingPanel {
    fn title(&self) -> String {
        match (self.login_form.is_some() || self.provider_form.is_some(), self.purpose) {
            (true, _) | (false, OnboardingPurpose::Login) => "Log in".to_owned(),
            (false, OnboardingPurpose::ChooseModel) => "Welcome to Windlass".to_owned(),
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if let Some(form) = &mut self.provider_form {
            form.on_key(key, cx);
            return PanelControlFlow::Stay;
        }
        if let Some(login) = &mut self.login_form {
            login.on_key(key, cx);
            return PanelControlFlow::Stay;
        }
        let is_searching = matches!(self.state, ProviderDiscoveryState::Searching(_));
        match cx.appearance.key_map.command_for(KeyScope::Panel, key) {
            Some(UiCommand::RestartRow) if !is_searching => self.discover_again(cx),
            Some(UiCommand::RowUp) => self.selected_row = self.selected_row.saturating_sub(1),
            Some(UiCommand::RowDown) => {
                self.selected_row =
                    (self.selected_row + 1).min(self.shown_rows().len().saturating_sub(1));
            }
            Some(UiCommand::ChooseRow) => self.choose_row(cx),
            _ => {
                if edit_filter(&mut self.filter, key, &cx.appearance.key_map) {
                    self.selected_row = 0;
                }
            }
        }
        PanelControlFlow::Stay
    }

    fn on_escape(&mut self, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let _ = cx;
        if self.provider_form.take().is_some() {
            return PanelControlFlow::Stay;
        }
        match (self.login_form.take(), &self.state) {
            // Esc returns to the provider list if it is loaded; otherwise there is nothing to
            // choose from.
            (Some(_), ProviderDiscoveryState::Found(providers)) if !providers.is_empty() => {
                PanelControlFlow::Stay
            }
            (Some(_) | None, _) => PanelControlFlow::Close,
        }
    }

    fn on_paste(&mut self, text: &str, cx: &mut UiContext<'_>) {
        let _ = cx;
        if let Some(form) = &mut self.provider_form {
            form.on_paste(text);
        } else if let Some(login) = &mut self.login_form {
            login.on_paste(text);
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let fault = response.as_ref().err();
        if self.provider_form.as_mut().is_some_and(|form| form.on_response(id, response)) {
            let saved = self.provider_form.as_ref().and_then(ProviderForm::saved_message);
            if saved.is_some() {
                self.on_saved(cx);
            }
            return true;
        }
        if self.login_form.as_mut().is_some_and(|login| login.on_response(id, response)) {
            if let Some(ApiKeyForm::Saved { .. }) = self.login_form {
                self.on_saved(cx);
            }
            return true;
        }
        if self.state == ProviderDiscoveryState::Searching(id) {
            self.state = match response {
                Ok(HostResponse::Providers { providers }) => {
                    let mut providers = providers.clone();
                    providers.sort_by_key(|option| !option.is_ready);
                    ProviderDiscoveryState::Found(providers)
                }
                Ok(_) => ProviderDiscoveryState::Found(Vec::new()),
                Err(fault) => ProviderDiscoveryState::Failed(fault.clone()),
            };
            self.choose_only_provider(cx);
            return true;
        }
        if self.chosen_model.as_ref().is_some_and(|(_, request_id)| *request_id == id) {
            match fault {
                Some(fault) => {
                    (self.chosen_model, self.hint) = (None, None);
                    self.fault = Some(fault.clone());
                }
                None => self.finished = true,
            }
            return true;
        }
        false
    }

    fn is_done(&self) -> bool {
        self.finished
    }

    fn take_result(&mut self) -> PanelResult {
        let saved_server = self.provider_form.as_ref().and_then(ProviderForm::saved_message);
        if let (Some(message), OnboardingPurpose::Login) = (saved_server, self.purpose) {
            return PanelResult::ShowHint(message.to_owned());
        }
        match (&self.login_form, self.purpose, self.finished) {
            (Some(ApiKeyForm::Saved { message }), OnboardingPurpose::Login, true) => {
                PanelResult::ShowHint(message.clone())
            }
            (_, OnboardingPurpose::ChooseModel, true) => {
                PanelResult::SuggestPrompt { prompt: SAMPLE_PROMPT, hint: self.hint.take() }
            }
            (_, OnboardingPurpose::ChooseModel, false) => PanelResult::ShowHint(
                "No model selected: use /login to add a key or /model to choose".to_owned(),
            ),
            (_, OnboardingPurpose::Login, _) => PanelResult::Nothing,
        }
    }

    fn height(&self, width: u16, state: &SessionState) -> u16 {
        let _ = state;
        let (rows, ..) = self.render(usize::from(width), &Appearance::default());
        u16::try_from(rows.len() + 2).unwrap_or(u16::MAX)
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let _ = state;
        let width = usize::from(area.width);
        let (rows, cursor, focused_row) = self.render(width, appearance);
        let footer = self.render_footer(width, appearance);
        let (mut top, mut page_rows) = self.scroll_state;
        // Keep the selected row, or the row with the text input, visible.
        let min_top = (focused_row + 1)
            .saturating_sub(usize::from(area.height).saturating_sub(footer.len() + 1));
        top = top.max(min_top).min(focused_row);
        draw_page((&mut top, &mut page_rows), (&rows, &footer), (area, buffer), appearance);
        self.scroll_state = (top, page_rows);
        let (column, row) = cursor?;
        let offset_by = |start: u16, offset: usize| {
            start.saturating_add(u16::try_from(offset).unwrap_or(u16::MAX))
        };
        Some(Position::new(offset_by(area.x, column), offset_by(area.y, row.saturating_sub(top))))
    }
}
