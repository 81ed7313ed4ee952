//! A panel that is one list: how it is walked through, waits and closes is the same for all, what
//! comes of a choice is its own.

use super::list::{Did, List, State};
use super::{Flow, Panel, Parting, say};
use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Request};

/// What comes of a choice.
pub enum Then {
    /// The list stays.
    Stay,
    /// It is closed and leaves something behind.
    Close(Parting),
    /// This is asked for, in a few words; once it is done, the list is closed likewise.
    Ask(Request, &'static str, Parting),
}

/// What a list is for.
pub trait Choose: std::fmt::Debug {
    /// What a row stands for.
    type Of: std::fmt::Debug;

    /// What it is, for its upper edge.
    fn title(&self) -> &'static str;

    /// What the keys do.
    fn hints(&self, list: &List<Self::Of>) -> Vec<(Command, &'static str)>;

    /// Takes in what was done to the list.
    fn did(&mut self, did: Did, list: &mut List<Self::Of>, cx: &mut Cx<'_>) -> Then;

    /// Takes in an answer; true if it was to a request of its own.
    fn answer(
        &mut self,
        id: u64,
        answer: &Result<Answered, Fault>,
        list: &mut List<Self::Of>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let _ = (id, answer, list, cx);
        false
    }

    /// The list is left without a choice.
    fn leave(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
    }
}

/// The panel.
#[derive(Debug)]
pub struct Listed<C: Choose> {
    list: List<C::Of>,
    choose: C,
    /// The request that ends it, and what is left behind then. Keys wait for it.
    ends: Option<(u64, Parting)>,
    parting: Option<Parting>,
}

impl<C: Choose> Listed<C> {
    /// A list, and what it is for.
    pub fn new(list: List<C::Of>, choose: C) -> Listed<C> {
        Listed { list, choose, ends: None, parting: None }
    }

    fn did(&mut self, did: Did, cx: &mut Cx<'_>) -> Flow {
        match self.choose.did(did, &mut self.list, cx) {
            Then::Stay => {}
            Then::Close(parting) => {
                self.parting = Some(parting);
                return Flow::Close;
            }
            Then::Ask(request, busy, parting) => {
                self.ends = Some((cx.ask(request), parting));
                self.list.state = State::Busy(busy);
            }
        }
        Flow::Stay
    }
}

impl<C: Choose> Panel for Listed<C> {
    fn title(&self) -> String {
        self.choose.title().to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if self.ends.is_some() {
            return Flow::Stay;
        }
        if self.list.question.take().is_some() {
            let agreed = key.code == KeyCode::Char('y');
            return if agreed { self.did(Did::Agreed, cx) } else { Flow::Stay };
        }
        let did = self.list.key(key, &cx.look.keys);
        self.did(did, cx)
    }

    fn escape(&mut self, cx: &mut Cx<'_>) -> Flow {
        if self.list.question.take().is_some() {
            return Flow::Stay;
        }
        self.choose.leave(cx);
        Flow::Close
    }

    fn paste(&mut self, text: &str, cx: &mut Cx<'_>) {
        self.list.paste(text);
        self.did(Did::Filtered, cx);
    }

    fn wheel(&mut self, lines: i32, cx: &mut Cx<'_>) {
        self.list.go(lines);
        self.did(Did::Moved, cx);
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let Some((_, parting)) = self.ends.take_if(|(asked, _)| *asked == id) else {
            return self.choose.answer(id, answer, &mut self.list, cx);
        };
        match answer {
            Ok(_) => self.parting = Some(parting),
            Err(fault) => self.list.fail(fault),
        }
        true
    }

    fn done(&self) -> bool {
        self.parting.is_some()
    }

    fn parting(&mut self) -> Parting {
        self.parting.take().unwrap_or_default()
    }

    fn height(&self, _: u16, _: &Known) -> u16 {
        self.list.height()
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        _: &Known,
    ) -> Option<Position> {
        let hints = self.choose.hints(&self.list);
        self.list.draw(area, buffer, look, &say::keys(look, &hints))
    }
}
