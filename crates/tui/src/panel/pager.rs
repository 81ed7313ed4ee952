//! A scrollable view of rows: a diff, command output or text.

use crate::keys::{KeyMap, KeyScope, UiCommand};
use crate::safe_line::SafeLine;
use crate::ui_context::Appearance;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The inputs of the layout: width, theme name and ASCII mode.
type LayoutKey = (u16, String, bool);

/// A scrollable view. It lays out its rows once per width and theme.
#[derive(Debug, Default)]
pub struct Pager {
    rows: Vec<SafeLine>,
    layout_key: Option<LayoutKey>,
    top_row: usize,
    visible_rows: usize,
}

impl Pager {
    /// Marks the content as changed, so that the next [`Pager::draw`] lays it out again.
    pub fn invalidate(&mut self) {
        self.layout_key = None;
    }

    /// Marks the content as extended; a view scrolled to the end stays at the end.
    pub fn invalidate_following(&mut self) {
        self.invalidate();
        if self.top_row + self.visible_rows >= self.rows.len() {
            self.top_row = usize::MAX;
        }
    }

    /// Scrolls down by a number of rows, up if negative.
    pub fn scroll_by(&mut self, rows: i32) {
        let last = self.rows.len().saturating_sub(self.visible_rows);
        let step = rows.unsigned_abs() as usize;
        self.top_row = match rows {
            0.. => self.top_row.saturating_add(step).min(last),
            _ => self.top_row.saturating_sub(step),
        };
    }

    /// Handles a key; returns false if it does not scroll.
    pub fn on_key(&mut self, key: &KeyEvent, keys: &KeyMap) -> bool {
        let page = i32::try_from(self.visible_rows.saturating_sub(1).max(1)).unwrap_or(1);
        let rows = match (keys.command_for(KeyScope::Panel, key), key.code) {
            (Some(UiCommand::RowUp | UiCommand::LineUp), _) => -1,
            (Some(UiCommand::RowDown | UiCommand::LineDown), _) => 1,
            (Some(UiCommand::PageUp), _) => -page,
            (Some(UiCommand::PageDown | UiCommand::ToggleMark), _) => page,
            (Some(UiCommand::ScrollToTop), _) | (None, KeyCode::Home) => i32::MIN,
            (Some(UiCommand::ScrollToEnd), _) | (None, KeyCode::End) => i32::MAX,
            _ => return false,
        };
        self.scroll_by(rows);
        true
    }

    /// Returns the visible range, such as `1-20 of 90`; empty if everything is visible.
    pub fn position_label(&self) -> String {
        match self.rows.len() {
            total if total <= self.visible_rows => String::new(),
            total => format!(
                "{}-{} of {total}",
                self.top_row + 1,
                (self.top_row + self.visible_rows).min(total)
            ),
        }
    }

    /// Draws the visible rows. `render` renders all rows for a width; it is called only if the
    /// layout is out of date.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        render: impl FnOnce(usize) -> Vec<SafeLine>,
    ) {
        let layout_key = (area.width, appearance.theme.name.clone(), appearance.ascii);
        if self.layout_key.as_ref() != Some(&layout_key) {
            self.rows = render(usize::from(area.width));
            self.layout_key = Some(layout_key);
        }
        self.visible_rows = usize::from(area.height);
        self.scroll_by(0);
        let rows = self.rows.iter().skip(self.top_row);
        for (row, y) in rows.zip(area.y..area.bottom()) {
            row.draw(Rect { y, height: 1, ..area }, buffer);
        }
    }
}
