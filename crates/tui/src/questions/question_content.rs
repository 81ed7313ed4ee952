//! Quoted content of a question, in labeled parts.
//!
//! Every row is behind the same margin, in the same column, so that text of the model cannot look
//! like a line or a choice of the UI.

use crate::render;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};
use windlass_protocol::display_text::pluralize;

/// The width of a label. `INDENT_WIDTH` and `MARGIN_WIDTH` add the space and the margin before the
/// text.
const LABEL_WIDTH: usize = 4;
pub(crate) const INDENT_WIDTH: usize = LABEL_WIDTH + 2;
pub(crate) const MARGIN_WIDTH: usize = INDENT_WIDTH + 2;

/// Wider than any line: the renderer does not wrap, so that `QuestionContentPart::render` wraps and marks
/// continuation rows.
const UNWRAPPED_WIDTH: usize = 1 << 20;

/// Quoted text with its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuotedText {
    /// A shell command, kept line by line.
    Command(String),
    /// A unified diff.
    Diff(String),
    /// Markdown, such as a plan.
    Markdown(String),
    /// The sentence that the user answers.
    Question(String),
    Prose(String),
}

/// A labeled part of a question's content; `fit_parts` fits several into the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionContentPart {
    /// The label, at most four characters.
    pub(crate) label: &'static str,
    pub(crate) text: QuotedText,
}

impl QuestionContentPart {
    pub(crate) fn new(label: &'static str, text: QuotedText) -> QuestionContentPart {
        QuestionContentPart { label, text }
    }

    /// Returns the part without the context lines of a diff; `None` for other texts.
    pub(crate) fn reduced(&self) -> Option<QuestionContentPart> {
        let QuotedText::Diff(diff) = &self.text else { return None };
        let text = QuotedText::Diff(super::changed_lines::without_context(diff));
        Some(QuestionContentPart { label: self.label, text })
    }

    /// Renders all rows of the part behind the margin.
    pub(crate) fn render(&self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let text_width = width.saturating_sub(MARGIN_WIDTH).max(8);
        let rows = match &self.text {
            QuotedText::Command(text) => render_command(text, text_width, appearance),
            QuotedText::Diff(text) => render::render_diff(text, text_width, appearance),
            QuotedText::Markdown(text) => render::render_markdown(text, text_width, appearance),
            QuotedText::Question(text) => {
                render_prose(text, text_width, StyleRole::Strong, appearance)
            }
            QuotedText::Prose(text) => render_prose(text, text_width, StyleRole::Text, appearance),
        };
        let mut quoted = Vec::new();
        for row in rows {
            // Wrap again, so that each row takes exactly one screen row whatever rendered it.
            for (index, line) in
                wrap::wrap(&row, text_width, WrapMode::Anywhere, 0).into_iter().enumerate()
            {
                let label = if quoted.is_empty() { self.label } else { "" };
                quoted.push(with_margin(label, edge_of_row(index), &line, appearance));
            }
        }
        if quoted.is_empty() {
            quoted.push(with_margin(
                self.label,
                QuoteMarginStyle::LineStart,
                &SafeLine::default(),
                appearance,
            ));
        }
        quoted
    }
}

/// Margin style of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteMarginStyle {
    LineStart,
    Continuation,
}

fn edge_of_row(index: usize) -> QuoteMarginStyle {
    if index == 0 { QuoteMarginStyle::LineStart } else { QuoteMarginStyle::Continuation }
}

/// Puts a quoted row behind the margin, with a label of the UI. `edge` selects the margin style.
pub(crate) fn with_margin(
    label: &str,
    edge: QuoteMarginStyle,
    row: &SafeLine,
    appearance: &Appearance,
) -> SafeLine {
    let margin = match (edge, appearance.ascii) {
        (QuoteMarginStyle::LineStart, false) => "│ ",
        (QuoteMarginStyle::Continuation, false) => "┊ ",
        (QuoteMarginStyle::LineStart, true) => "| ",
        (QuoteMarginStyle::Continuation, true) => ": ",
    };
    let mut quoted =
        SafeLine::styled(appearance.style(StyleRole::Dim), &format!(" {label:<LABEL_WIDTH$} "))
            .with_text(appearance.style(StyleRole::Border), margin);
    for (style, text) in row.spans() {
        quoted.push_text(style, text);
    }
    quoted
}

/// Renders a command line by line; a line wider than the screen continues on the next row.
fn render_command(text: &str, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    let _ = width;
    render::render_code(
        text.strip_suffix('\n').unwrap_or(text),
        "bash",
        UNWRAPPED_WIDTH,
        appearance,
    )
}

fn render_prose(
    text: &str,
    width: usize,
    role: StyleRole,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let style = appearance.style(role);
    let lines = text.trim_end().split('\n').map(|line| SafeLine::styled(style, line));
    lines.flat_map(|row| wrap::wrap(&row, width, WrapMode::Words, 0)).collect()
}

/// Fits parts into `max_rows` rows. The first part shrinks first, down to three rows, then the
/// others from the last; a row says how much is omitted.
pub(crate) fn fit_parts(
    parts: &[Vec<SafeLine>],
    max_rows: usize,
    more: &str,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let total: usize = parts.iter().map(Vec::len).sum();
    if total <= max_rows {
        return parts.iter().flatten().cloned().collect();
    }
    let max_rows = max_rows.saturating_sub(1);
    let mut row_counts: Vec<usize> = parts.iter().map(Vec::len).collect();
    let mut excess = total.saturating_sub(max_rows);
    let mut shrink = |row_counts: &mut [usize], index: usize, min_rows: usize| {
        if let Some(count) = row_counts.get_mut(index) {
            let removed = count.saturating_sub(min_rows).min(excess);
            *count -= removed;
            excess -= removed;
        }
    };
    shrink(&mut row_counts, 0, 3);
    for min_rows in [2, 1] {
        (1..parts.len()).rev().for_each(|index| shrink(&mut row_counts, index, min_rows));
    }
    // The reason, which is last, gives way to the changed lines.
    if parts.len() > 1 {
        shrink(&mut row_counts, parts.len() - 1, 0);
    }
    shrink(&mut row_counts, 0, 1);
    (0..parts.len()).rev().for_each(|index| shrink(&mut row_counts, index, 0));
    let visible = parts.iter().zip(&row_counts).flat_map(|(rows, count)| rows.iter().take(*count));
    let mut rows: Vec<SafeLine> = visible.cloned().collect();
    let omitted = total - rows.len();
    let note_index = row_counts.first().copied().unwrap_or_default();
    let text = format!("{}{} more{more}", " ".repeat(INDENT_WIDTH), pluralize(omitted, "row"));
    rows.insert(
        note_index.min(rows.len()),
        SafeLine::styled(appearance.style(StyleRole::Dim), &text),
    );
    rows
}
