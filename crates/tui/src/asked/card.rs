//! A question as it stands on the screen: a rule with what it is about, what others wrote behind its
//! margin, and the choices.

use super::choices::{self, Choice, Keyed};
use super::line::Line;
use super::sheet::{self, INDENT, Part};
use crate::cx::Look;
use crate::ink::Row;
use crate::keys::Command;
use crate::theme::{Role, Theme};
use crate::wrap::{self, Break};

/// With so many rows to spare there is a blank one before the choices.
const AIR: usize = 4;

/// Parts that were laid out, and for what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Laid {
    made_for: Option<(usize, Theme, bool)>,
    parts: Vec<Vec<Row>>,
}

impl Laid {
    /// The rows of parts, laid out anew only where they would look different.
    pub(crate) fn rows(&mut self, parts: &[Part], width: usize, look: &Look) -> &[Vec<Row>] {
        let made_for = Some((width, look.theme.clone(), look.ascii));
        if self.made_for != made_for {
            self.parts = parts.iter().map(|part| part.lay(width, look)).collect();
            self.made_for = made_for;
        }
        &self.parts
    }
}

/// What a card says.
pub(crate) struct Card<'a> {
    pub(crate) headline: String,
    pub(crate) role: Role,
    pub(crate) alarm: Option<&'a str>,
    /// Which one it is of how many, if there are several.
    pub(crate) count: Option<String>,
    pub(crate) keyed: Keyed,
    /// The rows of what can be chosen from, and which one is marked.
    pub(crate) options: (Vec<Vec<Row>>, usize),
    /// What has to be said before the choices.
    pub(crate) note: Option<String>,
    pub(crate) choices: Vec<(&'static str, Vec<Choice>)>,
    /// What is being written, and what for.
    pub(crate) line: Option<(&'static str, &'a Line)>,
}

impl Card<'_> {
    /// Its rows, at most so many, and where the cursor stands if something can be written.
    pub(crate) fn rows(
        &self,
        parts: &[Vec<Row>],
        (width, most): (usize, usize),
        look: &Look,
    ) -> (Vec<Row>, Option<(usize, usize)>) {
        let mut rows = vec![self.rule(width, look)];
        if let Some(alarm) = self.alarm {
            let row = Row::of(look.style(self.role), alarm);
            let alarm = wrap::wrap(&row, width.saturating_sub(INDENT), Break::Words, 0);
            rows.extend(alarm.into_iter().map(|row| {
                let mut whole = Row::of(look.style(self.role), &" ".repeat(INDENT));
                row.pieces().for_each(|(style, text)| whole.push(style, text));
                whole
            }));
        }
        let mut below = choices::rows(&self.choices, width, self.keyed, look);
        let mut cursor = None;
        if let Some((label, line)) = self.line {
            let label = Row::of(look.style(Role::Dim), &format!(" {label:<4} "));
            let sign = if look.ascii { "> " } else { "› " };
            let mut row = label.and(look.style(Role::Accent), sign);
            let start = row.width();
            let (written, column) = line.row(width.saturating_sub(start), look);
            written.pieces().for_each(|(style, text)| row.push(style, text));
            below.insert(0, row);
            cursor = Some(start + column);
        }
        if let Some(note) = &self.note {
            let row = Row::of(look.style(Role::Warn), &format!("{}{note}", " ".repeat(INDENT)));
            below.splice(0..0, wrap::wrap(&row, width, Break::Words, INDENT));
        }
        let takes: usize = parts.iter().chain(&self.options.0).map(Vec::len).sum();
        if rows.len() + takes + below.len() + AIR <= most {
            below.insert(0, Row::default());
        }
        let room = most.saturating_sub(rows.len() + below.len());
        // What can be chosen is seen before all of what is asked is.
        let least = room.saturating_sub(self.options.0.len()).clamp(2, 3);
        let least = parts.iter().map(Vec::len).sum::<usize>().min(least);
        let options = self.options(room.saturating_sub(least), width, look);
        let room = room.saturating_sub(options.len());
        let key = choices::shown(&look.keys.hint(Command::Whole));
        rows.extend(sheet::fit(parts, room, &format!("; {key} shows all"), look));
        rows.extend(options);
        let blank = usize::from(below.first().is_some_and(|row| row.width() == 0));
        let cursor = cursor.map(|column| (column, rows.len() + blank));
        rows.extend(below);
        (rows, cursor)
    }

    /// As many rows of the options as there is room for, the one that is marked among them. What is
    /// left out is counted, and what is cut short says so.
    fn options(&self, room: usize, width: usize, look: &Look) -> Vec<Row> {
        let (options, at) = &self.options;
        if options.iter().map(Vec::len).sum::<usize>() <= room {
            return options.iter().flatten().cloned().collect();
        }
        let room = if options.len() <= room { room } else { room.saturating_sub(1).max(1) };
        let first = at.saturating_sub(room - 1);
        let sign = wrap::more(look);
        let short = |rows: &Vec<Row>| match rows.as_slice() {
            [] => None,
            [row] => Some(row.clone()),
            [row, ..] => {
                Some(wrap::cut(&row.clone().and(look.style(Role::Dim), sign), width, look))
            }
        };
        let mut rows: Vec<Row> = options.iter().skip(first).take(room).filter_map(short).collect();
        let below = options.len().saturating_sub(first + rows.len());
        let sides = [(first, "above"), (below, "below")];
        let sides = sides.iter().filter(|(count, _)| *count > 0);
        let sides: Vec<String> =
            sides.map(|(count, side)| format!("{count} more {side}")).collect();
        if !sides.is_empty() {
            let text = format!("{}{}", " ".repeat(INDENT), sides.join(", "));
            rows.push(Row::of(look.style(Role::Warn), &text));
        }
        rows
    }

    fn rule(&self, width: usize, look: &Look) -> Row {
        let line = if look.ascii { "-" } else { "─" };
        let border = look.style(Role::Border);
        let mut behind: Vec<String> = self.count.iter().cloned().collect();
        match self.keyed {
            Keyed::Here => {}
            Keyed::Elsewhere => {
                behind.insert(0, format!("{} answers", look.keys.hint(Command::Answer)));
            }
            Keyed::Behind => behind.insert(0, "waits".to_owned()),
        }
        let dot = if look.ascii { " - " } else { " · " };
        let behind = behind.join(dot);
        let style = look.style(self.role).patch(look.style(Role::Strong));
        let row =
            Row::of(border, &format!("{line}{line} ")).and(style, &self.headline).and(border, " ");
        let takes = if behind.is_empty() { 0 } else { behind.chars().count() + 4 };
        let fill = width.saturating_sub(row.width() + takes);
        let row = row.and(border, &line.repeat(fill));
        let row = match behind.is_empty() {
            true => row,
            false => {
                row.and(look.style(Role::Dim), &format!(" {behind} ")).and(border, &line.repeat(2))
            }
        };
        wrap::cut(&row, width, look)
    }
}
