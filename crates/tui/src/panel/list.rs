//! A list to choose from: a line to find things with, rows, and what the keys do.
//!
//! What is in it is the panel's; how it is found, walked through and drawn is the same for all.

mod draw;

use super::fuzzy::Wanted;
use crate::keys::{Command, Keys, Place};
use crossterm::event::{KeyCode, KeyEvent};
use unicode_segmentation::UnicodeSegmentation as _;
use windlass_protocol::Fault;
use windlass_protocol::wire::{self, Answered};

/// The most rows a list takes: more of them are no easier to read.
const TALLEST: usize = 22;

/// A row of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it is called.
    pub name: String,
    /// What is to be known of it.
    pub note: String,
    /// What stands at the right, the most important last.
    pub columns: Vec<String>,
    /// What it stands under.
    pub group: &'static str,
    /// True for the one that holds now.
    pub current: bool,
    /// True if it is there whatever is looked for.
    pub always: bool,
    /// True if what is said about it can be found, too.
    pub prose: bool,
}

impl Item {
    /// A row with a name.
    pub fn new(name: impl Into<String>) -> Item {
        Item { name: name.into(), ..Item::default() }
    }

    /// The same with something to be known of it.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Item {
        Item { note: note.into(), ..self }
    }

    /// The same with something at the right.
    #[must_use]
    pub fn column(mut self, text: impl Into<String>) -> Item {
        self.columns.push(text.into());
        self
    }

    /// The same under a heading.
    #[must_use]
    pub fn under(self, group: &'static str) -> Item {
        Item { group, ..self }
    }
}

/// How it is with what a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It is there.
    #[default]
    Ready,
    /// Something was asked for and has not come.
    Busy(&'static str),
    /// It could not be had.
    Failed(Fault),
}

/// What a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// Nothing.
    Nothing,
    /// Another row is selected.
    Moved,
    /// Something else is looked for.
    Filtered,
    /// The selected row is taken.
    Chose,
    /// Something else is to be done with it.
    Wants(Command),
    /// What is asked about it was said yes to.
    Agreed,
}

/// One that is shown: where it is among all, and which clusters of its name were looked for.
#[derive(Clone, Debug)]
struct Shown {
    at: usize,
    hits: Vec<u32>,
}

/// A list.
#[derive(Debug)]
pub struct List<T> {
    items: Vec<(Item, T)>,
    shown: Vec<Shown>,
    filter: String,
    selected: usize,
    top: usize,
    /// How it is with what it shows.
    pub state: State,
    /// What is said if there is nothing.
    pub empty: &'static str,
    /// What is asked about the selected row; it stands where the keys are named.
    pub question: Option<String>,
    /// True if it has the whole screen, and as many columns of rows as are read well there.
    pub whole: bool,
}

impl<T> List<T> {
    /// A list that waits for its rows.
    pub fn busy(what: &'static str, empty: &'static str) -> List<T> {
        List { state: State::Busy(what), ..List::of(Vec::new(), empty) }
    }

    /// A list of these.
    pub fn of(items: Vec<(Item, T)>, empty: &'static str) -> List<T> {
        let (shown, filter, state) = (Vec::new(), String::new(), State::Ready);
        let (selected, top, question, whole) = (0, 0, None, false);
        let mut list = List { items, shown, filter, selected, top, state, empty, question, whole };
        list.find();
        list
    }

    /// Puts other rows in. What is looked for stays; what was selected too, as far as it can.
    pub fn fill(&mut self, items: Vec<(Item, T)>) {
        (self.items, self.state) = (items, State::Ready);
        let selected = self.selected;
        self.find();
        self.selected = selected.min(self.shown.len().saturating_sub(1));
    }

    /// Says that the rows could not be had.
    pub fn fail(&mut self, fault: &Fault) {
        self.state = State::Failed(fault.clone());
    }

    /// What is looked for.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Looks for something.
    pub fn look_for(&mut self, text: &str) {
        self.filter = text.to_owned();
        self.find();
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&(Item, T)> {
        self.items.get(self.shown.get(self.selected)?.at)
    }

    /// Selects the first row that is meant, if it is shown.
    pub fn select(&mut self, meant: impl Fn(&Item, &T) -> bool) {
        let is = |shown: &Shown| self.items.get(shown.at).is_some_and(|(item, of)| meant(item, of));
        if let Some(at) = self.shown.iter().position(is) {
            self.selected = at;
        }
    }

    /// Moves the selection.
    pub fn go(&mut self, rows: i32) {
        let last = self.shown.len().saturating_sub(1);
        let step = rows.unsigned_abs() as usize;
        self.selected = match rows {
            0.. => (self.selected + step).min(last),
            _ => self.selected.saturating_sub(step),
        };
    }

    /// Takes in what was pasted.
    pub fn paste(&mut self, text: &str) {
        self.filter.push_str(text.lines().next().unwrap_or_default());
        self.find();
    }

    /// Takes in a key.
    pub fn key(&mut self, key: &KeyEvent, keys: &Keys) -> Did {
        // Something that failed was read; the rows are still good.
        if !self.items.is_empty() && matches!(self.state, State::Failed(_)) {
            self.state = State::Ready;
        }
        const PAGE: i32 = 10;
        let here = self.selected().is_some();
        let moves = match (keys.find(Place::Panel, key), key.code) {
            (Some(Command::Choose), _) if here => return Did::Chose,
            (Some(row @ (Command::KeepRow | Command::ForkRow | Command::DeleteRow)), _) if here => {
                return Did::Wants(row);
            }
            (Some(Command::Up), _) => -1,
            (Some(Command::Down), _) => 1,
            (Some(Command::PageUp), _) => -PAGE,
            (Some(Command::PageDown), _) => PAGE,
            (Some(Command::Top), _) | (None, KeyCode::Home) => i32::MIN,
            (Some(Command::End), _) | (None, KeyCode::End) => i32::MAX,
            _ => 0,
        };
        if moves != 0 {
            self.go(moves);
            return Did::Moved;
        }
        if !write(&mut self.filter, key, keys) {
            return Did::Nothing;
        }
        self.find();
        Did::Filtered
    }

    /// Finds what is looked for: the best first, group by group.
    fn find(&mut self) {
        self.selected = 0;
        self.top = 0;
        if self.filter.trim().is_empty() {
            let all = (0..self.items.len()).map(|at| Shown { at, hits: Vec::new() });
            self.shown = all.collect();
            return;
        }
        let mut wanted = Wanted::new(&self.filter);
        let mut groups: Vec<&'static str> = Vec::new();
        let mut found = Vec::new();
        for (at, (item, _)) in self.items.iter().enumerate() {
            let about = if item.prose { item.note.as_str() } else { "" };
            let about = match item.columns.last() {
                Some(column) if item.prose => format!("{about} {column}"),
                Some(_) | None => about.to_owned(),
            };
            let fit = wanted.fit(&item.name, &about);
            let Some(fit) = fit.or_else(|| item.always.then(Default::default)) else { continue };
            let group = groups.iter().position(|group| *group == item.group);
            let group = group.unwrap_or_else(|| {
                groups.push(item.group);
                groups.len() - 1
            });
            found.push((group, std::cmp::Reverse(fit.score), at, fit.hits));
        }
        found.sort();
        self.shown = found.into_iter().map(|(_, _, at, hits)| Shown { at, hits }).collect();
    }

    /// How many rows it wants. It stays the same whatever is looked for.
    pub fn height(&self) -> u16 {
        if self.whole {
            return u16::MAX;
        }
        let mut groups = 0;
        let mut last = "";
        for (item, _) in &self.items {
            if item.group != last {
                (groups, last) = (groups + 2, item.group);
            }
        }
        let rows = (self.items.len() + groups).clamp(3, TALLEST);
        u16::try_from(rows + 3).unwrap_or(u16::MAX)
    }
}

impl List<()> {
    /// Puts in what the host offers, or why it does not, and marks the one that holds now.
    pub fn offer(&mut self, answer: &Result<Answered, Fault>, current: &str) {
        match answer {
            Err(fault) => self.fail(fault),
            Ok(Answered::Rows { rows }) => {
                let item = |row: &wire::Row| {
                    let current = row.name == current;
                    (Item { current, ..Item::new(&row.name).note(&row.note) }, ())
                };
                self.fill(rows.iter().map(item).collect());
                if self.filter.is_empty() {
                    self.select(|item, ()| item.current);
                }
            }
            Ok(_) => {}
        }
    }
}

/// Writes into a line; false if the key means nothing to it.
pub fn write(line: &mut String, key: &KeyEvent, keys: &Keys) -> bool {
    match (keys.find(Place::Prompt, key), key.code) {
        (Some(Command::DeleteLeft), _) => {
            let cut = line.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
            line.truncate(cut);
        }
        (Some(Command::DeleteWordLeft), _) => {
            let kept = line.trim_end();
            let cut = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
            line.truncate(cut.min(kept.floor_char_boundary(cut)));
        }
        (Some(Command::DeleteToStart), _) => line.clear(),
        (_, KeyCode::Char(letter)) if crate::keys::writes(key) => line.push(letter),
        _ => return false,
    }
    true
}
