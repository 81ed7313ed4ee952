//! The state of the linear mode: turns `LinearUiEvent` into output lines and effects.

mod connection;
mod session_events;

use crate::app::TuiOptions;
use crate::app::connection::folder_with_host;
use crate::questions::queue::{PendingQuestionQueue, PreApproval};
use crate::safe_line;
use crate::session_state::SessionState;
use crate::ui_context::UiEffect;
use std::collections::HashMap;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::frontend_messages::{
    FrontendRequest, FrontendRequestMessage, HostMessage, HostResponse, HostStatus, TrustState,
};
use windlass_protocol::report::{ReportKind, ReportRow};
use windlass_protocol::session_stream::OpenSessionState;
use windlass_protocol::{
    CallId, Fault, LogSeq, OpError, PromptDelivery, QueryReply, SessionId, SessionOp, UnixMillis,
    prompt_mentions,
};

/// The maximum lines to read out of one text; the number of further lines is printed instead.
pub(super) const MAX_READ_LINES: usize = 12;

/// An input of [`LinearUi::update`].
#[derive(Clone, Debug, PartialEq)]
pub enum LinearUiEvent {
    /// The user typed a line.
    Line(String),
    /// A `HostMessage`.
    HostMessage(Box<HostMessage>),
    /// The user pressed Ctrl-C.
    Interrupt,
    /// Stdin is closed.
    EndOfInput,
}

/// An action to run in a session once it is open.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DeferredSessionAction {
    Nothing,
    SendOp(SessionOp),
    /// A prompt, whose mentioned files are read first.
    Prompt(String),
    /// A shell command, as the user typed it.
    ShellCommand(String),
    /// A custom command of the user.
    CustomCommand {
        name: String,
        arguments: String,
    },
}

/// The purpose of a pending request, which decides how `on_response` handles it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LinearPendingResponse {
    HostStatus,
    /// A session to start or open; the `DeferredSessionAction` runs in it afterwards.
    SessionOpened(DeferredSessionAction),
    /// The expansion of a custom command (`ExpandCommand`); the resulting prompt is submitted.
    ExpandedCommand,
    /// Only a failure is printed.
    FailureOnly,
    /// The message to print on success.
    SuccessMessage(String),
    WrittenPath,
    /// The end of `DetachSession`; the user interface ends then.
    Detached,
    /// The open sessions; the list of all sessions is requested next.
    OpenSessions,
    /// The last records of an opened session.
    Recap,
    /// A response that `print_response` prints as it is.
    Printed,
    /// A list, and the sentence to print if it is empty.
    Listing(&'static str),
    /// The files that a prompt mentions; the prompt is submitted next.
    PreparedPrompt(String),
    /// The changes that `/undo` or `/redo` would make.
    UndoPreview,
    /// The result of `/doctor`.
    Doctor,
    /// The rows of a report, such as `/mcp`.
    Report(ReportKind),
    /// The session whose texts `/copy` lists, or the number of the text to print.
    Copy(Option<usize>),
    /// The conversation to search for the text of `/find`.
    Find(String),
}

/// The state of the linear mode; [`LinearUi::update`] drives it.
#[derive(Debug, Default)]
pub struct LinearUi {
    pub(super) state: SessionState,
    next_request_id: u64,
    pending_responses: HashMap<u64, LinearPendingResponse>,
    pub(super) lines: Vec<String>,
    pub(super) effects: Vec<UiEffect>,
    pub(super) questions: PendingQuestionQueue,
    /// The sessions of the last `/sessions` output; the user picks one by its number.
    pub(super) listed_sessions: Vec<SessionId>,
    /// The open sessions, as of the last `/sessions`.
    pub(super) open_sessions: Vec<OpenSessionState>,
    /// The prompts of the last `/rewind` output, each with the position before it.
    pub(super) listed_prompts: Vec<(LogSeq, String)>,
    /// The rows of the last report; the user picks one by its number.
    pub(super) listed_report: Vec<ReportRow>,
    /// The facts to undo and the diff shown for them, until the user confirms.
    pub(super) pending_undo: Option<(Vec<u64>, String)>,
    call_lines: HashMap<CallId, String>,
    /// The start time and the time of the last line of each call that the model is writing.
    partial_calls: HashMap<u64, (UnixMillis, UnixMillis)>,
    /// The streamed text of the model; `read_bytes` of it are already printed.
    model_text: String,
    read_bytes: usize,
    /// True if the last answer of the model has no text so far.
    lacks_answer: bool,
    /// True if the last printed text came from the model.
    model_text_was_last: bool,
    /// Input lines that ended with a backslash and continue on the next line.
    partial_line: String,
    quit_on_interrupt: bool,
    initial_session: Option<SessionId>,
    initial_prompt: Option<String>,
}

impl LinearUi {
    /// Creates the state, and returns the first output lines and `UiEffect`s.
    pub fn new(options: TuiOptions) -> (LinearUi, (Vec<String>, Vec<UiEffect>)) {
        let TuiOptions { session, prompt, notes, .. } = options;
        let mut linear =
            LinearUi { initial_session: session, initial_prompt: prompt, ..LinearUi::default() };
        for note in notes {
            linear.print(&note);
        }
        linear.send_request(FrontendRequest::status(), LinearPendingResponse::HostStatus);
        let output = linear.take_output();
        (linear, output)
    }

    fn take_output(&mut self) -> (Vec<String>, Vec<UiEffect>) {
        (std::mem::take(&mut self.lines), std::mem::take(&mut self.effects))
    }

    /// Processes a `LinearUiEvent`, and returns the lines to print and the effects to perform.
    pub fn update(&mut self, input: LinearUiEvent) -> (Vec<String>, Vec<UiEffect>) {
        let quit_on_interrupt = std::mem::take(&mut self.quit_on_interrupt);
        match input {
            LinearUiEvent::Line(line) => self.on_line(&line),
            LinearUiEvent::HostMessage(message) => self.on_host_message(*message),
            LinearUiEvent::EndOfInput => self.effects.push(UiEffect::Quit),
            LinearUiEvent::Interrupt if self.state.is_busy() => {
                self.send_op(SessionOp::Interrupt { turn: None });
                self.print("stopping");
            }
            LinearUiEvent::Interrupt if quit_on_interrupt => self.effects.push(UiEffect::Quit),
            LinearUiEvent::Interrupt => {
                self.partial_line.clear();
                self.quit_on_interrupt = true;
                self.print("Press Ctrl-C again or type /quit to quit.");
            }
        }
        self.take_output()
    }

    /// Prints UI text, starting at the left edge.
    pub(super) fn print(&mut self, text: &str) {
        self.model_text_was_last = false;
        self.lines.extend(text.lines().map(safe_line::sanitize));
    }

    /// Prints quoted text: indented by two columns, and at most `max_lines` lines, so that it stays
    /// short enough to listen to.
    pub(super) fn print_quoted(&mut self, text: &str, max_lines: usize) {
        let total = text.lines().count();
        let lines =
            text.lines().take(max_lines).map(|line| format!("  {}", safe_line::sanitize(line)));
        self.lines.extend(lines);
        if total > max_lines {
            self.lines.push(format!("({})", pluralize(total - max_lines, "more line")));
        }
    }

    pub(super) fn send_request(
        &mut self,
        request: FrontendRequest,
        pending: LinearPendingResponse,
    ) {
        self.send_request_with_id(request, pending);
    }

    /// Sends a request and returns the id that its response will carry.
    pub(super) fn send_request_with_id(
        &mut self,
        request: FrontendRequest,
        pending: LinearPendingResponse,
    ) -> u64 {
        self.next_request_id += 1;
        let id = self.next_request_id;
        self.effects.push(UiEffect::Send(Box::new(FrontendRequestMessage { id, request })));
        self.pending_responses.insert(id, pending);
        id
    }

    pub(super) fn send_op(&mut self, op: SessionOp) {
        self.run_in_session(DeferredSessionAction::SendOp(op));
    }

    /// Runs a `DeferredSessionAction` in the session; starts a session first if there is none.
    pub(super) fn run_in_session(&mut self, action: DeferredSessionAction) {
        let Some(session) = self.state.session else { return self.start_session(action) };
        match action {
            DeferredSessionAction::Nothing => self.print("ready"),
            DeferredSessionAction::SendOp(op) => self.send_request(
                FrontendRequest::SessionOp { session, id: None, op },
                LinearPendingResponse::FailureOnly,
            ),
            DeferredSessionAction::Prompt(text) => self.prepare_prompt(&text),
            DeferredSessionAction::ShellCommand(command) => {
                let op = SessionOp::shell_command(&command);
                self.questions.pre_approve(PreApproval::Command(command));
                self.send_request(
                    FrontendRequest::SessionOp { session, id: None, op },
                    LinearPendingResponse::FailureOnly,
                );
            }
            DeferredSessionAction::CustomCommand { name, arguments } => {
                self.send_request(
                    FrontendRequest::ExpandCommand { session: None, name, arguments },
                    LinearPendingResponse::ExpandedCommand,
                );
            }
        }
    }

    /// Starts a session, then runs `action` in it.
    pub(super) fn start_session(&mut self, action: DeferredSessionAction) {
        self.send_request(
            self.state.new_session_request(),
            LinearPendingResponse::SessionOpened(action),
        );
    }

    fn on_line(&mut self, line: &str) {
        if let Some(partial) = line.strip_suffix('\\') {
            self.partial_line.push_str(partial);
            self.partial_line.push('\n');
            return;
        }
        let line = std::mem::take(&mut self.partial_line) + line;
        let text = line.trim();
        if text.is_empty() {
            return self.read_question();
        }
        if let Some(command) = text.strip_prefix('!') {
            if self.state.is_busy() {
                return self.print("The model is working; type the command again when it is done.");
            }
            return self
                .run_in_session(DeferredSessionAction::ShellCommand(command.trim().to_owned()));
        }
        // A leading space sends the line to the model as it is, even if it looks like a command.
        if !line.starts_with(' ')
            && let Some(name) = crate::prompt::command_name(text).filter(|name| !name.is_empty())
        {
            let arguments = text.get(name.len() + 1..).unwrap_or_default().trim();
            return self.run_command(name, arguments);
        }
        if self.pending_undo.is_some() {
            return self.confirm_undo(text);
        }
        if self.questions.first().is_some() {
            return self.answer_question(text);
        }
        self.prepare_prompt(text);
    }

    /// Reads the files that a prompt mentions, then submits it.
    fn prepare_prompt(&mut self, text: &str) {
        if prompt_mentions::mentions(text).is_empty() {
            return self.submit_prompt(SessionOp::prompt(text));
        }
        let (text, attachments) = (text.to_owned(), Vec::new());
        self.send_request(
            FrontendRequest::PreparePrompt { text: text.clone(), attachments, model: None },
            LinearPendingResponse::PreparedPrompt(text),
        );
    }

    pub(super) fn submit_prompt(&mut self, prompt: SessionOp) {
        if self.state.is_busy() {
            self.print("The model gets this at its next step.");
        }
        self.send_op(prompt);
    }

    fn on_host_message(&mut self, message: HostMessage) {
        match message {
            HostMessage::Event { event } => self.on_event(&event),
            HostMessage::Response { id, response } => {
                let is_refused = !matches!(
                    response,
                    Ok(HostResponse::OpAccepted { .. } | HostResponse::OpQueued)
                );
                let answer_failed = self.questions.on_response(id, &response) && is_refused;
                if let Some(pending) = self.pending_responses.remove(&id) {
                    self.on_response(pending, response);
                }
                if answer_failed {
                    self.read_question();
                }
            }
            HostMessage::Notice { text } => self.print(&format!("note: {text}")),
            // `/panel` and the reports print them.
            HostMessage::Servers { servers } => self.state.host_status.servers = servers,
            HostMessage::OpenQuestions { records } => {
                records.iter().for_each(|record| self.on_question_record(record));
            }
            HostMessage::Disconnected { reason } => self.on_disconnected(&reason),
            HostMessage::Reconnected => self.on_reconnected(),
            HostMessage::Clients { session, clients, is_live } => {
                self.on_clients(session, clients, is_live)
            }
            HostMessage::SessionStopped { session, fault } => {
                self.on_session_stopped(session, &fault)
            }
        }
    }

    fn print_fault(&mut self, fault: &Fault) {
        self.print(&crate::error_hints::describe(fault));
    }

    fn on_response(
        &mut self,
        pending: LinearPendingResponse,
        response: Result<HostResponse, Fault>,
    ) {
        let response = match response {
            Ok(response) => response,
            Err(_) if pending == LinearPendingResponse::OpenSessions => {
                return self.request_sessions(Vec::new());
            }
            Err(fault) => {
                match (&pending, &fault) {
                    // The next step of a config error does not help here.
                    (LinearPendingResponse::ExpandedCommand, Fault::Config { message }) => {
                        self.print(&format!("{}.", message.trim_end_matches('.')));
                    }
                    _ => self.print_fault(&fault),
                }
                match pending {
                    LinearPendingResponse::ExpandedCommand => {
                        self.print("To send it as text, start the line with a space.")
                    }
                    LinearPendingResponse::Recap => self.print("ready"),
                    _ => {}
                }
                return;
            }
        };
        match (pending, response) {
            (LinearPendingResponse::HostStatus, HostResponse::Status { status }) => {
                self.on_host_status(*status)
            }
            (
                LinearPendingResponse::SessionOpened(action),
                HostResponse::SessionOpened { session, head, .. },
            ) => {
                self.on_session_opened(session, head, action);
            }
            (
                LinearPendingResponse::PreparedPrompt(text),
                HostResponse::PreparedPrompt { attachments, warnings },
            ) => {
                for file in &attachments {
                    self.print(&format!("attached: {}", file.name));
                }
                if !warnings.is_empty() {
                    self.print(&warnings.join(" "));
                    return self.print("Nothing was sent. Remove the @ to send the prompt.");
                }
                let (delivery, settings) = Default::default();
                self.submit_prompt(SessionOp::Prompt { text, attachments, delivery, settings });
            }
            (LinearPendingResponse::ExpandedCommand, HostResponse::Prompt { text, settings }) => {
                let (attachments, delivery) = (Vec::new(), PromptDelivery::Steer);
                self.submit_prompt(SessionOp::Prompt { text, attachments, delivery, settings });
            }
            (
                LinearPendingResponse::Recap,
                HostResponse::Reply { reply: QueryReply::Events { events } },
            ) => {
                self.print_recap(&events);
                self.print("ready");
            }
            (LinearPendingResponse::Detached, HostResponse::Done) => {
                self.print("The server has the session now.");
                self.effects.push(UiEffect::Quit);
            }
            (LinearPendingResponse::OpenSessions, HostResponse::OpenSessions { sessions }) => {
                self.request_sessions(sessions);
            }
            (LinearPendingResponse::WrittenPath, HostResponse::Path { path }) => {
                self.print(&format!("Exported to {path}"))
            }
            (LinearPendingResponse::SuccessMessage(text), response) => {
                if let HostResponse::Status { status } = response {
                    self.state.model = status.model.clone().unwrap_or_default();
                    self.state.host_status = *status;
                }
                self.print(&text);
            }
            (_, HostResponse::OpRejected { error: OpError::NoTurn | OpError::NoQuestion }) => {}
            (_, HostResponse::OpRejected { error }) => self.print(&format!("note: {error}")),
            (pending, response) => self.print_response(&pending, response),
        }
    }

    fn on_host_status(&mut self, status: HostStatus) {
        let model = status.model.clone().unwrap_or_else(|| "no model".to_owned());
        self.print(&format!("windlass {} in {}", status.version, folder_with_host(&status)));
        self.print(&format!("{model}, mode {}. /help lists commands", status.mode));
        for note in &status.notes {
            self.print(&format!("note: {note}"));
        }
        if status.model.is_none() {
            self.print(
                "No model is selected. /model lists the available ones; `windlass auth \
                        login PROVIDER` saves an API key.",
            );
        }
        match status.trust {
            TrustState::NotAsked | TrustState::ChangedSinceTrust => {
                self.print(
                    "This folder is not trusted: AGENTS.md is ignored and nothing in it \
                            is run. /trust shows what it would run.",
                );
            }
            TrustState::Trusted | TrustState::Declined => {}
        }
        (self.state.mode, self.state.agent) = (status.mode, status.agent.clone());
        self.state.model = status.model.clone().unwrap_or_default();
        self.state.host_status = status;
        match (self.initial_session.take(), self.initial_prompt.take()) {
            (Some(session), prompt) => {
                let action =
                    prompt.map_or(DeferredSessionAction::Nothing, DeferredSessionAction::Prompt);
                self.send_request(
                    FrontendRequest::OpenSession { session, resume: false },
                    LinearPendingResponse::SessionOpened(action),
                );
            }
            (None, Some(text)) => self.prepare_prompt(&text),
            (None, None) => self.print("ready"),
        }
    }

    fn on_session_opened(&mut self, session: SessionId, head: u64, action: DeferredSessionAction) {
        let status = std::mem::take(&mut self.state.host_status);
        let (mode, agent) = (self.state.mode, self.state.agent.clone());
        let model = status.model.clone().unwrap_or_default();
        let mode_changed = mode != status.mode && head == 0;
        self.state = SessionState {
            host_status: status,
            session: Some(session),
            head,
            mode,
            agent,
            model,
            ..SessionState::default()
        };
        (self.questions, self.pending_undo) = (PendingQuestionQueue::default(), None);
        self.listed_prompts.clear();
        if head > 0 {
            self.print(&format!("Opened a session with {head} entries."));
        }
        if mode_changed {
            self.send_op(SessionOp::SetMode { mode });
        }
        match action {
            DeferredSessionAction::Nothing if head > 0 => self.request_recap(session, head),
            action => self.run_in_session(action),
        }
    }
}
