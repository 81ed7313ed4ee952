//! The onboarding panel: finds available providers, lets the user choose a model, and asks for an
//! API key if one is needed. `/login` uses it too, for the key only.

use super::api_key_form::ApiKeyForm;
use super::{Panel, PanelControlFlow, PanelResult};
use crate::keys::{KeyScope, UiCommand};
use crate::questions::choices::{self, AnswerKeyChoice, KeyFocus};
use crate::questions::draw_page;
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap::{self, WrapMode};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, ModelChoiceScope, ProviderListItem,
};

/// The prompt suggested after the first model choice.
const SAMPLE_PROMPT: &str = "Explain what this project does and how it is built";

/// The reason an `OnboardingPanel` is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnboardingPurpose {
    ChooseModel,
    Login,
}

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
    login_form: Option<ApiKeyForm>,
    /// The chosen model, and the id of the `SetModel` request.
    chosen_model: Option<(String, u64)>,
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
            login_form: None,
            chosen_model: None,
            fault: None,
            finished: false,
            scroll_state: (0, 1),
        }
    }

    /// Opens the key form of `provider`, or the provider list if it is empty.
    pub fn open_login(provider: &str, cx: &mut UiContext<'_>) -> OnboardingPanel {
        let mut panel = OnboardingPanel::new(OnboardingPurpose::Login, cx);
        panel.login_form =
            Some(provider.trim()).filter(|name| !name.is_empty()).map(ApiKeyForm::new);
        panel
    }

    fn providers(&self) -> &[ProviderListItem] {
        match &self.state {
            ProviderDiscoveryState::Found(providers) => providers,
            ProviderDiscoveryState::Searching(_) | ProviderDiscoveryState::Failed(_) => &[],
        }
    }

    /// Returns the number of providers that are ready to use; they come first in the list.
    fn ready_count(&self) -> usize {
        self.providers().iter().take_while(|option| option.is_ready).count()
    }

    fn choose_provider(&mut self, cx: &mut UiContext<'_>) {
        let Some(option) = self.providers().get(self.selected_row).cloned() else { return };
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
            None => self.login_form = Some(ApiKeyForm::new(&option.provider)),
        }
    }

    fn render(
        &self,
        width: usize,
        appearance: &Appearance,
    ) -> (Vec<SafeLine>, Option<(usize, usize)>) {
        if let Some(login) = &self.login_form {
            return login.render(width, appearance);
        }
        let wrapped_text = |role, text: &str| {
            let row = SafeLine::styled(appearance.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), WrapMode::Words, 1)
        };
        let providers = self.providers();
        let ready = self.ready_count() > 0;
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
                            a local server, such as `ollama serve`, and press r.";
                let text = match providers.is_empty() {
                    true => format!("Quit, {text}"),
                    false => {
                        format!("Choose a provider below and enter its API key. Or quit, {text}")
                    }
                };
                rows.extend(wrapped_text(StyleRole::Dim, &text));
            }
        }
        if !providers.is_empty() {
            rows.push(SafeLine::default());
        }
        for (index, option) in providers.iter().enumerate() {
            // A blank row separates the ready providers (`is_ready`) from those that need a key.
            if index > 0 && index == self.ready_count() {
                rows.push(SafeLine::default());
            }
            rows.push(self.render_provider(index, option, width, appearance));
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
        (rows, None)
    }

    fn render_provider(
        &self,
        index: usize,
        option: &ProviderListItem,
        width: usize,
        appearance: &Appearance,
    ) -> SafeLine {
        let is_selected = index == self.selected_row;
        let pointer = match (is_selected, appearance.ascii) {
            (true, false) => " › ",
            (true, true) => " > ",
            (false, _) => "   ",
        };
        let model = option.models.first().filter(|_| option.is_ready);
        let name = model.unwrap_or(&option.provider);
        let name_widths = self.providers().iter().map(|option| {
            let model = option.models.first().filter(|_| option.is_ready);
            model.unwrap_or(&option.provider).chars().count()
        });
        let name_width = name_widths.max().unwrap_or_default().min(width / 2);
        let role = if is_selected { StyleRole::Strong } else { StyleRole::Text };
        let name = SafeLine::styled(appearance.style(role), name);
        let name = wrap::truncate(&name, name_width, appearance);
        let mut row = SafeLine::styled(appearance.style(StyleRole::Accent), pointer);
        name.spans().for_each(|(style, text)| row.push_text(style, text));
        let gap = " ".repeat(name_width.saturating_sub(name.width()) + 2);
        let role = if option.is_ready { StyleRole::Success } else { StyleRole::Dim };
        // Only the selected row names the source of the key; on every row it would be noise.
        let short_evidence = option.evidence.split(';').next().unwrap_or_default();
        let evidence =
            if is_selected || option.is_ready { option.evidence.as_str() } else { short_evidence };
        row.push_text(appearance.style(role), &format!("{gap}{evidence}"));
        wrap::truncate(&row, width, appearance)
    }

    fn render_footer(&self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let mut choices = Vec::new();
        if self.login_form.is_some() {
            choices.push(AnswerKeyChoice::for_key("Enter", "save", "save"));
            choices.push(AnswerKeyChoice::for_key("Esc", "go back", "back"));
        } else {
            match self.state {
                ProviderDiscoveryState::Found(ref providers) if !providers.is_empty() => {
                    choices.push(AnswerKeyChoice::for_key("Enter", "select", "select"));
                    choices.push(AnswerKeyChoice::for_key("r", "rescan", "rescan"));
                }
                ProviderDiscoveryState::Found(_) | ProviderDiscoveryState::Failed(_) => {
                    choices.push(AnswerKeyChoice::for_key("r", "rescan", "rescan"));
                }
                ProviderDiscoveryState::Searching(_) => {}
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
        match (&self.login_form, self.purpose) {
            (Some(_), _) | (None, OnboardingPurpose::Login) => "Log in".to_owned(),
            (None, OnboardingPurpose::ChooseModel) => "Welcome to Windlass".to_owned(),
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if let Some(login) = &mut self.login_form {
            login.on_key(key, cx);
            return PanelControlFlow::Stay;
        }
        match (key.code, cx.appearance.key_map.command_for(KeyScope::Panel, key)) {
            (KeyCode::Char('r'), _)
                if !matches!(self.state, ProviderDiscoveryState::Searching(_)) =>
            {
                (self.state, self.selected_row) = (
                    ProviderDiscoveryState::Searching(
                        cx.send_request(FrontendRequest::DiscoverProviders),
                    ),
                    0,
                );
            }
            (_, Some(UiCommand::RowUp)) => self.selected_row = self.selected_row.saturating_sub(1),
            (_, Some(UiCommand::RowDown)) => {
                self.selected_row =
                    (self.selected_row + 1).min(self.providers().len().saturating_sub(1));
            }
            (_, Some(UiCommand::ChooseRow)) => self.choose_provider(cx),
            _ => {}
        }
        PanelControlFlow::Stay
    }

    fn on_escape(&mut self, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let _ = cx;
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
        if let Some(login) = &mut self.login_form {
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
        if self.login_form.as_mut().is_some_and(|login| login.on_response(id, fault)) {
            if let Some(ApiKeyForm::Saved { .. }) = self.login_form {
                match self.purpose {
                    OnboardingPurpose::Login => self.finished = true,
                    OnboardingPurpose::ChooseModel => {
                        self.login_form = None;
                        (self.state, self.selected_row) = (
                            ProviderDiscoveryState::Searching(
                                cx.send_request(FrontendRequest::DiscoverProviders),
                            ),
                            0,
                        );
                    }
                }
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
            return true;
        }
        if self.chosen_model.as_ref().is_some_and(|(_, request_id)| *request_id == id) {
            match fault {
                Some(fault) => (self.chosen_model, self.fault) = (None, Some(fault.clone())),
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
        match (&self.login_form, self.purpose, self.finished) {
            (Some(ApiKeyForm::Saved { provider }), OnboardingPurpose::Login, true) => {
                PanelResult::ShowHint(format!("API key for {provider} saved"))
            }
            (_, OnboardingPurpose::ChooseModel, true) => PanelResult::SuggestPrompt(SAMPLE_PROMPT),
            (_, OnboardingPurpose::ChooseModel, false) => PanelResult::ShowHint(
                "No model selected: use /login to add a key or /model to choose".to_owned(),
            ),
            (_, OnboardingPurpose::Login, _) => PanelResult::Nothing,
        }
    }

    fn height(&self, width: u16, state: &SessionState) -> u16 {
        let _ = state;
        let (rows, _) = self.render(usize::from(width), &Appearance::default());
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
        let (rows, cursor) = self.render(width, appearance);
        let footer = self.render_footer(width, appearance);
        let (mut top, mut page_rows) = self.scroll_state;
        // Keep the selected row, or the row with the text input, visible.
        let provider_count = self.providers().len();
        let focused_row = match cursor {
            Some((_, row)) => row,
            None if provider_count == 0 => 0,
            None => {
                let rows_above = rows.iter().take_while(|row| row.width() > 0).count() + 1;
                let after_blank = self.ready_count() > 0 && self.selected_row >= self.ready_count();
                rows_above + self.selected_row + usize::from(after_blank)
            }
        };
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
