//! Tests of being asked: frames of every state, and what keys mean when.

mod form;
mod permission;
mod typed;

use super::Asked;
use crate::cx::{Act, Cx, Look};
use crate::keys::Command;
use crate::known::{Child, Known};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use uuid::Uuid;
use windlass_protocol::wire::Request;
use windlass_protocol::{
    Access, CallId, Event, Fact, Fault, Millis, Op, Record, Seq, SessionId, wire::Answered,
};

/// A card by itself, and everything around it that it knows of.
pub(super) struct Stage {
    pub(super) asked: Asked,
    pub(super) look: Look,
    pub(super) known: Known,
    pub(super) now: u64,
    next: u64,
    pub(super) commands: Vec<Command>,
    pub(super) acts: Vec<Act>,
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

pub(super) fn fact(session: SessionId, seq: Seq, fact: Fact) -> Event {
    Event::Fact(Record { session, seq, at: Millis(0), fact })
}

pub(crate) fn key(text: &str) -> KeyEvent {
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    match text {
        "enter" => plain(KeyCode::Enter),
        "ctrl+c" => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        "esc" => plain(KeyCode::Esc),
        "tab" => plain(KeyCode::Tab),
        "up" => plain(KeyCode::Up),
        "down" => plain(KeyCode::Down),
        "left" => plain(KeyCode::Left),
        "right" => plain(KeyCode::Right),
        "backspace" => plain(KeyCode::Backspace),
        "pagedown" => plain(KeyCode::PageDown),
        "end" => plain(KeyCode::End),
        _ => plain(KeyCode::Char(text.chars().next().unwrap())),
    }
}

/// A question about something.
pub(crate) fn asks(number: u128, accesses: Vec<Access>) -> Fact {
    Fact::Asked {
        call: call(number),
        accesses,
        reason: "nothing is known about what it does".into(),
        preview: None,
        offer: None,
        repaired: None,
    }
}

pub(super) fn run(command: &str) -> Access {
    Access::Run { command: command.into(), folder: ".".into() }
}

pub(super) fn edit(path: &str) -> Access {
    Access::Edit { path: path.into() }
}

impl Stage {
    pub(super) fn new() -> Stage {
        let explorer = Child { agent: "explore".into(), ..Child::default() };
        let known = Known {
            session: Some(root()),
            children: [(child(), explorer)].into(),
            ..Known::default()
        };
        Stage {
            asked: Asked::default(),
            look: Look::default(),
            known,
            now: 100_000,
            next: 0,
            commands: Vec::new(),
            acts: Vec::new(),
        }
    }

    pub(super) fn with<T>(&mut self, work: impl FnOnce(&mut Asked, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx {
            look: &mut self.look,
            known: &self.known,
            now: self.now,
            commands: &mut self.commands,
            acts: &mut self.acts,
            next: &mut self.next,
        };
        work(&mut self.asked, &mut cx)
    }

    pub(super) fn hear(&mut self, session: SessionId, heard: Fact) {
        let event = fact(session, 1, heard);
        self.with(|asked, cx| asked.hear(&event, cx));
    }

    /// Hears of a question, and lets a moment pass.
    pub(super) fn asked(facts: Vec<Fact>) -> Stage {
        let mut stage = Stage::new();
        facts.into_iter().for_each(|fact| stage.hear(root(), fact));
        stage.now += 1_000;
        stage
    }

    pub(super) fn key(&mut self, text: &str) -> bool {
        let key = key(text);
        self.with(|asked, cx| asked.key(&key, cx))
    }

    pub(super) fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>) -> bool {
        self.with(|asked, cx| asked.answer(id, answer, cx))
    }

    /// What was sent last.
    pub(super) fn sent(&mut self) -> Option<Op> {
        let mut sent = self.acts.drain(..).filter_map(|act| match act {
            Act::Send(up) => match up.request {
                Request::Do { session, op } => {
                    assert_eq!(session, root());
                    Some(op)
                }
                _ => None,
            },
            _ => None,
        });
        sent.next_back()
    }

    /// The card on a screen of this size.
    pub(super) fn frame(&mut self, width: u16, height: u16) -> String {
        self.drawn(width, height).0
    }

    pub(super) fn drawn(&mut self, width: u16, height: u16) -> (String, Buffer, Option<Position>) {
        self.asked.stand(self.now, true, false);
        let most = height - 4;
        let height = self.asked.height(width, most, &self.look);
        assert!(height <= most, "{height} rows of {most}");
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let cursor = self.asked.draw(buffer.area, &mut buffer, &self.look, &self.known);
        (text(&buffer), buffer, cursor)
    }
}

/// A frame as text.
pub(crate) fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.area.rows() {
        let cells = row.columns().map(|cell| buffer[(cell.x, cell.y)].symbol());
        let line: String = cells.collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
