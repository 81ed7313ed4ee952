//! Rows that are more than fit, seen page by page.

use super::sheet::INDENT;
use crate::cx::Look;
use crate::ink::Row;
use crate::keys::{Command, Place};
use crate::theme::Role;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Where a page begins after a key.
pub(crate) fn scroll(top: usize, page: usize, key: &KeyEvent, look: &Look) -> usize {
    match (key.code, look.keys.find(Place::Panel, key)) {
        (_, Some(Command::Up)) => top.saturating_sub(1),
        (_, Some(Command::Down)) => top.saturating_add(1),
        (_, Some(Command::PageUp)) => top.saturating_sub(page),
        (_, Some(Command::PageDown)) | (KeyCode::Char(' '), _) => top.saturating_add(page),
        (KeyCode::Home, _) => 0,
        (KeyCode::End, _) => usize::MAX,
        _ => top,
    }
}

/// Draws as many rows as there is room for above a foot that is always there, and says how many are
/// left. Where it begins, and how many are seen, are put right.
pub(crate) fn page(
    (top, page): (&mut usize, &mut usize),
    (rows, foot): (&[Row], &[Row]),
    (area, buffer): (Rect, &mut Buffer),
    look: &Look,
) {
    let height = usize::from(area.height);
    let mut room = height.saturating_sub(foot.len());
    let fits = rows.len() <= room;
    if !fits {
        room = room.saturating_sub(1);
    }
    *top = (*top).min(rows.len().saturating_sub(room));
    *page = room.max(1);
    let left = rows.len().saturating_sub(*top + room);
    let mut drawn: Vec<Row> = rows.iter().skip(*top).take(room).cloned().collect();
    if !fits {
        let text = match left {
            0 => "that is all".to_owned(),
            1 => "1 row more; Down shows it".to_owned(),
            left => format!("{left} rows more; Down shows them"),
        };
        let text = format!("{}{text}", " ".repeat(INDENT));
        drawn.push(Row::of(look.style(Role::Dim), &text));
    } else if drawn.len() < room {
        drawn.push(Row::default());
    }
    drawn.extend(foot.iter().cloned());
    for (row, place) in drawn.iter().zip(area.rows()) {
        row.draw(place, buffer);
    }
}
