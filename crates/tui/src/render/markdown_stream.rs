//! Renders a markdown text block by block, whole or, as a `MarkdownStream`, while it is still
//! arriving.

use super::highlight::Highlighter;
use super::markdown::{CODE_INDENT, indent_row, render_block};
use super::markdown_blocks::MarkdownBlockSplitter;
use crate::safe_line::SafeLine;
use crate::theme::Theme;
use crate::ui_context::Appearance;
use std::ops::Range;

/// The rows rendered so far, and the `MarkdownBlockSplitter` and `Highlighter` state required to continue.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkdownRenderer {
    splitter: MarkdownBlockSplitter,
    highlighter: Option<Highlighter>,
    rows: Vec<SafeLine>,
    /// True if rows precede the next block, here or in the renderer that this one continues.
    has_rows: bool,
    /// True if a blank row must precede the next block.
    needs_blank_row: bool,
}

impl MarkdownRenderer {
    /// Renders a complete text.
    pub(super) fn render(text: &str, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let mut renderer = MarkdownRenderer::default();
        let rendered_bytes = renderer.render_lines(text, 0, width, appearance);
        renderer.render_rest(text, rendered_bytes, width, appearance);
        renderer.rows
    }

    /// Renders all lines that end with a newline, and returns the offset of the unfinished line.
    fn render_lines(
        &mut self,
        text: &str,
        start: usize,
        width: usize,
        appearance: &Appearance,
    ) -> usize {
        let mut line_start = start;
        while let Some(length) = text.get(line_start..).and_then(|rest| rest.find('\n')) {
            self.render_line(text, line_start..line_start + length, width, appearance);
            line_start += length + 1;
        }
        line_start
    }

    /// Renders the remaining text as if it were complete.
    fn render_rest(&mut self, text: &str, start: usize, width: usize, appearance: &Appearance) {
        if start < text.len() {
            self.render_line(text, start..text.len(), width, appearance);
        }
        if let Some(block) = self.splitter.end_block() {
            self.render_block(text, &block, width, appearance);
        }
    }

    fn render_line(
        &mut self,
        text: &str,
        range: Range<usize>,
        width: usize,
        appearance: &Appearance,
    ) {
        let line = text.get(range.clone()).unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let step = self.splitter.read_line(line, range.start);
        if let Some(block) = step.ended_block {
            self.render_block(text, &block, width, appearance);
        }
        if let Some(language) = step.opened_fence {
            self.highlighter = Some(Highlighter::new(&language, appearance));
            self.needs_blank_row = true;
        }
        if let (Some(code), Some(highlighter)) = (step.code_line, &mut self.highlighter) {
            let line = text.get(code).unwrap_or_default();
            let rows = highlighter.highlight_wrapped(line, width.saturating_sub(CODE_INDENT));
            self.push_rows(rows.iter().map(|row| indent_row(row, CODE_INDENT)).collect());
        }
        if step.fence_closed {
            self.highlighter = None;
            self.needs_blank_row = true;
        }
    }

    fn render_block(
        &mut self,
        text: &str,
        block: &super::markdown_blocks::MarkdownBlock,
        width: usize,
        appearance: &Appearance,
    ) {
        let text = text.get(block.range.clone()).unwrap_or_default();
        self.needs_blank_row |= block.follows_blank_line;
        self.push_rows(render_block(text, &block.kind, width, appearance));
    }

    fn push_rows(&mut self, rows: Vec<SafeLine>) {
        if rows.is_empty() {
            return;
        }
        if self.has_rows && self.needs_blank_row {
            self.rows.push(SafeLine::default());
        }
        self.rows.extend(rows);
        (self.has_rows, self.needs_blank_row) = (true, false);
    }
}

/// A streaming markdown text: finished blocks are rendered once, only the tail is rendered again.
#[derive(Debug, Default)]
pub struct MarkdownStream {
    text: String,
    renderer: MarkdownRenderer,
    /// The length of the text that `renderer` has read.
    rendered_bytes: usize,
    /// The rows of the unfinished tail, and the length of the text when they were rendered.
    tail_rows: Vec<SafeLine>,
    tail_text_len: Option<usize>,
    /// The width and `Appearance` that the rows were rendered for.
    width: usize,
    theme: Theme,
    ascii: bool,
}

impl MarkdownStream {
    /// Appends a piece of text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Returns the whole text received so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of rows at this width; renders the missing ones first.
    pub fn height(&mut self, width: usize, appearance: &Appearance) -> usize {
        self.update_rows(width, appearance);
        self.renderer.rows.len() + self.tail_rows.len()
    }

    /// Returns the rows in `range`.
    pub fn rows(
        &mut self,
        width: usize,
        appearance: &Appearance,
        range: Range<usize>,
    ) -> Vec<SafeLine> {
        self.update_rows(width, appearance);
        let count = range.end.saturating_sub(range.start);
        let finished_rows = self.renderer.rows.len();
        let first = self.renderer.rows.get(range.start.min(finished_rows)..).unwrap_or_default();
        let tail_start = range.start.saturating_sub(finished_rows).min(self.tail_rows.len());
        let tail = self.tail_rows.get(tail_start..).unwrap_or_default();
        first.iter().chain(tail).take(count).cloned().collect()
    }

    fn update_rows(&mut self, width: usize, appearance: &Appearance) {
        let is_unchanged =
            self.width == width && self.ascii == appearance.ascii && self.theme == appearance.theme;
        if !is_unchanged {
            (self.renderer, self.rendered_bytes, self.tail_text_len) =
                (MarkdownRenderer::default(), 0, None);
            (self.width, self.ascii) = (width, appearance.ascii);
            self.theme.clone_from(&appearance.theme);
        }
        if self.tail_text_len == Some(self.text.len()) {
            return;
        }
        self.rendered_bytes =
            self.renderer.render_lines(&self.text, self.rendered_bytes, width, appearance);
        let mut tail_renderer = MarkdownRenderer {
            splitter: self.renderer.splitter.clone(),
            highlighter: self.renderer.highlighter.clone(),
            rows: Vec::new(),
            has_rows: self.renderer.has_rows,
            needs_blank_row: self.renderer.needs_blank_row,
        };
        tail_renderer.render_rest(&self.text, self.rendered_bytes, width, appearance);
        (self.tail_rows, self.tail_text_len) = (tail_renderer.rows, Some(self.text.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the maximum number of rows rendered again while a text arrives line by line.
    fn max_tail_rows(text: &str) -> usize {
        let (mut stream, appearance) = (MarkdownStream::default(), Appearance::default());
        let tail_rows = text.split_inclusive('\n').map(|line| {
            stream.push(line);
            stream.height(80, &appearance);
            stream.tail_rows.len()
        });
        tail_rows.max().unwrap_or(0)
    }

    #[test]
    fn only_the_tail_is_rendered_again_for_text_of_any_length() {
        let fence = format!("```rust\n{}", "let x = 1;\n".repeat(3_000));
        assert_eq!(max_tail_rows(&fence), 0);
        assert!(max_tail_rows(&"- an item\n".repeat(500)) <= 2);
        assert!(max_tail_rows(&"1. an item\n\n   goes on\n\n".repeat(200)) <= 4);
        assert!(max_tail_rows(&"A paragraph.\n\n".repeat(500)) <= 2);
    }
}
