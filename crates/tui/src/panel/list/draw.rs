//! How a list is drawn.

use super::super::say;
use super::{Item, List, State};
use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Role;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::collections::BTreeMap;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Narrower than this, only the last column at the right is shown.
const NARROW: usize = 60;
/// A note that has less room than this says nothing.
const LEAST_NOTE: usize = 12;
/// How many rows the whole note of the selected row takes, with a blank one.
const BELOW: u16 = 3;
/// With fewer rows than this it has no room.
const LEAST_BODY: u16 = 8;

/// From this width on a list that has the whole screen is read in two columns.
const WIDE: u16 = 110;

/// A line of what is drawn.
#[derive(Clone, Copy, Debug)]
enum Line {
    Blank,
    Group(&'static str),
    /// The number among those that are shown.
    Row(usize),
}

impl<T> List<T> {
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
                wrap::cut(&row, usize::from(foot.width), look).draw(foot, buffer);
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
        wrap::cut(&row, width, look).draw(area, buffer);
        Position::new(area.x.saturating_add(u16::try_from(at).unwrap_or(0)), area.y)
    }

    /// The rows, and below them the whole note of the selected one where notes have no room.
    fn draw_body(&mut self, area: Rect, buffer: &mut Buffer, look: &Look) {
        let width = usize::from(area.width);
        let beside = if self.whole && area.width >= WIDE { 2 } else { 1 };
        let groups = self.items.iter().map(|(item, _)| item.group);
        let columns: BTreeMap<&str, Columns> =
            groups.map(|group| (group, Columns::of(self, group, width / beside))).collect();
        let cut = |(item, _): &(Item, T)| {
            let room = columns.get(item.group).map_or(0, |columns| columns.note);
            !item.note.is_empty() && item.note.width() + 2 > room
        };
        let below = match area.height >= LEAST_BODY && self.items.iter().any(cut) {
            true => BELOW,
            false => 0,
        };
        let above = Rect { height: area.height - below, ..area };
        self.draw_rows((above, beside), &columns, buffer, look);
        if let Some((item, _)) = self.selected().filter(|_| below > 0) {
            let note = say::prose(&item.note, Role::Dim, width, look);
            let area = Rect { y: above.bottom() + 1, height: below - 1, ..area };
            say::draw(&note, area, buffer);
        }
    }

    fn draw_rows(
        &mut self,
        (area, beside): (Rect, usize),
        columns: &BTreeMap<&str, Columns>,
        buffer: &mut Buffer,
        look: &Look,
    ) {
        let tall = usize::from(area.height).max(1);
        // Rows that stand side by side are turned over column by column.
        let (fold, step) = if beside > 1 { (tall, tall) } else { (usize::MAX, 1) };
        let lines = self.lines(fold);
        let is_selected = |line: &Line| matches!(line, Line::Row(at) if *at == self.selected);
        let at = lines.iter().position(is_selected).unwrap_or_default();
        // The heading of the first row is seen with it.
        let from = if self.selected == 0 { 0 } else { at };
        let least = |lines: usize| lines.saturating_sub(tall * beside).next_multiple_of(step);
        self.top = (self.top.min(from) / step * step).max(least(at + 1)).min(least(lines.len()));
        let width = usize::from(area.width) / beside;
        let visible = lines.iter().skip(self.top).take(usize::from(area.height) * beside);
        for (number, line) in visible.enumerate() {
            let row = match line {
                Line::Blank => continue,
                Line::Group(group) => Row::of(look.style(Role::Strong), &format!(" {group}")),
                Line::Row(number) => self.row(*number, columns, look),
            };
            let place = say::at(area, number / tall * width, number % tall);
            wrap::cut(&row, width, look).draw(place, buffer);
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
        say::push(&mut row, &wrap::cut(&name, columns.name + 1, look), columns.name + 1);
        if columns.note > 0 {
            let note = Row::of(dim, &format!("  {}", item.note));
            say::push(&mut row, &wrap::cut(&note, columns.note, look), columns.note);
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

    /// What is shown, with headings. After so many lines a column ends, never with a heading.
    fn lines(&self, fold: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut last = "";
        for (number, shown) in self.shown.iter().enumerate() {
            let group = self.items.get(shown.at).map_or("", |(item, _)| item.group);
            if group != last {
                let room = |lines: &[Line]| fold - lines.len() % fold;
                let blank = if room(&lines) <= 2 { room(&lines) } else { 1 };
                if room(&lines) < fold {
                    lines.extend(std::iter::repeat_n(Line::Blank, blank));
                }
                lines.push(Line::Group(group));
                last = group;
            }
            lines.push(Line::Row(number));
        }
        lines
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
