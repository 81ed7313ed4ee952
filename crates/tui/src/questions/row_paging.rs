//! Paging of rows that do not fit the screen.

use super::question_content::INDENT_WIDTH;
use crate::keys::{KeyScope, UiCommand};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Returns the top row after a key.
pub(crate) fn scroll_position(
    top: usize,
    page: usize,
    key: &KeyEvent,
    appearance: &Appearance,
) -> usize {
    match (key.code, appearance.key_map.command_for(KeyScope::Panel, key)) {
        (_, Some(UiCommand::RowUp)) => top.saturating_sub(1),
        (_, Some(UiCommand::RowDown)) => top.saturating_add(1),
        (_, Some(UiCommand::PageUp)) => top.saturating_sub(page),
        (_, Some(UiCommand::PageDown)) | (KeyCode::Char(' '), _) => top.saturating_add(page),
        (KeyCode::Home, _) => 0,
        (KeyCode::End, _) => usize::MAX,
        _ => top,
    }
}

/// Draws the rows that fit above a fixed footer, with the number of rows that remain. Corrects
/// `top` and `page` to the drawn range.
pub(crate) fn draw_page(
    (top, page): (&mut usize, &mut usize),
    (rows, footer): (&[SafeLine], &[SafeLine]),
    (area, buffer): (Rect, &mut Buffer),
    appearance: &Appearance,
) {
    let height = usize::from(area.height);
    let mut available = height.saturating_sub(footer.len());
    let fits = rows.len() <= available;
    if !fits {
        available = available.saturating_sub(1);
    }
    *top = (*top).min(rows.len().saturating_sub(available));
    *page = available.max(1);
    let remaining = rows.len().saturating_sub(*top + available);
    let mut drawn: Vec<SafeLine> = rows.iter().skip(*top).take(available).cloned().collect();
    if !fits {
        let text = match remaining {
            0 => "end of list".to_owned(),
            1 => "1 more row; press Down".to_owned(),
            remaining => format!("{remaining} more rows; press Down"),
        };
        let text = format!("{}{text}", " ".repeat(INDENT_WIDTH));
        drawn.push(SafeLine::styled(appearance.style(StyleRole::Dim), &text));
    } else if drawn.len() < available {
        drawn.push(SafeLine::default());
    }
    drawn.extend(footer.iter().cloned());
    for (row, row_area) in drawn.iter().zip(area.rows()) {
        row.draw(row_area, buffer);
    }
}
