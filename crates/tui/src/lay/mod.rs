//! Laying out: texts and outputs as rows of a width. Pure: the same text, width and look give the
//! same rows, and no row is wider than it was asked for.

mod code;
mod diff;
mod markdown;
mod page;
mod split;
mod table;
mod terminal;

pub use page::Draft;

pub mod picture;

use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Role;
use crate::wrap::{Break, wrap};
use ratatui::style::{Modifier, Style};
use windlass_protocol::Todo;
use windlass_protocol::todo::{Priority, Status};

/// Markdown as it is read.
pub fn markdown(text: &str, width: usize, look: &Look) -> Vec<Row> {
    page::Page::of(text, width, look)
}

/// Text as it is, line by line.
pub fn plain(text: &str, width: usize, role: Role, look: &Look) -> Vec<Row> {
    let style = look.style(role);
    let rows = text.lines().map(|line| Row::of(style, line));
    rows.flat_map(|row| wrap(&row, width, Break::Words, 0)).collect()
}

/// Code, highlighted. The language is a name or the ending of a file.
pub fn code(text: &str, language: &str, width: usize, look: &Look) -> Vec<Row> {
    let mut painter = code::Painter::new(language, look);
    text.lines().flat_map(|line| painter.rows(line, width)).collect()
}

/// A change in unified form, with the numbers of lines and marks on the words that changed.
pub fn diff(unified: &str, width: usize, look: &Look) -> Vec<Row> {
    diff::rows(unified, width, look)
}

/// The same in words, line by line, for whoever listens.
pub fn spoken(unified: &str) -> String {
    diff::spoken(unified)
}

/// The files that a change in unified form names.
pub fn files_of(unified: &str) -> Vec<String> {
    diff::files(unified)
}

/// What a command printed: colours are kept, everything else that steers a terminal is not.
pub fn terminal(text: &str, width: usize, look: &Look) -> Vec<Row> {
    terminal::rows(text, width, look)
}

/// What is to be done, and how far it is.
pub fn checklist(items: &[Todo], width: usize, look: &Look) -> Vec<Row> {
    let item = |item: &Todo| {
        let (mark, ascii, of_mark, of_text) = match item.status {
            Status::Pending => ("☐", "[ ]", Role::Dim, Role::Text),
            Status::InProgress => ("◐", "[~]", Role::Accent, Role::Strong),
            Status::Completed => ("☑", "[x]", Role::Good, Role::Dim),
            Status::Cancelled => ("☒", "[-]", Role::Dim, Role::Dim),
        };
        let mark = if look.ascii { ascii } else { mark };
        let mut text = look.style(of_text);
        if item.status == Status::Cancelled {
            text = text.add_modifier(Modifier::CROSSED_OUT);
        }
        let mut row = Row::of(look.style(of_mark), mark).and(Style::default(), " ");
        let indent = row.width();
        row.push(text, &item.content);
        if item.priority == Priority::High && item.status.is_open() {
            row.push(look.style(Role::Warn), " (high)");
        }
        wrap(&row, width, Break::Words, indent)
    };
    items.iter().flat_map(item).collect()
}

/// A table: the names of its columns, and its records.
pub fn table(head: &[String], body: &[Vec<String>], width: usize, look: &Look) -> Vec<Row> {
    let mut table = table::Table::new(vec![pulldown_cmark::Alignment::None; head.len()]);
    for record in std::iter::once(head).chain(body.iter().map(Vec::as_slice)) {
        table.begin();
        for text in record {
            // A cell is one line; what stood on others follows.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            table.cell(Row::of(look.style(Role::Text), &text));
        }
    }
    table.rows(width, look)
}

/// Loads what highlighting needs, so that the first frame with code does not wait for it.
pub fn warm() {
    code::warm();
}

#[cfg(test)]
mod tests;
