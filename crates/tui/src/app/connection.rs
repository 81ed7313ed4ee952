//! The connection to the host: its loss, operations that it refuses, the other clients of the
//! session, and the hand-over of the session to a server.

use super::{App, PendingResponse};
use crate::prompt::Submission;
use crate::session_state::SessionState;
use crate::ui_context::UiEffect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostStatus};
use windlass_protocol::{AccessRight, ClientInfo, Event, Fault, OpError, SessionId, SessionOp};

/// Hint of `/detach` when the session is in a server already.
pub(crate) const ALREADY_IN_SERVER: &str =
    "This session is in the server already; /quit leaves it there";

/// Hint for a prompt that the session of another process cannot take.
const READ_ONLY: &str =
    "Another process has this session open. When that has ended, /sessions opens it here";

/// Hint for a prompt that a client cannot send that may only read.
const NO_RIGHT_TO_WRITE: &str =
    "Your token may only read: attach with one that has the right write";

impl App {
    /// Returns why the session takes nothing from this client.
    pub(super) fn read_only_hint(&self) -> Option<&'static str> {
        let may_write =
            self.state.host_status.right.is_none_or(|right| right >= AccessRight::Write);
        match (may_write, self.state.is_read_only) {
            (false, _) => Some(NO_RIGHT_TO_WRITE),
            (true, true) => Some(READ_ONLY),
            (true, false) => None,
        }
    }

    pub(super) fn on_clients(
        &mut self,
        session: SessionId,
        clients: Vec<ClientInfo>,
        is_live: bool,
    ) {
        self.state.set_clients(session, clients, is_live);
        if self.read_only_hint().is_some() {
            // They are answered elsewhere.
            self.questions = Default::default();
        }
    }

    /// Sends a prompt, which returns to the editor if the session does not get it.
    pub(super) fn send_prompt(&mut self, prompt: Submission, ui_effects: &mut Vec<UiEffect>) {
        let (Submission::Prompt { text, attachments, delivery, settings }, Some(session)) =
            (prompt.clone(), self.state.session)
        else {
            return;
        };
        let op = SessionOp::Prompt { text, attachments, delivery, settings };
        let request = FrontendRequest::SessionOp { session, id: None, op };
        self.send_request(request, PendingResponse::PromptSent(prompt), ui_effects);
        if self.state.is_disconnected {
            self.show_hint("The prompt is sent when the server is back");
        }
    }

    /// Puts a prompt back that the session did not take.
    pub(super) fn on_prompt_refused(&mut self, prompt: &Submission) {
        if self.prompt.is_empty() {
            self.restore_submission(prompt);
        }
    }

    /// Reports an operation that changed nothing, unless the screen shows why: the turn or the
    /// question has ended.
    pub(super) fn on_op_rejected(&mut self, error: &OpError) {
        match error {
            OpError::NoTurn | OpError::NoQuestion => {}
            OpError::AlreadyAnswered { .. }
            | OpError::TurnRunning { .. }
            | OpError::Invalid { .. }
            | OpError::Gone { .. }
            | OpError::Forbidden { .. }
            // While the model works, a note in the transcript would scroll away.
            | OpError::Stopped if self.state.is_busy() => self.show_hint(&error.to_string()),
            OpError::AlreadyAnswered { .. }
            | OpError::TurnRunning { .. }
            | OpError::Invalid { .. }
            | OpError::Gone { .. }
            | OpError::Forbidden { .. }
            | OpError::Stopped => self.transcript.add_note(&error.to_string()),
        }
    }

    pub(super) fn on_disconnected(&mut self, reason: &str) {
        self.state.is_disconnected = true;
        self.transcript.add_note(&format!(
            "The connection to the server was lost ({reason}). Connecting again…"
        ));
    }

    pub(super) fn on_reconnected(&mut self) {
        self.state.is_disconnected = false;
        self.transcript.add_note("Connected to the server again.");
    }

    pub(super) fn on_session_stopped(
        &mut self,
        session: SessionId,
        fault: &Fault,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        self.with_parts(ui_effects, |parts, cx| parts.questions.on_session_stopped(session, cx));
        if Some(session) == self.state.session {
            self.state.on_stopped();
            self.transcript.add_note(&crate::error_hints::describe(fault));
        }
    }

    /// Says who answered a question that this client still shows.
    pub(super) fn note_foreign_answer(&mut self, event: &Event) {
        if let Some(client) = self.questions.answered_by(event) {
            self.transcript.add_note(&format!("The question was answered by {client}."));
        }
    }

    /// Hands the session over to the server of this machine.
    pub(super) fn detach(&mut self, ui_effects: &mut Vec<UiEffect>) {
        match self.state.session {
            Some(_) if self.state.host_status.host.is_some() => self.show_hint(ALREADY_IN_SERVER),
            Some(session) => {
                self.show_hint("Handing the session over to the server");
                let request = FrontendRequest::DetachSession { session };
                self.send_request(request, PendingResponse::Detached, ui_effects);
            }
            None => self.show_hint("No session to hand over yet"),
        }
    }
}

/// Returns why the session cannot be changed now, if something is in the way.
pub(crate) fn connection_text(state: &SessionState) -> Option<&'static str> {
    match (state.is_disconnected, state.is_read_only) {
        (true, _) => Some("disconnected, reconnecting"),
        (false, _) if state.host_status.right == Some(AccessRight::Read) => {
            Some("read-only: your token may only read")
        }
        (false, true) => Some("read-only: open in another process"),
        (false, false) => None,
    }
}

/// Returns the folder, after the name of the machine if it is another one.
pub(crate) fn folder_with_host(status: &HostStatus) -> String {
    match &status.host {
        Some(host) => format!("{host}:{}", status.workspace),
        None => status.workspace.clone(),
    }
}
