//! Panels on the whole screen, with a host that says what a test has it say.

mod finding;
mod first;
mod reading;

use crate::app::{App, Input, Options};
use crate::cx::{Act, Look};
use crate::keys::{Command, Stroke};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use windlass_protocol::wire::{Answered, Down, Request, Standing, Up};
use windlass_protocol::{
    Event, Fact, Fault, Glimpse, Live, Millis, Mode, Record, Reply, Seq, SessionId,
};

/// A moment on which ages can be counted.
pub(super) const NOW: u64 = 1_790_000_000_000;
pub(super) const MINUTE: u64 = 60_000;
pub(super) const HOUR: u64 = 60 * MINUTE;

/// A screen, and what it has asked for and was not yet answered.
pub(super) struct Stage {
    pub(super) app: App,
    pub(super) asked: Vec<Up>,
    /// What it had the shell do besides.
    pub(super) acts: Vec<Act>,
    seq: Seq,
}

impl Stage {
    /// A screen in a session.
    pub(super) fn new(look: Look) -> Stage {
        let options = Options { look, ..Options::default() };
        let (app, acts) = App::new(options, NOW);
        let mut stage = Stage { app, asked: Vec::new(), acts: Vec::new(), seq: 0 };
        stage.take(acts);
        let standing = Standing {
            version: "1".into(),
            workspace: "~/code/harbour".into(),
            root: "/home/a/code/harbour".into(),
            model: Some("anthropic/claude-opus-4".into()),
            window: Some(200_000),
            agent: "build".into(),
            mode: Mode::Ask,
            laxest: Mode::Auto,
            trust: windlass_protocol::wire::Trusted::Yes,
            ..Standing::default()
        };
        stage.answer(Ok(Answered::Standing { standing: Box::new(standing) }));
        stage
    }

    /// The same with a session open.
    pub(super) fn open() -> Stage {
        let mut stage = Stage::new(Look::default());
        stage.command("/new");
        stage.answer(Ok(Answered::Opened { session: session(1), head: 0 }));
        stage.asked.clear();
        stage
    }

    fn take(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(up) => self.asked.push(*up),
                other => self.acts.push(other),
            }
        }
    }

    pub(super) fn input(&mut self, input: Input) {
        let acts = self.app.update(input, NOW);
        self.take(acts);
    }

    /// Carries out a command as if it had been typed behind a slash.
    pub(super) fn command(&mut self, text: &str) {
        let (name, behind) = text.split_once(' ').unwrap_or((text, ""));
        let is = |entry: &&crate::keys::Entry| Some(entry.name) == name.strip_prefix('/');
        let command = crate::keys::TABLE.iter().find(is).map(|entry| entry.command).unwrap();
        self.carry_out(command, behind);
    }

    pub(super) fn carry_out(&mut self, command: Command, behind: &str) {
        let acts = self.app.told(command, behind, NOW);
        self.take(acts);
    }

    /// Presses keys: names in the form of the table, with spaces between them.
    pub(super) fn press(&mut self, keys: &str) {
        for key in keys.split_whitespace() {
            let event: KeyEvent = Stroke::parse(key).unwrap_or_else(|| panic!("{key}")).event();
            self.input(Input::Key(event));
        }
    }

    /// Types a text.
    pub(super) fn write(&mut self, text: &str) {
        for letter in text.chars() {
            let code = crossterm::event::KeyCode::Char(letter);
            self.input(Input::Key(code.into()));
        }
    }

    /// Answers the oldest request.
    pub(super) fn answer(&mut self, answer: Result<Answered, Fault>) -> Request {
        let Up { id, request } = self.asked.remove(0);
        self.input(Input::Down(Box::new(Down::Answer { id, answer })));
        request
    }

    pub(super) fn reply(&mut self, reply: Reply) -> Request {
        self.answer(Ok(Answered::Reply { reply }))
    }

    pub(super) fn fail(&mut self) -> Request {
        self.answer(Err(Fault::Storage { message: "the disk is full".into() }))
    }

    /// Has something happen in the session.
    pub(super) fn fact(&mut self, fact: Fact) {
        self.seq += 1;
        let record = Record { session: session(1), seq: self.seq, at: Millis(NOW), fact };
        let event = Box::new(Event::Fact(record));
        self.input(Input::Down(Box::new(Down::Event { event })));
    }

    /// Has something be seen in the session that is not kept.
    pub(super) fn live(&mut self, live: Live) {
        let event = Event::Live(Glimpse { session: session(1), at: Millis(NOW), live });
        self.input(Input::Down(Box::new(Down::Event { event: Box::new(event) })));
    }

    /// The panel as text, on a screen of this size of which the prompt takes four rows, and where
    /// the cursor stands.
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

/// The whole screen as text.
pub(super) fn screen(stage: &mut Stage) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    stage.app.draw(&mut buffer);
    buffer.content().iter().map(|cell| cell.symbol()).collect()
}

pub(super) fn session(number: u128) -> SessionId {
    SessionId(uuid::Uuid::from_u128(number))
}
