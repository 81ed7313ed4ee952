//! The connection of the linear mode to its host: its loss, and the other clients of the session.

use super::{LinearPendingResponse, LinearUi};
use crate::app::connection::ALREADY_IN_SERVER;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::{ClientInfo, Fault, SessionId};

impl LinearUi {
    pub(super) fn on_disconnected(&mut self, reason: &str) {
        self.state.is_disconnected = true;
        self.print(&format!(
            "note: the connection to the server was lost ({reason}). Connecting again."
        ));
    }

    pub(super) fn on_reconnected(&mut self) {
        self.state.is_disconnected = false;
        self.print("note: connected to the server again");
    }

    pub(super) fn on_clients(
        &mut self,
        session: SessionId,
        clients: Vec<ClientInfo>,
        is_live: bool,
    ) {
        let before = (self.state.is_read_only, self.state.other_client_count());
        self.state.set_clients(session, clients, is_live);
        let (is_read_only, others) = (self.state.is_read_only, self.state.other_client_count());
        match (before.0, is_read_only) {
            (false, true) => self.print("note: read-only, the session is open in another process"),
            (true, false) => self.print("note: the session is open here now"),
            (true, true) | (false, false) => {}
        }
        if before.1 != others {
            let verb = if others == 1 { "is" } else { "are" };
            self.print(&match others {
                0 => "note: no other client is attached".to_owned(),
                _ => format!("note: {} {verb} attached", pluralize(others, "other client")),
            });
        }
    }

    pub(super) fn on_session_stopped(&mut self, session: SessionId, fault: &Fault) {
        let previous_serial = self.questions.current_serial();
        self.questions.remove_session(session, &self.state);
        if Some(session) == self.state.session {
            self.state.on_stopped();
            self.print_fault(fault);
        }
        self.announce_next_question(previous_serial);
    }

    /// Hands the session over to the server of this machine.
    pub(in crate::linear) fn run_detach_command(&mut self, session: SessionId) {
        match self.state.host_status.host {
            Some(_) => self.print(&format!("{ALREADY_IN_SERVER}.")),
            None => self.send_request(
                FrontendRequest::DetachSession { session },
                LinearPendingResponse::Detached,
            ),
        }
    }
}
