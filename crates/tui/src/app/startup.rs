//! Startup of the front end: the first panel, the trust review, the initial session, and the state
//! of a session that was just opened.

use super::{App, PendingResponse};
use crate::panel;
use crate::prompt::{PromptAction, Submission};
use crate::ui_context::UiEffect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, TrustState};
use windlass_protocol::prompt_mentions::mentions;
use windlass_protocol::{Fault, SessionId, SessionOp};

impl App {
    pub(super) fn on_host_status(&mut self, response: &Result<HostResponse, Fault>) {
        let Ok(HostResponse::Status { status }) = response else { return };
        self.state.host_status = (**status).clone();
        self.state.model = status.model.clone().unwrap_or_default();
        if self.state.session.is_none() {
            self.state.mode = status.mode;
            if self.state.agent.is_empty() {
                self.state.agent.clone_from(&status.agent);
            }
        }
    }

    /// Opens the first panel once `HostStatus` is known. In a folder that is new or has changed, the
    /// trust question comes first, and the initial session waits for its answer.
    pub(super) fn start(&mut self, ui_effects: &mut Vec<UiEffect>) {
        for note in std::mem::take(&mut self.state.host_status.notes) {
            self.transcript.add_note(&note);
        }
        let panel = self.with_parts(ui_effects, |_, cx| panel::open_first_panel(cx));
        self.panels.extend(panel);
        match self.state.host_status.trust {
            TrustState::NotAsked | TrustState::ChangedSinceTrust => self.send_request(
                FrontendRequest::ReviewTrust,
                PendingResponse::TrustReview,
                ui_effects,
            ),
            TrustState::Trusted | TrustState::Declined => self.open_initial_session(ui_effects),
        }
    }

    /// Opens the session and submits the prompt that the user named at the start, if not done yet.
    pub(super) fn open_initial_session(&mut self, ui_effects: &mut Vec<UiEffect>) {
        let submission = self.initial_prompt.take().map(Submission::from_text);
        match (self.initial_session.take(), submission) {
            (Some(session), submission) => {
                self.send_request(
                    FrontendRequest::OpenSession { session },
                    PendingResponse::SessionOpened(submission),
                    ui_effects,
                );
            }
            // The editor would run a text that begins with `!` or `/`, and break one that ends with `\`.
            (None, Some(Submission::Prompt { text, .. }))
                if !mentions(&text).is_empty()
                    && self.prompt.is_empty()
                    && !text.trim_start().starts_with(['!', '/'])
                    && !text.trim_end().ends_with('\\') =>
            {
                let action =
                    self.with_parts(ui_effects, |parts, cx| parts.prompt.submit_text(&text, cx));
                if let PromptAction::Submit(submission) = action {
                    self.submit(submission, ui_effects);
                }
            }
            (None, Some(submission)) => self.submit(submission, ui_effects),
            (None, None) => {}
        }
    }

    pub(super) fn on_session_opened(
        &mut self,
        session: SessionId,
        head: u64,
        submission: Option<Submission>,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        let status = std::mem::take(&mut self.state.host_status);
        let (mode, model) = (self.state.mode, status.model.clone().unwrap_or_default());
        self.state = crate::session_state::SessionState {
            mode: if head == 0 { mode } else { status.mode },
            agent: status.agent.clone(),
            host_status: status,
            model,
            session: Some(session),
            head,
            early_records: (head > 0).then(Vec::new),
            ..Default::default()
        };
        self.questions = Default::default();
        self.with_parts(ui_effects, |parts, cx| parts.transcript.open(session, head, cx));
        // A new session starts in the mode of the config.
        if head == 0 && mode != self.state.host_status.mode {
            self.send_op(SessionOp::SetMode { mode }, ui_effects);
        }
        if let Some(submission) = submission {
            self.submit(submission, ui_effects);
        }
    }
}
