//! Renders a unified diff: file headers, line numbers, `+`/`-` signs that need no color, syntax
//! colors and highlighted changed words; in one column or, on a wide screen, in two.

use super::diff::{DiffLine, DiffPart, DiffSide, parse_diff};
use super::highlight::{Highlighter, expand_tabs};
use crate::safe_line::{SafeLine, TAB_WIDTH};
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, truncate, wrap};
use ratatui::style::{Color, Style};
use std::ops::Range;

/// The widths required to show both line numbers, or one.
const MIN_WIDTH_TWO_NUMBERS: usize = 60;
const MIN_WIDTH_ONE_NUMBER: usize = 28;
/// The width required for two columns: a screen of 140 columns without the margins around a diff.
const MIN_WIDTH_TWO_COLUMNS: usize = 132;
/// The lines of a diff that get syntax colors, which bounds the time.
const MAX_HIGHLIGHTED_DIFF_LINES: usize = 400;

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
    let (mut language, mut highlighted_lines) = ("", 0);
    for part in &parts {
        match part {
            DiffPart::File { path, note, added, removed } => {
                language = path.rsplit_once('.').map_or("", |(_, extension)| extension);
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
                highlighted_lines += lines.len();
                let language = Some(language)
                    .filter(|_| highlighted_lines <= MAX_HIGHLIGHTED_DIFF_LINES)
                    .unwrap_or_default();
                let lines = StyledDiffLine::style_hunk(lines, language, appearance);
                if in_columns {
                    rows.extend(render_columns(&lines, digits, width, appearance));
                } else {
                    rows.extend(lines.iter().flat_map(|styled| {
                        let gutter = styled.line.gutter(digits, width, appearance);
                        styled.render(gutter, width, appearance)
                    }));
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
    lines: &[StyledDiffLine<'_, '_>],
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
        let cell = |styled: Option<&StyledDiffLine<'_, '_>>, number: usize, cell_width: usize| {
            let number_style = appearance.style(StyleRole::LineNumber);
            let gutter = SafeLine::styled(number_style, &format!("{number:>digits$} "));
            styled.map(|styled| styled.render(gutter, cell_width, appearance)).unwrap_or_default()
        };
        let left = cell(old, old.map_or(0, |styled| styled.line.old_number), left_width);
        let right = cell(new, new.map_or(0, |styled| styled.line.new_number), right_width);
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
fn pair_lines<'s, 'l, 't>(
    lines: &'s [StyledDiffLine<'l, 't>],
) -> Vec<(Option<&'s StyledDiffLine<'l, 't>>, Option<&'s StyledDiffLine<'l, 't>>)> {
    let mut pairs = Vec::new();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        if first.line.side == DiffSide::Both {
            pairs.push((Some(first), Some(first)));
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let run = |lines: &[StyledDiffLine<'_, '_>], side: DiffSide| {
            lines.iter().take_while(|styled| styled.line.side == side).count()
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
}

/// A line of a diff with the styles of its text.
struct StyledDiffLine<'l, 't> {
    line: &'l DiffLine<'t>,
    text: SafeLine,
}

impl<'l, 't> StyledDiffLine<'l, 't> {
    /// Styles the lines of a hunk. The old and the new side are highlighted each on its own, because
    /// a removed line must not open a string or comment for the lines after it.
    fn style_hunk(
        lines: &'l [DiffLine<'t>],
        language: &str,
        appearance: &Appearance,
    ) -> Vec<StyledDiffLine<'l, 't>> {
        let added_background = appearance.style(StyleRole::Added).bg;
        // Without a background, the color of a changed line is its text color. With 256 colors, its
        // background is too strong for most other colors.
        let (colors_context, colors_changes) =
            (added_background.is_some(), matches!(added_background, Some(Color::Rgb(..))));
        let language = if colors_context { language } else { "" };
        let mut old_highlighter = Highlighter::new(language, appearance);
        let mut new_highlighter = old_highlighter.clone();
        let style_line = |line: &'l DiffLine<'t>| {
            let is_changed = line.side != DiffSide::Both;
            let highlighted = match line.side {
                DiffSide::Old => old_highlighter.highlight_line(line.text),
                DiffSide::New => new_highlighter.highlight_line(line.text),
                DiffSide::Both => {
                    old_highlighter.highlight_line(line.text);
                    new_highlighter.highlight_line(line.text)
                }
            };
            let (line_style, word_style) = line.styles(appearance);
            let (plain, words) = line.styled_text(line_style, word_style);
            let is_usable = colors_changes || colors_context && !is_changed;
            let text = match is_usable && highlighted.as_str() == plain.as_str() {
                true => {
                    words.into_iter().fold(highlighted.with_base_style(line_style), |row, word| {
                        row.with_range_style(word, word_style)
                    })
                }
                false => plain,
            };
            StyledDiffLine { line, text }
        };
        lines.iter().map(style_line).collect()
    }

    fn render(&self, gutter: SafeLine, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let (line_style, _) = self.line.styles(appearance);
        let marker = match self.line.side {
            DiffSide::Both => "  ",
            DiffSide::Old => "- ",
            DiffSide::New => "+ ",
        };
        let text_width = width.saturating_sub(gutter.width() + marker.len());
        let wrapped = wrap(&self.text, text_width, WrapMode::Words, 0);
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
}

impl DiffLine<'_> {
    /// Returns the style of the line and the one of its changed words.
    fn styles(&self, appearance: &Appearance) -> (Style, Style) {
        let (line_role, word_role) = match self.side {
            DiffSide::Both => (StyleRole::Text, StyleRole::Text),
            DiffSide::Old => (StyleRole::Removed, StyleRole::RemovedWord),
            DiffSide::New => (StyleRole::Added, StyleRole::AddedWord),
        };
        (appearance.style(line_role), appearance.style(word_role))
    }

    /// Returns the text without syntax colors, and the byte ranges of its changed words.
    fn styled_text(&self, line_style: Style, word_style: Style) -> (SafeLine, Vec<Range<usize>>) {
        let mut row = SafeLine::default();
        let mut words = Vec::new();
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
            let word_start = row.as_str().len();
            push(&mut row, word_style, self.text.get(range.clone()).unwrap_or_default());
            words.push(word_start..row.as_str().len());
            styled_end = range.end;
        }
        push(&mut row, line_style, self.text.get(styled_end..).unwrap_or_default());
        (row, words)
    }
}

fn expand_tabs_from(text: &str, column: usize) -> String {
    let indent = " ".repeat(column % TAB_WIDTH);
    let indented = format!("{indent}{text}");
    let expanded = expand_tabs(&indented, TAB_WIDTH);
    expanded.get(indent.len()..).unwrap_or_default().to_owned()
}
