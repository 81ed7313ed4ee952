//! The connection to the host: its loss, the other clients of the session, and the hand-over of the
//! session to a server.

use super::{App, PendingResponse};
use crate::session_state::SessionState;
use crate::ui_context::UiEffect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostStatus};
use windlass_protocol::{Event, Fault, SessionId};

/// Hint of `/detach` when the session is in a server already.
pub(crate) const ALREADY_IN_SERVER: &str =
    "This session is in the server already; /quit leaves it there";

impl App {
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
