//! Rows that are scrolled: a diff, an output, a page of text.

use crate::cx::Look;
use crate::ink::Row;
use crate::keys::{Command, Keys, Place};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// What the rows were laid out for.
type Laid = (u16, String, bool);

/// Rows, and where one is in them. They are laid out once for a width and a theme.
#[derive(Debug, Default)]
pub struct Pager {
    rows: Vec<Row>,
    laid: Option<Laid>,
    top: usize,
    tall: usize,
}

impl Pager {
    /// What it shows is another thing: it is laid out anew.
    pub fn anew(&mut self) {
        self.laid = None;
    }

    /// There is more of what it shows: whoever was at its end stays there.
    pub fn follow(&mut self) {
        self.anew();
        if self.top + self.tall >= self.rows.len() {
            self.top = usize::MAX;
        }
    }

    /// Scrolls so many rows down; up if negative.
    pub fn go(&mut self, rows: i32) {
        let last = self.rows.len().saturating_sub(self.tall);
        let step = rows.unsigned_abs() as usize;
        self.top = match rows {
            0.. => self.top.saturating_add(step).min(last),
            _ => self.top.saturating_sub(step),
        };
    }

    /// Takes in a key; false if it does not scroll.
    pub fn key(&mut self, key: &KeyEvent, keys: &Keys) -> bool {
        let page = i32::try_from(self.tall.saturating_sub(1).max(1)).unwrap_or(1);
        let rows = match (keys.find(Place::Panel, key), key.code) {
            (Some(Command::Up | Command::LineUp), _) => -1,
            (Some(Command::Down | Command::LineDown), _) => 1,
            (Some(Command::PageUp), _) => -page,
            (Some(Command::PageDown | Command::Mark), _) => page,
            (Some(Command::Top), _) | (None, KeyCode::Home) => i32::MIN,
            (Some(Command::End), _) | (None, KeyCode::End) => i32::MAX,
            _ => return false,
        };
        self.go(rows);
        true
    }

    /// Where one is, if not all of it is seen.
    pub fn place(&self) -> String {
        match self.rows.len() {
            all if all <= self.tall => String::new(),
            all => format!("{}-{} of {all}", self.top + 1, (self.top + self.tall).min(all)),
        }
    }

    /// Draws what is visible. `lay` gives the rows at a width, if they are needed anew.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        lay: impl FnOnce(usize) -> Vec<Row>,
    ) {
        let laid = (area.width, look.theme.name.clone(), look.ascii);
        if self.laid.as_ref() != Some(&laid) {
            self.rows = lay(usize::from(area.width));
            self.laid = Some(laid);
        }
        self.tall = usize::from(area.height);
        self.go(0);
        let rows = self.rows.iter().skip(self.top);
        for (row, y) in rows.zip(area.y..area.bottom()) {
            row.draw(Rect { y, height: 1, ..area }, buffer);
        }
    }
}
