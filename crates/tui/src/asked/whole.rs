//! All of what a question is about, to be scrolled through.

use super::card::Laid;
use super::paging::scroll;
use super::sheet::Part;
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::keys::{Command, Place};
use crate::known::Known;
use crate::panel::{Flow, Panel};
use crate::theme::Role;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// The panel. It answers nothing.
#[derive(Debug)]
pub(crate) struct Whole {
    title: String,
    parts: Vec<Part>,
    laid: Laid,
    top: usize,
    /// How many rows were seen at once.
    page: usize,
}

impl Whole {
    pub(crate) fn new(title: String, parts: Vec<Part>) -> Whole {
        Whole { title, parts, laid: Laid::default(), top: 0, page: 1 }
    }
}

impl Panel for Whole {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if cx.look.keys.find(Place::Asked, key) == Some(Command::Whole) {
            return Flow::Close;
        }
        self.top = scroll(self.top, self.page, key, cx.look);
        Flow::Stay
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        self.top = self.top.saturating_add_signed(isize::try_from(lines).unwrap_or_default());
    }

    fn height(&self, width: u16, known: &Known) -> u16 {
        let _ = (width, known);
        u16::MAX
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let _ = known;
        let rows: Vec<&Row> =
            self.laid.rows(&self.parts, usize::from(area.width), look).iter().flatten().collect();
        let page = usize::from(area.height.saturating_sub(1));
        let top = self.top.min(rows.len().saturating_sub(page));
        let places = area.rows();
        for (row, place) in rows.iter().skip(top).take(page).zip(places) {
            row.draw(place, buffer);
        }
        let seen = (top + page).min(rows.len());
        let hint = |command| super::choices::shown(&look.keys.hint(command));
        let scrolls = match rows.len() > page {
            true => format!("{} {} scroll · ", hint(Command::Down), hint(Command::PageDown)),
            false => String::new(),
        };
        let back = format!("{} or Esc goes back", hint(Command::Whole));
        let text = format!(" {}–{seen} of {} · {scrolls}{back}", top + 1, rows.len());
        let text = if look.ascii { text.replace(['–', '·'], "-") } else { text };
        let foot = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
        Row::of(look.style(Role::Dim), &text).draw(foot.intersection(area), buffer);
        (self.top, self.page) = (top, page.max(1));
        None
    }
}
