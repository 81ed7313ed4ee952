//! The agents: with whom a new session is begun.

use super::list::{Did, Item, List, State};
use super::{Flow, Panel, say};
use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Listing, Request};

/// The agents.
#[derive(Debug)]
pub struct Agents {
    list: List<()>,
    listing: u64,
    beginning: Option<u64>,
    over: bool,
}

impl Agents {
    /// Asks for them.
    pub fn new(behind: &str, cx: &mut Cx<'_>) -> Agents {
        let listing = cx.ask(Request::List { what: Listing::Agents });
        let mut list = List::busy("reading the agents", "there is no agent");
        list.look_for(behind.trim());
        Agents { list, listing, beginning: None, over: false }
    }
}

impl Panel for Agents {
    fn title(&self) -> String {
        "Agent of a new session".to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if self.beginning.is_none()
            && self.list.key(key, &cx.look.keys) == Did::Chose
            && let Some((item, ())) = self.list.selected()
        {
            let agent = Some(item.name.clone());
            self.beginning = Some(cx.ask(Request::Begin { agent }));
            self.list.state = State::Busy("beginning a session");
        }
        Flow::Stay
    }

    fn paste(&mut self, text: &str, _: &mut Cx<'_>) {
        self.list.paste(text);
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        self.list.go(lines);
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let begun = self.beginning.take_if(|asked| *asked == id);
        if id != self.listing && begun.is_none() {
            return false;
        }
        match (answer, begun) {
            (Err(fault), _) => self.list.fail(fault),
            (Ok(_), Some(_)) => self.over = true,
            (Ok(Answered::Rows { rows }), None) => {
                let item = |row: &windlass_protocol::wire::Row| {
                    let current = row.name == cx.known.agent;
                    (Item { current, ..Item::new(&row.name).note(&row.note) }, ())
                };
                self.list.fill(rows.iter().map(item).collect());
            }
            (Ok(_), None) => {}
        }
        true
    }

    fn done(&self) -> bool {
        self.over
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
        let keys = [(Command::Choose, "begins a session with it"), (Command::Escape, "closes")];
        self.list.draw(area, buffer, look, &say::keys(look, &keys))
    }
}
