//! The screen as a whole: what is typed and what the host says go in, requests and acts come out.

mod begin;
pub(crate) mod status;
mod update;
mod view;

use crate::asked::Asked;
use crate::cx::{Act, Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crate::panel::Panel;
use crate::prompt::{Prompt, Saying};
use crate::story::Story;
use crossterm::event::KeyEvent;
use std::collections::HashMap;
use windlass_protocol::SessionId;
use windlass_protocol::wire::Down;

/// How the screen begins.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How it looks.
    pub look: Look,
    /// A session to go on with.
    pub session: Option<SessionId>,
    /// Something to say first.
    pub prompt: Option<String>,
    /// What to tell the person, such as keys that cannot be bound.
    pub notes: Vec<String>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A key.
    Key(KeyEvent),
    /// Something was pasted.
    Paste(String),
    /// The wheel was turned: so many lines down, up if negative.
    Wheel(i32),
    /// The terminal answered which ground it has: red, green, blue.
    Ground((u8, u8, u8)),
    /// The host said something.
    Down(Box<Down>),
    /// Time has passed.
    Tick,
    /// The person's editor was closed; nothing if it could not be used.
    Written(Option<String>),
    /// The picture that was in the clipboard, or why there is none.
    Picture(Result<Vec<u8>, String>),
}

/// What an answer is waited for, by the screen itself.
#[derive(Clone, Debug, PartialEq)]
enum Awaited {
    /// How things stand.
    Standing,
    /// What the folder would have us run.
    Trust,
    /// A session that was begun or opened; then this is said.
    Opened(Option<Saying>),
    /// What a command asks that was said.
    Command(Saying),
    /// Whether something was done: only a failure is told.
    Done,
    /// Where something was written to.
    Path,
}

/// The screen.
#[derive(Debug, Default)]
pub struct App {
    look: Look,
    known: Known,
    story: Story,
    prompt: Prompt,
    asked: Asked,
    panels: Vec<Box<dyn Panel>>,
    now: u64,
    next: u64,
    awaited: HashMap<u64, Awaited>,
    /// A session to open, and something to say, as soon as it is known how things stand.
    begin: Option<SessionId>,
    first: Option<String>,
    /// When Ctrl-C and Esc were pressed last: twice in a row means more.
    pressed: Option<(Command, u64)>,
    /// What the line above the prompt says for a moment, and until when.
    hint: Option<(String, u64)>,
}

impl App {
    /// A screen, and what it asks for first.
    pub fn new(options: Options, now: u64) -> (App, Vec<Act>) {
        let Options { look, session, prompt, notes } = options;
        let (begin, first) = (session, prompt);
        let mut app = App { look, begin, first, now, ..App::default() };
        for note in notes {
            app.story.note(&note);
        }
        let mut acts = Vec::new();
        let id = app.with(&mut acts, |_, cx| cx.ask(windlass_protocol::wire::Request::Standing));
        app.awaited.insert(id, Awaited::Standing);
        (app, acts)
    }

    /// How it looks now.
    pub fn look(&self) -> &Look {
        &self.look
    }

    /// What is known of the session on the screen.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// When the screen looks different because time passed, if it does.
    pub fn wakes(&self) -> Option<u64> {
        const SECOND: u64 = 1000;
        let clock = self.known.turn.map(|(_, since)| {
            let gone = self.now.saturating_sub(since);
            since + (gone / SECOND + 1) * SECOND
        });
        let hint = self.hint.as_ref().map(|(_, until)| *until);
        let asked = self.asked.wakes(self.now);
        let story = self.story.wakes(self.now);
        let picture = self.story.misses().then_some(self.now);
        [clock, hint, asked, story, picture].into_iter().flatten().min()
    }

    /// True if keys go to a question now.
    fn asked_has_keys(&self) -> bool {
        self.asked.has_keys(self.now, self.prompt.is_empty())
    }

    /// Does something with a part of the screen taken out of it, so that it can be given the rest.
    fn with<T>(
        &mut self,
        acts: &mut Vec<Act>,
        work: impl FnOnce(&mut Parts<'_>, &mut Cx<'_>) -> T,
    ) -> T {
        let mut commands = Vec::new();
        let mut cx = Cx {
            look: &mut self.look,
            known: &self.known,
            now: self.now,
            commands: &mut commands,
            acts,
            next: &mut self.next,
        };
        let mut parts = Parts {
            story: &mut self.story,
            prompt: &mut self.prompt,
            asked: &mut self.asked,
            panels: &mut self.panels,
        };
        let done = work(&mut parts, &mut cx);
        for command in commands {
            self.carry_out(command, "", acts);
        }
        done
    }
}

/// The parts of the screen that things happen to.
struct Parts<'a> {
    story: &'a mut Story,
    prompt: &'a mut Prompt,
    asked: &'a mut Asked,
    panels: &'a mut Vec<Box<dyn Panel>>,
}

#[cfg(test)]
mod tests;
