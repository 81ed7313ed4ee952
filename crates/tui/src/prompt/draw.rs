//! How the prompt looks: a mark that tells what Enter does, the text, and a hint beside it.

use super::stock::What;
use super::suggest::{Choice, Kind, List};
use super::{Prompt, rows};
use crate::cx::Look;
use crate::ink::{self, Row};
use crate::keys::Command;
use crate::known::Known;
use crate::theme::Role;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;

/// The columns that the mark takes.
const MARK: u16 = 2;
/// So many rows of a list are seen at once.
const LIST: usize = 8;
/// A name in a list of commands takes so many columns at most, where something stands behind it.
const NAME: usize = 18;

/// How many columns there are for the text: the mark and the cursor take some.
fn limit(width: u16) -> usize {
    usize::from(width.saturating_sub(MARK + 1)).max(1)
}

impl Prompt {
    /// How many rows the text takes.
    pub(super) fn text_height(&self, width: u16) -> u16 {
        if self.is_finding() {
            return 1;
        }
        let rows = rows::lay(&self.buffer, limit(width)).len();
        u16::try_from(rows).unwrap_or(u16::MAX).min(self.screen / 3).max(1)
    }

    /// Draws it, and says where the cursor stands. `known` says whether what is sent steers or begins.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        if area.height == 0 || area.width <= MARK {
            return None;
        }
        self.limit = limit(area.width);
        let text = self.text_height(area.width).min(area.height);
        let listed = self.list_height().min(area.height - text);
        if let Some(list) = &self.suggest.list {
            draw_list(list, Rect { height: listed, ..area }, buffer, look);
        }
        let below = Rect { y: area.y + listed, height: text, ..area };
        match self.suggest.list.as_ref().filter(|list| list.kind == Kind::Past) {
            Some(list) => Some(draw_needle(list, below, buffer, look)),
            None => self.draw_text(below, buffer, look, known),
        }
    }

    /// How many rows the list takes.
    pub(super) fn list_height(&self) -> u16 {
        let Some(list) = &self.suggest.list else { return 0 };
        u16::try_from(list.rows.len().clamp(1, LIST)).unwrap_or(1)
    }

    fn draw_text(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let laid = rows::lay(&self.buffer, self.limit);
        let (row, column) = rows::find(&self.buffer, &laid, self.limit);
        let seen = usize::from(area.height);
        self.top = self.top.min(laid.len().saturating_sub(seen)).min(row);
        self.top = self.top.max((row + 1).saturating_sub(seen));
        let inside = Rect { x: area.x + MARK, width: area.width - MARK, ..area };
        for (line, span) in laid.iter().skip(self.top).take(seen).enumerate() {
            let at = Rect { y: area.y + u16::try_from(line).unwrap_or(0), ..inside };
            let drawn = self.row_of(*span, look);
            drawn.draw(at, buffer);
            if line + 1 == seen.min(laid.len() - self.top) {
                self.draw_hint(drawn.width(), at, buffer, look, known);
            }
        }
        let (mark, role) = self.mark(look);
        let role = if known.busy() && role == Role::Accent { Role::Dim } else { role };
        Row::of(look.style(role), mark).draw(area, buffer);
        if self.top > 0 {
            Row::of(look.style(Role::Dim), if look.ascii { "^" } else { "↑" }).draw(area, buffer);
        }
        if self.top + seen < laid.len() {
            let last = Rect { y: area.bottom() - 1, ..area };
            Row::of(look.style(Role::Dim), if look.ascii { "v" } else { "↓" }).draw(last, buffer);
        }
        let x = inside.x + u16::try_from(column).unwrap_or(0);
        let y = area.y + u16::try_from(row - self.top).unwrap_or(0);
        Some(Position::new(x.min(area.right() - 1), y))
    }

    fn row_of(&self, span: rows::Span, look: &Look) -> Row {
        let text = self.buffer.raw().get(span.from..span.to).unwrap_or_default();
        let mut row = Row::default();
        let mut plain = String::new();
        for (offset, cluster) in super::motion::clusters(text) {
            if span.from + offset == 0 && self.buffer.hides_sign() {
                continue;
            }
            let shown = rows::shown(&self.buffer, cluster, self.limit);
            if self.buffer.chip(cluster).is_some() {
                row.push(look.style(Role::Text), &std::mem::take(&mut plain));
                row.push(look.style(Role::Accent), &shown);
            } else {
                plain.push_str(&shown);
            }
        }
        row.push(look.style(Role::Text), &plain);
        row
    }

    /// The mark that tells what Enter does.
    fn mark(&self, look: &Look) -> (&'static str, Role) {
        match self.sign() {
            Some('!') => ("!", Role::Warn),
            Some(_) => ("/", Role::Accent),
            None if look.ascii => (">", Role::Accent),
            None => ("›", Role::Accent),
        }
    }

    /// What is said beside the text, or instead of one: the longest that there is room for.
    fn draw_hint(&self, taken: usize, area: Rect, buffer: &mut Buffer, look: &Look, known: &Known) {
        let room = usize::from(area.width);
        let dim = look.style(Role::Dim);
        if let Some(notice) = &self.notice {
            let row = Row::of(look.style(Role::Warn), notice);
            right(row, taken, area, buffer);
            return;
        }
        let steer = self.steers(look, known);
        if !self.buffer.raw().is_empty() {
            let fits = steer.iter().find(|hint| taken + 2 + ink::width(hint) < room);
            if let Some(hint) = fits {
                right(Row::of(dim, hint), taken, area, buffer);
            }
            return;
        }
        let idle = [
            "Say what is to be done · @ names a file · / a command · ! the shell",
            "Say what is to be done · @ file · / command",
            "Say what is to be done",
        ];
        let said: Vec<String> =
            if steer.is_empty() { idle.map(str::to_owned).to_vec() } else { steer };
        let plain = |hint: String| if look.ascii { hint.replace('·', "-") } else { hint };
        let fits = said.into_iter().map(plain).find(|hint| ink::width(hint) < room);
        Row::of(dim, &fits.unwrap_or_default()).draw(area, buffer);
    }

    /// What keys do while the model works, in more and fewer words.
    fn steers(&self, look: &Look, known: &Known) -> Vec<String> {
        if !known.busy() {
            return Vec::new();
        }
        let dot = if look.ascii { "-" } else { "·" };
        let key = |command| spelled(&look.keys.hint(command));
        let (send, queue) = (key(Command::Send), key(Command::Queue));
        let both = format!("{send} steers {dot} {queue} queues");
        let mut hints = vec![both, format!("{send} steers")];
        if self.buffer.raw().is_empty() && !known.waiting.is_empty() {
            let up = key(Command::HistoryUp);
            hints.insert(0, format!("{send} steers {dot} {queue} queues {dot} {up} takes back"));
        }
        hints
    }
}

/// What is looked for among earlier prompts, in place of the text.
fn draw_needle(list: &List, area: Rect, buffer: &mut Buffer, look: &Look) -> Position {
    let row = Row::of(look.style(Role::Accent), "? ").and(look.style(Role::Text), &list.needle);
    row.draw(area, buffer);
    let width = u16::try_from(row.width()).unwrap_or(u16::MAX);
    if list.needle.is_empty() {
        let hint = Row::of(look.style(Role::Dim), "words of an earlier prompt");
        hint.draw(Rect { x: area.x + MARK, width: area.width - MARK, ..area }, buffer);
    }
    Position::new(area.x.saturating_add(width).min(area.right() - 1), area.y)
}

fn draw_list(list: &List, area: Rect, buffer: &mut Buffer, look: &Look) {
    let seen = usize::from(area.height);
    if list.rows.is_empty() {
        let text = match list.kind {
            _ if list.looking => "looking …",
            Kind::Mention => "no file and no agent is called that",
            Kind::Slash => "no such command; Enter says it as it is",
            Kind::Past => "nothing like that was said here",
        };
        let text = if look.ascii { text.replace('…', "...") } else { text.to_owned() };
        Row::of(look.style(Role::Dim), &format!("  {text}")).draw(area, buffer);
        return;
    }
    let first = list.chosen.saturating_sub(seen.saturating_sub(1));
    let rows = list.rows.iter().enumerate().skip(first).take(seen);
    let names =
        list.rows.iter().skip(first).take(seen).map(|choice| ink::width(&choice.entry.name));
    let column = names.max().unwrap_or(0).min(NAME);
    for (line, (number, choice)) in rows.enumerate() {
        let at = Rect { y: area.y + u16::try_from(line).unwrap_or(0), ..area };
        let mut row = choice_row(choice, column, usize::from(area.width), look);
        if number == list.chosen {
            row.fill(Style::default(), usize::from(area.width));
            row = row.over(look.style(Role::Selected));
        }
        row.draw(at, buffer);
    }
}

/// A row of the list: the name with what matched, what is to be known of it, and the key that does it.
fn choice_row(choice: &Choice, column: usize, width: usize, look: &Look) -> Row {
    let entry = &choice.entry;
    let sign = match entry.what {
        What::File | What::Past => "  ",
        What::Agent => " @",
        What::Ours(_) | What::Own => " /",
    };
    let (text, dim) = (look.style(Role::Text), look.style(Role::Dim));
    let matched = look.style(Role::Accent).add_modifier(Modifier::BOLD);
    let mut row = Row::of(text, sign);
    let room = width.saturating_sub(row.width() + 1);
    let name = entry.name.replace('\n', " ");
    let clusters: Vec<&str> = name.graphemes(true).collect();
    // Of a long path the end is what tells it from others, of a prompt the beginning.
    let mut skipped = 0;
    let mut wide: usize = clusters.iter().map(|cluster| ink::width(cluster)).sum();
    if entry.what != What::Past && wide > room {
        row.push(dim, if look.ascii { "." } else { "…" });
        for cluster in &clusters {
            if wide < room {
                break;
            }
            wide -= ink::width(cluster);
            skipped += 1;
        }
    }
    for (number, cluster) in clusters.iter().enumerate().skip(skipped).take(width) {
        let marked = u32::try_from(number).is_ok_and(|number| choice.marks.contains(&number));
        row.push(if marked { matched } else { text }, cluster);
    }
    if !entry.note.is_empty() || !entry.key.is_empty() {
        row.fill(text, column + 2);
        let key = spelled(&entry.key);
        let left = width.saturating_sub(row.width() + 2);
        let keyed = !key.is_empty() && left > ink::width(&key) + 24;
        let room = if keyed { left - ink::width(&key) - 2 } else { left };
        row.push(text, "  ");
        row.extend(&wrap::cut(&Row::of(dim, &entry.note), room, look));
        if keyed {
            row.fill(text, width.saturating_sub(ink::width(&key) + 1));
            row.push(dim, &key);
        }
    }
    wrap::cut(&row, width, look)
}

fn right(row: Row, taken: usize, area: Rect, buffer: &mut Buffer) {
    let width = u16::try_from(row.width()).unwrap_or(u16::MAX).min(area.width);
    let free = area.width.saturating_sub(u16::try_from(taken).unwrap_or(u16::MAX));
    if width < free || taken == 0 {
        row.draw(Rect { x: area.right() - width, width, ..area }, buffer);
    }
}

/// A key as a person reads it.
fn spelled(key: &str) -> String {
    let parts = key.split('+').map(|part| {
        let mut letters = part.chars();
        let first = letters.next().map(char::to_uppercase);
        first.into_iter().flatten().chain(letters).collect::<String>()
    });
    parts.collect::<Vec<String>>().join("+")
}
