//! The models that can be asked.

use super::list::{Did, Item, List, State};
use super::{Flow, Panel, Parting, say};
use crate::cx::{Cx, Look};
use crate::keys::{Command, Place};
use crate::known::Known;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Keep, Listing, Request};

/// The models.
#[derive(Debug)]
pub struct Models {
    list: List<()>,
    listing: u64,
    choosing: Option<(u64, String, Keep)>,
    parting: Option<Parting>,
}

impl Models {
    /// Asks for them; one that is named at once is taken if there is just one like it.
    pub fn new(behind: &str, cx: &mut Cx<'_>) -> Models {
        let listing = cx.ask(Request::List { what: Listing::Models });
        let empty = "no model can be asked yet; /login keeps a provider's key";
        let mut list = List::busy("looking for models", empty);
        list.look_for(behind.trim());
        Models { list, listing, choosing: None, parting: None }
    }

    fn choose(&mut self, keep: Keep, cx: &mut Cx<'_>) {
        let Some((item, ())) = self.list.selected() else { return };
        let model = item.name.clone();
        let id = cx.ask(Request::Model { model: model.clone(), keep });
        self.choosing = Some((id, model, keep));
        self.list.state = State::Busy("changing the model");
    }
}

impl Panel for Models {
    fn title(&self) -> String {
        "Model".to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if self.choosing.is_some() {
            return Flow::Stay;
        }
        if cx.look.keys.find(Place::Panel, key) == Some(Command::KeepRow) {
            self.choose(Keep::Always, cx);
        } else if self.list.key(key, &cx.look.keys) == Did::Chose {
            self.choose(Keep::Now, cx);
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
        let choosing = self.choosing.take_if(|(asked, ..)| *asked == id);
        if id != self.listing && choosing.is_none() {
            return false;
        }
        match (answer, choosing) {
            (Err(fault), _) => self.list.fail(fault),
            (Ok(_), Some((_, model, keep))) => {
                let how_long = match keep {
                    Keep::Now => "until you leave",
                    Keep::Always => "from now on; it stands in your config",
                };
                self.parting = Some(Parting::Hint(format!("{model} is asked {how_long}")));
            }
            (Ok(Answered::Rows { rows }), None) => {
                let item = |row: &windlass_protocol::wire::Row| {
                    let current = row.name == cx.known.model;
                    let item = Item::new(&row.name).note(&row.note);
                    (Item { current, ..item }, ())
                };
                self.list.fill(rows.iter().map(item).collect());
                if self.list.filter().is_empty() {
                    self.list.select(|item, ()| item.current);
                }
            }
            (Ok(_), None) => {}
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
        let hints = say::keys(
            look,
            &[
                (Command::Choose, "takes it for now"),
                (Command::KeepRow, "keeps it for good"),
                (Command::Escape, "closes"),
            ],
        );
        self.list.draw(area, buffer, look, &hints)
    }
}
