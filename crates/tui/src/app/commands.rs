//! The execution of UI commands in `App`, whether they come from a key, from `/` or from a panel.

use super::{App, PendingResponse};
use crate::error_hints::RETRY_PROMPT;
use crate::keys::UiCommand;
use crate::panel::{self, copy_picker};
use crate::prompt::Submission;
use crate::transcript::{DetailsTarget, ScrollTarget, SelectionStep};
use crate::ui_context::UiEffect;
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::{PermissionMode, SessionOp};

/// The time within which a second press counts as a double press.
const DOUBLE_PRESS_MS: u64 = 1_500;

impl App {
    /// Returns true if the same command was pressed within `DOUBLE_PRESS_MS`.
    fn is_double_press(&mut self, command: UiCommand) -> bool {
        let is_double = self.last_press.is_some_and(|(last, pressed_at)| {
            last == command && self.now < pressed_at + DOUBLE_PRESS_MS
        });
        self.last_press = (!is_double).then_some((command, self.now));
        is_double
    }

    /// Performs a command at time `now`, as if the user had typed it.
    #[cfg(test)]
    pub(crate) fn perform_at(
        &mut self,
        command: UiCommand,
        arguments: &str,
        now: u64,
    ) -> Vec<UiEffect> {
        self.now = now;
        let mut ui_effects = Vec::new();
        self.perform(command, arguments, &mut ui_effects);
        ui_effects
    }

    /// Performs a `UiCommand`; `arguments` is the text after its name.
    pub(super) fn perform(
        &mut self,
        command: UiCommand,
        arguments: &str,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        match command {
            UiCommand::Quit => {
                if self.prompt.is_empty() {
                    ui_effects.push(UiEffect::Quit);
                }
            }
            UiCommand::Interrupt => self.interrupt(ui_effects),
            UiCommand::Escape => self.escape(ui_effects),
            UiCommand::Suspend => ui_effects.push(UiEffect::Suspend),
            UiCommand::Redraw => ui_effects.push(UiEffect::Redraw),
            UiCommand::Mode => self.cycle_mode(arguments, ui_effects),
            UiCommand::NewSession => self.start_new_session(ui_effects),
            UiCommand::Fork => {
                if let Some(session) = self.state.session {
                    let request = FrontendRequest::ForkSession { session, turn: None };
                    self.send_request(request, PendingResponse::SessionOpened(None), ui_effects);
                }
            }
            UiCommand::Rename if !arguments.is_empty() => {
                self.send_op(SessionOp::RenameSession { title: arguments.to_owned() }, ui_effects);
            }
            UiCommand::Rename => self.show_hint("Usage: /rename TITLE"),
            UiCommand::Detach => self.detach(ui_effects),
            UiCommand::Retry => self.retry(ui_effects),
            UiCommand::Compact => self.send_op(SessionOp::Compact, ui_effects),
            UiCommand::Export => match self.state.session {
                Some(session) => {
                    let file = arguments.trim().to_owned();
                    self.send_request(
                        FrontendRequest::ExportSession { session, file },
                        PendingResponse::WrittenPath,
                        ui_effects,
                    );
                }
                None => self.show_hint("No session to export yet"),
            },
            UiCommand::Goal => self.expand_command("goal", arguments, ui_effects),
            UiCommand::Init => self.expand_command("init", arguments, ui_effects),
            UiCommand::Review => self.expand_command("review", arguments, ui_effects),
            UiCommand::FocusQuestion if self.prompt.is_empty() => {
                self.request_next_agent(ui_effects)
            }
            UiCommand::CopyAnswer => {
                let texts = copy_picker::copyable_texts(self.transcript.copyable_messages());
                match texts.is_empty() {
                    true => self.show_hint("Nothing to copy yet"),
                    false => self.panels.push(Box::new(copy_picker::CopyPicker::open(texts))),
                }
            }
            UiCommand::OpenEditor => ui_effects.push(UiEffect::OpenEditor(self.prompt.text())),
            UiCommand::PasteImage => ui_effects.push(UiEffect::ReadClipboardImage),
            UiCommand::ToggleDetails => self.transcript.toggle_details(DetailsTarget::MiddleBlock),
            UiCommand::ToggleAllDetails => self.transcript.toggle_details(DetailsTarget::All),
            UiCommand::SelectUp => self.move_selection(SelectionStep::Up, ui_effects),
            UiCommand::SelectDown => self.move_selection(SelectionStep::Down, ui_effects),
            UiCommand::SidePanel => self.toggle_side_panel(),
            UiCommand::PageUp => self.scroll(ScrollTarget::Pages(-1), ui_effects),
            UiCommand::PageDown => self.scroll(ScrollTarget::Pages(1), ui_effects),
            UiCommand::LineUp => self.scroll(ScrollTarget::Lines(-1), ui_effects),
            UiCommand::LineDown => self.scroll(ScrollTarget::Lines(1), ui_effects),
            UiCommand::ScrollToTop => self.scroll(ScrollTarget::Top, ui_effects),
            UiCommand::ScrollToEnd => self.scroll(ScrollTarget::End, ui_effects),
            UiCommand::PreviousPrompt => self.scroll(ScrollTarget::PreviousPrompt, ui_effects),
            UiCommand::NextPrompt => self.scroll(ScrollTarget::NextPrompt, ui_effects),
            UiCommand::FindText if self.state.session.is_some() => {
                self.with_parts(ui_effects, |parts, cx| {
                    parts.transcript.start_search(arguments, cx)
                });
            }
            UiCommand::FindText => self.show_hint("Nothing to search yet"),
            UiCommand::ShowFullView => self.panels.extend(self.questions.full_view()),
            _ => self.open_panel(command, arguments, ui_effects),
        }
    }

    fn move_selection(&mut self, step: SelectionStep, ui_effects: &mut Vec<UiEffect>) {
        self.with_parts(ui_effects, |parts, cx| parts.transcript.move_selection(step, cx));
    }

    fn open_panel(&mut self, command: UiCommand, arguments: &str, ui_effects: &mut Vec<UiEffect>) {
        let panel = self.with_parts(ui_effects, |_, cx| panel::open_panel(command, arguments, cx));
        self.panels.extend(panel);
    }

    /// Handles Ctrl-C: clears the prompt, else sends `SessionOp::Interrupt`, else quits on the second
    /// press.
    fn interrupt(&mut self, ui_effects: &mut Vec<UiEffect>) {
        if !self.prompt.is_empty() {
            self.prompt.set_text("");
        } else if self.state.is_busy() {
            self.send_op(SessionOp::Interrupt { turn: None }, ui_effects);
        } else if self.is_double_press(UiCommand::Interrupt) {
            ui_effects.push(UiEffect::Quit);
        } else {
            let key = self.appearance.key_map.key_hint(UiCommand::Interrupt);
            self.show_hint_for(DOUBLE_PRESS_MS, &format!("Press {key} again to quit"));
        }
    }

    /// Handles Esc: closes a list, else sends `SessionOp::Interrupt`, else opens the rewind panel on the
    /// second press.
    fn escape(&mut self, ui_effects: &mut Vec<UiEffect>) {
        if self.prompt.close_list() {
            return;
        }
        if self.state.is_busy() {
            self.send_op(SessionOp::Interrupt { turn: None }, ui_effects);
        } else if self.is_double_press(UiCommand::Escape) {
            self.open_panel(UiCommand::Rewind, "", ui_effects);
        } else if self.state.session.is_some() {
            let key = self.appearance.key_map.key_hint(UiCommand::Escape);
            self.show_hint_for(DOUBLE_PRESS_MS, &format!("Press {key} again to rewind"));
        }
    }

    fn cycle_mode(&mut self, arguments: &str, ui_effects: &mut Vec<UiEffect>) {
        let requested = arguments.trim().parse::<PermissionMode>().ok();
        let max_mode = self.state.host_status.max_mode.min(PermissionMode::Auto);
        let next = requested.unwrap_or(match self.state.mode {
            PermissionMode::Plan => PermissionMode::Ask,
            PermissionMode::Ask if max_mode >= PermissionMode::Auto => PermissionMode::Auto,
            PermissionMode::Ask | PermissionMode::Auto | PermissionMode::Full => {
                PermissionMode::Plan
            }
        });
        self.set_mode(next, ui_effects);
    }

    /// Sets the mode of the session, or of the next one.
    pub(super) fn set_mode(&mut self, mode: PermissionMode, ui_effects: &mut Vec<UiEffect>) {
        match self.state.session {
            Some(_) => self.send_op(SessionOp::SetMode { mode }, ui_effects),
            None => self.state.mode = mode,
        }
    }

    /// Continues the last turn, if it failed, reached a limit or was interrupted.
    pub(super) fn retry(&mut self, ui_effects: &mut Vec<UiEffect>) {
        match self.state.can_continue() {
            true => self.submit(Submission::from_text(RETRY_PROMPT.to_owned()), ui_effects),
            false => self.show_hint("Nothing to retry: the last turn did not fail"),
        }
    }

    fn start_new_session(&mut self, ui_effects: &mut Vec<UiEffect>) {
        self.send_request(
            self.state.new_session_request(),
            PendingResponse::SessionOpened(None),
            ui_effects,
        );
    }
}
