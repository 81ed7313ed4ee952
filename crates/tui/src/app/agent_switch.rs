//! Switching the agent of the session, with Tab on an empty prompt or from `/agent`.

use super::{App, PendingResponse};
use crate::panel::agent_picker::BUSY_HINT;
use crate::ui_context::UiEffect;
use windlass_protocol::frontend_messages::{FrontendRequest, ListRow, ListedItemKind};
use windlass_protocol::{PermissionMode, SessionOp};

impl App {
    /// Requests the agents, to switch to the one after the current agent.
    pub(super) fn request_next_agent(&mut self, ui_effects: &mut Vec<UiEffect>) {
        if self.state.is_busy() {
            return self.show_hint(BUSY_HINT);
        }
        let request = FrontendRequest::List { list: ListedItemKind::Agents };
        self.send_request(request, PendingResponse::NextAgent, ui_effects);
    }

    /// Switches to the next agent. If there is only one, switches plan mode on or off instead.
    pub(super) fn switch_to_next_agent(
        &mut self,
        agents: &[ListRow],
        ui_effects: &mut Vec<UiEffect>,
    ) {
        let current = agents.iter().position(|row| row.name == self.state.agent);
        let next = current.map_or(0, |index| (index + 1) % agents.len().max(1));
        match agents.get(next).filter(|row| row.name != self.state.agent) {
            Some(row) => self.switch_agent(&row.name, ui_effects),
            None => {
                let mode = match (self.state.mode, self.state.host_status.mode) {
                    (PermissionMode::Plan, PermissionMode::Plan) => PermissionMode::Ask,
                    (PermissionMode::Plan, usual_mode) => usual_mode,
                    (_, _) => PermissionMode::Plan,
                };
                self.set_mode(mode, ui_effects);
                self.show_hint(match mode {
                    PermissionMode::Plan => "Plan mode: nothing is changed",
                    PermissionMode::Ask | PermissionMode::Auto | PermissionMode::Full => {
                        "Plan mode is off"
                    }
                });
            }
        }
    }

    fn switch_agent(&mut self, agent: &str, ui_effects: &mut Vec<UiEffect>) {
        self.send_op(SessionOp::SetAgent { agent: agent.to_owned() }, ui_effects);
        self.on_agent_chosen(agent);
    }

    /// Sets the agent of the next session, if there is none yet, and says so.
    pub(super) fn on_agent_chosen(&mut self, agent: &str) {
        if self.state.session.is_none() {
            agent.clone_into(&mut self.state.agent);
        }
        self.show_hint(&format!("Agent: {agent}"));
    }
}
