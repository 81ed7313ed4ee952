//! A page of markdown, laid out block by block, and one that is still being written.

use super::code::Painter;
use super::markdown::block;
use super::split::Splitter;
use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Theme;
use ratatui::style::Style;
use std::ops::Range;

/// How far code is indented.
pub(super) const CODE: usize = 2;

/// What has been laid out, and what is needed to go on.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    split: Splitter,
    painter: Option<Painter>,
    rows: Vec<Row>,
    /// True if something stands before what is laid out next.
    begun: bool,
    /// True if that is to stand apart.
    apart: bool,
}

impl Page {
    /// A whole text.
    pub(super) fn of(text: &str, width: usize, look: &Look) -> Vec<Row> {
        let mut page = Page::default();
        let read = page.lines(text, 0, width, look);
        page.finish(text, read, width, look);
        page.rows
    }

    /// Lays out all lines that have an end, and says where the one begins that has none.
    fn lines(&mut self, text: &str, from: usize, width: usize, look: &Look) -> usize {
        let mut from = from;
        while let Some(length) = text.get(from..).and_then(|rest| rest.find('\n')) {
            self.line(text, from..from + length, width, look);
            from += length + 1;
        }
        from
    }

    /// Lays out what is left as if nothing more came.
    fn finish(&mut self, text: &str, from: usize, width: usize, look: &Look) {
        if from < text.len() {
            self.line(text, from..text.len(), width, look);
        }
        if let Some(ended) = self.split.end() {
            self.block(text, &ended, width, look);
        }
    }

    fn line(&mut self, text: &str, place: Range<usize>, width: usize, look: &Look) {
        let line = text.get(place.clone()).unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let step = self.split.line(line, place.start);
        if let Some(ended) = step.ended {
            self.block(text, &ended, width, look);
        }
        if let Some(language) = step.fence {
            self.painter = Some(Painter::new(&language, look));
            self.apart = true;
        }
        if let (Some(code), Some(painter)) = (step.code, &mut self.painter) {
            let line = text.get(code).unwrap_or_default();
            let rows = painter.rows(line, width.saturating_sub(CODE));
            self.add(rows.iter().map(|row| indented(row, CODE)).collect());
        }
        if step.closed {
            self.painter = None;
            self.apart = true;
        }
    }

    fn block(&mut self, text: &str, ended: &super::split::Block, width: usize, look: &Look) {
        let text = text.get(ended.place.clone()).unwrap_or_default();
        self.apart |= ended.apart;
        self.add(block(text, &ended.kind, width, look));
    }

    fn add(&mut self, rows: Vec<Row>) {
        if rows.is_empty() {
            return;
        }
        if self.begun && self.apart {
            self.rows.push(Row::default());
        }
        self.rows.extend(rows);
        (self.begun, self.apart) = (true, false);
    }
}

/// A row further to the right, unless there is nothing in it.
pub(super) fn indented(row: &Row, columns: usize) -> Row {
    if row.is_empty() {
        return row.clone();
    }
    let mut indented = Row::of(Style::default(), &" ".repeat(columns));
    indented.extend(row);
    indented
}

/// Markdown that is still being written: what is finished is laid out once, only its tail anew.
#[derive(Debug, Default)]
pub struct Draft {
    text: String,
    page: Page,
    /// How much of the text the page knows.
    read: usize,
    /// The rows behind the page, if nothing more came, and how long the text was then.
    tail: Vec<Row>,
    length: Option<usize>,
    /// What all this was laid out for.
    width: usize,
    theme: Theme,
    ascii: bool,
}

impl Draft {
    /// Adds what came.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many rows it has at this width. Laid out as far as it is not yet.
    pub fn height(&mut self, width: usize, look: &Look) -> usize {
        self.settle(width, look);
        self.page.rows.len() + self.tail.len()
    }

    /// Some of its rows.
    pub fn rows(&mut self, width: usize, look: &Look, wanted: Range<usize>) -> Vec<Row> {
        self.settle(width, look);
        let count = wanted.end.saturating_sub(wanted.start);
        let done = self.page.rows.len();
        let first = self.page.rows.get(wanted.start.min(done)..).unwrap_or_default();
        let behind = wanted.start.saturating_sub(done).min(self.tail.len());
        let tail = self.tail.get(behind..).unwrap_or_default();
        first.iter().chain(tail).take(count).cloned().collect()
    }

    fn settle(&mut self, width: usize, look: &Look) {
        let same = self.width == width && self.ascii == look.ascii && self.theme == look.theme;
        if !same {
            (self.page, self.read, self.length) = (Page::default(), 0, None);
            (self.width, self.ascii) = (width, look.ascii);
            self.theme.clone_from(&look.theme);
        }
        if self.length == Some(self.text.len()) {
            return;
        }
        self.read = self.page.lines(&self.text, self.read, width, look);
        let mut end = Page {
            split: self.page.split.clone(),
            painter: self.page.painter.clone(),
            rows: Vec::new(),
            begun: self.page.begun,
            apart: self.page.apart,
        };
        end.finish(&self.text, self.read, width, look);
        (self.tail, self.length) = (end.rows, Some(self.text.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most rows that were laid out anew while a text came line by line.
    fn anew(text: &str) -> usize {
        let (mut draft, look) = (Draft::default(), Look::default());
        let pieces = text.split_inclusive('\n').map(|line| {
            draft.push(line);
            draft.height(80, &look);
            draft.tail.len()
        });
        pieces.max().unwrap_or(0)
    }

    #[test]
    fn only_the_tail_is_laid_out_anew_however_long_a_fence_a_list_or_an_answer_is() {
        let fence = format!("```rust\n{}", "let x = 1;\n".repeat(3_000));
        assert_eq!(anew(&fence), 0);
        assert!(anew(&"- an item\n".repeat(500)) <= 2);
        assert!(anew(&"1. an item\n\n   goes on\n\n".repeat(200)) <= 4);
        assert!(anew(&"A paragraph.\n\n".repeat(500)) <= 2);
    }
}
