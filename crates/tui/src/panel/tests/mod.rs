//! Tests of panels in the whole `App`, with scripted host responses.

mod lists;
mod onboarding;
mod reports;
mod session_panels;

use crate::app::{App, AppEvent, TuiOptions};
use crate::keys::{KeyStroke, UiCommand};
use crate::ui_context::{Appearance, UiEffect};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use windlass_protocol::frontend_messages::{
    FrontendRequest, FrontendRequestMessage, HostMessage, HostResponse, HostStatus,
};
use windlass_protocol::{
    Event, Fact, FactRecord, Fault, LiveEvent, LiveEventRecord, LogSeq, PermissionMode, QueryReply,
    SessionId, UnixMillis,
};

/// The current time of the tests, in milliseconds; ages are relative to it.
pub(super) const NOW: u64 = 1_790_000_000_000;
pub(super) const MINUTE: u64 = 60_000;
pub(super) const HOUR: u64 = 60 * MINUTE;

/// An `App` with its unanswered requests and other effects.
pub(super) struct TestPanelApp {
    pub(super) app: App,
    pub(super) pending_requests: Vec<FrontendRequestMessage>,
    /// All effects other than requests.
    pub(super) ui_effects: Vec<UiEffect>,
    seq: LogSeq,
    /// The last request for the states of open sessions, which most tests do not answer.
    pub(super) open_sessions_request: Option<u64>,
}

impl TestPanelApp {
    /// Returns a started `App` without a session.
    pub(super) fn new(appearance: Appearance) -> TestPanelApp {
        let options = TuiOptions { appearance, ..TuiOptions::default() };
        let (app, ui_effects) = App::new(options, NOW);
        let mut env = TestPanelApp {
            app,
            pending_requests: Vec::new(),
            ui_effects: Vec::new(),
            seq: 0,
            open_sessions_request: None,
        };
        env.record_effects(ui_effects);
        let status = HostStatus {
            version: "1".into(),
            workspace: "~/code/harbour".into(),
            root: "/home/a/code/harbour".into(),
            model: Some("anthropic/claude-opus-4".into()),
            context_window: Some(200_000),
            agent: "build".into(),
            mode: PermissionMode::Ask,
            max_mode: PermissionMode::Auto,
            trust: windlass_protocol::frontend_messages::TrustState::Trusted,
            ..HostStatus::default()
        };
        env.answer(Ok(HostResponse::Status { status: Box::new(status) }));
        env
    }

    /// Returns a started `App` with an open session.
    pub(super) fn open() -> TestPanelApp {
        let mut env = TestPanelApp::new(Appearance::default());
        env.run_command("/new");
        env.answer(Ok(HostResponse::SessionOpened { session: session(1), head: 0, model: None }));
        env.pending_requests.clear();
        env
    }

    fn record_effects(&mut self, ui_effects: Vec<UiEffect>) {
        for effect in ui_effects {
            match effect {
                UiEffect::Send(message) if message.request == FrontendRequest::ListOpenSessions => {
                    self.open_sessions_request = Some(message.id);
                }
                UiEffect::Send(message) => self.pending_requests.push(*message),
                effect => self.ui_effects.push(effect),
            }
        }
    }

    pub(super) fn update(&mut self, event: AppEvent) {
        let ui_effects = self.app.update(event, NOW);
        self.record_effects(ui_effects);
    }

    /// Performs a slash command with its arguments, such as `/rename TITLE`.
    pub(super) fn run_command(&mut self, text: &str) {
        let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
        let has_name =
            |entry: &&crate::keys::CommandEntry| Some(entry.name) == name.strip_prefix('/');
        let command =
            crate::keys::COMMAND_TABLE.iter().find(has_name).map(|entry| entry.command).unwrap();
        self.perform_command(command, arguments);
    }

    pub(super) fn perform_command(&mut self, command: UiCommand, arguments: &str) {
        let ui_effects = self.app.perform_at(command, arguments, NOW);
        self.record_effects(ui_effects);
    }

    /// Presses keys, which are named as in the command table and separated by spaces.
    pub(super) fn press(&mut self, keys: &str) {
        for key in keys.split_whitespace() {
            let event: KeyEvent =
                KeyStroke::parse(key).unwrap_or_else(|| panic!("{key}")).to_event();
            self.update(AppEvent::Key(event));
        }
    }

    /// Types a text.
    pub(super) fn type_text(&mut self, text: &str) {
        for character in text.chars() {
            let code = crossterm::event::KeyCode::Char(character);
            self.update(AppEvent::Key(code.into()));
        }
    }

    /// Answers the oldest request.
    pub(super) fn answer(&mut self, response: Result<HostResponse, Fault>) -> FrontendRequest {
        let FrontendRequestMessage { id, request } = self.pending_requests.remove(0);
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Response { id, response })));
        request
    }

    pub(super) fn reply(&mut self, reply: QueryReply) -> FrontendRequest {
        self.answer(Ok(HostResponse::Reply { reply }))
    }

    pub(super) fn fail(&mut self) -> FrontendRequest {
        self.answer(Err(Fault::Storage { message: "the disk is full".into() }))
    }

    /// Delivers a fact of the session.
    pub(super) fn fact(&mut self, fact: Fact) {
        self.seq += 1;
        let record = FactRecord::new(session(1), self.seq, UnixMillis(NOW), fact);
        let event = Box::new(Event::Fact(record));
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Event { event })));
    }

    /// Delivers a live event of the session.
    pub(super) fn live(&mut self, live: LiveEvent) {
        let event =
            Event::Live(LiveEventRecord { session: session(1), at: UnixMillis(NOW), event: live });
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Event { event: Box::new(event) })));
    }

    /// Draws the panel and returns it as text with the cursor position. The screen has this size,
    /// of which the prompt takes four rows.
    pub(super) fn frame(&mut self, width: u16, height: u16) -> String {
        let height = height.saturating_sub(4);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let area = buffer.area;
        let cursor = self.app.draw_panel(area, &mut buffer);
        let mut text = String::new();
        for y in 0..height {
            let mut row = String::new();
            let mut skip = 0;
            for x in 0..width {
                let symbol = buffer[(x, y)].symbol();
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
                row.push_str(symbol);
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        let text = text.trim_start_matches('\n');
        match cursor {
            Some(at) => format!("{text}cursor {},{}\n", at.x, at.y),
            None => text.to_owned(),
        }
    }
}

/// Draws the whole screen and returns it as text.
pub(super) fn screen_text(env: &mut TestPanelApp) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    env.app.draw(&mut buffer);
    buffer.content().iter().map(|cell| cell.symbol()).collect()
}

pub(super) fn session(number: u128) -> SessionId {
    SessionId(uuid::Uuid::from_u128(number))
}
