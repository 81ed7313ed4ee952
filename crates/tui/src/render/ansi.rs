//! Renders command output as a terminal would show it, line by line: colors are kept, and an
//! overwritten line shows its last content. All other control sequences are dropped.

use crate::safe_line::SafeLine;
use crate::theme::{StyleRole, ansi_color, reduce_style};
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, wrap};
use ratatui::style::{Color, Modifier, Style};
use std::iter::Peekable;
use std::str::Chars;
use unicode_width::UnicodeWidthChar;

/// The distance between tab stops in command output.
const TERMINAL_TAB_WIDTH: usize = 8;

/// Renders output with ANSI escape sequences as rows, wrapped with `WrapMode::Anywhere`.
pub(super) fn render_ansi(text: &str, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    let base = appearance.style(StyleRole::Dim);
    let mut style = Style::default();
    let mut rows = Vec::new();
    for line in text.lines() {
        let row = AnsiLine::parse(line, &mut style).into_safe_line(base, appearance);
        rows.extend(wrap(&row, width, WrapMode::Anywhere, 0));
    }
    rows
}

/// One column of the terminal; its text is empty if a wide character before it covers it.
#[derive(Clone, Default)]
struct AnsiCell {
    text: String,
    style: Style,
}

#[derive(Default)]
struct AnsiLine {
    cells: Vec<AnsiCell>,
    column: usize,
}

impl AnsiLine {
    fn parse(line: &str, style: &mut Style) -> AnsiLine {
        let mut parsed = AnsiLine::default();
        let mut remaining = line.chars().peekable();
        while let Some(character) = remaining.next() {
            match character {
                '\r' => parsed.column = 0,
                '\u{8}' => parsed.column = parsed.column.saturating_sub(1),
                '\t' => {
                    let next_stop = (parsed.column / TERMINAL_TAB_WIDTH + 1) * TERMINAL_TAB_WIDTH;
                    parsed.pad_to(next_stop);
                    parsed.column = next_stop;
                }
                '\u{1b}' => parsed.apply_escape(&mut remaining, style),
                '\u{0}'..='\u{1f}' | '\u{7f}' => {}
                other => parsed.put_char(other, *style),
            }
        }
        parsed
    }

    fn pad_to(&mut self, columns: usize) {
        while self.cells.len() < columns {
            self.cells.push(AnsiCell { text: " ".to_owned(), style: Style::default() });
        }
    }

    fn put_char(&mut self, character: char, style: Style) {
        let width = character.width().unwrap_or(1);
        if width == 0 {
            let previous = self.column.checked_sub(1).and_then(|index| self.cells.get_mut(index));
            if let Some(cell) = previous {
                cell.text.push(character);
            }
            return;
        }
        self.pad_to(self.column + width);
        for (index, cell) in self.cells.iter_mut().skip(self.column).take(width).enumerate() {
            cell.style = style;
            cell.text.clear();
            if index == 0 {
                cell.text.push(character);
            }
        }
        self.column += width;
    }

    /// Parses an escape sequence, and applies it if it sets colors (SGR) or erases cells.
    fn apply_escape(&mut self, remaining: &mut Peekable<Chars<'_>>, style: &mut Style) {
        match remaining.next() {
            Some('[') => {
                let mut parameters = String::new();
                while let Some(parameter) = remaining.next_if(|next| matches!(next, ' '..='?')) {
                    parameters.push(parameter);
                }
                match remaining.next_if(|next| matches!(next, '@'..='~')) {
                    Some('m') => *style = apply_sgr(*style, &parameters),
                    Some('K') => self.erase_cells(&parameters),
                    Some(_) | None => {}
                }
            }
            // Titles, clipboard writes and images: skipped up to their terminator.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(next) = remaining.next() {
                    if matches!(next, '\u{7}' | '\u{9c}') {
                        break;
                    }
                    if next == '\u{1b}' {
                        remaining.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            Some(' '..='/') => {
                while remaining.next_if(|next| matches!(next, ' '..='/')).is_some() {}
                remaining.next();
            }
            Some(_) | None => {}
        }
    }

    fn erase_cells(&mut self, parameters: &str) {
        let blank = AnsiCell { text: " ".to_owned(), style: Style::default() };
        match parameters {
            "" | "0" => self.cells.truncate(self.column),
            "1" => {
                let erased = self.cells.iter_mut().take(self.column + 1);
                erased.for_each(|cell| *cell = blank.clone());
            }
            "2" => self.cells.iter_mut().for_each(|cell| *cell = blank.clone()),
            _ => {}
        }
    }

    fn into_safe_line(self, base: Style, appearance: &Appearance) -> SafeLine {
        let mut row = SafeLine::default();
        let mut current_run: Option<(Style, String)> = None;
        for cell in self.cells {
            match &mut current_run {
                Some((style, text)) if *style == cell.style => text.push_str(&cell.text),
                Some(_) | None => {
                    if let Some((style, text)) = current_run.replace((cell.style, cell.text)) {
                        row.push_text(
                            base.patch(reduce_style(style, appearance.theme.color_depth)),
                            &text,
                        );
                    }
                }
            }
        }
        if let Some((style, text)) = current_run {
            let is_plain = style.bg.is_none() && !style.add_modifier.contains(Modifier::REVERSED);
            let text = if is_plain { text.trim_end_matches(' ') } else { text.as_str() };
            row.push_text(base.patch(reduce_style(style, appearance.theme.color_depth)), text);
        }
        row
    }
}

/// Returns the style after an SGR sequence (`ESC [ … m`).
fn apply_sgr(mut style: Style, parameters: &str) -> Style {
    let mut numbers = parameters.split([';', ':']).map(|number| match number {
        "" => Some(0),
        number => number.parse::<u16>().ok(),
    });
    while let Some(number) = numbers.next() {
        let Some(number) = number else { return style };
        let color_index = |base: u16| u8::try_from(number - base).unwrap_or_default();
        style = match number {
            0 => Style::default(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => remove_modifier(style, Modifier::BOLD | Modifier::DIM),
            23 => remove_modifier(style, Modifier::ITALIC),
            24 => remove_modifier(style, Modifier::UNDERLINED),
            27 => remove_modifier(style, Modifier::REVERSED),
            29 => remove_modifier(style, Modifier::CROSSED_OUT),
            30..=37 => style.fg(ansi_color(color_index(30))),
            40..=47 => style.bg(ansi_color(color_index(40))),
            90..=97 => style.fg(ansi_color(color_index(90) + 8)),
            100..=107 => style.bg(ansi_color(color_index(100) + 8)),
            39 => Style { fg: None, ..style },
            49 => Style { bg: None, ..style },
            38 | 48 => match parse_extended_color(&mut numbers) {
                Some(color) if number == 38 => style.fg(color),
                Some(color) => style.bg(color),
                None => return style,
            },
            _ => style,
        };
    }
    // Text in the color of its background is meant to be hidden; drop both colors so that it stays
    // visible.
    if style.fg.is_some() && style.fg == style.bg {
        Style { bg: None, fg: None, ..style }
    } else {
        style
    }
}

fn remove_modifier(style: Style, modifier: Modifier) -> Style {
    Style { add_modifier: style.add_modifier - modifier, ..style }
}

/// Parses an extended color: `5;n` for one of 256, or `2;r;g;b`.
fn parse_extended_color(numbers: &mut impl Iterator<Item = Option<u16>>) -> Option<Color> {
    let mut next = || numbers.next().flatten().and_then(|number| u8::try_from(number).ok());
    match next()? {
        5 => next().map(|index| if index < 16 { ansi_color(index) } else { Color::Indexed(index) }),
        2 => Some(Color::Rgb(next()?, next()?, next()?)),
        _ => None,
    }
}
