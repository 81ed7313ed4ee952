//! Renders texts and tool output as rows of a given width. Pure: the same text, width and
//! `Appearance` give the same rows. It keeps the invariant that no row is wider than requested.

mod ansi;
mod diff;
mod diff_rows;
mod highlight;
pub mod image;
mod markdown;
mod markdown_blocks;
mod markdown_stream;
mod table;

pub use markdown_stream::MarkdownStream;

use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, wrap};
use ratatui::style::{Modifier, Style};
use windlass_protocol::TodoItem;
use windlass_protocol::todo_list::{TodoPriority, TodoStatus};

/// The largest width of prose; longer lines are harder to read.
pub const MAX_PROSE_WIDTH: usize = 100;

/// Renders markdown, with prose of at most `MAX_PROSE_WIDTH`; [`MarkdownStream`] does so for a text
/// that is still arriving.
pub fn render_markdown(text: &str, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    markdown_stream::MarkdownRenderer::render(text, width, appearance)
}

/// Renders plain text, line by line, in the style of one `StyleRole`.
pub fn render_plain(
    text: &str,
    width: usize,
    role: StyleRole,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let style = appearance.style(role);
    let rows = text.lines().map(|line| SafeLine::styled(style, line));
    rows.flat_map(|row| wrap(&row, width, WrapMode::Words, 0)).collect()
}

/// Renders highlighted code; `language` is a name or file extension.
pub fn render_code(
    text: &str,
    language: &str,
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let mut highlighter = highlight::Highlighter::new(language, appearance);
    text.lines().flat_map(|line| highlighter.highlight_wrapped(line, width)).collect()
}

/// Renders a unified diff with line numbers and highlighted changed words, in two columns if the
/// width allows it.
pub fn render_diff(unified_diff: &str, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    diff_rows::render_diff(unified_diff, width, appearance)
}

/// Describes a unified diff in words, line by line, for screen readers.
pub fn describe_diff(unified_diff: &str) -> String {
    diff::describe_diff(unified_diff)
}

/// Returns the files that a unified diff names.
pub fn diff_files(unified_diff: &str) -> Vec<String> {
    diff::file_names(unified_diff)
}

/// Renders command output: colors are kept, all other control sequences are dropped; see `ansi`.
pub fn render_terminal_output(text: &str, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    ansi::render_ansi(text, width, appearance)
}

/// Renders a todo list with the `TodoStatus` of each item.
pub fn render_todos(items: &[TodoItem], width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    let render_item = |item: &TodoItem| {
        let (mark, ascii, mark_role, text_role) = match item.status {
            TodoStatus::Pending => ("☐", "[ ]", StyleRole::Dim, StyleRole::Text),
            TodoStatus::InProgress => ("◐", "[~]", StyleRole::Accent, StyleRole::Strong),
            TodoStatus::Completed => ("☑", "[x]", StyleRole::Success, StyleRole::Dim),
            TodoStatus::Cancelled => ("☒", "[-]", StyleRole::Dim, StyleRole::Dim),
        };
        let mark = if appearance.ascii { ascii } else { mark };
        let mut text_style = appearance.style(text_role);
        if item.status == TodoStatus::Cancelled {
            text_style = text_style.add_modifier(Modifier::CROSSED_OUT);
        }
        let mut row =
            SafeLine::styled(appearance.style(mark_role), mark).with_text(Style::default(), " ");
        let indent = row.width();
        row.push_text(text_style, &item.content);
        if item.priority == TodoPriority::High && item.status.is_open() {
            row.push_text(appearance.style(StyleRole::Warning), " (high)");
        }
        wrap(&row, width, WrapMode::Words, indent)
    };
    items.iter().flat_map(render_item).collect()
}

/// Renders a table from its column names and records.
pub fn render_table(
    header: &[String],
    body: &[Vec<String>],
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let mut table = table::MarkdownTable::new(vec![pulldown_cmark::Alignment::None; header.len()]);
    for record in std::iter::once(header).chain(body.iter().map(Vec::as_slice)) {
        table.begin_record();
        for text in record {
            // A cell is a single line, so line breaks become spaces.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            table.push_cell(SafeLine::styled(appearance.style(StyleRole::Text), &text));
        }
    }
    table.render(width, appearance)
}

/// Loads the syntax definitions, so that the first frame with code does not wait for them.
pub fn preload_highlighting() {
    highlight::preload_syntaxes();
}

#[cfg(test)]
mod tests;
