//! The themes: each is seen on the whole screen while it is selected.

use super::list::{Did, Item, List};
use super::{Flow, Panel, Parting, say};
use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crate::theme::Theme;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::wire::Request;

/// The themes.
#[derive(Debug)]
pub struct Themes {
    list: List<()>,
    before: Theme,
    parting: Parting,
}

impl Themes {
    /// All of them.
    pub fn new(behind: &str, look: &Look) -> Themes {
        let before = look.theme.clone();
        let item = |name: &str| {
            let current = name == before.name;
            (Item { current, ..Item::new(name) }, ())
        };
        let mut list = List::of(Theme::names().into_iter().map(item).collect(), "");
        list.select(|item, ()| item.current);
        if !behind.trim().is_empty() {
            list.look_for(behind.trim());
        }
        Themes { list, before, parting: Parting::Nothing }
    }

    fn show(&self, look: &mut Look) {
        let named = self.list.selected().map(|(item, ())| item.name.as_str());
        let (ground, depth) = (self.before.ground, self.before.depth);
        look.theme = match named {
            Some(name) if name != self.before.name => {
                Theme::find(name, ground, depth).unwrap_or_else(|| self.before.clone())
            }
            Some(_) | None => self.before.clone(),
        };
    }
}

impl Panel for Themes {
    fn title(&self) -> String {
        "Theme".to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        let did = self.list.key(key, &cx.look.keys);
        self.show(cx.look);
        match (did, self.list.selected()) {
            (Did::Chose, Some((item, ()))) => {
                let value = serde_json::Value::from(item.name.as_str());
                cx.ask(Request::Set { name: "tui.theme".to_owned(), value });
                self.parting = Parting::Hint(format!("the theme is {} from now on", item.name));
                Flow::Close
            }
            _ => Flow::Stay,
        }
    }

    fn escape(&mut self, cx: &mut Cx<'_>) -> Flow {
        cx.look.theme = self.before.clone();
        Flow::Close
    }

    fn wheel(&mut self, lines: i32, cx: &mut Cx<'_>) {
        self.list.go(lines);
        self.show(cx.look);
    }

    fn parting(&mut self) -> Parting {
        std::mem::take(&mut self.parting)
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
        let keys = [(Command::Choose, "keeps it"), (Command::Escape, "goes back to yours")];
        self.list.draw(area, buffer, look, &say::keys(look, &keys))
    }
}
