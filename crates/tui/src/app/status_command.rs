//! The user's own status line command: when it runs, and with which input.

use super::{App, PendingResponse};
use crate::layout_settings::StatusLineSetting;
use crate::ui_context::UiEffect;
use windlass_protocol::frontend_messages::{FrontendRequest, StatusLineInput};

impl App {
    /// Requests a run of the command if its input has changed and no run is under way.
    pub(super) fn update_status_line(&mut self, ui_effects: &mut Vec<UiEffect>) {
        if self.appearance.layout.status_line != StatusLineSetting::Command
            || self.state.host_status.root.is_empty()
            || self
                .pending_responses
                .values()
                .any(|pending| *pending == PendingResponse::StatusLine)
        {
            return;
        }
        let input = StatusLineInput {
            title: self.state.title.clone(),
            model: self.state.model.clone(),
            agent: self.state.agent.clone(),
            mode: self.state.mode,
            folder: self.state.host_status.root.clone(),
            branch: self.state.host_status.branch.clone(),
            context_tokens: self.state.context_tokens,
            context_window: self.state.host_status.context_window,
            cost_usd: self.state.cost.0 as f64 / 1e6,
            effort: self.state.host_status.effort.clone(),
            busy: self.state.is_busy(),
        };
        if self.status_input.as_ref() != Some(&input) {
            self.status_input = Some(input.clone());
            let request = FrontendRequest::RunStatusLine { input };
            self.send_request(request, PendingResponse::StatusLine, ui_effects);
        }
    }
}
