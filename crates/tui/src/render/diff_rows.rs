//! Renders a unified diff: file headers, line numbers, `+`/`-` signs that need no color, and
//! highlighted changed words; in one column or, on a wide screen, in two.

use super::diff::{DiffLine, DiffPart, DiffSide, parse_diff};
use super::highlight::expand_tabs;
use crate::safe_line::{SafeLine, TAB_WIDTH};
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, truncate, wrap};
use ratatui::style::Style;

/// The widths required to show both line numbers, or one.
const MIN_WIDTH_TWO_NUMBERS: usize = 60;
const MIN_WIDTH_ONE_NUMBER: usize = 28;
/// The width required for two columns: a screen of 140 columns without the margins around a diff.
const MIN_WIDTH_TWO_COLUMNS: usize = 132;

/// Renders a unified diff as rows; see `DiffPart` for its parts. On a wide screen, a file with lines
/// on both sides is shown in two columns.
pub(super) fn render_diff(
    unified_diff: &str,
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let parts = parse_diff(unified_diff);
    let max_numbers = parts.iter().flat_map(|part| match part {
        DiffPart::Hunk { lines, .. } => {
            lines.last().map(|line| line.old_number.max(line.new_number))
        }
        DiffPart::File { .. } | DiffPart::Other(_) => None,
    });
    let digits = max_numbers.max().unwrap_or(0).to_string().len();
    let mut rows: Vec<SafeLine> = Vec::new();
    let (mut after_hunk, mut in_columns) = (false, false);
    for part in &parts {
        match part {
            DiffPart::File { path, note, added, removed } => {
                in_columns = width >= MIN_WIDTH_TWO_COLUMNS && *added > 0 && *removed > 0;
                if !rows.is_empty() {
                    rows.push(SafeLine::default());
                }
                let dim = appearance.style(StyleRole::Dim);
                let mut row = SafeLine::styled(appearance.style(StyleRole::Strong), path)
                    .with_text(dim, note);
                row.push_text(dim, "  ");
                row.push_text(appearance.style(StyleRole::Success), &format!("+{added}"));
                row.push_text(dim, " ");
                row.push_text(appearance.style(StyleRole::Error), &format!("-{removed}"));
                // The path is part of what the user approves, so it is wrapped and never truncated.
                rows.extend(wrap(&row, width, WrapMode::Anywhere, 0));
            }
            DiffPart::Hunk { lines, section } => {
                if after_hunk {
                    rows.push(render_separator(section, digits, width, appearance));
                }
                if in_columns {
                    rows.extend(render_columns(lines, digits, width, appearance));
                } else {
                    let gutter = |line: &DiffLine<'_>| line.gutter(digits, width, appearance);
                    rows.extend(
                        lines.iter().flat_map(|line| line.render(gutter(line), width, appearance)),
                    );
                }
            }
            DiffPart::Other(text) => {
                rows.extend(super::render_plain(text, width, StyleRole::Dim, appearance))
            }
        }
        after_hunk = matches!(part, DiffPart::Hunk { .. });
    }
    rows
}

/// Renders the separator between two hunks, with the `section` text of the second one.
fn render_separator(
    section: &str,
    digits: usize,
    width: usize,
    appearance: &Appearance,
) -> SafeLine {
    let ellipsis = if appearance.ascii { "..." } else { "⋯" };
    let indent = " ".repeat(digits.saturating_sub(1));
    let mut row =
        SafeLine::styled(appearance.style(StyleRole::Border), &format!("{indent}{ellipsis}"));
    row.push_text(appearance.style(StyleRole::Dim), &format!("  {section}"));
    truncate(&row, width, appearance)
}

/// Renders the lines of a hunk in two columns, the old lines at the left. Lines that replace each
/// other are beside each other.
fn render_columns(
    lines: &[DiffLine<'_>],
    digits: usize,
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let separator = if appearance.ascii { " | " } else { " │ " };
    let separator = SafeLine::styled(appearance.style(StyleRole::Border), separator);
    let left_width = (width - separator.width()) / 2;
    let right_width = width - separator.width() - left_width;
    let mut rows = Vec::new();
    for (old, new) in pair_lines(lines) {
        let cell = |line: Option<&DiffLine<'_>>, number: usize, cell_width: usize| {
            let number_style = appearance.style(StyleRole::LineNumber);
            let gutter = SafeLine::styled(number_style, &format!("{number:>digits$} "));
            line.map(|line| line.render(gutter, cell_width, appearance)).unwrap_or_default()
        };
        let left = cell(old, old.map_or(0, |line| line.old_number), left_width);
        let right = cell(new, new.map_or(0, |line| line.new_number), right_width);
        for index in 0..left.len().max(right.len()) {
            let mut row = left.get(index).cloned().unwrap_or_default();
            row.pad_to(Style::default(), left_width);
            row.append(&separator);
            row.append(&right.get(index).cloned().unwrap_or_default());
            rows.push(row);
        }
    }
    rows
}

/// Pairs each line of the old side with the one of the new side that is shown beside it.
fn pair_lines<'l, 't>(
    lines: &'l [DiffLine<'t>],
) -> Vec<(Option<&'l DiffLine<'t>>, Option<&'l DiffLine<'t>>)> {
    let mut pairs = Vec::new();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        if first.side == DiffSide::Both {
            pairs.push((Some(first), Some(first)));
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let run = |lines: &[DiffLine<'_>], side: DiffSide| {
            lines.iter().take_while(|line| line.side == side).count()
        };
        let (old, after) = rest.split_at(run(rest, DiffSide::Old));
        let (new, after) = after.split_at(run(after, DiffSide::New));
        let count = old.len().max(new.len());
        pairs.extend((0..count).map(|index| (old.get(index), new.get(index))));
        rest = after;
    }
    pairs
}

impl DiffLine<'_> {
    /// Renders the gutter of a line: one or two line numbers.
    fn gutter(&self, digits: usize, width: usize, appearance: &Appearance) -> SafeLine {
        let format_number = |is_shown: bool, number: usize| match is_shown {
            true => format!("{number:>digits$} "),
            false => " ".repeat(digits + 1),
        };
        let number_style = appearance.style(StyleRole::LineNumber);
        let mut row = SafeLine::default();
        if width >= MIN_WIDTH_TWO_NUMBERS {
            row.push_text(
                number_style,
                &format_number(self.side != DiffSide::New, self.old_number),
            );
            row.push_text(
                number_style,
                &format_number(self.side != DiffSide::Old, self.new_number),
            );
        } else if width >= MIN_WIDTH_ONE_NUMBER {
            let line_number =
                if self.side == DiffSide::Old { self.old_number } else { self.new_number };
            row.push_text(number_style, &format_number(true, line_number));
        }
        row
    }

    fn render(&self, gutter: SafeLine, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let (line_style, word_style, marker) = match self.side {
            DiffSide::Both => {
                (appearance.style(StyleRole::Text), appearance.style(StyleRole::Text), "  ")
            }
            DiffSide::Old => (
                appearance.style(StyleRole::Removed),
                appearance.style(StyleRole::RemovedWord),
                "- ",
            ),
            DiffSide::New => {
                (appearance.style(StyleRole::Added), appearance.style(StyleRole::AddedWord), "+ ")
            }
        };
        let text = self.styled_text(line_style, word_style);
        let text_width = width.saturating_sub(gutter.width() + marker.len());
        let wrapped = wrap(&text, text_width, WrapMode::Words, 0);
        let rows = wrapped.iter().enumerate().map(|(index, wrapped_row)| {
            let mut row = SafeLine::default();
            match index {
                0 => row.append(&gutter),
                _ => row.push_text(Style::default(), &" ".repeat(gutter.width())),
            }
            row.push_text(line_style, if index == 0 { marker } else { "  " });
            row.append(wrapped_row);
            if line_style.bg.is_some() {
                row.pad_to(line_style, width);
            }
            row
        });
        rows.collect()
    }

    fn styled_text(&self, line_style: Style, word_style: Style) -> SafeLine {
        let mut row = SafeLine::default();
        let mut styled_end = 0;
        let mut column = 0;
        let mut push = |row: &mut SafeLine, style: Style, text: &str| {
            // Tab stops are counted from the start of the text, not of the row.
            let text = expand_tabs_from(text, column);
            row.push_text(style, &text);
            column = row.width();
        };
        for range in &self.changed_words {
            push(&mut row, line_style, self.text.get(styled_end..range.start).unwrap_or_default());
            push(&mut row, word_style, self.text.get(range.clone()).unwrap_or_default());
            styled_end = range.end;
        }
        push(&mut row, line_style, self.text.get(styled_end..).unwrap_or_default());
        row
    }
}

fn expand_tabs_from(text: &str, column: usize) -> String {
    let indent = " ".repeat(column % TAB_WIDTH);
    let indented = format!("{indent}{text}");
    let expanded = expand_tabs(&indented, TAB_WIDTH);
    expanded.get(indent.len()..).unwrap_or_default().to_owned()
}
