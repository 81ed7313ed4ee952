//! Tests of `QuestionPanel`: frames of every state, and the effect of keys in each.

mod form;
mod permission;
mod type_ahead;

use super::QuestionPanel;
use crate::keys::UiCommand;
use crate::session_state::{SessionState, SubagentProgress};
use crate::ui_context::{Appearance, UiContext, UiEffect};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use uuid::Uuid;
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    CallId, Event, Fact, FactRecord, Fault, LogSeq, SessionId, SessionOp, ToolAccess, UnixMillis,
};

/// A `QuestionPanel` with its context, clock, commands and effects.
pub(super) struct TestQuestionPanel {
    pub(super) panel: QuestionPanel,
    pub(super) appearance: Appearance,
    pub(super) state: SessionState,
    pub(super) now: u64,
    next_request_id: u64,
    pub(super) commands: Vec<UiCommand>,
    pub(super) ui_effects: Vec<UiEffect>,
}

pub(super) fn root() -> SessionId {
    SessionId(Uuid::from_u128(1))
}

pub(super) fn child() -> SessionId {
    SessionId(Uuid::from_u128(2))
}

pub(crate) fn call(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

pub(super) fn fact_event(session: SessionId, seq: LogSeq, fact: Fact) -> Event {
    Event::Fact(FactRecord::new(session, seq, UnixMillis(0), fact))
}

pub(crate) fn key_event(text: &str) -> KeyEvent {
    let unmodified = |code| KeyEvent::new(code, KeyModifiers::NONE);
    match text {
        "enter" => unmodified(KeyCode::Enter),
        "ctrl+c" => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        "esc" => unmodified(KeyCode::Esc),
        "tab" => unmodified(KeyCode::Tab),
        "up" => unmodified(KeyCode::Up),
        "down" => unmodified(KeyCode::Down),
        "left" => unmodified(KeyCode::Left),
        "right" => unmodified(KeyCode::Right),
        "backspace" => unmodified(KeyCode::Backspace),
        "pagedown" => unmodified(KeyCode::PageDown),
        "end" => unmodified(KeyCode::End),
        _ => unmodified(KeyCode::Char(text.chars().next().unwrap())),
    }
}

/// Returns a permission request of call `number`.
pub(crate) fn permission_asked(number: u128, accesses: Vec<ToolAccess>) -> Fact {
    Fact::PermissionAsked {
        danger: Default::default(),
        call: call(number),
        accesses,
        reason: "nothing is known about what it does".into(),
        preview: None,
        approval_kind: None,
        repair: None,
    }
}

pub(super) fn run_access(command: &str) -> ToolAccess {
    ToolAccess::RunCommand { command: command.into(), folder: ".".into() }
}

pub(super) fn edit_access(path: &str) -> ToolAccess {
    ToolAccess::Edit { path: path.into() }
}

impl TestQuestionPanel {
    pub(super) fn new() -> TestQuestionPanel {
        let explorer = SubagentProgress { agent: "explore".into(), ..SubagentProgress::default() };
        let state = SessionState {
            session: Some(root()),
            subagents: [(child(), explorer)].into(),
            ..SessionState::default()
        };
        TestQuestionPanel {
            panel: QuestionPanel::default(),
            appearance: Appearance::default(),
            state,
            now: 100_000,
            next_request_id: 0,
            commands: Vec::new(),
            ui_effects: Vec::new(),
        }
    }

    pub(super) fn with<T>(
        &mut self,
        action: impl FnOnce(&mut QuestionPanel, &mut UiContext<'_>) -> T,
    ) -> T {
        let mut cx = UiContext {
            appearance: &mut self.appearance,
            state: &self.state,
            now: self.now,
            commands: &mut self.commands,
            effects: &mut self.ui_effects,
            next_request_id: &mut self.next_request_id,
        };
        action(&mut self.panel, &mut cx)
    }

    pub(super) fn deliver_fact(&mut self, session: SessionId, new_fact: Fact) {
        let event = fact_event(session, 1, new_fact);
        self.with(|panel, cx| panel.on_event(&event, cx));
    }

    /// Delivers facts, then waits until the panel has focus.
    pub(super) fn with_facts(facts: Vec<Fact>) -> TestQuestionPanel {
        let mut env = TestQuestionPanel::new();
        facts.into_iter().for_each(|fact| env.deliver_fact(root(), fact));
        env.now += 1_000;
        env
    }

    pub(super) fn key(&mut self, text: &str) -> bool {
        let event = key_event(text);
        self.with(|panel, cx| panel.on_key(&event, cx))
    }

    pub(super) fn answer(&mut self, id: u64, response: &Result<HostResponse, Fault>) -> bool {
        self.with(|panel, cx| panel.on_response(id, response, cx))
    }

    /// Returns the last op sent to the session and clears the effects.
    pub(super) fn take_last_op(&mut self) -> Option<SessionOp> {
        let mut sent = self.ui_effects.drain(..).filter_map(|effect| match effect {
            UiEffect::Send(message) => match message.request {
                FrontendRequest::SessionOp { session, id: None, op } => {
                    assert_eq!(session, root());
                    Some(op)
                }
                _ => None,
            },
            _ => None,
        });
        sent.next_back()
    }

    /// Draws the card on a screen of this size and returns it as text.
    pub(super) fn frame(&mut self, width: u16, height: u16) -> String {
        self.draw_frame(width, height).0
    }

    pub(super) fn draw_frame(
        &mut self,
        width: u16,
        height: u16,
    ) -> (String, Buffer, Option<Position>) {
        self.panel.update_focus(self.now, true, false);
        let max_height = height - 4;
        let height = self.panel.height(width, max_height, &self.appearance);
        assert!(height <= max_height, "{height} rows of {max_height}");
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let cursor = self.panel.draw(buffer.area, &mut buffer, &self.appearance, &self.state);
        (buffer_text(&buffer), buffer, cursor)
    }
}

/// Returns the cells of a buffer as text.
pub(crate) fn buffer_text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.area.rows() {
        let cells = row.columns().map(|cell| buffer[(cell.x, cell.y)].symbol());
        let line: String = cells.collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
