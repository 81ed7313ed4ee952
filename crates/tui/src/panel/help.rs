//! Help: what the table of commands says, with the keys as they are bound now.

use super::Parting;
use super::list::{Did, Item, List};
use super::listed::{Choose, Listed, Then};
use crate::cx::Cx;
use crate::keys::{Command, Entry, Keys, Place, TABLE};

/// The help.
#[derive(Debug)]
pub struct Help;

impl Help {
    /// All there is.
    pub fn list(behind: &str, keys: &Keys) -> Listed<Help> {
        let mut list = List::of(items(keys), "");
        list.whole = true;
        list.look_for(behind.trim().trim_start_matches('/'));
        Listed::new(list, Help)
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

impl Choose for Help {
    type Of = Option<Command>;

    fn title(&self) -> &'static str {
        "Help"
    }

    fn hints(&self, list: &List<Option<Command>>) -> Vec<(Command, &'static str)> {
        let runs = list.selected().is_some_and(|(_, command)| command.is_some());
        let does = runs.then_some((Command::Choose, "does it"));
        does.into_iter().chain([(Command::Escape, "closes")]).collect()
    }

    fn did(&mut self, did: Did, list: &mut List<Option<Command>>, cx: &mut Cx<'_>) -> Then {
        match (did, list.selected()) {
            (Did::Chose, Some((_, Some(command)))) => {
                cx.command(*command);
                Then::Close(Parting::Nothing)
            }
            _ => Then::Stay,
        }
    }
}
