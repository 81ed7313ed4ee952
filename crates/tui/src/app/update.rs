//! Event handling of `App`: dispatches each `AppEvent` to the panels, the questions, the prompt and
//! the transcript.

use super::{App, AppEvent, PendingResponse};
use crate::keys::{KeyScope, UiCommand};
use crate::panel::{self, Panel, PanelControlFlow, PanelResult};
use crate::prompt::{PromptAction, Submission};
use crate::questions::KeyDestination;
use crate::questions::queue::PreApproval;
use crate::theme::TerminalBackground;
use crate::transcript::ScrollTarget;
use crate::ui_context::UiEffect;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use windlass_protocol::frontend_messages::{FrontendRequest, HostMessage, HostResponse};
use windlass_protocol::{Event, Fault, PromptDelivery, SessionOp};

const HINT_DURATION_MS: u64 = 4_000;

impl App {
    /// Handles one event at time `now` and returns the effects to perform.
    pub fn update(&mut self, event: AppEvent, now: u64) -> Vec<UiEffect> {
        self.now = now;
        self.transcript.tick(now);
        self.hint.take_if(|(_, until)| *until <= now);
        if matches!(event, AppEvent::Key(_) | AppEvent::Paste(_)) {
            self.last_typed_at = Some(now);
        }
        let mut ui_effects = Vec::new();
        match event {
            AppEvent::Key(key) if key.kind == KeyEventKind::Release => {}
            AppEvent::Key(key) => self.on_key(&key, &mut ui_effects),
            AppEvent::Paste(text) => {
                self.with_parts(&mut ui_effects, |parts, cx| match parts.panels.last_mut() {
                    Some(panel) => panel.on_paste(&text, cx),
                    None if parts.transcript.is_finding() => {
                        parts.transcript.start_search(&text, cx)
                    }
                    None if parts.questions.on_paste(&text, cx.now, parts.prompt.is_empty()) => {}
                    None => {
                        parts.questions.on_typing(cx.now);
                        parts.prompt.on_paste(&text, cx);
                    }
                })
            }
            AppEvent::MouseWheel(lines) => {
                let in_panel = self.with_parts(&mut ui_effects, |parts, cx| {
                    let panel = parts.panels.last_mut();
                    panel.map(|panel| panel.on_wheel(lines, cx)).is_some()
                });
                if !in_panel {
                    self.scroll(ScrollTarget::Lines(lines), &mut ui_effects);
                }
            }
            AppEvent::Click(position) => self.on_click(position),
            AppEvent::Focus(is_focused) => self.is_focused = Some(is_focused),
            AppEvent::BackgroundColor(rgb) => {
                self.appearance.theme.background = TerminalBackground::from_rgb(rgb)
            }
            AppEvent::HostMessage(message) => self.on_host_message(*message, &mut ui_effects),
            AppEvent::Tick => {}
            AppEvent::EditorClosed(Some(text)) => self.prompt.set_text(text.trim_end()),
            AppEvent::EditorClosed(None) => {
                self.show_hint("Could not run your editor; set VISUAL or EDITOR");
            }
            AppEvent::ClipboardImage(Ok(bytes)) => {
                self.with_parts(&mut ui_effects, |parts, cx| {
                    parts.prompt.on_clipboard_image(&bytes, cx)
                });
            }
            AppEvent::ClipboardImage(Err(reason)) => self.show_hint(&reason),
        }
        self.with_parts(&mut ui_effects, |parts, cx| parts.transcript.fetch_image(cx));
        self.update_status_line(&mut ui_effects);
        ui_effects
    }

    pub(super) fn show_hint(&mut self, text: &str) {
        self.show_hint_for(HINT_DURATION_MS, text);
    }

    pub(super) fn show_hint_for(&mut self, duration_ms: u64, text: &str) {
        self.hint = Some((text.to_owned(), self.now + duration_ms));
    }

    fn on_key(&mut self, key: &KeyEvent, ui_effects: &mut Vec<UiEffect>) {
        if let Some(mut panel) = self.panels.pop() {
            self.questions.on_covered(self.now);
            let bound_command = self.appearance.key_map.command_for(KeyScope::Panel, key);
            let is_text = matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace);
            let continues_prompt = panel.is_question()
                && !self.prompt.is_empty()
                && is_text
                && crate::questions::is_typing_key(key);
            let flow = match bound_command {
                _ if continues_prompt => PanelControlFlow::TypeIntoPrompt,
                Some(UiCommand::Escape) => self.with_parts(ui_effects, |_, cx| panel.on_escape(cx)),
                Some(UiCommand::Interrupt) => {
                    self.with_parts(ui_effects, |_, cx| panel.on_interrupt(cx));
                    PanelControlFlow::Close
                }
                Some(UiCommand::Redraw | UiCommand::Suspend) => {
                    self.panels.push(panel);
                    if let Some(command) = bound_command {
                        self.perform(command, "", ui_effects);
                    }
                    return;
                }
                _ => self.with_parts(ui_effects, |_, cx| panel.on_key(key, cx)),
            };
            match flow {
                PanelControlFlow::Stay => self.panels.push(panel),
                PanelControlFlow::Close => self.on_panel_closed(panel, ui_effects),
                PanelControlFlow::TypeIntoPrompt => {
                    self.panels.push(panel);
                    self.with_parts(ui_effects, |parts, cx| parts.prompt.on_key(key, cx));
                }
                PanelControlFlow::CloseAndType => {
                    self.on_panel_closed(panel, ui_effects);
                    self.with_parts(ui_effects, |parts, cx| parts.prompt.on_key(key, cx));
                    self.questions.on_typing(self.now);
                }
            }
            return;
        }
        let bound_command = self.appearance.key_map.command_for(KeyScope::Global, key);
        if self.transcript.is_finding() {
            self.questions.on_covered(self.now);
            let handled =
                self.with_parts(ui_effects, |parts, cx| parts.transcript.on_search_key(key, cx));
            if let Some(command) = bound_command.filter(|_| !handled) {
                self.perform(command, "", ui_effects);
            }
            return;
        }
        let immediate_commands =
            [UiCommand::Interrupt, UiCommand::Suspend, UiCommand::Redraw, UiCommand::Quit];
        if let Some(command) = bound_command.filter(|command| immediate_commands.contains(command))
        {
            self.perform(command, "", ui_effects);
            return;
        }
        let list_is_open = self.prompt.has_open_list() && !self.question_has_focus();
        if bound_command == Some(UiCommand::FocusQuestion)
            && self.questions.is_open()
            && !list_is_open
        {
            self.questions.toggle_focus(self.now, self.prompt.is_empty());
            return;
        }
        if self.questions.is_open() && !self.offer_key_to_question(key, ui_effects) {
            return;
        }
        if self.on_selection_key(key, bound_command) {
            return;
        }
        let sends_prompt = self.appearance.key_map.command_for(KeyScope::Prompt, key)
            == Some(UiCommand::SendPrompt);
        if sends_prompt && self.prompt.is_empty() && self.state.can_retry() {
            return self.retry(ui_effects);
        }
        let action = self.with_parts(ui_effects, |parts, cx| {
            if crate::questions::is_typing_key(key) {
                parts.questions.on_typing(cx.now);
            }
            parts.prompt.on_key(key, cx)
        });
        match action {
            PromptAction::Handled => {}
            PromptAction::Submit(submission) => self.submit(submission, ui_effects),
            PromptAction::Ignored => {
                if let Some(command) = bound_command {
                    self.perform(command, "", ui_effects);
                }
            }
        }
    }

    /// Offers a key to the open question; returns true if it is for the prompt.
    fn offer_key_to_question(&mut self, key: &KeyEvent, ui_effects: &mut Vec<UiEffect>) -> bool {
        let prompt_is_empty = self.prompt.is_empty();
        let destination = match crate::questions::is_typing_key(key) {
            true => self.questions.key_destination(key, self.now, prompt_is_empty),
            false if self.question_has_focus() => KeyDestination::Question,
            false => KeyDestination::Prompt,
        };
        match destination {
            KeyDestination::Prompt => true,
            KeyDestination::Dropped => false,
            KeyDestination::Question => {
                !self.with_parts(ui_effects, |parts, cx| parts.questions.on_key(key, cx))
            }
            KeyDestination::PromptAfter(text) => {
                for character in text.chars() {
                    let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
                    self.with_parts(ui_effects, |parts, cx| parts.prompt.on_key(&key, cx));
                }
                true
            }
        }
    }

    /// Applies the `PanelResult` of a closed panel, and starts what waited for the trust question.
    fn on_panel_closed(&mut self, mut panel: Box<dyn Panel>, ui_effects: &mut Vec<UiEffect>) {
        if let Some(change) = panel.take_approved_change() {
            self.questions.pre_approve(PreApproval::Undo(change));
        }
        match panel.take_result() {
            PanelResult::Nothing => {}
            PanelResult::RestorePrompt(text, files) => self.prompt.restore(&text, &files),
            PanelResult::SuggestPrompt { prompt, hint } => {
                self.prompt.suggest(prompt);
                hint.iter().for_each(|hint| self.show_hint(hint));
            }
            PanelResult::ShowHint(text) => self.show_hint(&text),
            PanelResult::TrustAnswered(message) => {
                message.iter().for_each(|message| self.show_hint(message));
                self.open_initial_session(ui_effects);
            }
            PanelResult::AgentChosen(agent) => self.on_agent_chosen(&agent),
        }
    }

    /// Submits a `Submission` of the user; creates a session first if there is none.
    pub(super) fn submit(&mut self, submission: Submission, ui_effects: &mut Vec<UiEffect>) {
        self.hint = None;
        let op = match submission {
            Submission::BuiltinCommand(command, arguments) => {
                return self.perform(command, &arguments, ui_effects);
            }
            submission if let Some(hint) = self.read_only_hint() => {
                self.restore_submission(&submission);
                return self.show_hint(hint);
            }
            // The prompt stays in the editor until a model is configured.
            Submission::Prompt { .. } if self.state.host_status.model.is_none() => {
                self.restore_submission(&submission);
                if self.panels.is_empty() {
                    let panel = self.with_parts(ui_effects, |_, cx| panel::open_first_panel(cx));
                    self.panels.extend(panel);
                }
                return;
            }
            // No shell command runs while the model works; it stays in the editor for later.
            Submission::ShellCommand(_) if self.state.is_busy() => {
                self.restore_submission(&submission);
                return self.show_hint("Shell commands can run when the model is done");
            }
            submission if self.state.session.is_none() => {
                let request = self.state.new_session_request();
                return self.send_request(
                    request,
                    PendingResponse::SessionOpened(Some(submission)),
                    ui_effects,
                );
            }
            Submission::CustomCommand { name, arguments } => {
                return self.expand_command(&name, &arguments, ui_effects);
            }
            prompt @ Submission::Prompt { .. } => {
                self.scroll_to_end(ui_effects);
                return self.send_prompt(prompt, ui_effects);
            }
            Submission::ShellCommand(command) => {
                let op = SessionOp::shell_command(&command);
                self.questions.pre_approve(PreApproval::Command(command));
                op
            }
        };
        self.scroll_to_end(ui_effects);
        self.send_op(op, ui_effects);
    }

    /// Puts a submission that could not be sent back into the `PromptEditor`.
    pub(super) fn restore_submission(&mut self, submission: &Submission) {
        if let Some((text, files)) = submission.typed_text() {
            self.prompt.restore(&text, files);
        }
    }

    /// Requests the prompt text of a custom command; the response `HostResponse::Prompt` submits
    /// it.
    pub(super) fn expand_command(
        &mut self,
        name: &str,
        arguments: &str,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        let submission =
            Submission::CustomCommand { name: name.clone(), arguments: arguments.clone() };
        self.send_request(
            FrontendRequest::ExpandCommand { session: None, name, arguments },
            PendingResponse::ExpandedCommand(submission),
            ui_effects,
        );
    }

    fn scroll_to_end(&mut self, ui_effects: &mut Vec<UiEffect>) {
        self.scroll(ScrollTarget::End, ui_effects);
    }

    pub(super) fn send_op(&mut self, op: SessionOp, ui_effects: &mut Vec<UiEffect>) {
        if let Some(session) = self.state.session {
            self.send_request(
                FrontendRequest::SessionOp { session, id: None, op },
                PendingResponse::FailureOnly,
                ui_effects,
            );
        }
    }

    pub(super) fn send_request(
        &mut self,
        request: FrontendRequest,
        pending: PendingResponse,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        let id = self.with_parts(ui_effects, |_, cx| cx.send_request(request));
        self.pending_responses.insert(id, pending);
    }

    pub(super) fn scroll(&mut self, target: ScrollTarget, ui_effects: &mut Vec<UiEffect>) {
        self.with_parts(ui_effects, |parts, cx| parts.transcript.scroll(target, cx));
    }

    fn on_host_message(&mut self, message: HostMessage, ui_effects: &mut Vec<UiEffect>) {
        match message {
            HostMessage::Event { event } => self.on_event(&event, ui_effects),
            HostMessage::Response { id, response } => self.on_response(id, response, ui_effects),
            HostMessage::Notice { text } => self.transcript.add_note(&text),
            HostMessage::Servers { servers } => self.state.host_status.servers = servers,
            HostMessage::OpenQuestions { records } => {
                let may_answer = self.read_only_hint().is_none();
                for event in records.into_iter().filter(|_| may_answer).map(Event::Fact) {
                    self.with_parts(ui_effects, |parts, cx| parts.questions.on_event(&event, cx));
                    self.notify_user(&event, ui_effects);
                }
            }
            HostMessage::Disconnected { reason } => self.on_disconnected(&reason),
            HostMessage::Reconnected => self.on_reconnected(),
            HostMessage::Clients { session, clients, is_live } => {
                self.on_clients(session, clients, is_live);
            }
            HostMessage::SessionStopped { session, fault } => {
                self.on_session_stopped(session, &fault, ui_effects)
            }
        }
    }

    fn on_event(&mut self, event: &Event, ui_effects: &mut Vec<UiEffect>) {
        self.note_foreign_answer(event);
        self.state.on_event(event, self.now);
        let may_answer = self.read_only_hint().is_none();
        self.with_parts(ui_effects, |parts, cx| {
            parts.transcript.on_event(event, cx);
            if may_answer {
                parts.questions.on_event(event, cx);
            }
            parts.prompt.on_event(event);
            parts.panels.iter_mut().for_each(|panel| panel.on_event(event, cx));
        });
        self.notify_user(event, ui_effects);
    }

    /// Reports a request that failed: above the prompt while the model works, because a note in the
    /// transcript would scroll away.
    fn report_failure(&mut self, fault: &Fault) {
        match self.state.is_busy() {
            true => self.show_hint(&fault.to_string()),
            false => self.transcript.add_note(&crate::error_hints::describe(fault)),
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: Result<HostResponse, Fault>,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        let Some(pending) = self.pending_responses.remove(&id) else {
            self.state.on_jobs_response(&response);
            if self.transcript.is_opening_request(id) {
                self.state.on_history_response(&response, self.now);
            }
            let handled = self.with_parts(ui_effects, |parts, cx| {
                let panels = &mut parts.panels;
                panels.iter_mut().any(|panel| panel.on_response(id, &response, cx))
                    || parts.questions.on_response(id, &response, cx)
                    || parts.prompt.on_response(id, &response, cx)
                    || parts.transcript.on_response(id, &response, cx)
            });
            let due = self.with_parts(ui_effects, |parts, cx| parts.prompt.take_due_submission(cx));
            if let Some(submission) = due {
                self.submit(submission, ui_effects);
            }
            self.on_host_status(&response);
            match response {
                Ok(HostResponse::SessionOpened { session, head, .. }) => {
                    self.on_session_opened(session, head, None, ui_effects)
                }
                Ok(HostResponse::OpRejected { error }) => self.on_op_rejected(&error),
                Err(fault) if !handled => self.report_failure(&fault),
                Ok(_) | Err(_) => {}
            }
            let panels = std::mem::take(&mut self.panels);
            let (closed, open): (Vec<_>, Vec<_>) =
                panels.into_iter().partition(|panel| panel.is_done());
            self.panels = open;
            if !closed.is_empty() {
                // A question that becomes visible now must not take keys before the user has seen
                // it for a moment.
                self.questions.on_covered(self.now);
            }
            closed.into_iter().for_each(|panel| self.on_panel_closed(panel, ui_effects));
            return;
        };
        match (pending, response) {
            (PendingResponse::HostStatus, Ok(host_response)) => {
                self.on_host_status(&Ok(host_response));
                self.start(ui_effects);
            }
            (
                PendingResponse::SessionOpened(submission),
                Ok(HostResponse::SessionOpened { session, head, .. }),
            ) => {
                self.on_session_opened(session, head, submission, ui_effects);
            }
            (
                PendingResponse::InitialSessionOpened(prompt),
                Ok(HostResponse::SessionOpened { session, head, .. }),
            ) => {
                self.on_session_opened(session, head, None, ui_effects);
                self.submit_initial_prompt(prompt, ui_effects);
            }
            (PendingResponse::ExpandedCommand(_), Ok(HostResponse::Prompt { text, settings })) => {
                let (attachments, delivery) = (Vec::new(), PromptDelivery::Steer);
                let prompt = Submission::Prompt { text, attachments, delivery, settings };
                self.submit(prompt, ui_effects);
            }
            (PendingResponse::TrustReview, Ok(HostResponse::TrustReview { review })) => {
                let panel = panel::trust::TrustPanel::with_review(*review, self.now);
                self.panels.push(Box::new(panel));
            }
            (PendingResponse::NextAgent, Ok(HostResponse::Rows { rows })) => {
                self.switch_to_next_agent(&rows, ui_effects);
            }
            (PendingResponse::StatusLine, Ok(HostResponse::StatusLine { text })) => {
                self.status_text = text;
            }
            (PendingResponse::Detached, Ok(HostResponse::Done)) => ui_effects.push(UiEffect::Quit),
            (PendingResponse::WrittenPath, Ok(HostResponse::Path { path })) => {
                self.transcript.add_note(&format!("Exported to {path}"));
            }
            (PendingResponse::PromptSent(prompt), Ok(HostResponse::OpRejected { error })) => {
                self.on_prompt_refused(&prompt);
                self.on_op_rejected(&error);
            }
            (_, Ok(HostResponse::OpRejected { error })) => self.on_op_rejected(&error),
            (_, Ok(_)) => {}
            (PendingResponse::FailureOnly, Err(fault)) => self.report_failure(&fault),
            (PendingResponse::PromptSent(prompt), Err(fault)) => {
                self.on_prompt_refused(&prompt);
                self.report_failure(&fault);
            }
            (pending, Err(fault)) => {
                self.transcript.add_note(&crate::error_hints::describe(&fault));
                if pending == PendingResponse::TrustReview {
                    self.open_initial_session(ui_effects);
                }
                match pending {
                    _ if !self.prompt.is_empty() => {}
                    PendingResponse::SessionOpened(Some(submission))
                    | PendingResponse::ExpandedCommand(submission) => {
                        self.restore_submission(&submission);
                    }
                    PendingResponse::InitialSessionOpened(Some(text)) => {
                        self.prompt.set_text(&text);
                    }
                    _ => {}
                }
            }
        }
    }
}
