//! Keys and commands: one table that gives the key map, the `/` commands and the help.
//!
//! A key means a [`Command`] in a [`Place`]; what a person binds otherwise in their config counts for
//! more than the table.

mod stroke;
mod table;
#[cfg(test)]
mod tests;

pub use stroke::{Stroke, shown, writes, written};
pub use table::{Command, Entry, Place, TABLE};

use crossterm::event::KeyEvent;
use std::collections::{BTreeMap, HashMap};

/// The key map: the table, and what a person binds otherwise.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The keys of each command that has some, in the order they are written.
    keys: HashMap<Command, Vec<Stroke>>,
    meanings: HashMap<(Place, Stroke), Command>,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys::new(BTreeMap::new()).0
    }
}

impl Keys {
    /// The table with a person's own keys: names of commands, and keys with spaces between them;
    /// nothing, or `none`, for a command without a key. What cannot be used is said.
    pub fn new(own: BTreeMap<String, String>) -> (Keys, Vec<String>) {
        let mut told = Vec::new();
        for name in own.keys().filter(|name| entry(name).is_none()) {
            told.push(format!(
                "there is no command `{name}` to give a key to; /help names those there are"
            ));
        }
        let mut keys = Keys { keys: HashMap::new(), meanings: HashMap::new() };
        for entry in TABLE {
            let Some(own) = own.get(entry.name) else { continue };
            for text in own.split_whitespace().filter(|text| *text != "none") {
                match usable(entry, text) {
                    Ok(stroke) => keys.bind(entry, stroke, &mut told),
                    Err(why) => told.push(why),
                }
            }
        }
        // What a person took for something else is theirs.
        for entry in TABLE.iter().filter(|entry| !own.contains_key(entry.name)) {
            for stroke in entry.keys.split_whitespace().filter_map(Stroke::parse) {
                if !keys.meanings.contains_key(&(entry.place, stroke)) {
                    keys.bind(entry, stroke, &mut told);
                }
            }
        }
        (keys, told)
    }

    fn bind(&mut self, entry: &Entry, stroke: Stroke, told: &mut Vec<String>) {
        let other = self.meanings.get(&(entry.place, stroke));
        if let Some(other) = other.filter(|other| **other != entry.command) {
            let other = TABLE.iter().find(|entry| entry.command == *other);
            told.push(format!(
                "{stroke} cannot mean both `{}` and `{}`; it means the first",
                other.map_or("", |other| other.name),
                entry.name
            ));
            return;
        }
        let keys = self.keys.entry(entry.command).or_default();
        if !keys.contains(&stroke) {
            keys.push(stroke);
            self.meanings.insert((entry.place, stroke), entry.command);
        }
    }

    /// The keys of a command, as a person reads them.
    pub fn of(&self, entry: &Entry) -> Vec<String> {
        let keys = self.keys.get(&entry.command);
        keys.into_iter().flatten().map(Stroke::to_string).collect()
    }

    /// What a key means in a place.
    pub fn find(&self, place: Place, key: &KeyEvent) -> Option<Command> {
        let stroke = Stroke::of(key)?;
        let here = self.meanings.get(&(place, stroke));
        here.or_else(|| self.meanings.get(&(Place::Everywhere, stroke))).copied()
    }

    /// The first key of a command, as a person reads it; nothing if it has none.
    pub fn hint(&self, command: Command) -> String {
        let keys = self.keys.get(&command);
        keys.and_then(|keys| keys.first()).map(Stroke::to_string).unwrap_or_default()
    }
}

fn entry(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.name == name)
}

/// A key for a command, or why it cannot be one.
fn usable(entry: &Entry, text: &str) -> Result<Stroke, String> {
    let name = entry.name;
    let Some(stroke) = Stroke::parse(text) else {
        return Err(format!(
            "`{text}` for `{name}` is no key; write it like ctrl+s, alt+enter or f1"
        ));
    };
    match entry.place {
        // Somebody who sends a prompt must never say yes with it.
        Place::Asked if stroke.is_enter() => {
            Err(format!("{stroke} cannot be `{name}`: it never answers a question"))
        }
        Place::Everywhere | Place::Prompt if stroke.writes() => {
            Err(format!("{stroke} cannot be `{name}`: it is needed to write; add ctrl or alt"))
        }
        Place::Asked | Place::Everywhere | Place::Prompt | Place::Panel => Ok(stroke),
    }
}
