//! Shared rows and layout of the panels: faults, key hints, margins.

use crate::keys::UiCommand;
use crate::render;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;
use windlass_protocol::Fault;

/// Formats a number with a space between groups of three digits: `12 345`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The left margin of panel content: two marks and a space.
pub const PANEL_MARGIN: usize = 3;

/// Splits an area into first row, body and last row, with a blank row above the last one if there
/// is room.
pub fn split_area(area: Rect) -> [Rect; 3] {
    let blank_rows = u16::from(area.height > 7);
    let header = Rect { height: area.height.min(1), ..area };
    let footer = Rect {
        y: area.bottom().saturating_sub(1).max(area.y),
        height: u16::from(area.height > 1),
        ..area
    };
    let body =
        Rect { y: header.bottom(), height: area.height.saturating_sub(2 + blank_rows), ..area };
    [header, body, footer]
}

/// Splits an area into the body and the last row, with a blank row between them if there is room.
pub fn split_footer(area: Rect) -> (Rect, Rect) {
    let [_, _, footer] = split_area(area);
    let blank_rows = u16::from(area.height > 3);
    (Rect { height: area.height.saturating_sub(footer.height + blank_rows), ..area }, footer)
}

/// Returns a row in `StyleRole::Dim`, indented by `PANEL_MARGIN`.
pub fn dim_row(text: &str, appearance: &Appearance) -> SafeLine {
    SafeLine::styled(
        appearance.style(StyleRole::Dim),
        &format!("{}{text}", " ".repeat(PANEL_MARGIN)),
    )
}

/// Draws a `Fault` and the next step to take.
pub fn draw_fault(fault: &Fault, area: Rect, buffer: &mut Buffer, appearance: &Appearance) {
    draw_rows(&fault_rows(fault, usize::from(area.width), appearance), area, buffer);
}

/// Renders a `Fault` and the next step as rows.
pub fn fault_rows(fault: &Fault, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    let inner = width.saturating_sub(PANEL_MARGIN + 1).max(1);
    let mut rows = render::render_plain(&fault.to_string(), inner, StyleRole::Error, appearance);
    rows.extend(render::render_plain(
        crate::error_hints::next_step(fault),
        inner,
        StyleRole::Dim,
        appearance,
    ));
    rows.iter().map(|row| indent_row(row, PANEL_MARGIN)).collect()
}

/// Indents a row by a number of columns.
pub fn indent_row(row: &SafeLine, columns: usize) -> SafeLine {
    let mut indented = SafeLine::styled(ratatui::style::Style::default(), &" ".repeat(columns));
    append_row(&mut indented, row);
    indented
}

/// Returns the one-row area that starts at a column and row of `area`.
pub fn area_at(area: Rect, column: usize, row: usize) -> Rect {
    let to_u16 = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let (x, y) = (area.x.saturating_add(to_u16(column)), area.y.saturating_add(to_u16(row)));
    Rect { x, y, width: area.width.saturating_sub(to_u16(column)), height: 1 }.intersection(area)
}

/// Draws rows from the top of an area; rows that do not fit are left out.
pub fn draw_rows(rows: &[SafeLine], area: Rect, buffer: &mut Buffer) {
    for (row, y) in rows.iter().zip(area.y..area.bottom()) {
        row.draw(Rect { y, height: 1, ..area }, buffer);
    }
}

/// Formats key hints from `(command, description)` pairs; leaves out commands without a key.
pub fn describe_keys(appearance: &Appearance, commands: &[(UiCommand, &str)]) -> String {
    let hints = commands.iter().filter_map(|(command, description)| {
        let key = appearance.key_map.key_hint(*command);
        (!key.is_empty()).then(|| format!("{key} {description}"))
    });
    hints.collect::<Vec<_>>().join(item_separator(appearance))
}

/// Returns the separator between items on one row: ` · `, or ` - ` in ASCII mode.
pub fn item_separator(appearance: &Appearance) -> &'static str {
    if appearance.ascii { " - " } else { " · " }
}

/// Renders a row of key hints; a hint that does not fit is left out, not cut.
pub fn hint_row(text: &str, appearance: &Appearance, width: u16) -> SafeLine {
    let mut row = dim_row("", appearance);
    let separator = item_separator(appearance);
    for (index, hint) in text.split(separator).enumerate() {
        let separator = if index == 0 { "" } else { separator };
        if row.width() + separator.width() + hint.width() > usize::from(width) {
            break;
        }
        row.push_text(appearance.style(StyleRole::Dim), separator);
        row.push_text(appearance.style(StyleRole::Dim), hint);
    }
    row
}

/// Returns the longest suffix of a text that fits a width.
pub fn tail_to_width(text: &str, width: usize) -> &str {
    let mut used = 0;
    let mut start = text.len();
    for (offset, cluster) in text.grapheme_indices(true).rev() {
        used += cluster.width();
        if used > width {
            break;
        }
        start = offset;
    }
    text.get(start..).unwrap_or_default()
}

/// Appends the row `appended` to another.
pub fn append_row(row: &mut SafeLine, appended: &SafeLine) {
    appended.spans().for_each(|(style, text)| row.push_text(style, text));
}

/// Appends the row `appended` to another, padded to a width.
pub fn append_padded(row: &mut SafeLine, appended: &SafeLine, width: usize) {
    append_row(row, appended);
    let gap = width.saturating_sub(appended.width());
    row.push_text(ratatui::style::Style::default(), &" ".repeat(gap));
}

/// Renders text wrapped between words and indented by `PANEL_MARGIN`.
pub fn render_prose(
    text: &str,
    role: StyleRole,
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let inner = width.saturating_sub(PANEL_MARGIN + 1).max(1);
    let row = SafeLine::styled(appearance.style(role), text);
    let rows = wrap::wrap(&row, inner, wrap::WrapMode::Words, 0);
    rows.iter().map(|row| indent_row(row, PANEL_MARGIN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_thousands() {
        assert_eq!([7, 1_234, 12_345_678].map(group_digits), ["7", "1 234", "12 345 678"]);
    }

    #[test]
    fn a_hint_that_does_not_fit_is_omitted_entirely() {
        let appearance = Appearance::default();
        let text = "Enter open · Ctrl+K fork · Esc close";
        assert_eq!(hint_row(text, &appearance, 30).text(), "   Enter open · Ctrl+K fork");
        assert_eq!(hint_row(text, &appearance, 5).text(), "   ");
    }

    #[test]
    fn a_long_line_keeps_its_end() {
        assert_eq!(tail_to_width("abc解析", 5), "c解析");
        assert_eq!(tail_to_width("abc", 9), "abc");
    }
}
