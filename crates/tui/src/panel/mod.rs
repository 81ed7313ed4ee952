//! Panels: lists and views that lie over the story until they are closed.

mod agent;
mod back;
mod charts;
mod children;
mod fuzzy;
mod help;
pub(crate) mod jobs;
mod list;
mod listed;
mod login;
mod model;
mod pager;
mod say;
mod sessions;
mod sheet;
#[cfg(test)]
mod tests;
mod theme;
pub(crate) mod trust;
mod welcome;

use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::wire::Answered;
use windlass_protocol::{Attachment, Event, Fault};

/// What becomes of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It stays.
    Stay,
    /// It is closed.
    Close,
}

/// What a panel leaves behind when it is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Parting {
    /// Nothing.
    #[default]
    Nothing,
    /// Something for the prompt, with the files that came with it.
    Prompt(String, Vec<Attachment>),
    /// A word on what was done.
    Hint(String),
}

/// Something that lies over the story and has the keys.
pub trait Panel: std::fmt::Debug {
    /// What it is, for its upper edge.
    fn title(&self) -> String;

    /// Takes in a key. Esc closes it before it hears of it, unless [`Panel::escape`] says otherwise.
    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow;

    /// What Esc does.
    fn escape(&mut self, cx: &mut Cx<'_>) -> Flow {
        let _ = cx;
        Flow::Close
    }

    /// Takes in what was pasted.
    fn paste(&mut self, text: &str, cx: &mut Cx<'_>) {
        let _ = (text, cx);
    }

    /// Takes in what happens.
    fn hear(&mut self, event: &Event, cx: &mut Cx<'_>) {
        let _ = (event, cx);
    }

    /// Takes in an answer; true if it was to a request of its own.
    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let _ = (id, answer, cx);
        false
    }

    /// The wheel was turned: so many lines down, up if negative.
    fn wheel(&mut self, lines: i32, cx: &mut Cx<'_>) {
        let _ = (lines, cx);
    }

    /// True once it is over without a key, because what it waited for was done.
    fn done(&self) -> bool {
        false
    }

    /// What it leaves behind, now that it is closed.
    fn parting(&mut self) -> Parting {
        Parting::Nothing
    }

    /// The change to files that the person has seen here and said yes to, if there was one.
    fn agreed(&mut self) -> Option<String> {
        None
    }

    /// How many rows it wants inside of its edge.
    fn height(&self, width: u16, known: &Known) -> u16;

    /// Draws it inside of its edge, and says where the cursor stands if something can be written.
    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position>;
}

/// The panel of a command, if it has one. `behind` is what was typed behind it.
pub fn open(command: Command, behind: &str, cx: &mut Cx<'_>) -> Option<Box<dyn Panel>> {
    Some(match command {
        Command::Help => Box::new(help::Help::list(behind, &cx.look.keys)),
        Command::Sessions => Box::new(sessions::Sessions::list(behind, cx)),
        Command::Model => Box::new(model::Models::list(behind, cx)),
        Command::Trust => Box::new(trust::Trust::look(cx)),
        Command::Login => Box::new(welcome::Welcome::login(behind, cx)),
        Command::Agent => Box::new(agent::Agents::list(behind, cx)),
        Command::Theme => Box::new(theme::Themes::list(behind, cx.look)),
        Command::Back => Box::new(back::Back::new(cx)?),
        Command::Jobs => Box::new(jobs::Jobs::new(cx)),
        Command::Children => Box::new(children::Children::new(cx)),
        Command::Undo => Box::new(sheet::Sheet::undo(cx)),
        Command::Redo => Box::new(sheet::Sheet::redo(cx)),
        Command::Diff => Box::new(sheet::Sheet::diff(cx)),
        Command::Todos => Box::new(sheet::Sheet::todos(cx)),
        Command::Cost => Box::new(sheet::Sheet::cost(cx)),
        Command::Context => Box::new(sheet::Sheet::context(cx)),
        Command::Doctor => Box::new(sheet::Sheet::doctor(cx)),
        _ => return None,
    })
}

/// What is shown before anything else, where it is needed: the choice of a model.
pub fn first(cx: &mut Cx<'_>) -> Option<Box<dyn Panel>> {
    let unknown = cx.known.standing.model.is_none();
    unknown.then(|| {
        let panel: Box<dyn Panel> = Box::new(welcome::Welcome::new(welcome::Purpose::First, cx));
        panel
    })
}
