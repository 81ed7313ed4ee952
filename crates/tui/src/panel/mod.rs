//! Panels: lists and views on top of the transcript until they are closed.

pub(crate) mod agent_picker;
mod api_key_form;
mod command_palette;
pub(crate) mod copy_picker;
mod effort_picker;
mod filter_list;
mod fuzzy;
mod help;
pub(crate) mod jobs;
mod list_panel;
mod listing;
mod model_picker;
mod onboarding;
mod onboarding_row;
mod pager;
mod provider_form;
mod report;
pub(crate) mod report_list;
mod report_rows;
mod rewind;
pub(crate) mod session_picker;
pub(crate) mod session_tree;
mod shared_rows;
mod subagents;
#[cfg(test)]
mod tests;
mod theme_picker;
pub(crate) mod trust;

use crate::keys::UiCommand;
use crate::session_state::SessionState;
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{Attachment, Event, Fault};

/// The decision of a `Panel` after a key: stay open or close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelControlFlow {
    /// Keeps the panel open.
    Stay,
    /// Closes the panel.
    Close,
    /// Keeps the panel open; the key is for the prompt.
    TypeIntoPrompt,
    /// Closes the panel; the key is for the prompt.
    CloseAndType,
}

/// The result that a `Panel` returns when it closes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PanelResult {
    /// No result.
    #[default]
    Nothing,
    /// Puts a text into the prompt, with its attachments.
    RestorePrompt(String, Vec<Attachment>),
    /// Suggests a prompt in place of the empty input.
    SuggestPrompt { prompt: &'static str, hint: Option<String> },
    /// Shows a short message about the completed action.
    ShowHint(String),
    /// The trust question is answered; shows a short message about the answer.
    TrustAnswered(Option<&'static str>),
    /// The user chose an agent for this session, or for the next one if there is none.
    AgentChosen(String),
}

/// A view on top of the transcript that receives the keys.
pub trait Panel: std::fmt::Debug {
    /// Returns the title shown in the top border.
    fn title(&self) -> String;

    /// Handles a key. Esc goes to [`Panel::on_escape`] instead.
    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow;

    /// Handles Esc; closes the panel by default.
    fn on_escape(&mut self, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let _ = cx;
        PanelControlFlow::Close
    }

    /// Handles Ctrl+C, which closes every panel; by default like Esc.
    fn on_interrupt(&mut self, cx: &mut UiContext<'_>) {
        self.on_escape(cx);
    }

    /// Handles pasted text.
    fn on_paste(&mut self, text: &str, cx: &mut UiContext<'_>) {
        let _ = (text, cx);
    }

    /// Handles an `Event` of a session.
    fn on_event(&mut self, event: &Event, cx: &mut UiContext<'_>) {
        let _ = (event, cx);
    }

    /// Handles a response; returns true if `id` belongs to a request of this panel.
    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let _ = (id, response, cx);
        false
    }

    /// Handles the mouse wheel: the number of lines to scroll down, negative for up.
    fn on_wheel(&mut self, lines: i32, cx: &mut UiContext<'_>) {
        let _ = (lines, cx);
    }

    /// Returns true if keys answer a question here. Then text for a prompt that was begun before
    /// goes into the prompt.
    fn is_question(&self) -> bool {
        false
    }

    /// Returns true once the panel is finished without a key, because the request it waited for
    /// succeeded.
    fn is_done(&self) -> bool {
        false
    }

    /// Returns the `PanelResult` after the panel is closed.
    fn take_result(&mut self) -> PanelResult {
        PanelResult::Nothing
    }

    /// Returns the diff that the user viewed and approved here, if any.
    fn take_approved_change(&mut self) -> Option<String> {
        None
    }

    /// Returns the number of rows the panel wants inside its border.
    fn height(&self, width: u16, state: &SessionState) -> u16;

    /// Draws the panel inside its border, and returns the cursor position if there is a text input.
    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position>;
}

/// Opens the panel of a command, if it has one. `arguments` is the text typed after the command.
pub fn open_panel(
    command: UiCommand,
    arguments: &str,
    cx: &mut UiContext<'_>,
) -> Option<Box<dyn Panel>> {
    Some(match command {
        UiCommand::Help => Box::new(help::HelpList::open(arguments, &cx.appearance.key_map)),
        UiCommand::Sessions => Box::new(session_picker::SessionPicker::open(arguments, cx)),
        UiCommand::Model => Box::new(model_picker::ModelPicker::open(arguments, cx)),
        UiCommand::Trust => Box::new(trust::TrustPanel::open(cx)),
        UiCommand::Login => Box::new(onboarding::OnboardingPanel::open_login(arguments, cx)),
        UiCommand::Agent => Box::new(agent_picker::AgentPicker::open(arguments, cx)),
        UiCommand::CommandPalette => Box::new(command_palette::CommandPalette::open(arguments, cx)),
        UiCommand::Effort => Box::new(effort_picker::EffortPicker::open(arguments, cx)),
        UiCommand::Skills => Box::new(listing::Listing::skills(arguments, cx)),
        UiCommand::Hooks => Box::new(listing::Listing::hooks(arguments, cx)),
        UiCommand::Config => Box::new(listing::Listing::config(arguments, cx)),
        UiCommand::Theme => Box::new(theme_picker::ThemePicker::open(arguments, cx.appearance)),
        UiCommand::Rewind => Box::new(rewind::RewindPanel::new(cx)?),
        UiCommand::Jobs => Box::new(jobs::JobsPanel::new(cx)),
        UiCommand::Subagents => Box::new(subagents::SubagentsPanel::new(cx)),
        UiCommand::Undo => Box::new(report::ReportPanel::undo(cx)),
        UiCommand::Redo => Box::new(report::ReportPanel::redo(cx)),
        UiCommand::Diff => Box::new(report::ReportPanel::diff(cx)),
        UiCommand::Todos => Box::new(report::ReportPanel::todos(cx)),
        UiCommand::Cost => Box::new(report::ReportPanel::cost(cx)),
        UiCommand::Context => Box::new(report::ReportPanel::context(cx)),
        UiCommand::Doctor => Box::new(report::ReportPanel::doctor(cx)),
        _ => {
            let report = report_list::report_of(command, arguments, cx.state)?;
            Box::new(report_list::ReportListPanel::open(report, arguments, cx))
        }
    })
}

/// Opens the panel shown at startup if no model is set: the choice of a model.
pub fn open_first_panel(cx: &mut UiContext<'_>) -> Option<Box<dyn Panel>> {
    let needs_model = cx.state.host_status.model.is_none();
    needs_model.then(|| {
        let panel: Box<dyn Panel> = Box::new(onboarding::OnboardingPanel::new(
            onboarding::OnboardingPurpose::ChooseModel,
            cx,
        ));
        panel
    })
}
