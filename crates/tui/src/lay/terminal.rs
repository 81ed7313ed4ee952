//! What a command printed, as a terminal would show it line by line: colours are kept, a line that
//! was written over shows what was written last. Everything else that steers a terminal is dropped.

use crate::cx::Look;
use crate::ink::Row;
use crate::theme::{Role, fit, sixteen};
use crate::wrap::{Break, wrap};
use ratatui::style::{Color, Modifier, Style};
use std::iter::Peekable;
use std::str::Chars;
use unicode_width::UnicodeWidthChar;

/// Where tabs lead.
const TAB: usize = 8;

/// Lays it out.
pub(super) fn rows(text: &str, width: usize, look: &Look) -> Vec<Row> {
    let base = look.style(Role::Dim);
    let mut style = Style::default();
    let mut rows = Vec::new();
    for line in text.lines() {
        let row = Line::read(line, &mut style).row(base, look);
        rows.extend(wrap(&row, width, Break::Anywhere, 0));
    }
    rows
}

/// One column: what stands there, or that a wide sign before it does.
#[derive(Clone, Default)]
struct Cell {
    text: String,
    style: Style,
}

#[derive(Default)]
struct Line {
    cells: Vec<Cell>,
    column: usize,
}

impl Line {
    fn read(line: &str, style: &mut Style) -> Line {
        let mut read = Line::default();
        let mut rest = line.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\r' => read.column = 0,
                '\u{8}' => read.column = read.column.saturating_sub(1),
                '\t' => {
                    let next = (read.column / TAB + 1) * TAB;
                    read.reach(next);
                    read.column = next;
                }
                '\u{1b}' => read.escape(&mut rest, style),
                '\u{0}'..='\u{1f}' | '\u{7f}' => {}
                other => read.put(other, *style),
            }
        }
        read
    }

    fn reach(&mut self, columns: usize) {
        while self.cells.len() < columns {
            self.cells.push(Cell { text: " ".to_owned(), style: Style::default() });
        }
    }

    fn put(&mut self, character: char, style: Style) {
        let width = character.width().unwrap_or(1);
        if width == 0 {
            let before = self.column.checked_sub(1).and_then(|at| self.cells.get_mut(at));
            if let Some(cell) = before {
                cell.text.push(character);
            }
            return;
        }
        self.reach(self.column + width);
        for (at, cell) in self.cells.iter_mut().skip(self.column).take(width).enumerate() {
            cell.style = style;
            cell.text.clear();
            if at == 0 {
                cell.text.push(character);
            }
        }
        self.column += width;
    }

    /// Reads a sequence, and follows it if it is one for colours or for erasing.
    fn escape(&mut self, rest: &mut Peekable<Chars<'_>>, style: &mut Style) {
        match rest.next() {
            Some('[') => {
                let mut parameters = String::new();
                while let Some(part) = rest.next_if(|next| matches!(next, ' '..='?')) {
                    parameters.push(part);
                }
                match rest.next_if(|next| matches!(next, '@'..='~')) {
                    Some('m') => *style = painted(*style, &parameters),
                    Some('K') => self.erase(&parameters),
                    Some(_) | None => {}
                }
            }
            // Titles, the clipboard, pictures: up to where they end.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(next) = rest.next() {
                    if matches!(next, '\u{7}' | '\u{9c}') {
                        break;
                    }
                    if next == '\u{1b}' {
                        rest.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            Some(' '..='/') => {
                while rest.next_if(|next| matches!(next, ' '..='/')).is_some() {}
                rest.next();
            }
            Some(_) | None => {}
        }
    }

    fn erase(&mut self, parameters: &str) {
        let blank = Cell { text: " ".to_owned(), style: Style::default() };
        match parameters {
            "" | "0" => self.cells.truncate(self.column),
            "1" => {
                let until = self.cells.iter_mut().take(self.column + 1);
                until.for_each(|cell| *cell = blank.clone());
            }
            "2" => self.cells.iter_mut().for_each(|cell| *cell = blank.clone()),
            _ => {}
        }
    }

    fn row(self, base: Style, look: &Look) -> Row {
        let mut row = Row::default();
        let mut under_way: Option<(Style, String)> = None;
        for cell in self.cells {
            match &mut under_way {
                Some((style, text)) if *style == cell.style => text.push_str(&cell.text),
                Some(_) | None => {
                    if let Some((style, text)) = under_way.replace((cell.style, cell.text)) {
                        row.push(base.patch(fit(style, look.theme.depth)), &text);
                    }
                }
            }
        }
        if let Some((style, text)) = under_way {
            let plain = style.bg.is_none() && !style.add_modifier.contains(Modifier::REVERSED);
            let text = if plain { text.trim_end_matches(' ') } else { text.as_str() };
            row.push(base.patch(fit(style, look.theme.depth)), text);
        }
        row
    }
}

/// A style after a sequence of colours.
fn painted(mut style: Style, parameters: &str) -> Style {
    let mut numbers = parameters.split([';', ':']).map(|number| match number {
        "" => Some(0),
        number => number.parse::<u16>().ok(),
    });
    while let Some(number) = numbers.next() {
        let Some(number) = number else { return style };
        let low = |from: u16| u8::try_from(number - from).unwrap_or_default();
        style = match number {
            0 => Style::default(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => without(style, Modifier::BOLD | Modifier::DIM),
            23 => without(style, Modifier::ITALIC),
            24 => without(style, Modifier::UNDERLINED),
            27 => without(style, Modifier::REVERSED),
            29 => without(style, Modifier::CROSSED_OUT),
            30..=37 => style.fg(sixteen(low(30))),
            40..=47 => style.bg(sixteen(low(40))),
            90..=97 => style.fg(sixteen(low(90) + 8)),
            100..=107 => style.bg(sixteen(low(100) + 8)),
            39 => Style { fg: None, ..style },
            49 => Style { bg: None, ..style },
            38 | 48 => match extended(&mut numbers) {
                Some(color) if number == 38 => style.fg(color),
                Some(color) => style.bg(color),
                None => return style,
            },
            _ => style,
        };
    }
    // What is written in the colour of its ground is meant not to be seen.
    if style.fg.is_some() && style.fg == style.bg {
        Style { bg: None, fg: None, ..style }
    } else {
        style
    }
}

fn without(style: Style, modifier: Modifier) -> Style {
    Style { add_modifier: style.add_modifier - modifier, ..style }
}

/// One of 256, or of all.
fn extended(numbers: &mut impl Iterator<Item = Option<u16>>) -> Option<Color> {
    let mut next = || numbers.next().flatten().and_then(|number| u8::try_from(number).ok());
    match next()? {
        5 => next().map(|index| if index < 16 { sixteen(index) } else { Color::Indexed(index) }),
        2 => Some(Color::Rgb(next()?, next()?, next()?)),
        _ => None,
    }
}
