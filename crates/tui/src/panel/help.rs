//! Help: what the table of commands says, with the keys as they are bound now.

use super::list::{Item, List};
use super::{Flow, Panel, say};
use crate::cx::{Cx, Look};
use crate::keys::{Command, Entry, Keys, Place, TABLE};
use crate::known::Known;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// The help.
#[derive(Debug)]
pub struct Help {
    list: List<Option<Command>>,
}

impl Help {
    /// All there is.
    pub fn new(behind: &str, keys: &Keys) -> Help {
        let mut list = List::of(items(keys), "");
        list.look_for(behind.trim().trim_start_matches('/'));
        Help { list }
    }
}

/// What is done by typing comes first, then what keys do, place by place.
fn items(keys: &Keys) -> Vec<(Item, Option<Command>)> {
    let item = |entry: &Entry, group| {
        let keys = keys.of(entry).join(", ");
        let name = match (entry.slash, keys.is_empty()) {
            (true, _) => format!("/{}", entry.name),
            (false, true) => format!("({})", entry.name),
            (false, false) => keys.clone(),
        };
        let key = if entry.slash { keys } else { String::new() };
        let item = Item::new(name).note(entry.what).under(group).column(key);
        (Item { prose: true, ..item }, entry.slash.then_some(entry.command))
    };
    let slash = TABLE.iter().filter(|entry| entry.slash).map(|entry| item(entry, "Commands"));
    let places = [
        (Place::Everywhere, "Keys everywhere"),
        (Place::Prompt, "Keys in the prompt"),
        (Place::Asked, "Keys when you are asked"),
        (Place::Panel, "Keys in lists"),
    ];
    let keyed = places.into_iter().flat_map(|(place, group)| {
        let here = TABLE.iter().filter(move |entry| entry.place == place && !entry.slash);
        here.map(move |entry| item(entry, group))
    });
    let signs = [
        ("@", "Names a file or an agent"),
        ("/", "Begins a command"),
        ("!", "Runs a line in the shell"),
    ];
    let signs = signs.into_iter().map(|(sign, what)| {
        let item = Item::new(sign).note(what).under("At the beginning of a word or a prompt");
        (Item { prose: true, ..item }, None)
    });
    slash.chain(keyed).chain(signs).collect()
}

impl Panel for Help {
    fn title(&self) -> String {
        "Help".to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        let did = self.list.key(key, &cx.look.keys);
        let command = self.list.selected().and_then(|(_, command)| *command);
        match (did, command) {
            (super::list::Did::Chose, Some(command)) => {
                cx.command(command);
                Flow::Close
            }
            _ => Flow::Stay,
        }
    }

    fn paste(&mut self, text: &str, _: &mut Cx<'_>) {
        self.list.paste(text);
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        self.list.go(lines);
    }

    fn height(&self, _: u16, _: &Known) -> u16 {
        u16::MAX
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        _: &Known,
    ) -> Option<Position> {
        let runs = self.list.selected().is_some_and(|(_, command)| command.is_some());
        let mut hints = vec![(Command::Escape, "closes")];
        if runs {
            hints.insert(0, (Command::Choose, "does it"));
        }
        self.list.draw(area, buffer, look, &say::keys(look, &hints))
    }
}
