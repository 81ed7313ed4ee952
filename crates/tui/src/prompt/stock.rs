//! What lists are made of: asked for when one is opened, and kept for a while.

use super::suggest::command_name;
use crate::cx::Cx;
use crate::keys::{Command, Keys, TABLE};
use std::collections::BTreeMap;
use windlass_protocol::wire::{Listing, Request, Row};

/// How long a list is good for.
const FRESH: u64 = 30_000;
/// More files than this are not listed.
const FILES: usize = 200_000;

/// What a row of a list stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    File,
    Agent,
    /// One of our commands.
    Ours(Command),
    /// One of the person's.
    Own,
    /// An earlier prompt.
    Past,
}

/// Something a list can show.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) note: String,
    /// The key that does the same.
    pub(super) key: String,
    pub(super) what: What,
}

impl Entry {
    fn new(what: What, row: &Row) -> Entry {
        let name = row.name.trim_start_matches(['/', '@']).to_owned();
        Entry { name, note: row.note.clone(), key: String::new(), what }
    }

    pub(super) fn file(name: &str) -> Entry {
        Entry { name: name.to_owned(), note: String::new(), key: String::new(), what: What::File }
    }

    pub(super) fn past(text: &str) -> Entry {
        Entry { name: text.to_owned(), note: String::new(), key: String::new(), what: What::Past }
    }
}

/// What came of the last time something was asked for.
#[derive(Debug, Default)]
struct Shelf {
    /// The request under way.
    asked: Option<u64>,
    /// When it came.
    came: Option<u64>,
    rows: Vec<Row>,
}

/// What was asked for, and what came.
#[derive(Debug, Default)]
pub(super) struct Stock {
    pub(super) files: Vec<Box<str>>,
    shelves: BTreeMap<&'static str, Shelf>,
}

fn name(listing: Listing) -> &'static str {
    match listing {
        Listing::Files => "files",
        Listing::Models => "models",
        Listing::Agents => "agents",
        Listing::Commands => "commands",
    }
}

impl Stock {
    /// Asks for something, unless it is there and fresh.
    pub(super) fn want(&mut self, listing: Listing, cx: &mut Cx<'_>) {
        let shelf = self.shelves.entry(name(listing)).or_default();
        let fresh = shelf.came.is_some_and(|came| cx.now < came.saturating_add(FRESH));
        if !fresh && shelf.asked.is_none() {
            shelf.asked = Some(cx.ask(Request::List { what: listing }));
        }
    }

    /// True if something came, be it old.
    pub(super) fn has(&self, listing: Listing) -> bool {
        self.shelves.get(name(listing)).is_some_and(|shelf| shelf.came.is_some())
    }

    /// Takes in what came; nothing if it could not be listed. False if it was not asked for here.
    pub(super) fn answer(&mut self, id: u64, rows: Option<&[Row]>, now: u64) -> bool {
        let asked = self.shelves.iter_mut().find(|(_, shelf)| shelf.asked == Some(id));
        let Some((name, shelf)) = asked else { return false };
        (shelf.asked, shelf.came) = (None, Some(now));
        let Some(rows) = rows else { return true };
        if *name == self::name(Listing::Files) {
            let names = rows.iter().take(FILES).map(|row| row.name.as_str().into());
            self.files = names.collect();
        } else if *name == self::name(Listing::Commands) {
            // What others call a command may be no word that can be typed for one.
            let typed = |row: &&Row| {
                command_name(&format!("/{}", row.name.trim_start_matches('/'))).is_some()
            };
            shelf.rows = rows.iter().filter(typed).cloned().collect();
        } else {
            shelf.rows = rows.to_vec();
        }
        true
    }

    fn rows(&self, listing: Listing) -> &[Row] {
        self.shelves.get(name(listing)).map_or(&[], |shelf| &shelf.rows)
    }

    /// The agents.
    pub(super) fn agents(&self) -> impl Iterator<Item = Entry> {
        self.rows(Listing::Agents).iter().map(|row| Entry::new(What::Agent, row))
    }

    /// Our commands, then theirs.
    pub(super) fn commands(&self, keys: &Keys) -> Vec<Entry> {
        let ours = TABLE.iter().filter(|entry| entry.slash).map(|entry| Entry {
            name: entry.name.to_owned(),
            note: entry.what.to_owned(),
            key: keys.of(entry).into_iter().next().unwrap_or_default(),
            what: What::Ours(entry.command),
        });
        let own = self.rows(Listing::Commands).iter().map(|row| Entry::new(What::Own, row));
        let mut all: Vec<Entry> = ours.collect();
        for entry in own {
            // Ours are what they were in every project.
            if all.iter().all(|other| other.name != entry.name) {
                all.push(entry);
            }
        }
        all
    }

    /// The command of a name.
    pub(super) fn command(&self, name: &str) -> Option<What> {
        self.names().find(|(known, _)| *known == name).map(|(_, what)| what)
    }

    /// True if the name of a command begins like this.
    pub(super) fn begins_command(&self, beginning: &str) -> bool {
        self.names().any(|(known, _)| known.starts_with(beginning))
    }

    fn names(&self) -> impl Iterator<Item = (&str, What)> {
        let ours = TABLE.iter().filter(|entry| entry.slash);
        let own = self.rows(Listing::Commands).iter();
        ours.map(|entry| (entry.name, What::Ours(entry.command)))
            .chain(own.map(|row| (row.name.trim_start_matches('/'), What::Own)))
    }
}
