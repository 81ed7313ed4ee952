//! The screen as it is drawn: the story, a panel or a question over it, what goes on, the prompt, and
//! how things stand.

use super::App;
use super::status::{self, Rule};
use crate::ink::Row;
use crate::theme::Role;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

impl App {
    /// Draws a frame, and says where the cursor stands.
    pub fn draw(&mut self, buffer: &mut Buffer) -> Option<Position> {
        let area = buffer.area;
        self.prompt.fit(area.height);
        let prompt = self.prompt.height(area.width, &self.look).min(area.height / 2).max(1);
        // A question stays in sight while a panel is open, with no more than its first row.
        let behind = !self.panels.is_empty() || self.story.finds();
        let most = if behind { 1 } else { area.height.saturating_sub(prompt + 3) };
        let listing = self.prompt.is_listing() && !self.asked_has_keys();
        self.asked.stand(self.now, self.prompt.is_empty(), behind || listing);
        let asked = self.asked.height(area.width, most, &self.look).min(most);
        let story = area.height.saturating_sub(prompt + asked + 2);
        let mut top = area.y;
        let mut take = |height: u16| {
            let part = Rect { y: top, height, ..area }.intersection(area);
            top = top.saturating_add(height);
            part
        };
        let (story, asked_at, rule, prompt_at, status_at) =
            (take(story), take(asked), take(1), take(prompt), take(1));
        let found = self.story.draw(story, buffer, &self.look, &self.known);
        let mut cursor = self.draw_panel(story, buffer);
        if self.panels.is_empty() {
            cursor = found;
        }
        if asked > 0 {
            let own = self.asked.draw(asked_at, buffer, &self.look, &self.known);
            cursor = cursor.or(own);
        }
        let width = usize::from(area.width);
        self.rule().row(width, &self.look, &self.known).draw(rule, buffer);
        let own = self.prompt.draw(prompt_at, buffer, &self.look, &self.known);
        let elsewhere = behind || self.asked_has_keys();
        if !elsewhere {
            cursor = own;
        }
        status::status(width, &self.look, &self.known).draw(status_at, buffer);
        cursor.filter(|at| area.contains(*at))
    }

    /// Draws the panel that is open over the end of the story.
    pub(crate) fn draw_panel(&mut self, story: Rect, buffer: &mut Buffer) -> Option<Position> {
        let panel = self.panels.last_mut()?;
        let inside = panel.height(story.width, &self.known).min(story.height.saturating_sub(1));
        let top = story.bottom().saturating_sub(inside + 1);
        let sheet = Rect { y: top, height: inside + 1, ..story }.intersection(story);
        ratatui::widgets::Widget::render(ratatui::widgets::Clear, sheet, buffer);
        let edge = self.look.style(Role::Border);
        let line = if self.look.ascii { "-" } else { "─" };
        let title = Row::of(edge, &format!("{} ", line.repeat(2)))
            .and(self.look.style(Role::Strong), &panel.title());
        let rest = usize::from(story.width).saturating_sub(title.width() + 1);
        let title = title.and(edge, &format!(" {}", line.repeat(rest)));
        wrap::cut(&title, usize::from(sheet.width), &self.look).draw(sheet, buffer);
        let below = Rect { y: sheet.y + 1, height: sheet.height.saturating_sub(1), ..sheet };
        panel.draw(below, buffer, &self.look, &self.known)
    }

    fn rule(&self) -> Rule<'_> {
        let hint = self.hint.as_ref().map(|(hint, _)| hint.as_str());
        let took = self.known.turn.map(|(_, since)| self.now.saturating_sub(since));
        Rule { hint, took }
    }
}
