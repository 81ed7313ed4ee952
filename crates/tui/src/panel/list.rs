//! A list to choose from: a line to find things with, rows, and what the keys do.
//!
//! What is in it is the panel's; how it is found, walked through and drawn is the same for all.

use super::fuzzy::Wanted;
use super::say;
use crate::cx::Look;
use crate::ink::Row;
use crate::keys::{Command, Keys, Place};
use crate::theme::Role;
use crate::wrap;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::collections::BTreeMap;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;
use windlass_protocol::Fault;

/// The most rows a list takes: more of them are no easier to read.
const TALLEST: usize = 22;
/// Narrower than this, only the last column at the right is shown.
const NARROW: usize = 60;
/// A note that has less room than this says nothing.
const LEAST_NOTE: usize = 12;
/// How many rows the whole note of the selected row takes, with a blank one.
const BELOW: u16 = 3;
/// With fewer rows than this it has no room.
const LEAST_BODY: u16 = 8;

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
}

/// One that is shown: where it is among all, and which clusters of its name were looked for.
#[derive(Clone, Debug)]
struct Shown {
    at: usize,
    hits: Vec<u32>,
}

/// A line of what is drawn.
#[derive(Clone, Copy, Debug)]
enum Line {
    Blank,
    Group(&'static str),
    /// The number among those that are shown.
    Row(usize),
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
}

impl<T> List<T> {
    /// A list that waits for its rows.
    pub fn busy(what: &'static str, empty: &'static str) -> List<T> {
        List { state: State::Busy(what), ..List::of(Vec::new(), empty) }
    }

    /// A list of these.
    pub fn of(items: Vec<(Item, T)>, empty: &'static str) -> List<T> {
        let (shown, filter, state) = (Vec::new(), String::new(), State::Ready);
        let mut list =
            List { items, shown, filter, selected: 0, top: 0, state, empty, question: None };
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

    /// The rows, whether they are shown or not.
    pub fn items(&self) -> &[(Item, T)] {
        &self.items
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
        let moves = match (keys.find(Place::Panel, key), key.code) {
            (Some(Command::Choose), _) if self.selected().is_some() => return Did::Chose,
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

    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut last = "";
        for (number, shown) in self.shown.iter().enumerate() {
            let group = self.items.get(shown.at).map_or("", |(item, _)| item.group);
            if group != last {
                if !lines.is_empty() {
                    lines.push(Line::Blank);
                }
                lines.push(Line::Group(group));
                last = group;
            }
            lines.push(Line::Row(number));
        }
        lines
    }

    /// How many rows it wants. It stays the same whatever is looked for.
    pub fn height(&self) -> u16 {
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

    /// Draws it, and says where the cursor stands. `hints` says what the keys do.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        hints: &str,
    ) -> Option<Position> {
        let [head, body, foot] = say::parts(area);
        let cursor = self.draw_filter(head, buffer, look);
        match &self.state {
            State::Busy(what) => say::dim(what, look).draw(body, buffer),
            State::Failed(fault) => say::fault(fault, body, buffer, look),
            State::Ready if self.shown.is_empty() => {
                let nothing = if self.items.is_empty() { self.empty } else { "nothing fits" };
                say::dim(nothing, look).draw(body, buffer);
            }
            State::Ready => self.draw_body(body, buffer, look),
        }
        match &self.question {
            Some(question) => {
                let row = Row::of(look.style(Role::Warn), question);
                let row = say::indented(&row, say::MARGIN);
                wrap::cut(&row, usize::from(foot.width)).draw(foot, buffer);
                None
            }
            None => {
                say::hints(hints, look, foot.width).draw(foot, buffer);
                Some(cursor)
            }
        }
    }

    fn draw_filter(&self, area: Rect, buffer: &mut Buffer, look: &Look) -> Position {
        let width = usize::from(area.width);
        let count = match (self.filter.is_empty(), self.state == State::Ready) {
            (_, false) => String::new(),
            (true, true) => format!("{} ", self.items.len()),
            (false, true) => format!("{} of {} ", self.shown.len(), self.items.len()),
        };
        let mut row = say::dim("", look);
        let room = width.saturating_sub(row.width() + count.width() + 2);
        let at = if self.filter.is_empty() {
            let at = row.width();
            row.push(look.style(Role::Dim), "type to find");
            at
        } else {
            row.push(look.style(Role::Text), say::tail(&self.filter, room));
            row.width()
        };
        let gap = width.saturating_sub(row.width() + count.width());
        row.push(look.style(Role::Dim), &" ".repeat(gap));
        row.push(look.style(Role::Dim), &count);
        wrap::cut(&row, width).draw(area, buffer);
        Position::new(area.x.saturating_add(u16::try_from(at).unwrap_or(0)), area.y)
    }

    /// The rows, and below them the whole note of the selected one where notes have no room.
    fn draw_body(&mut self, area: Rect, buffer: &mut Buffer, look: &Look) {
        let width = usize::from(area.width);
        let groups = self.items.iter().map(|(item, _)| item.group);
        let columns: BTreeMap<&str, Columns> =
            groups.map(|group| (group, Columns::of(self, group, width))).collect();
        let cut = |(item, _): &(Item, T)| {
            let room = columns.get(item.group).map_or(0, |columns| columns.note);
            !item.note.is_empty() && item.note.width() + 2 > room
        };
        let below = match area.height >= LEAST_BODY && self.items.iter().any(cut) {
            true => BELOW,
            false => 0,
        };
        let above = Rect { height: area.height - below, ..area };
        self.draw_rows(above, &columns, buffer, look);
        if let Some((item, _)) = self.selected().filter(|_| below > 0) {
            let note = say::prose(&item.note, Role::Dim, width, look);
            let area = Rect { y: above.bottom() + 1, height: below - 1, ..area };
            say::draw(&note, area, buffer);
        }
    }

    fn draw_rows(
        &mut self,
        area: Rect,
        columns: &BTreeMap<&str, Columns>,
        buffer: &mut Buffer,
        look: &Look,
    ) {
        let lines = self.lines();
        let tall = usize::from(area.height);
        let is_selected = |line: &Line| matches!(line, Line::Row(at) if *at == self.selected);
        let at = lines.iter().position(is_selected).unwrap_or_default();
        // The heading of the first row is seen with it.
        let from = if self.selected == 0 { 0 } else { at };
        self.top = self.top.min(from).max((at + 1).saturating_sub(tall));
        self.top = self.top.min(lines.len().saturating_sub(tall));
        let visible = lines.iter().skip(self.top).take(tall);
        for (line, y) in visible.zip(area.y..) {
            let place = Rect { y, height: 1, ..area };
            let row = match line {
                Line::Blank => continue,
                Line::Group(group) => Row::of(look.style(Role::Strong), &format!(" {group}")),
                Line::Row(number) => self.row(*number, columns, look),
            };
            wrap::cut(&row, usize::from(area.width)).draw(place, buffer);
        }
    }

    fn row(&self, number: usize, columns: &BTreeMap<&str, Columns>, look: &Look) -> Row {
        let Some(shown) = self.shown.get(number) else { return Row::default() };
        let Some((item, _)) = self.items.get(shown.at) else { return Row::default() };
        let Some(columns) = columns.get(item.group) else { return Row::default() };
        let selected = number == self.selected;
        let (pointer, current) = if look.ascii { (">", "*") } else { ("›", "●") };
        let (text, dim) = (look.style(Role::Text), look.style(Role::Dim));
        let mut row = Row::default();
        row.push(look.style(Role::Accent), if selected { pointer } else { " " });
        row.push(look.style(Role::Good), if item.current { current } else { " " });
        let mut name = Row::of(text, " ");
        for (at, cluster) in item.name.graphemes(true).enumerate() {
            let hit = u32::try_from(at).is_ok_and(|at| shown.hits.binary_search(&at).is_ok());
            name.push(if hit { look.style(Role::Accent) } else { text }, cluster);
        }
        say::push(&mut row, &wrap::cut(&name, columns.name + 1), columns.name + 1);
        if columns.note > 0 {
            let note = Row::of(dim, &format!("  {}", item.note));
            say::push(&mut row, &wrap::cut(&note, columns.note), columns.note);
        }
        let texts = item.columns.iter().rev().take(columns.right.len()).rev();
        let empty = columns.right.len().saturating_sub(item.columns.len());
        for width in columns.right.iter().take(empty) {
            row.push(dim, &" ".repeat(width + 2));
        }
        for (column, width) in texts.zip(columns.right.iter().skip(empty)) {
            row.push(dim, &" ".repeat(2 + width.saturating_sub(column.width())));
            row.push(dim, column);
        }
        row.push(text, " ");
        if selected { row.over(look.style(Role::Selected)) } else { row }
    }
}

/// How wide each column is.
struct Columns {
    name: usize,
    note: usize,
    right: Vec<usize>,
}

impl Columns {
    fn of<T>(list: &List<T>, group: &str, width: usize) -> Columns {
        let items = || list.items.iter().map(|(item, _)| item).filter(|item| item.group == group);
        let count = items().map(|item| item.columns.len()).max().unwrap_or_default();
        let widest = |column: usize| {
            let text = |item: &Item| item.columns.iter().rev().nth(column).map(|text| text.width());
            items().filter_map(text).max().unwrap_or_default()
        };
        let count = if width < NARROW { count.min(1) } else { count };
        let right: Vec<usize> = (0..count).rev().map(widest).collect();
        let taken: usize = right.iter().map(|width| width + 2).sum();
        // The two marks, the space behind them, and one at the end.
        let room = width.saturating_sub(4 + taken);
        let names = items().map(|item| item.name.width()).max().unwrap_or_default();
        let noted = items().any(|item| !item.note.is_empty());
        let name = if noted { names.min((room / 2).max(20)) } else { room }.min(room);
        let note = if noted { room - name } else { 0 };
        match note {
            0..LEAST_NOTE => Columns { name: room, note: 0, right },
            _ => Columns { name, note, right },
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
