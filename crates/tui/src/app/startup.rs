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
        let prompt = self.initial_prompt.take();
        match self.initial_session.take() {
            Some(session) => self.send_request(
                FrontendRequest::OpenSession { session, resume: false },
                PendingResponse::InitialSessionOpened(prompt),
                ui_effects,
            ),
            None => self.submit_initial_prompt(prompt, ui_effects),
        }
    }

    /// Submits the prompt of the command line, after the host has read the files that it mentions.
    pub(super) fn submit_initial_prompt(
        &mut self,
        prompt: Option<String>,
        ui_effects: &mut Vec<UiEffect>,
    ) {
        let Some(text) = prompt else { return };
        // The editor waits for the files; a draft that the user typed meanwhile stays in it.
        if mentions(&text).is_empty() || !self.prompt.is_empty() {
            return self.submit(Submission::from_text(text), ui_effects);
        }
        let action = self.with_parts(ui_effects, |parts, cx| parts.prompt.submit_text(&text, cx));
        if let PromptAction::Submit(submission) = action {
            self.submit(submission, ui_effects);
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
